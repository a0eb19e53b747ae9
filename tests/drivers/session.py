# SPDX-License-Identifier: MIT
"""The fixture of the tests of the python driver: runs turns and fails when one does not end as expected."""
import pytest
from harness import Driver


class Session:
    """A driver, with turns that must end as expected (by default well and in silence)."""

    def __init__(self, driver):
        self.driver = driver

    def __call__(self, code, out="", err="", status=0, timeout=20, state="kept"):
        got = self.driver.turn(code, timeout)
        assert (got["stdout"] if out is not any else any) == out, got
        assert got["stderr"] == err if isinstance(err, str) else all(x in got["stderr"] for x in err), got
        assert got["exit_code"] == status and got["state"] == state, got
        return got


@pytest.fixture
def py():
    with Driver("python") as driver:
        yield Session(driver)

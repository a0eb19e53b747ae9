# SPDX-License-Identifier: MIT
"""The fixture of the tests of the node driver: runs turns and fails when one does not end as expected."""
import os
import re
import signal
import time

import pytest
from harness import Driver


class Session:
    """Runs turns and expects of each: this output, nothing on stderr, status 0, state kept, in time."""

    def __init__(self, driver):
        self.driver = driver

    def __call__(self, code, stdout="", stderr="", exit_code=0, state="kept", timeout=30.0):
        answer = self.driver.turn(code, timeout)
        assert (answer["exit_code"], answer["state"]) == (exit_code, state), answer
        for stream, expected in (("stdout", stdout), ("stderr", stderr)):
            if isinstance(expected, re.Pattern):
                assert expected.search(answer[stream]), answer
            else:
                assert answer[stream] == expected, answer
        return answer

    def interrupt_idle(self):
        """SIGINT between turns; returns when it has been delivered."""
        pid = self.driver.process.pid
        os.kill(pid, signal.SIGINT)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                if re.search(r"^ShdPnd:\s*0+$", f.read(), re.MULTILINE):
                    return
        raise AssertionError("SIGINT stays pending")

    def interrupted(self, code, stdout="", state="kept"):
        self(code, stdout, re.compile(""), 124, state, timeout=0.5)


@pytest.fixture
def js():
    with Driver("node") as driver:
        yield Session(driver)

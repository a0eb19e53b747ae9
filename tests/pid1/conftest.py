# SPDX-License-Identifier: MIT
"""The service, new for each test, and nothing of it afterwards."""
import os
import shutil

import pytest

from pid1lib import CONFIG, DROPINS, LOG, SOCKET, STATE, Service, systemctl, wait_for


def reset(service):
    """As the machine was when it booted."""
    service.stop()
    systemctl("reset-failed", "sandboxd.service", "sandboxd.socket", status=None)
    for folder in os.listdir(DROPINS):
        shutil.rmtree(os.path.join(DROPINS, folder))
    shutil.rmtree(os.path.dirname(CONFIG), ignore_errors=True)
    shutil.rmtree(STATE, ignore_errors=True)
    systemctl("daemon-reload")
    if os.path.exists(LOG):
        os.truncate(LOG, 0)


@pytest.fixture
def service():
    """Its socket is there; it has not started yet."""
    s = Service()
    s.configure()
    systemctl("start", "sandboxd.socket")
    try:
        yield s
        s.stop()
        wait_for(lambda: not s.leftovers(), 10)
        assert not os.path.exists(SOCKET)
    finally:
        print(s.log())
        reset(s)

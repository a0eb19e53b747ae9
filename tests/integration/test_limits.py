# SPDX-License-Identifier: MIT
"""Limits: which one a turn ran into is told; those of a living session can be set; freezing and standby."""
import os
import subprocess

import pytest

from daemonlib import NOBODY, Link, as_user, public_directory, removed, tree_name, wait_for
from test_lifecycle import need_cgroups


def hits(daemon, sid):
    return [e["detail"] for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "limit_hit"]


# Named

@pytest.mark.parametrize("place, words", [
    ("/workspace", "Disk limit 32 MB of /workspace reached: writing fails. Delete files there"),
    ("/tmp", "Disk limit of /tmp reached"), ("/dev/shm", "Disk limit of /dev/shm reached")])
def test_a_full_disk_is_named(daemon, name, place, words):
    reply = daemon.run(f"head -c 100M /dev/zero > {place}/big", name, memory_mb=64)
    assert reply["exit_code"] == 1 and words in reply["notice"] and hits(daemon, reply["id"]) == ["disk"]
    assert daemon.run("sleep 0.01", name)["notice"], "a turn that is long enough is told as well"
    assert daemon.run(f"rm {place}/big; false", name)["notice"] is None


def test_a_disk_with_room_is_not(daemon, name):
    reply = daemon.run("head -c 20M /dev/zero > big; sleep 0.01; false", name, memory_mb=64)
    assert reply["notice"] is None and hits(daemon, reply["id"]) == []

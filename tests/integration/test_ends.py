# SPDX-License-Identifier: MIT
"""Ends that nobody asked for: of an agent that is killed for memory. What is told of them, to whom."""
import os

import pytest

from daemonlib import wait_for
from test_bounds import killed, trail
from test_lifecycle import need_cgroups


# Several that share it: of one that has nearly all of it the kernel would think worse than of the agent.
FILL = "for i in {1..8}; do head -c 20M /dev/zero | tail & done; wait; sleep 60"


def processes(daemon, session):
    """{pid: name} of what is in its group."""
    with open(os.path.join(daemon.show(session)["cgroup"], "cgroup.procs"), encoding="ascii") as f:
        inside = [int(line) for line in f]
    found = {}
    for pid in inside:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            found[pid] = f.read().strip()
    return found


def offer_agent(daemon, session):
    """Has the kernel take the agent first when memory is short: by itself it takes all others before."""
    for pid, name in processes(daemon, session).items():
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as f:
            f.write("1000" if name == "sandbox-agent" else "0")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to choose whom the kernel kills")
def test_an_agent_that_is_killed_for_memory(start):
    d = start()
    need_cgroups(d, "memory limit")
    for saved in (False, True):
        sid = d.run("x=kept", "a", memory_mb=64)["id"]
        if saved:
            d.call("Save", session="a", project=d.project)
        offer_agent(d, "a")
        error = d.refused("Run", code=FILL, session="a", environment="shell", project=d.project)
        assert error.name == "SessionEnded" and error.parameters["reason"] == "limit" and "(limit)" in error.message
        wait_for(lambda: "torn_down" in d.events(sid))
        assert killed(d, sid) == ["limit"]

        def whole():
            return (lines := trail(d, sid)) and lines[-1]["event"] == "torn_down" and lines
        story = [(line["event"], line.get("detail")) for line in wait_for(whole)]
        assert story[-5:] == [("limit_hit", "memory"), ("exec_turn", "unfinished"), ("killed", "limit"),
                              ("usage_metered", None), ("torn_down", None)]
        for method in ("Show", "Wait", "History", "Kill"):
            error = d.refused(method, session=sid)
            assert error.name == "SessionEnded" and error.parameters["reason"] == "limit" and "limit" in error.message
        reply = d.run("echo [$x]", "a")
        assert reply["id"] != sid and "The earlier session 'a' has ended: limit." in reply["notice"]
        assert reply["stdout"] == ("[kept]\n" if saved else "[]\n")
        assert reply["session_state"] == ("restored" if saved else "created")
        assert ("starts empty" in reply["notice"]) != saved
        d.call("Kill", session="a", project=d.project)
    assert d.ctl("audit", "verify").returncode == 0

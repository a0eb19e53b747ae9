# SPDX-License-Identifier: MIT
"""Ends that are neither by hand nor by time: for want of memory, with the client, frozen. What is told of them, and what is kept."""
import contextlib
import json
import os
import shutil
import subprocess

import pytest

from daemonlib import wait_for
from test_bounds import killed, trail
from test_lifecycle import need_cgroups
from test_snapshots import directory, restart, snapshots

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")


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


# With the client

class Caller:
    """A process that runs turns, each on a connection of its own."""
    CODE = "import sys; sys.path.insert(0, sys.argv[1])\nfrom daemonlib import *\nc = Client(sys.argv[2])\n" \
           "for line in sys.stdin: print(json.dumps(c.run(*json.loads(line))), flush=True)"

    def __init__(self, daemon):
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", self.CODE, os.path.dirname(__file__), daemon.sock], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def begin(self, code, session="a"):
        self.process.stdin.write(json.dumps([code, session]) + "\n")
        self.process.stdin.flush()

    def run(self, code, session="a"):
        self.begin(code, session)
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                file.close()


def gone(d, sid):
    wait_for(lambda: "torn_down" in d.events(sid))
    assert killed(d, sid) == ["client-gone"]


def test_what_was_not_saved_ends_with_its_client(daemons):
    d = daemons({"session": {"on_disconnect": "end"}})
    with Caller(d) as caller:
        sid = caller.run("set x 1")["id"]
    gone(d, sid)
    assert "saved" not in d.events(sid) and not directory(d)
    error = d.refused("Show", session=sid, project=d.project)
    assert error.name == "SessionEnded" and error.parameters["reason"] == "client-gone"
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("none\n", "created", 1)
    assert "The earlier session 'a' has ended: client-gone. This is a new one and starts empty." in reply["notice"]


def test_what_was_saved_outlives_its_client(daemons):
    """The last snapshot counts: nothing is saved when the client has gone."""
    d = daemons({"session": {"on_disconnect": "end"}})
    with Caller(d) as caller:
        caller.run("set x 1")
        sid = caller.run("set x 2")["id"]
        saved = d.call("Save", session="a", project=d.project)["snapshot"]
        caller.run("set x 3")
    gone(d, sid)
    assert [s["id"] for s in snapshots(d)] == [saved]
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("2\n", "restored", 1)
    assert "has ended: client-gone." in reply["notice"] and "starts empty" not in reply["notice"]
    assert "restored from the state of" in reply["notice"] and "(turn 2)" in reply["notice"]


def test_a_turn_ends_with_its_client(daemons):
    d = daemons({"session": {"on_disconnect": "end"}})
    with Caller(d) as caller:
        sid = caller.run("set x 1")["id"]
        caller.begin("sleep 60")
        d.wait_busy("a")
    gone(d, sid)


def test_a_session_is_of_who_used_it_last(daemons):
    d = daemons({"session": {"on_disconnect": "end"}})
    with Caller(d) as last:
        with Caller(d) as first:
            sid = first.run("set x 1")["id"]
            other = first.run("set x 1", "b")["id"]
            assert last.run("get x")["id"] == sid
        gone(d, other)
        assert killed(d, sid) == [] and last.run("get x")["id"] == sid
    gone(d, sid)


# Frozen by hand when sandboxd ends

def test_frozen_by_hand_it_ends_with_what_was_saved_before(daemons):
    d = daemons()
    need_cgroups(d, "freezer")
    for session in "ab":
        sid = d.run("set x 1", session)["id"]
        d.run("set x 2", session)
        if session == "a":
            saved = d.call("Save", session="a", project=d.project)["snapshot"]
            d.run("set x 3", session)
        d.call("Freeze", session=session, project=d.project)
    restart(d)
    assert [s["id"] for s in snapshots(d)] == [saved]
    assert [(line["event"], line.get("detail")) for line in trail(d, sid)][-4:] == [
        ("frozen", "by hand"), ("killed", "shutdown"), ("usage_metered", None), ("torn_down", None)]
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("2\n", "restored", 1)
    assert "has ended" in reply["notice"] and "restored from the state of" in reply["notice"] and "(turn 2)" in reply["notice"]
    reply = d.run("get x", "b")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("none\n", "created", 1)
    assert "has ended" in reply["notice"] and "starts empty" in reply["notice"]


def test_frozen_by_hand_in_standby_it_has_all(daemons):
    d = daemons({"session": {"standby_after_seconds": 0.2}})
    need_cgroups(d, "freezer")
    d.run("set x 1", "a")
    wait_for(lambda: d.state("a") == "standby")
    d.call("Freeze", session="a", project=d.project)
    assert [s["reason"] for s in snapshots(d)] == ["standby"]
    restart(d)
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("1\n", "restored") and "(turn 1)" in reply["notice"]

# SPDX-License-Identifier: MIT
"""Checkpoints through the daemon: what a reply says, limits, standby, a daemon that crashes."""
import os
import re
import time

import pytest

from daemonlib import cgroups_named, tree_name, wait_for
from managerlib import Service
from test_lifecycle import need_cgroups

ALWAYS = {"session": {"checkpoints": "always"}}
EXIT = "import os; os._exit(3)"


def py(d, code, session="s", **more):
    return d.run(code, session, env="python", **more)


def processes(d, sid):
    for base in cgroups_named(tree_name(d.runtime)):
        for folder, _, _ in os.walk(base):
            if folder.endswith(sid):
                with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
                    return len(f.read().split())
    return 0


def test_a_reply_says_what_became_of_the_state(start):
    d = start(ALWAYS)
    py(d, "x = 1")
    py(d, "x = 2")
    reply = py(d, "x = 3\n" + EXIT)
    assert (reply["state"], reply["exit_code"], reply["turn"]) == ("rolled_back", 3, 3)
    assert "python ended with code 3." in reply["notice"] and "that after turn 2 again" in reply["notice"]
    assert "lost" not in reply["notice"] and "closed" not in reply["notice"]
    reply = py(d, "x")
    assert (reply["stdout"], reply["state"], reply["notice"]) == ("2\n", "kept", None)
    assert d.events(reply["id"]).count("exec_turn") == 4


def test_a_loop_that_nothing_stops(start):
    d = start(ALWAYS)
    for n in range(1, 5):
        py(d, f"x = {n}")
    reply = py(d, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 0\nwhile True: pass", timeout_ms=1000)
    assert reply["timed_out"] and reply["state"] == "rolled_back" and "after turn 4" in reply["notice"]
    assert py(d, "x")["stdout"] == "4\n"


def test_short_turns_in_mode_auto(start):
    d = start()
    for _ in range(10):  # on a busy machine a turn may take long, and pay
        py(d, "x = 1")
        reply = py(d, EXIT)
        if reply["state"] == "lost":
            break
        d.call("Kill", session="s")
    assert reply["state"] == "lost" and "too short" in reply["notice"] and '"always"' in reply["notice"]
    reply = py(d, "1")
    assert reply["state"] == "kept" and "A new python" in reply["notice"]


def test_bash_that_is_replaced(start):
    d = start()
    d.run("x=1; mkdir d; cd d; sleep 50 & exec 5>f", "a")
    reply = d.run("x=2; rm -r ../d; exec echo out", "a")
    assert (reply["stdout"], reply["exit_code"], reply["state"]) == ("out\n", 0, "rolled_back")
    for sentence in ("bash ended with code 0.", "after turn 1 again", "Descriptors that it had opened are closed.",
                     "can no longer be waited for.", "it is in /workspace now"):
        assert sentence in reply["notice"], reply
    reply = d.run("echo $x; pwd", "a")
    assert (reply["stdout"], reply["state"], reply["notice"]) == ("1\n/workspace\n", "kept", None)


def test_a_long_turn_in_mode_auto(start):
    d = start()
    py(d, "import time; time.sleep(0.3); x = 1")
    py(d, "x = 2")
    reply = py(d, EXIT)
    turn = re.search(r"after turn (\d) again", reply["notice"])[1]
    assert reply["state"] == "rolled_back" and turn in ("1", "2"), "the second one pays only on a busy machine"
    assert py(d, "x")["stdout"] == f"{turn}\n"


def test_mode_never(start):
    d = start({"session": {"checkpoints": "never"}})
    py(d, "import time; time.sleep(0.3); x = 1")
    reply = py(d, EXIT)
    assert reply["state"] == "lost" and "checkpoint" not in reply["notice"]


def test_a_memory_limit(start):
    d = start(ALWAYS)
    need_cgroups(d, "memory limit")
    py(d, "x = 41", memory_mb=128)
    py(d, "x += 1")
    reply = py(d, "b = b'x' * (1 << 30)")
    if reply["state"] == "kept":        # the kernel killed nothing: python was refused the memory
        pytest.skip("memory is refused here before it is used up")
    assert reply["state"] == "rolled_back" and "Memory limit 128 MB reached" in reply["notice"]
    assert py(d, "x")["stdout"] == "42\n"


def test_copies_are_no_background_jobs(start):
    d = start({"session": {"checkpoints": "always", "background_jobs": "keep-awake", "standby_after_seconds": 0.3}})
    need_cgroups(d, "freezer")
    for n in range(3):
        py(d, f"x = {n}")
    wait_for(lambda: d.state("s") == "standby")
    assert py(d, "x")["stdout"] == "2\n"
    py(d, "import subprocess; p = subprocess.Popen(['sleep', '60'])")
    time.sleep(1)
    assert d.state("s") == "running"


def test_copies_end_with_the_session(start):
    d = start(ALWAYS)
    need_cgroups(d, "process limit")
    for n in range(3):
        sid = py(d, f"x = {n}")["id"]
    wait_for(lambda: processes(d, sid) >= 6)
    d.call("Kill", session="s")
    wait_for(lambda: processes(d, sid) == 0)


# Back on request

@pytest.mark.parametrize("steps", [1, 2, 3])
def test_back_some_steps(start, steps):
    d = start(ALWAYS)
    for n in range(1, 6):
        py(d, f"x = {n}")
    wait_for(lambda: d.show("s")["checkpoints"] == [2, 3, 4, 5])
    reply = d.call("Rollback", session="s", steps=steps)
    assert reply["turn"] == 5 - steps and f"after turn {5 - steps}." in reply["notice"]
    reply = py(d, "x")
    assert (reply["stdout"], reply["notice"], reply["turn"]) == (f"{5 - steps}\n", None, 6)
    error = d.refused("Rollback", session="s", steps=5)
    assert error.name.endswith("NoCheckpoint")


def test_back_is_told_and_saved(start):
    """It is no turn, but changes what there is to save; who asked is known."""
    d = start(ALWAYS)
    sid = py(d, "x = 1")["id"]
    py(d, "x = 2")
    wait_for(lambda: d.show("s")["checkpoints"] == [1, 2])
    d.call("Save", session="s", project="/test")
    assert d.call("Save", session="s", project="/test")["unchanged"]
    d.call("Rollback", session="s")
    event = next(e for e in d.call("Events")["events"] if e["session"] == sid and e["event"] == "rolled_back")
    assert event["by"] == os.getuid() and "turn=1" in event["detail"]
    assert not d.call("Save", session="s", project="/test")["unchanged"]
    d.call("Restore", session="s", name="copy", project="/test")
    assert d.run("x", "copy", "python")["stdout"] == "1\n"


def test_back_where_nothing_is(start):
    d = start()
    py(d, "x = 1")
    error = d.refused("Rollback", session="s")
    assert error.name.endswith("NoCheckpoint") and '"always"' in error.parameters["message"]
    assert d.refused("Rollback", session="none").name.endswith("NoSuchSession")
    for steps in (0, -1, 1001, "1"):
        assert d.refused("Rollback", session="s", steps=steps).name.endswith("InvalidParameter")
    assert py(d, "x")["stdout"] == "1\n"


def test_back_waits_for_the_turn(start):
    d = start(ALWAYS)
    py(d, "import time; x = 1")
    py(d, "x = 2")
    with d.begin("time.sleep(2); x = 3", "s", "python") as link:
        d.wait_busy("s")
        assert d.call("Rollback", session="s")["turn"] == 2
        assert link.answer()["exit_code"] == 0
    assert py(d, "x")["stdout"] == "2\n"


def test_back_from_standby(start):
    d = start({"session": {"checkpoints": "always", "standby_after_seconds": 0.3}})
    need_cgroups(d, "freezer")
    py(d, "x = 1")
    py(d, "x = 2")
    wait_for(lambda: d.state("s") == "standby")
    assert d.call("Rollback", session="s")["turn"] == 1
    assert py(d, "x")["stdout"] == "1\n"


def test_sandboxctl(start):
    d = start(ALWAYS)
    py(d, "x = 1")
    py(d, "x = 2")
    wait_for(lambda: d.show("s")["checkpoints"] == [1, 2])
    assert "python after turn 1, after turn 2" in " ".join(d.ctl("show", "s").stdout.split())
    result = d.ctl("rollback", "s")
    assert result.returncode == 0 and "after turn 1." in result.stdout
    result = d.ctl("rollback", "s", "9")
    assert result.returncode == 1 and "no checkpoint" in result.stderr
    assert d.ctl("rollback", "s", "0").returncode == 2
    assert py(d, "x")["stdout"] == "1\n"


def test_without_a_session_there_is_none(start):
    d = start(ALWAYS)
    reply = d.run("import time; time.sleep(0.1); print(1)", env="python")
    assert (reply["stdout"], reply["state"]) == ("1\n", "none")


@pytest.mark.skipif(os.getuid() != 0, reason="needs control groups")
def test_a_crash_of_the_daemon(programs):
    with Service({"session": {"checkpoints": "always", "background_jobs": "keep-awake", "standby_after_seconds": 0.5}},
                 programs=programs) as d:
        need_cgroups(d, "freezer")
        py(d, "x = 1")
        py(d, "x = 2")
        d.restart()
        reply = py(d, EXIT)
        assert reply["state"] == "rolled_back" and "after turn 2 again" in reply["notice"]
        assert py(d, "x")["stdout"] == "2\n"
        d.restart()
        wait_for(lambda: d.state("s") == "standby")     # it has been told how many copies there are
        assert py(d, "x")["stdout"] == "2\n"

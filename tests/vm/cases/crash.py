# SPDX-License-Identifier: MIT
"""What a crash or a reload of sandboxd costs: nothing. Controllers are on, which is what old systemd stumbles over."""
import os
import signal

from guestlib import SERVICE, Refused, keyed, main_pid, other, read, sh, show, tester, wait_for

SLOW = "import time\nend = time.monotonic() + 15\nwhile time.monotonic() < end: time.sleep(0.1)\nx += 1\nprint('done')"


def busy(name):
    return tester.session(name)["busy"]


def restarted(old):
    """The main process that came after old, once it serves."""
    def serves():
        pid = main_pid()
        return pid if pid not in (0, old) and show(SERVICE, "ActiveState") == "active" else None
    return wait_for(serves, "systemd starts it again")


def case_crash():
    """kill -9 of sandboxd while a turn runs: systemd starts it again, the session keeps x and its limits, the turn
    ends, and its caller gets a truthful answer."""
    tester.run("x = 41", "crash")
    other.run("y = 1", "idle")
    other.ctl("freeze", "idle")
    group = tester.cgroup("crash")
    limit = read(f"{group}/memory.max")
    turn = tester.begin_run(SLOW, "crash", timeout=120)
    wait_for(lambda: busy("crash"), "the turn runs")

    old = main_pid()
    os.kill(old, signal.SIGKILL)
    restarted(old)
    assert show(SERVICE, "NRestarts") == "1"
    try:
        reply = tester.finish(turn)
        assert reply["stdout"] == "done\n" and reply["state"] == "kept", reply
    except Refused as e:
        assert "connection" in e.message.lower() or "sandboxd" in e.message.lower(), e

    wait_for(lambda: not busy("crash"), "the turn ends by itself")
    reply = tester.run("print(x)", "crash")
    assert reply["stdout"] == "42\n" and reply["session_state"] == "resumed", reply
    assert tester.cgroup("crash") == group and read(f"{group}/memory.max") == limit

    assert other.session("idle")["state"] == "frozen" and keyed(f"{other.cgroup('idle')}/cgroup.events")["frozen"] == 1
    other.ctl("thaw", "idle")
    assert other.run("print(y)", "idle")["stdout"] == "1\n"


def case_crash_again():
    """Once more, at once: the sessions that were taken over are taken over again, and can be ended."""
    old = main_pid()
    os.kill(old, signal.SIGKILL)
    restarted(old)
    assert tester.run("print(x)", "crash")["stdout"] == "42\n"
    group = tester.cgroup("crash")
    tester.ctl("kill", "crash")
    other.ctl("kill", "idle")
    assert not os.path.exists(group)


def case_reload():
    """systemctl reload executes the installed program in place: same process, same sessions, same state."""
    tester.run("x = 41", "reload")
    old = main_pid()
    sh("systemctl", "reload", SERVICE)
    assert main_pid() == old
    reply = tester.run("print(x + 1)", "reload")
    assert reply["stdout"] == "42\n" and reply["session_state"] == "resumed", reply
    tester.ctl("kill", "reload")

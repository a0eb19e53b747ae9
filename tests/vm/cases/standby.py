# SPDX-License-Identifier: MIT
"""Idle sessions cost nothing and are back at once."""
import time

from guestlib import Link, configure, keyed, tester, wait_for

STANDBY_S = 3
SAVE_S = 15             # what it may take to save a session here, where a process takes a tenth of a second to start
RESUME_MAX_S = 0.1
BUSY = """
import threading, time
x = 41
def poll():
    while True:
        time.sleep(0.01)
threading.Thread(target=poll, daemon=True).start()
"""


def frozen(group):
    return keyed(f"{group}/cgroup.events")["frozen"] == 1


def case_standby():
    """An idle session is saved and frozen at the configured time, not before, uses no CPU for ten seconds, and keeps its
    state."""
    configure({"session": {"standby_after_seconds": STANDBY_S}})
    ident = tester.run(BUSY, "idle")["id"]
    group = tester.cgroup("idle")
    wait_for(lambda: frozen(group), "the idle session is frozen")
    with Link(tester) as link:
        at = {e["event"]: e["time_usec"] / 1e6 for e in link.call("Events")["events"] if e["session"] == ident}
    assert STANDBY_S - 0.1 <= at["saved"] - at["exec_turn"] <= STANDBY_S + SAVE_S, at
    assert 0 <= at["frozen"] - at["saved"] <= 2, at
    assert tester.session("idle")["state"] == "standby"

    used = keyed(f"{group}/cpu.stat")["usage_usec"]
    time.sleep(10)                          # the time that is measured over
    assert keyed(f"{group}/cpu.stat")["usage_usec"] == used
    assert frozen(group)
    reply = tester.run("x += 1; print(x)", "idle")
    assert reply["stdout"] == "42\n" and reply["state"] == "kept", reply


def case_resume():
    """The reply to a turn in a session on standby is there within 100 ms, thaw, turn and all."""
    group = tester.cgroup("idle")
    project = tester.session("idle")["project"]
    took = []
    with Link(tester) as link:
        for _ in range(3):                  # the best of three: other work of this machine is not what is measured
            wait_for(lambda: frozen(group), "it is frozen again")
            begun = time.monotonic()
            reply = link.call("Run", code="print(x)", session="idle", environment="python", project=project)
            took.append(time.monotonic() - begun)
            assert reply["stdout"] == "42\n", reply
    tester.ctl("kill", "idle")
    configure()
    assert min(took) < RESUME_MAX_S, took

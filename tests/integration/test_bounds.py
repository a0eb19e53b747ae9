# SPDX-License-Identifier: MIT
"""The three bounds of a session: what they end, what is said before and after, and in which order it is told (rows L3, L4, L7)."""
import json
import os

import pytest

from daemonlib import wait_for


def killed(daemon, sid):
    return [e["detail"] for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "killed"]


def trail(daemon, sid):
    """The audit trail of one session, from its files."""
    folder = os.path.join(daemon.root, "state", "audit")
    lines = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jsonl"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                lines += [json.loads(line) for line in f]
    return [line for line in lines if line.get("session") == sid]


def reap(daemon, reason):
    """Has a session 'a' reach the bound by which it ends; its id."""
    sid = daemon.run("true", "a")["id"]
    if reason == "turn_budget":
        assert daemon.refused("Run", code="sleep 30", session="a", project="/test", environment="shell").parameters["reason"] == reason
    wait_for(lambda: "torn_down" in daemon.events(sid))
    return sid


BOUNDS = [("idle_timeout_seconds", "idle"), ("max_lifetime_seconds", "lifetime"), ("turn_budget_seconds", "turn_budget")]


@pytest.mark.parametrize("key, reason", BOUNDS)
def test_a_reaped_session_leaves_a_trail_and_nothing_else(start, key, reason):
    d = start({"session": {key: 0.5}})
    group = d.run("true", "b") and d.show("b")["cgroup"]
    sid = reap(d, reason)
    assert killed(d, sid) == [reason]

    def whole():
        return (lines := trail(d, sid)) and lines[-1]["event"] == "torn_down" and lines
    events = [line["event"] for line in wait_for(whole)]
    turns = 2 if reason == "turn_budget" else 1
    assert events == ["session_created", "sandbox_started", *["exec_turn"] * turns, "saved", "killed", "usage_metered",
                      "torn_down"]
    assert d.ctl("audit", "verify").returncode == 0
    for method in ("Show", "Wait", "Kill", "History"):
        error = d.refused(method, session=sid)
        assert error.name == "SessionEnded" and error.parameters["reason"] == reason and reason in error.message
    if group:
        wait_for(lambda: not os.path.exists(os.path.join(os.path.dirname(group), sid)))
    assert reason in d.run("true", "a")["notice"]


def test_the_turn_that_uses_up_the_budget_is_withheld(start):
    d = start({"session": {"turn_budget_seconds": 0.6}})
    assert d.run("echo one", "a")["stdout"] == "one\n"
    error = d.refused("Run", code="echo secret; sleep 30", session="a", project="/test", environment="shell")
    assert error.name == "SessionEnded" and error.parameters["reason"] == "turn_budget"
    assert "turn_budget_seconds" in error.message and "secret" not in json.dumps(error.parameters)


def test_turns_that_wait_behind_it_are_told_as_well(start):
    d = start({"session": {"turn_budget_seconds": 2}})
    d.run("true", "a")
    with d.begin("sleep 30", "a") as first:
        d.wait_busy("a")
        with d.begin("true", "a") as second:
            d.wait_queued("a", 1)
            for link in (first, second):
                message = link.receive()
                assert message["error"].endswith("SessionEnded") and message["parameters"]["reason"] == "turn_budget"


def test_a_turn_costs_a_millisecond_at_least(start):
    d = start({"session": {"turn_budget_seconds": 60}})
    for _ in range(30):
        d.run(":", "a")
    assert d.show("a")["turn_usec"] >= 30000


def test_an_interrupted_turn_counts(start):
    d = start({"session": {"turn_budget_seconds": 60}})
    d.run("sleep 0.3", "a", timeout_ms=200)
    assert 200000 <= d.show("a")["turn_usec"] and d.show("a")["turn_left_usec"] <= 60000000 - 200000


def test_what_is_left_is_told(start):
    d = start({"session": {"turn_budget_seconds": 3600, "max_lifetime_seconds": 0, "idle_timeout_seconds": 100}})
    d.run("true", "a")
    shown = d.show("a")
    assert shown["lifetime_left_usec"] is None
    assert 0 < shown["idle_left_usec"] <= 100 * 10**6 and 0 < shown["turn_left_usec"] < 3600 * 10**6
    with d.begin("sleep 5", "a"):
        d.wait_busy("a")
        assert d.show("a")["idle_left_usec"] is None, "a running turn is never idle"
    assert "of turn time left" in d.ctl("show", "a").stdout


def test_a_bound_that_is_near_is_said_in_the_reply(start):
    d = start({"session": {"turn_budget_seconds": 3}})
    assert d.run("true", "a")["notice"] is None
    notice = d.run("sleep 2.6", "a")["notice"] or wait_for(lambda: d.run("sleep 0.02", "a")["notice"])
    assert "of turn time is left" in notice and "turn_budget" in notice
    e = start({"session": {"max_lifetime_seconds": 3}})
    e.run("true", "a")
    assert "is left until the session ends (lifetime)" in wait_for(lambda: e.run("sleep 0.1", "a")["notice"])


def test_bounds_are_armed_when_the_session_is_made(start):
    d = start({"session": {"turn_budget_seconds": 3600}})
    d.run("true", "a")
    with open(os.path.join(d.root, "config"), "w", encoding="utf-8") as f:
        json.dump({"session": {"turn_budget_seconds": 7200}}, f)
    d.call("Reload")
    wait_for(lambda: d.run("true", "b") and d.show("b")["turn_left_usec"] > 3600 * 10**6)
    assert d.show("a")["turn_left_usec"] <= 3600 * 10**6


def test_ends_are_idempotent(start):
    d = start({"session": {"max_lifetime_seconds": 1}})
    sid = d.run("true", "a")["id"]
    wait_for(lambda: "killed" in d.events(sid))
    for _ in range(3):
        assert d.refused("Kill", session=sid).name == "SessionEnded"
    wait_for(lambda: "torn_down" in d.events(sid))
    assert [d.events(sid).count(e) for e in ("killed", "usage_metered", "torn_down")] == [1, 1, 1]

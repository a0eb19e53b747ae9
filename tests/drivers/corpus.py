# SPDX-License-Identifier: MIT
"""Tries cases of the corpus (tests/cases) on a driver: the steps of one interpreter that need no daemon."""
import json
import os
import sys
import time

from harness import ROOT, Driver

CASES = os.path.join(ROOT, "tests", "cases")
sys.path.insert(0, CASES)
from caselib import Reply, as_list, judge  # noqa: E402

# What only the daemon and the agent know.
ABOVE = {"session_state", "turn", "images", "truncated", "notice", "result", "session", "message", "refused"}

# Code that would end the whole machine where there is no jail: never runs here, whoever asks.
NEEDS_A_JAIL = {"sh-kill-all"}


def cases(kind, topic, leave_out=()):
    """The cases of a topic file that have turns of this interpreter, as (id, those turns and the pauses)."""
    with open(os.path.join(CASES, topic + ".json"), encoding="utf-8") as f:
        found = json.load(f)
    for case in found:
        steps = [step for step in case.get("steps", []) if step.get("env") == kind or "sleep" in step]
        if case["id"] not in NEEDS_A_JAIL.union(leave_out) and any("code" in s for s in steps):
            yield case["id"], steps


def expectation(step):
    """What can be asked of a driver; the state of a run without a session is not its to tell."""
    def trim(expect):
        kept = {k: v for k, v in expect.items() if k not in ABOVE and (k != "state" or "session" in step)}
        return {k: [trim(way) for way in v] if k == "any" else v for k, v in kept.items()}
    return trim(step.get("expect", {}))


def run(kind, steps):
    """Runs the steps, a driver for each session; the faults of the first step that is not as expected."""
    drivers, states = {}, {}
    try:
        for number, step in enumerate(steps, 1):
            if "sleep" in step:
                time.sleep(step["sleep"])
                continue
            label = step.get("session", number)
            if "when" in step and states.get(label) not in as_list(step["when"]):
                continue
            if label not in drivers:
                drivers[label] = Driver(kind)
            step = json.loads(json.dumps(step).replace("/workspace", drivers[label].workspace))
            answer = drivers[label].turn(step["code"], step.get("timeout", 30))
            states[label] = answer["state"]
            reply = Reply(answer, session=None, turn=number, duration_ms=answer["seconds"] * 1000,
                          session_state="", images=0)
            reply.wall = answer["seconds"]
            if faults := judge(expectation(step), reply):
                return [f"step {number}: {fault}; stderr {answer['stderr'][-600:]}" for fault in faults]
        return []
    finally:
        for driver in drivers.values():
            driver.close()

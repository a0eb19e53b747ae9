# SPDX-License-Identifier: MIT
"""save, restore, variables of sandbox-agent with the real drivers."""
import json
import os
import shutil
import time

import pytest

from statelib import StateAgent, make, parse

PROGRAMS = {"python": "python3", "bash": "bash", "node": "node"}
PATH = ":/usr/bin:/bin"

MAKE = {
    "python": "import math, helper\nx = 42\ndef f(): return x + 1\nclass C:\n    pass\nc = C(); c.a = [1]; d = c\n"
              "text = 'ä\\n' * 3",
    "bash": "x=42; f() { echo $((x + 1)); }; declare -A m=([a b]=$'c\\nd'); cd sub; shopt -s extglob",
    "node": "let x = 42; const text = 'ä\\n'; var m = new Map([['a', {b: [1]}]]); void 0",
}
CHECK = {
    "python": ("c.a.append(2); print(x, f(), d.a, math.floor(2.5), helper.value, text.count('ä'))", b"42 43 [1, 2] 2 7 3\n"),
    "bash": ("echo $x $(f) \"${m[a b]}\" ${PWD##*/}; shopt -q extglob && echo on", b"42 43 c\nd sub\non\n"),
    "node": ("console.log(x, text.length, m.get('a').b[0])", b"42 2 1\n"),
}


@pytest.fixture(params=tuple(PROGRAMS))
def kind(request):
    if not shutil.which(PROGRAMS[request.param], path="/usr/bin:/bin"):
        pytest.skip(f"no {request.param} here")
    return request.param


@pytest.fixture
def agent():
    with StateAgent(fake=(), path=PATH) as a:
        os.mkdir(a.path("sub"))
        with open(a.path("helper.py"), "w", encoding="ascii") as f:
            f.write("value = 7\n")
        yield a


def in_order(parts):
    """A stream as it comes from the store."""
    return make([(n, parts[n].data, parts[n].report) for n in ("workspace", "python", "bash", "node") if n in parts])


def test_round_trip(agent, kind):
    assert agent.turn(MAKE[kind], kind).exit_code == 0
    began = time.monotonic()
    stream, answer = agent.save()
    assert answer["error"] is None and time.monotonic() - began < 5
    parts = parse(stream)
    assert set(parts) == {"workspace", kind}
    assert parts[kind].report["ok"], parts[kind].report
    assert parts[kind].report["version"] and parts[kind].report["skipped"] == []
    with StateAgent(fake=(), path=PATH) as other:
        answer = other.restore(in_order(parts))
        assert [(p["name"], p["ok"], p["skipped"]) for p in answer["report"]["parts"]] == [
            ("workspace", True, []), (kind, True, [])]
        code, expected = CHECK[kind]
        t = other.turn(code, kind)
        assert (t.out, t.err, t.exit_code, t.restarted) == (expected, b"", 0, False)
        # What was restored can be saved again.
        assert parse(other.save()[0])[kind].report["ok"]
    t = agent.turn(code, kind)
    assert (t.out, t.restarted) == (expected, False)


def test_all_at_once():
    with StateAgent(fake=(), path=PATH) as a:
        kinds = [k for k in PROGRAMS if shutil.which(PROGRAMS[k], path="/usr/bin:/bin")]
        os.mkdir(a.path("sub"))
        with open(a.path("helper.py"), "w", encoding="ascii") as f:
            f.write("value = 7\n")
        for k in kinds:
            a.turn(MAKE[k], k)
        for _ in range(5):
            stream, answer = a.save()
            assert answer["error"] is None
        with StateAgent(fake=(), path=PATH) as other:
            assert other.restore(in_order(parse(stream)))["error"] is None
            for k in kinds:
                assert other.turn(CHECK[k][0], k).out == CHECK[k][1]


def test_what_cannot_be_saved_is_named(agent):
    agent.turn("import socket\nx = 42\ns = socket.socket()\nf = open('/dev/null')")
    part = parse(agent.save()[0])["python"]
    assert part.report["ok"] and {"s", "f"} <= {s["name"] for s in part.report["skipped"]}
    with StateAgent(fake=(), path=PATH) as other:
        assert other.restore(make([("python", part.data, part.report)]))["report"]["parts"][0]["ok"]
        assert other.turn("print(x, 's' in globals())").out == b"42 False\n"


BIG = {"python": "x = 42; big = bytes(20_000_000)", "bash": "x=42; printf -v big %3000000s ''",
       "node": "var x = 42; var big = 'y'.repeat(20000000); void 0"}
SHOW = {"python": "print(x)", "bash": "echo $x", "node": "console.log(x)"}


def test_channel_that_breaks(agent, kind):
    """Nobody reads to the end: the driver meets EPIPE, and goes on."""
    agent.turn(BIG[kind], kind)
    for _ in range(3):
        ours, theirs = os.pipe()
        agent.operate("save", theirs)
        os.read(ours, 10000)
        os.close(ours)
        assert agent.operated()["error"] == "failed"
        t = agent.turn(SHOW[kind], kind)
        assert (t.out, t.err, t.restarted) == (b"42\n", b"", False)
    assert parse(agent.save()[0])[kind].report["ok"]


def test_turn_right_after_a_save_was_asked_for(agent, kind):
    agent.turn(BIG[kind], kind)
    reader, got = agent.begin_reading("save")
    began = time.monotonic()
    t = agent.turn(SHOW[kind], kind)
    assert (t.out, t.restarted) == (b"42\n", False) and time.monotonic() - began < 8
    stream, answer = agent.end_reading(reader, got)
    assert answer["error"] is None and parse(stream)[kind].report["ok"]


@pytest.mark.parametrize("state", [b"", b"\0" * 1000, b"garbage\n" * 1000, b"\x80\x04\x95"])
def test_garbage_as_state(agent, kind, state):
    answer = agent.restore(make([(kind, state, {"ok": True})]))
    assert answer["error"] is None and len(answer["report"]["parts"]) == 1
    t = agent.turn({"python": "x = 42; print(x)", "bash": "x=42; echo $x", "node": "x = 42; console.log(x)"}[kind], kind)
    assert (t.out, t.exit_code) == (b"42\n", 0)


def test_variables(agent, kind):
    agent.turn({"python": "x = 42", "bash": "x=42", "node": "var x = 42"}[kind], kind)
    data, answer = agent.ask("variables", interpreter=kind)
    assert answer["error"] is None
    found = {v["name"]: v for v in json.loads(data) if "name" in v}
    assert "42" in found["x"]["text"] and found["x"]["type"]
    data, answer = agent.ask("variable", interpreter=kind, name="x")
    assert answer["error"] is None and "42" in json.loads(data)["text"]
    data, answer = agent.ask("variable", interpreter=kind, name="nothing_of_that_name")
    assert answer["error"] is None and json.loads(data)["error"]
    assert agent.turn(SHOW[kind], kind).out == b"42\n"

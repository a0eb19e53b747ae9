# SPDX-License-Identifier: MIT
"""An interpreter has ended between two turns: what a save and a look at variables then find is its newest checkpoint."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

from daemonlib import parent_of, wait_for
from statelib import StateAgent, make, parse
from test_checkpoints import copies, parked

NO_CHECKPOINT = "its process has ended, and there is no checkpoint of it"


def start_agent(mode="always", **arguments):
    agent = StateAgent(fake=(), **arguments)
    agent.request = {"checkpoints": mode, "checkpoint_mb": 512}
    return agent


@pytest.fixture
def agent():
    with start_agent() as a:
        yield a


def run(agent, code, out=b""):
    t = agent.turn(code)
    assert (t.exit_code, t.state, t.restarted, t.out) == (0, "kept", False, out), (t.result, t.err)


def kill(agent, *turns):
    """Ends python, which has these checkpoints."""
    pid = int(agent.turn("import os; os.getpid()").out)
    parked(agent, *turns, agent.number)
    # It is the agent's when the process between them has ended, and of use to it only then.
    agent.wait_for(lambda: all(parent_of(c) == agent.process.pid for c in copies(agent)))
    end(agent, pid)
    return pid


def end(agent, pid):
    os.kill(pid, signal.SIGKILL)
    agent.wait_for(lambda: not os.path.exists(f"/proc/{pid}"))          # the agent has reaped it


def saved(agent, code):
    """What code says in a session that has python's part of a save."""
    stream, answer = agent.save()
    assert answer["error"] is None
    part = parse(stream)["python"]
    assert part.report["ok"] and part.report["skipped"] == [], part.report
    with StateAgent(fake=()) as other:
        assert other.restore(make([("python", part.data, part.report)]))["report"]["parts"][0]["ok"]
        return other.turn(code).out


def began_with(t, turn, out):
    assert (t.out, t.err, t.state, t.restarted, t.rolled_back_to) == (out, b"", "kept", True, turn), t.result


def test_a_save_has_the_state(agent):
    run(agent, "x = 41; d = {'a': [1]}")
    run(agent, "x += 1; e = d")
    kill(agent, 1, 2)
    assert saved(agent, "e['a'].append(x); print(x, d, len(globals().get('os').sep))") == b"42 {'a': [1, 42]} 1\n"
    # The next turn is told, once, what it is told without a save.
    began_with(agent.turn("print(x, e is d)"), 3, b"42 True\n")
    run(agent, "x", b"42\n")


def test_variables(agent):
    run(agent, "x = 42")
    kill(agent, 1)
    data, answer = agent.ask("variable", interpreter="python", name="x")
    assert answer["error"] is None and json.loads(data)["text"] == "42"
    data, answer = agent.ask("variables", interpreter="python")
    assert {"x", "os"} <= {v["name"] for v in json.loads(data)}
    assert saved(agent, "x") == b"42\n"
    began_with(agent.turn("x"), 2, b"42\n")


def test_as_often_as_it_ends(agent):
    """A checkpoint that went on is replaced at once."""
    run(agent, "x = 42")
    pid = kill(agent, 1)
    for _ in range(6):
        assert saved(agent, "x") == b"42\n"
        parked(agent, 1, 2)
        pid, was = living(agent), pid
        assert pid != was
        end(agent, pid)
    began_with(agent.turn("x"), 2, b"42\n")
    run(agent, "x", b"42\n")


def living(agent):
    """The one process of python that is no copy."""
    with open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children", encoding="ascii") as f:
        pid, = set(map(int, f.read().split())) - set(copies(agent))
    return pid


def test_what_is_gone_is_told_later(agent):
    run(agent, "import os, subprocess; r, w = os.pipe(); p = subprocess.Popen(['sleep', '60'])")
    kill(agent, 1)
    agent.save()
    t = agent.turn("print(os.read(r, 1)); os.kill(p.pid, 9)")
    began_with(t, 2, b"b''\n")
    assert t.result["pipes_gone"] and t.result["children_gone"] and "threads_gone" not in t.result
    assert "pipes_gone" not in agent.turn("1").result


def test_a_turn_waits_for_it(agent):
    run(agent, "x = 42; big = bytes(20_000_000)")
    kill(agent, 1)
    reader, got = agent.begin_reading("save")
    began_with(agent.turn("print(x); x = 1"), 2, b"42\n")
    stream, answer = agent.end_reading(reader, got)
    assert answer["error"] is None and parse(stream)["python"].report["ok"]
    run(agent, "x", b"1\n")


def test_a_turn_that_crashes_after_it(agent):
    run(agent, "x = 42")
    kill(agent, 1)
    assert saved(agent, "x") == b"42\n"
    t = agent.turn("x = 1; os._exit(3)")
    assert (t.state, t.rolled_back_to, t.restarted, t.exit_code) == ("rolled_back", 2, True, 3)
    run(agent, "x", b"42\n")


def test_back_after_it(agent):
    run(agent, "x = 1")
    run(agent, "x = 2")
    kill(agent, 1, 2)
    agent.save()
    agent.operate("rollback", interpreter="python", turns=2)
    assert agent.operated()["report"]["turn"] == 1
    run(agent, "x", b"1\n")


def test_a_save_that_is_given_up(agent):
    run(agent, "x = 42")
    kill(agent, 1)
    ours, theirs = os.pipe()
    agent.operate("save", theirs)
    os.close(ours)
    t = agent.turn("x")
    assert (t.out, t.restarted, t.rolled_back_to) == (b"42\n", True, 2), t.result
    assert agent.operated()["error"] == "failed"
    assert saved(agent, "x") == b"42\n"


def test_an_older_one(agent):
    """The newest has ended, too."""
    run(agent, "x = 1")
    run(agent, "x = 2")
    parked(agent, 1, 2)
    pid = living(agent)
    end(agent, max(copies(agent, 2)))
    parked(agent, 1)
    end(agent, pid)
    assert saved(agent, "x") == b"1\n"
    began_with(agent.turn("x"), 1, b"1\n")


def test_one_that_does_not_wake_up(agent):
    """It is given up as a driver that does not answer is, and stands in no turn's way."""
    run(agent, "x = 1")
    run(agent, "x = 2")
    parked(agent, 1, 2)
    pid = living(agent)
    os.kill(max(copies(agent, 2)), signal.SIGSTOP)
    end(agent, pid)
    stream, answer = agent.save()
    assert answer["error"] is None and parse(stream)["workspace"].report["ok"]
    assert parse(stream)["python"].report["why"] == "it did not answer in time"
    began_with(agent.turn("x"), 1, b"1\n")


def test_without_a_checkpoint_that_is_said():
    with start_agent("never") as agent:
        assert list(parse(agent.save()[0])) == ["workspace"]
        pid = int(agent.turn("import os; x = 42; os.getpid()").out)
        end(agent, pid)
        for _ in range(2):
            stream, answer = agent.save()
            parts = parse(stream)
            assert answer["error"] is None and parts["workspace"].report["ok"]
            assert (parts["python"].report["ok"], parts["python"].report["why"]) == (False, NO_CHECKPOINT)
        for question in ({"operation": "variables"}, {"operation": "variable", "name": "x"}):
            answer = agent.ask(**question, interpreter="python")[1]
            assert answer["error"] == "failed" and answer["error_text"].endswith(NO_CHECKPOINT)
        t = agent.turn("x")
        assert t.restarted and "rolled_back_to" not in t.result and b"NameError" in t.err
        assert parse(agent.save()[0])["python"].report["ok"]


# bash, whose checkpoints are texts

def end_bash(agent):
    """Ends it, when there is a checkpoint of its first turn, at least."""
    for code in ("x=42; f() { echo \"f $x\"; }; cd /usr", "echo $$"):
        t = agent.turn(code, "bash")
    end(agent, int(t.out))


def test_bash(agent):
    end_bash(agent)
    stream, answer = agent.save()
    part = parse(stream)["bash"]
    assert answer["error"] is None and part.report["ok"], part.report
    with StateAgent(fake=()) as other:
        assert other.restore(make([("bash", part.data, part.report)]))["report"]["parts"][0]["ok"]
        assert other.turn("f; pwd", "bash").out == b"f 42\n/usr\n"
    assert json.loads(agent.ask("variable", interpreter="bash", name="x")[0])["text"] == '"42"'
    t = agent.turn("f; pwd", "bash")
    assert (t.out, t.state, t.restarted) == (b"f 42\n/usr\n", "kept", True) and t.rolled_back_to in (1, 2)
    t = agent.turn("exec true", "bash")
    assert t.state == "rolled_back"
    assert agent.turn("f", "bash").out == b"f 42\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user of its own")
def test_a_limit_of_processes_costs_no_checkpoint():
    uid, limit = 54391, 8
    with start_agent(uid=uid, nproc=limit) as agent, contextlib.ExitStack() as others:
        end_bash(agent)
        for _ in range(limit - 2):      # the agent is one, and what moves the bytes of the save is another
            other = subprocess.Popen(["sleep", "60"], user=uid, group=uid, extra_groups=[])
            others.callback(lambda p=other: (p.kill(), p.wait()))
        stream, answer = agent.save()
        assert answer["error"] is None
        assert parse(stream)["bash"].report["why"] == "it cannot be asked: Resource temporarily unavailable"
        others.close()
        t = agent.turn("f", "bash")
        assert (t.out, t.restarted) == (b"f 42\n", True) and t.rolled_back_to in (1, 2)


# The whole way

@pytest.fixture
def dead(start):
    """A daemon with a session whose python was killed by a background job of its bash."""
    def begin(mode="always"):
        d = start({"session": {"checkpoints": mode}})
        d.run("import os; x = 41; n = open('/tmp/pid', 'w').write(str(os.getpid()))", "s", "python")
        d.run("x += 1", "s", "python")
        if mode == "always":
            wait_for(lambda: d.show("s")["checkpoints"] == [1, 2])
        d.run("(sleep 0.1; kill -9 $(</tmp/pid)) &", "s", "default", interpreter="bash")
        wait_for(lambda: d.run("kill -0 $(</tmp/pid)", "s", "default", interpreter="bash")["exit_code"] == 1)
        return d
    return begin


def began_in_the_daemon(reply):
    assert (reply["stdout"], reply["state"]) == ("42\n", "rolled_back")
    assert reply["notice"].startswith("python had ended since its last turn: this turn began with the state after turn 2.")


def test_by_hand(dead):
    d = dead()
    assert d.call("Save", session="s", project=d.project)["skipped"] == []
    d.call("Restore", session="s", name="copy", project=d.project)
    assert d.run("x", "copy", "python")["stdout"] == "42\n"
    assert d.call("Variable", session="s", project=d.project, name="x")["variable"]["text"] == "42"
    began_in_the_daemon(d.run("x", "s", "python"))
    assert d.run("x", "s", "python")["notice"] is None


def test_at_shutdown(dead):
    d = dead()
    assert d.end(90) == 0, d.log()
    d.start()
    reply = d.run("x", "s", "python")
    assert (reply["stdout"], reply["session_state"]) == ("42\n", "restored") and "not restored" not in reply["notice"]


def test_without_a_checkpoint(dead):
    d = dead("never")
    skipped = d.call("Save", session="s", project=d.project)["skipped"]
    assert skipped == [{"part": "python", "name": None, "why": NO_CHECKPOINT}]
    assert NO_CHECKPOINT in d.call("Variables", session="s", project=d.project)["notice"]
    reply = d.call("Restore", session="s", name="copy", project=d.project)
    assert f"not restored: python ({NO_CHECKPOINT})" in reply["notice"]
    assert "A new python was started" in d.run("1", "s", "python")["notice"]

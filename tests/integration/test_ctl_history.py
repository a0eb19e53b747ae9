# SPDX-License-Identifier: MIT
"""sandboxctl history --replay: the turns of a session once more, in a new one."""
import json
import os

import pytest

PROJECT = "/test"


@pytest.fixture
def ctl(daemon):
    return lambda *args: daemon.ctl(*args, env={**os.environ, "PROJECT_DIR": PROJECT})


def copy_of(daemon, name):
    return daemon.call("History", session=name, project=PROJECT)["entries"]


def test_turns_run_again_in_their_order(daemon, ctl, name):
    daemon.run("x = [1]", name, "python")
    daemon.run("f() { echo $1$1; }; cd /tmp", name)
    daemon.run("x.append(2); x", name, "python")
    daemon.run("(exit 3)", name)
    done = ctl("history", "--replay", f"{name}-2", name)
    assert (done.returncode, done.stdout) == (0, "[1, 2]\n"), done.stderr
    assert "turn 4: exit code 3, was 3" in done.stderr
    assert daemon.run("f a; pwd", f"{name}-2")["stdout"] == "aa\n/tmp\n"
    assert daemon.run("x", f"{name}-2", "python")["stdout"] == "[1, 2]\n"
    assert [e["code"] for e in copy_of(daemon, f"{name}-2")[:4]] == [e["code"] for e in copy_of(daemon, name)]
    assert daemon.show(f"{name}-2")["environment"] == daemon.show(name)["environment"]


def test_json(daemon, ctl, name):
    daemon.run("echo a", name)
    daemon.run("echo b; exit 2", name)
    done = ctl("--json", "history", name, "--replay", f"{name}-2")
    answer = json.loads(done.stdout)
    assert answer["session"] == f"{name}-2"
    assert [(t["stdout"], t["exit_code"], t["turn"]) for t in answer["turns"]] == [("a\n", 0, 1), ("b\n", 2, 2)]


def test_nothing_runs_where_it_cannot_be_whole(daemon, ctl, name):
    daemon.run("true", name)
    daemon.run(": " + "x" * 17000, name)
    done = ctl("--json", "history", "--replay", f"{name}-2", name)
    error = json.loads(done.stdout)
    assert done.returncode == 1 and error["error"].endswith("NotSupported") and "Turn 2" in error["message"]
    assert f"{name}-2" not in [s["name"] for s in daemon.call("List")["sessions"]]


@pytest.mark.parametrize("new, error", [("@self", "Busy"), ("no/name", "BadName"), ("", "BadName")])
def test_only_into_a_new_session(daemon, ctl, name, new, error):
    daemon.run("true", name)
    done = ctl("--json", "history", "--replay", name if new == "@self" else new, name)
    assert done.returncode == 1 and json.loads(done.stdout)["error"] == f"io.nixsandbox.{error}"
    assert daemon.show(name)["turns"] == 1


def test_no_session_and_no_turns(daemon, ctl, name):
    done = ctl("--json", "history", "--replay", "x", name)
    assert done.returncode == 1 and json.loads(done.stdout)["error"].endswith("NoSuchSession")
    assert ctl("history", "--replay").returncode == 2

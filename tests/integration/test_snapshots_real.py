# SPDX-License-Identifier: MIT
"""The whole way with the real agent and interpreters: what was there before the daemon ended is there after it began."""
import shutil
import time

import pytest

from daemonlib import Daemon, wait_for

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")


@pytest.fixture
def daemon_again(programs):
    """A daemon, and a function that stops and starts it."""
    with Daemon(programs=programs) as d:
        def again():
            assert d.end(90) == 0, d.log()
            d.start()
        yield d, again


def test_files_outlive_the_daemon(daemon_again):
    d, again = daemon_again
    d.run("mkdir -p deep && echo text > deep/file && chmod 750 deep && ln -s file deep/link", "a")
    again()
    reply = d.run("cat /workspace/deep/link; stat -c %a /workspace/deep", "a")
    assert (reply["stdout"], reply["session_state"]) == ("text\n750\n", "restored"), reply


def test_python(daemon_again):
    d, again = daemon_again
    d.run("x = 42\ndef f(n):\n    return n + x\nimport math, socket\nsock = socket.socket()", "a", env="python")
    reply = d.call("Save", session="a", project=d.project)
    if not reply["skipped"] or reply["skipped"][0]["name"] is None:
        pytest.skip(f"python is not saved here: {reply}")
    assert [(s["part"], s["name"]) for s in reply["skipped"]] == [("python", "sock")]
    again()
    reply = d.run("print(x, f(1), math.pi > 3)\nsock", "a", env="python")
    assert reply["stdout"].startswith("42 43 True\n"), reply
    assert reply["session_state"] == "restored" and "sock" in reply["notice"] and "NameError" in reply["stderr"]


def test_bash(daemon_again):
    d, again = daemon_again
    d.run("x=42; f() { echo \"f $1\"; }; mkdir -p /workspace/d; cd /workspace/d; alias ll='ls -l'", "a")
    again()
    reply = d.run("echo $x; f 1; pwd", "a")
    if "f 1" not in reply["stdout"]:
        pytest.skip(f"bash is not saved here: {reply['notice']}")
    assert reply["stdout"] == "42\nf 1\n/workspace/d\n"


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node(daemon_again):
    d, again = daemon_again
    d.run("let x = 42; var m = new Map([[1, {a: 2}]])", "a", env="node")
    again()
    reply = d.run("x + m.get(1).a", "a", env="node")
    if reply["exit_code"]:
        pytest.skip(f"node is not saved here: {reply['notice']}")
    assert "44" in reply["stdout"]


def test_two_interpreters_and_a_branch(daemon_again):
    d, again = daemon_again
    d.run("x = [1]; y = x", "a", env="python")
    d.run("echo 1 > f", "a")
    d.call("Save", session="a", project=d.project)
    d.call("Restore", session="a", name="b", project=d.project)
    d.run("echo 2 > f", "b")
    assert d.run("cat f", "a")["stdout"] == "1\n" and d.run("cat f", "b")["stdout"] == "2\n"
    reply = d.run("x.append(2); print(y)", "b", env="python")
    if reply["exit_code"]:
        pytest.skip(f"python is not saved here: {reply['notice']}")
    assert reply["stdout"] == "[1, 2]\n"


def test_turns_go_on_while_it_is_saved(daemon_again):
    d, _ = daemon_again
    d.run("head -c 100000000 /dev/urandom > big", "a")
    with d.link() as save:
        save.send("Save", session="a", project=d.project)
        begun = time.monotonic()
        wait_for(lambda: d.show("a")["busy"] or "saved" in d.events())
        assert d.run("echo 0", "a")["stdout"] == "0\n"
        turn = time.monotonic() - begun
        assert save.answer()["size"] > 100000000
        assert turn < (time.monotonic() - begun) / 2, "the turn has waited for all of it"

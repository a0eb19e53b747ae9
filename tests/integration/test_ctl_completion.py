# SPDX-License-Identifier: MIT
"""Completion in bash, zsh and fish: as the shells do it, and that none has forgotten a verb."""
import os
import re
import shutil
import subprocess

import pytest

from ctllib import Terminal
from daemonlib import ROOT, WAIT

FILES = {"bash": "sandboxctl.bash", "zsh": "_sandboxctl", "fish": "sandboxctl.fish"}


def path(shell):
    return os.path.join(ROOT, "completions", FILES[shell])


def needs(shell):
    return pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed")


@pytest.fixture
def env(daemon):
    """sandboxctl in PATH."""
    return {**os.environ, "PATH": f"{daemon.programs}:{os.environ['PATH']}", "NIX_SANDBOX_SOCKET": daemon.sock, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def bash(env):
    """What bash offers for words; the last one is the one to complete."""
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sandboxctl "$1"; printf "%s\\n" "${COMPREPLY[@]}"'

    def complete(*words, **more):
        done = subprocess.run(["bash", "-c", script, "bash", path("bash"), "sandboxctl", *words], env={**env, **more}, capture_output=True,
                              text=True, timeout=WAIT, check=True)
        assert done.stderr == ""
        return done.stdout.split()
    return complete


def verbs(daemon):
    return re.findall(r"^  ([a-z]+) .*\n {8}", daemon.ctl("--help").stdout, re.M)


@pytest.mark.parametrize("name", [*(os.path.join("completions", f) for f in FILES.values()), "docs/man/sandboxctl.1"])
def test_every_verb(daemon, name):
    found = verbs(daemon)
    assert {"run", "list", "top", "kill", "audit", "doctor"} <= set(found)
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        text = f.read()
    assert [v for v in found if not re.search(rf"(?<![a-z]|-){v}(?![a-z-])", text)] == []


def test_bash_verbs(daemon, bash):
    assert sorted(bash("")) == sorted(verbs(daemon))
    assert bash("fre") == ["freeze"]
    assert bash("--json", "int") == ["interrupt"]
    assert bash("--no") == ["--no-ask-password"]
    assert bash("-H", "host", "he") == [] and bash("-H", "host", "hi") == ["history"]
    assert bash("nonsense", "") == []


def test_bash_sessions_and_environments(daemon, bash, name):
    daemon.run("true", name)
    for verb in ("show", "kill", "freeze", "thaw", "interrupt", "history", "stats", "set", "get", "put", "vars"):
        assert name in bash(verb, name[0])
    assert name in bash("run", "-s", "")
    assert name in bash("--socket", daemon.sock, "kill", "other", "", NIX_SANDBOX_SOCKET="/nonexistent")
    assert bash("run", "-e", "py") == ["python"] and bash("run", "--env", "no") == ["node"]
    assert bash("run", "-i", "b") == ["bash"]
    assert bash("kill", "x", "--") == ["--all", "--user", "--yes"]
    assert "root" in bash("kill", "--user", "roo")
    assert set(bash("set", "x", "io")) == {"io-read=", "io-write="}
    assert bash("list", "") == [] and bash("run", "--timeout", "") == []


def test_bash_is_quiet_and_starts_no_ssh(bash, tmp_path):
    assert bash("kill", "", NIX_SANDBOX_SOCKET="/nonexistent") == []
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    ssh.chmod(0o755)
    assert bash("-H", "host", "kill", "", PATH=f"{tmp_path}:{os.environ['PATH']}") == []
    assert not (tmp_path / "started").exists()


@needs("fish")
def test_fish(daemon, env, name, tmp_path):
    daemon.run("true", name)

    def complete(line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {path('fish')}; complete -C '{line}'"],
                              env={**env, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=WAIT, check=True)
        assert done.stderr == ""
        return [word.split("\t")[0] for word in done.stdout.splitlines()]
    assert complete("sandboxctl fre") == ["freeze"]
    assert sorted(complete("sandboxctl ")) == sorted(verbs(daemon))
    assert name in complete(f"sandboxctl --socket {daemon.sock} kill ")
    assert complete("sandboxctl run -e py") == ["python"]
    assert sorted(complete("sandboxctl set x cpu")) == ["cpu-weight=", "cpus="]
    assert complete("sandboxctl -H host kill ") == []


@needs("zsh")
def test_zsh(daemon, env, tmp_path):
    sid = daemon.name() + "zsh"
    daemon.run("true", sid)
    (tmp_path / ".zshrc").write_text(f"PS1='> '; fpath=({os.path.dirname(path('zsh'))} $fpath); autoload -U compinit; compinit -u -D\n")
    with Terminal(["zsh", "-i"], env={**env, "ZDOTDIR": str(tmp_path), "HOME": str(tmp_path)}) as t:
        t.until_text(">")
        for typed, expected in (("sandboxctl fre\t", "> sandboxctl freeze"), (f"sandboxctl kill {sid[:-1]}\t", f"> sandboxctl kill {sid}"),
                                ("sandboxctl run -e py\t", "> sandboxctl run -e python"), ("sandboxctl --js\t", "> sandboxctl --json"),
                                ("sandboxctl set x proc\t", "> sandboxctl set x processes=")):
            t.type(typed)
            t.until(lambda e=expected: any(line == e for line in t.lines), expected)
            t.type("\x15")
            t.until(lambda: t.lines[t.screen.cursor.y] == ">", "an empty line")


def test_installed():
    with open(os.path.join(ROOT, "tools", "install.mk"), encoding="utf-8") as f:
        text = f.read()
    assert [f for f in FILES.values() if f"completions/{f}" not in text] == []

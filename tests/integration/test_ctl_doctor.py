# SPDX-License-Identifier: MIT
"""sandboxctl doctor: what it finds by itself, what the daemon finds, and that each fault comes with a fix."""
import json
import os
import re
import stat
import subprocess

import pytest

from ctllib import Terminal
from daemonlib import Client, public_directory, removed
from test_ctl import VERSION
from test_ctl_select import record


@pytest.fixture
def tools(daemon):
    """sandboxctl doctor with a directory of stand-ins before PATH."""
    with removed(public_directory()) as root:
        class Tools:
            def install(self, name, text):
                path = os.path.join(root, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write("#!/bin/sh\n" + text)
                os.chmod(path, stat.S_IRWXU)

            def __call__(self, *options, path=f"{root}:{os.environ['PATH']}"):
                return daemon.ctl(*options, "doctor", env={**os.environ, "PATH": path})
        yield Tools()


def check(done, name):
    """The verdict, detail and fix of a check of sandboxctl's own."""
    own = done.stdout.split("As sandboxd sees it")[0]
    found = re.search(rf"^(\S+) +{name}  +(.*)(?:\n +→ (.*))?$", own, re.M)
    return found and found.groups()


def test_both_sides(tools):
    done = tools()
    assert done.returncode == 0, done.stdout
    assert re.search(r"As sandboxd sees it\n(.*\n)*ok +bubblewrap +/", done.stdout)
    for name in ("sandboxctl", "kernel", "bubblewrap", "user namespaces", "seccomp", "daemon"):
        assert check(done, name)[0] == "ok", name
    assert check(done, "cgroups")


def test_json(tools):
    done = tools("--json")
    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 0 and {c["source"] for c in checks} == {"sandboxctl", "sandboxd"}
    assert all(set(c) == {"name", "verdict", "detail", "fix", "source"} for c in checks)


def test_fault_of_the_daemon(start):
    bad = start(env={"PATH": "/nonexistent"})
    done = bad.ctl("doctor")
    assert done.returncode == 1 and re.search(r"^error +bubblewrap .*\n +→ Debian: apt install", done.stdout, re.M)
    assert bad.ctl("--json", "doctor").returncode == 1


def test_without_a_daemon(programs):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "none"), programs)
        done = client.ctl("doctor")
        assert done.returncode == 1 and "As sandboxd" not in done.stdout and done.stderr == ""
        assert check(done, "kernel")[0] == "ok" and "No sandboxd answers" in check(done, "daemon")[1]
        status, reply = client.json("doctor")
        assert status == 1 and {c["source"] for c in reply["checks"]} == {"sandboxctl"}


@pytest.mark.parametrize("text, words", [("echo bubblewrap 0.4.1", "0.4.1 is too old"), ("exit 1", "fails"), ("kill -9 $$", "fails")])
def test_bubblewrap_that_is_no_good(tools, text, words):
    tools.install("bwrap", text)
    done = tools()
    verdict, detail, fix = check(done, "bubblewrap")
    assert done.returncode == 1 and verdict == "error" and words in detail and "apt install" in fix


def test_no_tools(tools):
    done = tools(path="/nonexistent")
    assert done.returncode == 1
    assert check(done, "bubblewrap")[:2] == ("error", "there is no 'bwrap' in PATH")
    assert check(done, "systemd")[0] == "warning"


def test_old_systemd_and_hostile_versions(tools):
    tools.install("systemctl", r"printf 'systemd 247\033[31m\n'")
    verdict, detail, _ = check(tools(), "systemd")
    assert verdict == "warning" and detail == "systemd 247?[31m is too old"


def test_daemon_of_another_version(programs):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"],
                             "Doctor": {"checks": [{"name": "x\x1b", "verdict": "ok", "detail": "\x1b[2J"}, 7, {}]}})
        done = client.ctl("doctor")
        verdict, detail, fix = check(done, "daemon")
        assert verdict == "warning" and detail.startswith("9 (service) on ") and "systemctl reload" in fix
        assert "x?" in done.stdout and "\x1b" not in done.stdout


def test_on_a_terminal(daemon):
    with Terminal([os.path.join(daemon.programs, "sandboxctl"), "--socket", daemon.sock, "doctor"], columns=150, lines=60) as t:
        assert t.end() == 0 and b"\x1b[32mok" in t.raw


def test_of_another_machine(daemon):
    with removed(public_directory()) as root:
        path = os.path.join(root, "ssh")
        with open(path, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nshift 3\nexec "$@"\n')
        os.chmod(path, stat.S_IRWXU)
        environment = {**os.environ, "PATH": f"{root}:{daemon.programs}:{os.environ['PATH']}", "NIX_SANDBOX_SOCKET": daemon.sock}
        done = subprocess.run([os.path.join(daemon.programs, "sandboxctl"), "-H", "there", "doctor"], env=environment,
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0 and check(done, "kernel") is None and check(done, "daemon")[1].endswith("on there")

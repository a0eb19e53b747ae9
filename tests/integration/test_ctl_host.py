# SPDX-License-Identifier: MIT
"""sandboxctl -H: through an ssh that stays on this machine, and through ones that fail."""
import json
import os
import signal
import stat
import subprocess
import threading

import pytest

from ctllib import Terminal
from daemonlib import WAIT, public_directory, removed, wait_for

# What ssh does with its arguments after "--": the host, and words that the login shell there gets as one line.
GOOD = """#!/bin/sh
echo "$@" >>"$SSH_LOG"
[ "$1 $2" = "-xT --" ] || exit 254
shift 3
exec sh -c "$*"
"""


@pytest.fixture
def ssh(daemon):
    """Calls sandboxctl -H HOST with a stand-in for ssh; .words() is what that was called with."""
    with removed(public_directory()) as root:
        class Ssh:
            log = os.path.join(root, "log")
            env = {**os.environ, "PATH": f"{root}:{daemon.programs}:{os.environ['PATH']}", "SSH_LOG": log,
                   "NIX_SANDBOX_SOCKET": daemon.sock, "PROJECT_DIR": "/test"}

            def install(self, text):
                path = os.path.join(root, "ssh")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                os.chmod(path, stat.S_IRWXU | 0o055)

            def command(self, *args, host="me@there"):
                return [os.path.join(daemon.programs, "sandboxctl"), "-H", host, *args]

            def __call__(self, *args, host="me@there", **more):
                return subprocess.run(self.command(*args, host=host), env=self.env, capture_output=True, text=True, timeout=WAIT,
                                      check=False, **more)

            def words(self):
                with open(self.log, encoding="utf-8") as f:
                    return f.read().splitlines()
        s = Ssh()
        s.install(GOOD)
        yield s


def test_verbs(ssh, daemon, name):
    done = ssh("run", "-s", name, "-e", "shell", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert ssh.words() == ["-xT -- me@there sandboxctl bridge"]
    assert name in ssh("list").stdout
    assert json.loads(ssh("--json", "show", name).stdout)["session"]["name"] == name
    assert ssh("kill", name).returncode == 0
    assert daemon.refused("Show", session=name, project="/test")


def test_much_in_both_directions(ssh):
    done = ssh("--json", "run", "-e", "shell", "-", input=": " + "#" * 2000000 + "\nseq 30000")
    assert done.returncode == 0 and json.loads(done.stdout)["stdout"].endswith("\n30000\n")
    done = ssh("run", "-e", "shell", "seq 20000")
    assert done.stdout.splitlines()[-1] == "20000"


def test_stream(ssh, daemon, name):
    """Events come while the connection is open, and nothing is left when it is closed."""
    p = subprocess.Popen(ssh.command("--json", "events", "-f"), env=ssh.env, stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(p.stdout.readline, "")), daemon=True)
    reader.start()
    wait_for(lambda: lines)
    sid = daemon.run("true", name)["id"]
    wait_for(lambda: any(sid in line for line in lines))
    p.send_signal(signal.SIGTERM)
    assert p.wait(10) == -signal.SIGTERM
    reader.join(10)
    p.stdout.close()


def test_top(ssh, daemon, name):
    """It comes back through a new ssh, which may have to ask on the terminal first."""
    daemon.run("true", name)
    ssh.install(GOOD.replace('exec sh -c "$*"', 'echo "password for me?" >&2; echo $$ >"$SSH_LOG.pid"\nexec "$@"'))
    with Terminal(ssh.command("top", "-d", "0.2"), columns=130, env=ssh.env) as t:
        t.until_text(name + " ")
        assert "on me@there" in t.lines[0]
        with open(ssh.log + ".pid", encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGKILL)
        t.until_text("sandboxd is back")
        t.until(lambda: name in t.text and "password" not in t.text, "the screen again")
        t.type("q")
        assert t.end() == 0 and t.restored()
    assert len(ssh.words()) == 2


def test_client_that_dies_stops_its_turn(ssh, daemon, name):
    p = subprocess.Popen(ssh.command("run", "-s", name, "-e", "shell", "sleep 60"), env=ssh.env)
    wait_for(lambda: [s for s in daemon.call("List")["sessions"] if s["name"] == name and s["busy"]])
    p.kill()
    p.wait()
    daemon.wait_busy(name, False)


@pytest.mark.parametrize("text, words", [
    ("#!/bin/sh\necho 'ssh: no route' >&2\nexit 255\n", ["ssh: no route", "ssh could not get there (status 255)"]),
    ("#!/bin/sh\nexit 127\n", ["has no sandboxctl in PATH"]), ("#!/bin/sh\nexit 1\n", ["(status 1)"]),
    ("#!/bin/sh\nkill -9 $$\n", ["(status 137)"]),
    ("#!/bin/sh\nprintf 'Welcome!\\0'\ncat >/dev/null\n", ["did not say its version"])])
def test_ssh_fails(ssh, text, words):
    ssh.install(text)
    done = ssh("list")
    assert done.returncode == 1 and done.stdout == ""
    for word in words:
        assert word in done.stderr
    reply = json.loads(ssh("--json", "list").stdout)
    assert set(reply) == {"error", "message", "parameters"} and "there" in reply["message"]


def test_no_ssh(ssh):
    done = subprocess.run(ssh.command("list"), env={**ssh.env, "PATH": "/nonexistent"}, capture_output=True, text=True, timeout=WAIT,
                          check=False)
    assert done.returncode == 1 and "Cannot run ssh: No such file or directory" in done.stderr


def test_no_daemon_there(ssh):
    ssh.env["NIX_SANDBOX_SOCKET"] = "/nonexistent"
    done = ssh("list")
    assert done.returncode == 1 and "No sandboxd answers on '/nonexistent'" in done.stderr and "host 'me@there'" in done.stderr


@pytest.mark.parametrize("host", ["-oProxyCommand=touch /tmp/owned", "-", ""])
def test_host_that_is_an_option(ssh, host):
    done = ssh("list", host=host)
    assert done.returncode == 2 and not os.path.exists(ssh.log)


def test_host_and_socket_exclude_each_other(ssh, daemon):
    assert ssh("--socket", daemon.sock, "list").returncode == 2


def test_verbs_about_this_machine(ssh):
    for verb in ("audit", "bridge"):
        done = ssh(verb)
        assert done.returncode == 2 and f"ssh me@there sandboxctl {verb}" in done.stderr and not os.path.exists(ssh.log)


def test_users_of_another_machine_are_numbers(ssh, daemon, name):
    daemon.run("true", name)
    row = next(line for line in ssh("list", "-a").stdout.splitlines() if line.startswith(name + " "))
    assert row.split()[4] == "0"
    assert ssh("kill", "--user", "root", "-y").returncode == 2
    assert ssh("kill", "--user", "4294967294", "-y").returncode == 0


def test_bridge_by_hand(daemon):
    """It is a plain connection, and ends with its input."""
    done = daemon.ctl("bridge", stdin=b'{"method":"io.nixsandbox.GetVersion","parameters":{}}\0')
    assert done.returncode == 0 and done.stderr == ""
    assert daemon.ctl("bridge").returncode == 0
    assert "bridge" not in daemon.ctl("--help").stdout


def test_files(ssh, daemon, name):
    assert ssh("run", "-s", name, "-e", "shell", "true").returncode == 0
    text = "ä\n" * 500000
    assert ssh("put", name, "-", "f", input=text).returncode == 0
    assert ssh("get", name, "f", "-").stdout == text
    assert ssh("get", name, "none", "-").returncode == 1

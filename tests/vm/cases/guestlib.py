# SPDX-License-Identifier: MIT
"""What the cases use inside the machine: two ordinary users, root, cgroups, and waits that have a bound.

Everything here is slow: a process takes a tenth of a second to start. So bounds are generous, and what is measured is
read from the kernel's own counters.
"""
import json
import os
import re
import socket
import subprocess
import time

WAIT = 120.0
SLICE = "/sys/fs/cgroup/nix.slice"
SOCKET = "/run/nix-sandbox/io.nixsandbox"
CONFIG = "/etc/nix-sandbox/sandboxd.json"
SERVICE = "sandboxd.service"


class Skip(Exception):
    """The case cannot be tried here; the text says why."""


class Reboot(Exception):
    """The case goes on after a reboot of the machine: it is called again, with rebooted being true."""


rebooted = False


class Refused(Exception):
    """What sandboxctl --json says when the daemon refuses."""

    def __init__(self, answer):
        super().__init__(f"{answer['error']}: {answer['message']}")
        self.error, self.message = answer["error"].removeprefix("io.nixsandbox."), answer["message"]


def sh(*command, check=True, **kwargs):
    """Runs a program as root; its standard output."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=WAIT, check=False, **kwargs)
    if check:
        assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}"
    return done.stdout


def wait_for(condition, what, wait=WAIT):
    """Until condition() is true, which must come to pass; its value."""
    end = time.monotonic() + wait
    while not (value := condition()):
        assert time.monotonic() < end, f"it never came to pass: {what() if callable(what) else what}"
        time.sleep(0.05)
    return value


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def keyed(path):
    """A cgroup file of `key value` lines."""
    return {line.split()[0]: int(line.split()[1]) for line in read(path).splitlines()}


def show(unit, name):
    return sh("systemctl", "show", "-P", name, unit).strip()


class User:
    """Somebody who calls sandboxctl from a home directory."""

    def __init__(self, name, uid):
        self.name, self.uid = name, uid
        self.home = f"/home/{name}" if uid else "/root"

    def start(self, *command, **kwargs):
        who = {"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid else {}
        env = {"HOME": self.home, "USER": self.name, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
        return subprocess.Popen(command, cwd=self.home, env=env, stdin=kwargs.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **who, **kwargs)

    def finish(self, process, wait=WAIT):
        """What a started `sandboxctl --json` says; Refused where it is refused."""
        out, err = process.communicate(timeout=wait)
        try:
            answer = json.loads(out)
        except ValueError as e:
            raise AssertionError(f"no JSON, status {process.returncode}: {out[-500:]} {err[-500:]}") from e
        if isinstance(answer, dict) and "error" in answer:
            raise Refused(answer)
        return answer

    def begin_ctl(self, *arguments):
        return self.start("sandboxctl", "--json", *arguments)

    def ctl(self, *arguments):
        return self.finish(self.begin_ctl(*arguments))

    def begin_run(self, code, session=None, env="python", **options):
        arguments = ["-s", session] if session else []
        for name, value in options.items():
            arguments += [f"--{name}", str(value)]
        return self.begin_ctl("run", "-e", env, *arguments, code)

    def run(self, code, session=None, env="python", **options):
        return self.finish(self.begin_run(code, session, env, **options))

    def refused(self, *arguments):
        """The error of what must be refused."""
        try:
            answer = self.ctl(*arguments)
        except Refused as e:
            return e
        raise AssertionError(f"not refused: {answer}")

    def session(self, name):
        """What `show` knows of a session."""
        answer = self.ctl("show", name)
        return answer.get("session", answer)

    def cgroup(self, name):
        """A session's directory in the tree, found by its id: what is said about it is not believed."""
        found = [d for d, _, _ in os.walk(SLICE) if os.path.basename(d) == self.session(name)["id"]]
        assert len(found) == 1, f"the session {name} has {len(found)} groups: {found}"
        return found[0]


class Link:
    """A varlink connection as a user, for what a process's start would blur."""

    def __init__(self, user):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT)
        os.setegid(user.uid)
        os.seteuid(user.uid)
        try:
            self.socket.connect(SOCKET)
        finally:
            os.seteuid(0)
            os.setegid(0)

    def call(self, method, **parameters):
        message = {"method": f"io.nixsandbox.{method}", "parameters": parameters}
        self.socket.sendall(json.dumps(message).encode() + b"\0")
        reply = b""
        while not reply.endswith(b"\0"):
            data = self.socket.recv(1 << 16)
            assert data, "sandboxd hung up"
            reply += data
        answer = json.loads(reply[:-1])
        assert "error" not in answer, answer
        return answer["parameters"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


tester, other, root = User("tester", 1000), User("other", 1001), User("root", 0)


def configure(config=None):
    """Gives the service a configuration and starts it afresh; no sessions are left over."""
    sh("systemctl", "stop", "sandboxd.socket", SERVICE)
    if config is None:
        config = {}
    write(CONFIG, json.dumps(config))
    sh("systemctl", "reset-failed", check=False)
    sh("systemctl", "start", "sandboxd.socket")


def main_pid():
    return int(show(SERVICE, "MainPID"))


def processes_of(program):
    """Pids of what runs as program."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if read(f"/proc/{pid}/comm").strip() == program[:15]:
                found.append(int(pid))
        except OSError:
            continue
    return found


def journal(*arguments):
    """Entries of this boot, as dicts."""
    lines = sh("journalctl", "-b", "-o", "json", "--no-pager", *arguments).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text!r}"
    return float(found[1])

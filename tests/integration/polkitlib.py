# SPDX-License-Identifier: MIT
"""A system bus of the tests' own, and on it a polkit that does what a test says."""
import contextlib
import importlib.util
import json
import os
import selectors
import shutil
import signal
import subprocess
import time

import pytest

from daemonlib import ROOT, WAIT, Link, public_directory, removed, wait_for

PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.realpath(__file__))
BUS_CONFIG = """<busconfig>
<type>custom</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow eavesdrop="false"/>
<allow receive_sender="*"/></policy>
</busconfig>
"""
GRANT, DENY, CHALLENGE = (True, False), (False, False), (False, True)


class Process:
    """A child that says lines of JSON, and is told some."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.inbox = b""

    def receive(self, wait=WAIT):
        """The next line, within a bound; None when there is none."""
        end = time.monotonic() + wait
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.inbox:
                if not s.select(max(0, end - time.monotonic())):
                    return None
                data = os.read(self.process.stdout.fileno(), 65536)
                assert data, "it has ended"
                self.inbox += data
        line, _, self.inbox = self.inbox.partition(b"\n")
        return json.loads(line)

    def expect(self, method):
        line = self.receive()
        assert line and line["method"] == method, line
        return line

    def quiet(self, wait=0.2):
        return self.receive(wait) is None

    def tell(self, **order):
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class FakePolkit(Process):
    def __init__(self, bus):
        super().__init__([PYTHON, os.path.join(HERE, "fake_polkit.py")], env={**os.environ, **bus.env})
        self.expect("ready")

    def question(self):
        return self.expect("CheckAuthorization")

    def answer(self, question, verdict, details=None):
        self.tell(serial=question["serial"], signature="(bba{ss})", values=[[*verdict, details or {}]])

    def end(self):
        """In the middle of whatever it was asked."""
        self.tell(exit=3)
        assert self.process.wait(WAIT) == 3


class Bus:
    def __init__(self, root):
        self.path = os.path.join(root, "bus")
        self.env = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.path}"}
        self.config = os.path.join(root, "bus.conf")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(BUS_CONFIG.format(self.path))
        self.process = None

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.process = subprocess.Popen(["dbus-daemon", "--nofork", "--nopidfile", "--print-address",
                                         f"--config-file={self.config}"], stdout=subprocess.PIPE)
        assert self.process.stdout.readline(), "dbus-daemon did not start"
        self.process.stdout.close()

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()


class Polkitd:
    """The real one, on a bus of ours, with our actions and with rules of a test; the machine's are not touched."""
    PROGRAM = "/usr/lib/polkit-1/polkitd"

    def __init__(self, bus, root, rules, owner="root"):
        self.env = {**os.environ, **bus.env}
        for folder in ("actions", "rules", "no-rules"):
            os.mkdir(os.path.join(root, folder))
        with open(os.path.join(ROOT, "polkit", "io.nixsandbox.policy"), encoding="utf-8") as f:
            policy = f.read()
        with open(os.path.join(root, "actions", "io.nixsandbox.policy"), "w", encoding="utf-8") as f:
            f.write(policy.replace("unix-user:nix-sandbox<", f"unix-user:{owner}<"))
        with open(os.path.join(root, "rules", "50-test.rules"), "w", encoding="utf-8") as f:
            f.write(rules)
        script = f"""
mount --bind {root}/actions /usr/share/polkit-1/actions
mount --bind {root}/rules /etc/polkit-1/rules.d
mount --bind {root}/no-rules /usr/share/polkit-1/rules.d
exec {self.PROGRAM} --no-debug
"""
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script],
                                        env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def has_name(self):
        assert self.process.poll() is None, "polkitd ended"
        code = "import dbus; print(int(dbus.SystemBus().name_has_owner('org.freedesktop.PolicyKit1')))"
        return subprocess.run([PYTHON, "-c", code], env=self.env, capture_output=True, check=True,
                              timeout=WAIT).stdout == b"1\n"

    def __enter__(self):
        try:
            wait_for(self.has_name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def private_bus():
    if not shutil.which("dbus-daemon") or not importlib.util.find_spec("dbus") or not importlib.util.find_spec("gi"):
        pytest.skip("needs dbus-daemon, python3-dbus and python3-gi")
    with removed(public_directory()) as root, Bus(root) as bus:
        yield bus


def link_as(daemon, uid):
    """A connection whose credentials are of another user: the kernel notes the effective one at connect(2)."""
    os.seteuid(uid)
    try:
        return Link(daemon.sock)
    finally:
        os.seteuid(0)

# SPDX-License-Identifier: MIT
"""The service as this machine's systemd runs it: what tests ask systemd, the kernel and the daemon."""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "integration"))
# pylint: disable=wrong-import-position
from daemonlib import Client, VarlinkError, alive, as_user, public_directory, together, wait_for  # noqa: E402

SLICE = "/sys/fs/cgroup/nix.slice/nix-sandbox.slice"
SOCKET = "/run/nix-sandbox/io.nixsandbox"
RUNTIME, STATE = "/run/nix-sandbox/sandboxd", "/var/lib/nix-sandbox"
CONFIG = "/etc/nix-sandbox/sandboxd.json"
UNITS = "/run/pid1/units"
DROPINS = "/run/systemd/system"
BEFORE_254 = os.path.exists(UNITS + "/nix-sandbox-sessions.service")
LOG = "/run/pid1/out/sandboxd"
ALICE, BOB = 4001, 4002


def command(*args, status=0, wait=60):
    """Its output, errors included; what it must exit with."""
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=wait, check=False)
    assert status is None or done.returncode == status, f"{args}: {done.returncode}: {done.stdout}"
    return done.stdout


def systemctl(*args, **more):
    return command("systemctl", "--no-pager", *args, **more)


def crash(service, sig=signal.SIGKILL):
    """Ends the daemon; returns when systemd has started another."""
    old = service.pid_of_running()
    os.kill(old, sig)
    wait_for(lambda: service.pid not in (0, old) and service.active() == "active")
    return old


def processes_in(cgroup):
    """The pids in a group and below it."""
    found = []
    for folder, _, _ in os.walk(cgroup):
        with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
            found += [int(line) for line in f]
    return found


def status_of(pid):
    """/proc/PID/status as a dict of texts."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in f)}


class Service(Client):
    """sandboxd.service."""

    def __init__(self):
        super().__init__(SOCKET, "/usr/bin")

    @staticmethod
    def unit(prop, unit="sandboxd.service"):
        return systemctl("show", "-P", prop, unit).strip()

    @property
    def pid(self):
        return int(self.unit("MainPID"))

    def pid_of_running(self):
        self.call("GetVersion")
        return self.pid

    @property
    def cgroup(self):
        return SLICE + "/sandboxd.service"

    @property
    def sessions(self):
        """The group that they are below: another unit's for a systemd before 254."""
        return SLICE + "/nix-sandbox-sessions.service" if BEFORE_254 else self.cgroup

    def active(self):
        return self.unit("ActiveState")

    def wait_active(self, state="active"):
        wait_for(lambda: self.active() == state)

    @staticmethod
    def log():
        if not os.path.exists(LOG):
            return ""
        with open(LOG, encoding="utf-8", errors="replace") as f:
            return f.read()

    @staticmethod
    def configure(text=None, **settings):
        """The configuration file. Limits cannot be demanded: this machine may have its controllers in v1 hierarchies."""
        os.makedirs(os.path.dirname(CONFIG), exist_ok=True)
        with open(CONFIG, "w", encoding="utf-8") as f:
            f.write(text or json.dumps({"require_limits": False, **settings}))

    @staticmethod
    def drop_in(text, unit="sandboxd.service"):
        """Settings for one test; each says why there."""
        folder = os.path.join(DROPINS, unit + ".d")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "test.conf"), "w", encoding="utf-8") as f:
            f.write(text)
        systemctl("daemon-reload")

    def leftovers(self):
        """What is there of a service that has been stopped."""
        left = [f"{f} " for f in (self.cgroup, self.sessions, RUNTIME) if os.path.exists(f)]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    comm = f.read().strip()
            except OSError:
                continue
            if alive(int(pid)) and re.match("sandboxd|bwrap|sandbox-(agent|become|proxy)", comm):
                left.append(f"process {pid} ({comm})")
        return left

    def stop(self):
        """In this order, or a client would start it again."""
        systemctl("stop", "sandboxd.socket", "sandboxd.service")

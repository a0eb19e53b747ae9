# SPDX-License-Identifier: MIT
"""sandboxd, and so whatever it starts, on the host of netlib.py: that network, and its name servers, are all it has."""
import base64
import os
import subprocess

from daemonlib import WAIT, Daemon, descendants, is_proxy, wait_for
from managerlib import Service
from netlib import NAME_SERVER

# Mounts of its own, which end with the last process that sees them. The machine's stay as they are.
MOUNTS = """
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
shift
exec "$@"
"""
# What Python in a jail has at hand. fetch(url) is what came: bytes, or (status, sentence), or why it failed.
PYTHON = """
import socket, ssl, struct, urllib.request, urllib.error
secure = ssl.create_default_context(cafile="/workspace/ca.pem")
def opened(url, context=secure, **more):
    return urllib.request.urlopen(urllib.request.Request(url, **more), timeout=25, context=context)
def fetch(url, context=secure, **more):
    try:
        with opened(url, context, **more) as r:
            return r.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError as e:
        return str(getattr(e, "reason", e))
def tunnel(target):
    s = socket.create_connection(("127.0.0.1", 3128), 25)
    s.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
    head = b""
    while b"\\r\\n\\r\\n" not in head and (piece := s.recv(1)):
        head += piece
    return s, head.partition(b"\\r\\n")[0].decode()
"""


class OnHost:
    """A daemon that is started on the host of a network."""

    def __init__(self, network, config=None, **more):
        super().__init__(config, **more)
        self.network = network
        with open(os.path.join(self.root, "resolv.conf"), "w", encoding="ascii") as f:
            f.write(f"nameserver {NAME_SERVER}\n")
        with open(os.path.join(self.root, "hosts"), "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n::1 localhost\n")
        self.wrapper = ["unshare", "--mount", "--propagation", "private", "bash", "-ec", MOUNTS, "bash", self.root]
        self.command = [*self.wrapper, *self.command]

    def spawn(self):
        self.network.host.call(super().spawn)

    def beside(self, *command, wait=WAIT, **more):
        """What a process of root on that host says, which is in no jail."""
        done = self.network.host.call(subprocess.run, [*self.wrapper, *command], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=wait, check=False, **more)
        return done.stdout.decode(errors="replace")

    def session(self, certificate, env="python", **more):
        """The name of a new session of an environment (of Python but for shell and node), with what trusts a certificate in it."""
        name = self.name()
        self.run({"shell": ":", "node": "0"}.get(env, "pass"), name, env, **more)
        self.call("Put", session=name, project=self.project, path="ca.pem", offset=0, last=True,
                  data=base64.b64encode(certificate.text.encode()).decode())
        if env not in ("shell", "node"):
            self.run(PYTHON, name, env)
        return name

    def usage(self, session):
        return self.show(session)["network"]

    def wait_usage(self, session, condition):
        return wait_for(lambda: (u := self.usage(session)) and condition(u) and u)

    def proxies(self):
        """{pid: start time} of the proxies that it has."""
        return {pid: start for pid, start in descendants(self.pid) if is_proxy(pid)}


class HostDaemon(OnHost, Daemon):
    """In the foreground, as daemonlib.Daemon."""


class HostService(OnHost, Service):
    """As a service, whose sessions survive a crash of it."""

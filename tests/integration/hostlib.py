# SPDX-License-Identifier: MIT
"""sandboxd, and so whatever it starts, on the host of netlib.py: that network, and its name servers, are all it has."""
import os
import subprocess

from daemonlib import WAIT, Daemon
from netlib import NAME_SERVER

# Mounts of its own, which end with the last process that sees them. The machine's stay as they are.
MOUNTS = """
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
shift
exec "$@"
"""


class HostDaemon(Daemon):
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
        """A finished process of root on that host: what anybody who is not in a jail gets there."""
        done = self.network.host.call(subprocess.run, [*self.wrapper, *command], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=wait, check=False, **more)
        return done.stdout.decode(errors="replace")

# SPDX-License-Identifier: MIT
"""What systemd is to sandboxd: listens for it, is notified, keeps its descriptors, starts the next one with them."""
import array
import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import threading

from daemonlib import Daemon, cgroups_named, public_directory, stat_of, tree_name, wait_for


def tree_pids(runtime):
    """{(pid, start time)} of all that is in a daemon's control groups."""
    found = set()
    for base in cgroups_named(tree_name(runtime)):
        for folder, _, _ in os.walk(base):
            with contextlib.suppress(OSError), open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
                found |= {(int(p), s[2]) for p in f if (s := stat_of(int(p)))}
    return found


class Notifications:
    """The socket that a service notifies: what it said, and the descriptors that it stored by name."""

    def __init__(self, path):
        self.path, self.said, self.store, self.keep = path, [], {}, True
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        os.chmod(path, 0o777)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while True:
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4 * 64))
            if data == b"END":
                return
            fds = array.array("i")
            for _, _, part in ancillary:
                fds.frombytes(part)
            words = dict(line.partition("=")[::2] for line in data.decode().splitlines())
            if words.get("FDSTORE") == "1":
                for fd in fds:
                    if self.keep:
                        self.store.setdefault(words["FDNAME"], []).append(fd)
                    else:
                        os.close(fd)
            if words.get("FDSTOREREMOVE") == "1":
                for fd in self.store.pop(words["FDNAME"], []):
                    os.close(fd)
            self.said.append(words)

    def count(self, word):
        return sum(word in words for words in self.said)

    def tell(self, data):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(data, self.path)

    def sync(self):
        """Until all is taken in that was said before."""
        before = self.count("SYNC")
        self.tell(b"SYNC=1")
        wait_for(lambda: self.count("SYNC") > before)

    def close(self):
        self.tell(b"END")
        self.thread.join()
        for fds in self.store.values():
            for fd in fds:
                os.close(fd)
        self.socket.close()


class Service(Daemon):
    """sandboxd as a service: its sessions survive a crash of it."""
    socket_stays = True

    def __init__(self, config=None, **more):
        root = more.pop("root", None)
        self.service_root = root or public_directory()
        super().__init__(config, root=self.service_root, **more)
        self.remove_root = root is None
        at = self.command.index("--socket")
        del self.command[at:at + 2]
        self.listen()
        self.manager = Notifications(os.path.join(self.root, "notify"))
        self.env["NOTIFY_SOCKET"] = self.manager.path

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.sock)
        self.listener.listen(128)
        os.chmod(self.sock, 0o666)

    def spawn(self):
        passed = [("sandboxd.socket", self.listener.fileno())]
        passed += [(name, fd) for name, fds in self.manager.store.items() for fd in fds]
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 300) for _, fd in passed]
        script = "".join(f"exec {3 + i}<&{fd} {fd}<&-; " for i, fd in enumerate(high))
        script += "export LISTEN_PID=$$; exec \"$@\""
        with open(os.path.join(self.root, "log"), "ab") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", script, "sh", *self.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=high, env={**self.env, "LISTEN_FDS": str(len(high)),
                                    "LISTEN_FDNAMES": ":".join(name for name, _ in passed)})
        for fd in high:
            os.close(fd)

    def start(self, wait=30):
        ready = self.manager.count("READY")
        self.spawn()

        def is_ready():
            assert self.process.poll() is None, f"sandboxd ended: {self.log()}"
            return self.manager.count("READY") > ready
        wait_for(is_ready, wait)
        return self

    def crash(self):
        super().crash()
        self.manager.sync()

    def restart(self):
        """After a crash, as Restart=on-failure does it."""
        self.crash()
        return self.start()

    def reload(self):
        ready = self.manager.count("READY")
        self.process.send_signal(1)
        wait_for(lambda: self.manager.count("READY") > ready)
        assert self.process.poll() is None, self.log()

    def end(self, wait=20):
        inside = tree_pids(self.runtime)
        status = super().end(wait)
        left = [p for p, start in inside if (s := stat_of(p)) and s[2] == start and s[0] != "Z"]
        assert not left, f"left behind: {left}"
        wait_for(lambda: not self.manager.store)
        return status

    def close(self):
        try:
            super().close()
        finally:
            self.manager.close()
            self.listener.close()
            if self.remove_root:
                shutil.rmtree(self.service_root, ignore_errors=True)

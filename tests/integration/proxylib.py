# SPDX-License-Identifier: MIT
"""Runs the built sandbox-proxy in the host of netlib.py and speaks lib/proxy-protocol.h with it, as sandboxd would."""
import contextlib
import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading

from clientlib import Client
from daemonlib import BUILD, public_directory
from netlib import NAME_SERVER, libc

PROXY = os.path.join(BUILD, "sandbox-proxy")
ADD, CHANGE, REMOVE, READY, REFUSED, USAGE, REMOVED = 1, 2, 3, 16, 17, 18, 19
HEADER = struct.Struct(">IBQ")
REPORT_MAX = 4096
USER, STRANGER = 65534, 65533
SETRESUID, SETRESGID = 117, 119         # of x86-64; aarch64 has others
if os.uname().machine == "aarch64":
    SETRESUID, SETRESGID = 147, 149
WAIT = 30.0
# Mounts of its own; then the user it runs as, with descriptor 3 and nothing else.
START = """
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
exec setpriv --reuid "$2" --regid "$2" --clear-groups --no-new-privs prlimit --nofile="$3" "$4" 3<&"$5"-
"""


@contextlib.contextmanager
def another(uid):
    """This thread alone, as another user for the others that it talks to."""
    def become(to):
        for call in (SETRESGID, SETRESUID) if to else (SETRESUID, SETRESGID):
            if libc.syscall(call, -1, to, -1) < 0:
                raise OSError(ctypes.get_errno(), "setresuid")
    become(uid)
    try:
        yield
    finally:
        become(0)


def tcp_pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        return ours, listener.accept()[0]


class Proxy:
    """A proxy process and the daemon's end of its control socket."""

    def __init__(self, network, files=4096, uid=USER):
        self.network, self.uid = network, uid
        self.numbers = itertools.count(1)
        self.changed = threading.Condition()
        self.frames, self.ended = [], False
        with contextlib.ExitStack() as stack:
            self.directory = public_directory()
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self.resolv_conf = os.path.join(self.directory, "resolv.conf")
            self.name_servers(NAME_SERVER)
            with open(os.path.join(self.directory, "hosts"), "w", encoding="ascii") as f:
                f.write("127.0.0.1 localhost here.example\n::1 localhost\n10.0.0.9 inner.example\n")
            self.program = os.path.join(self.directory, "sandbox-proxy")    # where any user gets at it
            shutil.copy(PROXY, self.program)
            self.start(files)
            stack.callback(self.kill)
            self.wait(lambda: self.frames)
            kind, number, ready = self.frames[0]
            assert (kind, number) == (READY, 0) and set(ready) == {"version"}, self.frames
            stack.pop_all()

    def start(self, files):
        self.log = os.path.join(self.directory, "log")
        self.control, theirs = socket.socketpair()
        with open(self.log, "wb") as log, theirs:
            self.process = self.network.host.call(
                subprocess.Popen,
                ["unshare", "--mount", "--propagation", "private", "bash", "-ec", START, "bash",
                 self.directory, str(self.uid), str(files), self.program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        threading.Thread(target=self.read, daemon=True).start()

    def name_servers(self, *addresses):
        with open(self.resolv_conf, "w", encoding="ascii") as f:
            f.writelines(f"nameserver {a}\n" for a in addresses)

    # ---- what it says ----

    def read(self):
        inbox = b""
        with contextlib.suppress(OSError):
            while data := self.control.recv(1 << 16):
                inbox += data
                while len(inbox) >= 4 and len(inbox) >= (size := 4 + struct.unpack_from(">I", inbox)[0]):
                    _, kind, number = HEADER.unpack_from(inbox)
                    assert size - HEADER.size <= REPORT_MAX
                    with self.changed:
                        self.frames.append((kind, number, json.loads(inbox[HEADER.size:size])))
                        self.changed.notify_all()
                    inbox = inbox[size:]
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, condition, wait=WAIT):
        with self.changed:
            assert self.changed.wait_for(lambda: condition() or self.ended, wait), "the proxy did not tell that"
            value = condition()
            assert value, f"the proxy ended: {self.logged()}"
            return value

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def told(self, number, kind):
        with self.changed:
            return [payload for k, n, payload in self.frames if (k, n) == (kind, number)]

    # ---- what it is told ----

    def send(self, kind, number, payload=b"", fd=None):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        frame = HEADER.pack(len(payload) + 9, kind, number) + payload
        sent = socket.send_fds(self.control, [frame], [fd]) if fd is not None else 0
        if frame[sent:]:                # it may have ended because of that
            self.control.sendall(frame[sent:])

    def session(self, *environment, **more):
        return Session(self, next(self.numbers), environment, **more)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            words = f.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        """It ends by itself when the daemon is gone, and with 0."""
        try:
            self.control.shutdown(socket.SHUT_RDWR)
            assert self.process.wait(WAIT) == 0, self.logged()
        finally:
            self.kill()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT)
        self.control.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Session:
    """A session of a proxy. environment: rules; caller, granted: others; limits, used, credentials as of the protocol.
    Where its socket is, clients of the session connect."""

    def __init__(self, proxy, number, environment, caller=None, granted=(), limits=None, used=None, credentials=None, path=None):
        self.proxy, self.number, self.removed = proxy, number, False
        self.path = os.path.join(proxy.directory, path or f"s{number}")
        self.clients = []
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        with listener:
            listener.bind(self.path)
            os.chmod(self.path, 0o666)
            listener.listen(256)
            proxy.send(ADD, number, self.terms(environment, caller, granted, limits, credentials,
                                               **({"used": used} if used else {})), listener.fileno())

    @staticmethod
    def terms(environment, caller=None, granted=(), limits=None, credentials=None, **more):
        return {"policy": {"environment": list(environment), "caller": caller if caller is None else list(caller),
                           "granted": list(granted)},
                "limits": limits or {}, **({"credentials": credentials} if credentials is not None else {}), **more}

    def change(self, *environment, **more):
        """Told. It counts for what is asked after it, because one process reads both in turn: see settled()."""
        self.proxy.send(CHANGE, self.number, self.terms(environment, **more))
        self.settled()

    def settled(self):
        """All that the proxy was told before, it has read: it answers in their order."""
        other = self.proxy.session()
        other.remove()

    def connect(self, uid=None, wait=WAIT):
        """As a jail's relay has it: a connection of ours, the other end of which goes through the session's socket."""
        ours, theirs = tcp_pair()
        with theirs:
            self.hand_over(theirs, uid=uid)
        ours.settimeout(wait)
        self.clients.append(Client(ours))
        return self.clients[-1]

    def hand_over(self, *sockets, uid=None):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(WAIT)
            with another(self.proxy.uid if uid is None else uid):
                s.connect(self.path)
            socket.send_fds(s, [b"\0"], [t.fileno() for t in sockets])

    def refused(self):
        return self.proxy.told(self.number, REFUSED)

    def wait_refused(self, host, count=1):
        """What was told of the refusals of a host, once they are so many."""
        def enough():
            found = [r for r in self.refused() if r["host"] == host]
            return found if sum(r["count"] for r in found) >= count else None
        return self.proxy.wait(enough)

    def usage(self):
        return (self.proxy.told(self.number, USAGE) or [None])[-1]

    def wait_usage(self, condition):
        return self.proxy.wait(lambda: (u := self.usage()) and condition(u) and u)

    def remove(self):
        """Its last usage."""
        if not self.removed:
            self.removed = True
            self.proxy.send(REMOVE, self.number)
        return self.proxy.wait(lambda: self.proxy.told(self.number, REMOVED))[0]

    def close(self):
        for c in self.clients:
            c.close()
        if not self.proxy.ended:
            self.remove()

    def wait_gone(self):
        """Until no connection of it is open."""
        self.wait_usage(lambda u: u["connections_open"] == 0)


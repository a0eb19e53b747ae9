# SPDX-License-Identifier: MIT
"""A jail whose network ends in a socket of the test's, which stands in for the proxy."""
import contextlib
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

import pytest

from agentlib import JAIL, Agent

CAN_JAIL = shutil.which("bwrap") and subprocess.run([*JAIL, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
needs_jails = pytest.mark.skipif(not CAN_JAIL, reason="bubblewrap makes no jails here")

# What code in the jail has at hand.
CLIENT = """
import socket, struct, threading, hashlib
def connect(host="127.0.0.1"):
    s = socket.create_connection((host, 3128), 20)
    return s
def say(text):
    os.write(1, str(text).encode())
def read_all(s):
    data = b""
    while piece := s.recv(1 << 16):
        data += piece
    return data
def relays():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid) as f:
                if f.read() == "sandbox-relay\\n":
                    found.append(int(pid))
        except FileNotFoundError:
            pass
    return found
"""


def arrived(over):
    """What was sent over a connection of the proxy's socket, which is closed."""
    with over:
        over.settimeout(20)
        _, (fd,), _, _ = socket.recv_fds(over, 1, 1)
    s = socket.socket(fileno=fd)
    s.settimeout(20)
    # It is reset when it is closed, but by whoever says that he ends it.
    assert struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)) == (1, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    return s


class Net:
    """A jail whose network ends in a socket here, unlinked as soon as the agent has it."""

    def __init__(self, **more):
        self.directory = tempfile.mkdtemp(prefix="nix-sandbox-net-")
        path = os.path.join(self.directory, "proxy")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(1024)
        self.listener.settimeout(20)
        self.agent = Agent(jail=True, network=path, **more)
        os.unlink(path)
        self.agent.turn(CLIENT)

    def accept(self):
        """The end of a client's connection that the relay hands over."""
        over, _ = self.listener.accept()
        return arrived(over)

    def begin(self, code):
        self.agent.begin(code)

    def end(self):
        t = self.agent.end()
        assert t.exit_code == 0, t.err
        return t.out.decode()

    def run(self, code):
        self.begin(code)
        return self.end()

    def close(self):
        self.agent.close()
        self.listener.close()
        shutil.rmtree(self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def net():
    with Net() as n:
        yield n


@contextlib.contextmanager
def serving(net, what):
    """Meanwhile what(connection) is run in a thread for each connection."""
    over = threading.Event()

    def loop():
        while not over.is_set():
            if select.select([net.listener], [], [], 0.05)[0]:
                threading.Thread(target=what, args=(net.accept(),), daemon=True).start()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def echo(s):
    with contextlib.suppress(ConnectionError), s:
        while data := s.recv(1 << 16):
            s.sendall(data)


def wait_closed(s):
    """What poll(2) says when the other end is gone."""
    p = select.poll()
    p.register(s, select.POLLRDHUP)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for _, events in p.poll(100):
            if events & select.POLLHUP:
                return True
    return False


def relay_of(net):
    """Its pid outside."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="ascii") as f, open(f"/proc/{pid}/stat", encoding="ascii") as g:
                if f.read() == "sandbox-relay\n":
                    parent = int(g.read().rpartition(")")[2].split()[1])
                    with open(f"/proc/{parent}/stat", encoding="ascii") as h:
                        if int(h.read().rpartition(")")[2].split()[1]) == net.agent.process.pid:
                            found.append(int(pid))
    assert len(found) == 1
    return found[0]


def processor_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

# SPDX-License-Identifier: MIT
"""The agent's relay: from the loopback of a jail to a socket outside, where the test stands in for the proxy."""
import contextlib
import hashlib
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
from closurelib import Closure
from daemonlib import public_directory, removed

CAN_JAIL = shutil.which("bwrap") and subprocess.run([*JAIL, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not CAN_JAIL, reason="bubblewrap makes no jails here")

FDS_IDLE = 7                            # of the relay: 0 to 2, two listeners, the proxy's, epoll

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
        s, _ = self.listener.accept()
        s.settimeout(20)
        return s

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


# What goes through

@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_echo(net, host):
    net.begin(f"s = connect({host!r}); s.sendall(b'ping'); say(s.recv(99)); s.close()")
    s = net.accept()
    assert s.recv(99) == b"ping"
    s.sendall(b"pong")
    assert net.end() == "b'pong'"
    assert s.recv(99) == b""
    s.shutdown(socket.SHUT_WR)
    assert wait_closed(s)


def test_client_ends_its_half(net):
    net.begin("s = connect(); s.sendall(b'question'); s.shutdown(1); say(read_all(s))")
    s = net.accept()
    assert (s.recv(99), s.recv(99)) == (b"question", b"")
    time.sleep(0.2)
    s.sendall(b"an")
    time.sleep(0.2)
    s.sendall(b"swer")
    s.close()
    assert net.end() == "b'answer'"


def test_proxy_ends_its_half(net):
    net.begin("s = connect(); say(read_all(s)); s.sendall(b'still '); time.sleep(0.2); s.sendall(b'there'); s.close()")
    s = net.accept()
    s.sendall(b"all")
    s.shutdown(socket.SHUT_WR)
    data = b""
    while piece := s.recv(99):
        data += piece
    assert data == b"still there" and wait_closed(s) and net.end() == "b'all'"


def test_proxy_that_closes_ends_both(net):
    """The client sees the end, and what it sends then is refused as by a server."""
    net.begin("s = connect(); say(read_all(s))\ntry:\n    for _ in range(50): s.sendall(b'x'); time.sleep(0.01)\n"
              "except ConnectionError: say(' refused')")
    s = net.accept()
    s.sendall(b"all")
    s.close()
    assert net.end() == "b'all' refused"


def test_reset_of_the_client(net):
    net.begin("s = connect(); s.sendall(b'x'); s.recv(1)\n"
              "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()")
    s = net.accept()
    s.recv(1)
    s.sendall(b"x")
    net.end()
    assert wait_closed(s)
    with pytest.raises(ConnectionError):
        s.sendall(b"more")


def test_reset_of_the_client_that_is_not_read(net):
    """The proxy takes nothing, so that the relay reads nothing from the client; its reset counts all the same."""
    net.begin("s = connect(); s.settimeout(0.5)\ntry:\n    while True: s.sendall(b'x' * 65536)\nexcept TimeoutError: pass\n"
              "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()")
    s = net.accept()
    net.end()
    assert wait_closed(s)


def test_reset_of_the_proxy(net):
    """It closes with something unread: what it has said before arrives, then the reset."""
    net.begin("s = connect(); s.sendall(b'x'); got = b''\ntry:\n    while True: got += s.recv(99) or 1/0\n"
              "except ConnectionResetError: say(got)")
    s = net.accept()
    select.select([s], [], [], 10)
    s.sendall(b"before")
    s.close()
    assert net.end() == "b'before'"


# How much goes through

def test_large_transfers_are_exact(net):
    def sink(s):
        size, digest = struct.unpack(">Q", s.recv(8))[0], hashlib.sha256()
        answer = os.urandom(1 << 20) * (size >> 20)
        sender = threading.Thread(target=s.sendall, args=(answer,))
        sender.start()
        while data := s.recv(1 << 20):
            digest.update(data)
        sender.join()
        s.sendall(digest.digest() + hashlib.sha256(answer).digest())
        s.close()

    with serving(net, sink):
        out = net.run("""
size = 64 << 20
def one(results, i):
    s = connect(); data = os.urandom(1 << 20) * 64
    def send():
        s.sendall(struct.pack(">Q", size)); s.sendall(data); s.shutdown(1)
    t = threading.Thread(target=send); t.start()
    got = read_all(s); t.join()
    results[i] = (len(got) == size + 64 and got[-64:-32] == hashlib.sha256(data).digest()
                  and got[-32:] == hashlib.sha256(got[:-64]).digest())
def read_all(s):
    pieces = []
    while piece := s.recv(1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
results = {}
ts = [threading.Thread(target=one, args=(results, i)) for i in range(2)]
for t in ts: t.start()
for t in ts: t.join()
say(results)""")
    assert out == "{0: True, 1: True}" or out == "{1: True, 0: True}"


def test_back_pressure(net):
    """Of what nobody takes, little is kept; nothing is lost."""
    net.begin("s = connect(); s.settimeout(1); n = 0\ntry:\n    while True: n += s.send(b'x' * 65536)\n"
              "except TimeoutError: pass\ns.settimeout(20); s.shutdown(1); say(n)")
    s = net.accept()
    sent = int(net.end())
    with open(f"/proc/{relay_of(net)}/smaps_rollup", encoding="ascii") as f:
        memory = next(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))
    assert sent < 16 << 20 and memory < 1024
    got = 0
    while data := s.recv(1 << 20):
        got += len(data)
    assert got == sent


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


def test_many_connections(net):
    """256 are carried, the others wait for one of them to end."""
    net.begin("""
socks = [connect() for _ in range(300)]
for i, s in enumerate(socks): s.sendall(b'%d ' % i)
ok = 0
for i, s in enumerate(socks):
    ok += s.recv(99) == b'%d ' % i
    s.close()
say(ok)""")
    carried = [net.accept() for _ in range(256)]
    net.listener.settimeout(0.3)
    with pytest.raises(TimeoutError):
        net.accept()
    net.listener.settimeout(20)
    with serving(net, echo):
        for s in carried:
            threading.Thread(target=echo, args=(s,), daemon=True).start()
        assert net.end() == "300"


@pytest.mark.parametrize("client, proxy", [
    ("pass", lambda s: None),
    ("s.shutdown(1)", lambda s: None),
    ("pass", lambda s: s.shutdown(socket.SHUT_WR)),
    ("s.setblocking(False)\ntry:\n    while True: s.send(b'x' * 65536)\nexcept BlockingIOError: pass\ns.shutdown(1)",
     lambda s: None),
    ("s.setblocking(False)\ntry:\n    while True: s.send(b'x' * 65536)\nexcept BlockingIOError: pass",
     lambda s: s.shutdown(socket.SHUT_WR)),
    ("time.sleep(0.3)", lambda s: [s.sendall(b"x" * 100000), s.close()]),
    ("time.sleep(0.3)", lambda s: [s.setblocking(False), fill(s), s.close()]),
])
def test_relay_sleeps_while_nothing_moves(net, client, proxy):
    net.begin(f"s = connect()\n{client}")
    s = net.accept()
    proxy(s)
    net.end()
    pid = relay_of(net)
    time.sleep(0.1)
    before = processor_time(pid)
    time.sleep(0.5)
    assert processor_time(pid) - before < 0.1


def fill(s):
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(b"x" * 65536)


# A proxy that is away

def test_proxy_is_away_for_a_while(net):
    """Nobody takes connections off a backlog that is full."""
    net.listener.listen(0)
    net.begin("a, b, c = connect(), connect(), connect(); c.sendall(b'third'); say(c.recv(99))")
    time.sleep(1)
    pid = relay_of(net)
    before = processor_time(pid)
    time.sleep(0.5)
    assert processor_time(pid) - before < 0.1
    with serving(net, echo):
        assert net.end() == "b'third'"


def test_proxy_is_gone(net):
    net.listener.close()
    begun = time.monotonic()
    out = net.run("s = connect()\ntry: say(s.recv(1))\nexcept ConnectionResetError: say('reset')")
    assert out == "reset" and 4 < time.monotonic() - begun < 8
    assert net.run("s = connect(); s.close(); say(1)") == "1"


def test_client_that_waits_in_vain_may_go(net):
    net.listener.close()
    net.run("s = connect(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()")
    pid = relay_of(net)
    net.agent.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) == FDS_IDLE)


# The relay itself

def test_relay_is_killed(net):
    with serving(net, echo):
        net.run("x = 41; s = connect(); s.sendall(b'1'); s.recv(1); first = relays()")
        out = net.run("""
os.kill(first[0], 9)
try: say(s.recv(1))
except ConnectionResetError: say('reset')
t = connect(); t.sendall(b'next'); say(t.recv(99)); say(x + 1); say(relays() != first and len(relays()))""")
    assert out in ("resetb'next'421", "b''b'next'421")


def test_relay_that_is_killed_again_and_again(net):
    """Pauses grow, nothing else suffers."""
    with serving(net, echo):
        killed = int(net.run("""
killed = 0; end = time.monotonic() + 2
while time.monotonic() < end:
    for pid in relays():
        try: os.kill(pid, 9); killed += 1
        except ProcessLookupError: pass
    time.sleep(0.001)
say(killed)"""))
        assert 2 < killed < 40
        assert net.run("t = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_everything_is_killed(net):
    """kill -9 -1 of a shell."""
    with serving(net, echo):
        with contextlib.suppress(AssertionError):
            net.agent.turn("os.kill(-1, 9)")
        assert net.run(CLIENT + "\nt = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_signals_are_nothing_to_it(net):
    assert net.run("""
first = relays()
for sig in range(1, 65):
    if sig not in (9, 19):
        os.kill(first[0], sig)
time.sleep(0.2); say(relays() == first)""") == "True"


def test_turn_that_is_stopped_leaves_it_alone(net):
    with serving(net, echo):
        net.run("s = connect(); first = relays()")
        net.agent.begin("signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)", timeout=0.2)
        assert net.agent.end().state == "lost"
        assert net.run(CLIENT + "\nsay(relays())") == net.run("say(relays())")
        assert net.run("t = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_code_cannot_look_into_it(net):
    assert net.run("""
import ctypes
pid = relays()[0]; libc = ctypes.CDLL(None, use_errno=True)
for name in 'fd/3', 'mem', 'environ', 'maps':
    try: open('/proc/%d/%s' % (pid, name)); say('open ' + name)
    except PermissionError: say('no ')
say(libc.ptrace(16, pid, 0, 0))
fd = os.pidfd_open(pid)
say(libc.syscall(438, fd, 4, 0))
status = dict(line.split(':', 1) for line in open('/proc/%d/status' % pid))
say(status['NoNewPrivs'].strip() + status['CapEff'].strip() + status['CapBnd'].strip())
""") == "no no no no -1-11" + "0" * 32


def test_relay_keeps_few_descriptors(net):
    net.run("")
    pid = relay_of(net)
    fds = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert [fds.pop(n) for n in range(3)] == ["/dev/null"] * 3
    kinds = sorted(where.split(":")[0] for where in fds.values())
    assert len(fds) == FDS_IDLE - 3 and kinds[1:] == ["anon_inode", "socket", "socket"]
    with serving(net, echo):
        net.run("s = [connect() for _ in range(20)]\nfor c in s: c.sendall(b'x'); c.recv(1); c.close()")
        net.agent.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) == FDS_IDLE)


def test_port_is_taken(net):
    assert net.run("""
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::1')):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try: s.bind((host, 3128)); say('taken over')
    except OSError: say('no ')""") == "no no no "


# The environment of interpreters

SHOW = "say(sorted((k, v) for k, v in os.environ.items() if 'proxy' in k.lower()))"


def test_variables(net):
    url = "http://127.0.0.1:3128"
    expected = {"NODE_USE_ENV_PROXY": "1", "NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
                **{name: url for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")}}
    assert net.run(SHOW) == str(sorted(expected.items()))


def test_without_a_network():
    with Agent(jail=True) as a:
        a.turn(CLIENT)
        assert a.turn(SHOW).out == b"[]"
        assert a.turn("try: connect()\nexcept ConnectionRefusedError: say('refused')").out == b"refused"
        assert a.turn("say(relays())").out == b"[]"


def test_in_a_closure():
    """The agent makes namespaces of its own first."""
    store = tempfile.mkdtemp(prefix="nix-sandbox-store-")
    os.mkdir(os.path.join(store, "one"))
    listed, allow = os.memfd_create("list"), os.memfd_create("filter")
    os.write(listed, f"{store}\0one\0".encode())
    os.write(allow, struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    for fd in (listed, allow):
        os.lseek(fd, 0, os.SEEK_SET)
    try:
        with Net(fds=(listed, allow)) as n:
            with serving(n, echo):
                assert n.run(f"s = connect(); s.sendall(b'x'); say(s.recv(1)); say(os.listdir({store!r}))") == "b'x'['one']"
    finally:
        os.close(listed)
        os.close(allow)
        shutil.rmtree(store)


# In the jails of sandboxd, by a bubblewrap that gives the agent what the daemon does not give it yet

WRAPPER = """#!/usr/bin/python3 -ISE
import os, sys
fd = os.open({path!r}, os.O_PATH)
os.set_inheritable(fd, True)
os.execv({bwrap!r}, sys.argv + [f"network={{fd}}"])
"""


@pytest.mark.parametrize("closed", [False, True])
def test_in_a_jail_of_the_daemon(start, closed):
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(removed(public_directory()))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        path, bwrap = os.path.join(directory, "proxy"), os.path.join(directory, "bwrap")
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen()
        listener.settimeout(20)
        with open(bwrap, "w", encoding="utf-8") as f:
            f.write(WRAPPER.format(path=path, bwrap=shutil.which("bwrap")))
        os.chmod(bwrap, 0o755)
        config = stack.enter_context(Closure()).config() if closed else None
        d = start(config, env={"PATH": f"{directory}:{os.environ['PATH']}"})
        link = d.begin("exec 9<>/dev/tcp/127.0.0.1/3128; echo ping >&9; read -u 9 x; echo $x $http_proxy", session="s",
                       env="closed" if closed else "shell", **({"interpreter": "bash"} if closed else {}))
        s, _ = listener.accept()
        assert s.recv(99) == b"ping\n"
        s.sendall(b"pong\n")
        assert link.answer()["stdout"] == "pong http://127.0.0.1:3128\n"
        s.close()

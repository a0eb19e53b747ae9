# SPDX-License-Identifier: MIT
"""What goes through the agent's relay, from the loopback of a jail to a socket outside."""
import contextlib
import hashlib
import os
import select
import socket
import struct
import threading
import time

import pytest

from relaylib import echo, needs_jails, net, processor_time, relay_of, serving, wait_closed  # noqa: F401

pytestmark = needs_jails


# What goes through

@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_echo(net, host):
    net.begin(f"s = connect({host!r}); s.sendall(b'ping'); say(s.recv(99)); s.close()")
    s = net.accept()
    assert s.recv(99) == b"ping"
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).startswith(b"reno\0")
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


def test_many_connections(net):
    """The proxy takes none at first: some are in its backlog, 256 with the relay, the others behind these."""
    net.listener.listen(3)
    net.begin("""
socks = [connect() for _ in range(300)]
for i, s in enumerate(socks): s.sendall(b'%d ' % i)
ok = 0
for i, s in enumerate(socks):
    ok += s.recv(99) == b'%d ' % i
    s.close()
say(ok)""")
    pid = relay_of(net)
    net.agent.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) >= 256)
    time.sleep(0.3)
    assert len(os.listdir(f"/proc/{pid}/fd")) < 270
    with serving(net, echo):
        assert net.end() == "300"


def test_little_is_left_to_the_relay(net):
    """What goes through costs it nothing, as it is not there."""
    def take(s):
        with s:
            while s.recv(1 << 20):
                pass
    pid = relay_of(net)
    before = processor_time(pid)
    with serving(net, take):
        net.run("s = connect()\nfor _ in range(500): s.sendall(bytes(1 << 20))\ns.close()")
    assert processor_time(pid) - before < 0.05


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

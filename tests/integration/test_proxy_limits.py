# SPDX-License-Identifier: MIT
"""Bounds of a session: connections, rate, bytes in all, time. What is over them is told, cut or made to wait; others do
not notice."""
import threading
import time

import pytest

from daemonlib import wait_for
from netlib import PUBLIC4
from weblib import BLOB, ECHO, HELLO, MUTE, SINK, SOURCE, blob

MIB = 1 << 20
PORTS = (HELLO, BLOB, ECHO, MUTE, SINK, SOURCE)
RULES = ["a.example", *(f"a.example:{port}" for port in PORTS)]


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("a.example", PUBLIC4)


def drain(c, seconds):
    """Bytes that come in so long."""
    end, size = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = c.socket.recv(1 << 18)
        if not data:
            break
        size += len(data)
    return size


def in_threads(function, arguments):
    """function of each argument, all at once; what they return."""
    results = {}

    def run(n, argument):
        results[n] = function(argument)
    threads = [threading.Thread(target=run, args=(n, a), daemon=True) for n, a in enumerate(arguments)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(results) == len(threads)
    return [results[n] for n in range(len(threads))]


def test_connections_at_once(session):
    s, other = (session(*RULES, limits={"connections": 3}) for _ in range(2))
    clients = [s.connect().opened("a.example:7") for _ in range(3)]
    answer = s.connect().tunnel("a.example:7")
    assert answer.status in (429, 503) and "a.example:7" in answer.text and "onnections" in answer.text
    assert s.connect().get("http://a.example/").status == answer.status
    assert s.connect().socks("a.example", ECHO) != 0
    assert s.wait_usage(lambda u: u["refused"] == 3)["connections"] == 3
    assert other.connect().opened("a.example:7")
    clients[0].close()
    s.wait_usage(lambda u: u["connections_open"] == 2)
    assert s.connect().opened("a.example:7")


def test_questions_of_clients_that_have_left(world, session):
    """They cannot be taken back: there are as many as places for clients, whoever asks next."""
    names = [f"silent{n}.example" for n in range(21)]
    s, other = session(*names, limits={"connections": 4}), session(*RULES)
    for name in names:
        world.dns.set(name, silent=True)
        c = s.connect()
        c.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n")
        if name != names[-1]:
            wait_for(lambda: world.dns.questions(name))
            c.close()
    for _ in range(3):
        assert other.connect().get("http://a.example/").status == 200
    assert not world.dns.questions(names[-1])


@pytest.mark.parametrize("rate", [1, 4])
def test_rate_down(session, rate):
    """Also of several connections together; the ratio to what is configured is what counts."""
    s = session(*RULES, limits={"rate_mbps": rate})
    clients = [s.connect().opened(f"a.example:{SOURCE}") for _ in range(3)]
    in_threads(lambda c: drain(c, 0.5), clients)                # what may come at once
    got = in_threads(lambda c: drain(c, 2), clients)
    assert 0.7 < sum(got) / (2 * rate * MIB) < 1.25
    assert max(got) < 2 * min(got)                              # each has its part


def test_rate_up(session):
    s = session(*RULES, limits={"rate_mbps": 2})
    c = s.connect().opened(f"a.example:{SINK}")
    start = time.monotonic()
    c.send(blob(4 * MIB))
    c.end()
    assert c.finish()[0].startswith(b"%d " % (4 * MIB))
    assert 1.5 < time.monotonic() - start < 4                   # 2 s without what may go at once


def test_a_waiting_session_is_not_in_the_way_of_others(session):
    slow, fast = session(*RULES, limits={"rate_mbps": 0.01}), session(*RULES)
    c = slow.connect().opened(f"a.example:{SOURCE}")
    c.send("x")
    start = time.monotonic()
    other = fast.connect().opened(f"a.example:{BLOB}")
    other.send(f"{8 * MIB}\n")
    assert other.digest()[0] == 8 * MIB
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("way", ["down", "up", "body"])
def test_bytes_in_all(session, way):
    s = session(*RULES, limits={"transfer_mb": 1})
    c = s.connect()
    if way == "down":
        c.opened(f"a.example:{SOURCE}").send("x")
    elif way == "up":
        c.opened(f"a.example:{SINK}").try_send(blob(4 * MIB))
    else:
        c.try_send(b"POST http://a.example/echo?bytes HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4000000\r\n\r\n" + blob(4 * MIB))
    got, clean = c.finish()
    assert not clean and len(got) <= MIB
    usage = s.wait_usage(lambda u: u["connections_open"] == 0 and u["bytes_in"] + u["bytes_out"] >= MIB)
    assert usage["bytes_in"] + usage["bytes_out"] == MIB
    for answer in (s.connect().tunnel("a.example:7"), s.connect().get("http://a.example/")):
        assert answer.status in (403, 429, 503) and "a.example:" in answer.text
    assert s.connect().socks("a.example", ECHO) != 0


def test_bytes_cut_all_connections(session):
    s = session(*RULES, limits={"transfer_mb": 1})
    idle = s.connect().opened("a.example:7")
    idle.send("x")
    assert idle.exactly(1) == b"x"
    s.connect().opened(f"a.example:{SOURCE}").finish()
    assert idle.finish() == (b"", False)


def test_bytes_of_before_count(session):
    used = {"connections_open": 0, "connections": 5, "refused": 1, "failed": 2, "bytes_in": MIB - 1000, "bytes_out": 500}
    s = session(*RULES, limits={"transfer_mb": 1}, used=used)
    c = s.connect().opened(f"a.example:{SOURCE}")
    got, clean = c.finish()
    assert not clean and len(got) <= 500
    assert s.remove() == {**used, "connections": 6, "bytes_in": MIB - 500}


@pytest.mark.parametrize("how", ["tunnel", "http"])
def test_idle(session, how):
    s = session(*RULES, limits={"idle_seconds": 1})
    start, c = time.monotonic(), s.connect(wait=20)
    if how == "tunnel":
        c.opened(f"a.example:{MUTE}")
    else:
        c.send("POST http://a.example/echo?idle HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhalf")
    got, clean = c.finish()
    assert (got, clean) == (b"", False) if how == "tunnel" else got.startswith((b"HTTP/1.1 408", b"HTTP/1.1 504"))
    assert 0.9 < time.monotonic() - start < 5
    s.wait_gone()


def test_not_idle(session):
    """A byte now and then, in one direction only, is enough."""
    s = session(*RULES, limits={"idle_seconds": 1})
    c = s.connect().opened(f"a.example:{SINK}")
    for _ in range(8):
        time.sleep(0.3)
        c.send("x")
    c.end()
    assert c.finish()[0].startswith(b"8 ")


def test_total(session):
    s = session(*RULES, limits={"total_seconds": 1, "rate_mbps": 1})
    start = time.monotonic()
    c = s.connect(wait=10).opened(f"a.example:{SOURCE}")
    _, clean = c.finish()
    assert not clean and 0.9 < time.monotonic() - start < 5


def test_two_hundred_transfers(session):
    size = MIB // 4
    s = session(*RULES, limits={"connections": 200})
    clients = [s.connect().opened(f"a.example:{BLOB}") for _ in range(200)]
    for c in clients:
        c.send(f"{size}\n")
    expected = blob(size)
    assert all(in_threads(lambda c: c.exactly(size) == expected, clients))
    assert s.wait_usage(lambda u: u["bytes_in"] >= 200 * size)["bytes_in"] == 200 * size


def greedy(s, stop):
    """A client that takes all that comes, as fast as it does."""
    c = s.connect().opened(f"a.example:{SOURCE}")
    into = bytearray(1 << 18)

    def take():
        while not stop.is_set() and c.socket.recv_into(into):
            pass
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("limits", [{}, {"rate_mbps": 8}], ids=["full speed", "limited"])
def test_one_greedy_connection_starves_nobody(session, limits):
    s, other = session(*RULES, limits=limits), session(*RULES)
    stop = threading.Event()
    thread = greedy(s, stop)
    try:
        s.wait_usage(lambda u: u["bytes_in"] > MIB)
        for of in (s, other):
            c = of.connect().opened("a.example:7")
            times = []
            for _ in range(20):
                start = time.monotonic()
                c.send("ping")
                assert c.exactly(4) == b"ping"
                times.append(time.monotonic() - start)
            assert sorted(times)[10] < 0.3, times
    finally:
        stop.set()
        thread.join(30)


def test_no_descriptors_left(world):
    """Connections wait then; the proxy does not turn in circles, and goes on when there are some."""
    with world.another_proxy(files=48) as proxy:
        s = proxy.session(*RULES)
        clients = [s.connect() for _ in range(80)]
        opened = []
        for c in clients[:60]:
            c.try_send(b"CONNECT a.example:7 HTTP/1.1\r\nHost: a.example:7\r\n\r\n")
        wait_for(lambda: proxy.fds() >= 44)
        before = proxy.cpu_seconds()
        time.sleep(1.5)                 # that long it has nothing to do
        assert proxy.cpu_seconds() - before < 0.3
        for c in clients:
            c.close()
        opened = wait_for(lambda: proxy.fds() < 40)
        assert opened
        assert s.connect().get("http://a.example/").status == 200
        s.close()


def test_doing_nothing_costs_nothing(world, session):
    s = session(*RULES)
    clients = [s.connect().opened(f"a.example:{MUTE}") for _ in range(20)]
    clients.append(s.connect().opened(f"a.example:{SOURCE}"))    # whose bytes nobody takes
    s.wait_usage(lambda u: u["bytes_in"] > 0)
    wait_for(lambda: sum(len(c.socket.recv(1, 0x42)) for c in clients[-1:]) == 1)
    before = world.proxy.cpu_seconds()
    time.sleep(1)
    assert world.proxy.cpu_seconds() - before < 0.1

# SPDX-License-Identifier: MIT
"""What goes wrong around the proxy: clients, servers, name servers and the daemon that do what they should not."""
import contextlib
import os
import random
import socket
import subprocess
import time

import pytest

from daemonlib import wait_for
from netlib import CLOSED4, DEAD4, NAME_SERVER, OTHER_NAME_SERVER, PUBLIC4
from proxylib import ADD, CHANGE, HEADER, PROXY, REMOVE, STRANGER, WAIT, Proxy, Session, tcp_pair
from weblib import BLOB, HELLO, LATE_RESET, MUTE, RESET, SOURCE, reset

PORTS = (HELLO, BLOB, MUTE, RESET, LATE_RESET, SOURCE)
RULES = ["a.example", "a.example:7", *(f"a.example:{port}" for port in PORTS)]


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("a.example", PUBLIC4)


@pytest.fixture
def proxy(world):
    """One for this test alone, which may end it."""
    p = Proxy(world.network)
    yield p
    p.kill()


def wait_for_rest(proxy):
    """The number of its descriptors when nothing goes on any more of what was before."""
    def at_rest():
        first = proxy.fds()
        time.sleep(0.05)
        return proxy.fds() == first and first
    return wait_for(at_rest)


# ---- clients ----

def test_garbage_from_clients(world, session):
    s = session(*RULES)
    numbers = random.Random(7)
    starts = [b"", b"GET ", b"CONNECT ", b"\x05", b"\x05\x01\x00", b"\x05\x01\x00\x05\x01\x00", b"\x04", b"\x16\x03\x01",
              b"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"]
    world.contacts()
    for n in range(200):
        c = s.connect()
        c.try_send(starts[n % len(starts)] + numbers.randbytes(numbers.randrange(3000)))
        if n % 3:
            with contextlib.suppress(OSError):
                c.end()
        if n % 2:
            c.close()
        elif n % 3:
            c.finish()
    assert s.connect().get("http://a.example/").status == 200
    assert {a for a, _ in world.contacts()} <= {PUBLIC4}


@pytest.mark.parametrize("when", ["at once", "in the head", "while the name is looked up", "while it connects", "in the tunnel"])
def test_client_that_goes_away(world, session, when):
    """Its connection is gone, and the number of open ones right."""
    world.dns.set("silent.example", silent=True)
    world.dns.set("dead.example", DEAD4)
    s = session("silent.example", "dead.example", f"a.example:{MUTE}")
    s.settled()
    before = wait_for_rest(world.proxy)
    c = s.connect()
    if when == "in the head":
        c.send("CONNECT silent.exa")
    elif when == "while the name is looked up":
        c.send("CONNECT silent.example:443 HTTP/1.1\r\nHost: silent.example:443\r\n\r\n")
        wait_for(lambda: world.dns.questions("silent.example"))
    elif when == "while it connects":
        world.contacts()
        c.send("CONNECT dead.example:443 HTTP/1.1\r\nHost: dead.example:443\r\n\r\n")
        wait_for(lambda: (DEAD4, 443) in world.contacts())
    elif when == "in the tunnel":
        c.opened(f"a.example:{MUTE}").send("goes away")
    if when != "at once":
        during = wait_for(lambda: (n := world.proxy.fds()) > before and n)
    if when in ("while the name is looked up", "while it connects"):
        reset(c.socket)                 # whoever ends his half only may wait for an answer
    else:
        c.close()
    if when == "in the tunnel":
        assert world.internet.find_taken(b"goes away")
    # The question to a name server goes on.
    wait_for(lambda: world.proxy.fds() < during if when == "while the name is looked up" else world.proxy.fds() == before)
    assert s.remove()["connections_open"] == 0


def test_connection_that_is_cut_resets_its_server(world, session):
    """A half-finished upload is not complete for the server."""
    s = session(f"a.example:{MUTE}")
    c = s.connect().opened(f"a.example:{MUTE}")
    c.send("half of it")
    s.wait_usage(lambda u: u["bytes_out"] == 10)
    s.remove()
    assert world.internet.find_taken(b"half of it") == (b"half of it", False)


def test_half_a_body_does_not_arrive_as_a_whole(world, session):
    """The client ends within it: the server must see that, too."""
    s = session("a.example")
    c = s.connect()
    c.send("POST http://a.example/half HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100\r\n\r\nhalf")
    s.wait_usage(lambda u: u["bytes_out"] > 4)
    c.end()
    c.finish()
    assert world.internet.find_taken(b"POST /half ")[1] is False
    assert not [r for r in world.internet.requests if r.path == "/half"]


def test_foreign_users_are_refused(world, session):
    """The socket lies where others may get at it; who connects is looked at."""
    s = session("a.example")
    world.contacts()
    for _ in range(3):
        with contextlib.suppress(BrokenPipeError):      # it may be closed already when the client is sent
            c = s.connect(uid=STRANGER)
            assert c.request(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n") is None
    assert not world.contacts()
    assert s.connect().get("http://a.example/").status == 200


@pytest.mark.parametrize("what", ["nothing", "pipe", "Unix", "UDP", "listening", "unconnected", "several"])
def test_what_is_handed_over(world, session, what):
    """It is one connection, or it is gone; nothing is kept."""
    s = session("a.example:7")
    s.settled()
    before = wait_for_rest(world.proxy)
    with contextlib.ExitStack() as stack:
        add = stack.enter_context
        sockets = {
            "nothing": lambda: [],
            "pipe": lambda: [add(os.fdopen(fd, "rb" if n == 0 else "wb")) for n, fd in enumerate(os.pipe())][1:],
            "Unix": lambda: [add(end) for end in socket.socketpair()][1:],
            "UDP": lambda: [add(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))],
            "listening": lambda: [add(socket.create_server(("127.0.0.1", 0)))],
            "unconnected": lambda: [add(socket.socket())],
            "several": lambda: [add(end) for _ in range(3) for end in tcp_pair()[::-1]],
        }[what]()
        for _ in range(20):
            s.hand_over(*sockets)
        if what == "several":           # the first is one, and the others are none
            wait_for(lambda: world.proxy.fds() == before + 20)
            sockets[1].shutdown(socket.SHUT_WR)
        wait_for(lambda: world.proxy.fds() == before)
    assert s.connect().opened("a.example:7")


def test_socket_that_blocks(world, session):
    """What comes may be as it likes: nobody waits for it."""
    s = session(f"a.example:{SOURCE}", "a.example")
    ours, theirs = tcp_pair()
    with ours, theirs:
        theirs.setblocking(True)
        s.hand_over(theirs)
        ours.sendall(f"CONNECT a.example:{SOURCE} HTTP/1.1\r\nHost: a.example:{SOURCE}\r\n\r\n".encode())
        s.wait_usage(lambda u: u["bytes_in"] > 100000)          # nobody reads it
        assert s.connect().get("http://a.example/").status == 200


def test_proxy_that_is_killed_resets_both(world, proxy):
    """Nothing that it carried may look whole."""
    s = proxy.session(f"a.example:{MUTE}")
    c = s.connect().opened(f"a.example:{MUTE}")
    c.send("half of what was to come")
    s.wait_usage(lambda u: u["bytes_out"] == 24)
    proxy.process.kill()
    assert c.finish() == (b"", False)
    assert world.internet.find_taken(b"half of what was to come") == (b"half of what was to come", False)


# ---- servers ----

@pytest.mark.parametrize("port, first", [(RESET, b""), (LATE_RESET, b"hello")])
def test_reset_of_the_server_is_a_reset(session, port, first):
    c = session(*RULES).connect().opened(f"a.example:{port}")
    if first:
        assert c.exactly(5) == first
    c.send("x")
    assert c.finish() == (b"", False)


def test_end_of_the_server_is_an_end(session):
    s = session(*RULES)
    c = s.connect().opened(f"a.example:{HELLO}")
    assert c.finish() == (b"hello", True)
    c = s.connect()
    assert c.socks("a.example", HELLO) == 0
    assert c.finish() == (b"hello", True)


def test_end_of_a_request_is_an_end(session):
    c = session("a.example").connect()
    c.send("GET http://a.example/end HTTP/1.1\r\nHost: a.example\r\n\r\n")
    data, clean = c.finish()
    assert clean and data.endswith(b"hello\n")


def test_answer_that_is_cut_comes_as_far_as_it_came(session):
    answer = session("a.example").connect().get("http://a.example/cut")
    assert answer.body == b"hel" and answer.fields["content-length"] == "1000"


def test_nobody_listens(world, session):
    s = session("a.example:99")
    answer = s.connect().tunnel("a.example:99")
    assert answer.status == 502 and "a.example:99" in answer.text and "refused" in answer.text
    assert s.connect().socks("a.example", 99) == 5
    world.dns.set("closed.example", CLOSED4)
    s.change("closed.example")
    assert s.connect().get("http://closed.example/").status == 502
    assert s.connect().socks("closed.example", 443) in (3, 4)


# ---- name servers ----

def test_second_name_server_is_asked_where_the_first_is_silent(world):
    with world.another_proxy() as proxy, contextlib.closing(proxy.session("a.example")) as s:
        world.dns.silent.add(NAME_SERVER)
        try:
            proxy.name_servers(NAME_SERVER, OTHER_NAME_SERVER)
            assert s.connect().get("http://a.example/second-server").status == 200
        finally:
            world.dns.silent.clear()


def test_resolv_conf_that_has_changed(world):
    with world.another_proxy() as proxy, contextlib.closing(proxy.session("a.example")) as s:
        assert s.connect().get("http://a.example/").status == 200
        world.dns.servers.clear()
        proxy.name_servers(OTHER_NAME_SERVER)
        assert s.connect().get("http://a.example/").status == 200
        assert set(world.dns.servers) == {OTHER_NAME_SERVER}


def test_answers_that_are_garbage(world, session):
    """Whoever can send packets to the resolver cannot make it believe them, nor end the proxy."""
    s = session("a.example")
    forger = world.network.internet.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with forger:
        for port in range(32768, 33768):
            forger.sendto(os.urandom(40), ("45.10.20.2", port))
    assert s.connect().get("http://a.example/").status == 200


# ---- the daemon ----

def ends(proxy):
    """It ends by itself, and not by a signal."""
    status = proxy.process.wait(WAIT)
    assert status >= 0, proxy.logged()
    return status


@pytest.mark.parametrize("garbage", [
    b"\0\0\0\0", b"\0\0\0\x05hello", b"\xff\xff\xff\xff" + bytes(9), b"GET / HTTP/1.1\r\n\r\n",
    HEADER.pack(9, 77, 1), HEADER.pack(9, 16, 1), HEADER.pack(9, REMOVE, 12345), HEADER.pack(9 + 2, CHANGE, 12345) + b"{}",
    HEADER.pack(9 + 2, ADD, 1) + b"{}", HEADER.pack(9 + 3, ADD, 1) + b"\0\xff{",
], ids=range(10))
def test_control_garbage_ends_it(proxy, garbage):
    s = proxy.session("a.example:7")
    c = s.connect().opened("a.example:7")
    proxy.control.sendall(garbage)
    assert ends(proxy) != 0
    c.finish()                          # and with it all connections


@pytest.mark.parametrize("terms", [
    {"policy": {"environment": ["*.org"], "caller": None, "granted": []}, "limits": {}},
    {"policy": {"environment": [], "caller": None}, "limits": {}},
    {"policy": {"environment": [], "caller": None, "granted": []}, "limits": {"connections": 0}},
    {"policy": {"environment": [], "caller": None, "granted": []}, "limits": {}, "more": 1},
    {"policy": {"environment": [], "caller": None, "granted": []}, "limits": {}, "credentials": [{"host": "a.example"}]},
], ids=range(5))
def test_change_that_is_none_ends_it(proxy, terms):
    """To go on by the old rules, or without any, would be worse."""
    s = proxy.session("a.example")
    proxy.send(CHANGE, s.number, terms)
    assert ends(proxy) != 0


def test_add_with_a_number_that_is_in_use_ends_it(proxy):
    proxy.session("a.example")
    Session(proxy, 1, ["a.example"], path="again")
    assert ends(proxy) != 0


def test_daemon_that_is_gone_ends_it(world, proxy):
    s = proxy.session("a.example:7", f"a.example:{SOURCE}")
    c, busy = s.connect().opened("a.example:7"), s.connect().opened(f"a.example:{SOURCE}")
    proxy.control.shutdown(socket.SHUT_RDWR)
    assert ends(proxy) == 0
    assert c.finish()[0] == b""
    busy.finish()


def test_frames_in_pieces_and_many_at_once(world, proxy):
    s = proxy.session("b.example")
    payload = b'{"policy":{"environment":["a.example"],"caller":null,"granted":[]},"limits":{}}'
    for byte in HEADER.pack(9 + len(payload), CHANGE, s.number) + payload:
        proxy.control.sendall(bytes([byte]))
    s.settled()
    assert s.connect().get("http://a.example/").status == 200
    frame = HEADER.pack(9 + len(payload), CHANGE, s.number) + payload
    proxy.control.sendall(frame * 500)
    s.settled()
    assert s.connect().get("http://a.example/").status == 200


def test_many_sessions(proxy):
    """As many as there may be; all are answered, and the last one is served."""
    sessions = [proxy.session("a.example") for _ in range(1000)]
    assert sessions[-1].connect().get("http://a.example/").status == 200
    for s in sessions:
        proxy.send(REMOVE, s.number)
    proxy.wait(lambda: all(proxy.told(s.number, 19) for s in sessions[-1:]))
    assert sum(kind == 19 for kind, _, _ in list(proxy.frames)) == 1000


def test_daemon_that_does_not_read(world, proxy):
    """What it is to be told is bounded, and the sessions go on."""
    s = proxy.session("a.example")
    with proxy.changed:                 # its reader waits
        for n in range(40):
            s.connect().tunnel(f"host{n}.example:443")
        assert s.connect().get("http://a.example/").status == 200


def test_it_is_started_with_descriptor_3_or_not_at_all(world):
    done = subprocess.run([PROXY], stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT, check=False)
    assert done.returncode > 0 and done.stderr.strip()


def test_it_has_nothing_it_does_not_need(world):
    """No capability, no other descriptors than its own, no way to more privileges."""
    with open(f"/proc/{world.proxy.process.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert {status[n] for n in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {"0" * 16}

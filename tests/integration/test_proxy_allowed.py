# SPDX-License-Identifier: MIT
"""What a session may reach, it reaches: HTTP, tunnels and SOCKS5, and nothing of what goes through is changed."""
import hashlib

import pytest

from netlib import DEAD6, OTHER4, OTHER6, PUBLIC4, PUBLIC6
from weblib import BLOB, ECHO, HELLO, SINK, blob

MIB = 1 << 20


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("a.example", PUBLIC4)
    world.dns.set("six.example", PUBLIC6)
    world.dns.set("tls.example", OTHER4)
    world.dns.set("deep.below.example.org", PUBLIC4)


def test_tunnel_by_name(world, session):
    s = session("a.example:7")
    c = s.connect().opened(f"a.example:{ECHO}")
    c.send("there and back")
    assert c.exactly(14) == b"there and back"
    assert world.contacts() == [(PUBLIC4, ECHO)]
    # One question for each family, of one server.
    assert sorted(world.dns.questions("a.example")) == [1, 28]


def test_what_comes_right_behind_connect_is_the_tunnels(session):
    c = session("a.example:7").connect()
    c.send(b"CONNECT a.example:7 HTTP/1.1\r\nHost: a.example:7\r\n\r\nearly")
    assert c.answer(body=False).status == 200
    assert c.exactly(5) == b"early"


def test_tls_through_a_tunnel(world, session):
    c = session("tls.example").connect().opened("tls.example:443")
    assert c.inbox == b""
    with world.certificate.client.wrap_socket(c.socket, server_hostname="tls.example") as secure:
        secure.sendall(b"GET /tls HTTP/1.1\r\nHost: tls.example\r\n\r\n")
        assert secure.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert world.internet.find("/tls")[0].local == (OTHER4, 443)


def test_get(world, session):
    answer = session("a.example").connect().get("http://a.example/get?x=1")
    assert (answer.status, answer.body) == (200, b"hello\n")
    assert answer.fields["server"] == "ours"
    request, = world.internet.find("/get")
    assert request.line == "GET /get?x=1 HTTP/1.1"
    assert request.values("Host") == ["a.example"]
    assert request.values("Connection") == ["close"]
    assert not request.values("Via") and not request.values("X-Forwarded-For")
    assert request.local == (PUBLIC4, 80)
    assert request.rest == b""


def test_fields_arrive_but_for_those_of_the_proxy(world, session):
    session("a.example").connect().get("http://a.example/fields", more="Accept: a/b\r\nProxy-Authorization: Basic eA==\r\n"
                                       "Proxy-Connection: keep-alive\r\nX-Hop: 1\r\nConnection: x-hop\r\nX-Last: z\r\n")
    request, = world.internet.find("/fields")
    names = [name.lower() for name, _ in request.fields]
    assert request.values("Accept") == ["a/b"] and request.values("X-Last") == ["z"]
    assert not {"proxy-authorization", "proxy-connection", "x-hop"} & set(names)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_body_with_a_length(world, session, method):
    body = blob(300000)
    answer = session("a.example").connect().get("http://a.example/echo?" + method, method, f"Content-Length: {len(body)}\r\n", body)
    assert answer.status == 200 and answer.body == body
    assert world.internet.find("/echo")[-1].method == method


def test_chunked_body(world, session):
    answer = session("a.example").connect().get("http://a.example/echo?chunked", "POST", "Transfer-Encoding: chunked\r\n",
                                                b"4\r\nabcd\r\n00A\r\n0123456789\r\n0\r\nSum: 1\r\n\r\n")
    assert answer.body == b"abcd0123456789"
    request = world.internet.find("/echo")[-1]
    assert request.values("Transfer-Encoding") == ["chunked"] and not request.values("Content-Length")
    assert request.rest == b""


def test_head(session):
    answer = session("a.example").connect().get("http://a.example/", "HEAD")
    assert (answer.status, answer.body, answer.fields["content-length"]) == (200, b"", "6")


def test_100_continue(world, session):
    c = session("a.example").connect()
    c.send("POST http://a.example/echo?100 HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    assert c.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    c.send("body")
    answer = c.answer()
    assert (answer.status, answer.body) == (200, b"body")


def test_answer_in_chunks_comes_as_it_is(session):
    c = session("a.example").connect()
    answer = c.get("http://a.example/chunks")
    assert answer.fields["transfer-encoding"] == "chunked"
    assert answer.body == b"5\r\nhello\r\n1;x=y\r\n\n\r\n0\r\nSum: 1\r\n\r\n"


def test_http_1_0(world, session):
    answer = session("a.example").connect().request(b"GET http://a.example/old HTTP/1.0\r\n\r\n")
    assert answer.status == 200
    request, = world.internet.find("/old")
    assert request.version == "HTTP/1.0" and request.values("Host") == ["a.example"]


def test_socks_by_name(world, session):
    c = session("a.example:7").connect()
    assert c.socks("a.example", ECHO) == 0
    c.send("there and back")
    assert c.exactly(14) == b"there and back"
    assert world.contacts() == [(PUBLIC4, ECHO)]


@pytest.mark.parametrize("address", [PUBLIC4, PUBLIC6])
def test_socks_by_address(world, session, address):
    rule = f"[{address}]:7" if ":" in address else f"{address}:7"
    c = session(rule).connect()
    assert c.socks(address, ECHO) == 0
    assert world.contacts() == [(address, ECHO)]


def test_bytes_one_by_one(session):
    """A request is the same however it is cut."""
    s = session("a.example", "a.example:7")
    c = s.connect()
    for byte in b"GET http://a.example/slowly HTTP/1.1\r\nHost: a.example\r\n\r\n":
        c.send(bytes([byte]))
    assert c.answer().status == 200
    c = s.connect()
    for byte in b"\x05\x01\x00\x05\x01\x00\x03\x09a.example\x00\x07":
        c.send(bytes([byte]))
    assert c.exactly(12)[:4] == b"\x05\x00\x05\x00"


def test_ipv6(world, session):
    s = session("six.example:7", f"[{OTHER6}]")
    c = s.connect().opened("six.example:7")
    c.send("six")
    assert c.exactly(3) == b"six"
    assert s.connect().get(f"http://[{OTHER6}]/six").status == 200
    assert world.internet.find("/six")[0].values("Host") == [f"[{OTHER6}]"]
    assert world.contacts() == [(PUBLIC6, ECHO), (OTHER6, 80)]


def test_ipv6_that_does_not_answer_is_not_waited_for(world, session):
    world.dns.set("both.example", DEAD6, PUBLIC4)
    answer = session("both.example").connect().get("http://both.example/both")
    assert answer.status == 200
    assert world.internet.find("/both")[0].local == (PUBLIC4, 80)


def test_name_server_that_refuses_is_told(world, session):
    world.dns.set("broken.example", code=2)
    s = session("broken.example", "none.example")
    assert s.connect().get("http://broken.example/").status == 502
    assert s.connect().get("http://none.example/").status == 502
    assert s.wait_usage(lambda u: u["failed"] == 2)["refused"] == 0


def test_hosts_file(world, session):
    """What the administrator wrote into /etc/hosts counts, and is judged as what DNS says."""
    s = session("inner.example", "10.0.0.9")
    assert s.connect().get("http://inner.example/hosts").status == 200
    assert world.contacts() == [("10.0.0.9", 80)]


@pytest.mark.parametrize("rules, allowed, refused", [
    (["a.example"], ["a.example:80", "a.example:443", "A.EXAMPLE:443", "a.example.:80"],
     ["a.example:7", "a.example:8080", "b.a.example:80"]),
    (["a.example:8080"], ["a.example:8080"], ["a.example:80", "a.example:443"]),
    (["*.example.org"], ["deep.below.example.org:80"], ["example.org:80", "xexample.org:80", "a.example:80"]),
    (["*.example.org", "!deep.below.example.org"], [], ["deep.below.example.org:80"]),
    (["*.below.example.org", "!deep.below.example.org:443"], ["deep.below.example.org:80"], ["deep.below.example.org:443"]),
    ([PUBLIC4], [f"{PUBLIC4}:80"], ["a.example.org:80", f"{OTHER4}:80"]),
    ([f"[{PUBLIC6}]:443"], [f"[{PUBLIC6}]:443", "[2606:2800:0220::0:34]:443"], [f"[{PUBLIC6}]:80", f"[{OTHER6}]:443"]),
    ([], [], ["a.example:80", f"{PUBLIC4}:80"]),
])
def test_rules(world, session, rules, allowed, refused):
    s = session(*rules)
    for target in allowed:
        assert s.connect().tunnel(target).status == 200, target
    world.contacts()
    for target in refused:
        answer = s.connect().tunnel(target)
        assert answer.status == 403, target
    assert not world.contacts()


def test_narrowed_and_granted(world, session):
    for name in ("b.example", "c.example", "g.example"):
        world.dns.set(name, PUBLIC4)
    s = session("*.example.org", "a.example", "b.example", caller=["b.example", "c.example"], granted=["g.example:7"])
    assert [s.connect().tunnel(f"{name}:80").status for name in ("a.example", "b.example", "c.example")] == [403, 200, 403]
    assert s.connect().tunnel("g.example:7").status == 200
    assert s.connect().tunnel("g.example:80").status == 403
    assert {(r["host"], r["verdict"]) for r in (s.wait_refused(h)[0] for h in ("a.example", "c.example", "g.example"))} == \
        {("a.example", "narrowed"), ("c.example", "not-listed"), ("g.example", "not-listed")}


def test_a_private_address_that_is_listed_is_reached(world, session):
    world.dns.set("inside.example", "10.1.2.3")
    s = session("inside.example", "10.1.2.3")
    assert s.connect().get("http://inside.example/inside").status == 200
    assert world.internet.find("/inside")[0].local == ("10.1.2.3", 80)


def test_half_close_by_the_client(session):
    c = session("a.example:9").connect().opened(f"a.example:{SINK}")
    data = blob(MIB)
    c.send(data)
    c.end()
    assert c.finish() == (f"{MIB} {hashlib.sha256(data).hexdigest()}".encode(), True)


def test_half_close_by_the_server(world, session):
    c = session("a.example:27").connect().opened(f"a.example:{HELLO}")
    assert c.finish() == (b"hello", True)
    c.send("still goes through")        # no error: that direction is open
    c.end()


def test_closed_by_both_is_gone(session):
    s = session("a.example:27")
    c = s.connect().opened(f"a.example:{HELLO}")
    c.finish()
    s.wait_usage(lambda u: u["connections_open"] == 1)
    c.close()
    s.wait_gone()


@pytest.mark.parametrize("by", ["connect", "socks"])
def test_large_download(session, by):
    size = 64 * MIB
    c = session(f"a.example:{BLOB}").connect()
    assert c.opened(f"a.example:{BLOB}") if by == "connect" else c.socks("a.example", BLOB) == 0
    c.send(f"{size}\n")
    assert c.digest() == (size, hashlib.sha256(blob(size)).hexdigest())


def test_large_upload(session):
    size = 64 * MIB
    data = blob(size)
    c = session(f"a.example:{SINK}").connect().opened(f"a.example:{SINK}")
    c.send(data)
    c.end()
    assert c.finish() == (f"{size} {hashlib.sha256(data).hexdigest()}".encode(), True)


def test_large_body_both_ways(session):
    body = blob(8 * MIB)
    answer = session("a.example").connect().get("http://a.example/echo?large", "POST", f"Content-Length: {len(body)}\r\n", body)
    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(body).digest()


def test_slow_reader_gets_all(session):
    """What the client does not take stays at the server, and comes when it is taken."""
    size = 24 * MIB
    s = session(f"a.example:{BLOB}")
    c = s.connect().opened(f"a.example:{BLOB}")
    c.send(f"{size}\n")
    s.wait_usage(lambda u: u["bytes_in"] > 0)
    assert s.connect().opened(f"a.example:{BLOB}")      # others go on meanwhile
    assert c.digest()[0] == size


def test_many_at_once(session):
    s = session("a.example:7", limits={"connections": 200})
    clients = [s.connect().opened("a.example:7") for _ in range(150)]
    for n, c in enumerate(clients):
        c.send(f"number {n:03}")
    assert [c.exactly(10) for c in clients] == [f"number {n:03}".encode() for n in range(150)]
    assert s.wait_usage(lambda u: u["connections_open"] == 150)["connections"] == 150
    for c in clients:
        c.close()
    s.wait_gone()


def test_sessions_are_kept_apart(world, session):
    world.dns.set("b.example", OTHER4)
    first, second, third = session("a.example"), session("b.example"), session()
    tries = [(s, t) for s in (first, second, third) for t in ("a.example:80", "b.example:80")]
    assert [s.connect().tunnel(t).status for s, t in tries] == [200, 403, 403, 200, 403, 403]
    first.remove()
    with pytest.raises(OSError):
        first.connect()
    assert second.connect().get("http://b.example/").status == 200

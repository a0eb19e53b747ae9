# SPDX-License-Identifier: MIT
"""Requests that two readers could read differently, and SOCKS, to reach what a session may not: test_proxy_bypass.py."""
import pytest

from netlib import OTHER4, PUBLIC4
from weblib import ECHO

SECOND = b"GET http://evil.example/second HTTP/1.1\r\nHost: evil.example\r\n\r\n"
FIRST = b"GET http://allowed.example/first HTTP/1.1\r\nHost: allowed.example\r\n\r\n"
POST = b"POST http://allowed.example/first HTTP/1.1\r\nHost: allowed.example\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.fixture
def s(world, session):
    world.dns.set("allowed.example", PUBLIC4)
    world.dns.set("evil.example", OTHER4)
    world.contacts()
    return session("allowed.example", "allowed.example:7")


# Refused before anybody is contacted.
BAD_HEADS = {
    "origin-form": b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "origin-form of another host": b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "authority without scheme": b"GET allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "network path": b"GET //allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "https": b"GET https://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "ftp": b"GET ftp://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "file": b"GET file:///etc/passwd HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "one slash": b"GET http:/allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "three slashes": b"GET http:///allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "backslashes": b"GET http:\\\\allowed.example\\ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "backslash in the path": b"GET http://allowed.example\\@evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "user name": b"GET http://allowed.example@evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "user name that is none": b"GET http://evil.example@allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "user name and password": b"GET http://allowed.example:80@evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "fragment": b"GET http://allowed.example/#@evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "fragment before the path": b"GET http://evil.example#allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "another Host": b"GET http://allowed.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "Host with another port": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n",
    "two Hosts": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nHost: evil.example\r\n\r\n",
    "two Hosts that agree": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nhost: allowed.example\r\n\r\n",
    "two in one Host": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example, evil.example\r\n\r\n",
    "Host with a user": b"GET http://allowed.example/ HTTP/1.1\r\nHost: x@allowed.example\r\n\r\n",
    "no Host": b"GET http://allowed.example/ HTTP/1.1\r\n\r\n",
    "space before the colon": b"GET http://allowed.example/ HTTP/1.1\r\nHost : allowed.example\r\n\r\n",
    "space before the first field": b"GET http://allowed.example/ HTTP/1.1\r\n X: y\r\nHost: allowed.example\r\n\r\n",
    "folded field": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nX: y\r\n Host: evil.example\r\n\r\n",
    "line feeds alone": b"GET http://allowed.example/ HTTP/1.1\nHost: allowed.example\n\n",
    "carriage return alone": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nX: y\rHost: evil.example\r\n\r\n",
    "NUL in a field": b"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nX: \0\r\n\r\n",
    "NUL in the path": b"GET http://allowed.example/\0 HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "space in the path": b"GET http://allowed.example/ /evil HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "two spaces": b"GET  http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "tab for a space": b"GET\thttp://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "no version": b"GET http://allowed.example/\r\n\r\n",
    "version 0.9": b"GET http://allowed.example/ HTTP/0.9\r\nHost: allowed.example\r\n\r\n",
    "version 2": b"GET http://allowed.example/ HTTP/2.0\r\nHost: allowed.example\r\n\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TRACE": b"TRACE http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "CONNECT with a URL": b"CONNECT http://allowed.example:80/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "CONNECT with a body": b"CONNECT allowed.example:80 HTTP/1.1\r\nHost: allowed.example:80\r\nContent-Length: 4\r\n\r\nabcd",
    "CONNECT in chunks": b"CONNECT allowed.example:80 HTTP/1.1\r\nHost: allowed.example:80\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "CONNECT with another Host": b"CONNECT evil.example:80 HTTP/1.1\r\nHost: allowed.example:80\r\n\r\n",
    "length and chunks": POST + CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n" + SECOND,
    "chunks and length": POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + SECOND,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n" + SECOND,
    "two lengths in one": POST + b"Content-Length: 0, 60\r\n\r\n" + SECOND,
    "signed length": POST + b"Content-Length: +5\r\n\r\nhello" + SECOND,
    "negative length": POST + b"Content-Length: -5\r\n\r\n" + SECOND,
    "length in hex": POST + b"Content-Length: 0x5\r\n\r\nhello" + SECOND,
    "endless length": POST + b"Content-Length: 18446744073709551621\r\n\r\nhello" + SECOND,
    "empty length": POST + b"Content-Length: \r\n\r\n" + SECOND,
    "other coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SECOND,
    "chunked and more": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SECOND,
    "nearly chunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SECOND,
    "chunked in quotes": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + SECOND,
    "vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SECOND,
    "coding twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n" + SECOND,
    "coding with a space": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SECOND,
    "coding folded": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SECOND,
    "coding of 1.0": POST.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n0\r\n\r\n" + SECOND,
    "Connection that names Host": FIRST[:-2] + b"Connection: host\r\n\r\n",
    "Connection that names the length": POST + b"Content-Length: 5\r\nConnection: close, content-length\r\n\r\nhello" + SECOND,
    "other expectation": POST + b"Content-Length: 5\r\nExpect: the-spanish-inquisition\r\n\r\nhello",
    "head too long": FIRST[:-2] + b"X: " + b"y" * 70000 + b"\r\n\r\n",
    "line too long": b"GET http://allowed.example/" + b"y" * 9000 + b" HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "too many fields": FIRST[:-2] + b"X: y\r\n" * 200 + b"\r\n",
    "method too long": b"G" * 40 + FIRST[3:],
    "method that is no token": b"GE(T" + FIRST[3:],
}


@pytest.mark.parametrize("request_", BAD_HEADS.values(), ids=BAD_HEADS)
def test_head_that_is_refused(world, s, request_):
    answer = s.connect().request(request_)
    assert answer and answer.status in (400, 403, 414, 417, 431, 501, 505), answer and answer.text
    assert len(answer.text) > 20 and answer.text.endswith(".\n")
    assert not world.contacts()


# Bodies that go wrong when the head has been passed on: what came before may arrive, what comes after never does.
BAD_BODIES = {
    "chunk extension": b"5;x=y\r\nhello\r\n0\r\n\r\n", "size with a space": b"5 \r\nhello\r\n0\r\n\r\n", "signed size": b"+5\r\nhello\r\n0\r\n\r\n",
    "size with a prefix": b"0x5\r\nhello\r\n0\r\n\r\n", "line feeds alone": b"5\nhello\n0\n\n", "no size": b"\r\nhello\r\n0\r\n\r\n",
    "endless size": b"ffffffffffffffff5\r\nhello\r\n0\r\n\r\n", "too much": b"5\r\nhello, evil\r\n0\r\n\r\n", "too little": b"9\r\nhello\r\n0\r\n\r\nX",
    "bad trailer": b"5\r\nhello\r\n0\r\nno colon\r\n\r\n", "trailer too long": b"5\r\nhello\r\n0\r\nX: " + b"y" * 9000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_body_that_is_refused(world, s, body):
    path = f"/body-{list(BAD_BODIES.values()).index(body)}"
    c = s.connect()
    c.request(POST.replace(b"/first", path.encode()) + CHUNKED + b"\r\n" + body + SECOND)
    assert set(world.contacts()) <= {(PUBLIC4, 80)}
    assert not [r for r in world.internet.requests if r.path in ("/second", path) and (r.rest or r.body.endswith(b"evil"))]


GOOD_THEN_SECOND = {
    "GET": FIRST, "GET of 1.0": FIRST.replace(b"1.1", b"1.0"), "GET kept alive": FIRST[:-2] + b"Connection: keep-alive\r\n\r\n",
    "length": POST + b"Content-Length: 5\r\n\r\nhello", "chunks": POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET with a length": FIRST[:-2] + b"Content-Length: 5\r\n\r\nhello",
    "upgrade": FIRST[:-2] + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n",
}


@pytest.mark.parametrize("name", GOOD_THEN_SECOND)
def test_a_second_request_behind_the_first(world, s, name):
    """One connection, one request: the second goes nowhere, least of all to the host of the first."""
    path = f"/pipelined-{list(GOOD_THEN_SECOND).index(name)}"
    answer = s.connect().request(GOOD_THEN_SECOND[name].replace(b"/first", path.encode()) + SECOND)
    assert answer.status == 200
    request, = world.internet.find(path)
    assert request.rest == b"" and not request.values("Upgrade")
    assert request.body in (b"", b"hello")
    assert world.contacts() == [(PUBLIC4, 80)]
    assert not [r for r in world.internet.requests if r.path == "/second"]


def test_connect_inside_a_tunnel_is_just_bytes(world, s):
    c = s.connect().opened(f"allowed.example:{ECHO}")
    c.send(b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n")
    assert c.until(b"\r\n\r\n").startswith(b"CONNECT evil.example:80")
    assert world.contacts() == [(PUBLIC4, ECHO)]


def test_what_follows_a_refused_request_is_not_read(world, s):
    for first in (SECOND, b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        c = s.connect()
        c.try_send(first + FIRST)
        data, _ = c.finish()
        assert data.count(b"HTTP/1.1 ") == 1 and not data.startswith(b"HTTP/1.1 200")
    assert not world.contacts()


def test_tls_to_the_proxy_itself(world, s):
    answer = s.connect().request(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(160))
    assert answer is None or answer.status == 400
    assert not world.contacts()


SOCKS_REQUESTS = {
    "BIND": (b"\x05\x02\x00\x03\x0fallowed.example\x00\x50", 7), "UDP": (b"\x05\x03\x00\x03\x0fallowed.example\x00\x50", 7),
    "UDP to anywhere": (b"\x05\x03\x00\x01\0\0\0\0\0\0", 7), "unknown command": (b"\x05\xf0\x00\x03\x0fallowed.example\x00\x50", 7),
    "IPv4": (b"\x05\x01\x00\x01\x7f\0\0\x01\x00\x50", 2), "IPv4 of everywhere": (b"\x05\x01\x00\x01\0\0\0\0\x00\x50", 2),
    "IPv6": (b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x50", 2), "IPv6 of everywhere": (b"\x05\x01\x00\x04" + bytes(16) + b"\x00\x50", 2),
    "IPv4 in IPv6": (b"\x05\x01\x00\x04" + bytes(10) + b"\xff\xff\x7f\0\0\x01\x00\x50", 2),
    "no such type": (b"\x05\x01\x00\x02\x0fallowed.example\x00\x50", 8), "empty name": (b"\x05\x01\x00\x03\x00\x00\x50", None),
    "NUL in the name": (b"\x05\x01\x00\x03\x1dallowed.example\0.evil.example\x00\x50", None),
    "line end in the name": (b"\x05\x01\x00\x03\x11allowed.example\r\n\x00\x50", None),
    "full-width dot": (b"\x05\x01\x00\x03\x11allowed\xef\xbc\x8eexample\x00\x50", None),
    "number as a name": (b"\x05\x01\x00\x03\x09127.0.0.1\x00\x50", 2), "short number as a name": (b"\x05\x01\x00\x03\x05127.1\x00\x50", None),
    "port 0": (b"\x05\x01\x00\x03\x0fallowed.example\x00\x00", None), "other port": (b"\x05\x01\x00\x03\x0fallowed.example\x00\x16", 2),
    "something reserved": (b"\x05\x01\x01\x03\x0fallowed.example\x00\x50", None),
    "other version": (b"\x04\x01\x00\x03\x0fallowed.example\x00\x50", None),
}


@pytest.mark.parametrize("name", SOCKS_REQUESTS)
def test_socks(world, s, name):
    request, code = SOCKS_REQUESTS[name]
    c = s.connect()
    c.greet()
    c.send(request + b"GET / HTTP/1.1\r\n\r\n")
    reply, _ = c.finish()
    assert len(reply) in (0, 10) and reply[1:2] != b"\0"
    assert code is None or reply[1] == code
    assert not world.contacts()


@pytest.mark.parametrize("greeting", [b"\x04\x01\x00\x50\x7f\0\0\x01\x00", b"\x04\x01\x00\x50\0\0\0\x01\x00evil.example\x00", b"\x05\x00", b"\x05\x01\x02",
                                      b"\x05\x02\x01\x02"])
def test_socks_greeting_that_is_refused(world, s, greeting):
    """Versions 4 and 4a; no way of authentication, or none that there is."""
    c = s.connect()
    c.try_send(greeting + b"\x05\x01\x00\x03\x0fallowed.example\x00\x50")
    assert c.finish()[0] in (b"", b"\x05\xff")
    assert not world.contacts()

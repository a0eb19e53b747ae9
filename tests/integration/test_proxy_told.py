# SPDX-License-Identifier: MIT
"""What the daemon is told of a session's network, what it changes of it, and the secrets that only the proxy has."""
import json
import time

import pytest

from daemonlib import wait_for
from netlib import CLOSED4, OTHER4, PUBLIC4
from proxylib import REFUSED
from weblib import BLOB, ECHO, SINK

SECRET = "Bearer s3cr3t-0f-th3-s3ss10n"


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("a.example", PUBLIC4)
    world.dns.set("b.example", OTHER4)
    world.dns.set("closed.example", CLOSED4)
    world.contacts()


def times(s, kind):
    """How many frames of a kind there are; counted after a second in which there were none."""
    count = -1
    while count != (now := len(s.proxy.told(s.number, kind))):
        count = now
        time.sleep(1.1)
    return count


def test_a_refusal_that_is_repeated_is_a_number(session):
    s = session()
    for _ in range(100):
        assert s.connect().tunnel("evil.example:443").status == 403
    refused = s.wait_refused("evil.example", 100)
    assert sum(r["count"] for r in refused) == 100 and len(refused) < 10
    assert set(refused[0]) == {"host", "port", "address", "verdict", "count"}


def test_many_hosts_are_told_in_time(session):
    """At most 20 a second, whatever the session does; and what it is told it was refused is bounded."""
    s = session()
    start = time.monotonic()
    for n in range(300):
        s.connect().tunnel(f"host{n}.evil.example:443")
    seconds = time.monotonic() - start
    told = len(s.refused())
    assert told <= 20 * (seconds + 1)
    s.wait_usage(lambda u: u["refused"] == 300)
    total = times(s, REFUSED)
    assert total <= 64 + 20 * (seconds + 1)


def test_many_hosts_of_one_session_hide_nothing_of_another(session):
    noisy, quiet = session(), session()
    for n in range(100):
        noisy.connect().tunnel(f"host{n}.evil.example:443")
    quiet.connect().tunnel("evil.example:443")
    assert quiet.wait_refused("evil.example")[0]["count"] == 1


@pytest.mark.parametrize("host", ["x" * 200 + ".example", "127.1", "evil_\x7f.example", "a" * 255])
def test_what_is_told_of_a_host_is_short_and_plain(session, host):
    s = session()
    s.connect().tunnel(f"{host}:443")
    s.connect().socks(host, 443)
    s.connect().tunnel("last.example:443")
    s.wait_refused("last.example")
    for r in s.refused():
        assert len(r["host"]) < 300 and r["host"].isprintable()


def test_usage(session):
    s = session("a.example:7", "closed.example", f"a.example:{BLOB}")
    c = s.connect().opened(f"a.example:{ECHO}")
    c.send(bytes(1000))
    c.exactly(1000)
    assert s.wait_usage(lambda u: u["bytes_in"]) | {"bytes_in": 0, "bytes_out": 0} == {
        "connections_open": 1, "connections": 1, "refused": 0, "failed": 0, "bytes_in": 0, "bytes_out": 0}
    s.connect().tunnel("evil.example:443")
    assert s.connect().tunnel("closed.example:443").status == 502
    c.close()
    s.wait_gone()
    assert s.remove() == {"connections_open": 0, "connections": 2, "refused": 1, "failed": 1, "bytes_in": 1000, "bytes_out": 1000}


def test_usage_of_a_request(world, session):
    """What goes to the server counts, and what comes from it."""
    s = session("a.example")
    answer = s.connect().get("http://a.example/echo?usage", "POST", "Content-Length: 5000\r\n", bytes(5000))
    request, = (r for r in world.internet.find("/echo") if r.argument == "usage")
    last = s.remove()
    assert last["bytes_in"] == len(answer.head) + len(answer.body)
    assert last["bytes_out"] == len(request.head) + 5000


def test_usage_is_told_once_a_second(session):
    s = session("a.example:7")
    c = s.connect().opened("a.example:7")
    end = time.monotonic() + 2.2
    n = 0
    while time.monotonic() < end:
        c.send("x")
        c.exactly(1)
        n += 1
    assert 2 <= len(s.proxy.told(s.number, 18)) <= 4
    assert s.wait_usage(lambda u: u["bytes_in"] == n)


def test_change_allows_and_cuts(world, session):
    s = session("a.example:7")
    c, d = (s.connect().opened("a.example:7") for _ in range(2))
    c.send("x")
    assert c.exactly(1) == b"x"
    s.change("b.example:7")
    assert c.finish() == (b"", False)
    assert d.finish()[0] == b""
    assert s.connect().tunnel("a.example:7").status == 403
    assert s.connect().tunnel("b.example:7").status == 200
    s.wait_usage(lambda u: u["connections_open"] == 0 or u["connections"] == 3)


def test_change_leaves_what_is_still_allowed(session):
    s = session("a.example:7", "b.example:7")
    kept, cut = s.connect().opened("a.example:7"), s.connect().opened("b.example:7")
    cut.send("x")
    cut.exactly(1)
    s.change("*.example.org", "a.example:7")
    assert cut.finish() == (b"", False)
    kept.send("x")
    assert kept.exactly(1) == b"x"


@pytest.mark.parametrize("rule", [f"!{PUBLIC4}", "!a.example", "!a.example:7"])
def test_change_to_an_exception_cuts(session, rule):
    s = session("a.example:7")
    c = s.connect().opened("a.example:7")
    c.send("x")
    c.exactly(1)
    s.change("a.example:7", rule)
    assert c.finish() == (b"", False)


def test_change_of_a_grant(world, session):
    """Also of one under which a private address was reached."""
    world.dns.set("inside.example", "10.1.1.1")
    s = session(granted=["inside.example:7", "10.1.1.1:7"])
    c = s.connect().opened("inside.example:7")
    c.send("x")
    assert c.exactly(1) == b"x"
    s.change(granted=["inside.example:7"])
    assert c.finish() == (b"", False)


def test_change_while_the_name_is_looked_up(world, session):
    """What was asked for under the old rules and is not there yet comes under the new ones."""
    world.dns.set("late.example", silent=True)
    s = session("late.example")
    c = s.connect()
    c.send("CONNECT late.example:443 HTTP/1.1\r\nHost: late.example:443\r\n\r\n")
    wait_for(lambda: world.dns.questions("late.example"))
    s.change("a.example")
    world.dns.set("late.example", PUBLIC4)
    assert c.answer().status == 403
    assert not world.contacts()


def test_change_of_limits(session):
    s = session("a.example:7", limits={"connections": 1})
    s.connect().opened("a.example:7")
    assert s.connect().tunnel("a.example:7").status != 200
    s.change("a.example:7", limits={"connections": 2})
    assert s.connect().tunnel("a.example:7").status == 200
    assert s.connect().tunnel("a.example:7").status != 200


def test_remove_cuts_and_answers(session):
    s = session("a.example:7")
    c = s.connect().opened("a.example:7")
    c.send("x")
    c.exactly(1)
    last = s.remove()
    assert last["connections_open"] == 0 and last["connections"] == 1
    assert c.finish() == (b"", False)
    with pytest.raises(ConnectionRefusedError):
        s.connect()
    frames = s.proxy.frames
    mine = [n for n, (_, number, _) in enumerate(frames) if number == s.number]
    assert frames[mine[-1]][0] == 19        # nothing of it comes after


def credentials(*more):
    return [{"host": "a.example", "port": 80, "name": "Authorization", "value": SECRET}, *more]


def test_credential_is_added(world, session):
    s = session("a.example", "a.example:8080", "b.example", credentials=credentials())
    assert s.connect().get("http://a.example/secret-1").status == 200
    request, = world.internet.find("/secret-1")
    assert request.values("Authorization") == [SECRET]
    # And to that host and port only.
    s.connect().get("http://b.example/secret-2")
    s.connect().get("http://a.example:8080/secret-2")
    assert [r.values("Authorization") for r in world.internet.find("/secret-2", 2)] == [[], []]


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_credential_replaces_the_clients(world, session, name):
    s = session("a.example", credentials=credentials())
    path = f"/replaced-{name}"
    s.connect().get(f"http://A.EXAMPLE.:80{path}", more=f"{name}: mine\r\n{name}: mine, too\r\n")
    request, = world.internet.find(path)
    assert request.values("Authorization") == [SECRET]
    assert b"mine" not in request.head


def test_no_tunnel_around_a_credential(world, session):
    """Through one it would not be added, and the client would learn why only from the server."""
    s = session("a.example", "a.example:7", credentials=credentials())
    answer = s.connect().tunnel("a.example:80")
    assert answer.status == 403 and "credential" in answer.text and "http://" in answer.text
    assert s.connect().socks("a.example", 80) == 2
    assert s.connect().tunnel("a.example:7").status == 200
    assert {p for _, p in world.contacts()} == {7}


def test_credential_does_not_allow(world, session):
    s = session("b.example", credentials=credentials())
    assert s.connect().get("http://a.example/").status == 403
    assert not world.contacts()


def test_change_of_credentials(world, session):
    s = session("a.example", credentials=credentials())
    s.change("a.example", credentials=[])
    s.connect().get("http://a.example/changed")
    assert not world.internet.find("/changed")[0].values("Authorization")


def test_credential_stays_where_it_is(world, session):
    """Not in a redirect's request, an answer, a report, the log or the environment of the process."""
    s = session("a.example", "b.example", credentials=credentials())
    answer = s.connect().get("http://a.example/go?http://b.example/gone")
    assert SECRET.encode() not in answer.head + answer.body
    s.connect().get(answer.fields["location"])
    assert SECRET.encode() not in world.internet.find("/gone")[0].head
    for target in ("a.example:80", "evil.example:80"):
        assert SECRET not in s.connect().tunnel(target).text
    for broken in (b"GET http://a.example/\0 HTTP/1.1\r\n\r\n", b"GET http://a.example/ HTTP/1.1\r\n\r\n"):
        assert SECRET not in s.connect().request(broken).text
    s.remove()
    assert SECRET not in json.dumps(world.proxy.frames) + world.proxy.logged()
    with open(f"/proc/{world.proxy.process.pid}/environ", "rb") as f:
        assert SECRET.encode() not in f.read()


def test_upload_is_counted_out(session):
    s = session(f"a.example:{SINK}")
    c = s.connect().opened(f"a.example:{SINK}")
    c.send(bytes(123456))
    c.end()
    reply = c.finish()[0]
    assert s.remove() == {"connections_open": 0, "connections": 1, "refused": 0, "failed": 0, "bytes_in": len(reply),
                          "bytes_out": 123456}

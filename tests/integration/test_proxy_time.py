# SPDX-License-Identifier: MIT
"""What never comes is not waited for without end: by clients, servers and name servers. All of these at once, because
each takes as long as the proxy has patience."""
import contextlib
import threading
import time

import pytest

from netlib import DEAD4, DEAD6, PUBLIC4

PATIENCE = 45


def say_nothing(s):
    return s.connect(wait=PATIENCE).finish()


def half_a_head(s):
    c = s.connect(wait=PATIENCE)
    c.send("GET http://a.exam")
    return c.finish()


def half_a_greeting(s):
    c = s.connect(wait=PATIENCE)
    c.send(b"\x05\x01")
    return c.finish()


def half_a_socks_request(s):
    c = s.connect(wait=PATIENCE)
    c.greet()
    c.send(b"\x05\x01\x00\x03\x09a.exa")
    return c.finish()


def slow_head(s):
    """Byte after byte, so that it is never idle."""
    c = s.connect(wait=PATIENCE)
    end = time.monotonic() + PATIENCE
    with contextlib.suppress(OSError):
        c.send("GET http://a.example/ HTTP/1.1\r\nX: ")
        while time.monotonic() < end:
            c.send("y")
            time.sleep(0.1)
    return c.finish()


def tunnel_to(name):
    def run(s):
        answer = s.connect(wait=PATIENCE).tunnel(f"{name}:443")
        return answer.status, answer.text
    return run


def socks_to(name):
    return lambda s: s.connect(wait=PATIENCE).socks(name, 443)


WAITS = {
    "nothing": say_nothing, "half a head": half_a_head, "half a greeting": half_a_greeting, "slow head": slow_head,
    "half a SOCKS request": half_a_socks_request,
    "dead host": tunnel_to("dead.example"), "dead host by SOCKS": socks_to("dead.example"),
    "silent name server": tunnel_to("silent.example"), "silent name server by SOCKS": socks_to("silent.example"),
}


@pytest.fixture(scope="module")
def waits(world):
    """name → (what it came to, seconds)"""
    world.dns.set("a.example", PUBLIC4)
    world.dns.set("dead.example", DEAD4, DEAD6)
    world.dns.set("silent.example", silent=True)
    results = {}
    # Silent clients may take all the places of their session, and of it only.
    crowd, other = (world.proxy.session("a.example", limits={"connections": 4}) for _ in range(2))
    sessions = {name: world.proxy.session("a.example", "dead.example", "silent.example") for name in WAITS}

    def run(name):
        start = time.monotonic()
        results[name] = WAITS[name](sessions[name]), time.monotonic() - start
    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in WAITS]
    for t in threads:
        t.start()
    start = time.monotonic()
    for _ in range(25):
        crowd.connect()
    results["others"] = [s.connect().get("http://a.example/").status for s in (other, *sessions.values())], time.monotonic() - start
    results["crowd"] = crowd.connect(wait=PATIENCE).get("http://a.example/").status, time.monotonic() - start
    for t in threads:
        t.join(PATIENCE)
    results["usage"] = {name: s.remove() for name, s in sessions.items()}
    for s in (*sessions.values(), crowd, other):
        s.close()
    return results


@pytest.mark.parametrize("name", ["nothing", "half a greeting", "half a SOCKS request"])
def test_client_without_a_request(waits, name):
    (said, _), seconds = waits[name]
    assert said == b"" and 2 < seconds < 20


@pytest.mark.parametrize("name", ["half a head", "slow head"])
def test_half_a_head(waits, name):
    (said, _), seconds = waits[name]
    assert said.startswith(b"HTTP/1.1 408 ") and 2 < seconds < 20


def test_silent_clients_are_in_nobody_elses_way(waits):
    statuses, seconds = waits["others"]
    assert set(statuses) == {200} and seconds < 2


def test_silent_clients_make_room(waits):
    status, seconds = waits["crowd"]
    assert status == 200 and seconds < 20


@pytest.mark.parametrize("name", ["dead host", "silent name server"])
def test_504(waits, name):
    (status, text), seconds = waits[name]
    assert status == 504 and seconds < 40
    assert ("dead.example:443" if name == "dead host" else "silent.example:443") in text


@pytest.mark.parametrize("name", ["dead host by SOCKS", "silent name server by SOCKS"])
def test_reply_of_socks(waits, name):
    code, seconds = waits[name]
    assert code in (4, 6) and seconds < 40


@pytest.mark.parametrize("name", [name for name in WAITS if "dead" in name or "silent" in name])
def test_it_is_counted_as_failed(waits, name):
    usage = waits["usage"][name]
    assert (usage["failed"], usage["connections"], usage["refused"], usage["connections_open"]) == (1, 2, 0, 0)


@pytest.mark.parametrize("name", [name for name in WAITS if "dead" not in name and "silent" not in name])
def test_it_is_not_counted(waits, name):
    usage = waits["usage"][name]
    assert (usage["failed"], usage["connections"], usage["refused"], usage["connections_open"]) == (0, 1, 0, 0)

# SPDX-License-Identifier: MIT
"""Proxies that do not start, or are not what they should be. A proxy runs as its user, so sandboxd believes it nothing; all it
can do is to keep that user from the network."""
import contextlib
import os
import re
import shutil
import signal
import time

import pytest

from daemonlib import BUILD, copy_programs, descendants, memory_kilobytes, removed, wait_for
from fake_proxy import LIES
from netlib import PUBLIC4

CONFIG = {"environments": {"python": {"network": ["tls.example"]}, "none": {"preset": "shell"}}, "snapshots": {"enabled": False}}


@pytest.fixture
def fake(world, start_on_host):
    """fake(how): a daemon whose proxies are fake_proxy.py's, and the path where they are."""
    world.dns.set("tls.example", PUBLIC4)
    with contextlib.ExitStack() as stack:
        def make(how, programs=("sandbox-proxy",)):
            path = stack.enter_context(removed(copy_programs(*programs)))
            proxy = os.path.join(path, "sandbox-proxy")
            if how:
                shutil.copy(os.path.join(os.path.dirname(os.path.realpath(__file__)), "fake_proxy.py"), proxy)
                os.chmod(proxy, 0o755)
                with open(os.path.join(path, "how"), "w", encoding="ascii") as f:
                    f.write(how)
            return start_on_host(CONFIG, programs=path), proxy
        yield make


def heal(path):
    """The real one, from now on."""
    shutil.copy(os.path.join(BUILD, "sandbox-proxy"), path + ".next")
    os.rename(path + ".next", path)


def ended(d):
    return len(re.findall("sandbox-proxy of uid [0-9]+ is over", d.log()))


def pids(d, path):
    """Processes below the daemon that run a script."""
    found = []
    for pid, _ in descendants(d.pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            if path in f.read():
                found.append(pid)
    return found


def test_program_that_is_not_there(fake):
    """Who asks for a network is told, and has the rest of his session; others do not notice."""
    d, _ = fake(None)
    notices = [d.run("x = 41", "s", "python")["notice"] or ""]
    wait_for(lambda: ended(d) >= 2)
    reply = d.run("print(x + 1)", "s", "python")
    assert reply["stdout"] == "42\n" and any("sandbox-proxy" in n for n in [*notices, reply["notice"] or ""])
    assert d.run("echo ok", env="none")["stdout"] == "ok\n"


@pytest.mark.parametrize("how", ["ends", "says-something-first", *LIES])
def test_proxy_that_is_none(world, fake, how):
    """It is given up, and another one is started, not all the time; the session has its state, and the network once one is right."""
    d, proxy = fake(how)
    d.run("x = 41", "s", "python")
    began = time.monotonic()
    wait_for(lambda: ended(d) >= 3)
    assert time.monotonic() - began > 0.25              # 0.1 and 0.2 s of pauses
    assert d.run("print(x + 1)", "s", "python")["stdout"] == "42\n"
    assert d.run("echo ok", env="none")["stdout"] == "ok\n"
    if how in LIES:
        assert "it said what it may not" in d.log()
        u = d.usage("s")
        assert how == "removed" or (u["bytes_in"], u["connections"], u["refused"]) == (0, 0, 0)
    heal(proxy)
    s = d.session(world.certificate)
    for name in s, "s":
        code = "import urllib.request; print(urllib.request.urlopen('http://tls.example/hello', timeout=25).read())"
        assert wait_for(lambda n=name: d.run(f"try:\n    {code}\nexcept OSError as e: print(e)", n, "python", timeout_ms=60000)["stdout"] == "b'hello\\n'\n")
    assert not pids(d, proxy + "\0")[1:]
    assert "network_lost" in d.events(d.show("s")["id"])


def test_pauses_grow(fake):
    """A proxy that ends at once is no loop: so many starts in some seconds that doubled pauses allow."""
    d, _ = fake("ends")
    began = time.monotonic()
    d.run("x = 1", "s", "python")
    wait_for(lambda: ended(d) >= 5)
    assert time.monotonic() - began > 1.4               # 0.1, 0.2, 0.4 and 0.8 s
    assert ended(d) <= 6


def test_proxy_that_stays(world, fake):
    """One that is given up and does not end, as when its user stops it, has no successor: they would become many. That is
    said, and whatever sessions he makes and ends changes nothing of it."""
    d, proxy = fake("stays")
    d.run("x = 41", "s", "python")
    wait_for(lambda: ended(d) == 1)
    heal(proxy)
    d.call("Kill", session="s", project=d.project)
    s = d.session(world.certificate)
    wait_for(lambda: "does not end, so there is no other one" in d.log())
    [pid] = pids(d, proxy)
    assert d.run("echo ok", env="none")["stdout"] == "ok\n"
    os.kill(pid, signal.SIGKILL)
    assert d.run("print(fetch('http://tls.example/hello'))", s, "python")["stdout"] == "b'hello\\n'\n"
    assert ended(d) == 1 and len(d.proxies()) == 1


def test_proxy_that_hears_nothing(fake):
    """It costs no memory, and no call waits for it, whatever there is to be said."""
    d, _ = fake("deaf")
    d.run("x = 41", "s", "python")
    memory = memory_kilobytes(d.pid)
    rules = [f"host{n}.{'x' * 60}.example" for n in range(300)]
    with d.link() as link:
        link.call("Set", session="s", project=d.project, allow=rules)
        for n in range(100):
            link.call("Set", session="s", project=d.project, allow=[f"!other{n}.example"])
    for _ in range(10):
        d.run("pass", env="python")                     # sessions that come and go
    assert d.run("print(x + 1)", "s", "python")["stdout"] == "42\n"
    assert memory_kilobytes(d.pid) < memory + 8192
    d.call("Kill", session="s", project=d.project)
    assert d.run("echo ok", env="none")["stdout"] == "ok\n"


def test_proxy_that_does_not_come_up(fake):
    d, _ = fake("mute")
    d.run("x = 41", "s", "python")
    assert d.run("print(x + 1)", "s", "python")["stdout"] == "42\n"
    wait_for(lambda: "it did not come up in time" in d.log(), 60)


def test_proxy_that_tells_too_much(fake):
    """100,000 refusals are no more events than sandboxd takes in a second, and keep nobody waiting."""
    d, _ = fake("flood")
    d.run("x = 41", "s", "python")
    for _ in range(20):
        assert d.run("echo ok", env="none")["stdout"] == "ok\n"
    reply = d.run("print(x + 1)", "s", "python")
    assert reply["stdout"] == "42\n" and len(reply["notice"] or "") < 1000
    assert d.events(d.show("s")["id"]).count("network_refused") <= 400

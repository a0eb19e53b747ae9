# SPDX-License-Identifier: MIT
"""SIGHUP: another program and configuration, the same sessions."""
import contextlib
import json
import os
import signal
import threading

import pytest

from daemonlib import (HOLD, Daemon, VarlinkError, alive, copy_programs, descendants, public_directory, removed, stat_of,
                       wait_for)
from managerlib import Service
from test_lifecycle import need_cgroups

KEPT = "sandboxd was restarted meanwhile; the session and its state were kept."


@pytest.fixture
def service(programs):
    with contextlib.ExitStack() as stack:
        yield lambda config=None, **more: stack.enter_context(Service(config, programs=programs, **more))


def hangup(d):
    """Reloads a daemon that notifies nobody."""
    before = d.log().count(" serves ")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.log().count(" serves ") > before)


def configure(d, config):
    with open(d.command[d.command.index("--config") + 1], "w", encoding="utf-8") as f:
        f.write(config if isinstance(config, str) else json.dumps(config))


def test_state_history_and_pid_stay(start):
    d = start()
    d.run("x = 41", "p", "python")
    d.run("y=1; sleep 600 &", "b")
    before, shown = d.pid, d.show("p")
    history = d.call("History", session="p", project="/test")
    children = descendants(d.pid)
    hangup(d)
    assert d.pid == before and stat_of(d.pid)
    assert d.call("History", session="p", project="/test") == history
    assert {k: d.show("p")[k] for k in ("id", "created_usec", "cgroup")} == {k: shown[k] for k in ("id", "created_usec", "cgroup")}
    assert {p for p, _ in children} <= {p for p, _ in descendants(d.pid)}
    assert d.run("print(x + 1)", "p", "python")["stdout"] == "42\n"
    assert d.run("echo $y", "b")["stdout"] == "1\n"
    # Its jail is a child, whose end is seen and reaped.
    d.call("Kill", session="b", project="/test")
    wait_for(lambda: not [p for p, s in descendants(d.pid) if (t := stat_of(p)) and t[0] == "Z"])


def test_by_call(start):
    """As by the signal, but the caller is told whether what is to come is of use."""
    d = start({})
    d.run("x = 41", "p", "python")
    before = d.pid
    configure(d, {"user": {"max_sessions": 1}})
    assert d.call("Reload") == {}
    wait_for(lambda: d.log().count(" serves ") == 2)
    assert d.refused("Run", code="true").name == "TooManySessions"
    configure(d, "{ garbage")
    e = d.refused("Reload")
    assert e.name == "ReloadRefused" and "goes on as it was" in e.message
    assert d.run("print(x + 1)", "p", "python")["stdout"] == "42\n"
    assert d.pid == before and d.log().count(" serves ") == 2


def test_ten_times_with_a_running_turn(start):
    d = start()
    link = d.begin("for i in $(seq 400); do echo $i; sleep 0.01; done; z=1", "a", tag="t-1")
    d.wait_busy("a")
    for _ in range(10):
        hangup(d)
    link.close()
    reply = d.call("Wait", tag="t-1")
    assert reply["stdout"] == "".join(f"{i}\n" for i in range(1, 401)) and reply["notice"].count(KEPT) == 1
    assert d.run("echo $z", "a")["stdout"] == "1\n"
    entries = d.call("History", session="a", project="/test")["entries"]
    assert [e["turn"] for e in entries] == [1, 2] and entries[0]["code"].startswith("for i in")


@contextlib.contextmanager
def behind_a_link(target):
    """A daemon that was started through a link, as where each version has a directory of its own; and the link."""
    d = Daemon({}, programs=target)
    d.project = "/test"
    link = os.path.join(d.root, "sandboxd")
    os.symlink(os.path.join(target, "sandboxd"), link)
    d.command[0] = link
    with d:
        yield d, link


def lead(link, target):
    os.symlink(target, link + ".next")
    os.rename(link + ".next", link)


def test_program_behind_a_link(programs):
    with removed(copy_programs()) as old, removed(copy_programs()) as new, behind_a_link(old) as (d, link):
        d.run("x=1", "a")
        for target in (new, old):
            lead(link, os.path.join(target, "sandboxd"))
            hangup(d)
            assert os.readlink(f"/proc/{d.pid}/exe") == os.path.join(target, "sandboxd")
            assert d.run("echo $x", "a")["stdout"] == "1\n"


@pytest.mark.parametrize("target", ["/nonexistent/sandboxd", "/bin/false"])
def test_link_that_leads_to_nothing_of_use(programs, target):
    with behind_a_link(programs) as (d, link):
        d.run("x=1", "a")
        lead(link, target)
        e = d.refused("Reload")
        assert e.name == "ReloadRefused" and "goes on as it was" in e.message
        assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_name_that_is_none_of_the_program(programs):
    """What argv[0] is, is up to whoever starts it."""
    d = Daemon({}, programs=programs, wrapper=["/bin/bash", "-c", 'exec -a /bin/false "$@"', "-"])
    d.project = "/test"
    with d:
        d.run("x=1", "a")
        hangup(d)
        assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_signals_in_a_row(start):
    d = start()
    d.run("x=1", "a")
    for _ in range(10):
        d.process.send_signal(signal.SIGHUP)
    hangup(d)
    with contextlib.suppress(AssertionError, VarlinkError, OSError):
        d.call("GetVersion")
    wait_for(lambda: d.process.poll() is None)
    link = wait_for(lambda: d.link())
    link.close()


def test_new_configuration(start):
    d = start({"max": {"memory_mb": 512}})
    d.run("x=1", "a")
    configure(d, {"max": {"memory_mb": 64}})
    hangup(d)
    assert "64 MB used" in d.run("true", "b", memory_mb=400)["notice"]
    assert d.run("echo $x", "a")["stdout"] == "1\n" and d.show("a")["memory_mb"] == 512


@pytest.mark.parametrize("config", ["{", '{"nonsense": 1}', ""])
def test_bad_configuration_is_refused(service, config):
    d = service({})
    d.run("x=1", "a")
    configure(d, config)
    link = d.begin(HOLD + "echo done", "a")
    d.wait_busy("a")
    d.reload()
    assert "Reload refused" in d.log() and d.log().count(" serves ") == 1
    d.release("a")
    assert link.answer()["stdout"] == "done\n"
    link.close()
    configure(d, {})
    d.reload()
    assert d.log().count(" serves ") == 2 and d.run("echo $x", "a")["stdout"] == "1\n"


def test_what_the_service_manager_is_told(service):
    d = service()
    d.run("x=1", "a")
    d.reload()
    d.manager.sync()
    words = [w for said in d.manager.said for w in said if w in ("READY", "RELOADING", "STOPPING")]
    assert words == ["READY", "RELOADING", "READY"]
    said = next(s for s in d.manager.said if "RELOADING" in s)
    assert int(said["MONOTONIC_USEC"]) > 0
    assert len(d.manager.store) == 1
    d.restart()
    assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_crash_after_a_reload_and_reload_after_a_crash(service):
    d = service()
    need_cgroups(d, "freezer")
    d.run("n=1", "a")
    for step in (d.reload, d.restart, d.restart, d.reload, d.reload, d.restart):
        step()
        assert d.run("echo $((n++))", "a")["stdout"]
    assert d.run("echo $n", "a")["stdout"] == "7\n"


def test_environment_that_is_gone(service):
    d = service({"environments": {"mine": {"interpreters": ["bash"]}}})
    d.run("sleep 600 &", "a", "mine")
    d.run("x=1", "b")
    configure(d, {})
    d.reload()
    assert "its environment is not configured any more" in d.log()
    assert d.run("echo $x", "b")["stdout"] == "1\n"
    assert "could not take it over" in d.run("true", "a")["notice"]


def test_frozen_and_nameless(start):
    d = start()
    need_cgroups(d, "freezer")
    d.run("x=1", "a")
    d.call("Freeze", session="a", project="/test")
    reply = d.run("sleep 1; echo late", answer_after_ms=0)
    hangup(d)
    assert d.state("a") == "frozen"
    assert d.call("Wait", session=reply["id"])["stdout"] == "late\n"
    d.call("Thaw", session="a", project="/test")
    assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_under_load(start):
    """Sandboxes come and go all the time: none is left, and no child unreaped."""
    d = start()
    d.run("x=1", "a")
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            with contextlib.suppress(AssertionError, VarlinkError, OSError):
                d.run("true")
    threads = [threading.Thread(target=churn) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(4):
            hangup(d)
    finally:
        stop.set()
    for t in threads:
        t.join()
    assert d.run("echo $x", "a")["stdout"] == "1\n"
    # Those whose callers were cut off wait for them, as sandboxes that were answered early do.
    for s in d.call("List")["sessions"]:
        if s["name"] is None:
            d.call("Wait", session=s["id"])
    wait_for(lambda: [s["name"] for s in d.call("List")["sessions"]] == ["a"])
    wait_for(lambda: not [p for p, _ in descendants(d.pid) if (s := stat_of(p)) and s[0] == "Z"])


def test_unprivileged(programs):
    """Without control groups, too: the jails are children and stay so."""
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    with removed(public_directory()) as root:
        os.chown(root, 65534, 65534)
        with Daemon(programs=programs, root=root, uid=65534) as d:
            d.project = "/test"
            with d.link() as link:
                link.send("GetVersion")
                link.answer()
            hangup(d)
            assert alive(d.pid)

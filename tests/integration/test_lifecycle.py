# SPDX-License-Identifier: MIT
"""How sessions end, sleep and are limited; how the daemon ends, and what a crash leaves."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from daemonlib import (HOLD, NOBODY, Daemon, Link, VarlinkError, alive, as_user, cgroups_named, descendants, public_directory, removed,
                       stat_of, tree_name, wait_for)


def need_cgroups(daemon, *features):
    checks = {c["name"]: c for c in daemon.call("Doctor")["checks"]}
    for feature in features:
        if checks[feature]["verdict"] != "ok":
            pytest.skip(f"{feature}: {checks['cgroups']['detail']}")


def reason_of(daemon, sid):
    return next(e["detail"] for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "killed")


# Killing

def test_kill_removes_everything(daemon, name):
    daemon.run("sleep 600 & setsid sleep 600 & (trap '' TERM HUP; sleep 600) &", name)
    shown = daemon.show(name)
    inside = descendants(daemon.pid)
    assert len(inside) >= 6
    reply = daemon.call("Kill", session=name)
    assert reply == {"id": shown["id"]}
    assert not [p for p, start in inside if (s := stat_of(p)) and s[2] == start and s[0] != "Z"]
    assert not shown["cgroup"] or not os.path.exists(shown["cgroup"])


def test_kill_while_a_turn_runs_and_others_wait(daemon, name):
    links = [daemon.begin("sleep 60", name) for _ in range(3)]
    daemon.wait_busy(name)
    daemon.wait_queued(name, 2)
    sid = daemon.show(name)["id"]
    daemon.call("Kill", session=name)
    for link in links:
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "admin"
        link.close()
    error = daemon.refused("Wait", session=sid)
    assert error.name == "SessionEnded" and error.parameters["reason"] == "admin"


def test_kill_while_it_starts(daemon, name):
    link = daemon.begin("true", name)
    daemon.call("Kill", session=wait_for(lambda: next(
        (s["id"] for s in daemon.call("List")["sessions"] if s["name"] == name), None)))
    message = link.receive()
    assert message.get("error", "io.nixsandbox.SessionEnded") == "io.nixsandbox.SessionEnded"
    link.close()


def test_kill_twice(daemon, name):
    sid = daemon.run("true", name)["id"]
    daemon.call("Kill", session=name)
    error = daemon.refused("Kill", session=sid)
    assert error.name == "SessionEnded" and error.parameters["reason"] == "admin"
    assert daemon.refused("Kill", session=name).name == "NoSuchSession"


def test_killed_by_two_at_once(daemon, name):
    sid = daemon.run("true", name)["id"]
    with daemon.link() as a, daemon.link() as b:
        for link in (a, b):
            link.send("Kill", session=name)
        messages = [link.receive() for link in (a, b)]
    ended = [m for m in messages if m.get("parameters") == {"id": sid}]
    assert ended, messages
    assert all(m["error"].endswith(("NoSuchSession", "SessionEnded")) for m in messages if m not in ended)


def test_killer_that_goes_away(daemon, name):
    sid = daemon.run("true", name)["id"]
    with daemon.link() as link:
        link.send("Kill", session=name)
    wait_for(lambda: "torn_down" in daemon.events(sid))


def test_name_is_free_at_once_and_the_end_is_told(daemon, name):
    first = daemon.run("x=1", name)
    daemon.call("Kill", session=name)
    again = daemon.run("echo [$x]", name)
    assert again["stdout"] == "[]\n" and again["session_state"] == "created" and again["id"] != first["id"]
    assert "has ended: admin" in again["notice"] and name in again["notice"]
    assert daemon.run("true", name)["notice"] is None


def test_agent_that_is_killed(daemon, name):
    sid = daemon.run("true", name)["id"]
    agents = [p for p, _ in descendants(daemon.pid)]
    shown = daemon.show(name)
    if not shown["cgroup"]:
        pytest.skip("no cgroup to find it by")
    with open(os.path.join(shown["cgroup"], "cgroup.procs"), encoding="ascii") as f:
        inside = [int(line) for line in f]
    assert set(inside) <= set(agents)
    link = daemon.begin("sleep 60", name)
    daemon.wait_busy(name)
    for pid in inside:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(VarlinkError) as e:
        link.answer()
    assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "crashed"
    wait_for(lambda: "torn_down" in daemon.events(sid))
    assert "crashed" in daemon.run("true", name)["notice"]
    link.close()


# Callers that go away

def test_caller_leaves_in_a_turn(daemon, name):
    daemon.run("x=kept", name)
    link = daemon.begin("sleep 60", name)
    daemon.wait_busy(name)
    link.close()
    daemon.wait_busy(name, False)
    reply = daemon.run("echo $x", name)
    assert reply["stdout"] == "kept\n" and reply["session_state"] == "resumed"
    assert [e["exit_code"] for e in daemon.call("History", session=name)["entries"]] == [0, 130, 0]
    assert daemon.refused("Wait", session=name).name == "NoSuchTurn"


def test_caller_leaves_the_queue(daemon, name):
    first = daemon.begin(HOLD + "echo first", name)
    daemon.wait_busy(name)
    second = daemon.begin("echo never >> f", name)
    third = daemon.begin("cat f || echo none", name)
    daemon.wait_queued(name, 2)
    second.close()
    daemon.wait_queued(name, 1)
    daemon.release(name)
    assert first.answer()["stdout"] == "first\n"
    assert third.answer()["stdout"] == "none\n"


def test_caller_without_a_session_leaves(daemon):
    before = {s["id"] for s in daemon.call("List")["sessions"]}
    link = daemon.begin("sleep 60")
    sid = wait_for(lambda: {s["id"] for s in daemon.call("List")["sessions"]} - before).pop()
    link.close()
    wait_for(lambda: "torn_down" in daemon.events(sid))
    assert reason_of(daemon, sid) == "client-gone"


def test_caller_that_was_answered_early_may_leave(daemon, name):
    with daemon.link() as link:
        daemon.begin("sleep 0.3; echo on", name, link=link, answer_after_ms=0)
        assert link.answer()["exit_code"] is None
    assert daemon.call("Wait", session=name)["stdout"] == "on\n"


# Freezing

def test_freeze_and_thaw(daemon, name):
    need_cgroups(daemon, "freezer")
    sid = daemon.run("x=1; (while :; do date +%N > now; sleep 0.01; done) & sleep 0.1", name)["id"]
    assert daemon.call("Freeze", session=name) == {"id": sid}
    assert daemon.call("Freeze", session=name) == {"id": sid}
    shown = daemon.show(name)
    assert shown["state"] == "frozen"
    wait_for(lambda: "frozen 1" in open(shown["cgroup"] + "/cgroup.events", encoding="ascii").read())
    cpu = daemon.show(name)["cpu_usec"]
    error = daemon.refused("Run", code="true", session=name, project="/test")
    assert error.name == "SessionFrozen" and error.parameters["session"] == name and "sandboxctl thaw" in error.message
    assert daemon.show(name)["cpu_usec"] == cpu
    assert daemon.call("History", session=name)["entries"]
    assert daemon.call("Interrupt", session=name) == {"interrupted": False}
    assert daemon.call("Thaw", session=name) == {"id": sid}
    assert daemon.call("Thaw", session=name) == {"id": sid}
    wait_for(lambda: daemon.show(name)["cpu_usec"] > cpu)
    assert daemon.run("echo $x", name)["stdout"] == "1\n"


def test_freeze_while_a_turn_runs(daemon, name):
    need_cgroups(daemon, "freezer")
    with daemon.begin("sleep 60", name):
        daemon.wait_busy(name)
        error = daemon.refused("Freeze", session=name)
        assert error.name == "Busy" and error.parameters["session"] == name


def test_kill_while_frozen(daemon, name):
    need_cgroups(daemon, "freezer")
    sid = daemon.run("sleep 600 &", name)["id"]
    daemon.call("Freeze", session=name)
    assert daemon.call("Kill", session=name) == {"id": sid}
    assert daemon.events(sid)[-3:] == ["killed", "usage_metered", "torn_down"]


def test_standby_and_back(start):
    d = start({"session": {"standby_after_seconds": 1}})  # so long it is seen awake
    need_cgroups(d, "freezer")
    sid = d.run("x=1", "a")["id"]
    wait_for(lambda: d.state("a") == "standby")
    assert d.run("echo $x", "a")["stdout"] == "1\n"
    assert d.state("a") == "running"
    wait_for(lambda: d.state("a") == "standby")
    d.call("Freeze", session="a")
    assert d.state("a") == "frozen"
    assert d.refused("Run", code="true", session="a", project="/test").name == "SessionFrozen"
    assert d.story(sid) == ["session_created default", "sandbox_started", "exec_turn", "saved standby",
                            "frozen standby", "thawed turn", "exec_turn", "saved standby", "frozen standby",
                            "frozen by hand"]
    d.call("Thaw", session="a")
    assert d.state("a") == "running", "thawed by hand is awake for as long as after a turn"
    wait_for(lambda: d.state("a") == "standby")
    d.call("Thaw", session="a")
    assert d.state("a") == "running"


@pytest.mark.parametrize("key, event", [("standby_after_seconds", "frozen"), ("idle_timeout_seconds", "torn_down")])
def test_a_turn_is_no_idleness(start, key, event):
    d = start({"session": {key: 0.4}})
    if event == "frozen":
        need_cgroups(d, "freezer")
    d.run("true", "a")  # what is timed after it falls into the next turn
    sid = d.run("sleep 1; echo x", "a")["id"]
    wait_for(lambda: event in d.events(sid)[-2:])
    story = d.events(sid)
    last = len(story) - 1 - story[::-1].index("exec_turn")
    assert event not in story[:last] or "thawed" in story[:last], "only between the turns, and woken for the second"
    assert event in story[last:]


def test_turns_in_the_moment_of_standby(start):
    # Nothing is saved: that would take as long.
    d = start({"session": {"standby_after_seconds": 0.05}, "snapshots": {"enabled": False}})
    need_cgroups(d, "freezer")
    d.run("n=0", "a")
    for i in range(40):
        time.sleep(0.04 + i % 10 * 0.003)  # around the moment, not for it
        reply = d.run("echo $((++n))", "a")
        assert reply["stdout"] == f"{i + 1}\n" and reply["notice"] is None
    assert d.events().count("frozen") > 0


# Bounds

@pytest.mark.parametrize("key, reason", [("idle_timeout_seconds", "idle"), ("max_lifetime_seconds", "lifetime")])
def test_bounds_end_a_session(start, key, reason):
    d = start({"session": {key: 0.4}})
    sid = d.run("x=1", "a")["id"]
    wait_for(lambda: "torn_down" in d.events(sid))
    error = d.refused("Show", session=sid)
    assert error.name == "SessionEnded" and error.parameters["reason"] == reason and reason in error.message
    assert d.refused("Show", session="a").name == "NoSuchSession"
    assert f"has ended: {reason}" in d.run("true", "a")["notice"]


def test_lifetime_ends_a_running_turn(start):
    d = start({"session": {"max_lifetime_seconds": 0.5}})
    error = d.refused("Run", code="sleep 60", session="a", environment="shell")
    assert error.name == "SessionEnded" and error.parameters["reason"] == "lifetime"


def test_session_ends_with_its_client(start):
    d = start({"session": {"on_disconnect": "end"}})
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nfrom daemonlib import *\n" \
           f"c = Client({d.sock!r})\nprint(c.run('true', 'a')['id'], flush=True)\nsys.stdin.read()"
    p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    sid = p.stdout.readline().strip()
    assert d.state("a") == "running", "its connection has gone, its process has not"
    p.stdin.close()
    p.wait()
    p.stdout.close()
    wait_for(lambda: "torn_down" in d.events(sid))
    assert reason_of(d, sid) == "client-gone"


# Caps and limits

def test_sessions_of_a_user_are_capped(start):
    d = start({"user": {"max_sessions": 2}})
    d.run("true", "a")
    d.run("true", "b")
    for session in ("c", None):
        error = d.refused("Run", code="true", session=session)
        assert error.name == "TooManySessions" and error.parameters["max"] == 2 and "sandboxctl kill" in error.message
    assert d.run("echo on", "a")["stdout"] == "on\n"
    d.call("Kill", session="b")
    assert d.run("true", "c")["exit_code"] == 0


def test_memory_of_a_user_is_capped(start):
    d = start({"user": {"max_memory_mb": 300}, "defaults": {"memory_mb": 200}})
    d.run("true", "a")
    error = d.refused("Run", code="true", session="b")
    assert error.name == "LimitExceeded" and error.parameters["limit"] == "memory"
    assert d.run("true", "b", memory_mb=100)["exit_code"] == 0
    d.call("Kill", session="a")
    assert d.run("true", "c")["exit_code"] == 0


def test_connections_of_a_user_are_capped(start):
    d = start({"user": {"max_connections": 4}})
    links = []
    for _ in range(4):  # each before the next: then those that have closed before are not counted any more
        links.append(d.link())
        links[-1].call("GetVersion")
    with d.link() as fifth:
        with contextlib.suppress(OSError):
            fifth.send("GetVersion")
        refusal = fifth.receive()
        assert refusal["error"] == "io.nixsandbox.LimitExceeded" and refusal["parameters"]["limit"] == "connections"
        assert "user.max_connections" in refusal["parameters"]["message"]
        assert fifth.receive() is None
    done = d.ctl("list")
    assert done.returncode != 0 and "user.max_connections" in done.stderr
    links.pop().close()

    def served():
        with d.link() as link:
            with contextlib.suppress(OSError):
                link.send("GetVersion")
            return "error" not in link.receive()
    wait_for(served)
    for link in links:
        link.close()


def test_memory_limit(daemon, name):
    need_cgroups(daemon, "memory limit")
    reply = daemon.run("x = bytearray(1 << 30)", name, env="python", memory_mb=64)
    assert reply["state"] == "lost" or "MemoryError" in reply["stderr"]
    assert "Memory limit 64 MB reached" in (reply["notice"] or "") or "MemoryError" in reply["stderr"]
    assert daemon.run("print(1)", name, env="python")["stdout"] == "1\n"


def test_process_limit(start):
    d = start({"defaults": {"processes": 24}})
    need_cgroups(d, "process limit")
    reply = d.run("for i in {1..40}; do sleep 60 & done; wait -n; true", "a", timeout_ms=3000)
    assert "Process limit 24 reached" in reply["notice"]
    assert d.show("a")["processes"] <= 24
    assert "Process limit" not in (d.run("echo on", "a")["notice"] or "")


def test_workspace_limit(daemon, name):
    reply = daemon.run("head -c 100M /dev/zero > big; echo $?; rm big; echo x > y; cat y", name, memory_mb=64)
    assert reply["stdout"].split() == ["1", "x"] and "No space left" in reply["stderr"]
    assert daemon.show(name)["workspace_mb"] == 32


# The daemon's own life

def test_ends_cleanly_with_turns_running(start):
    d = start()
    links = [d.begin("sleep 60", s) for s in ("a", "b", None)]
    with d.link() as follower:
        follower.send("Events", _more=True, follow=True)
        follower.receive()
        wait_for(lambda: len([s for s in d.call("List")["sessions"] if s["busy"]]) == 3)
        assert d.end() == 0
        for link in links:
            with pytest.raises(VarlinkError) as e:
                link.answer()
            assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "shutdown"
            link.close()
        while follower.receive() is not None:
            pass


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_stop_signals(start, sig):
    d = start()
    d.run("true", "a")
    d.process.send_signal(sig)
    assert d.process.wait(10) == 0


def test_hangup_reloads(start):
    """More in test_reload.py."""
    d = start()
    d.run("x=1", "a")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.log().count(" serves ") == 2)
    assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_no_new_session_while_it_stops(start):
    """What is asked for in that moment is refused, and does not hold up the end."""
    d = start()
    for i in range(8):
        d.run("sleep 600 &", f"s{i}")
    links, stop = [d.link() for _ in range(4)], threading.Event()
    answers = []

    def ask(link):
        with contextlib.suppress(OSError):
            while not stop.is_set():
                link.send("Run", code="sleep 60", session="late", answer_after_ms=0)
                message = link.receive()
                if message is None:
                    return
                answers.append(message.get("error"))
    threads = [threading.Thread(target=ask, args=(link,), daemon=True) for link in links]
    for t in threads:
        t.start()
    wait_for(lambda: answers)
    try:
        assert d.end(30) == 0, "a session that had been made would hold it up for a minute"
    finally:
        stop.set()
    for t in threads:
        t.join()
    for link in links:
        link.close()


def test_crash_leaves_nothing_for_the_next(programs):
    with removed(public_directory()) as root:
        d = Daemon(programs=programs, root=root).start()
        d.run("sleep 600 &", "a")
        inside = descendants(d.pid)
        d.crash()
        wait_for(lambda: not [p for p, start in inside if (s := stat_of(p)) and s[2] == start and s[0] != "Z"])
        with Daemon(programs=programs, root=root) as second:
            left = [f for base in cgroups_named(tree_name(second.runtime)) for _, folders, _ in os.walk(base)
                    for f in folders]
            assert not left
            reply = second.run("true", "a")
            assert reply["session_state"] == "created" and "has ended: sandboxd was stopped or crashed" in reply["notice"]


def test_stop_is_told_by_the_next(programs):
    with removed(public_directory()) as root:
        with Daemon(programs=programs, root=root) as d:
            d.run("true", "a")
            d.run("true", "b")
            d.call("Kill", session="b")
        with Daemon(programs=programs, root=root) as d:
            assert "stopped or crashed" in d.run("true", "a")["notice"]
            assert d.run("true", "b")["notice"] is None


# Two of them, and places that cannot be used

def refused_start(programs, status=1, **more):
    """The log of a daemon that does not start."""
    d = Daemon(programs=programs, **more)
    try:
        d.spawn()
        assert d.process.wait(10) == status, d.log()
        return d.log()
    finally:
        d.close()


def test_second_daemon_on_one_runtime_directory(daemon, programs):
    with removed(public_directory()) as root:
        second = Daemon(programs=programs, root=root)
        second.command[second.command.index("--runtime-dir") + 1] = daemon.runtime
        second.spawn()
        assert second.process.wait(10) == 75, "the status that clients know (daemon-launch.h)"
        assert "Another sandboxd uses the runtime directory" in second.log() and daemon.runtime in second.log()
    assert daemon.call("GetVersion")


def test_second_daemon_on_one_socket(daemon, programs):
    with removed(public_directory()) as root:
        second = Daemon(programs=programs, root=root)
        second.command[second.command.index("--socket") + 1] = daemon.sock
        second.spawn()
        assert second.process.wait(10) == 1
        assert "Another process serves the socket" in second.log() and "--socket" in second.log()
    assert daemon.call("GetVersion")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("option, words", [("--state-dir", "--state-dir"), ("--runtime-dir", "writable"),
                                           ("--socket", "may this user write there")])
def test_places_that_are_not_writable(programs, option, words):
    with removed(public_directory()) as root:
        os.chown(root, NOBODY, NOBODY)
        d = Daemon(programs=programs, root=root, uid=NOBODY)
        d.command[d.command.index(option) + 1] = "/usr" + ("/socket" if option == "--socket" else "")
        d.spawn()
        assert d.process.wait(10) == 1
        assert words in d.log() and "/usr" in d.log() and len(d.log().splitlines()) <= 2


def test_socket_of_a_crash_is_replaced(programs):
    with removed(public_directory()) as root:
        d = Daemon(programs=programs, root=root).start()
        d.crash()
        assert os.path.exists(d.sock)
        with Daemon(programs=programs, root=root) as second:
            assert second.call("GetVersion")


def test_command_line(programs):
    def run(*args):
        return subprocess.run([os.path.join(programs, "sandboxd"), *args], capture_output=True, text=True, timeout=10, check=False)
    assert run("--version").stdout.startswith("sandboxd ") and run("--help").returncode == 0
    for args in (["--nonsense"], ["--config"], ["extra"]):
        done = run(*args)
        assert done.returncode == 1 and done.stderr
    done = run("--config", "/nonexistent", "--check-config")
    assert done.returncode == 1 and "/nonexistent: No such file" in done.stderr
    assert run("--check-config").returncode == 0


def test_no_socket_given(programs):
    with removed(public_directory()) as root:
        d = Daemon(programs=programs, root=root)
        at = d.command.index("--socket")
        del d.command[at:at + 2]
        d.env.pop("LISTEN_FDS", None)
        d.spawn()
        assert d.process.wait(10) == 1 and "name one with --socket" in d.log()


def test_socket_from_the_service_manager(programs):
    """As systemd does it: descriptor 3, LISTEN_FDS and LISTEN_PID; the socket stays when it ends."""
    with removed(public_directory()) as root:
        path = os.path.join(root, "passed")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            script = f"exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\""
            p = subprocess.Popen(["bash", "-c", script, "sh", os.path.join(programs, "sandboxd"), "--state-dir",
                                  os.path.join(root, "state"), "--runtime-dir", os.path.join(root, "run")],
                                 pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
            try:
                with Link(path) as link:
                    assert link.call("GetVersion")["mode"] == "service"
                    assert link.call("Run", code="echo x", environment="shell")["stdout"] == "x\n"
            finally:
                p.terminate()
                assert p.wait(15) == 0
        assert os.path.exists(path)


# Starts that fail

def test_no_bubblewrap(start):
    d = start(env={"PATH": "/nonexistent"})
    error = d.refused("Run", code="true", session="a")
    assert error.name == "StartFailed" and "bubblewrap is not installed" in error.message
    assert "apt install bubblewrap" in error.message
    assert d.call("List")["sessions"] == []
    check = next(c for c in d.call("Doctor")["checks"] if c["name"] == "bubblewrap")
    assert check["verdict"] == "error" and check["fix"]


def test_no_agent(programs):
    with removed(public_directory()) as copy:
        shutil.copy(os.path.join(programs, "sandboxd"), copy)
        if os.path.exists("/usr/libexec/nix-sandbox/sandbox-agent"):
            pytest.skip("one is installed")
        log = refused_start(copy)
        assert "sandbox-agent" in log and "Install nix-sandbox completely" in log


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_user_namespaces_forbidden(start):
    """As uid 0 without capabilities in a user namespace of its own, where the sysctl is 0."""
    wrapper = ["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && "
               "exec setpriv --bounding-set -all --inh-caps -all \"$@\"", "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False, user=NOBODY, group=NOBODY).returncode != 0:
        pytest.skip("no user namespaces here at all")
    d = start(wrapper=wrapper, uid=NOBODY)
    # Often, because it may end before it is sent its first turn, and after.
    code = f"c = Client({d.sock!r})\nerrors = [c.refused('Run', code='true', session='a') for _ in range(30)]\n" \
           "print(json.dumps([[[e.name, e.message] for e in errors], c.call('Doctor')['checks'], c.call('List')['sessions']]))"
    errors, checks, sessions = as_user(NOBODY, code)
    for error, message in errors:
        assert error == "StartFailed" and "user.max_user_namespaces" in message, message
    check = next(c for c in checks if c["name"] == "user namespaces")
    assert check["verdict"] == "error" and "sysctl" in check["fix"]
    assert sessions == [] and alive(d.pid)

# SPDX-License-Identifier: MIT
"""A machine and users at their worst: the service stays up, others are unaffected, and errors say what to do."""
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import pytest

from daemonlib import (BUILD, PROGRAMS, Daemon, VarlinkError, alive, as_user, cgroups_named, descendants, memory_kilobytes, parent_of,
                       stat_of, together, tree_name, wait_for)

ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(not ROOT, reason="needs root: other users, mount namespaces, cgroups")
ALICE, BOB = 64001, 64002


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def in_namespace(script, *args):
    """A wrapper that prepares a private mount namespace with a shell text, in which $1… are args."""
    return ["unshare", "--mount", "sh", "-ec", script + '; shift "$1"; shift; exec "$@"', "sh", str(len(args)), *args]


# Users

def test_a_thousand_connections_of_one_user(start):
    d = start()
    before = descriptors(d.pid)
    counts = as_user(ALICE, """
path, links, served, refused = sys.argv[1], [], 0, 0
for _ in range(1000):
    link = Link(path)
    links.append(link)
    with contextlib.suppress(OSError):
        link.send("GetVersion")
    message = link.receive()
    if message and "error" not in message:
        served += 1
    elif message is None or "user.max_connections" in message["parameters"]["message"]:
        refused += 1
print(json.dumps([served, refused]))
""", d.sock, wait=120)
    assert counts == [256, 744]
    wait_for(lambda: descriptors(d.pid) <= before)


def test_a_user_at_his_cap_is_alone_with_it(start):
    d = start({"user": {"max_connections": 8}})
    hold = subprocess.Popen(["/usr/bin/python3", "-c", """
import socket, sys
links = [socket.socket(socket.AF_UNIX) for _ in range(100)]
for link in links:
    link.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
""", d.sock], user=ALICE, group=ALICE, extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert hold.stdout.readline() == b"held\n"
        for _ in range(20):
            assert as_user(BOB, "print(json.dumps(Link(sys.argv[1]).call('GetVersion')))", d.sock)["version"]
            assert d.call("GetVersion")["version"]
    finally:
        hold.communicate()


FOREIGN = """
path, id, other = sys.argv[1:]
def ask(method, name, **more):
    with Link(path) as link:
        link.send(method, session=name, **more)
        while b"\\0" not in link.inbox:
            link.inbox += link.socket.recv(1 << 16)
        return link.inbox.decode()
found = {}
for method in ("Show", "Kill", "Wait", "Interrupt", "Freeze", "Thaw", "History"):
    for project in ({}, {"project": "/home/alice/work"}):
        for true, false in ((id, other), ("secret", "sekret")):
            a, b = ask(method, true, **project), ask(method, false, **project)
            found[f"{method} {project} {true}"] = [a, b.replace(false, true)]
times = [[], []]
for _ in range(300):
    for which, name in zip(times, (id, other)):
        began = time.perf_counter()
        ask("Show", name)
        which.append(time.perf_counter() - began)
print(json.dumps([found, times]))
"""


def test_what_is_another_users_is_not_there(start):
    """Byte for byte, by name, by id, and with the project claimed; and without a difference in time."""
    d = start()
    id = as_user(ALICE, """
with Link(sys.argv[1]) as link:
    print(json.dumps(link.call("Run", code="true", environment="shell", session="secret", project="/home/alice/work")["id"]))
""", d.sock)
    other = id[::-1] if id != id[::-1] else "0123456789ab"

    def check():
        answers, times = as_user(BOB, FOREIGN, d.sock, id, other, wait=60)
        for what, (true, false) in answers.items():
            assert true == false and "NoSuchSession" in true, what
        there, missing = (statistics.median(t) for t in times)
        assert there < 1.5 * missing and missing < 1.5 * there, (there, missing)
    check()
    d.call("Kill", session=id)      # by root; what has ended is not told to others either
    check()


def test_the_same_name_and_project_of_two_users(start):
    d = start()
    code = """
with Link(sys.argv[1]) as link:
    print(json.dumps(link.call("Run", code="echo ${x:-none}; x=" + sys.argv[2], environment="shell", session="s", project="/p")))
"""
    first = [as_user(uid, code, d.sock, str(uid)) for uid in (ALICE, BOB)]
    second = [as_user(uid, code, d.sock, str(uid)) for uid in (ALICE, BOB)]
    assert [r["stdout"] for r in first] == ["none\n", "none\n"] and first[0]["id"] != first[1]["id"]
    assert [r["stdout"] for r in second] == [f"{ALICE}\n", f"{BOB}\n"]


# Descriptors

def fill_with_sessions(d, count=100):
    """The error of the first that cannot be made."""
    for n in range(count):
        try:
            d.run("true", f"fill-{n}")
        except VarlinkError as e:
            return n, e
    raise AssertionError("there was no end to it")


def test_out_of_descriptors(start):
    """Sessions are refused while there are still enough to accept whoever wants to end one."""
    d = start(wrapper=["prlimit", "--nofile=200:200"])
    made, error = fill_with_sessions(d)
    assert made >= 3 and error.name == "StartFailed"
    assert "out of descriptors" in error.message and "sandboxctl kill" in error.message
    links = [d.link() for _ in range(10)]
    assert all(link.call("GetVersion") for link in links)
    assert d.run("echo x", "fill-0")["stdout"] == "x\n"
    for link in links:
        link.close()
    for n in range(2):
        d.call("Kill", session=f"fill-{n + 1}")
    wait_for(lambda: descriptors(d.pid) < 200 - 64)
    assert d.run("echo x", "again")["stdout"] == "x\n"


def test_no_descriptor_for_a_connection(start):
    """The listener pauses instead of spinning, and those who waited are served when there is room again."""
    d = start(wrapper=["prlimit", "--nofile=120:120"])
    d.run("true", "a")
    links = [d.link() for _ in range(100)]
    for link in links:
        link.send("GetVersion")
    before = cpu_seconds(d.pid)
    time.sleep(3)
    assert cpu_seconds(d.pid) - before < 0.3
    served = [link for link in links if not link.quiet(0.01)]
    assert 5 < len(served) < 100
    assert d.begin("echo x", "a", link=served[0]) and "version" in served[0].answer()
    assert served[0].answer()["stdout"] == "x\n"
    for link in links[:-1]:
        link.close()
    assert links[-1].answer()["version"]
    assert d.run("echo $((n++))", "a")["stdout"] == "0\n"


def test_sessions_end_without_descriptors(start):
    """Whoever is connected can end one, and what cannot be removed at once is removed later."""
    d = start(wrapper=["prlimit", "--nofile=120:120"])
    for name in ("a", "b"):
        d.run("sleep 1000 & :", name)
    inside = descendants(d.pid)
    links = [d.link() for _ in range(100)]
    links[0].call("GetVersion")
    wait_for(lambda: descriptors(d.pid) == 120)
    links[0].send("Kill", session="a")
    wait_for(lambda: len([p for p, begin in inside if (s := stat_of(p)) and s[2] == begin and s[0] != "Z"]) <= len(inside) / 2)
    for link in links[1:]:
        link.close()
    assert links[0].answer()["id"]
    d.call("Kill", session="b")
    groups = [g for tree in cgroups_named(tree_name(d.runtime)) for g, _, _ in os.walk(tree) if re.search(r"/u\d+$", g)]
    assert groups == []


# Disks and file systems

FULL = 'mkdir -p "$2"; mount -t tmpfs -o size=64k none "$2"; cat /dev/zero >"$2/filler" 2>/dev/null || :'


@pytest.mark.parametrize("directory", ["run", "state"])
def test_full_disk(programs, directory):
    """Of what a daemon writes there, nothing is worth more than its sessions."""
    d = Daemon(programs=programs)
    d.command = in_namespace(FULL, os.path.join(d.root, directory)) + d.command
    with d:
        assert d.run("echo $((n++))", "a")["stdout"] == "0\n"
        assert d.run("echo $((n++))", "a")["stdout"] == "1\n"
        assert d.run("echo x")["stdout"] == "x\n"
        d.call("Kill", session="a")
        assert "No space left" in d.log() or directory == "state"


@pytest.mark.parametrize("directory", ["run", "state"])
def test_no_inodes(programs, directory):
    """It starts, or says which directory it cannot use and what to do."""
    d = Daemon(programs=programs)
    try:
        d.command = in_namespace('mkdir -p "$2"; mount -t tmpfs -o nr_inodes=1 none "$2"', os.path.join(d.root, directory)) + d.command
        done = subprocess.run(["timeout", "3", *d.command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 and done.returncode != 124:
            assert os.path.join(d.root, directory) in done.stderr and "No space left" in done.stderr, done.stderr
    finally:
        d.close()


def test_full_tmp():
    """Neither the daemon nor a jail that it builds needs the machine's /tmp."""
    place = tempfile.mkdtemp(prefix="nsc-", dir="/var/tmp")
    os.chmod(place, 0o755)
    try:
        for program in PROGRAMS:
            shutil.copy(os.path.join(BUILD, program), place)
        root = os.path.join(place, "root")
        os.mkdir(root, 0o755)
        d = Daemon(programs=place, root=root)
        d.command = in_namespace(FULL.replace('mkdir -p "$2"; ', ""), "/tmp") + d.command
        with d:
            assert d.run("echo x > /tmp/y; cat /tmp/y", "a")["stdout"] == "x\n"
    finally:
        shutil.rmtree(place, ignore_errors=True)


EACH_CGROUP_MOUNT = "for m in $(sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2\\? .*/\\1/p' /proc/self/mounts | sort -u); do "
READ_ONLY = EACH_CGROUP_MOUNT + 'mount -o bind,remount,ro "$m"; done'
# Over what is there, because a mount with open files cannot be made read-only itself.
READ_ONLY_ABOVE = EACH_CGROUP_MOUNT + 'mount --bind "$m" "$m"; mount -o bind,remount,ro "$m"; done'
NOT_ABOVE = EACH_CGROUP_MOUNT + 'umount "$m"; done'


def test_cgroups_are_read_only(programs):
    """Without limits, which it says, rather than not at all: it was started by hand."""
    d = Daemon(programs=programs)
    d.command = in_namespace(READ_ONLY) + d.command
    with d:
        assert d.run("echo x", "a")["stdout"] == "x\n"
        assert d.show("a")["cgroup"] is None
        assert "Limits" in d.log()
        assert d.refused("Freeze", session="a").name == "NotSupported"


def test_cgroups_become_read_only(programs):
    """In the daemon's own mount namespace, and only there."""
    d = Daemon(programs=programs, wrapper=in_namespace(":"))
    with d:
        assert os.readlink(f"/proc/{d.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        d.run("n=1", "a")
        if not d.show("a")["cgroup"]:
            pytest.skip("no cgroups here")
        inside = ["nsenter", "-t", str(d.pid), "-m", "sh", "-ec"]
        subprocess.run([*inside, READ_ONLY_ABOVE], check=True)
        error = d.refused("Run", code="true", session="b")
        assert error.name == "StartFailed" and "read-only" in error.message.lower() and "doctor" in error.message
        assert d.run("echo $n", "a")["stdout"] == "1\n"
        assert d.call("GetVersion")
        # So that its end can be looked at as any other's.
        subprocess.run([*inside, NOT_ABOVE], check=True)


def test_cgroups_are_removed(start):
    """Nobody should, but somebody will."""
    d = start()
    d.run("true", "a")
    group = d.show("a")["cgroup"]
    if not group:
        pytest.skip("no cgroups here")
    d.call("Kill", session="a")
    for tree in cgroups_named(tree_name(d.runtime)):
        for folder, _, _ in os.walk(tree, topdown=False):
            os.rmdir(folder)
    error = d.refused("Run", code="true", session="a")
    assert error.name == "StartFailed" and "start it again" in error.message
    assert d.call("List")["sessions"] == []


def test_a_session_without_its_cgroup(start):
    """Its processes were moved out and the group removed: it goes on, and ends as a whole."""
    d = start()
    d.run("n=1; sleep 1000 & ", "a")
    group = d.show("a")["cgroup"]
    if not group:
        pytest.skip("no cgroups here")
    inside = descendants(d.pid)
    hierarchy = group[:group.index("/" + tree_name(d.runtime))]
    with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as f:
        for pid in f.read().split():
            with open(os.path.join(hierarchy, "cgroup.procs"), "w", encoding="ascii") as procs:
                procs.write(pid)
    wait_for(lambda: "populated 0" in open(os.path.join(group, "cgroup.events"), encoding="ascii").read())
    os.rmdir(group)

    assert d.run("echo $n", "a")["stdout"] == "1\n"
    assert d.show("a")["cpu_usec"] is None
    with pytest.raises(VarlinkError):
        d.call("Freeze", session="a")
    assert d.run("echo $n", "a")["stdout"] == "1\n"
    d.call("Kill", session="a")
    wait_for(lambda: not [p for p, begin in inside if (s := stat_of(p)) and s[2] == begin and s[0] != "Z"])
    assert d.run("echo ${n:-none}", "a")["stdout"] == "none\n"


# Processes

def test_the_jails_monitor_is_killed(start):
    d = start()
    d.run("n=1", "other")
    before = descendants(d.pid)
    d.run("true", "a")              # a start that is killed is tried again
    link = d.begin("sleep 1000 & sleep 1000", "a")
    d.wait_busy("a")
    ours = descendants(d.pid) - before
    monitor = next(p for p, _ in ours if parent_of(p) == d.pid)
    os.kill(monitor, signal.SIGKILL)
    with pytest.raises(VarlinkError) as e:
        link.answer()
    assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "crashed"
    wait_for(lambda: not [p for p, begin in ours if (s := stat_of(p)) and s[2] == begin and s[0] != "Z"])
    assert d.run("echo $n", "other")["stdout"] == "1\n"


def test_the_daemon_is_stopped_for_a_while(start):
    """What would have happened meanwhile happens then, and nobody who waited is lost."""
    d = start({"session": {"standby_after_seconds": 1}})
    d.run("n=1", "idle")
    running = d.begin("sleep 1; echo done", "running")
    d.wait_busy("running")
    os.kill(d.pid, signal.SIGSTOP)
    try:
        links = [d.link() for _ in range(20)]
        for link in links:
            link.send("GetVersion")
        time.sleep(2.5)
    finally:
        os.kill(d.pid, signal.SIGCONT)
    assert running.answer()["stdout"] == "done\n"
    assert all(link.answer()["version"] for link in links)
    wait_for(lambda: d.state("idle") == "standby" or d.show("idle")["cgroup"] is None)
    assert d.run("echo $n", "idle")["stdout"] == "1\n"


def test_clocks_that_are_far_ahead(programs):
    """A daemon on a machine that is up for three years. Only CLOCK_MONOTONIC drives bounds, as tools/lint checks,
    so that a jump of the wall clock changes what is printed and nothing else."""
    offset = 100_000_000
    with Daemon({"session": {"standby_after_seconds": 0.5}}, programs=programs,
                wrapper=["unshare", "--time", "--monotonic", str(offset), "--boottime", str(offset)]) as d:
        if os.readlink(f"/proc/{d.pid}/ns/time") == os.readlink("/proc/self/ns/time"):
            pytest.skip("this kernel enters a time namespace on fork only")
        d.run("n=1", "a")
        session = d.show("a")
        assert session["idle_usec"] < 30e6 and abs(session["created_usec"] / 1e6 - time.time()) < 60
        assert d.run("sleep 1000", timeout_ms=300)["timed_out"]
        if session["cgroup"]:
            wait_for(lambda: d.state("a") == "standby")
        assert d.run("echo $n", "a")["stdout"] == "1\n"


ROUNDS, AT_ONCE = 40, 5


def test_nothing_stays_of_two_hundred_sessions(start):
    """Made and killed, five at once, with children that fork while they are killed."""
    d = start()
    busy = "for i in 1 2 3; do (while :; do sleep 0.01; done) & done; sleep 1000"

    def live(n):
        name = f"come-and-go-{n}"
        with d.link() as link:
            d.begin(busy, name, link=link)
            d.wait_busy(name)
            d.call("Kill", session=name)
            with contextlib.suppress(VarlinkError):
                link.answer()

    together(*[lambda n=n: live(n) for n in range(AT_ONCE)])      # what is allocated once
    children, fds, memory = descendants(d.pid), descriptors(d.pid), memory_kilobytes(d.pid)
    with open(f"/proc/{d.pid}/mountinfo", encoding="utf-8") as f:
        mounts = len(f.readlines())
    for _ in range(ROUNDS):
        together(*[lambda n=n: live(n) for n in range(AT_ONCE)])

    assert d.call("List")["sessions"] == []
    wait_for(lambda: not [p for p, begin in descendants(d.pid) - children if (s := stat_of(p)) and s[2] == begin])
    wait_for(lambda: descriptors(d.pid) <= fds)
    assert memory_kilobytes(d.pid) < memory + 1024
    with open(f"/proc/{d.pid}/mountinfo", encoding="utf-8") as f:
        assert len(f.readlines()) == mounts
    for tree in cgroups_named(tree_name(d.runtime)):
        assert not [name for name in os.listdir(tree) if re.match(r"u\d", name)]
    assert alive(d.pid)

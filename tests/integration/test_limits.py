# SPDX-License-Identifier: MIT
"""Limits: which one a turn ran into is told; those of a living session can be set; freezing and standby."""
import contextlib
import json
import os
import socket
import subprocess
import time

import pytest

from daemonlib import NOBODY, Link, as_user, cgroups_named, public_directory, removed, tree_name, wait_for
from test_lifecycle import need_cgroups


def hits(daemon, sid):
    return [e["detail"] for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "limit_hit"]


# Named

@pytest.mark.parametrize("place, words", [
    ("/workspace", "Disk limit 32 MB of /workspace reached: writing fails. Delete files there"),
    ("/tmp", "Disk limit of /tmp reached"), ("/dev/shm", "Disk limit of /dev/shm reached")])
def test_a_full_disk_is_named(daemon, name, place, words):
    reply = daemon.run(f"head -c 100M /dev/zero > {place}/big", name, memory_mb=64)
    assert reply["exit_code"] == 1 and words in reply["notice"] and hits(daemon, reply["id"]) == ["disk"]
    assert daemon.run("sleep 0.01", name)["notice"], "a turn that is long enough is told as well"
    assert daemon.run(f"rm {place}/big; false", name)["notice"] is None


def test_a_disk_with_room_is_not(daemon, name):
    reply = daemon.run("head -c 20M /dev/zero > big; sleep 0.01; false", name, memory_mb=64)
    assert reply["notice"] is None and hits(daemon, reply["id"]) == []


def test_a_low_cpu_limit_is_named(daemon, name):
    need_cgroups(daemon, "cpu limit")
    spin = "import time\nend = time.monotonic() + 0.6\nwhile time.monotonic() < end: pass"
    reply = daemon.run(spin, name, env="python", cpus=0.1)
    assert "CPU limit 0.1 reached" in reply["notice"] and hits(daemon, reply["id"]) == ["cpu"]
    # Long enough that the rest of the debt, which the kernel counts when it is paid, is a small part of it.
    assert daemon.run("import time; time.sleep(3)", name, env="python")["notice"] is None, "of an earlier turn"
    assert daemon.run("1", name, env="python")["notice"] is None
    daemon.call("Kill", session=name, project="/test")  # saved at the end of the daemon, it would take long


def test_processes_of_all_sessions_together(start):
    d = start({"user": {"max_processes": 24}})
    need_cgroups(d, "process limit")
    d.run("for i in {1..9}; do sleep 600 & done", "a")
    reply = d.run("for i in {1..40}; do sleep 60 & done; wait -n; true", "b", timeout_ms=1000)
    assert "fork" in reply["stderr"], reply
    assert d.show("a")["processes"] + d.show("b")["processes"] <= 24


# Set

KERNEL = {"memory": ("memory.limit_in_bytes", "memory.max"), "cpus": ("cpu.cfs_quota_us", "cpu.max"),
          "weight": ("cpu.shares", "cpu.weight"), "processes": ("pids.max", "pids.max")}


def in_kernel(daemon, sid, limit, node=f"u{os.getuid()}"):
    """The first word of a limit's file, wherever its controller is."""
    for base in cgroups_named(tree_name(daemon.runtime)):
        for file in KERNEL[limit]:
            path = os.path.join(base, node, sid, file)
            if os.path.exists(path):
                with open(path, encoding="ascii") as f:
                    return int(f.read().split()[0].replace("max", "-1"))
    raise AssertionError(f"there is no {limit}")


def test_limits_are_set_in_the_kernel(daemon, name):
    need_cgroups(daemon, "memory limit", "process limit", "cpu limit")
    sid = daemon.run("x=1", name, memory_mb=128, cpus=1)["id"]
    before = daemon.show(name)
    for memory, cpus, processes in ((256, 1.5, 700), (64, 0.5, 100)):
        reply = daemon.call("Set", session=name, memory_mb=memory, cpus=cpus, processes=processes)
        assert reply["notice"] is None
        assert {k: reply["session"][k] for k in ("memory_mb", "cpus", "processes_max", "workspace_mb")} == {
            "memory_mb": memory, "cpus": cpus, "processes_max": processes, "workspace_mb": before["workspace_mb"]}
        assert in_kernel(daemon, sid, "memory") == memory << 20
        assert in_kernel(daemon, sid, "cpus") == cpus * 100000
        assert in_kernel(daemon, sid, "processes") == processes
    assert daemon.run("echo $x; df -m /workspace | tail -1", name)["stdout"].split()[:3:2] == ["1", "64"]
    daemon.call("Set", session=name, cpu_weight=50)
    assert in_kernel(daemon, sid, "weight") in (50, 512)
    assert in_kernel(daemon, sid, "memory") == 64 << 20, "what is not asked stays"
    assert daemon.events(sid).count("limits_set") == 3


def test_a_limit_that_is_set_is_kept_to(daemon, name):
    need_cgroups(daemon, "memory limit")
    daemon.run("1", name, env="python", memory_mb=64)
    big = "len(bytearray(100 << 20))"
    daemon.call("Set", session=name, memory_mb=300)
    assert daemon.run(big, name, env="python")["exit_code"] == 0
    daemon.call("Set", session=name, memory_mb=64)
    reply = daemon.run(big, name, env="python")
    assert reply["exit_code"] != 0 and ("Memory limit 64 MB" in (reply["notice"] or "") or "MemoryError" in reply["stderr"])


def test_set_is_clamped_and_told(start):
    d = start({"max": {"memory_mb": 600, "processes": 600, "cpus": 3}})
    need_cgroups(d, "memory limit", "process limit", "cpu limit")
    d.run("true", "a")
    reply = d.call("Set", session="a", project="/test", memory_mb=601, cpus=99, processes=1)
    assert reply["session"]["memory_mb"] == 600 and reply["session"]["cpus"] == 3
    assert reply["session"]["processes_max"] == 16
    assert [s.split()[0] for s in reply["notice"].split(". ")] == ["cpus", "memory", "processes"]
    assert "memory 601 MB is over the maximum of 600 MB: 600 MB used." in reply["notice"]


def test_less_memory_than_is_used_is_refused(daemon, name):
    need_cgroups(daemon, "memory limit")
    sid = daemon.run("head -c 50M /dev/zero > big", name, memory_mb=256)["id"]
    error = daemon.refused("Set", session=name, memory_mb=40, processes=100)
    assert error.name == "LimitExceeded" and error.parameters["limit"] == "memory"
    assert "files in /workspace included" in error.message
    assert in_kernel(daemon, sid, "memory") == 256 << 20 and in_kernel(daemon, sid, "processes") == 512
    daemon.run("rm big", name)
    assert daemon.call("Set", session=name, memory_mb=40)["session"]["memory_mb"] == 40


def test_set_where_there_is_no_controller(daemon, name):
    daemon.run("true", name)
    checks = {c["name"]: c["verdict"] for c in daemon.call("Doctor")["checks"]}
    if checks["io limit"] == "ok":
        pytest.skip("there is an io controller")
    error = daemon.refused("Set", session=name, io_read_mbps=5, processes=100)
    assert error.name == "NotSupported" and "io" in error.message and "doctor" in error.message
    assert daemon.show(name)["processes_max"] == 512 and "limits_set" not in daemon.events(daemon.show(name)["id"])


def test_memory_of_all_sessions_together(start):
    d = start({"user": {"max_memory_mb": 300}, "defaults": {"memory_mb": 100}})
    need_cgroups(d, "memory limit")
    d.run("true", "a")
    d.run("true", "b")
    error = d.refused("Set", session="a", project="/test", memory_mb=201)
    assert error.name == "LimitExceeded" and "user.max_memory_mb" in error.message
    d.call("Set", session="a", project="/test", memory_mb=200)
    assert d.refused("Run", code="true", session="c").name == "LimitExceeded"
    d.call("Set", session="a", project="/test", memory_mb=50)
    assert d.run("true", "c")["exit_code"] == 0, "the sum follows"


def test_limits_of_a_user_are_the_kernels(start):
    d = start({"user": {"max_memory_mb": 700, "max_processes": 99, "max_cpus": 0.5}})
    need_cgroups(d, "memory limit", "process limit", "cpu limit")
    d.run("true", "a")
    assert in_kernel(d, "", "memory") == 700 << 20
    assert in_kernel(d, "", "processes") == 99
    assert in_kernel(d, "", "cpus") == 50000


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_set_of_another_users_session(daemon, name):
    sid = daemon.run("true", name)["id"]
    got = as_user(NOBODY, """
try: print(json.dumps(Link(sys.argv[1]).call("Set", session=sys.argv[2], processes=100)))
except VarlinkError as e: print(json.dumps(e.name))""", daemon.sock, sid)
    assert got == "NoSuchSession" and daemon.show(name)["processes_max"] == 512


@pytest.mark.parametrize("parameters, field", [
    ({}, "memory_mb"), ({"memory_mb": 0}, "memory_mb"), ({"memory_mb": "1"}, "memory_mb"), ({"memory_mb": -1}, "memory_mb"),
    ({"memory_mb": 64.5}, "memory_mb"), ({"cpus": True}, "cpus"), ({"cpus": []}, "cpus"), ({"processes": 1e99}, "processes"),
    ({"cpu_weight": {}}, "cpu_weight"), ({"io_read_mbps": "max"}, "io_read_mbps"), ({"exceed": 1}, "exceed"),
    ({"disk_mb": 5}, "disk_mb")], ids=str)
def test_set_with_bad_parameters(daemon, name, parameters, field):
    daemon.run("true", name)
    error = daemon.refused("Set", session=name, **parameters)
    assert error.name == "org.varlink.service.InvalidParameter" and error.parameters["parameter"] == field
    assert daemon.state(name) == "running"


def test_set_at_the_edges(daemon, name):
    need_cgroups(daemon, "memory limit", "process limit", "cpu limit")
    daemon.run("true", name)
    for key, value in (("cpus", 5e-324), ("cpus", 1e308), ("cpus", -1), ("memory_mb", 2**63 - 1), ("processes", 2**63 - 1),
                       ("cpu_weight", 2**63 - 1)):
        assert daemon.call("Set", session=name, **{key: value})["notice"], (key, value)
    assert daemon.run("echo x", name)["stdout"] == "x\n"


# Frozen

def test_set_while_frozen(daemon, name):
    need_cgroups(daemon, "freezer", "process limit")
    sid = daemon.run("true", name)["id"]
    daemon.call("Freeze", session=name)
    assert daemon.call("Set", session=name, processes=99)["session"]["state"] == "frozen"
    assert in_kernel(daemon, sid, "processes") == 99
    daemon.call("Thaw", session=name)
    assert daemon.run("echo on", name)["stdout"] == "on\n"


def test_who_froze_it_is_told(daemon, name):
    need_cgroups(daemon, "freezer")
    daemon.run("true", name)
    assert daemon.show(name)["frozen_by"] is None
    before = time.time()
    daemon.call("Freeze", session=name)
    shown = daemon.show(name)
    assert shown["frozen_by"] == os.getuid() and before - 1 <= shown["frozen_usec"] / 1e6 <= time.time() + 1
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(shown["frozen_usec"] // 1000000))
    error = daemon.refused("Run", code="true", session=name, project="/test")
    assert error.name == "SessionFrozen" and f"by hand by you at {when}" in error.message
    daemon.call("Thaw", session=name)
    assert daemon.show(name)["frozen_by"] is None


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_who_else_froze_it_is_told(daemon):
    need_cgroups(daemon, "freezer")
    code = """
link = Link(sys.argv[1])
if len(sys.argv) > 2:
    try: link.call("Run", code="true", session="cold", project="/p")
    except VarlinkError as e: print(json.dumps(e.message))
else:
    print(json.dumps(link.call("Run", code="true", session="cold", project="/p", environment="shell")["id"]))"""
    sid = as_user(NOBODY, code, daemon.sock)
    daemon.call("Freeze", session=sid, any_user=True)
    assert f"by hand by uid {os.getuid()} at " in as_user(NOBODY, code, daemon.sock, "again")
    daemon.call("Kill", session=sid, any_user=True)


@pytest.mark.parametrize("kind, state", [("freeze", "standby"), ("keep-awake", "running")])
def test_background_jobs_and_standby(start, kind, state):
    d = start({"session": {"standby_after_seconds": 0.3, "background_jobs": kind}})
    need_cgroups(d, "freezer")
    d.run("sleep 600 &", "busy")
    d.run("true", "idle")
    wait_for(lambda: d.state("idle") == "standby")
    wait_for(lambda: d.state("busy") == state)
    d.run("kill $!; wait", "busy")
    wait_for(lambda: d.state("busy") == "standby")


# Without limits

@contextlib.contextmanager
def service_without_groups(programs, config):
    """As another user, who can make no group: (process, Link or None, log)."""
    with removed(public_directory()) as root, socket.socket(socket.AF_UNIX) as listener:
        paths = {p: os.path.join(root, p) for p in ("socket", "config", "log")}
        os.chown(root, NOBODY, NOBODY)
        with open(paths["config"], "w", encoding="utf-8") as f:
            json.dump(config, f)
        listener.bind(paths["socket"])
        listener.listen()
        script = f"exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\""
        with open(paths["log"], "wb") as log:
            p = subprocess.Popen(["bash", "-c", script, "sh", os.path.join(programs, "sandboxd"), "--state-dir",
                                  os.path.join(root, "state"), "--runtime-dir", os.path.join(root, "run"), "--config",
                                  paths["config"]], pass_fds=[listener.fileno()], stderr=log, user=NOBODY, group=NOBODY,
                                 extra_groups=[])
        try:
            yield p, paths
        finally:
            p.terminate()
            p.wait(15)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_the_service_does_not_start_without_limits(programs):
    with service_without_groups(programs, {}) as (p, paths):
        assert p.wait(15) == 1
        log = read(paths["log"])
        assert "cannot enforce the limits" in log and "Delegate=" in log and "require_limits" in log


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_the_service_starts_without_limits_when_told(programs):
    with service_without_groups(programs, {"require_limits": False}) as (p, paths):
        with Link(paths["socket"]) as link:
            assert link.call("GetVersion")["mode"] == "service"
            checks = {c["name"]: c for c in link.call("Doctor")["checks"]}
        assert p.poll() is None and "require_limits is false" in read(paths["log"])
        assert checks["limits required"]["verdict"] == "warning" and checks["memory limit"]["verdict"] == "warning"


def test_doctor_tells_the_limits_of_a_user(daemon, start):
    def detail(d):
        return next(c["detail"] for c in d.call("Doctor")["checks"] if c["name"] == "user limits")
    need_cgroups(daemon, "memory limit", "process limit", "cpu limit")
    assert "256 sessions" in detail(daemon) and "MB" not in detail(daemon)
    d = start({"user": {"max_memory_mb": 700, "max_processes": 99, "max_cpus": 0.5, "max_sessions": 7}})
    assert detail(d) == "of one user together: 7 sessions, 256 connections, 700 MB, 99 processes, 0.5 CPUs"

# SPDX-License-Identifier: MIT
"""The project at /project of a jail: who gets it, how, and what is said when he does not."""
import contextlib
import os
import shutil
import signal
import stat

import pytest
from daemonlib import NOBODY, Daemon, Link, VarlinkError, public_directory, wait_for

OWNER = 4711
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs several users")
CONFIG = {"defaults": {"project": "read-write"}, "environments": {"node": {"project": "none"}, "python": {"project": "read-only"}}}


@pytest.fixture(scope="module")
def allowing():
    with Daemon(CONFIG) as d:
        yield d


@pytest.fixture
def place():
    """A project of OWNER's with a file of his and one that is private."""
    root = public_directory()
    path = os.path.join(root, "project")
    os.mkdir(path)
    for name, mode in (("file", 0o644), ("secret", 0o600)):
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            f.write(f"{name}\n")
        os.chmod(f.name, mode)
        os.chown(f.name, OWNER, OWNER)
    os.chown(path, OWNER, OWNER)
    yield path
    shutil.rmtree(root)


def link_of(daemon, uid):
    os.seteuid(uid)
    try:
        return Link(daemon.sock)
    finally:
        os.seteuid(0)


def run(daemon, project, code, mode="read-only", uid=OWNER, env="shell", **more):
    os.setgroups([])
    with link_of(daemon, uid) as link:
        return link.call("Run", code=code, project=project, project_mode=mode, environment=env, **more)


def refusal(*args, **more):
    with pytest.raises(VarlinkError) as e:
        run(*args, **more)
    return e.value


def test_read_only_really(daemon, place):
    reply = run(daemon, place, "cat /project/file /project/secret; ls /project; stat -c %u /project/file")
    assert reply["stdout"] == "file\nsecret\nfile\nsecret\n1000\n" and not reply["notice"], reply
    reply = run(daemon, place, "echo x > /project/file; echo x > /proc/self/root/project/new; rm -f /project/file; chmod 0 /project;"
                               "mount -o remount,rw,bind /project; touch /project/file; ln -s / /project/l")
    assert reply["stderr"].count("Read-only file system") >= 5, reply
    assert os.listdir(place) and open(os.path.join(place, "file"), encoding="utf-8").read() == "file\n"
    flags = run(daemon, place, "grep ' /project ' /proc/self/mountinfo | cut -d' ' -f6")["stdout"]
    assert {"ro", "nosuid", "nodev"} <= set(flags.strip().split(",")), flags


def test_read_write_takes_both(daemon, allowing, place):
    reply = run(daemon, place, "touch /project/new", "read-write")
    assert "Read-only" in reply["stderr"] and '"project" in "defaults" or in environment "shell"' in reply["notice"], reply
    reply = run(allowing, place, "touch /project/new")
    assert "Read-only" in reply["stderr"] and not reply["notice"]
    reply = run(allowing, place, "echo hi > /project/new; touch /project/file", "read-write")
    assert not reply["stderr"] and not reply["notice"], reply
    assert os.stat(os.path.join(place, "new")).st_uid == OWNER
    assert "mounted \"read-only\"" in run(allowing, place, "1", "read-write", env="python")["notice"]
    reply = run(allowing, place, "require('fs').existsSync('/project')", env="node")
    assert reply["stdout"] == "false\n" and "mounted \"none\"" in reply["notice"]
    flags = run(allowing, place, "grep ' /project ' /proc/self/mountinfo | cut -d' ' -f6", "read-write")["stdout"]
    assert {"rw", "nosuid", "nodev"} <= set(flags.strip().split(",")), flags


def test_only_on_demand(daemon, place):
    for more in ({"mode": None}, {"mode": "none"}):
        assert run(daemon, place, "ls -d /project", **more)["exit_code"] == 2
    with link_of(daemon, OWNER) as link:
        assert link.call("Run", code="ls -d /project", environment="shell")["exit_code"] == 2


def test_session_keeps_its_mode(daemon, allowing, place):
    run(allowing, place, "true", "read-write", session="rw")
    with link_of(allowing, OWNER) as link:
        assert link.call("Show", session="rw", project=place)["session"]["project_mode"] == "read-write"
    reply = run(allowing, place, "touch /project/again", session="rw")
    assert not reply["stderr"] and "set when a session is created" in reply["notice"], reply
    assert not run(allowing, place, "true", None, session="rw")["notice"]
    run(daemon, place, "true", "read-write", session="ro")
    assert not run(daemon, place, "true", "read-write", session="ro")["notice"]        # said once


def test_odd_names(daemon, place):
    parent = os.path.dirname(place)
    for name in ("workspace", "with space", "new\nline", "--ro-bind", "é\u202e", "…" * 60, "'\"$(id)`", "a\\b", "proc"):
        path = os.path.join(parent, name)
        os.mkdir(path)
        with open(os.path.join(path, "here"), "w", encoding="utf-8"):
            pass
        os.chmod(path, 0o755)
        assert run(daemon, path, "ls /project")["stdout"] == "here\n", name
    assert run(daemon, "/usr", "ls /project | grep -c '^bin$'")["stdout"] == "1\n"
    assert run(daemon, "/tmp", "ls -d /project")["exit_code"] == 0


def test_symlinks_lead_where_the_caller_could_go(daemon, place):
    parent = os.path.dirname(place)
    os.symlink(place, os.path.join(parent, "link"))
    os.symlink("/root", os.path.join(parent, "out"))
    os.symlink("loop", os.path.join(parent, "loop"))
    assert run(daemon, os.path.join(parent, "link"), "cat /project/file")["stdout"] == "file\n"
    with private("/root"):
        assert "permission denied for uid 4711" in refusal(daemon, os.path.join(parent, "out"), "true").message
    assert "cannot be mounted" in refusal(daemon, os.path.join(parent, "loop"), "true").message


@contextlib.contextmanager
def private(path):
    mode = stat.S_IMODE(os.stat(path).st_mode)
    os.chmod(path, 0o700)
    try:
        yield
    finally:
        os.chmod(path, mode)


def test_what_the_caller_cannot_reach(daemon, place):
    parent = os.path.dirname(place)
    with private(parent):
        e = refusal(daemon, place, "true")
        assert e.name == "StartFailed" and "permission denied for uid 4711" in e.message and "chmod o+x" in e.message, e
    with private(place):
        os.chown(place, 0, 0)
        assert "permission denied" in refusal(daemon, place, "true").message
        os.chown(place, OWNER, OWNER)
        assert run(daemon, place, "ls /project")["stdout"] == "file\nsecret\n"
        assert "permission denied for uid 65534" in refusal(daemon, place, "true", uid=NOBODY).message
    assert run(daemon, place, "cat /project/secret", uid=NOBODY)["stderr"] == "cat: /project/secret: Permission denied\n"


def test_what_is_no_directory(daemon, place):
    assert "is not a directory" in refusal(daemon, f"{place}/file", "true").message
    assert "moved or deleted" in refusal(daemon, f"{place}/gone", "true").message
    for bad in ("/", "//", "/.", "/usr/..", f"{place}/../project", None):
        e = refusal(daemon, bad, "true")
        assert e.name == "org.varlink.service.InvalidParameter" and e.parameters["parameter"] == "project", e
    assert refusal(daemon, place, "true", "rw").parameters["parameter"] == "project_mode"


def test_deleted_meanwhile(daemon, place):
    run(daemon, place, "cd /project", session="stays")
    gone = f"{place}-moved"
    os.rename(place, gone)
    assert run(daemon, place, "cat file; pwd", session="stays")["stdout"] == "file\n/project\n"
    assert "moved or deleted" in refusal(daemon, place, "true", session="other").message
    shutil.rmtree(gone)
    reply = run(daemon, place, "ls /project; echo $((1 + 1))", session="stays")
    assert reply["stdout"] == "2\n", reply
    os.mkdir(place)


def test_roots_own(daemon, place):
    """Unreadable parents do not matter, private files stay private, and nothing stays mounted."""
    parent = os.path.dirname(place)
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        before = f.read()
    with private(parent):
        reply = run(daemon, place, "cat /project/file; cat /project/secret; echo x > /project/new; grep -c /sys /proc/self/mountinfo", uid=0)
    assert reply["stdout"] == "file\n0\n" and "Permission denied" in reply["stderr"] and "Read-only" in reply["stderr"], reply
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        assert f.read() == before
    assert "is not a directory" in refusal(daemon, f"{place}/file", "true", uid=0).message
    assert "moved or deleted" in refusal(daemon, f"{place}/gone", "true", uid=0).message
    with private(place):
        os.chown(place, 0, 0)
        assert "Permission denied" in run(daemon, place, "ls /project", uid=0)["stderr"]


def test_a_restarted_daemon_knows(place):
    with Daemon() as d:
        run(d, place, "true", session="a")
        before = d.log().count(" serves ")
        os.kill(d.pid, signal.SIGHUP)
        wait_for(lambda: d.log().count(" serves ") > before)
        with link_of(d, OWNER) as link:
            assert link.call("Show", session="a", project=place)["session"]["project_mode"] == "read-only"
        assert run(d, place, "cat /project/file", session="a")["stdout"] == "file\n"


def test_sandboxctl(daemon, place):
    os.chmod(place, 0o755)
    assert daemon.ctl("run", "-e", "shell", "--project", place, "cat /project/file").stdout == "file\n"
    assert daemon.ctl("run", "-e", "shell", "ls -d /project", cwd=place).returncode == 2
    assert daemon.ctl("run", "-e", "shell", "--project-mode", "read-only", "cat /project/file", cwd=place).stdout == "file\n"
    assert daemon.ctl("run", "-e", "shell", "--project", "project", "cat /project/file", cwd=os.path.dirname(place)).stdout == "file\n"
    done = daemon.ctl("run", "-e", "shell", "--project", f"{place}/gone", "true")
    assert done.returncode == 1 and "moved or deleted" in done.stderr
    assert daemon.ctl("run", "--project", "gone", "true", cwd=place).returncode == 2
    daemon.ctl("run", "-e", "shell", "-s", "shown", "--project", place, "true")
    assert "read-only" in daemon.ctl("show", "shown", env={**os.environ, "PROJECT_DIR": place}).stdout


def test_a_restored_session_has_it_when_asked(daemon, place):
    run(daemon, place, "x=1", session="kept")
    with link_of(daemon, OWNER) as link:
        link.call("Save", session="kept", project=place)
        for mode, name in (("read-only", "again"), (None, "without")):
            link.call("Restore", session="kept", name=name, project=place, project_mode=mode)
        for mode in ("read-only", None):
            with pytest.raises(VarlinkError) as e:
                link.call("Restore", session="kept", name="again", project=f"{place}/../x" if mode else place,
                          project_mode=mode or "some")
            assert e.value.name.endswith("InvalidParameter")
    assert run(daemon, place, "cat /project/file; echo $x", session="again")["stdout"] == "file\n1\n"
    assert run(daemon, place, "ls /project 2>&1; echo $x", mode=None, session="without")["stdout"].endswith("\n1\n")

# SPDX-License-Identifier: MIT
"""Files out of sessions and into them: the API's Get and Put, sandboxctl get and put."""
import base64
import contextlib
import hashlib
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from daemonlib import WAIT, Daemon, VarlinkError, memory_kilobytes, wait_for

BIG = 100 << 20


@pytest.fixture
def folder():
    """Where the client's files are; nothing else is left in it."""
    path = tempfile.mkdtemp(prefix="nix-sandbox-files-")
    yield path
    shutil.rmtree(path)


def ctl(daemon, *args, **more):
    """sandboxctl, as if in the daemon's project."""
    return daemon.ctl(*args, env={**os.environ, "PROJECT_DIR": daemon.project}, **more)


def get(daemon, session, path, link=None):
    """(bytes, mode) by the API."""
    with contextlib.nullcontext(link) if link else daemon.link() as link:
        link.send("Get", _more=True, session=session, project=daemon.project, path=path)
        pieces = []
        while (reply := link.answer()).get("size") is None:
            pieces.append(base64.b64decode(reply["data"], validate=True))
        data = b"".join(pieces)
        assert reply["size"] == len(data)
        return data, reply["mode"]


def send_piece(daemon, link, session, path, data, offset=0, last=True, **more):
    link.send("Put", session=session, project=daemon.project, path=path, offset=offset, last=last,
              data=base64.b64encode(data).decode(), **more)


def put(daemon, session, path, data, piece=1 << 20, **more):
    with daemon.link() as link:
        for n in range(0, max(len(data), 1), piece):
            part = data[n:n + piece]
            send_piece(daemon, link, session, path, part, n, n + piece >= len(data), **more)
            assert link.answer() == {"size": n + len(part)}


def refused(name, function, *args, **more):
    with pytest.raises(VarlinkError) as e:
        function(*args, **more)
    assert e.value.name == name and (e.value.message or name.startswith("org."))
    return e.value


def size_of_workspace(daemon, session):
    return int(daemon.run("df --output=used -k /workspace | tail -1", session)["stdout"])


# The API

def test_there_and_back(daemon, name):
    daemon.run("mkdir d; printf 'a\\0b' > d/a; chmod 750 d/a", name)
    assert get(daemon, name, "d/a") == (b"a\0b", 0o750)
    assert get(daemon, daemon.show(name)["id"], "/workspace/d/a") == (b"a\0b", 0o750)
    put(daemon, name, "d/b", b"x\0y", mode=0o705)
    put(daemon, name, "empty", b"")
    assert daemon.run("od -An -c d/b; stat -c '%a %s' d/b empty", name)["stdout"] == "   x  \\0   y\n705 3\n644 0\n"
    assert get(daemon, name, "empty") == (b"", 0o644)


def test_files_are_events(daemon, name):
    daemon.run("echo secret-name > secret-name", name)
    sid = daemon.show(name)["id"]
    get(daemon, name, "secret-name")
    put(daemon, name, "secret-name", b"12345")
    events = [e for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"].startswith("file_")]
    assert [(e["event"], e["detail"], e["by"]) for e in events] == [("file_get", "size=12", os.getuid()),
                                                                     ("file_put", "size=5", os.getuid())]


def test_paths_that_lead_nowhere(daemon, name):
    daemon.run("ln -s /etc/passwd link; ln -s / root; mkdir d; mkfifo fifo; echo x > f; ln -s f inside", name)
    for path in ("nothing", "d/nothing", "f/x", "x" * 256, "d/" * 2000):
        assert refused("NoSuchFile", get, daemon, name, path).parameters["path"] == path
    for path in ("link", "root/etc/passwd", "../etc/passwd", "/etc/passwd", "d/../../etc/passwd", "d", ".", "fifo", "inside",
                 "/proc/self/environ", "/workspace/../etc/passwd", "/dev/null", "/"):
        refused("PermissionDenied", get, daemon, name, path)
        refused("PermissionDenied", put, daemon, name, path, b"x")
    refused("NoSuchFile", put, daemon, name, "missing/f", b"x")
    for path in ("", "x" * 4096):
        assert refused("org.varlink.service.InvalidParameter", get, daemon, name, path).parameters["parameter"] == "path"
    refused("org.varlink.service.InvalidParameter", get, daemon, name, "a\0b")
    assert daemon.run("cat f; ls | wc -l", name)["stdout"] == "x\n6\n"


def test_strange_names(daemon, name):
    daemon.run("true", name)
    for path in ("ä ö\n\t\"'\\", "-rf", "\x7f\x01", "n" * 255):
        put(daemon, name, path, path.encode())
        assert get(daemon, name, path)[0] == path.encode()
    assert daemon.run("ls | wc -l", name)["exit_code"] == 0


def test_big_file_both_ways(daemon, name):
    daemon.run("true", name)
    data = os.urandom(1 << 20) * (BIG >> 20)
    put(daemon, name, "big", data)
    assert daemon.run("sha256sum big", name)["stdout"].split()[0] == hashlib.sha256(data).hexdigest()
    assert get(daemon, name, "big")[0] == data


def test_a_client_that_does_not_read(daemon, name):
    daemon.run(f"head -c {BIG} /dev/zero > big", name)
    before = memory_kilobytes(daemon.pid)
    with daemon.link() as link:
        link.send("Get", _more=True, session=name, project=daemon.project, path="big")
        link.answer()
        time.sleep(1)
        assert memory_kilobytes(daemon.pid) < before + 4096
        # A turn is not in its way, and another transfer waits for it.
        assert daemon.run("echo x", name)["stdout"] == "x\n"
    assert get(daemon, name, "big")[0] == bytes(BIG)


def test_a_client_that_goes_while_it_puts(daemon, name):
    daemon.run("echo old > f", name)
    with daemon.link() as link:
        send_piece(daemon, link, name, "f", b"x" * 1000000, last=False)
        assert link.answer() == {"size": 1000000}
        assert daemon.show(name)["busy"]
    wait_for(lambda: not daemon.show(name)["busy"])
    assert daemon.run("cat f; ls -A", name)["stdout"] == "old\nf\n"
    assert size_of_workspace(daemon, name) < 100


def test_put_onto_a_full_workspace(daemon, name):
    daemon.run("echo old > f; head -c 10G /dev/zero > filler", name)
    e = refused("LimitExceeded", put, daemon, name, "f", b"x" * (3 << 20))
    assert e.parameters["limit"] == "workspace"
    assert daemon.run("rm filler; cat f; ls -A", name)["stdout"] == "old\nf\n"
    put(daemon, name, "f", b"new")
    assert get(daemon, name, "f")[0] == b"new"


def test_session_that_ends_while_files_move(daemon, name):
    daemon.run(f"head -c {BIG} /dev/zero > big", name)
    with daemon.link() as reader, daemon.link() as writer:
        reader.send("Get", _more=True, session=name, project=daemon.project, path="big")
        reader.answer()
        send_piece(daemon, writer, name, "f", b"x" * 200000, last=False)     # it waits for the reader
        daemon.settle()
        daemon.call("Kill", session=name, project=daemon.project)
        for link in (reader, writer):
            with pytest.raises(VarlinkError) as e:
                for _ in range(10000):
                    link.answer()
            assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "admin"


def test_session_that_ends_between_pieces(daemon, name):
    daemon.run("true", name)
    with daemon.link() as link:
        send_piece(daemon, link, name, "f", b"x", last=False)
        link.answer()
        daemon.call("Kill", session=name, project=daemon.project)
        send_piece(daemon, link, name, "f", b"y", offset=1)
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "SessionEnded"
        send_piece(daemon, link, name, "f", b"z", offset=2)
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "org.varlink.service.InvalidParameter"


@pytest.mark.parametrize("piece", [
    {"offset": 5}, {"offset": 1, "path": "other"}, {"offset": -1}, {"data": "x"}, {"data": "eA=", "offset": 1},
    {"data": "!!!!"}, {"mode": 0o4755}, {"last": None}, {"unknown": 1}])
def test_pieces_that_do_not_fit(daemon, name, piece):
    """Refused, and of the file nothing is left; the connection is good for another."""
    daemon.run("true", name)
    with daemon.link() as link:
        send_piece(daemon, link, name, "f", b"x", last=False)
        assert link.answer() == {"size": 1}
        parameters = {"session": name, "project": daemon.project, "path": "f", "offset": 0, "data": "eA==", "last": True}
        link.send("Put", **{**parameters, **piece})
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "org.varlink.service.InvalidParameter"
        assert daemon.run("ls -A", name)["stdout"] == ""
        send_piece(daemon, link, name, "g", b"g")
        assert link.answer() == {"size": 1}
        assert daemon.run("ls -A; cat g", name)["stdout"] == "g\ng"


def test_piece_that_is_too_long(daemon, name):
    daemon.run("true", name)
    refused("LimitExceeded", put, daemon, name, "f", b"x" * ((1 << 20) + 3), piece=1 << 21)


def test_pieces_sent_ahead(daemon, name):
    """All calls at once: each waits for the one before it."""
    daemon.run("true", name)
    data = os.urandom(3 << 20)
    with daemon.link() as link:
        pieces = [(n, data[n:n + 700000]) for n in range(0, len(data), 700000)]
        sender = threading.Thread(target=lambda: [
            send_piece(daemon, link, name, "f", part, n, n + 700000 >= len(data)) for n, part in pieces])
        sender.start()
        sizes = [link.answer()["size"] for _ in pieces]
        sender.join()
    assert sizes[-1] == len(data)
    assert get(daemon, name, "f")[0] == data


def test_get_without_more(daemon, name):
    daemon.run("echo x > f", name)
    refused("org.varlink.service.ExpectedMore", daemon.call, "Get", session=name, project=daemon.project, path="f")


def test_frozen_and_in_standby(daemon, name):
    daemon.run("echo x > f", name)
    if not daemon.show(name)["cgroup"]:
        pytest.skip("no cgroups")
    daemon.call("Freeze", session=name, project=daemon.project)
    refused("SessionFrozen", get, daemon, name, "f")
    refused("SessionFrozen", put, daemon, name, "f", b"y")
    daemon.call("Thaw", session=name, project=daemon.project)
    with daemon.link() as link:
        send_piece(daemon, link, name, "f", b"y", last=False)
        link.answer()
        refused("Busy", daemon.call, "Freeze", session=name, project=daemon.project)
        send_piece(daemon, link, name, "f", b"z", offset=1)
        link.answer()
    with Daemon({"session": {"standby_after_seconds": 0.3}}, programs=daemon.programs) as sleepy:
        sleepy.run("echo x > f", "a")
        wait_for(lambda: sleepy.state("a") == "standby")
        assert get(sleepy, "a", "f")[0] == b"x\n"
        wait_for(lambda: sleepy.state("a") == "standby")
        put(sleepy, "a", "f", b"y")
        assert get(sleepy, "a", "f")[0] == b"y"


def test_too_many_wait(daemon, name):
    daemon.run(f"head -c {BIG} /dev/zero > big", name)
    with contextlib.ExitStack() as stack:
        reader, *others = [stack.enter_context(daemon.link()) for _ in range(18)]
        reader.send("Get", _more=True, session=name, project=daemon.project, path="big")
        reader.answer()
        # Connections are not served in the order they were made, so any of them may be the one too many.
        for link in others:
            link.send("Get", _more=True, session=name, project=daemon.project, path="big")
        ready, _, _ = select.select([link.socket for link in others], [], [], WAIT)
        refused_one, = [link for link in others if link.socket in ready]
        with pytest.raises(VarlinkError) as e:
            refused_one.answer()
        assert e.value.name == "Busy"
    wait_for(lambda: not daemon.show(name)["busy"])


def test_reload_gives_up(daemon, name):
    daemon.run(f"head -c {BIG} /dev/zero > big; echo old > f", name)
    with daemon.link() as link:
        send_piece(daemon, link, name, "f", b"x", last=False)
        link.answer()
        with daemon.link() as reader:
            reader.send("Get", _more=True, session=name, project=daemon.project, path="big")
            daemon.call("Reload")
            with pytest.raises((VarlinkError, AssertionError)):
                for _ in range(10000):
                    reader.answer()
    assert get(daemon, name, "f")[0] == b"old\n"
    assert daemon.run("ls -A", name)["stdout"] == "big\nf\n"


def test_only_ones_own(daemon, name):
    """Not even root gets files of others' sessions, nor is told that there are any."""
    refused("NoSuchSession", get, daemon, "0123456789ab", "f")


# sandboxctl

def test_ctl(daemon, name, folder):
    daemon.run("mkdir d; printf 'a\\0b' > d/a; chmod 755 d/a", name)
    there = os.path.join(folder, "there")
    done = ctl(daemon, "get", name, "d/a", there)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open(there, "rb") as f:
        assert f.read() == b"a\0b"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(os.stat(there).st_mode) == 0o755 & ~umask
    done = ctl(daemon, "put", name, there, "d/b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert daemon.run("cmp d/a d/b && stat -c %a d/b", name)["stdout"] == f"{0o755 & ~umask:o}\n"

    assert ctl(daemon, "get", name, "d/b", "-").stdout == "a\0b"
    assert ctl(daemon, "put", name, "-", "c", stdin=b"from stdin").returncode == 0
    assert ctl(daemon, "get", name, "c", cwd=folder).returncode == 0
    assert sorted(os.listdir(folder)) == ["c", "there"]


def test_ctl_json(daemon, name, folder):
    daemon.run("printf abc > f; chmod 600 f", name)
    there = os.path.join(folder, "f")
    env = {**os.environ, "PROJECT_DIR": daemon.project}
    assert daemon.json("get", name, "f", there, env=env) == (0, {"size": 3, "mode": 0o600, "path": there})
    assert daemon.json("put", name, there, "g", env=env) == (0, {"size": 3})
    status, error = daemon.json("get", name, "none", there, env=env)
    assert (status, error["error"], error["parameters"]["path"]) == (1, "io.nixsandbox.NoSuchFile", "none")
    assert ctl(daemon, "--json", "get", name, "f", "-").returncode == 2


def test_ctl_keeps_what_is_there(daemon, name, folder):
    daemon.run("echo new > f; ln -s /etc/shadow link", name)
    there = os.path.join(folder, "f")
    os.mkdir(os.path.join(folder, "d"))
    os.mkfifo(os.path.join(folder, "p"))
    with open(there, "w", encoding="ascii") as f:
        f.write("old")
    os.symlink("f", os.path.join(folder, "l"))
    assert ctl(daemon, "get", name, "link", there).returncode == 1
    assert ctl(daemon, "get", name, "none", there).returncode == 1
    for bad in ("d", "p", "d/x/y", "f/x"):
        assert ctl(daemon, "get", name, "f", os.path.join(folder, bad)).returncode == 1
    with open(there, encoding="ascii") as f:
        assert f.read() == "old"
    assert ctl(daemon, "get", name, "f", os.path.join(folder, "l")).returncode == 0
    with open(there, encoding="ascii") as f:
        assert f.read() == "new\n"
    assert sorted(os.listdir(folder)) == ["d", "f", "l", "p"] and os.path.islink(os.path.join(folder, "l"))
    assert ctl(daemon, "put", name, os.path.join(folder, "d"), "x").returncode == 1
    assert ctl(daemon, "put", name, os.path.join(folder, "none"), "x").returncode == 1


def test_ctl_usage(daemon):
    for args in (["get", "s"], ["get", "s", "f", "l", "x"], ["put", "s", "l"], ["put", "s", "l", "f", "x"], ["get", "-x", "s", "f"]):
        assert ctl(daemon, *args).returncode == 2


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_ctl_that_is_interrupted(daemon, name, folder, sig):
    daemon.run(f"head -c {BIG} /dev/zero > big", name)
    command = [os.path.join(daemon.programs, "sandboxctl"), "--socket", daemon.sock, "get", name, "big", "there"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PROJECT_DIR": daemon.project})
    wait_for(lambda: os.listdir(folder))
    process.send_signal(sig)
    assert process.wait(20) in (-sig, 0)
    assert os.listdir(folder) == ([] if process.returncode else ["there"])
    wait_for(lambda: not daemon.show(name)["busy"])


def test_ctl_big_file(daemon, name, folder):
    daemon.run("true", name)
    data = os.urandom(1 << 20) * (BIG >> 20)
    with open(os.path.join(folder, "a"), "wb") as f:
        f.write(data)
    assert ctl(daemon, "put", name, os.path.join(folder, "a"), "a", wait=120).returncode == 0
    assert ctl(daemon, "get", name, "a", os.path.join(folder, "b"), wait=120).returncode == 0
    with open(os.path.join(folder, "b"), "rb") as f:
        assert f.read() == data

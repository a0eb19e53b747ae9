# SPDX-License-Identifier: MIT
"""Operations of sandbox-agent: descriptors that come with frames, one operation at a time, beside turns."""
import json
import os
import socket
import stat
import struct
from pathlib import Path

import pytest

from agentlib import HEADER, OPERATE, OPERATED, Agent

BIG = 40 << 20


@pytest.fixture
def agent():
    with Agent() as a:
        yield a


def write(agent, name, data=b"content", mode=0o640):
    with open(agent.path(name), "wb") as f:
        f.write(data)
    os.chmod(agent.path(name), mode)


def descriptors(agent):
    return os.listdir(f"/proc/{agent.process.pid}/fd")


def children(agent):
    with open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def test_get(agent):
    write(agent, "a", b"x\0y\n" * 5000, 0o751)
    data, answer = agent.get("a")
    assert data == b"x\0y\n" * 5000
    assert answer == {"error": None, "error_text": None, "report": {"size": 20000, "mode": 0o751}}
    write(agent, "empty", b"")
    assert agent.get("empty")[0] == b""


@pytest.mark.parametrize("path", ["a", "/workspace/a", "/workspace//a", "./a", "d/../a", "d//..//a"])
def test_names_of_one_file(agent, path):
    os.mkdir(agent.path("d"))
    write(agent, "a")
    assert agent.get(path)[0] == b"content"


def test_strange_names(agent):
    for name in ("ä ö\n\t\"'\\", "-rf", "*", "\x7f\x01", "n" * 255, "/".join(["d" * 200] * 19 + ["f"])):
        os.makedirs(os.path.dirname(agent.path(name)), exist_ok=True)
        write(agent, name, name.encode())
        assert agent.get(name)[0] == name.encode()


def test_big_file(agent):
    data = os.urandom(1 << 20) * (BIG >> 20)
    write(agent, "big", data)
    got, answer = agent.get("big")
    assert got == data and answer["report"]["size"] == BIG


def make_hostile(agent):
    """Where a path must not lead, by name: the error."""
    at = agent.path
    os.mkdir(at("directory"))
    os.mkfifo(at("fifo"))
    socket.socket(socket.AF_UNIX).bind(at("socket"))
    os.symlink("secret", at("link"))
    os.symlink("/etc", at("etc"))
    os.symlink("directory", at("inside"))
    os.symlink("link", at("link-to-link"))
    os.symlink("nowhere", at("dangling"))
    os.symlink("loop", at("loop"))
    write(agent, "secret")
    write(agent, "directory/file")
    return {
        "nothing": "no-file", "": "no-file", "nothing/below": "no-file", "secret/below": "no-file",
        "x" * 256: "no-file", "d/" * 2100: "no-file", "/workspace": "refused", "/workspacex": "refused",
        "/": "refused", "/etc/passwd": "refused", "..": "refused", "../x": "refused", "directory/../../x": "refused",
        "directory": "refused", ".": "refused", "fifo": "refused", "socket": "refused",
        "link": "refused", "link-to-link": "refused", "dangling": "refused", "loop": "refused",
        "etc/passwd": "refused", "inside/file": "refused", "/workspace/../etc/passwd": "refused",
        "/proc/self/root/etc/passwd": "refused", "/proc/self/fd/0": "refused", "/dev/null": "refused",
    }


def test_hostile_paths(agent):
    for path, error in make_hostile(agent).items():
        data, answer = agent.get(path)
        assert (data, answer["error"]) == (b"", error), path
        assert answer["error_text"] and answer["report"] is None
    assert agent.get("secret")[0] == b"content"


def test_hard_link(agent):
    write(agent, "a")
    os.link(agent.path("a"), agent.path("b"))
    assert agent.get("b")[0] == b"content"


@pytest.mark.skipif(os.getuid() != 0, reason="devices are root's to make")
def test_device(agent):
    os.mknod(agent.path("null"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(agent.path("tty"), stat.S_IFCHR | 0o666, os.makedev(5, 0))
    for name in ("null", "tty"):
        assert agent.get(name)[1]["error"] == "refused"


@pytest.mark.skipif(os.getuid() != 0, reason="root may read everything but becomes another here")
def test_file_that_may_not_be_read():
    with Agent(uid=12345) as agent:
        write(agent, "a", mode=0)
        assert agent.get("a")[1]["error"] == "refused"


def read(agent, name):
    with open(agent.path(name), "rb") as f:
        return f.read()


def mode(agent, name):
    return stat.S_IMODE(os.stat(agent.path(name)).st_mode)


def everything(agent):
    """All names below the workspace, and what each file holds."""
    found = {}
    for directory, directories, files in os.walk(agent.workspace):
        for name in directories + files:
            path = os.path.join(directory, name)
            regular = stat.S_ISREG(os.lstat(path).st_mode)
            found[os.path.relpath(path, agent.workspace)] = read(agent, path) if regular else None
    return found


def test_put(agent):
    os.mkdir(agent.path("d"))
    assert agent.put("a", b"x\0y") == {"error": None, "error_text": None, "report": {"size": 3}}
    assert (read(agent, "a"), mode(agent, "a")) == (b"x\0y", 0o644)
    assert agent.put("/workspace/d/b", b"", mode=0o751)["error"] is None
    assert (read(agent, "d/b"), mode(agent, "d/b")) == (b"", 0o751)
    assert agent.put("./d/../c", b"c" * 3, piece=1)["report"] == {"size": 3}
    assert set(everything(agent)) == {"a", "d", "d/b", "c"}


def test_put_replaces_in_one_step(agent):
    write(agent, "a", b"old", 0o755)
    os.link(agent.path("a"), agent.path("other"))
    with open(agent.path("a"), "rb") as before:
        assert agent.put("a", b"new")["error"] is None
        assert before.read() == b"old"
    assert (read(agent, "a"), read(agent, "other"), mode(agent, "a")) == (b"new", b"old", 0o755)
    assert agent.put("a", b"newer", mode=0o600)["error"] is None
    assert (read(agent, "a"), mode(agent, "a")) == (b"newer", 0o600)
    assert set(everything(agent)) == {"a", "other"}


def test_put_big_file(agent):
    data = os.urandom(1 << 20) * (BIG >> 20)
    assert agent.put("big", data, piece=777777)["report"]["size"] == BIG
    assert read(agent, "big") == data


def test_put_into_hostile_places(agent):
    places = make_hostile(agent)
    del places["nothing"], places["secret/below"]
    places.update({"secret/below": "no-file", "directory/": "refused", "directory/.": "refused", "": "refused",
                   "d/" * 2100 + "x": "no-file", "missing/a": "no-file", "x" * 256: "no-file"})
    del places["d/" * 2100]
    before = everything(agent)
    for path, error in places.items():
        assert agent.put(path, b"mine")["error"] == error, path
    assert everything(agent) == before


@pytest.mark.parametrize("cut", [0, 3, 4, 100, 50000, 100004, 100005, 200007])
def test_put_that_is_cut_short(agent, cut):
    write(agent, "a", b"old")
    data = struct.pack(">I", 100000) + b"x" * 100000
    theirs, ours = os.pipe()
    agent.operate("put", theirs, path="a")
    with os.fdopen(ours, "wb") as f:
        f.write((data * 2)[:cut])
    assert agent.operated()["error"] == "failed"
    assert everything(agent) == {"a": b"old"}


def test_put_whose_process_is_killed(agent):
    theirs, ours = os.pipe()
    agent.operate("put", theirs, path="a")
    os.write(ours, struct.pack(">I", 100000) + b"x" * 50000)
    agent.wait_for(lambda: children(agent))
    os.kill(children(agent)[0], 9)
    assert agent.operated()["error"] == "failed"
    assert everything(agent) == {}
    with pytest.raises(BrokenPipeError):
        os.write(ours, b"x")
    os.close(ours)


def test_put_that_becomes_too_large():
    with Agent(fsize=100000) as agent:
        assert agent.put("a", b"x" * 200000)["error"] == "too-large"
        assert everything(agent) == {}


@pytest.mark.parametrize("members", [{"mode": 0o1777}, {"mode": -1}, {"mode": "0644"}, {"size": 5}])
def test_put_garbage(agent, members):
    assert agent.put("a", b"", **members)["error"] == "failed"
    assert everything(agent) == {}


@pytest.mark.parametrize("size", [0, 100000, 2 * BIG])
def test_file_that_changes_its_size(agent, size):
    """What is told is what was sent."""
    write(agent, "big", b"x" * BIG)
    ours, theirs = os.pipe()
    agent.operate("get", theirs, path="big")
    with os.fdopen(ours, "rb") as f:
        assert f.read(1) == b"x"
        os.truncate(agent.path("big"), size)
        n = 1
        while data := f.read(1 << 20):
            n += len(data)
    assert agent.operated()["report"]["size"] == n
    assert n <= max(BIG, size)


@pytest.mark.skipif(os.getuid() != 0, reason="the limit does not hold root, who becomes another here")
def test_at_the_limit_of_processes():
    with Agent(uid=54321, nproc=1) as agent:
        write(agent, "a")
        answer = agent.get("a")[1]
        assert answer["error"] == "failed" and "process" in answer["error_text"]


# One at a time, and given up

def test_beside_a_turn(agent):
    write(agent, "a")
    number = agent.begin("open('begun', 'w'); time.sleep(60)")
    agent.wait_for_file("begun")
    assert agent.get("a")[0] == b"content"
    agent.send(8, number)
    assert agent.end(number).interrupted


def test_a_channel_that_breaks_gives_up(agent):
    write(agent, "big", b"\0" * BIG)
    ours, theirs = os.pipe()
    agent.operate("get", theirs, path="big")
    assert os.read(ours, 1)
    [child] = children(agent)
    os.close(ours)
    assert agent.operated()["error"]
    agent.wait_for(lambda: child not in children(agent))
    assert agent.get("big")[1]["error"] is None


def test_another_operation_gives_up_the_first(agent):
    write(agent, "big", b"\0" * BIG)
    write(agent, "a")
    ours, theirs = os.pipe()
    first = agent.operate("get", theirs, path="big")
    assert os.read(ours, 1)
    mine, its = os.pipe()
    second = agent.operate("get", its, path="a")
    assert agent.operated(first)["error"] == "failed"
    assert agent.operated(second)["error"] is None
    assert os.read(mine, 100) == b"content"
    agent.wait_for(lambda: not children(agent))
    os.close(ours)
    os.close(mine)


def test_another_daemon_gives_it_up(agent):
    write(agent, "big", b"\0" * BIG)
    before = descriptors(agent)
    ours, theirs = os.pipe()
    agent.operate("get", theirs, path="big")
    assert os.read(ours, 1)
    assert "operation" not in agent.attach()
    agent.wait_for(lambda: not children(agent))
    assert descriptors(agent) == before
    assert agent.turn("x = 1").result["exit_code"] == 0
    os.close(ours)


def test_killed_child_is_a_failure(agent):
    write(agent, "big", b"\0" * BIG)
    ours, theirs = os.pipe()
    agent.operate("get", theirs, path="big")
    assert os.read(ours, 1)
    os.kill(children(agent)[0], 9)
    answer = agent.operated()
    assert answer["error"] == "failed" and "killed" in answer["error_text"]
    os.close(ours)


def test_the_child_is_closed_to_others(agent):
    write(agent, "big", b"\0" * BIG)
    ours, theirs = os.pipe()
    agent.operate("get", theirs, path="big")
    assert os.read(ours, 1)
    [child] = children(agent)
    links = {os.readlink(f"/proc/{child}/fd/{n}") for n in os.listdir(f"/proc/{child}/fd")}
    assert len(links) == 2 and any("pipe" in link for link in links) and any(link.endswith("/big") for link in links)
    with open(f"/proc/{child}/oom_score_adj", encoding="ascii") as f:
        assert f.read() == "1000\n"
    # The agent has that value itself while it forks.
    agent.wait_for(lambda: Path(f"/proc/{agent.process.pid}/oom_score_adj").read_text(encoding="ascii") != "1000\n")
    assert os.stat(f"/proc/{child}").st_uid == 0
    os.close(ours)
    agent.operated()


# What is no operation

@pytest.mark.parametrize("payload", [
    b"", b"{", b"[]", b"{}", b'{"operation":"nothing"}', b'{"operation":1}', b'{"operation":"get"}',
    b'{"operation":"get","path":1}', b'{"operation":"get","path":"a\\u0000b"}', b'{"operation":"get","path":"a","x":1}',
    b'{"operation":"get","path":"\xff"}', b'{"operation":"get","path":"' + b"x" * 8192 + b'"}'])
def test_garbage(agent, payload):
    ours, theirs = os.pipe()
    socket.send_fds(agent.socket, [HEADER.pack(len(payload) + 9, OPERATE, 1) + payload], [theirs])
    os.close(theirs)
    assert agent.operated(1)["error"] == "failed"
    assert os.read(ours, 1) == b""
    os.close(ours)
    assert agent.turn("x = 1").result["exit_code"] == 0


def test_no_descriptor(agent):
    write(agent, "a")
    agent.operate("get", path="a")
    answer = agent.operated()
    assert answer["error"] == "failed" and "channel" in answer["error_text"]
    agent.operate("get", os.open("/dev/null", os.O_WRONLY), path="a")
    assert agent.operated()["error"] == "failed"
    assert agent.get("a")[0] == b"content"


def test_descriptors_that_nothing_wants(agent):
    before = descriptors(agent)
    agent.turn("x = 1")
    frame = HEADER.pack(9, 8, 1)
    for _ in range(20):
        socket.send_fds(agent.socket, [frame], [0, 1, 2])
    ours, theirs = os.pipe()
    write(agent, "a")
    agent.operate("get", theirs, path="a")
    agent.operated()
    os.close(ours)
    agent.turn("x = 1")
    agent.wait_for(lambda: len(descriptors(agent)) == len(before) + 5)      # the interpreter's


def test_a_frame_in_pieces(agent):
    """Its descriptor comes with the first byte, the rest by and by, with a whole turn's frames before it."""
    write(agent, "a")
    ours, theirs = os.pipe()
    payload = b'{"operation":"get","path":"a"}'
    frame = HEADER.pack(len(payload) + 9, OPERATE, 1) + payload
    number = agent.begin("x = 1")
    socket.send_fds(agent.socket, [frame[:1]], [theirs])
    os.close(theirs)
    assert agent.end(number).result["exit_code"] == 0
    for n in range(1, len(frame)):
        agent.socket.sendall(frame[n:n + 1])
    assert agent.operated(1)["error"] is None
    assert os.read(ours, 100) == b"content"
    os.close(ours)


def test_half_a_frame_of_a_daemon_that_is_gone(agent):
    write(agent, "a")
    before = descriptors(agent)
    ours, theirs = os.pipe()
    payload = b'{"operation":"get","path":"a"}'
    socket.send_fds(agent.socket, [(HEADER.pack(len(payload) + 9, OPERATE, 1) + payload)[:-1]], [theirs])
    os.close(theirs)
    agent.attach()
    assert os.read(ours, 1) == b""
    assert descriptors(agent) == before
    assert agent.get("a")[0] == b"content"
    os.close(ours)


def test_operations_of_one_write(agent):
    """Two frames with their descriptors arrive before the agent reads either."""
    write(agent, "a", b"A")
    write(agent, "b", b"B")
    pipes = [os.pipe(), os.pipe()]
    os.kill(agent.process.pid, 19)
    for (_, theirs), path in zip(pipes, "ab"):
        agent.operate("get", theirs, path=path)
    os.kill(agent.process.pid, 18)
    answers = [agent.receive() for _ in pipes]
    assert [(kind, of) for kind, of, _ in answers] == [(OPERATED, 1), (OPERATED, 2)]
    assert json.loads(answers[1][2])["error"] is None
    assert os.read(pipes[1][0], 100) == b"B"
    assert os.read(pipes[0][0], 100) in (b"", b"A")
    for ours, _ in pipes:
        os.close(ours)

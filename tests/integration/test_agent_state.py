# SPDX-License-Identifier: MIT
"""save, restore, variables of sandbox-agent with drivers that behave, and with such that do not."""
import glob
import io
import json
import os
import signal
import stat
import subprocess
import tarfile
import time

import pytest

from statelib import StateAgent, make, parse

FIFOS = "/dev/shm/.nix-sandbox-*"
OK = {"ok": True, "why": None}


@pytest.fixture
def agent():
    before = set(glob.glob(FIFOS))
    with StateAgent(fake=("python3", "bash")) as a:
        yield a
    assert set(glob.glob(FIFOS)) <= before


def fill(agent):
    """A workspace with odd names, of all kinds that are kept."""
    os.makedirs(agent.path("d/e"))
    for name in (b"a", b"with\nline", b"\xff\xfe", "ä€".encode(), b"-rf", b" ", b"d/e/f"):
        with open(os.fsencode(agent.workspace) + b"/" + name, "wb") as f:
            f.write(name * 1000)
    os.symlink("/etc/passwd", agent.path("s"))
    os.link(agent.path("a"), agent.path("h"))
    os.chmod(agent.path("d/e"), 0o500)
    os.chmod(agent.path("a"), 0o741)


def tree(top):
    """What is in a directory: names, kinds, modes, contents, times."""
    found = {}
    top = os.fsencode(top)
    for where, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            content = (os.readlink(path) if stat.S_ISLNK(st.st_mode) else
                       open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None)
            links = st.st_nlink if stat.S_ISREG(st.st_mode) else 0
            found[os.path.relpath(path, top)] = (st.st_mode, links, content, int(st.st_mtime))
    return found


def test_round_trip(agent):
    fill(agent)
    agent.turn("state = bytes(range(256)) * 4000")
    agent.turn("state = b'of bash'", "bash")
    stream, answer = agent.save()
    assert answer == {"error": None, "error_text": None, "report": {"parts": 3}}
    parts = parse(stream)
    assert list(parts) == ["bash", "python", "workspace"]
    assert parts["python"].data == bytes(range(256)) * 4000 and parts["bash"].data == b"of bash"
    assert parts["python"].report == {"ok": True, "version": "fake"}
    assert parts["workspace"].report == {"ok": True, "skipped": []}
    # The agent goes on as if nothing had been.
    assert agent.turn("os.write(1, b'%d' % len(state))").out == b"1024000"

    again = make([(n, parts[n].data, parts[n].report) for n in ("workspace", "python", "bash")])
    with StateAgent(fake=("python3", "bash")) as other:
        answer = other.restore(again)
        assert answer["error"] is None
        assert [(p["name"], p["ok"], p["skipped"]) for p in answer["report"]["parts"]] == [
            ("workspace", True, []), ("python", True, []), ("bash", True, [])]
        assert tree(other.workspace) == tree(agent.workspace)
        t = other.turn("os.write(1, b'%d' % len(state))")
        assert (t.out, t.restarted, t.state) == (b"1024000", False, "kept")
        assert other.turn("os.write(1, state)", "bash").out == b"of bash"


def test_only_what_ran_has_a_part(agent):
    stream, answer = agent.save()
    assert list(parse(stream)) == ["workspace"] and answer["report"] == {"parts": 1}


def test_many_and_big_files(agent):
    for n in range(10000):
        with open(agent.path(f"f{n}"), "w", encoding="ascii") as f:
            f.write(str(n))
    block = os.urandom(1 << 20)
    with open(agent.path("big"), "wb") as f:
        for _ in range(100):
            f.write(block)
    stream, _ = agent.save()
    parts = parse(stream)
    with StateAgent() as other:
        assert other.restore(stream)["error"] is None
        assert tree(other.workspace) == tree(agent.workspace)
    with tarfile.open(fileobj=io.BytesIO(parts["workspace"].data)) as tar:
        assert len(tar.getmembers()) == 10001


def test_files_that_change_while_they_are_read(agent):
    agent.turn("""
if os.fork() == 0:
    os.setsid()
    n = 0
    while True:
        n += 1
        with open(f'c{n % 50}', 'wb') as f:
            f.write(b'x' * (n * 7919 % 200000))
        if n % 3 == 0:
            os.unlink(f'c{n % 50}')
        os.makedirs(f'd{n % 7}/e', exist_ok=True)
        if n % 5 == 0:
            try:
                os.removedirs(f'd{n % 7}/e')
            except OSError:
                pass
""")
    for _ in range(20):
        stream, answer = agent.save()
        assert answer["error"] is None
        parts = parse(stream)
        assert parts["workspace"].report["ok"]
        with tarfile.open(fileobj=io.BytesIO(parts["workspace"].data)) as tar:
            for member in tar.getmembers():
                if member.isfile():
                    assert len(tar.extractfile(member).read()) == member.size
    with open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children", encoding="ascii") as f:
        driver = int(f.read().split()[0])
    subprocess.run(["bash", "-c", f"kill -9 $(cat /proc/{driver}/task/{driver}/children)"], check=True)


def test_sockets_and_pipes_are_named(agent):
    agent.turn("import socket; s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.mkfifo('pipe')")
    open(agent.path("kept"), "w", encoding="ascii").close()
    stream, _ = agent.save()
    report = parse(stream)["workspace"].report
    assert sorted((s["name"], s["why"]) for s in report["skipped"]) == [("pipe", "a pipe"), ("sock", "a socket")]


def test_copy_that_writes_while_turns_run(agent):
    """As python does it: done first, then the bytes, from a copy."""
    agent.turn("""
def on_save(state, report):
    if os.fork() == 0:
        control.close()
        with open(state, "wb") as f:
            for n in range(20):
                f.write(b"x" * 100000)
                f.flush()
                time.sleep(0.05)
        put(report, b'{"ok":true}')
        os._exit(0)
""")
    began = time.monotonic()
    reader, got = agent.begin_reading("save")
    turn = agent.begin("os.write(1, b'meanwhile')")
    t = agent.end(turn)
    assert t.out == b"meanwhile" and time.monotonic() - began < 0.8
    stream, answer = agent.end_reading(reader, got)
    assert answer["error"] is None and len(parse(stream)["python"].data) == 2000000


def test_turn_that_comes_while_a_driver_saves(agent):
    agent.turn("def on_save(state, report):\n    time.sleep(0.5)\n    put(state, b's'); put(report, b'{\"ok\":true}')")
    reader, got = agent.begin_reading("save")
    turn = agent.begin("os.write(1, b'after')")
    t = agent.end(turn)
    assert (t.out, t.exit_code, t.state) == (b"after", 0, "kept")
    stream, answer = agent.end_reading(reader, got)
    assert answer["error"] is None and parse(stream)["python"].data == b"s"


@pytest.mark.parametrize("report", [b"", b"{", b"[]", b'{"ok":1}', b"\xff" * 10, b'{"ok":true}x', b"x" * 70000])
def test_bad_reports(agent, report):
    agent.turn(f"def on_save(state, report):\n    put(state, b's'); put(report, {report!r})")
    agent.turn("state = b'of bash'", "bash")
    stream, answer = agent.save()
    parts = parse(stream)
    assert answer["error"] is None
    assert parts["python"].report["ok"] is False and parts["python"].report["why"]
    assert parts["bash"].report["ok"] and parts["workspace"].report["ok"]
    assert agent.turn("os.write(1, b'x')").out == b"x"


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "f = open(state, 'wb'); f.write(b'x' * 200000); os._exit(3)",
                                 "put(state, b'x'); os.kill(os.getpid(), 11)", "control.close(); os._exit(0)"])
def test_driver_that_dies(agent, how):
    agent.turn(f"def on_save(state, report):\n    {how}")
    agent.turn("state = b'of bash'", "bash")
    began = time.monotonic()
    stream, answer = agent.save()
    parts = parse(stream)
    assert answer["error"] is None and time.monotonic() - began < 8
    assert (parts["python"].report["ok"], parts["python"].report["why"]) == (False, "its process has ended")
    assert parts["bash"].data == b"of bash" and parts["workspace"].report["ok"]
    t = agent.turn("os.write(1, b'new')")
    assert (t.out, t.restarted) == (b"new", True)


def test_copy_that_dies(agent):
    agent.turn("def on_save(state, report):\n    if os.fork() == 0:\n        f = open(state, 'wb'); os._exit(1)")
    began = time.monotonic()
    stream, _ = agent.save()
    assert not parse(stream)["python"].report["ok"] and time.monotonic() - began < 8
    t = agent.turn("os.write(1, b'x')")
    assert (t.out, t.restarted) == (b"x", False)


def test_driver_that_never_answers(agent):
    """It is asked, given up, left alone, and a turn that came meanwhile runs when it is free again."""
    agent.turn("def on_save(state, report):\n    time.sleep(12)")
    began = time.monotonic()
    reader, got = agent.begin_reading("save")
    turn = agent.begin("os.write(1, b'at last')")
    answer = agent.operated()
    reader.join(agent.wait)
    assert answer["error"] is None and 9 < time.monotonic() - began < 12
    assert parse(got[0])["python"].report == {"ok": False, "why": "it did not answer in time", "skipped": []}
    t = agent.end(turn)
    assert (t.out, t.restarted) == (b"at last", False) and time.monotonic() - began < 16


def test_copy_that_hangs_is_killed(agent):
    agent.turn("""
def on_save(state, report):
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    put("copy", b"%d" % pid)
""")
    agent.wait = 60
    reader, got = agent.begin_reading("save")
    agent.wait_for(lambda: os.path.exists(agent.path("copy")) and os.path.getsize(agent.path("copy")) > 0)
    copy = int(open(agent.path("copy"), encoding="ascii").read())
    # What a turn starts meanwhile is none of the save's business.
    agent.turn("import subprocess; p = subprocess.Popen(['/bin/sleep', '1000'])")
    stream, answer = agent.end_reading(reader, got)
    assert parse(stream)["python"].report["why"] == "it timed out: nothing came for too long"
    agent.wait_for(lambda: open(f"/proc/{copy}/stat", encoding="ascii").read().split()[2] == "Z")
    assert agent.turn("os.write(1, b'%r' % p.poll())").out == b"None"
    agent.turn("p.kill()")


def test_channel_that_breaks(agent):
    with open(agent.path("big"), "wb") as f:
        f.write(os.urandom(8 << 20))
    agent.turn("state = b'x' * 1000000")
    for _ in range(3):
        ours, theirs = os.pipe()
        agent.operate("save", theirs)
        os.read(ours, 1000)
        os.close(ours)
        assert agent.operated()["error"] == "failed"
        t = agent.turn("os.write(1, b'%d' % len(state))")
        assert (t.out, t.restarted) == (b"1000000", False)
    assert agent.save()[1]["error"] is None


def test_attach_in_the_middle(agent):
    agent.turn("state = b'x' * 1000000")
    ours, theirs = os.pipe()
    agent.operate("save", theirs)
    os.read(ours, 1000)
    agent.attach()
    number = agent.number
    assert agent.end(number).exit_code == 0       # the last turn, told again
    os.close(ours)
    t = agent.turn("os.write(1, b'%d' % len(state))")
    assert (t.out, t.restarted) == (b"1000000", False)
    assert agent.save()[1]["error"] is None


def test_busy_while_a_turn_runs(agent):
    turn = agent.begin("put('begun', b'')\nwhile not os.path.exists('go'): time.sleep(0.01)")
    agent.wait_for_file("begun")
    ours, theirs = os.pipe()
    agent.operate("save", theirs)
    assert agent.operated()["error"] == "busy"
    os.close(ours)
    with open(agent.path("go"), "wb"):
        pass
    assert agent.end(turn).exit_code == 0


@pytest.mark.parametrize("stream,why", [
    (b"", "incomplete"), (b"garbage", "incomplete"), (b"garbage\n" * 9, "damaged"), (b"part python\n", "incomplete"),
    (b"part python\ndata 5\nab", "incomplete"), (b"part perl\n", "damaged"), (b"data 5\nabcde", "damaged"),
    (b"part python\ndata 999999999\n", "damaged"), (b"part python\npart bash\n", "damaged"),
    (make([("python", b"state", OK)], done=False), "incomplete")])
def test_bad_streams(agent, stream, why):
    answer = agent.restore(stream)
    assert answer["error"] == "failed" and why in answer["error_text"]
    assert agent.turn("os.write(1, b'%r' % globals().get('state') if False else b'x')").out == b"x"
    assert agent.turn("os.write(1, b'y')", "bash").out == b"y"


def test_half_a_state_is_never_taken_for_a_whole(agent):
    """A stream that breaks off leaves no interpreter that has got half of its state."""
    for cut in [30, 100000] + [299990] * 20:
        with StateAgent() as other:
            stream = make([("python", b"x" * 300000, OK)])[:cut]
            assert other.restore(stream)["error"] == "failed"
            assert other.turn("os.write(1, b'%d' % len(globals().get('state', b'')))").out == b"0"


def test_mover_that_is_killed_in_a_restore():
    """Its driver sees the end of its state, too, but it is not the end."""
    for _ in range(5):
        with StateAgent() as a:
            theirs, ours = os.pipe()
            a.operate("restore", theirs)
            os.write(ours, b"part python\ndata 200000\n" + b"x" * 30000)
            # The driver has the agent's name, too, until it is executed.
            a.wait_for(lambda: sorted(map(name_of, children(a.process.pid))) == ["python3", "sandbox-agent"])
            mover, driver = sorted(children(a.process.pid), key=name_of, reverse=True)
            a.wait_for(lambda: opened(driver))
            os.kill(mover, signal.SIGKILL)
            assert a.operated()["error"] == "failed"
            os.close(ours)
            assert a.turn("os.write(1, b'%d' % len(globals().get('state', b'')))").out == b"0"


def test_garbage_for_the_workspace(agent):
    answer = agent.restore(make([("workspace", os.urandom(100000), OK), ("python", b"good", OK)]))
    assert answer["error"] is None
    workspace, python = answer["report"]["parts"]
    assert not workspace["ok"] and "damaged" in workspace["why"] and python["ok"]
    assert agent.turn("os.write(1, state)").out == b"good"


@pytest.mark.parametrize("code,why", [
    ("put(report, b'{\"ok\":false,\"why\":\"no dill\",\"skipped\":[{\"name\":\"x\",\"why\":\"y\"}]}')", "no dill"),
    ("os._exit(1)", "its process has ended"), ("put(report, b'nonsense')", "it left no valid report"),
    ("pass", "its process has ended"), ("open(state, 'rb').read(1); os.kill(os.getpid(), 9)", "its process has ended")])
def test_restores_that_fail(code, why):
    start = f"def on_restore(state, report):\n    {code}\nnames = globals()"
    with StateAgent(fake=("python3", "bash"), env={"FAKE_START": start}) as a:
        began = time.monotonic()
        answer = a.restore(make([("workspace", bytes(1024), OK), ("python", b"x" * 500000, OK), ("bash", b"", OK)]))
        assert answer["error"] is None and time.monotonic() - began < 10
        python = answer["report"]["parts"][1]
        if code != "pass":
            assert not python["ok"] and why in python["why"]
        assert a.turn("os.write(1, b'x')").out == b"x"


def can_mount():
    return subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="cannot make a mount namespace")
def test_full_workspace(agent):
    fill(agent)
    with open(agent.path("d/big"), "wb") as f:
        f.write(os.urandom(4 << 20))
    agent.turn("state = b'of python'")
    parts = parse(agent.save()[0])
    stream = make([(n, parts[n].data, parts[n].report) for n in ("workspace", "python")])
    for options, errors in (("size=1m", "full"), ("nr_inodes=5", "full")):
        with StateAgent(mounts=f'mount -t tmpfs -o {options} none "$0"') as a:
            answer = a.restore(stream)
            assert answer["error"] is None
            workspace, python = answer["report"]["parts"]
            assert not workspace["ok"] and errors in workspace["why"] and python["ok"]
            assert a.turn("os.write(1, state)").out == b"of python"


@pytest.mark.skipif(not can_mount(), reason="cannot make a mount namespace")
@pytest.mark.parametrize("options,why", [("ro", "Read-only file system"), ("nr_inodes=1", "No space left on device"),
                                         ("nr_inodes=3", "No space left on device")])
def test_no_place_for_fifos(options, why):
    with StateAgent(mounts=f'mount -t tmpfs -o {options} none /dev/shm') as a:
        a.turn("open('kept', 'w').close()")
        stream, answer = a.save()
        parts = parse(stream)
        assert answer["error"] is None and parts["workspace"].report["ok"]
        assert not parts["python"].report["ok"] and why in parts["python"].report["why"]
        assert a.ask("variables", interpreter="python")[1]["error"] == (None if "=3" in options else "failed")
        answer = a.restore(make([("python", b"x", OK)]))
        assert why in answer["report"]["parts"][0]["why"]
        assert a.turn("os.write(1, b'x')").out == b"x"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def opened(pid):
    """Whether it has a FIFO of an operation open."""
    links = [os.path.join(f"/proc/{pid}/fd", n) for n in os.listdir(f"/proc/{pid}/fd")]
    return any(".nix-sandbox-" in os.readlink(link) for link in links if os.path.islink(link))


def test_processes_that_are_killed(agent):
    """As by the memory limit: the process that archives costs the workspace, the one that moves bytes the snapshot."""
    with open(agent.path("big"), "wb") as f:
        f.write(os.urandom(8 << 20))
    agent.turn("state = b's'")
    driver, = children(agent.process.pid)
    for archiver in (True, False):
        ours, theirs = os.pipe()
        agent.operate("save", theirs)
        worker, = agent.wait_for(lambda: set(children(agent.process.pid)) - {driver})
        victim, = agent.wait_for(lambda: children(worker))
        os.kill(victim if archiver else worker, signal.SIGKILL)
        got = b""
        while data := os.read(ours, 1 << 20):
            got += data
        os.close(ours)
        answer = agent.operated()
        if archiver:
            parts = parse(got)
            assert answer["error"] is None and parts["python"].report["ok"]
            assert not parts["workspace"].report["ok"] and "memory" in parts["workspace"].report["why"]
        else:
            assert parse(got) is None and (answer["error"], answer["report"]) == ("failed", None)
            agent.wait_for(lambda: not os.path.exists(f"/proc/{victim}"))
        assert agent.turn("os.write(1, state)").out == b"s"


def test_driver_that_hangs_in_a_restore_is_killed():
    start = "def on_restore(state, report):\n    time.sleep(1000)"
    with StateAgent(fake=("python3", "bash"), env={"FAKE_START": start}, wait=60) as a:
        answer = a.restore(make([("python", b"x" * 100000, OK)]))
        part, = answer["report"]["parts"]
        assert (part["ok"], part["why"]) == (False, "it did not begin to read")
        t = a.turn("os.write(1, b'%d' % os.getpid())")
        assert t.out and t.restarted


def test_saves_leave_nothing_behind(agent):
    agent.turn("state = b'x' * 100000")
    agent.save()

    def private():
        with open(f"/proc/{agent.process.pid}/smaps_rollup", encoding="ascii") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith(("Private_Dirty", "Swap:")))

    before, fds = private(), os.listdir(f"/proc/{agent.process.pid}/fd")
    for _ in range(60):
        assert agent.save()[1]["error"] is None
        agent.ask("variables", interpreter="python")
    assert os.listdir(f"/proc/{agent.process.pid}/fd") == fds and private() <= before + 64
    assert len(children(agent.process.pid)) == 1


def test_restore_without_the_interpreter():
    with StateAgent(fake=(), path="") as a:
        answer = a.restore(make([("python", b"state", OK)]))
        assert answer["error"] is None
        part = answer["report"]["parts"][0]
        assert not part["ok"] and "No such file" in part["why"]


def test_restore_of_empty_parts(agent):
    answer = agent.restore(make([("workspace", bytes(1024), OK), ("python", b"", OK)]))
    assert [p["ok"] for p in answer["report"]["parts"]] == [True, True]
    assert agent.turn("os.write(1, b'%r' % state)").out == b"b''"


def test_report_of_restore_is_bounded():
    skipped = json.dumps([{"name": "n" * 300 + str(n), "why": "\x01" * 20} for n in range(100)])
    start = f"def on_restore(state, report):\n    put(report, b'{{\"ok\":true,\"skipped\":' + {skipped!r}.encode() + b'}}')"
    with StateAgent(fake=("python3", "bash", "node"), env={"FAKE_START": start}) as a:
        answer = a.restore(make([("python", b"", OK), ("bash", b"", OK), ("node", b"", OK)]))
        assert answer["error"] is None
        for part in answer["report"]["parts"]:
            assert part["ok"] and len(part["skipped"]) + part["skipped_more"] == 100


def test_list_and_show(agent):
    assert agent.ask("variables", interpreter="python") == (
        b"[]", {"error": None, "error_text": None, "report": None})
    assert agent.ask("variable", interpreter="python", name="x")[1]["error"] == "no-file"
    agent.turn("pass")
    data, answer = agent.ask("variables", interpreter="python")
    assert json.loads(data) == [{"name": "state"}] and answer["error"] is None
    data, answer = agent.ask("variable", interpreter="python", name="ä b")
    assert json.loads(data) == {"name": "ä b"} and answer["error"] is None
    agent.turn("def on_list(answer):\n    put(answer, b'x' * 262144)")
    assert len(agent.ask("variables", interpreter="python")[0]) == 262144
    assert agent.turn("os.write(1, b'x')").out == b"x"


@pytest.mark.parametrize("members", [{}, {"interpreter": "perl"}, {"interpreter": 1}, {"interpreter": "python", "name": "a\nb"},
                                     {"interpreter": "python", "name": "n" * 257}, {"interpreter": "python", "name": ""},
                                     {"interpreter": "python", "name": "x", "more": 1}])
def test_bad_questions(agent, members):
    agent.turn("pass")
    data, answer = agent.ask("variable", **members)
    assert (data, answer["error"]) == (b"", "failed")


def test_answers_that_are_none(agent):
    agent.turn("def on_list(answer):\n    put(answer, b'x' * 262145)")
    assert agent.ask("variables", interpreter="python")[1]["error"] == "failed"
    agent.turn("def on_list(answer):\n    put(answer, b'')")
    assert agent.ask("variables", interpreter="python")[1]["error"] == "failed"
    agent.turn("def on_list(answer):\n    os._exit(1)")
    assert agent.ask("variables", interpreter="python")[1]["error"] == "failed"
    agent.turn("def on_list(answer):\n    time.sleep(7)")
    began = time.monotonic()
    assert agent.ask("variables", interpreter="python")[1]["error"] == "failed"
    assert time.monotonic() - began < 7
    assert agent.turn("os.write(1, b'x')").out == b"x"

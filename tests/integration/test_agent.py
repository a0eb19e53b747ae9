# SPDX-License-Identifier: MIT
"""sandbox-agent over its socketpair, with a driver that does as it is told (fake_driver.py)."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time

import pytest

from agentlib import AGENT, ATTACH, FAKE, HEADER, INTERRUPT, NONCE, REQUEST, RESULT, Agent

HEAD = TAIL = LATE = 65536


@pytest.fixture
def agent():
    with Agent() as a:
        yield a


def alive(pid):
    """Whether it is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(agent, name="pids"):
    with open(agent.path(name), encoding="ascii") as f:
        return [int(line) for line in f]


def spawn(argv, count=1, name="pids"):
    """Code that starts programs in the background and notes their pids."""
    return f"import subprocess\nfor _ in range({count}):\n    p = subprocess.Popen({argv!r})\n" \
           f"    open({name!r}, 'a').write(str(p.pid) + '\\n')\n"


def wait_gone(agent, *some):
    agent.wait_for(lambda: not any(alive(pid) for pid in some))


def private_kilobytes(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))


# Turns

def test_hello_and_result(agent):
    assert agent.hello["event"] == "hello" and agent.hello["protocol"] == 3 and agent.hello["version"]
    t = agent.turn("os.write(1, b'out\\0\\xff'); os.write(2, b'err'); x = 1")
    assert (t.out, t.err) == (b"out\0\xff", b"err")
    duration = t.result.pop("duration_us")
    assert 0 < duration < 20e6
    assert t.result == {
        "exit_code": 0, "signal": 0, "timed_out": False, "interrupted": False, "state": "kept", "restarted": False,
        "late": False, "stdout": {"bytes": 5, "omitted": 0, "dropped": 0, "file": None},
        "stderr": {"bytes": 3, "omitted": 0, "dropped": 0, "file": None}, "error": None, "error_text": None}


def test_state_and_status(agent):
    agent.turn("x = 41; first = os.getpid()")
    t = agent.turn("os.write(1, b'%d %d' % (x + 1, first == os.getpid())); sys.exit(7)")
    assert (t.out, t.exit_code, t.restarted, t.state) == (b"42 1", 7, False, "kept")


def test_report_is_passed_on(agent):
    t = agent.turn("done(9, 'lost')")
    assert (t.exit_code, t.state) == (9, "lost")


def test_code_is_raw(agent):
    code = "s = '''ü\\\\ \"\r\n\t'''\nos.write(1, s.encode())"
    assert agent.turn(code).out == "ü\\ \"\n\t".encode()
    assert agent.turn("").exit_code == 0


def test_code_of_megabytes(agent):
    code = "n = '" + "x" * 4_000_000 + "'; os.write(1, b'%d' % len(n))"
    assert agent.turn(code).out == b"4000000"
    assert agent.turn(code).out == b"4000000"


def test_many_turns(agent):
    for n in range(300):
        size = n * 37 % 9000
        t = agent.turn(f"os.write(1, b'o' * {size}); os.write(2, b'e%d')" % n)
        assert (len(t.out), t.err) == (size, b"e%d" % n)


def test_environment_of_the_interpreter(agent):
    t = agent.turn("""
import resource
print(os.getcwd() == os.environ['HOME'], os.getsid(0) == os.getpid() == os.getpgid(0))
print(*sorted(int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) != 100)[:-1])
print(os.readlink('/proc/self/fd/0'), resource.getrlimit(resource.RLIMIT_CORE))
print(open('/proc/self/oom_score_adj').read(), open('/proc/%d/oom_score_adj' % os.getppid()).read())
print(open('/proc/%d/comm' % os.getppid()).read())
print([line for line in open('/proc/self/status') if line[:6] in ('SigBlk', 'SigIgn')])
sys.stdout.flush()""")
    lines = [line.strip() for line in t.out.decode().split("\n") if line]
    assert lines[:3] == ["True True", "0 1 2", "/dev/null (0, 0)"]
    with open("/proc/self/oom_score_adj", encoding="ascii") as f:
        ours = int(f.read())
    assert lines[3:6] == [str(max(500, ours)), str(ours), "sandbox-agent"]
    # SIGPIPE and SIGXFSZ are ignored by python itself.
    assert lines[6] == "['SigBlk:\\t0000000000000000\\n', 'SigIgn:\\t0000000001001000\\n']"


def test_agent_keeps_few_descriptors(agent):
    agent.turn("")
    directory = f"/proc/{agent.process.pid}/fd"
    fds = {int(fd): os.readlink(f"{directory}/{fd}") for fd in os.listdir(directory)}
    assert [fds[n] for n in range(4)] == ["/dev/null"] * 4
    # socket, oom_score_adj, signalfd, epoll, two pipes with both ends, control socket
    assert len(fds) == 4 + 4 + 4 + 1


def others_reach(path):
    while os.stat(path).st_mode & 0o001:
        if path == "/":
            return True
        path = os.path.dirname(path)
    return False


# Both the programs and the workspace must be in places that others can get at.
needs_another_user = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(others_reach, (AGENT, FAKE, tempfile.gettempdir()))),
    reason="cannot run the agent as somebody else")


@needs_another_user
def test_agent_is_not_dumpable():
    """Code with the agent's uid cannot look into it."""
    with Agent(uid=65534) as a:
        t = a.turn("""
for name in 'mem', 'environ', 'fd/0':
    try:
        open('/proc/%d/%s' % (os.getppid(), name), 'rb')
    except PermissionError:
        os.write(1, b'no ')
os.write(1, open('/proc/self/oom_score_adj', 'rb').read())
""")
        assert t.out == b"no no no 500\n"


# Requests that are wrong, frames that are garbage

@pytest.mark.parametrize("payload", [
    b"", b"{}", b"{}\0", b"[]\0", b"garbage\0x", b"\xff\xfe\0x",
    b'{"type":"execute","interpreter":"python","timeout_ms":1000}',
    b'{"type":"execute","interpreter":"python","timeout_ms":-1}\0x',
    b'{"type":"execute","interpreter":"python","timeout_ms":"1"}\0x',
    b'{"type":"execute","interpreter":"python","timeout_ms":1.5}\0x',
    b'{"type":"execute","interpreter":"python","timeout_ms":99999999999999}\0x',
    b'{"type":"execute","interpreter":"python","timeout_ms":1000,"more":1}\0x',
    b'{"type":"execute","interpreter":"python"}\0x',
    b'{"type":"execute","interpreter":"perl","timeout_ms":1000}\0x',
    b'{"type":"execute","interpreter":"pythonpythonpythonpython","timeout_ms":1000}\0x',
    b'{"type":"evaluate","interpreter":"python","timeout_ms":1000}\0x',
    b'{"type":"execute","interpreter":"python","timeout_ms":1000}\0' + b"x" * (4 * 1024 * 1024 + 1),
])
def test_bad_request(agent, payload):
    agent.send(REQUEST, 7, payload)
    t = agent.end(7)
    assert (t.error, t.exit_code, t.state) == ("protocol", 1, "kept") and t.error_text
    assert agent.turn("os.write(1, b'fine')").out == b"fine"


@pytest.mark.parametrize("frame", [
    b"\0\0\0\0", b"\0\0\0\x08" + b"\1" * 8, b"\xff\xff\xff\xff\1", b"\x00\x60\x00\x00\1" + b"\0" * 8,
    b"\0\0\0\x09\x00" + b"\0" * 8, b"\0\0\0\x09\x02" + b"\0" * 8, b"\0\0\0\x09\xff" + b"\0" * 8,
])
def test_garbage_from_the_daemon_ends_the_agent(agent, frame):
    agent.socket.sendall(frame)
    assert agent.receive() is None
    assert agent.process.wait(10) == 1


def test_request_in_a_turn_ends_the_agent(agent):
    agent.begin("time.sleep(60)")
    agent.begin("1")
    assert agent.receive() is None


def test_frames_in_pieces(agent):
    head = json.dumps({"type": "execute", "interpreter": "python", "timeout_ms": 9000}).encode()
    payload = head + b"\0os.write(1, b'whole')"
    frame = (len(payload) + 9).to_bytes(4, "big") + bytes([REQUEST]) + (3).to_bytes(8, "big") + payload
    for n in range(len(frame)):
        agent.socket.sendall(frame[n:n + 1])
    assert agent.end(3).out == b"whole"


def test_bad_arguments():
    for argv in ([], ["x"], ["99999999999"], ["-1"], ["77"], ["3", "4"]):
        done = subprocess.run([AGENT, *argv], stderr=subprocess.PIPE, timeout=10, check=False)
        assert done.returncode == 1 and b"sandbox-agent" in done.stderr


# What code can say in the driver's name

def test_forged_reports_are_ignored(agent):
    code = "done(5, of=b'0123456789abcdef'); say(b'done\\nready\\nhello world\\ndone 1 2 3 4 5 6\\n\\n')\n" \
           "say(b'done short 0 kept\\n'); time.sleep(0.2); os.write(1, b'end')"
    t = agent.turn(code)
    assert (t.out, t.exit_code, t.state) == (b"end", 0, "kept")


def test_old_token_is_ignored(agent):
    agent.turn("old = token")
    t = agent.turn("done(5, of=old); time.sleep(0.2); sys.exit(6)")
    assert t.exit_code == 6


def test_second_report_is_ignored(agent):
    assert agent.turn("done(3); done(4)").exit_code == 3
    assert agent.turn("sys.exit(5)").exit_code == 5


def test_tokens_differ(agent):
    tokens = {bytes(agent.turn("os.write(1, token)").out) for _ in range(20)}
    assert len(tokens) == 20 and all(len(t) == 16 for t in tokens)


@pytest.mark.parametrize("garbage", [
    "b'x' * 129", "b'\\xff\\xfe\\n'", "b'\\0\\n'", "b'done ' + token + b' 256 kept\\n'",
    "b'done ' + token + b' -1 kept\\n'", "b'done ' + token + b' 0 perhaps\\n'", "b'x' * 5000000",
])
def test_garbage_from_the_driver(agent, garbage):
    agent.turn("x = 1")
    begun = time.monotonic()
    t = agent.turn(f"os.write(1, b'before'); say({garbage}); time.sleep(60)")
    assert time.monotonic() - begun < 10
    assert (t.out, t.exit_code, t.signal, t.state, t.error) == (b"before", 1, 0, "lost", None)
    t = agent.turn("os.write(1, b'%d' % ('x' in globals()))")
    assert (t.out, t.restarted, t.state) == (b"0", True, "kept")
    assert not agent.turn("").restarted


def test_garbage_between_turns(agent):
    agent.turn("import threading; threading.Timer(0.2, say, [b'\\xff\\n']).start(); me = os.getpid();"
               "open('pids', 'w').write(str(me))")
    wait_gone(agent, *pids(agent))
    t = agent.turn("os.write(1, b'fine')")
    assert (t.out, t.restarted) == (b"fine", True)


def test_driver_that_hangs_up(agent):
    """Code may close everything, or be replaced by exec: it is waited for, and its status is the turn's."""
    t = agent.turn("os.write(1, b'a'); os.closerange(3, 1000); time.sleep(0.5); os.write(1, b'b'); os._exit(3)")
    assert (t.out, t.exit_code, t.signal, t.state) == (b"ab", 3, 0, "lost")
    t = agent.turn("os.execv('/bin/sh', ['sh', '-c', 'sleep 0.3; echo there; exit 4'])")
    assert (t.out, t.exit_code, t.state, t.restarted) == (b"there\n", 4, "lost", True)
    t = agent.turn("control.close(); time.sleep(60)", timeout=0.3)
    assert (t.exit_code, t.timed_out, t.state) == (124, True, "lost")


def test_driver_that_hangs_up_between_turns(agent):
    agent.turn("import threading; threading.Timer(0.2, control.shutdown, [2]).start();"
               "open('pids', 'w').write(str(os.getpid()))")
    wait_gone(agent, *pids(agent))
    assert agent.turn("").restarted


# Death and start

@pytest.mark.parametrize("code,status,sig", [
    ("os._exit(0)", 0, 0), ("os._exit(3)", 3, 0), ("os.kill(os.getpid(), 9)", 137, 9),
    ("os.kill(os.getpid(), 11)", 139, 11), ("os.abort()", 134, 6), ("os.kill(os.getpid(), 15)", 143, 15),
])
def test_death(agent, code, status, sig):
    t = agent.turn("os.write(1, b'a' * 50000); os.write(2, b'b'); " + code)
    assert (t.out, t.err) == (b"a" * 50000, b"b")
    assert (t.exit_code, t.signal, t.state, t.restarted, t.error) == (status, sig, "lost", False, None)
    t = agent.turn("os.write(1, b'again')")
    assert (t.out, t.exit_code, t.restarted, t.state) == (b"again", 0, True, "kept")
    assert not agent.turn("").restarted


def test_death_right_after_the_report(agent):
    t = agent.turn("done(0); os._exit(9)")
    assert (t.exit_code, t.state) == (0, "kept")
    t = agent.turn("os.write(1, b'ran')")
    assert (t.out, t.restarted, t.state) == (b"ran", True, "kept")


def test_death_between_turns(agent):
    agent.turn("open('pids', 'w').write(str(os.getpid()))")
    os.kill(pids(agent)[0], signal.SIGKILL)
    t = agent.turn("os.write(1, b'ran')")
    assert (t.out, t.restarted, t.state, t.exit_code) == (b"ran", True, "kept", 0)


def test_missing_interpreter():
    with Agent(path="") as a:
        t = a.turn("1", "node")
        assert (t.error, t.exit_code, t.state, t.restarted) == ("missing", 127, "kept", False)
        assert "node" in t.error_text
        assert a.turn("os.write(1, b'fine')").out == b"fine"


def test_program_that_cannot_be_executed():
    with Agent(path="") as a:
        os.symlink("/etc/passwd", os.path.join(a.directory, "bin", "node"))
        t = a.turn("1", "node")
        assert t.error == "start" and "Permission denied" in t.error_text


def test_early_death_is_retried():
    start = "os.path.exists('tried') or (open('tried', 'w'), os._exit(5))"
    with Agent(env={"FAKE_START": start}) as a:
        t = a.turn("os.write(1, b'ran')")
        assert (t.out, t.error, t.restarted) == (b"ran", None, False)


@pytest.mark.parametrize("end,text", [("os._exit(5)", "status 5"), ("os.kill(os.getpid(), 11)", "signal 11")])
def test_early_death_twice(end, text):
    start = "open('tries', 'a').write('x'); os.write(2, b'no library'); " + end
    with Agent(env={"FAKE_START": start}) as a:
        t = a.turn("1")
        assert (t.error, t.exit_code, t.signal, t.state) == ("start", 1, 0, "kept")
        assert text in t.error_text and t.err == b"no library" * 2
        with open(a.path("tries"), encoding="ascii") as f:
            assert f.read() == "xx"


def test_driver_that_hangs_up_before_it_is_ready():
    with Agent(env={"FAKE_START": "control.close(); time.sleep(60)"}) as a:
        assert a.turn("1").error == "start"


def test_interrupt_while_starting():
    with Agent(env={"FAKE_START": "open('started', 'w'); time.sleep(60)"}) as a:
        a.begin("1")
        a.wait_for_file("started")
        a.send(INTERRUPT, 1)
        t = a.end()
        assert (t.exit_code, t.interrupted, t.state, t.signal, t.error) == (130, True, "kept", 0, None)


def test_start_does_not_count_as_the_turns_time():
    with Agent(env={"FAKE_START": "time.sleep(1)"}) as a:
        t = a.turn("time.sleep(0.1)", timeout=0.5)
        assert (t.exit_code, t.timed_out) == (0, False)
        assert t.duration_us > 1e6


@needs_another_user
def test_limit_of_processes():
    """At the limit it is tried again for a while, which an interrupt ends, and then said why not."""
    with Agent(uid=64999, nproc=1) as a:
        begun = time.monotonic()
        t = a.turn("1")
        assert 1.5 < time.monotonic() - begun < 10
        assert t.error == "start" and "unavailable" in t.error_text
        a.begin("1")
        a.send(INTERRUPT, 2)
        assert a.end().exit_code == 130


# Output

def test_head_and_tail(agent):
    for size in (HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL, HEAD + TAIL + 1, 1_000_003):
        t = agent.turn(f"d = bytes(i % 251 for i in range({size}))\nwhile d: d = d[os.write(1, d):]")
        whole = bytes(i % 251 for i in range(size))
        omitted = max(0, size - HEAD - TAIL)
        assert t.stdout["omitted"] == omitted and t.stdout["bytes"] == size
        assert t.out == whole[:HEAD] + whole[max(HEAD, size - TAIL):]
        with open(t.stdout["file"], "rb") as f:
            assert f.read() == whole


def test_flood(agent):
    code = "b = b'0123456789abcdef' * 4096\nfor _ in range(4800): os.write(1, b)\nos.write(1, b'LAST')"
    begun = time.monotonic()
    t = agent.turn(code, timeout=60)
    assert time.monotonic() - begun < 30
    assert t.stdout["bytes"] == 4800 * 65536 + 4 and t.stdout["omitted"] == t.stdout["bytes"] - HEAD - TAIL
    assert t.out.startswith(b"0123456789abcdef0123") and t.out.endswith(b"cdefLAST")
    assert os.stat(t.stdout["file"]).st_size == 32 << 20
    agent.wait_for(lambda: private_kilobytes(agent.process.pid) < 300)  # it frees what it has sent after we have it
    assert agent.turn("os.write(1, b'x')").stdout["bytes"] == 1


def test_both_streams_at_once(agent):
    t = agent.turn("for _ in range(500): os.write(1, b'o' * 9999); os.write(2, b'e' * 9999)\nos.write(2, b'END')")
    assert t.stdout["bytes"] == 4999500 and t.stderr["bytes"] == 4999503 and t.err.endswith(b"eEND")


def test_output_is_sent_as_it_comes(agent):
    agent.begin("os.write(1, b'early'); time.sleep(60)")
    assert agent.receive()[2] == b"early"
    agent.send(INTERRUPT, 1)
    assert agent.receive()[0] == RESULT


def test_late_output(agent):
    agent.turn("import threading\n"
               "threading.Timer(0.1, lambda: (os.write(1, b'late'), os.write(2, b'e'), open('f', 'w'))).start()")
    agent.wait_for_file("f")
    t = agent.turn("os.write(1, b'now')")
    assert (t.out, t.err, t.late) == (b"latenow", b"e", True)
    assert t.stdout["bytes"] == 7
    assert not agent.turn("").late


def test_late_output_waits_for_its_interpreter():
    with Agent(fake=("python3", "node")) as a:
        a.turn("import threading; threading.Timer(0.1, lambda: (os.write(1, b'late'), open('f', 'w'))).start()")
        a.wait_for_file("f")
        t = a.turn("os.write(1, b'node')", "node")
        assert (t.out, t.late) == (b"node", False)
        assert a.turn("").out == b"late"


def test_late_output_is_dropped_and_counted(agent):
    size = 3_000_000
    agent.turn(f"import threading\ndef f():\n n = {size}\n while n: n -= os.write(1, b'x' * min(n, 9000))\n"
               " open('f', 'w')\nthreading.Timer(0.1, f).start()")
    agent.wait_for_file("f")
    t = agent.turn("os.write(1, b'now')")
    pending = t.stdout["bytes"] - LATE - 3
    assert t.late and 0 <= pending <= 65536 and t.stdout["dropped"] == size - LATE - pending
    assert agent.turn("").stdout["dropped"] == 0


def test_background_writer_cannot_hold_a_turn(agent):
    begun = time.monotonic()
    t = agent.turn("import subprocess; p = subprocess.Popen(['/usr/bin/yes'])")
    assert t.exit_code == 0 and time.monotonic() - begun < 10
    for _ in range(5):
        t = agent.turn("pass")
        assert t.exit_code == 0 and t.stdout["bytes"] < 4_000_000
    assert agent.turn("p.kill(); p.wait()").exit_code == 0


def test_background_outlives_its_interpreter(agent):
    """Its pipes stay: no SIGPIPE, and what it writes is the next interpreter's late output."""
    agent.turn(spawn(["/bin/sh", "-c", "sleep 0.4; echo still; touch f; sleep 60"]) + "os.kill(os.getpid(), 9)")
    agent.wait_for_file("f")
    t = agent.turn("")
    assert (t.out, t.restarted, t.late) == (b"still\n", True, True)
    assert alive(pids(agent)[0])


def test_nonblocking_pipe_is_put_right(agent):
    agent.turn("os.set_blocking(1, False); os._exit(0)")
    assert agent.turn("os.write(1, b'%d' % os.get_blocking(1))").out == b"1"


# Spool files

def test_spool_only_what_is_long(agent):
    t = agent.turn("os.write(1, b'x' * 8192)")
    assert t.stdout["file"] is None and not os.path.exists(agent.path(".sandbox"))
    t = agent.turn("os.write(2, b'x' * 8192); os.write(2, b'y')")
    assert t.stdout["file"] is None and t.stderr["file"] == agent.path(".sandbox", "turn-2.stderr")
    assert os.stat(agent.path(".sandbox")).st_mode & 0o777 == 0o700
    with open(t.stderr["file"], "rb") as f:
        assert f.read() == b"x" * 8192 + b"y"


def test_spool_keeps_four_turns(agent):
    for n in range(1, 8):
        agent.turn("os.write(1, b'x' * 9000); os.write(2, b'x' * 9000)" if n != 5 else "")
    left = [f"turn-{n}.{s}" for n in (3, 4, 6, 7) for s in ("stderr", "stdout")]
    assert sorted(os.listdir(agent.path(".sandbox"))) == left


@pytest.mark.parametrize("obstacle", [
    "open('.sandbox', 'w')", "os.symlink('elsewhere', '.sandbox')", "os.mkfifo('.sandbox')",
    "os.makedirs('.sandbox/turn-1.stdout')",
])
def test_spool_obstacles(agent, obstacle):
    os.mkdir(agent.path("elsewhere"))
    t = agent.turn(obstacle + "\nos.write(1, b'x' * 60000)")
    assert t.stdout["file"] is None and len(t.out) == 60000
    assert not os.listdir(agent.path("elsewhere"))


def test_spool_does_not_follow_links(agent):
    t = agent.turn("os.mkdir('.sandbox'); open('mine', 'w').write('mine');"
                   "os.symlink('../mine', '.sandbox/turn-1.stdout'); os.write(1, b'x' * 60000)")
    assert not os.path.islink(t.stdout["file"]) and os.stat(t.stdout["file"]).st_size == 60000
    with open(agent.path("mine"), encoding="ascii") as f:
        assert f.read() == "mine"


def test_spool_that_cannot_grow():
    with Agent(fsize=1_000_000) as a:
        t = a.turn("for _ in range(200): os.write(1, b'x' * 10000)")
        assert t.stdout["bytes"] == 2_000_000 and t.stdout["file"] is None
        assert not os.listdir(a.path(".sandbox"))


# Time-out and interrupt

def test_time_out(agent):
    agent.turn("x = 1")
    t = agent.turn("os.write(1, b'early'); time.sleep(60)", timeout=0.3)
    assert (t.out, t.exit_code, t.signal, t.state) == (b"early", 124, 0, "kept")
    assert (t.timed_out, t.interrupted) == (True, False)
    assert 0.3e6 <= t.duration_us < 1.2e6
    assert agent.turn("os.write(1, b'%d' % x)").out == b"1"


def test_interrupt(agent):
    agent.turn("")
    agent.begin("time.sleep(60)")
    agent.send(INTERRUPT, 2)
    t = agent.end()
    assert (t.exit_code, t.timed_out, t.interrupted, t.state) == (130, False, True, "kept")


def test_interrupt_of_another_turn(agent):
    agent.turn("")
    agent.send(INTERRUPT, 1)
    agent.begin("time.sleep(0.3)")
    agent.send(INTERRUPT, 1)
    agent.send(INTERRUPT, 99)
    t = agent.end()
    assert (t.exit_code, t.interrupted) == (0, False)


def test_children_are_interrupted_too(agent):
    t = agent.turn(spawn(["/bin/sleep", "60"]) + "p.wait()", timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept") and t.duration_us < 1.2e6
    wait_gone(agent, *pids(agent))


def test_children_that_ignore_it(agent):
    """A time-out takes what the turn has started, but not what earlier ones have."""
    agent.turn(spawn(["/bin/sleep", "60"], name="old"))
    time.sleep(0.02)            # starttime counts in ticks of 10 ms
    t = agent.turn(spawn(["/bin/sh", "-c", "trap '' INT; sleep 60; sleep 60"], 3) + "time.sleep(60)", timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept") and t.duration_us < 1.2e6
    wait_gone(agent, *pids(agent))
    assert alive(pids(agent, "old")[0])


WAIT_FOR_IT = "while True:\n    try:\n        p.wait(); break\n    except KeyboardInterrupt: pass"


def test_driver_that_waits_for_a_child(agent):
    """The child gets the signal as well, though the interpreter goes on waiting for it."""
    t = agent.turn(spawn(["/bin/sleep", "60"]) + WAIT_FOR_IT, timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept") and t.duration_us < 1.2e6


def test_driver_that_waits_for_a_deaf_child(agent):
    """A second later the child is killed, which sets the interpreter free."""
    t = agent.turn(spawn(["/bin/sh", "-c", "trap '' INT; sleep 60; sleep 60"]) + WAIT_FOR_IT, timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept") and 1.2e6 < t.duration_us < 2.2e6
    wait_gone(agent, *pids(agent))


@pytest.mark.parametrize("how", ["signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)",
                                 "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)"])
def test_interpreter_that_does_not_listen(agent, how):
    agent.turn("x = 1\n" + spawn(["/bin/sleep", "60"]))
    t = agent.turn("os.write(1, b'early')\n" + spawn(["/bin/sh", "-c", "trap '' INT; sleep 60"]) + how, timeout=0.3)
    assert (t.out, t.exit_code, t.timed_out, t.state, t.signal) == (b"early", 124, True, "lost", 0)
    assert 2.2e6 < t.duration_us < 3.5e6
    # Its whole process group goes, what earlier turns have left there included.
    assert len(pids(agent)) == 2
    wait_gone(agent, *pids(agent))
    t = agent.turn("os.write(1, b'%d' % ('x' in globals()))")
    assert (t.out, t.restarted) == (b"0", True)


HELPER = "import subprocess\ntry:\n    %s\nexcept KeyboardInterrupt: pass\n" \
         "os.write(1, b'%%d' %% subprocess.run(['/bin/sleep', '0.3']).returncode)"


def test_what_the_interrupted_start_is_left_alone(agent):
    """A driver may need a process to put things in order, as that of bash does."""
    for _ in range(5):
        t = agent.turn(HELPER % "time.sleep(60)", timeout=0.1)
        assert (t.out, t.exit_code) == (b"0", 124)
    deaf = HELPER.replace("except KeyboardInterrupt: pass", "finally: signal.signal(signal.SIGINT, on_interrupt)")
    code = "on_interrupt = signal.signal(signal.SIGINT, lambda *_: None)\n" + \
        deaf % "subprocess.run(['/bin/sh', '-c', 'trap : INT; while :; do sleep 1; done'])"
    for _ in range(3):
        t = agent.turn(code, timeout=0.1)
        assert (t.out, t.exit_code) == (b"0", 124)


def test_interrupt_that_is_missed(agent):
    """The signal comes again a second later."""
    t = agent.turn("signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, signal.default_int_handler))\n"
                   "time.sleep(60)", timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept") and 1.2e6 < t.duration_us < 2.2e6


def test_death_by_the_interrupt(agent):
    t = agent.turn("signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)", timeout=0.3)
    assert (t.exit_code, t.signal, t.state) == (124, 0, "lost")


def test_time_out_of_a_flood(agent):
    t = agent.turn("os.write(1, b'FIRST')\nwhile True: os.write(1, b'x' * 65536)", timeout=0.5)
    assert (t.exit_code, t.state) == (124, "kept") and t.out.startswith(b"FIRSTx") and t.duration_us < 2e6


def test_fork_bomb(agent):
    t = agent.turn("""
signal.signal(signal.SIGINT, signal.SIG_IGN)
if os.fork() == 0:
    for n in range(8):
        os.fork()
        time.sleep(0.02)
time.sleep(60)""", timeout=0.5)
    assert (t.exit_code, t.state) == (124, "lost") and t.duration_us < 5e6
    assert agent.turn("os.write(1, b'fine')").out == b"fine"


def test_frozen_past_its_time(agent):
    """What was done in time, or at least by the time the agent looks, is done; the rest times out at once."""
    agent.turn("")
    agent.begin("open('g', 'w'); time.sleep(60)", timeout=0.3)
    agent.wait_for_file("g")
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    agent.process.send_signal(signal.SIGCONT)
    assert agent.end().exit_code == 124
    agent.begin("open('f', 'w'); time.sleep(0.4)", timeout=0.3)
    agent.wait_for_file("f")
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    agent.process.send_signal(signal.SIGCONT)
    t = agent.end()
    assert (t.exit_code, t.timed_out) == (0, False)


# The daemon's side of the socket

def test_slow_daemon(agent):
    """Output waits for the daemon; time-outs do not."""
    flood = "for _ in range(40): os.write(1, b'x' * 65536); os.write(2, b'x' * 65536)\nopen('f%d', 'w')"
    # Five times 256 KiB are more than the socket and the queue take.
    for n in range(1, 6):
        agent.begin(flood % n)
        agent.wait_for_file(f"f{n}")
        time.sleep(0.05)        # for the result, which cannot be seen yet
    agent.begin("try:\n while True: os.write(1, b'x' * 65536)\n"
                "except KeyboardInterrupt: open('interrupted', 'w')", timeout=0.5)
    agent.wait_for_file("interrupted")
    for n in range(1, 6):
        assert agent.end(n).stdout["bytes"] == 40 * 65536
    t = agent.end(6)
    assert t.exit_code == 124 and t.stdout["bytes"] < 200_000


@pytest.mark.parametrize("namespace", [False, True])
def test_end_of_file_ends_everything(namespace):
    if namespace and not can_unshare():
        pytest.skip("cannot make a pid namespace")
    with Agent(namespace=namespace) as a:
        a.turn(spawn(["/bin/sleep", "60"]) + "open('pids', 'a').write('%d\\n' % os.getpid())")
        inside = [int(pid) for pid in processes() if a.directory.encode() in environment(pid)]
        assert len(inside) >= 3
        a.begin("time.sleep(60)")
        a.socket.close()
        a.process.wait(10)
        wait_gone(a, *inside)


def processes():
    return [entry for entry in os.listdir("/proc") if entry.isdigit()]


def environment(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/environ", "rb") as f:
            return f.read()
    return b""


def can_unshare():
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], stderr=subprocess.DEVNULL,
                          timeout=20, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="cannot make a pid namespace")
def test_pid_one():
    """As pid 1 it reaps every orphan, and nobody in the jail can signal it."""
    with Agent(namespace=True) as a:
        t = a.turn("import subprocess\nos.write(1, b'%d' % os.getppid())\n"
                   "subprocess.run(['/bin/sh', '-c', 'for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 & exec true) & done'])\n"
                   "for s in 1, 2, 3, 9, 11, 13, 15, 17, 19: os.kill(1, s)")
        assert (t.out, t.exit_code) == (b"1", 0)
        a.turn("time.sleep(0.3)")
        t = a.turn("import glob\nfor f in glob.glob('/proc/[0-9]*/stat'): os.write(1, open(f, 'rb').read())")
        assert b") Z " not in t.out and b"(sandbox-agent)" in t.out
        t = a.turn("os._exit(4)")
        assert (t.exit_code, t.state) == (4, "lost")


def test_sigchld_ignored_by_the_parent():
    """The disposition is inherited, and would have the kernel reap the interpreters."""
    with Agent(ignore_sigchld=True) as a:
        assert a.turn("os._exit(6)").exit_code == 6


# Another daemon takes over

def test_attach_before_any_turn(agent):
    hello = agent.attach()
    assert hello["protocol"] == 3 and (hello["turn"], hello["running"]) == (0, False) and "request" not in hello
    assert agent.turn("os.write(1, b'x')").out == b"x"


def test_attach_after_a_turn(agent):
    agent.turn("os.write(1, b'first')")
    t = agent.turn("os.write(1, b'out' * 40000); os.write(2, b'err'); sys.exit(3)")
    for _ in range(3):
        hello = agent.attach()
        assert (hello["turn"], hello["running"]) == (2, False) and hello["total_us"] > 0
        assert hello["request"]["interpreter"] == "python" and hello["age_us"] >= t.duration_us
        again = agent.end(2)
        assert (again.out, again.err, again.result) == (t.out, t.err, t.result)
    assert agent.turn("os.write(1, b'third')").out == b"third"
    agent.attach()
    assert agent.end(3).out == b"third"


def test_attach_in_a_turn(agent):
    """With half a frame read, and all that came before the end thrown away."""
    number = agent.begin("os.write(1, b'a' * 5000); open('one', 'w').close()\n"
                         "while not os.path.exists('go'): time.sleep(0.01)\nos.write(1, b'b' * 100000)")
    agent.wait_for_file("one")
    assert agent.socket.recv(20)
    hello = agent.attach()
    assert (hello["turn"], hello["running"]) == (number, True)
    kind, turn, payload = agent.receive()
    assert turn == number and payload == b"a" * 5000
    agent.attach()
    open(agent.path("go"), "w", encoding="ascii").close()
    assert agent.end().out == b"a" * 5000 + b"b" * 100000


def test_attach_with_much_unread(agent):
    """The socket is full and the agent has more to say: none of that is told twice."""
    number = agent.begin("for _ in range(60000): os.write(1, b'x'); os.write(2, b'y')\nopen('done', 'w').close()")
    agent.wait_for_file("done")
    hello = agent.attach()
    assert hello["turn"] == number
    t = agent.end()
    assert t.out == b"x" * 60000 and t.err == b"y" * 60000


@pytest.mark.parametrize("missing", [1, 20, 44, 45, 46, 5000, 100_000])
def test_attach_behind_half_a_request(agent, missing):
    """Whatever the old daemon had not written yet; the agent never runs half of it."""
    agent.turn("x = 1")
    code = b"open('bad', 'w').close()\n" + b"#" * 150_000
    payload = json.dumps({"type": "execute", "interpreter": "python", "timeout_ms": 1000}).encode() + b"\0" + code
    agent.socket.sendall((HEADER.pack(len(payload) + 9, REQUEST, 2) + payload)[:-missing])
    assert agent.attach()["turn"] == 1
    assert agent.end(1).exit_code == 0
    agent.number = 1
    assert agent.turn("os.write(1, b'%d' % os.path.exists('bad'))").out == b"0"


def test_attach_behind_half_a_header(agent):
    agent.socket.sendall(HEADER.pack(100, REQUEST, 1)[:7])
    assert agent.attach()["turn"] == 0
    assert agent.turn("").exit_code == 0


def test_attach_behind_a_whole_request(agent):
    number = agent.begin("os.write(1, b'whole')")
    nonce = b"n" * NONCE
    assert agent.attach(nonce)["turn"] == number
    assert agent.end().out == b"whole"


def test_attach_twice_at_once(agent):
    agent.turn("os.write(1, b'x')")
    agent.send(ATTACH, 2 ** 64 - 1, b"1" * NONCE)
    assert agent.attach(b"2" * NONCE)["turn"] == 1
    assert agent.end().out == b"x"


def test_what_is_kept_is_small(agent):
    agent.turn("os.write(1, b'x' * 300000); os.write(2, b'y' * 300000)")
    full = private_kilobytes(agent.process.pid)
    agent.turn("os.write(1, b'x')")
    assert full <= 600 and private_kilobytes(agent.process.pid) <= full - 128

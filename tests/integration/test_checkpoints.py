# SPDX-License-Identifier: MIT
"""sandbox-agent with the real python driver: what is left of the state when the interpreter dies."""
import contextlib
import json
import os
import signal
import time

import pytest

from agentlib import EVENT, OPERATED, Agent

# What ends an interpreter.
ENDS = {
    "segfault": "import ctypes; ctypes.string_at(0)",
    "exit": "import os; os._exit(3)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "killpg": "import os, signal; os.killpg(0, signal.SIGKILL)",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "close": "import os; os.closerange(0, 5000)",
    "abort": "import os; os.abort()",
    "recursion": "import sys\nsys.setrecursionlimit(10 ** 9)\nl = []\nfor _ in range(10 ** 6): l = [l]\nl == l[:] == [[l]]\n"
                 "def f(): return g.__call__()\ndef g(): return f.__call__()\nf()",
}
UNSTOPPABLE = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 6\nwhile True: pass"


def running(mode="always", mb=512, **arguments):
    agent = Agent(fake=(), **arguments)
    agent.request = {"checkpoints": mode, "checkpoint_mb": mb}
    return agent


@pytest.fixture(params=[False, True], ids=["subreaper", "pid1"])
def agent(request):
    with running(namespace=request.param) as a:
        yield a


@pytest.fixture
def auto():
    with running("auto") as a:
        yield a


def run(agent, code, out=b"", **arguments):
    t = agent.turn(code, **arguments)
    assert (t.exit_code, t.state, t.out, t.err) == (0, "kept", out, b""), (t.result, t.out, t.err)
    return t


def crash(agent, code="import os; os._exit(3)", to=None, **arguments):
    t = agent.turn(code, **arguments)
    assert t.state == "rolled_back", t.result
    assert to is None or t.rolled_back_to == to
    assert not t.restarted
    return t


def parked(agent, *turns):
    """Until these are the checkpoints that the agent has told of."""
    while agent.checkpoints != list(turns):
        agent.read_event()


def copies(agent, count=None):
    """The processes that wait; count: until there are so many, and none that is still making one."""
    if count is not None:
        agent.wait_for(lambda: len(copies(agent)) == count)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"HOME={agent.workspace}".encode() not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as f:
                if f.read().strip() == "250":
                    found.append(int(pid))
    return found


# What ends the interpreter

@pytest.mark.parametrize("end", ENDS)
def test_a_turn_that_kills_loses_itself_only(agent, end):
    run(agent, "x = 41; d = list(range(1000))")
    run(agent, "x += 1")
    t = crash(agent, "x = 43\n" + ENDS[end], to=2)
    assert t.exit_code != 0 or end == "exec"
    run(agent, "x, len(d)", b"(42, 1000)\n")


def test_how_it_ended_is_told(agent):
    run(agent, "x = 1")
    assert (t := crash(agent, "import os; os._exit(3)")).exit_code == 3 and t.signal == 0
    assert (t := crash(agent, ENDS["segfault"])).signal == signal.SIGSEGV and t.exit_code == 128 + signal.SIGSEGV
    t = agent.turn("print('out', flush=True); import os; os._exit(0)")
    assert (t.out, t.exit_code, t.state) == (b"out\n", 0, "rolled_back")


def test_a_loop_that_nothing_stops(agent):
    for n in range(1, 5):
        run(agent, f"x = {n}")
    t = crash(agent, UNSTOPPABLE, to=4, timeout=1)
    assert t.timed_out and t.exit_code == 124 and t.duration_us < 6e6
    run(agent, "x", b"4\n")


def test_again_and_again(agent):
    run(agent, "x = 1")
    for _ in range(8):
        crash(agent, "x = 2; import os; os._exit(1)")
        run(agent, "x", b"1\n")
    run(agent, "x += 1")
    for _ in range(3):                  # each uses one up, and the next is made at once
        crash(agent)
    run(agent, "x", b"2\n")


def test_death_between_turns(agent):
    run(agent, "x = 1; import os; pid = os.getpid()")
    parked(agent, 1)
    agent.turn("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), os._exit(1))).start()")
    time.sleep(0.3)
    t = agent.turn("print(x, pid == os.getpid())")
    assert (t.out, t.exit_code, t.restarted) == (b"1 False\n", 0, True)
    assert t.state == "kept" and t.rolled_back_to in (1, 2)
    run(agent, "x", b"1\n")


def test_without_a_copy_the_state_is_lost(agent):
    agent.request = {"checkpoints": "never"}
    run(agent, "x = 1")
    t = agent.turn("import os; os._exit(1)")
    assert t.state == "lost" and "obstacle" not in t.result
    t = agent.turn("x")
    assert t.restarted and b"NameError" in t.err


def test_when_all_are_killed_the_state_is_lost(agent):
    run(agent, "x = 1; import os, signal")
    parked(agent, 1)
    what = "[-1]" if in_namespace(agent) else repr(copies(agent, 1))       # -1: all but pid 1 and itself
    t = agent.turn(f"for pid in {what}: os.kill(pid, signal.SIGKILL)\nos._exit(1)")
    assert t.state == "lost"
    parked(agent)
    t = agent.turn("x")
    assert t.restarted and b"NameError" in t.err


def in_namespace(agent):
    return agent.process.args[0] == "unshare"


def test_a_killed_copy_does_no_harm(agent):
    run(agent, "x = 1")
    parked(agent, 1)
    for pid in copies(agent, 1):
        os.kill(pid, signal.SIGKILL)
    parked(agent)
    run(agent, "x = 2")
    parked(agent, 2)
    crash(agent, to=2)


def test_a_stopped_copy_is_passed_over(agent):
    run(agent, "x = 1")
    parked(agent, 1)
    for pid in copies(agent, 1):
        os.kill(pid, signal.SIGSTOP)
    agent.request = {"checkpoints": "never"}
    t = agent.turn("import os; os._exit(3)")
    assert t.state == "lost" and t.duration_us < 6e6
    assert agent.turn("1").restarted


# What a state has, and what it cannot have

def test_what_is_restored(agent):
    run(agent, """
import random, sqlite3, tempfile, os
random.seed(5)
f = open('f', 'w+')
n = f.write('abcdef'), f.flush(), f.seek(2)
r = open('f', 'rb', buffering=0)
db = sqlite3.connect('db')
_ = db.execute('create table t (a)'), db.commit()
directory = tempfile.TemporaryDirectory()
expected = random.Random(5).random()
""")
    crash(agent, "f.write('X'); f.flush(); r.read(3); random.random()\n"
                 "_ = db.execute('insert into t values (1)'), db.commit(); os._exit(1)", to=1)
    run(agent, "f.tell(), r.read(), random.random() == expected, os.path.isdir(directory.name)",
        b"(2, b'abXdef', True, True)\n")
    run(agent, "db.execute('insert into t values (2)'), db.commit()\nlist(db.execute('select a from t'))",
        b"[(1,), (2,)]\n")


def test_pipes_and_children_are_gone_and_that_is_told(agent):
    run(agent, "import os, subprocess\nr, w = os.pipe()\np = subprocess.Popen(['sleep', '60'])")
    t = crash(agent)
    assert t.result["pipes_gone"] and t.result["children_gone"] and "threads_gone" not in t.result
    t = agent.turn("print(os.read(r, 1))\nos.write(w, b'x')")
    assert t.out == b"b''\n" and b"BrokenPipeError" in t.err
    run(agent, "p.poll(); os.kill(p.pid, 9)\nr, w = os.pipe()")


def test_nothing_is_gone_where_nothing_was(agent):
    run(agent, "import os; f = open('f', 'w')")
    t = crash(agent)
    assert not any(key.endswith("_gone") for key in t.result)


def test_an_event_loop_goes_on(agent):
    run(agent, "import asyncio, os\nq = asyncio.Queue()\nawait asyncio.sleep(0.01)\n"
               "async def later():\n    await asyncio.sleep(0.2); await q.put(7)\ntask = asyncio.create_task(later())")
    t = crash(agent, "await asyncio.sleep(0.01)\nos._exit(1)")
    assert "pipes_gone" not in t.result
    run(agent, "print(await asyncio.wait_for(q.get(), 5))\n"
               "p = await asyncio.create_subprocess_exec('echo', 'sub')\nawait p.wait()", b"7\nsub\n0\n")
    used = run(agent, "import time\nt = time.process_time(); await asyncio.sleep(0.3)\nprint(time.process_time() - t < 0.2)",
               b"True\n")
    assert used


def test_pipes_end_while_a_copy_waits(agent):
    run(agent, "import subprocess, os, socket\np = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
               "r, w = os.pipe()\na, b = socket.socketpair()\ns = socket.create_server(('127.0.0.1', 0))")
    run(agent, "p.stdin.close(); p.wait(5)", b"0\n")
    run(agent, "os.close(w); os.read(r, 1)", b"b''\n")
    run(agent, "b.close(); a.recv(1)", b"b''\n")
    run(agent, "port = s.getsockname()[1]; s.close(); s = socket.create_server(('127.0.0.1', port))")


def test_nobody_waits_for_a_copy(agent):
    run(agent, "import os, signal\nseen = []\nold = signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))")
    run(agent, "try: os.wait()\nexcept ChildProcessError: print('none')", b"none\n")
    run(agent, "seen", b"[]\n")
    run(agent, "import time\npid = os.posix_spawn('/bin/true', ['true'], {})\ntime.sleep(0.2); seen", b"[1]\n")


def test_locks_of_files(agent):
    """A copy in the middle of a transaction would spoil the database."""
    run(agent, "import sqlite3, os\ndb = sqlite3.connect('db')\n_ = db.execute('create table t (a)')")
    run(agent, "_ = db.execute('insert into t values (1)')")
    t = agent.turn("db.commit(); import os; os._exit(1)")
    assert t.rolled_back_to == 1 if t.state == "rolled_back" else t.state == "lost" and t.obstacle == "lock"
    run(agent, "import sqlite3; list(sqlite3.connect('db').execute('select a from t'))", b"[(1,)]\n")


def test_locks_do_not_stay_with_a_copy(agent):
    run(agent, "import fcntl\nf = open('f', 'w'); fcntl.flock(f, fcntl.LOCK_EX)")
    run(agent, "f.close()\ng = open('f', 'w'); fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)")


# When one is made

def test_short_turns_get_none():
    for _ in range(20):                 # on a busy machine a turn may take long, and pay
        with running("auto") as agent:
            for _ in range(20):
                run(agent, "x = 1")
            if agent.checkpoints == []:
                t = agent.turn("import os; os._exit(1)")
                assert t.state == "lost" and t.obstacle == "short"
                return
    pytest.fail("short turns get checkpoints")


def test_a_long_turn_gets_one(auto):
    run(auto, "import time; time.sleep(0.3); x = 1")
    run(auto, "y = 2")                  # not in it
    crash(auto, to=1)
    t = auto.turn("print(x); y")
    assert t.out == b"1\n" and b"NameError" in t.err


def test_threads(auto):
    code = "import threading, time, os\ne = threading.Event()\nt = threading.Thread(target=e.wait, daemon=True); t.start()"
    run(auto, code + "\ntime.sleep(0.3)")
    t = auto.turn("os._exit(1)")
    assert t.state == "lost" and t.obstacle == "threads"
    auto.request["checkpoints"] = "always"
    run(auto, code)
    t = crash(auto)
    assert t.result["threads_gone"]
    run(auto, "t.is_alive()", b"False\n")


def test_a_limit_of_processes(agent):
    if in_namespace(agent) or os.geteuid() != 0:
        pytest.skip("needs a user of its own")
    with running(uid=54321, nproc=3) as other:
        run(other, "x = 1")
        run(other, "x = 2")
        t = other.turn("import os; os._exit(1)")
        assert t.state == "lost" and t.obstacle == "fork"
        run_again = other.turn("1")
        assert run_again.out == b"1\n" and run_again.restarted


def test_memory_is_bounded():
    big = "b = bytearray(60 << 20)\nfor i in range(0, len(b), 4096): b[i] = {}"
    with running(mb=100) as agent:
        for n in range(5):
            run(agent, big.format(n + 1))
        parked(agent, *agent.checkpoints)
        run(agent, "1", b"1\n")
        assert 1 <= len(agent.checkpoints) <= 3
        crash(agent)
        run(agent, "b[0]", b"5\n")
    with running(mb=1000) as agent:
        for n in range(5):
            run(agent, big.format(n + 1))
        run(agent, "1", b"1\n")
        assert len(agent.checkpoints) == 4


# Back on request

def rollback(agent, turns=1):
    agent.operate("rollback", interpreter="python", turns=turns)
    while True:
        kind, of, payload = agent.receive()
        if kind == OPERATED:
            assert of == agent.operation
            return json.loads(payload)
        assert kind == EVENT
        agent.take_event(json.loads(payload))


def back(agent, turns, to):
    answer = rollback(agent, turns)
    assert answer["error"] is None and answer["report"]["turn"] == to, answer


@pytest.mark.parametrize("deep", [1, 2, 3])
def test_back_on_request(agent, deep):
    for n in range(1, 6):
        run(agent, f"x = {n}")
    parked(agent, 2, 3, 4, 5)
    back(agent, deep, 5 - deep)
    run(agent, "x", b"%d\n" % (5 - deep))
    assert not agent.turn("x").restarted


def test_back_step_by_step(agent):
    for n in range(1, 5):
        run(agent, f"x = {n}")
    parked(agent, 1, 2, 3, 4)
    for n in (3, 2, 1):
        back(agent, 1, n)
    assert rollback(agent)["error"] == "refused"
    run(agent, "x", b"1\n")
    crash(agent, to=5)                  # there is one of what one went back to, and of the turn after it
    run(agent, "x", b"1\n")


def test_back_where_nothing_is(agent):
    assert rollback(agent)["error"] == "refused"
    run(agent, "x = 1")
    parked(agent, 1)
    assert rollback(agent)["error"] == "refused"        # that is the present state
    assert rollback(agent, 0)["error"] == "failed"
    run(agent, "x = 2")
    parked(agent, 1, 2)
    assert rollback(agent, 2 ** 64 - 1)["error"] == "refused"
    run(agent, "x", b"2\n")


def test_back_after_turns_of_another_interpreter(agent):
    run(agent, "x = 1")
    run(agent, "x = 2")
    parked(agent, 1, 2)
    agent.request = {}
    assert agent.turn("echo bash", interpreter="bash").out == b"bash\n"
    back(agent, 1, 1)
    run(agent, "x", b"1\n")


def test_back_from_a_dead_interpreter(agent):
    run(agent, "x = 1; import os, threading, time")
    run(agent, "x = 2")
    parked(agent, 1, 2)
    agent.turn("threading.Thread(target=lambda: (time.sleep(0.1), os._exit(1))).start()")
    time.sleep(0.3)
    back(agent, 2, 1)
    run(agent, "x", b"1\n")


def test_back_to_a_copy_that_does_not_answer(agent):
    run(agent, "x = 1")
    run(agent, "x = 2")
    parked(agent, 1, 2)
    for pid in copies(agent, 2):
        os.kill(pid, signal.SIGSTOP)
    answer = rollback(agent)
    assert answer["error"] == "failed"
    agent.request = {"checkpoints": "never"}
    assert agent.turn("1").restarted


# Lies

def test_forged_reports(agent):
    """Code that finds the driver's socket can say what it likes: it is its own turn that suffers."""
    forge = """
import os, socket, array
for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        s = socket.socket(fileno=os.dup(fd))
        if s.family == socket.AF_UNIX:
            a, b = socket.socketpair()
            socket.send_fds(s, [b'\\nparked %s\\n' % (b'0' * 16 + b' 2')] * 3, [a.fileno(), b.fileno()])
            s.send(b'parked 0000000000000000 1\\nparked x\\nparked 0000000000000000 99999999\\ndone 0000000000000000 0 kept\\n')
    except OSError:
        pass
"""
    run(agent, "x = 1")
    for _ in range(5):
        agent.turn(forge)
        run(agent, "x", b"1\n")
    fds = len(os.listdir(f"/proc/{agent_pid(agent)}/fd"))
    for _ in range(5):
        agent.turn(forge)
    run(agent, "x", b"1\n")
    assert len(os.listdir(f"/proc/{agent_pid(agent)}/fd")) <= fds + 2
    crash(agent)
    run(agent, "x", b"1\n")
    run_bash = agent.turn("echo fine", interpreter="bash")
    assert run_bash.out == b"fine\n"


def agent_pid(agent):
    if not in_namespace(agent):
        return agent.process.pid
    with open(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


def test_code_that_reads_and_writes_all_descriptors(agent):
    run(agent, "x = 1")
    agent.turn("""
import os
for fd in range(3, 300):
    try:
        os.set_blocking(fd, False)
        os.write(fd, b'\\0garbage\\n')
        os.read(fd, 100)
    except OSError:
        pass
""", timeout=5)
    t = agent.turn("print(x)")
    assert t.out == b"1\n" or t.restarted
    run(agent, "y = 1")


# Its end

def test_copies_end_with_the_agent():
    with running() as agent:
        run(agent, "x = 1")
        run(agent, "x = 2")
        agent.wait_for(lambda: len(copies(agent)) == 2)
        agent.socket.close()
        agent.wait_for(lambda: not copies(agent))


def test_another_daemon_is_told(agent):
    run(agent, "x = 1")
    parked(agent, 1)
    agent.checkpoints = None
    assert agent.attach()["turn"] == 1
    agent.number = 1
    agent.end()                         # told again
    assert agent.read_event() == [1]
    crash(agent, to=1)

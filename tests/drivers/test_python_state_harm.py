# SPDX-License-Identifier: MIT
"""The python driver's save and restore against damaged and hostile states, broken processes, signals."""
import contextlib
import itertools
import os
import pickle
import random
import select
import signal
import struct
import threading
import time
import zlib

import pytest
from harness import Driver
from python_state import Fifo, done, restore, save, skipped
from session import Session, py  # noqa: F401

def number(_, numbers=itertools.count()):
    """Ids of parameters, of which some are long."""
    return str(next(numbers))


FIRST_LINE = b"nix-sandbox python state 1\n"


@pytest.fixture
def new():
    with Driver("python") as driver:
        yield Session(driver)


def record(kind, data=b""):
    return struct.pack("<cII", kind, len(data), zlib.crc32(data)) + data


HEAD = {"version": "3", "order": ["x"], "sources": {}, "turns": 0, "cwd": None, "path": [], "environment": {}, "random": None, "numpy": None}


def state(*pickles, head=HEAD, memo=0):
    """One with a variable for each pickle, named x0, x1 and so on."""
    records = [record(b"H", pickle.dumps(head))]
    for n, data in enumerate(pickles):
        records += [record(b"V", struct.pack("<Q", memo) + pickle.dumps([f"x{n}"])), record(b"D", data), record(b"E")]
    return FIRST_LINE + b"".join(records) + record(b"Z")


class Call:
    def __init__(self, call, *arguments):
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


# ---------------------------------------------------------------- damaged


def test_damaged_states(py, new):
    """Whatever bits are wrong, wherever it ends: an answer, no false value, and the next turn."""
    py("import collections\na = [1] * 50; b = [a, 'text' * 100]; c = collections.deque([b]); x = 42\n"
       "class A: pass\no = A(); o.v = a\ndef f(n=a): return n\nbig = b'x' * 3000000")
    data, report = save(py)
    assert report["skipped"] == []
    rng = random.Random(5)
    check = "[n for n, ok in dict(x=lambda: x == 42, a=lambda: a == [1] * 50, b=lambda: b[0] == [1] * 50, f=lambda: f() == [1] * 50, " \
            "big=lambda: len(big) == 3000000).items() if n in globals() and not ok()], [globals().pop(n, 0) and 0 for n in 'abcxof'] and 0"
    for n in range(200):
        damaged = bytearray(data)
        small = data.index(b"x" * 1000)                 # else nearly all would be of the one value
        for _ in range(rng.choice((1, 1, 3, 20))):
            damaged[rng.randrange(small if rng.random() < 0.8 else len(data))] ^= 1 << rng.randrange(8)
        if n % 3 == 0:
            damaged = data[:rng.randrange(len(data) if n % 2 else small)]
        if n % 20 == 1:
            damaged = data[:100] + data[5000:]
        back = restore(new, bytes(damaged))
        assert not back["ok"] and back["why"] and {*skipped(back)} <= {"a", "b", "c", "x", "A", "o", "f", "big", "collections"}, back
        new(check, "([], 0)\n")
    assert restore(new, data)["ok"]
    new("x, c[0] is b, o.v is a", "(42, True, True)\n")


@pytest.mark.parametrize("data", [
    b"", b"x", FIRST_LINE, FIRST_LINE + b"\0" * 100, b"nix-sandbox python state 2\n" + b"x" * 100, os.urandom(300000),
    FIRST_LINE + record(b"V"), FIRST_LINE + record(b"H", b"."), FIRST_LINE + record(b"H", pickle.dumps(5)), state(head={}),
    FIRST_LINE + struct.pack("<cII", b"H", 0xffffffff, 0), FIRST_LINE + struct.pack("<cII", b"H", 1 << 28, 0) + b"x" * 1000,
    FIRST_LINE + record(b"H", pickle.dumps(Call(exec, "raise SystemExit(5)"))),
    state(head={**HEAD, "turns": 10**18, "order": 5}), state(head={**HEAD, "sources": 5, "turns": 5}), state(head={**HEAD, "turns": "x"}),
    state(pickle.dumps(1), memo=1 << 40), state(pickle.dumps(1)) + b"more"], ids=number)
def test_what_is_no_state(new, data):
    new("own = 7")
    report = restore(new, data)
    assert report["ok"] == data.endswith(b"more")
    new("own", "7\n")


@pytest.mark.parametrize("head", [{"cwd": 5}, {"cwd": "/nowhere"}, {"path": 5}, {"path": [(5, 5)]}, {"environment": {"a": "b"}}, {"random": "x"},
                                  {"random": ((1, 2), None)}, {"environment": {b"A=": b"\0"}}])
def test_wrong_headers(new, head):
    report = restore(new, state(pickle.dumps(5), head={**HEAD, **head}))
    assert report["ok"] and len(report["skipped"]) == 1
    new("x0", "5\n")


# ---------------------------------------------------------------- hostile pickles


@pytest.mark.parametrize("data", [
    pickle.dumps(Call(exec, "raise SystemExit")), pickle.dumps(Call(exec, "raise KeyboardInterrupt")), pickle.dumps(Call(exec, "raise GeneratorExit")),
    pickle.dumps(Call(exec, "def f(): f()\nf()")), b"\x80\x04" + b"(" * 1000000,
    b"\x80\x04N0.", b"\x80\x04.", b"0000.", b"\x80\xff.", b"\x80\x04\x8e" + b"\xff" * 8, b"\x80\x04\x8d" + b"\xff" * 7 + b"\x00", b"\x80\x05\x96" + b"\0" * 7 + b"\x01",
    b"\x80\x04h\x09.", b"\x80\x04j\xff\xff\xff\x7f.", b"cnowhere\nnothing\n.", b"\x80\x04\x8c\x08nowhere\x8c\x01\x61\x93.",
    b"\x80\x04K\x00Q.", b"\x80\x05\x97.", b"\x80\x05\x95" + b"\xff" * 8 + b"N.", b"I9" * 500000, b"\x80\x04N."[:-1],
    b"\x80\x04\x8c\x11nix_sandbox_state\x8c\x06define\x93)R.", b"\x80\x04\x8c\x11nix_sandbox_state\x8c\x04exit\x93.",
    b"\x80\x04\x8c\x11nix_sandbox_state\x8c\x08function\x93(\x8c\x01aNNNNtR."], ids=number)
def test_hostile_pickle(new, data):
    """The one variable is lost, with a why; those beside it are not."""
    report = restore(new, state(pickle.dumps([1]), data, pickle.dumps([2]), memo=0) if b"memo" in data else state(data))
    assert report["ok"] and {*skipped(report)} == {"x0"} and skipped(report)["x0"], report
    new("'x0' in globals()", "False\n")


def test_hostile_pickle_prints_and_breaks(new):
    """It may do what code may; the driver puts back what it needs."""
    new("keep = 1")
    for code in ("print('PRINTED')", "import sys; sys.stdout.close(); sys.stderr.close()", "import os; os.closerange(0, 3)",
                 "import builtins\nfor n in list(vars(builtins)): delattr(builtins, n) if n != 'delattr' else 0",
                 "import sys; sys.modules.clear()", "import __main__; __main__.__dict__.clear()", "import sys; sys.setrecursionlimit(50)",
                 "import sys; sys.settrace(lambda *a: 1 / 0)", "import os; os.fork() or os._exit(0)", "import signal; signal.signal(2, signal.SIG_IGN)"):
        restore(new, state(pickle.dumps(5), pickle.dumps(Call(exec, code))))
        new("import sys; sys.settrace(None); sys.setrecursionlimit(1000); print(2)", "2\n")


def test_pickle_that_ends_the_process(new):
    fifo, report = Fifo(new, "state").write(state(pickle.dumps(Call(os._exit, 3)))), Fifo(new, "report").read()
    new.driver.command("restore", fifo.path, report.path)
    assert new.driver.process.wait(10) == 3
    fifo.end()
    assert let_go(report) == b"\n"


# ---------------------------------------------------------------- processes


@pytest.mark.parametrize("code", [
    "sys.stdout.close(); sys.stderr.close()", "os.closerange(0, 3)", "[sys.modules.pop(n) for n in list(sys.modules) if n not in ('sys', 'builtins', 'os')]",
    "sys.modules['pickle'] = sys.modules['struct'] = sys", "import builtins\nfor n in list(vars(builtins)): delattr(builtins, n) if n != 'delattr' else 0",
    "sys.setrecursionlimit(40)", "sys.setprofile(lambda *a: None)", "sys.path[:] = []", "sys.path = None", "os.environ.clear()", "os.environ = None",
    "import random; random._inst = 5", "import gc; gc.disable()", "sys.meta_path.clear()", "sys.addaudithook(lambda *a: None)",
    "sys.modules['warnings'] = None", "sys.version = 5"])
def test_broken_process(py, code):
    """Whatever code has broken, the state is saved, or the report says why not."""
    py("keep = [1]; import sys, os")
    py.driver.turn(code)
    data, report = save(py)
    assert report["ok"] or report["why"], report
    py.driver.turn("sys.setrecursionlimit(1000)")
    py("keep", "[1]\n")


def test_processes_left(py):
    """The copy is no child, ends, and takes nothing along: pipes end though it lives."""
    py("import os\nr, w = os.pipe()\nclass Slow:\n    def __reduce__(self):\n        import time; time.sleep(1.5); return int, ()\ns = Slow(); x = 1")
    fifo, report = Fifo(py, "state").read(), Fifo(py, "report").read()
    assert done(py, py.driver.command("save", fifo.path, report.path), 1) == 0
    py("os.close(w); os.read(r, 1)", "b''\n")
    py("try: os.wait()\nexcept ChildProcessError: print('none')", "none\n")
    py("x = 2")                         # not what is being saved
    copies = [pid for pid in os.listdir("/proc") if pid.isdigit() and session_of(pid) == py.driver.process.pid != int(pid)]
    assert len(copies) == 1
    with open(f"/proc/{copies[0]}/oom_score_adj", encoding="ascii") as file:
        assert file.read() == "1000\n"
    os.kill(int(copies[0]), signal.SIGINT)              # is for turns
    data = fifo.end()
    report.end()
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("x, s", "(1, 0)\n")


def session_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[3])
    except OSError:
        return None


@pytest.mark.parametrize("body", ["\n        while True: pass", "import os; os._exit(1)", "import os; os.kill(os.getpid(), 9)", "import time; time.sleep(60)"])
def test_copy_that_never_reports(py, body):
    """The agent kills it, or sees that there is no report; the session goes on at once."""
    py(f"class Bad:\n    def __reduce__(self): {body}\nbad = Bad(); x = 1")
    fifo, report = Fifo(py, "state").read(), Fifo(py, "report").read()
    assert done(py, py.driver.command("save", fifo.path, report.path), 3) == 0
    py("x", "1\n")
    time.sleep(0.2)
    for pid in os.listdir("/proc"):
        if pid.isdigit() and session_of(pid) == py.driver.process.pid != int(pid):
            os.kill(int(pid), signal.SIGKILL)
    let_go(fifo)
    assert let_go(report) == b"\n"
    py("x", "1\n")


def test_nobody_reads(py):
    """The agent has given up: nothing waits, no copy is left."""
    py("x = b'x' * 10000000")
    fifo, report = Fifo(py, "state"), Fifo(py, "report")
    assert done(py, py.driver.command("save", fifo.path, report.path), 3) == 0
    reader = os.open(fifo.path, os.O_RDONLY | os.O_NONBLOCK)
    assert done(py, py.driver.command("save", fifo.path, report.path), 3) == 0
    select.select([reader], [], [], 5)
    assert os.read(reader, 100).startswith(FIRST_LINE)
    os.close(reader)
    deadline = time.monotonic() + 5
    while any(session_of(pid) == py.driver.process.pid != int(pid) for pid in os.listdir("/proc") if pid.isdigit()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    py("len(x)", "10000000\n")


def test_saves_at_once_and_turns_between(py):
    py("x = 0; big = list(range(200000))")
    pairs = []
    for n in range(5):
        fifos = Fifo(py, f"state{n}").read(), Fifo(py, f"report{n}").read()
        assert done(py, py.driver.command("save", *(fifo.path for fifo in fifos))) == 0
        py(f"x += 1; big[0] = {n}")
        pairs.append(fifos)
    for n, (fifo, report) in enumerate(pairs):
        data = fifo.end()
        assert b'"ok": true' in report.end()
        with Driver("python") as driver:
            new = Session(driver)
            restore(new, data)
            new("x, len(big)", f"({n}, 200000)\n")


def test_interrupts_and_handlers(py):
    """SIGINT outside a turn does nothing; handlers of code that raise may cost a command, never the session."""
    py("x = [1]; y = x\nclass A:\n    def __getstate__(self): return {'v': sum(range(10000))}\na = [A() for _ in range(300)]")
    data, _ = save(py)
    stop = threading.Event()

    def shoot(number, pid=py.driver.process.pid):
        rng = random.Random(number)
        while not stop.is_set():
            time.sleep(rng.random() * 0.002)
            os.kill(pid, number)
    shooter = threading.Thread(target=shoot, args=(signal.SIGINT,))
    shooter.start()
    try:
        for _ in range(10):
            data, report = save(py)
            assert report["ok"] and report["skipped"] == []
            assert restore(py, data)["skipped"] == []
    finally:
        stop.set()
        shooter.join()
    py("x is y, len(a)", "(True, 300)\n")
    py("import signal\ndef late(*_): raise TimeoutError\nsignal.signal(signal.SIGUSR1, late); None")
    stop.clear()
    shooter = threading.Thread(target=shoot, args=(signal.SIGUSR1,))
    shooter.start()
    try:
        for _ in range(30):
            for verb in "save", "restore", "list":
                answers = [Fifo(py, "a" + verb).read() if verb != "restore" else Fifo(py, "a" + verb).write(data)]
                if verb != "list":
                    answers.append(Fifo(py, "b").read())
                token = py.driver.command(verb, *(fifo.path for fifo in answers))
                deadline = time.monotonic() + 10
                while py.driver.report(token) is None:
                    assert time.monotonic() < deadline and py.driver.process.poll() is None
                    select.select([py.driver.control], [], [], 0.1)
                for fifo in answers:
                    let_go(fifo)
    finally:
        stop.set()
        shooter.join()
    while py.driver.turn("signal.signal(signal.SIGUSR1, signal.SIG_IGN)")["exit_code"]:
        pass
    py("1", "1\n")
    assert save(py)[1]["ok"]


def let_go(fifo):
    """Of a FIFO that may never be opened at its other end, or never closed: a handler that raises between open() and
    what it gives costs the driver a descriptor, and the agent gives such a part up."""
    fifo.given_up = True
    for flags in os.O_WRONLY, os.O_RDONLY:
        try:
            fd = os.open(fifo.path, flags | os.O_NONBLOCK)
        except OSError:                 # nobody reads
            continue
        if flags == os.O_WRONLY:
            with contextlib.suppress(BlockingIOError):  # full, and read
                os.write(fd, b"\n")
        else:
            while fifo.thread.is_alive():
                select.select([fd], [], [], 0.01)
                with contextlib.suppress(BlockingIOError):
                    os.read(fd, 1 << 20)
        os.close(fd)
        break
    return fifo.end()

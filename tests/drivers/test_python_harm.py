# SPDX-License-Identifier: MIT
"""The python driver against code that means harm or just does it: interrupts, broken streams, lost names."""
import os
import random
import signal
import threading
import time

import pytest
from session import py  # noqa: F401


# ---------------------------------------------------------------- interrupts and signals


def test_interrupt_at_any_moment(py):
    """Interrupts hit the turn, its end or the time after it: it always reports, and keeps its state."""
    py("n = 0")
    rng, pid, stop = random.Random(3), py.driver.process.pid, threading.Event()

    def shoot():
        while not stop.is_set():
            time.sleep(rng.random() * 0.0005)
            os.kill(pid, signal.SIGINT)
    shooter = threading.Thread(target=shoot)
    shooter.start()
    try:
        codes = ("n += 1", "n += 1\nprint(n)", "1 / 0", "n += 1; 'a'", "import os; os.close(1)")
        statuses = {py.driver.turn(codes[i % len(codes)])["exit_code"] for i in range(400)}
    finally:
        stop.set()
        shooter.join()
    assert statuses <= {0, 1, 130} and 0 in statuses
    assert int(py("print(n)", any)["stdout"].split()[-1]) > 10


def test_interrupt_of_what_waits_or_works(py):
    for code in ("while True: pass", "import subprocess; subprocess.run(['sleep', '60'])",
                 "import threading; threading.Event().wait()",
                 "import re; re.match('(a+)+$', 'a' * 40 + 'b')"):
        py("keep = 1\n" + code, err=["KeyboardInterrupt"], status=124, timeout=0.3)
        py("keep", "1\n")


def test_interrupt_between_turns_does_nothing(py):
    py("keep = 1")
    for _ in range(20):
        os.kill(py.driver.process.pid, signal.SIGINT)
    time.sleep(0.05)
    py("keep", "1\n")


def test_interrupt_goes_to_the_handler_of_code(py):
    py("import signal, time\nold = signal.signal(signal.SIGINT, lambda *_: print('mine'))")
    os.kill(py.driver.process.pid, signal.SIGINT)
    time.sleep(0.05)
    py("1", "1\n")
    py("t = time.monotonic()\nwhile time.monotonic() < t + 0.5: pass", "mine\n", status=124, timeout=0.2)
    py("signal.signal(signal.SIGINT, old); None")
    py("time.sleep(60)", err=["KeyboardInterrupt"], status=124, timeout=0.2)
    py("signal.signal(signal.SIGINT, signal.default_int_handler); None")
    os.kill(py.driver.process.pid, signal.SIGINT)
    py("time.sleep(60)", err=["KeyboardInterrupt"], status=124, timeout=0.2)


def test_handlers_that_raise_between_turns(py):
    py("import signal\ndef late(*_): raise TimeoutError\nsignal.signal(signal.SIGALRM, late)\nn = 0\n"
       "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007); None", any, err=[])
    for _ in range(300):
        got = py.driver.turn("n += 1")
        assert got["state"] == "kept" and not got["timed_out"]
    while py.driver.turn("signal.setitimer(signal.ITIMER_REAL, 0)")["exit_code"]:
        pass
    assert int(py("print(n)", any)["stdout"]) > 100


@pytest.mark.parametrize("last", [signal.SIGRTMIN + n for n in (0, 1, 2, 4)])
def test_handlers_that_raise_one_after_the_other(py, last):
    """Python calls the handlers of all that is pending in turn, each where the one before was caught. It may cost a turn."""
    py("import signal\ndef late(*_): raise TimeoutError\n"
       f"for n in range(signal.SIGRTMIN, {last} + 1): signal.signal(n, late)")
    pid = py.driver.process.pid
    os.kill(pid, signal.SIGSTOP)
    for number in range(signal.SIGRTMIN, last + 1):
        os.kill(pid, number)
    os.kill(pid, signal.SIGCONT)
    assert py.driver.turn("1")["state"] == "kept"
    py("late.__name__", "'late'\n")


def test_interrupted_await_does_not_go_on(py):
    py("import asyncio\nlog = []\nasync def f():\n    try:\n        await asyncio.sleep(60)\n    finally:\n"
       "        await asyncio.sleep(0.01); log.append('cleaned')")
    py("await f()\nlog.append('on')", err=["KeyboardInterrupt"], status=124, timeout=0.3)
    py("log", "['cleaned']\n")
    py("async def g():\n    while True: pass")
    for code in ("await g()", "asyncio.run(g())"):
        got = py(code, err=["KeyboardInterrupt"], status=124, timeout=0.3)
        assert "never retrieved" not in got["stderr"]
    py("import gc; gc.collect(); await asyncio.sleep(0, 'ok')", "'ok'\n")


def test_loop_of_the_session(py):
    py("import asyncio\nl = asyncio.get_running_loop(); await asyncio.sleep(0)")
    py("async def f(): return 1\nasyncio.run(f()); asyncio.set_event_loop(None)")
    py("await asyncio.sleep(0, l is asyncio.get_running_loop())", "True\n")
    py("asyncio.get_event_loop() is l", "True\n")
    py("l.close()")
    py("await f()", "1\n")
    py("raise SystemExit(await asyncio.sleep(0, 5))", status=5)
    py("async def agen():\n    yield 1\n    yield 2\n[x async for x in agen()]", "[1, 2]\n")


# ---------------------------------------------------------------- streams


def test_streams_stay_the_same(py):
    py("import sys; kept = sys.stdin, sys.stdout, sys.stderr")
    py("1 / 0", err=["ZeroDivisionError"], status=1)
    py("kept == (sys.stdin, sys.stdout, sys.stderr)", "True\n")
    py("kept == (sys.__stdin__, sys.__stdout__, sys.__stderr__)", "True\n")


@pytest.mark.parametrize("harm", [
    "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "sys.stdout.detach(); sys.stderr.detach(); sys.stdin.detach()",
    "sys.stdout = sys.stderr = sys.stdin = None",
    "sys.stdout = sys.stderr = sys.stdin = 5",
    "del sys.stdout, sys.stderr, sys.stdin",
    "sys.stdout.buffer.raw.close()",
    "class Odd:\n    closed = property(lambda s: 1 / 0)\n    def __eq__(s, o): raise ValueError\n"
    "sys.stdout = sys.stderr = Odd()",
    "os.closerange(0, 3)",
    "os.fdopen(1).close(); os.fdopen(2).close()",
    "[os.dup2(os.open('/dev/null', 2), n) for n in range(3)]",
    "[os.set_blocking(n, False) for n in range(3)]"])
def test_streams_heal(py, harm):
    py.driver.turn("import os, sys\n" + harm + "\nraise Exception('told')")
    big = "x" * 300000
    py("import sys; print('out'); print('err', file=sys.stderr); sys.stdin.read()", "out\n''\n", "err\n")
    py("import os; os.write(1, b'1\\n'); os.write(2, b'2\\n'); os.read(0, 1)", "1\nb''\n", "2\n")
    py(f"print('x' * {len(big)})\nprint('e', file=sys.__stderr__)", big + "\n", "e\n")


@pytest.mark.parametrize("harm", [
    "sys.stderr.close()", "sys.stderr = None", "del sys.stderr", "sys.stderr = 5", "sys.stderr.detach()",
    "os.close(2)", "class F:\n    def write(s, t): raise OSError\nsys.stderr = F()"])
def test_failure_is_told_whatever_stderr_is(py, harm):
    py("import os, sys\n" + harm + "\n1 / 0", err=["ZeroDivisionError"], status=1)
    py("sys.stderr = sys.__stderr__\n" + harm + "\nsys.exit('why')", err="why\n", status=1)


def test_stream_of_code_stays(py):
    py("import io, sys; b = sys.stdout = io.StringIO(); print('in')")
    py("print('more'); sys.stdout = sys.__stdout__; b.getvalue()", "'in\\nmore\\n'\n")


def test_unfinished_lines_come_out(py):
    py("import sys; sys.stdout.write('o'); sys.stderr.write('e'); None", "o", "e")
    py("print('a', end=''); 1 / 0", "a", err=["ZeroDivisionError"], status=1)
    py("import sys; print('a', end=''); sys.exit('b')", "a", "b\n", 1)


def test_output_into_a_closed_descriptor_comes_out(py):
    py("import os, sys; os.close(1); sys.stdout.write('late'); None", "late")
    py("import os, sys; os.close(2); sys.stderr.write('late'); None", "", "late")


def test_lines_are_out_when_the_process_dies(py):
    py("import os; print('before'); os._exit(6)", "before\n", status=6, state="lost")


def test_order_with_children_and_c(py):
    py("import os, subprocess, ctypes\nc = ctypes.CDLL(None)\ndef p(t): print(t, end='')\n"
       "p('1'); subprocess.run(['printf', '2']); p('3'); os.system('printf 4')\n"
       "p('5'); subprocess.check_call('printf 6', shell=True); p('7'); c.printf(b'%s', b'8')\n"
       "os.waitpid(os.posix_spawn('/usr/bin/printf', ['printf', '9'], {}), 0); p('a')\n"
       "pid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0); p('b')", "123456789ab")
    py("c.printf(b'unflushed'); None", "unflushed")


def test_exec_flushes(py):
    py("import os; print('a', end=''); os.execv('/bin/echo', ['echo', 'b'])", "ab\n", state="lost")


def test_big_output(py):
    got = py("import sys; sys.stdout.write('x' * 50000000); sys.stdout.write('END'); None", any)
    assert len(got["stdout"]) == 50000003 and got["stdout"].endswith("END")


def test_surrogates(py):
    py("print('a\\ud800'); import sys; print('\\udcff', file=sys.stderr); '\\ud800'",
       "a\\ud800\n'\\ud800'\n", "\\udcff\n")


def test_exit_closes_stdin_for_its_turn_only(py):
    py("exit(3)", status=3)
    py("import sys; sys.stdin.closed", "False\n")
    py("input()", err=["EOFError"], status=1)


# ---------------------------------------------------------------- what code may break


def test_builtins_heal(py):
    py("import builtins\nfor n in list(vars(builtins)): delattr(builtins, n) if n != 'delattr' else 0")
    py("import math\nclass C: pass\nprint(len([1]), isinstance(3, int), math.pi > 3)", "1 True True\n")
    py("import builtins; del builtins.print; 5", "5\n")
    py("print('p')", "p\n")
    py("__builtins__ = {}")
    py("print(len('ab'))", "2\n")


def test_names_heal(py):
    py("globals().clear()")
    py("__name__, __spec__, len('a')", "('__main__', None, 1)\n")
    py("import sys; del sys.modules['__main__'], __name__")
    py("import __main__; z = 1; __main__.z", "1\n")
    py("sys.modules.clear()")
    py("1 / 0", err=["ZeroDivisionError"], status=1)


def test_names_of_the_driver_do_not_leak(py):
    py("sorted(globals())",
       "['__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__']\n")


def test_trace_function_is_not_for_the_driver(py):
    py("import sys\nseen = set()\n"
       "def t(frame, event, arg):\n    seen.add(frame.f_code.co_filename); return t\nsys.settrace(t)")
    py("def f(): pass\nf()")
    py("sys.settrace(None); f(); '<turn-2>' in seen", "True\n")
    py("import io, pdb; sys.stdin = io.StringIO('n\\n' * 9); breakpoint()", any)
    py("sys.stdin = sys.__stdin__; sys.settrace(None)")
    py("6", "6\n")


def test_profile_function(py):
    py("import cProfile; p = cProfile.Profile(); p.enable()")
    py("sum(range(10))", "45\n")
    py("p.disable(); 1", "1\n")


def test_fork(py):
    py("import os, sys\n"
       "def child(f):\n    global pid\n    pid = os.fork()\n    if not pid: f()\n    return pid\n")
    py("print('once ', end='')\n"
       "if child(lambda: 0): print(os.waitpid(pid, 0)[1])\nelse: print('child', end='')", "once child0\n")
    py("if child(lambda: sys.exit(7)): print(os.waitpid(pid, 0)[1] >> 8)", "7\n")
    py("if child(lambda: 1 / 0): print(os.waitpid(pid, 0)[1] >> 8)", "1\n", ["ZeroDivisionError"])
    py("import asyncio\nif child(lambda: 0): print(os.waitpid(pid, 0)[1])\nawait asyncio.sleep(0)", "0\n")
    py("print('once')", "once\n")


def test_multiprocessing(py):
    py("def sq(n): return n * n")
    py("import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as p: print(p.map(sq, [2, 3]))",
       "[4, 9]\n")
    py("Spawn = mp.get_context('spawn').Process\n"
       "p = Spawn(target=sq, args=(2,)); p.start(); p.join(15); p.exitcode", "1\n", err=["'sq'"])
    py("import math\np = Spawn(target=math.sqrt, args=(2,)); p.start(); p.join(15); p.exitcode", "0\n")


def test_module_written_twice_in_a_second(py):
    py("import importlib\nopen('m.py', 'w').write('v = 1'); import m; m.v", "1\n")
    py("open('m.py', 'w').write('v = 2'); importlib.reload(m).v", "2\n")


def test_extension_elsewhere_counts_as_c(py):
    """No such module is at hand; the audit event of its import is what counts."""
    py("import sys; sys.audit('import', 'x', '/workspace/x.so', None, None, None); 'ctypes' in sys.modules",
       "False\n")
    py("'ctypes' in sys.modules", "True\n")

# SPDX-License-Identifier: MIT
"""The python driver by itself: the corpus' cases, and what is best provoked without agent and jail."""
import ast
import os
import subprocess
import time

import corpus
import harness
import pytest
from harness import ROOT, Driver
from session import Session, py  # noqa: F401

NEED_THE_REST = {"py-figures", "py-result", "out-huge-python", "se-interpreter-choice", "se-env-mismatch",
                 "se-freeze-clock", "iso-loopback",
                 "py-timeout-loop"}     # looks through /proc, where it is not alone here
ISOLATION = ("iso-fds", "iso-environment", "iso-signal-mask")
CASES = [pytest.param(steps, id=name) for topic in ("python", "output", "sessions", "isolation")
         for name, steps in corpus.cases("python", topic, NEED_THE_REST)
         if topic != "isolation" or name in ISOLATION]


@pytest.mark.parametrize("steps", CASES)
def test_case(steps):
    assert corpus.run("python", steps) == []


# ---------------------------------------------------------------- start, descriptors, protocol


def test_start_imports_next_to_nothing(py):
    """What a .pth file of this machine imports (that of Debian's matplotlib does) is not ours."""
    bare = subprocess.run(["/usr/bin/python3", "-I", "-c", "import sys; print(*sys.modules)"], capture_output=True,
                          text=True, check=True).stdout.split()
    py("x = 1")
    py("x + 1", "2\n")
    py("import sys; print({'ast', 're', 'traceback', 'linecache', 'inspect', 'asyncio', 'ctypes', 'signal',"
       f"'socket', 'types', 'reprlib', 'fcntl', 'functools', 'collections'}} & {{*sys.modules}} - {{*{bare!r}}})", "set()\n")


def test_descriptors(py):
    py("import os\n"
       "[(fd, os.get_inheritable(fd)) for fd in range(3, 300) if os.path.exists(f'/proc/self/fd/{fd}')]",
       "[(200, False), (201, False), (202, False), (203, False)]\n")


def test_low_limit_of_descriptors(monkeypatch):
    monkeypatch.setitem(harness.DRIVERS, "python", ("python.py", lambda text: [
        "/usr/bin/bash", "-c", "ulimit -n 24; exec /usr/bin/python3 -I -c \"$0\"", text]))
    with Driver("python") as driver:
        py = Session(driver)
        py("import os; sorted(map(int, os.listdir('/proc/self/fd')))", "[0, 1, 2, 3, 20, 21, 22, 23]\n")
        py("import subprocess; subprocess.run(['echo', 'a']).returncode", "a\n0\n")


def test_limit_lowered_by_code(py):
    py("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))")
    py("import os; os.close(1)")
    py("print('on')", "on\n")


def test_end_of_control_socket_ends_it(py):
    py.driver.control.shutdown(1)
    assert py.driver.process.wait(10) == 0


def test_closed_control_socket_ends_it(py):
    py("import os; os.close(200)", status=1, state="lost")


def test_closed_copies_end_it(py):
    py("import os; os.closerange(201, 204); os.close(1); print('x')", status=1, state="lost")


def test_code_arrives_in_pieces(py):
    token = b"0123456789abcdef"
    for piece in (b"exe", b"cute ", token, b" 1", b"1\n", b"print", b"('ab')"):
        py.driver.send(piece)
        time.sleep(0.01)
    deadline = time.monotonic() + 10
    while (report := py.driver.report(token.decode())) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert report == (0, "kept", None) and os.read(py.driver.out, 100) == b"ab\n"


def test_large_code(py):
    py("# " + "x" * 3000000 + "\nprint('end')", "end\n")


def test_unfinished_line_of_code_does_not_hide_the_report(py):
    py("import os; os.write(200, b'ok 1'); None")
    py("1", "1\n")


def test_command_line_and_path(py):
    py("import sys; sys.argv, len(str(sys.orig_argv)) < 99, sys.path[0], '__file__' in globals()",
       "([''], True, '', False)\n")


# ---------------------------------------------------------------- source text


@pytest.mark.parametrize("code, out", [
    ("1\r\n2\r\n", "2\n"), ("# -*- coding: latin-1 -*-\n'é'", "'é'\n"), ("'doc'", "'doc'\n"),
    ("1; 2;", "2\n"),
    ("x = 1; 5", "5\n"), ("(yield_ := 3)", "3\n"), ("lambda: 0, 1", any), ("...", "Ellipsis\n"),
    ("\\\n7", "7\n"),
    ("f'''{1}'''", "'1'\n"), ("def f():\n    5", ""), ("\x0c3", "3\n")])
def test_last_expression(py, code, out):
    py(code, out)


def test_future_import_is_of_its_turn(py):
    py("from __future__ import annotations\ndef f(a: nowhere): pass\nf.__annotations__['a']", "'nowhere'\n")
    py("def g(a: nowhere): pass", err=["NameError"], status=1)


def test_syntax_errors_show_their_line(py):
    for code, line in ("return 5", "return 5"), ("x = 1\nbreak", "break"), ("def f():\n  x = = 1", "= = 1"):
        got = py(code, err=["SyntaxError", line], status=1)
        assert "Traceback" not in got["stderr"]


def test_nothing_runs_when_the_last_expression_is_wrong(py):
    py("print('ran')\nf(a=1, a=2)", err=["keyword argument repeated"], status=1)


# ---------------------------------------------------------------- shown values


@pytest.mark.parametrize("text", [
    "[1, [2, (3,), ()], {}, set(), {4: [5], 'a': {6}}]", "(1,)", "('a', b'c', 1.5)",
    "frozenset({1})", "frozenset()",
    "[float('inf'), None, True]", "{'k': (1, 2)}", "bytearray(b'abc')", "range(3)",
    "__import__('collections').Counter('aab')",
    "__import__('collections').deque([1])", "{1: 2}.keys()", "'it\\'s \"'", "1 + 2j",
    "type('S', (str,), {})('sub')"])
def test_shown_as_by_repr(py, text):
    py(f"print(repr({text}))\n{text}", repr(eval(text)) + "\n" + repr(eval(text)) + "\n")


@pytest.mark.parametrize("code, start", [
    ("[0] * 10**7", "[0, 0,"), ("[[0] * 10**4] * 10**4", "[[0, 0,"), ("('ab' * 10**6,) * 99", "('abab"),
    ("{i: 'x' * 50 for i in range(10**5)}", "{0: 'xxx"), ("[[]] * 10**6", "[[], []"),
    ("set(range(10**6))", "{0, 1"), ("'é' * 10**7", "'ééé"), ("b'a' * 10**7", "b'aaa"),
    ("bytearray(10**7)", "<bytearray of 10000000 items>"),
    ("import collections\ncollections.deque(range(10**6))", "<deque of 1000000 items>"),
    ("class R:\n    def __repr__(s): return 'r' * 10**7\nR()", "rrr"),
    ("a = []\nfor _ in range(10**5): a = [a]\na", "[[[[")])
def test_huge_values_are_cut(py, code, start):
    got = py(code, any)
    assert got["stdout"].startswith(start) and len(got["stdout"]) < 110000 and got["seconds"] < 5


def test_huge_text_is_not_copied_to_be_cut(py):
    py("import resource\nsize = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
       "resource.setrlimit(resource.RLIMIT_AS, (size + 60000000,) * 2)")
    assert py("'a' * 40000000", any)["stdout"].endswith("aaa'...\n")


def test_value_that_holds_itself(py):
    py("a = [1]; a.append(a); a", "[1, [...]]\n")
    py("b = {}; b['b'] = b; b", "{'b': {...}}\n")


def test_last_value_is_kept(py):
    py("[1]", "[1]\n")
    py("_.append(2)")
    py("_", "[1, 2]\n")


def test_displayhook_of_code(py):
    py("import sys; sys.displayhook = lambda v: print('<', v)")
    py("1", "< 1\n")
    py("sys.displayhook = 5; 2", "2\n")
    py("del sys.displayhook; 3", "3\n")


# ---------------------------------------------------------------- failures


def test_tracebacks_have_turns_only(py):
    py("def f():\n    return 1 / 0  # here")
    got = py("class R:\n    def __repr__(self): f()\nR()", status=1,
             err=["return 1 / 0  # here", "__repr__(self): f()"])
    assert got["stderr"].count("File ") == 2 == got["stderr"].count('File "<turn-')
    got = py("import asyncio\nasync def g():\n    await asyncio.sleep(0)\n    f()\nawait g()", err=["f()"],
             status=1)
    assert got["stderr"].count("File ") == 3 == got["stderr"].count('File "<turn-')
    got = py("import time; time.sleep(60)", err=["time.sleep(60)", "KeyboardInterrupt"], status=124,
             timeout=0.3)
    assert got["stderr"].count("File ") == 1
    py("import linecache; linecache.clearcache(); f()", err=["return 1 / 0  # here"], status=1)


def test_traceback_module_in_code(py):
    py("import traceback\ntry:\n    1 / 0  # here\nexcept ZeroDivisionError:\n"
       "    print(traceback.format_exc().count('# here'))", "1\n")


def test_modules_in_the_workspace_do_not_disturb(py):
    py("for name in ('types', 'token', 're', 'enum', 'traceback', 'asyncio', 'ctypes', 'signal'):\n"
       "    with open(name + '.py', 'w') as f: f.write('print(\"HERE\"); raise Exception')")
    py("1 / 0  # here", err=["1 / 0  # here\n", "ZeroDivisionError"], status=1)
    py("async def f(): return 7\nawait f()", "7\n")


def test_excepthook_of_code(py):
    py("import sys; sys.excepthook = lambda t, v, b: print('<', t.__name__, b.tb_lineno)")
    py("\n1 / 0", "< ZeroDivisionError 2\n", status=1)
    py("sys.excepthook = lambda: 0")
    py("1 / 0", err=["ZeroDivisionError"], status=1)
    py("sys.excepthook = None; 1 / 0", err=["ZeroDivisionError"], status=1)


def test_odd_exceptions(py):
    py("class E(Exception):\n    def __str__(self): raise SystemExit(3)\nraise E", err=["E"], status=1)
    py("e = ValueError('0')\nfor i in range(3000):\n    n = ValueError(i); n.__context__ = e; e = n\n"
       "raise e", err=["ValueError"], status=1)
    py("import sys\nclass S(SystemExit):\n    code = property(lambda s: 1 / 0)\nraise S", err=["at the end"],
       status=1)
    py("sys.exit(True)", status=1)
    py("sys.exit(-1)", status=255)
    py("sys.exit([1])", err="[1]\n", status=1)
    py("raise KeyboardInterrupt", err=["KeyboardInterrupt"], status=130)
    py("raise GeneratorExit", err=["GeneratorExit"], status=1)
    py("'ok'", "'ok'\n")


def test_exception_that_never_ends_to_tell(py):
    py("class E(Exception):\n    def __str__(self):\n        while True: pass\nkeep = 1\nraise E", err=[],
       status=124, timeout=0.5)
    py("keep", "1\n")


def test_low_recursion_limit(py):
    py("import sys; sys.setrecursionlimit(25)")
    py("def f(): f()\nf()", err=["RecursionError"], status=1)
    py("sys.setrecursionlimit(1000)")
    py("2", "2\n")


def test_failed_turn_lets_go_of_its_values(py):
    py("import gc, weakref; gc.disable()\nclass C: pass\n"
       "def f():\n    global w\n    c = C(); w = weakref.ref(c); 1 / 0")
    py("f()", err=["ZeroDivisionError"], status=1)
    py("w() is None", "True\n")


def test_warning_of_the_same_line_is_shown_again(py):
    for _ in range(2):
        py("import warnings; warnings.warn('careful')", err=["careful", "warnings.warn('careful')"])


def test_source_of_classes(py):
    py("class A:\n    old = 1")
    py("class A:\n    new = 1\n    class B:\n        x = 2\n    def f(self): pass")
    py("import inspect; print(inspect.getsource(A), inspect.getsource(A.B), inspect.getsource(A.f))",
       "class A:\n    new = 1\n    class B:\n        x = 2\n    def f(self): pass\n"
       "     class B:\n        x = 2\n     def f(self): pass\n\n")
    py("inspect.getsource(type('None', (), {}))", err=["OSError"], status=1)


def test_parts_of_the_driver_share_no_names():
    """They run in one namespace: a function of one would take the place of another's."""
    folder, owner, shared = os.path.join(ROOT, "agent", "drivers"), {}, {"posix", "_signal", "HEAP_TYPE", "show"}
    for file in sorted(f for f in os.listdir(folder) if f.startswith("python")):
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            for node in ast.parse(f.read()).body:
                targets = getattr(node, "targets", [node])
                for name in {getattr(t, "name", None) or getattr(t, "id", None) for t in targets} - {None} - shared:
                    assert owner.setdefault(name, file) == file, (name, file, owner[name])

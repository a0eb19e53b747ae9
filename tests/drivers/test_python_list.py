# SPDX-License-Identifier: MIT
"""The python driver's list and show: values without what code would do to show them."""
import os
import select
import time

import pytest
from python_state import Fifo, done, listed, shown
from session import py  # noqa: F401


def texts(session):
    return {entry["name"]: entry["text"] for entry in listed(session)}


def test_list(py):
    assert listed(py) == []
    py("import math as m, os.path\nx = 42; text = 'é' * 300; _private = [1, (2,), {3: {4}}]\ndef f(): pass\nclass A: pass\na = A(); 7", "7\n")
    entries = listed(py)
    assert [entry["name"] for entry in entries] == ["A", "_private", "a", "f", "m", "os", "text", "x"]
    by_name = {entry.pop("name"): entry for entry in entries}
    assert by_name["x"] == {"type": "int", "size": 28, "text": "42"}
    assert by_name["m"]["type"] == "module" and by_name["A"] == {**by_name["A"], "type": "type", "text": "<class '__main__.A'>"}
    assert by_name["_private"]["text"] == "[1, (2,), {3: {4}}]" and by_name["a"]["text"] == "<A object>"
    assert len(by_name["text"]["text"]) == 200 and by_name["text"]["size"] > 300
    assert by_name["f"]["text"].startswith("<function f at 0x")
    assert texts(py)["x"] == "42"


@pytest.mark.parametrize("value, text", [
    ("[1, [2, (3,), ()], {}, set(), {4: [5], 'a': {6}}]", None), ("frozenset({1})", None), ("float('nan')", None), ("b'a\\0'", None),
    ("range(3)", None), ("10**4000", "<int of 13288 bits>"), ("__import__('collections').deque([1, 'a'])", "deque([1, 'a'])"),
    ("__import__('collections').OrderedDict(a=1)", "OrderedDict({'a': 1})"), ("__import__('collections').Counter('aab')", "Counter({'a': 2, 'b': 1})"),
    ("__import__('datetime').date(2026, 1, 2)", None), ("__import__('pathlib').PurePosixPath('a')", None), ("__import__('decimal').Decimal('1.5')", None),
    ("ValueError('a')", None), ("int", "<class 'builtins.int'>"), ("print", None), ("{1: 2}.keys()", "dict_keys([1])"), ("...", None),
    ("[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[[[[[[[...]]]]]]]]]]]]]]]]]]]]]"), ("[1] * 50", None),
    ("'\\ud800'", "'\\ud800'"), ("__import__('array').array('i', [1, 2])", "array([1, 2])")])
def test_text(py, value, text):
    py(f"v = {value}\nw = repr(v)\nr = [0]; r.append(r)")
    assert shown(py, "v")["text"] == (eval(value).__repr__() if text is None else text)
    assert texts(py)["r"] == "[0, ...]"


def test_show(py):
    py("short = [1]; long = 'x' * 50000; many = list(range(10**6)); deep = []\nfor i in range(10**5): deep = [deep]")
    assert shown(py, "short") == {"name": "short", "type": "list", "size": 64, "text": "[1]", "truncated": False}
    for name in "long", "many":
        got = shown(py, name)
        assert got["truncated"] and len(got["text"]) == 20000 and got["text"].endswith("...")
    assert "..." in shown(py, "deep")["text"]
    for name in "none", "__name__", "__builtins__", "short.x", "1 + 1", "":
        assert shown(py, name) == {"error": "there is no such variable"}


def test_many_and_large(py):
    py("for i in range(700): globals()[f'n{i:03}'] = [i]\ndel i")
    entries = listed(py)
    assert len(entries) == 501 and entries[-1] == {"more": 200} and entries[499]["name"] == "n499"
    py("for i in range(700): globals()[f'n{i:03}'] = '\\x01\\u4e00' * 5000")
    answer = Fifo(py, "answer").read()
    assert done(py, py.driver.command("list", answer.path)) == 0
    assert len(answer.end()) < 256 * 1024
    assert listed(py)[-1]["more"] > 200


HARM = """
import sys, os
log = []
class Loud:
    def __getattribute__(self, name):
        log.append(name); print('LOUD'); open('written', 'w').write('x')
        return object.__getattribute__(self, name)
    def __repr__(self): log.append('repr'); print('LOUD'); os.kill(os.getppid(), 9); return 'mine'
    __str__ = __len__ = __sizeof__ = __hash__ = __eq__ = __bool__ = __iter__ = __dir__ = __repr__
class Meta(type):
    def __repr__(cls): log.append('meta'); return 'mine'
    __instancecheck__ = __subclasscheck__ = __getattribute__ = lambda *a: log.append('meta')
    name = property(__repr__)
class Made(metaclass=Meta): pass
class Text(str):
    def __repr__(self): log.append('text'); return 'mine'
    __len__ = __str__ = __getitem__ = __repr__
class Row(list):
    def __iter__(self): log.append('row')
    __repr__ = __len__ = __iter__
class Fake:
    def __repr__(self): log.append('fake'); return 'mine'
Fake.__module__ = 'datetime'
a, b, c, d, e, f = Loud(), Made, Text('t'), Row([1]), Fake(), [Loud(), {'k': Made()}]
import collections, functools, datetime
g = collections.deque([Loud()]); h = functools.partial(print, Loud()); i = collections.defaultdict(Loud, {1: Loud()}); j = ValueError(Loud())
def k(): pass
k.__qualname__ = Text('q'); log.clear()
"""


def test_nothing_of_code_runs(py):
    """Nor can what a library calls do harm: partial and ValueError show what is in them."""
    py(HARM, any)
    before = py("print(log, sorted(os.listdir('.')))", any)["stdout"]
    got = texts(py)
    assert got["a"] == "<Loud object>" and got["c"] == "<Text object>" and got["d"] == "<Row object>" and got["e"] == "<Fake object>"
    assert got["f"] == "[<Loud object>, {'k': <Made object>}]" and got["g"] == "deque([<Loud object>])" and got["b"] == "<class '__main__.Made'>"
    assert got["i"] == "defaultdict({1: <Loud object>})" and "mine" not in str({n: t for n, t in got.items() if n in "abcdefgi"})
    for name in "abcdefghijk":
        shown(py, name)
    py("print(log, sorted(os.listdir('.')))", before.replace("[", "[", 1))
    assert not os.path.exists(os.path.join(py.driver.workspace, "written"))


@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(60)", "import os; os._exit(1)", "import os; os.kill(os.getpid(), 9)",
                                  "import signal; signal.setitimer = print\n        while True: pass", "raise SystemExit", "print('LOUD')",
                                  "import os; os.closerange(0, 300)\n        while True: pass", "return 'x' * 10**9", "return 5",
                                  "open('written', 'w')", "import os; os.remove('keep')", "import subprocess; subprocess.run(['touch', 'written'])",
                                  "import os; os.fork()"])
def test_representation_that_does_harm(py, body):
    """One that a library comes to call: what is shown before it stays, and the session does not notice."""
    py(f"import functools\nopen('keep', 'w').close()\nx = 1\nclass Bad:\n    def __repr__(self):\n        {body}\nxx = functools.partial(print, Bad())\ny = 2")
    begun = time.monotonic()
    entries = listed(py)
    assert time.monotonic() - begun < 4
    assert {entry["name"]: entry["text"] for entry in entries}["x"] == "1"
    assert set(shown(py, "xx")) in ({"error"}, {"name", "type", "size", "text", "truncated"})
    assert shown(py, "y")["text"] == "2"
    py("import os; sorted(os.listdir('.')), x", "(['keep'], 1)\n".replace("['keep']", str(sorted(os.listdir(py.driver.workspace)))))
    assert "written" not in os.listdir(py.driver.workspace) and "keep" in os.listdir(py.driver.workspace)


def test_numpy(py):
    if py.driver.turn("import numpy")["exit_code"]:
        pytest.skip("numpy is not installed for /usr/bin/python3")
    py("a = numpy.zeros((1000, 1000)); s = numpy.float64(1.5); o = numpy.array([[1, 2]])")
    by_name = {entry["name"]: entry for entry in listed(py)}
    assert by_name["a"]["size"] == 8000000 and by_name["a"]["type"] == "ndarray" and "..." in by_name["a"]["text"]
    assert by_name["s"]["text"] in ("1.5", "np.float64(1.5)") and by_name["o"]["text"] == "array([[1, 2]])"


def test_children_of_code_are_not_touched(py):
    """A copy is no child that code could see, nor does the end of one of code's get lost."""
    py("import os, signal\nends = []\nsignal.signal(signal.SIGCHLD, lambda *_: ends.append(1)); None")
    for _ in range(3):
        listed(py)
    py("ends", "[]\n")
    py("try: os.wait()\nexcept ChildProcessError: print('none')", "none\n")
    py("import subprocess; p = subprocess.Popen(['sleep', '0.05']); None")
    deadline = time.monotonic() + 10
    while py("len(ends)", any)["stdout"] == "0\n" and time.monotonic() < deadline:
        listed(py)
    py("0 < len(ends) < 3, p.wait()", "(True, 0)\n")
    py("signal.signal(signal.SIGCHLD, signal.SIG_IGN); None")
    assert "ends" in texts(py)


def test_process_is_as_before(py):
    py("import os, signal, random, sys, gc, threading\nlock = threading.Lock(); lock.acquire(); random.seed(1); a = random.random()\nrandom.seed(1)\n"
       "def look(): return sorted(os.listdir('/proc/self/fd')), signal.getsignal(2), signal.pthread_sigmask(0, ()), sys.getrecursionlimit(), gc.isenabled(), "
       "sorted(sys.modules), sorted(globals())\nbefore = None; before = look()")
    listed(py)
    shown(py, "a")
    py("[(x, y) for x, y in zip(before, look()) if x != y], random.random() == a, lock.locked()", "([], True, True)\n")


def test_with_threads(py):
    """A copy may find a lock held for ever: nobody waits for it beyond its time."""
    py("import threading, time, io\nstop = threading.Event()\ndef work():\n    while not stop.is_set(): str(list(range(100)))\n"
       "threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]\nfor t in threads: t.start()\nx = 5")
    for _ in range(5):
        assert shown(py, "x")["text"] == "5"
    py("stop.set(); x", "5\n")


def test_nothing_is_said_and_next_turn_runs(py):
    py("import sys; sys.stdout.write('out'); x = 1; print('unfinished', end='')", "outunfinished")
    listed(py)
    py("x", "1\n")
    assert not select.select([py.driver.out, py.driver.err], [], [], 0.1)[0]

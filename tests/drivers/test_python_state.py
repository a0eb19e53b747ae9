# SPDX-License-Identifier: MIT
"""The python driver's save and restore: what comes back, and what is told of the rest."""
import os
import time

import pytest
from harness import DRIVERS, Driver
from python_state import again, restore, save, skipped
from session import Session, py  # noqa: F401


@pytest.fixture(params=["dill", "no dill"])
def either(request, py):
    """A session that has dill, and one that cannot import it."""
    if request.param == "no dill":
        py("import sys; sys.modules['dill'] = None; del sys")
    return py


@pytest.fixture
def bare(py):
    """A session without dill."""
    py("import sys; sys.modules['dill'] = None; del sys")
    return py


def round_trip(session, code, check, out="True\n", expect=()):
    """Runs code, saves, restores into a new session and runs check there."""
    session(code, any)
    with again(session, expect) as new:
        session(check, out)             # the old one has not changed
        return Session(new)(check, out)


# ---------------------------------------------------------------- values


def test_value(either):
    round_trip(either, "x = 42", "x", "42\n")


@pytest.mark.parametrize("code, check", [
    ("a = [1]; b = a; c = {'k': a}", "a is b and c['k'] is a and a == [1]"),
    ("a = [1]; a.append(a); d = {}; d[0] = (d, a)", "a[1] is a and d[0][0] is d and d[0][1] is a"),
    ("s = {1, 'a', (2, frozenset({3}))}; b = bytearray(b'x'); c = b", "len(s) == 3 and b is c"),
    ("x, y, z = 10**5000, -1.5e300, float('inf') + 1j; t = 'a\\ud800\\0é'; u = b'\\0\\xff'",
     "x == 10**5000 and y == -1.5e300 and z.imag == 1 and t == 'a\\ud800\\0é' and u == b'\\0\\xff'"),
    ("import collections as c\nd = c.defaultdict(list, {1: [2]}); o = c.OrderedDict(a=1); n = c.Counter('aab'); q = c.deque([1], 3)",
     "d[5] == [] and d[1] == [2] and o == {'a': 1} and n['a'] == 2 and q.maxlen == 3"),
    ("import collections\nd = collections.deque(); d.append(d); o = collections.OrderedDict(); o['o'] = o", "d[0] is d and o['o'] is o"),
    ("import datetime, decimal, fractions, pathlib, re, uuid\nv = [datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), decimal.Decimal('1.1'),"
     " fractions.Fraction(1, 3), pathlib.Path('a/b'), re.compile('a+', re.I), uuid.UUID(int=5), range(3), slice(1), ..., NotImplemented]; w = repr(v)",
     "repr(v) == w"),
    ("e = ValueError('a', 1); e.note = 'n'; g = KeyError", "e.args == ('a', 1) and e.note == 'n' and g is KeyError"),
    ("import io\nf = io.StringIO('abc'); f.read(1); b = io.BytesIO(b'abc'); b.read(2); None", "(f.tell(), b.tell()) == (1, 2)"),
    ("import itertools\ni = itertools.count(5); next(i); j = iter([1, 2, 3]); next(j)", "i.__reduce__()[1] == (6,) and j.__reduce__()[1] == ([1, 2, 3],)"),
    ("import os.path as p, json, xml.dom.minidom as m\nimport email.mime.text", "p.join('a', 'b') == 'a/b' and json.dumps(1) == '1' and m.Node and callable(email.mime.text.MIMEText)"),
    ("import functools, operator\nadd = functools.partial(operator.add, 1); f = [1].append; p = print", "add(2) == 3 and f.__self__ == [1] and p is print"),
    ("import logging, types\nl = logging.getLogger('x'); n = types.SimpleNamespace(a=[1], l=None); n.l = n.a", "l is logging.getLogger('x') and n.a is n.l"),
    ("globals()['no identifier'] = 3; _private = 4; x__ = 5", "globals()['no identifier'] == 3 and _private == 4 and x__ == 5"),
    ("from typing import *\nT = TypeVar('T'); L = list[int]; O = Optional[Dict[str, T]]", "L == list[int] and O == Optional[Dict[str, T]]"),
])
def test_plain_data(bare, code, check):
    round_trip(bare, code, check)


def test_order_of_names(py):
    round_trip(py, "import math\nb = 1\na = [2]\ndef f(): pass\nz = f", "[*globals()][-5:]", "['math', 'b', 'a', 'f', 'z']\n")


def test_nested_deeply(py):
    py("a = []\nfor i in range(4000): a = [a]\nclass N:\n    def __init__(self, n): self.next = n\nn = None\nfor i in range(3000): n = N(n)\n"
       "b = []\nfor i in range(100000): b = [b]")
    data, report = save(py)
    assert skipped(report) == {"b": "nested too deeply"}
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("depth = 0\nwhile n: n = n.next; depth += 1\nwhile a: a = a[0]; depth += 1\ndepth", "7000\n")


def test_ten_thousand_variables(py):
    py("for i in range(10000): globals()[f'v{i}'] = [i, str(i)]\nimport socket\nfor i in range(300): globals()[f's{i}'] = [v5, socket.socket()]")
    begun = time.monotonic()
    data, report = save(py)
    assert len(report["skipped"]) == 100 and report["skipped_more"] == 200 and report["saved"] == 10002
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("sum(v[0] for k, v in [*globals().items()] if k[0] == 'v'), v9999", "(49995000, [9999, '9999'])\n")
    assert time.monotonic() - begun < 15


def test_hundred_megabytes(py, tmp_path):
    """The copy needs next to nothing besides: the peak of its own memory is told by a variable's pickling."""
    py("big = b'x' * (100 << 20); small = [big, 'é' * 1000000]\n"
       "class Peak:\n    def __reduce__(self):\n        import resource\n"
       "        status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
       f"        open({str(tmp_path / 'peak')!r}, 'w').write(status['RssAnon'])\n        return int, ()\n"
       "p = {'last': Peak()}")
    data, report = save(py)
    assert len(data) > 100 << 20 and report["skipped"] == []
    anonymous = int((tmp_path / "peak").read_text().split()[0]) // 1024
    assert anonymous < 100 + 40
    with Driver("python") as driver:
        new = Session(driver)
        restore(new, data)
        new("len(big), small[0] is big, small[1][-1]", "(104857600, True, 'é')\n")


def test_memory_of_the_copy_is_bounded(py):
    """It may use 30 MB more than it had, and has 100 MB to save."""
    py("big = [b'x' * (50 << 20), b'y' * (50 << 20), 'e' * (5 << 20)]\nclass Less:\n    def __reduce__(self):\n        import resource\n"
       "        size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
       "        resource.setrlimit(resource.RLIMIT_AS, (size + (30 << 20),) * 2)\n        return int, ()\n"
       "small = Less()")                # is no plain value, and comes first
    data, report = save(py)
    assert report["skipped"] == [] and report["saved"] == 3


def test_numpy(py):
    if py.driver.turn("import numpy")["exit_code"]:
        pytest.skip("numpy is not installed for /usr/bin/python3")
    round_trip(py, "a = numpy.arange(10.0).reshape(2, 5); b = a.T; numpy.random.seed(1); numpy.random.rand()\nobjects = numpy.array([{}, a], dtype=object)",
               "a.sum() == 45 and b.shape == (5, 2) and objects[1] is a and abs(numpy.random.rand() - 0.7203244934421581) < 1e-9")


# ---------------------------------------------------------------- functions and classes


@pytest.mark.parametrize("code, check", [
    ("d = []\ndef f(a, b=d, *, c={1: d}): 'doc'; return a, b, c\nf.mark = d", "f(1)[1] is d and f(1)[2][1] is d and f.mark is d and f.__doc__ == 'doc'"),
    ("def f(): return x + g()\ndef g(): return 1\nx = 1\nh = f", "f() == 2 and h is f"),
    ("def outer(n):\n    def add(k):\n        nonlocal n\n        n += k\n        return n\n    return add, lambda: n\nadd, get = outer(5); add(1)", "add(0) == get() == 6 and add(2) == get()"),
    ("f = lambda a=1: a + 1; fs = [lambda: 1, lambda: 2]", "f() == 2 and [g() for g in fs] == [1, 2]"),
    ("def f(): return 1\nold = f\ndef f(): return 2", "old() == 1 and f() == 2"),
    ("import functools\ndef twice(f):\n    @functools.wraps(f)\n    def inner(*a): return f(*a) * 2\n    return inner\n@twice\ndef f(x): 'd'; return x\n",
     "f(4) == 8 and f.__doc__ == 'd' and f.__wrapped__(4) == 4"),
    ("import functools\n@functools.lru_cache(5)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(9)", "f(10) == 55 and f.cache_parameters()['maxsize'] == 5"),
    ("import contextlib\n@contextlib.contextmanager\ndef c():\n    yield 7", "c().__enter__() == 7"),
    ("def g():\n    yield 1\nasync def a(): return 2\nasync def ag():\n    yield 3", "list(g()) == [1] and await a() == 2 and [x async for x in ag()] == [3]"),
    ("def f(a: int, b: 'B' = 1) -> str: pass", "f.__annotations__ == {'a': int, 'b': 'B', 'return': str}"),
    ("def rec(n): return n and rec(n - 1)\ndef odd():\n    def self(n): return n and self(n - 1)\n    return self\nloop = odd()", "rec(5) == 0 and loop(5) == 0"),
    ("if True:\n    def f(): return 1\ntry:\n    class C: pass\nfinally:\n    c = C()", "f() == 1 and type(c) is C"),
    ("from __future__ import annotations\ndef f(a: nowhere): pass\nclass C:\n    a: nowhere", "f.__annotations__ == {'a': 'nowhere'} and C.__annotations__ == {'a': 'nowhere'}"),
])
def test_functions(bare, code, check):
    round_trip(bare, code, check)


@pytest.mark.parametrize("code, check", [
    ("class A:\n    n = 1\n    def f(self): return self.v + self.n\na = A(); a.v = [a]; A.n = [5]", "a.f() == [a, 5] and type(a) is A"),
    ("class A:\n    def who(self): return 'A'\nclass B(A):\n    def who(self): return 'B' + super().who()\nb = B()\nclass A: pass", "b.who() == 'BA' and not isinstance(b, A)"),
    ("class A: pass\na = A()\nclass A(A): pass\nb = A()", "type(b) is A and type(a) is A.__base__"),
    ("import dataclasses as d\n@d.dataclass(order=True)\nclass P:\n    x: int\n    y: list = d.field(default_factory=list)\np = P(1); q = P(2, p.y)", "p < q and p.y is q.y and P(3).y == [] and repr(q) == 'P(x=2, y=[])'"),
    ("import dataclasses as d\n@d.dataclass(frozen=True, slots=True)\nclass P:\n    x: int\np = {P(1): 2}", "p[P(1)] == 2"),
    ("import enum\nclass E(enum.Enum):\n    A = 1\n    B = 'b'\nclass F(enum.Flag):\n    X = enum.auto()\n    Y = enum.auto()\ne = [E.A, F.X | F.Y]", "e[0] is E.A and e[1] == F.X | F.Y"),
    ("from enum import Enum\nE = Enum('E', 'A B'); e = E.B", "e is E.B"),
    ("from collections import namedtuple\nfrom typing import NamedTuple\nP = namedtuple('P', 'x y'); p = P(1, 2)\nclass N(NamedTuple):\n    a: int\n    b: str = 'q'\nn = N(1)",
     "p.y == 2 and type(p) is P and n.b == 'q' and type(n) is N"),
    ("class S:\n    __slots__ = 'a', 'b'\ns = S(); s.a = [s]", "s.a[0] is s and not hasattr(s, 'b')"),
    ("import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nclass B(A):\n    def f(self): return 3\nb = B()", "b.f() == 3 and isinstance(b, A) and A.__abstractmethods__ == {'f'}"),
    ("class M(type):\n    def __new__(m, n, b, d): return super().__new__(m, n, b, {**d, 'made': True})\nclass A(metaclass=M): pass\na = A()", "A.made and type(A) is M and type(a) is A"),
    ("class A:\n    class B:\n        class C: v = 1\n    @staticmethod\n    def s(): return 1\n    @classmethod\n    def c(cls): return cls\n    @property\n    def p(self): return 2\n"
     "c = A.B.C(); s = A.s; m = A().c; k = A.c", "type(c) is A.B.C and s is A.s and m() is A and k() is A and A().p == 2"),
    ("def make(n):\n    class Local:\n        size = n\n        def get(self): return n, __class__, self\n        p = property(lambda self: n)\n    return Local\nL = make(3); x = L()",
     "x.get() == (3, L, x) and L.size == x.p == 3"),
    ("T = type('T', (list,), {'z': 1}); t = T([1]); t.a = t", "t.z == 1 and t.a is t and t == [1] and type(t) is T"),
    ("plugins = {}\ndef register(cls):\n    plugins[cls.__name__] = cls; return cls\n@register\nclass A: pass\n@register\nclass B(A): pass\nb = B()", "plugins == {'A': A, 'B': B} and type(b) is B"),
    ("class A:\n    all = []\n    def __init__(self): A.all.append(self)\na = A(); b = A()", "A.all == [a, b] and a is not b"),
    ("import threading\nclass A:\n    lock = threading.Lock()\n    def f(self):\n        with self.lock: return 1\na = A()", "a.f() == 1"),
    ("class A: pass\ndef patched(self): return 4\nA.f = patched\na = A()", "a.f() == 4 and A.f is patched"),
    ("limit = 3\nscale = {'a': limit}\nclass A:\n    x = limit * 2\n    y = [n * limit for n in range(2)]\n    z = scale['a']", "(A.x, A.y, A.z) == (6, [0, 3], 3)"),
    ("class A: pass\na = A()\nkinds = [A]\nclass B:\n    known = kinds\n    own = a\nkinds.append(B)", "kinds == [A, B] and B.known is kinds and B.own is a"),
    ("class E(Exception):\n    def __init__(self, a, b): super().__init__(a, b); self.b = b\ne = E(1, 2)", "e.b == 2 and type(e) is E and e.args == (1, 2)"),
    ("class L(list):\n    pass\nclass D(dict):\n    def __missing__(self, k): return k\nl = L([1]); l.append(l); d = D(a=1); d['d'] = d", "l[1] is l and d['d'] is d and d['z'] == 'z'"),
    ("import functools\nclass A:\n    @functools.cached_property\n    def c(self): return [1]\n    @functools.lru_cache\n    def m(self): return 2\na = A(); c = a.c", "a.c is c and a.m() == 2"),
    ("from typing import Generic, TypeVar, Protocol\nT = TypeVar('T')\nclass Box(Generic[T]):\n    def __init__(self, v): self.v = v\nclass P(Protocol):\n    v: int\nb = Box[int](3)", "b.v == 3 and Box[int].__args__ == (int,)"),
    ("class G:\n    def __getstate__(self): return {'kept': 1}\n    def __setstate__(self, s): self.got = s\ng = G()\nclass N:\n    def __new__(cls, v): n = object.__new__(cls); n.v = v; return n\n"
     "    def __getnewargs__(self): return self.v,\nn = N([1])", "(g.__dict__ in ({}, {'got': {'kept': 1}})) and n.v == [1]"),
])
def test_classes(bare, code, check):
    round_trip(bare, code, check)


def test_code_that_no_turn_has(py):
    code = "exec('def f(a=[1]): return a, x'); x = 3\nclass D: pass\nviews = {1: 2}.keys()\nd = D(); d.f = f"
    check = "f() == ([1], 3) and 1 in views and d.f is f"
    with Driver("python") as driver:
        other = Session(driver)
        other("import sys; sys.modules['dill'] = None; del sys\n" + code)
        assert skipped(save(other)[1]) == {"f": "a function without source", "d": "a function without source",
                                           "views": "TypeError: cannot pickle 'dict_keys' object"}
    if py.driver.turn("import dill")["exit_code"]:
        pytest.skip("dill is not installed for /usr/bin/python3")
    py("del dill")
    round_trip(py, code, check)


def test_source_of_what_came_back(py):
    py("0", "0\n")
    py("def f():\n    return 1 / 0  # here\nclass A:\n    x = 1\n")
    py("def g(): pass")
    with again(py) as driver:
        new = Session(driver)
        new("f()", status=1, err=["return 1 / 0  # here", '<turn-2>", line 2', '<turn-4>'])
        new("import inspect; print(inspect.getsource(f), inspect.getsource(A))",
            "def f():\n    return 1 / 0  # here\n class A:\n    x = 1\n\n")
        with again(new) as third:       # and once more
            Session(third)("f()", status=1, err=["return 1 / 0  # here", '<turn-2>'])


def test_names_of_turns_do_not_collide(py):
    py("def f():\n    1 / 0  # old")
    data, _ = save(py)
    with Driver("python") as driver:
        new = Session(driver)
        new("def g():\n    1 / 0  # own\nx = f = 1")
        assert restore(new, data)["restored"] == 1
        new("f()", status=1, err=["1 / 0  # old", '<turn-2>"', '<turn-3>"'])
        new("g()", status=1, err=["1 / 0  # own", '<turn-1>"', '<turn-4>"'])
        new("x", "1\n")


# ---------------------------------------------------------------- the process


def test_process(either):
    either("import os, sys, random\nos.mkdir('d'); os.chdir('d'); sys.path.insert(0, '/workspace/lib'); sys.path.append('/opt/x')\n"
           "os.environ['NEW'] = 'é'; os.environ['LANG'] = 'C'; del os.environ['TERM']; random.seed(3); random.gauss(0, 1); None")
    data, report = save(either)
    either("after = random.gauss(0, 1), random.random(), os.getcwd()")
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("os.getcwd().endswith('/d'), sys.path[:2], sys.path[-1], os.environ['NEW'], os.environ['LANG'], os.environ.get('TERM')",
            "(True, ['/workspace/lib', ''], '/opt/x', 'é', 'C', None)\n")
        got = new("(random.gauss(0, 1), random.random(), os.getcwd())", any)
        either("after", got["stdout"])


def test_directory_that_is_gone(py):
    py("import os; os.mkdir('d'); os.chdir('d'); x = 1")
    data, _ = save(py)
    py("os.rmdir('../d')")
    assert save(py)[1]["ok"]            # there is none to save
    with Driver("python") as driver:
        new = Session(driver)
        assert [*skipped(restore(new, data))] == ["(cwd)"]
        new("x", "1\n")


def test_versions(py):
    py("open('mine.py', 'w').write('__version__ = \"7.1\"\\nclass A: pass'); import mine; a = [mine.A()]")
    _, report = save(py)
    assert report["libraries"] == {"mine": "7.1"} and report["version"] in py("import sys; sys.version", any)["stdout"]


# ---------------------------------------------------------------- what cannot be saved or restored


def test_what_is_no_data(either):
    either("import asyncio, io, multiprocessing, os, socket, subprocess, sys, threading\n"
           "x = [1]; sock = socket.socket(); file = open('f', 'w'); lock = threading.Lock(); rlock = threading.RLock()\n"
           "thread = threading.Thread(target=print); gen = (i for i in x); popen = subprocess.Popen(['true']); event = threading.Event()\n"
           "async def f(): pass\ncoro = f(); coro.close()\nclass Client:\n    def __init__(self): self.sock, self.x = sock, x\nclient = Client(); nested = {'a': [client]}\n"
           "process = multiprocessing.Process(target=print); frame = sys._getframe(); holder = lambda: 0; holder.f = file; y = x")
    data, report = save(either)
    assert skipped(report) == {
        "sock": "a socket", "file": "an open file", "lock": "a lock", "rlock": "a lock", "thread": "a thread", "gen": "a generator",
        "popen": "a process", "event": "an event of threads", "coro": "a coroutine", "client": "holds a socket", "nested": "holds a socket",
        "process": "a process", "frame": "a frame", "holder": "holds an open file"}
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("x is y, Client, 'client' in globals()", "([1], <class '__main__.Client'>, False)\n".replace("[1]", "True"))
    either("popen.wait(), sock.fileno() > 0, file.closed", "(0, True, False)\n")


def test_large_thing_that_fails_at_its_end(py):
    """Was streamed in part already; what it shares with others is saved with them."""
    py("import socket; shared = [0]; bad = [shared, b'x' * 3000000, 'y' * 1000000, [str(i) for i in range(100000)], socket.socket()]\n"
       "also = [bad]; good = [shared, bad[3]]")
    data, report = save(py)
    assert skipped(report) == {"bad": "holds a socket", "also": "holds a socket"}
    with Driver("python") as driver:
        new = Session(driver)
        assert restore(new, data)["skipped"] == []
        new("good[0] is shared, good[1][-1], len(good[1])", "(True, '99999', 100000)\n")


@pytest.mark.parametrize("body, why", [
    ("def __reduce__(self): raise ValueError('no')", "ValueError: no"),
    ("def __getstate__(self): raise SystemExit(3)", "SystemExit: 3"),
    ("def __reduce__(self): raise KeyboardInterrupt", "KeyboardInterrupt: "),
    ("def __reduce__(self): return 5", "TypeError: "),
    ("def __reduce_ex__(self, p): return (1, 2)", None),
    ("def __reduce__(self): return 'nowhere'", "nowhere is defined no more"),
    ("__class__ = property(lambda self: 1 / 0)", None),
    ("def __reduce__(self): return (Bad, (self,))", "nested too deeply"),
    ("def __getstate__(self): print('PRINTED'); import sys; sys.stderr.write('PRINTED'); raise Exception('a\\nb')", "Exception: a")])
def test_broken_pickling(bare, body, why):
    """Named, and nothing else is lost; nothing is printed."""
    bare(f"x = [1]; class_ = None\nclass Bad:\n    {body}\nbad = [x, Bad()]; y = x")
    data, report = save(bare)
    if why is not None:
        assert skipped(report)["bad"].startswith(why) and [*skipped(report)] == ["bad"]
    with Driver("python") as driver:
        new = Session(driver)
        restore(new, data)
        new("x is y, x", "(True, [1])\n")
    bare("1", "1\n")


@pytest.mark.parametrize("body", [
    "def __setstate__(self, s): raise ValueError('no')", "def __setstate__(self, s): raise SystemExit", "def __setstate__(self, s): s.x.y",
    "def __reduce__(self): return int, ('no number',)", "def __reduce__(self): return exec, ('raise KeyboardInterrupt',)",
    "def __reduce__(self): return (lambda: 1 / 0), ()", "def __reduce__(self): return Bad, (), None, iter([1])",
    "def __reduce__(self): return Bad, (), None, None, iter([(1, 2)])", "def __setstate__(self, s): print('PRINTED'); raise Exception",
    "def __hash__(self): raise TypeError('hash')"])
def test_broken_unpickling(bare, body):
    bare(f"x = [1]; n = 5\nclass Bad:\n    {body}\n    def __init__(self): self.a = 1\n"
         "bad = [x, Bad()]; worse = {'a': bad, 'x': x}; z = [x]")
    if "__hash__" in body:
        bare("Bad.__hash__ = object.__hash__; bad.append({bad[1]}); del Bad.__hash__")
    data, report = save(bare)
    assert report["skipped"] == []
    with Driver("python") as driver:
        new = Session(driver)
        back = restore(new, data)
        assert {*skipped(back)} == {"bad", "worse"} and back["ok"], back
        new("z[0] is x, n, 'bad' in globals(), 'worse' in globals()", "(True, 5, False, False)\n")


def test_module_that_is_missing(py):
    py("open('mine.py', 'w').write('class A: pass\\ndef f(): pass'); import mine as m\nx = [1]\na = [x, m.A()]; f = m.f\nclass B(m.A): pass\nb = B(); c = [b]; y = x")
    data, _ = save(py)
    py("import os; os.remove('mine.py')")
    with Driver("python") as driver:
        new = Session(driver)
        back = restore(new, data)
        assert {*skipped(back)} == {"m", "a", "f", "B", "b", "c"} and back["restored"] == 2
        assert "No module named 'mine'" in skipped(back)["m"]
        new("x is y", "True\n")
        new("open('mine.py', 'w').write('class A:\\n    __slots__ = ()'); None")
        back = restore(new, data)       # changed: no place for attributes, no f
        assert {*skipped(back)} == {"f"}, back


def test_own_names_stay_when_one_cannot_be_restored(py):
    py("open('mine.py', 'w').write('x = 1'); import mine as m; x = 5")
    data, _ = save(py)
    py("import os; os.remove('mine.py')")
    with Driver("python") as driver:
        new = Session(driver)
        new("m = 'own'; x = 6; y = 7")
        restore(new, data)
        new("m, x, y", "('own', 5, 7)\n")


PYTHONS = [path for path in (f"/usr/bin/python3.{n}" for n in range(8, 20)) if os.path.exists(path)]


@pytest.mark.parametrize("python", sorted({*PYTHONS, *filter(None, os.environ.get("TEST_PYTHONS", "").split(":"))}))
def test_another_python(py, python, monkeypatch):
    py("import collections, functools\nx = {'a': [1, 2.5, 'é', b'b']}\ndef f(n, k=[1]):\n    def inner(): return n, k\n    return inner\ng = f(2)\nh = lambda: g()\n"
       "class A:\n    def m(self): return super().__repr__() and self.v\na = A(); a.v = x\nq = collections.deque([1])\n@functools.lru_cache\ndef c(): return 3")
    data, report = save(py)
    monkeypatch.setitem(DRIVERS, "python", ("python.py", lambda text: [python, "-I", "-c", text]))
    with Driver("python") as driver:
        new = Session(driver)
        back = restore(new, data)
        assert back["skipped"] == [] and back["saved_version"] == report["version"]
        new("h(), a.m() is x, q[0], c(), x['a'][2]", "((2, [1]), True, 1, 3, 'é')\n")
        data, _ = save(new)             # and back
    assert restore(py, data)["skipped"] == []
    py("h(), a.m() is x, q[0], c()", "((2, [1]), True, 1, 3)\n")

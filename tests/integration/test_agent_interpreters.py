# SPDX-License-Identifier: MIT
"""sandbox-agent with the real drivers: what only the two together can get right."""
import os
import shutil

import pytest

from agentlib import INTERRUPT, Agent
from test_agent import alive, pids, wait_gone

KINDS = ("python", "bash", "node")
PROGRAMS = {"python": "python3", "bash": "bash", "node": "node"}
PATH = ":/usr/bin:/bin"


@pytest.fixture(scope="module")
def shared():
    """One agent for many turns, as in a session."""
    with Agent(fake=(), path=PATH) as a:
        yield a


@pytest.fixture(params=KINDS)
def kind(request):
    if not shutil.which(PROGRAMS[request.param], path="/usr/bin:/bin"):
        pytest.skip(f"no {request.param} here")
    return request.param


def code(kind, **of):
    return of[kind]


def background(kind, command):
    """Code that runs a shell command in the background and notes its pid."""
    return {"python": f"import subprocess; p = subprocess.Popen(['/bin/sh', '-c', {command!r}]);"
                      "_ = open('pids', 'a').write(f'{p.pid}\\n')\n",
            "bash": f"/bin/sh -c {command!r} & echo $! >>pids\n",
            "node": "fs = require('fs'); p = require('child_process')"
                    f".spawn('/bin/sh', ['-c', {command!r}], {{stdio: 'inherit'}});"
                    "fs.appendFileSync('pids', `${p.pid}\\n`); void 0\n"}[kind]


def test_state_output_status(shared, kind):
    t = shared.turn(code(kind, python="x = 41\nimport sys\nprint('out')\nprint('err', file=sys.stderr)",
                         bash="x=41; echo out; echo err >&2",
                         node="let x = 41; console.log('out'); console.error('err')"), kind)
    assert (t.out, t.err, t.exit_code, t.state) == (b"out\n", b"err\n", 0, "kept")
    t = shared.turn(code(kind, python="print(x + 1); sys.exit(7)", bash="echo $((x + 1)); exit 7",
                         node="console.log(x + 1); process.exit(7)"), kind)
    assert (t.out, t.exit_code, t.state) == (b"42\n", 7, "kept")
    t = shared.turn(code(kind, python="print(x)", bash="echo $x", node="console.log(x)"), kind)
    assert (t.out, t.state, t.restarted) == (b"41\n", "kept", False)


def test_long_code(shared, kind):
    comment = {"python": "#", "bash": "#", "node": "//"}[kind]
    text = (comment + "x" * 99 + "\n") * 5000
    t = shared.turn(text + code(kind, python="print('end')", bash="echo end", node="console.log('end')"), kind)
    assert (t.out, t.exit_code) == (b"end\n", 0)


def test_flood(shared, kind):
    t = shared.turn(code(kind, python="import sys\nfor _ in range(300): sys.stdout.write('z' * 100000)\nprint('END')",
                         bash="head -c 30000000 /dev/zero | tr '\\0' z; echo END",
                         node="for (let i = 0; i < 300; i++) process.stdout.write('z'.repeat(100000))\n"
                              "console.log('END')"), kind)
    assert t.stdout["bytes"] == 30_000_004 and t.out.endswith(b"zEND\n") and t.exit_code == 0
    assert os.stat(t.stdout["file"]).st_size == 30_000_004


def test_time_out_of_computing(shared, kind):
    t = shared.turn(code(kind, python="y = 5\nprint('early')\nwhile True: pass",
                         bash="y=5; echo early; while :; do :; done",
                         node="var y = 5; console.log('early'); while (true);"), kind, timeout=0.5)
    assert (t.out, t.exit_code, t.timed_out, t.state) == (b"early\n", 124, True, "kept")
    t = shared.turn(code(kind, python="print(y)", bash="echo $y", node="console.log(y)"), kind)
    assert (t.out, t.restarted) == (b"5\n", False)


def test_time_out_of_a_child(shared, kind):
    """The interpreter waits for one that must be stopped first."""
    slow = "echo $$ >>pids; sleep 60; sleep 60"
    t = shared.turn(code(kind, python=f"import subprocess\nz = 6\nsubprocess.run(['/bin/sh', '-c', '{slow}'])",
                         bash=f"z=6; /bin/sh -c '{slow}'",
                         node=f"var z = 6; require('child_process').execFileSync('/bin/sh', ['-c', '{slow}'])"),
                    kind, timeout=0.5)
    assert (t.exit_code, t.timed_out, t.state) == (124, True, "kept")
    assert t.duration_us < 3e6
    wait_gone(shared, *pids(shared))
    assert shared.turn(code(kind, python="print(z)", bash="echo $z", node="console.log(z)"), kind).out == b"6\n"


def test_time_out_of_a_deaf_child(shared, kind):
    deaf = "trap : INT; echo $$ >>pids; while :; do sleep 5; done"
    t = shared.turn(code(kind, python=f"import subprocess\nw = 7\nsubprocess.run(['/bin/sh', '-c', '{deaf}'])",
                         bash=f"w=7; /bin/sh -c '{deaf}'",
                         node=f"var w = 7; require('child_process').execFileSync('/bin/sh', ['-c', '{deaf}'])"),
                    kind, timeout=0.5)
    assert (t.exit_code, t.timed_out, t.state) == (124, True, "kept")
    assert t.duration_us < 3.5e6
    wait_gone(shared, *pids(shared))
    assert shared.turn(code(kind, python="print(w)", bash="echo $w", node="console.log(w)"), kind).out == b"7\n"


def test_interrupt(shared, kind):
    shared.turn("", kind)
    shared.begin(code(kind, python="import time\nprint('on', flush=True)\ntime.sleep(60)", bash="echo on; sleep 60",
                      node="console.log('on'); await new Promise((r) => setTimeout(r, 60000))"), kind)
    shared.send(INTERRUPT, shared.number)
    t = shared.end()
    assert (t.exit_code, t.interrupted, t.state) == (130, True, "kept")
    assert t.duration_us < 2.5e6


def test_background_goes_on(shared, kind):
    with open(shared.path("pids"), "w", encoding="ascii"):
        pass
    t = shared.turn(background(kind, "sleep 0.5; echo late; touch came; exec sleep 60"), kind)
    assert (t.exit_code, t.out) == (0, b"")
    assert t.duration_us < 5e6
    shared.wait_for_file("came")
    os.unlink(shared.path("came"))
    t = shared.turn(code(kind, python="print('now')", bash="echo now", node="console.log('now')"), kind)
    assert (t.out, t.late) == (b"late\nnow\n", True)
    t = shared.turn(code(kind, python="import time; time.sleep(60)", bash="sleep 60",
                         node="await new Promise(() => {})"), kind, timeout=0.3)
    assert (t.exit_code, t.state) == (124, "kept")
    assert all(alive(pid) for pid in pids(shared))


def test_death(kind):
    with Agent(fake=(), path=PATH) as a:
        a.turn(code(kind, python="x = 1", bash="x=1", node="var x = 1"), kind)
        t = a.turn(code(kind, python="import os, signal\nprint('last', flush=True)\nos.kill(os.getpid(), 9)",
                        bash="echo last; kill -9 $$",
                        node="fs.writeSync(1, 'last\\n'); process.kill(process.pid, 9)"), kind)
        assert (t.out, t.exit_code, t.signal, t.state) == (b"last\n", 137, 9, "lost")
        t = a.turn(code(kind, python="print('x' in globals())", bash="echo ${x-False}",
                        node="console.log(typeof x == 'number' || 'False')"), kind)
        assert (t.out, t.restarted, t.state) == (b"False\n", True, "kept")


def test_closed_descriptors(kind):
    """A driver that has lost its socket ends by itself, and the turn with it, whenever it was closed."""
    with Agent(fake=(), path=PATH) as a:
        a.turn("", kind)
        t = a.turn(code(kind, python="import os; os.closerange(3, 5000)",
                        bash="for f in /proc/$$/fd/*; do f=${f##*/}; (( f > 2 )) && eval \"exec $f>&-\"; done",
                        node="for (let i = 3; i < 100; i++) try { fs.closeSync(i) } catch {}"), kind, timeout=20)
        assert t.duration_us < 15e6 and t.exit_code != 124
        t = a.turn(code(kind, python="print('on')", bash="echo on", node="console.log('on')"), kind)
        assert t.out == b"on\n"


def test_three_in_one_session(shared):
    shared.turn("import os; os.environ['A'] = 'p'; open('shared', 'w').write('from python')", "python")
    assert shared.turn("cat shared", "bash").out == b"from python"
    assert shared.turn("console.log(fs.readFileSync('shared', 'utf8'))", "node").out == b"from python\n"

# SPDX-License-Identifier: MIT
"""The node driver by itself: output, errors, the control socket, and what code may do to them."""
import re
import select
import time

import harness
import pytest
from harness import Driver
from node_session import js  # noqa: F401

# ---------------------------------------------------------------- output

def test_output_is_complete_whatever_children_do_to_the_pipe(js):
    js("console.log(1)", "1\n")
    js("const run = (...args) => require('child_process').spawnSync(...args, { stdio: 'inherit' });"
       "run(process.execPath, ['-e', 'process.stdout.write(``); process.kill(process.pid, 9)']);"
       "process.stdout.write('x'.repeat(3e6)); console.log(); 1", "x" * 3000000 + "\n1\n")
    js("process.stdout.write('y'.repeat(3e6)); run('echo', ['z']); void 0", "y" * 3000000 + "z\n")


def test_corked_output(js):
    js("process.stdout.cork(); process.stdout.cork(); console.log('a'); 1", "a\n1\n")
    js("console.log('b')", "b\n")


@pytest.mark.parametrize("end", [
    "process.stdout.end('end\\n')", "process.stdout.end('end\\n', () => {})",
    "process.stdout.end(Buffer.from('end\\n'))",
    "console.log('end'); process.stdout.destroy()",
    "await require('stream/promises').pipeline(require('stream').Readable.from(['end\\n']), process.stdout)",
    "require('stream').Readable.from(['end\\n']).pipe(process.stdout); await new Promise(setImmediate)",
])
def test_ended_output(js, end):
    js(f"{end}; void 0", "end\n")
    js("console.log('still'); 1", "still\n1\n")


def test_replaced_output(js):
    js("process.stdout.write = console.log = () => true; console.log('a'); 1", "1\n")
    js("Object.defineProperty(process, 'stdout', { value: null }); 2", "2\n")
    js("throw 3", "", "Uncaught 3\n", 1)


def test_console_is_whole(js):
    js("console.group('g'); console.log('%s', 1); console.groupEnd();"
       "console.dir({ a: 1 }); console.error('e')", "g\n  1\n{ a: 1 }\n", "e\n")
    js("console.time('t'); console.timeEnd('t'); console.count(); console.assert(false, 'as')",
       re.compile(r"^t: .*ms\ndefault: 1\n$"), re.compile("as"))


def test_printed_objects_are_not_kept(js):
    js("require('v8').setFlagsFromString('--expose-gc'); const gc = require('vm').runInNewContext('gc');"
       "let o = {}; const w = new WeakRef(o); console.log(o); console.error(o); o = null; 0",
       "{}\n0\n", "{}\n")
    js("await new Promise(setImmediate); gc(); w.deref()")


# ---------------------------------------------------------------- what is shown

def test_shown_values_are_bounded(js):
    for value in ("'x'.repeat(1e7)", "Array.from({ length: 1e6 }, (_, i) => i)",
                  "Array(900).fill(Array(900).fill('abc'))"):
        answer = js.driver.turn(value)
        assert 1000 < len(answer["stdout"]) < 201000 and "more" in answer["stdout"][-200:]


def test_values_that_resist(js):
    js("({ [require('util').inspect.custom]() { throw 1 } })", "[a value that cannot be shown]\n")
    js("throw { [require('util').inspect.custom]() { throw 1 } }", "",
       "Uncaught [a value that cannot be shown]\n", 1)
    js("new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })",
       "Proxy [ {}, { get: [Function: get], ownKeys: [Function: ownKeys] } ]\n")
    js("({ get a() { throw 1 } })", "{ a: [Getter] }\n")


def test_errors_show_frames_of_the_code(js):
    js("function deep() {\n  null.x\n}\ndeep()", "",
       "Uncaught TypeError: Cannot read properties of null (reading 'x')\n"
       "    at deep (<turn-1>:2:8)\n    at <turn-1>:4:1\n", 1)
    js("throw Object.assign(new Error('m', { cause: Error('c') }), { code: 'E' })", "",
       "Uncaught Error: m\n    at <turn-2>:1:21 {\n  code: 'E',\n"
       "  [cause]: Error: c\n      at <turn-2>:1:45\n}\n", 1)
    answer = js.driver.turn("process.nextTick(() => { throw Error('t') }); await new Promise(setImmediate)")
    assert answer["stderr"].startswith("Uncaught Error: t\n    at <turn-3>:1:32\n"), answer
    assert "[eval]" not in answer["stderr"] and answer["exit_code"] == 0
    js("throw undefined", "", "Uncaught undefined\n", 1)


def test_syntax_errors_show_the_place(js):
    js("let ok = 1;\nlet = ;", "",
       "<turn-1>:2\nlet = ;\n      ^\nUncaught SyntaxError: Unexpected token ';'\n", 1)
    js("return 5", "", re.compile("^<turn-2>:1\nreturn 5\n.*\nUncaught SyntaxError: Illegal return"), 1)
    js("JSON.parse('{')", "", re.compile("^Uncaught SyntaxError: .*JSON"), 1)


# ---------------------------------------------------------------- stray errors, listeners

def test_listeners_of_the_code(js):
    js("process.on('unhandledRejection', e => console.log('U', e)); Promise.reject(5); 1", "1\nU 5\n")
    js("process.removeAllListeners('unhandledRejection');"
       "process.on('uncaughtException', e => console.log('X', e));"
       "setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20))", "X 6\n")
    js("process.removeAllListeners(); process.on('uncaughtException', () => { throw 7 });"
       "setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20))", "", "Uncaught 7\n")


def test_capture_callback_comes_back(js):
    js("process.setUncaughtExceptionCaptureCallback(null)")
    js("setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20))", "", "Uncaught 6\n")


def test_rejections_are_told_in_their_turn(js):
    for n in range(20):
        js(f"Promise.reject({n}); Promise.resolve().then(() => {{ throw Error('x') }}); 0", "0\n",
           re.compile(f"{n}(.|\n)*Error: x"))


# ---------------------------------------------------------------- the control socket

def test_children_inherit_no_descriptor(js):
    js("const cp = require('child_process'), list = ['/proc/self/fd']; String(cp.execFileSync('ls', list))",
       "'0\\n1\\n2\\n3\\n'\n")
    js("cp.spawnSync('ls', list, { stdio: 'inherit' }).status", "0\n1\n2\n3\n0\n")


def test_forks_and_workers(js):
    js("require('fs').writeFileSync('c.js', 'process.send(process.execArgv.length)');"
       "const child = require('child_process').fork('./c.js');"
       "await new Promise(r => child.on('message', r))", "0\n")
    js("const cluster = require('cluster'); cluster.setupPrimary({ exec: 'c.js' });"
       "await new Promise(r => cluster.fork().on('message', r))", "0\n")
    js("const w = new (require('worker_threads').Worker)('console.log(1); process.exit(3)', { eval: true });"
       "await new Promise(r => w.on('exit', r))", "1\n3\n")


def test_forged_report_spoils_nothing(js):
    js("require('fs').writeSync(3, 'done 0123456789abcdef 7 kept\\nready\\n\\n'); void 0")
    js("1", "1\n")


def test_closed_control_socket_is_noticed(js):
    for code in ("require('fs').closeSync(3)",
                 "require('fs').closeSync(3); require('fs').openSync('f', 'w')"):
        answer = js.driver.turn(code)
        assert (answer["exit_code"], answer["state"]) == (1, "lost")
        js("typeof x", "'undefined'\n")


def test_end_of_control_socket_ends_it(js):
    js("setInterval(() => {}, 10); require('net').createServer().listen(0);"
       "process.on('exit', () => console.log('x')); 1", "1\n")
    js.driver.control.shutdown(1)
    assert js.driver.process.wait(10) == 0


def test_large_code_in_pieces(js):
    js("/*" + "\u6f22" * 2000000 + "*/ 7", "7\n")
    js("'\u6f22'.length", "1\n")


# ---------------------------------------------------------------- what code may ruin

@pytest.mark.parametrize("ruin", [
    "Array.prototype.push = Array.prototype.includes = Array.prototype.find = null",
    "Array.prototype[Symbol.iterator] = null", "Function.prototype.call = null",
    "Function.prototype.bind = null",
    "String.prototype.slice = String.prototype.split = String.prototype.indexOf = null",
    "RegExp.prototype.exec = () => { throw 1 }", "Object.prototype.get = Object.prototype.timeout = 1",
    "Object.prototype.value = Object.prototype.replMode = false",
    "Buffer.prototype.toString = Buffer.concat = null", "Promise.prototype.then = () => {}",
    "JSON.parse = JSON.stringify = null; JSON = null", "Map.prototype.get = null",
    "for (const name of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[name] } catch {}",
    "require('vm').Script = require('inspector').Session = null", "Error.stackTraceLimit = 0",
    "Error.prepareStackTrace = () => 'SyntaxError'",
    "Object.freeze(Error)", "require('events').prototype.on = require('events').prototype.listeners = null",
    "require('stream').Writable.prototype.write = null",
    "process._tickCallback = process._fatalException = process.reallyExit = process.cwd = null",
    "__sandbox_driver = 1; delete globalThis.__sandbox_driver",
    "__sandbox_driver.run()", "process.stdout; delete process.stdout; delete process.stderr",
])
def test_ruins(js, ruin):
    js("const leave = process.exit")
    js.driver.turn(ruin)
    js("throw 'e1'", "", re.compile("e1"), 1)
    js("await 5; 6", "6\n")
    js("let =", "", re.compile("SyntaxError"), 1)
    js.interrupted("while (true);")
    js("try { leave(3) } catch {}; 1", "", "", 3)
    js("'still'", "'still'\n")


# ---------------------------------------------------------------- cost

def test_memory_does_not_grow(js):
    def heap():
        return int(js.driver.turn("global.gc?.(); process.memoryUsage().heapUsed")["stdout"])

    for _ in range(300):
        js("void { a: Array(1000).fill(1) }")
    before = heap()
    for _ in range(1500):
        js.driver.turn("({ a: Array(1000).fill(1) })")
    assert heap() - before < 10000000


def test_start_adds_little(monkeypatch):
    """Against a node that opens the same socket; generous, as the machine is shared."""
    name, argv = harness.DRIVERS["node"]

    def start(text):
        monkeypatch.setitem(harness.DRIVERS, "node", (name, lambda own: argv(text or own)))
        begun = time.monotonic()
        with Driver("node") as driver:
            while not driver.ready:
                select.select([driver.control], [], [], 10)
                driver.report("")
            return time.monotonic() - begun

    bare = "new (require('net').Socket)({ fd: 3 }).write('ready\\n')"
    ours, least = zip(*((start(None), start(bare)) for _ in range(9)))
    assert min(ours) < 2 * min(least)

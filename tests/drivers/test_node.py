# SPDX-License-Identifier: MIT
"""The node driver by itself: the corpus' cases, and what is best provoked without agent and jail.

TEST_NODE chooses another node than the system's.
"""
import json
import os
import re
import signal
import time

import corpus
import harness
import pytest
from harness import Driver

# They need the jail: its paths, and its lack of privileges.
NEED_THE_REST = {"js-cwd", "iso-capabilities"}


def here(steps):
    """Steps that need not know where the workspace is."""
    return json.loads(json.dumps(steps).replace("/workspace/", "./"))


CASES = [pytest.param(here(turns), id=name) for topic in ("node", "output", "sessions", "isolation")
         for name, steps in corpus.cases("node", topic, NEED_THE_REST)
         if (turns := [s for s in steps if s.get("env") == "node" or "sleep" in s])]


@pytest.mark.parametrize("steps", CASES)
def test_case(steps):
    assert corpus.run("node", steps) == []


class Session:
    """Runs turns and expects of each: this output, nothing on stderr, status 0, state kept, in time."""

    def __init__(self, driver):
        self.driver = driver

    def __call__(self, code, stdout="", stderr="", exit_code=0, state="kept", timeout=30.0):
        answer = self.driver.turn(code, timeout)
        assert (answer["exit_code"], answer["state"]) == (exit_code, state), answer
        for stream, expected in (("stdout", stdout), ("stderr", stderr)):
            if isinstance(expected, re.Pattern):
                assert expected.search(answer[stream]), answer
            else:
                assert answer[stream] == expected, answer
        return answer

    def interrupted(self, code, stdout="", state="kept"):
        self(code, stdout, re.compile(""), 124, state, timeout=0.5)


@pytest.fixture
def js():
    with Driver("node") as driver:
        yield Session(driver)


# ---------------------------------------------------------------- declarations

KINDS = {"let": "let %s = %d", "const": "const %s = %d", "pattern": "const { a: %s } = { a: %d }", "var": "var %s = %d",
         "class": "class %s { static n = %d }", "function": "function %s() { return %d }",
         "generator": "async function* %s() { return %d }"}


@pytest.mark.parametrize("before", KINDS)
def test_redeclaration_as_any_kind(js, before):
    for after in KINDS:
        name = f"as_{after}"
        js(KINDS[before] % (name, 1))
        js(KINDS[after] % (name, 2))
        if after != "generator":
            js(f"typeof {name} == 'function' ? {name}.n ?? {name}() : {name}", "2\n")
        js(f"{name} = 3", "3\n")


def test_redeclaration_after_a_failed_one(js):
    js("let x = (() => { throw 1 })()", "", "Uncaught 1\n", 1)
    js("let x = 2; x", "2\n")
    js("const c = (() => { throw 1 })()", "", "Uncaught 1\n", 1)
    js("class c {}; typeof c", "'function'\n")


def test_redeclaration_of_several_names(js):
    js("function a() {} var b = 1; let c = 2; const d = 3")
    js("const a = 'A', x = 1;\nlet b = 'B';\nfunction c() { if (1) { return 'C' } }\nvar d = 'D'\na + b + c() + d", "'ABCD'\n")


def test_redeclaration_within_a_turn_is_refused(js):
    js("let a = 1")
    js("console.log('ran'); let a = 2; var a = 3", "", re.compile("SyntaxError.*'a'"), 1)
    js("a", "1\n")


def test_const_protects_within_its_turn(js):
    for change in ("k = 2", "k += 1", "k ||= 2", "k++", "--k"):
        js(f"const k = 0; {change}", "", re.compile("TypeError: Assignment to constant"), 1)
    js("const k2 = 1; k2 == 1 && k2 === 1 && ((k2) => k2)(true)", "true\n")


def test_const_in_text_is_left_alone(js):
    js("const t = `\nconst a = 1;\n`; /*\nconst b = 2 */ t + '; const c'", "'\\nconst a = 1;\\n; const c'\n")
    js("/const /.source", "'const '\n")


def test_many_constants_take_bounded_time(js):
    code = "".join(f"const name_{i} = '{'x' * 100}';\n" for i in range(3000))
    assert js(code + "name_2999.length", "100\n")["seconds"] < 10
    js("let name_0 = 1; name_0", "1\n")


# ---------------------------------------------------------------- import

@pytest.mark.parametrize("code, shown", [
    ("(await import('node:os')).EOL.length", "1\n"),
    ("const f = async () => (await import('path')).sep\nawait f()", "'/'\n"),
    ("`${(await import('path')).sep}`", "'/'\n"),
    ("typeof { ...await import('path') }.sep + typeof [...Object.keys(await import ('path'))]", "'stringobject'\n"),
    ("`import(1)` + 'import(2)' /* import(3) */ // import(4)", "'import(1)import(2)'\n"),
    ("/import (x)/.test('import x')", "true\n"),
    ("({ import(x) { return x } }).import(5)", "5\n"),
    ("(await import('./m.mjs')).default", "1\n"),
    ("(await import(`${process.cwd()}/m.mjs`)).default", "1\n"),
    ("process.chdir('sub'); (await import('../m.mjs?again')).default", "1\n"),
    ("const { default: d } = await import('./d.json', { with: { type: 'json' } }).catch(() => ({ default: 6 })); d", "6\n"),
])
def test_import(js, code, shown):
    os.mkdir(f"{js.driver.workspace}/sub")
    for name, text in (("m.mjs", "export default 1"), ("d.json", "6")):
        with open(f"{js.driver.workspace}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    answer = js.driver.turn(code)
    assert answer["stdout"] == shown, answer


def test_import_that_fails(js):
    js("await import('./nope.mjs')", "", re.compile("ERR_MODULE_NOT_FOUND"), 1)
    js("await import({ toString() { throw 1 } })", "", "Uncaught 1\n", 1)


# ---------------------------------------------------------------- process.exit

EXITS = {
    "try": "try { process.exit(9) } catch (e) { console.log('caught') } finally { console.log('finally') }",
    "catch of an async function": "(async () => { try { await 0; process.exit(9) } catch { process.exit(1) } })()",
    "microtask": "await 0; try { process.exit(9) } catch {}; console.log('on')",
    "after a timer": "await new Promise(r => setTimeout(r, 1)); try { process.exit(9) } catch {}; console.log('on')",
    "timer": "setTimeout(() => process.exit(9), 1); setTimeout(() => {}, 1); await new Promise(() => {})",
    "interval": "const t = setInterval(() => { clearInterval(t); process.exit(9) }, 1); await new Promise(() => {})",
    "tick": "process.nextTick(() => process.exit(9)); process.nextTick(() => {}); await new Promise(() => {})",
    "immediate": "setImmediate(() => process.exit(9)); for (const n of 'abc') setImmediate(() => {});"
                 "await new Promise(() => {})",
    "io": "require('fs').stat('/', () => process.exit(9)); await new Promise(() => {})",
    "child": "require('child_process').spawn('true').on('exit', () => process.exit(9)); await new Promise(() => {})",
    "module": "const { exit } = await import('node:process'); exit(9); console.log('on')",
    "while it is shown": "({ [require('util').inspect.custom]() { process.exit(9) } })",
}


@pytest.mark.parametrize("code", EXITS.values(), ids=EXITS)
def test_exit(js, code):
    js("var kept = 1")
    for _ in range(3):
        js(code, "", "", 9)
        js("kept", "1\n")
    js("await new Promise(r => setTimeout(r, 2)); await new Promise(setImmediate); await new Promise(process.nextTick);"
       "await require('fs').promises.stat('/'); 'all of them work'", "'all of them work'\n")
    js("const used = process.cpuUsage(); await new Promise(r => setTimeout(r, 300)); const more = process.cpuUsage(used);"
       "more.user + more.system < 150000", "true\n")
    js("require('async_hooks').executionAsyncId() < 1e9 && require('async_hooks').triggerAsyncId() >= 0", "true\n")


def test_exit_codes(js):
    for code, status in (("", 0), ("-1", 255), ("256", 0), ("'7'", 7), ("{}", 0)):
        js(f"process.exit({code})", "", "", status)
    js("process.exitCode = 5", "5\n")
    js("process.exit()")
    js("process.exitCode = 5; process.exit()", "", "", 5)


def test_exit_between_turns_ends_nothing(js):
    js("setTimeout(() => { process.exit(9) }, 50); 1", "1\n")
    time.sleep(0.2)
    js("2", "2\n")


def test_deaths(js):
    for code, status, name in (("process.reallyExit(5)", 5, None), ("process.abort()", 134, "SIGABRT"),
                               ("process.kill(process.pid, 'SIGTERM'); while (true);", 143, "SIGTERM")):
        answer = js.driver.turn(code)
        assert (answer["exit_code"], answer["signal"], answer["state"]) == (status, name, "lost")
        js("typeof kept", "'undefined'\n")
        js("var kept = 1")


# ---------------------------------------------------------------- interrupts

@pytest.mark.parametrize("code", [
    "while (true);", "for (;;) try { for (;;); } catch {} finally {}", "await 0; while (true);", "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "(function f() { Promise.resolve().then(f) })()", "await new Promise(() => {})",
    "require('child_process').execFileSync('sleep', ['77'])",
    "({ [require('util').inspect.custom]() { for (;;); } })",
    "await new Promise(r => setTimeout(r, 1)); ({ [require('util').inspect.custom]() { for (;;); } })",
    "process.removeAllListeners(); await new Promise(() => {})",
    "process.on('SIGINT', () => {}); await new Promise(() => {})",
    "process.stdin.resume(); await new Promise(() => {})",
])
def test_interrupt_keeps_state(js, code):
    js("var kept = 1")
    for _ in range(2):
        js.interrupted(code)
        js("kept", "1\n")


def test_interrupt_that_kills(js):
    js.interrupted("await new Promise(r => setTimeout(r, 1)); while (true);", state="lost")
    js("1", "1\n")


def test_interrupt_between_turns_does_nothing(js):
    js("process.removeAllListeners(); var kept = 1; void 0")
    for _ in range(3):
        os.kill(js.driver.process.pid, signal.SIGINT)
        js("kept", "1\n")


def test_interrupted_turn_ends_no_later_one(js):
    js.interrupted("await new Promise(r => setTimeout(r, 800)); throw Error('late')")
    js("await new Promise(r => setTimeout(r, 600)); 'mine'", "'mine'\n")


def test_handlers_of_the_code(js):
    js("process.on('SIGINT', s => console.log(s)); process.kill(process.pid, 'SIGINT'); await new Promise(r => setTimeout(r, 20)); 1",
       "SIGINT\n1\n")
    js("process.kill(process.pid, 2); await new Promise(r => setTimeout(r, 20)); 2", "SIGINT\n2\n")
    js.interrupted("await new Promise(() => {})", "SIGINT\n")
    js.interrupted("while (true);")
    js("process.on('SIGUSR2', s => console.log(s)); process.kill(process.pid, 'SIGUSR2'); await new Promise(r => setTimeout(r, 20))",
       "SIGUSR2\n")


def test_interrupt_of_itself(js):
    js("process.kill(process.pid, 'SIGINT'); await new Promise(() => {})", "", "", 130)


# ---------------------------------------------------------------- output

def test_output_is_complete_whatever_children_do_to_the_pipe(js):
    js("require('child_process').spawnSync(process.execPath, ['-e', 'process.stdout.write(``); process.kill(process.pid, 9)'],"
       "{ stdio: 'inherit' }); process.stdout.write('x'.repeat(3e6)); console.log(); process.stderr.write('');",
       "x" * 3000000 + "\ntrue\n")
    js("process.stdout.write('y'.repeat(3e6)); require('child_process').spawnSync('echo', ['z'], { stdio: 'inherit' }); void 0",
       "y" * 3000000 + "z\n")


def test_corked_output(js):
    js("process.stdout.cork(); process.stdout.cork(); console.log('a'); 1", "a\n1\n")
    js("console.log('b')", "b\n")


@pytest.mark.parametrize("end", [
    "process.stdout.end('end\\n')", "process.stdout.end('end\\n', () => {})", "process.stdout.end(Buffer.from('end\\n'))",
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
    js("console.group('g'); console.log('in %s', 1); console.groupEnd(); console.dir({ a: 1 }); console.error('e')",
       "g\n  in 1\n{ a: 1 }\n", "e\n")
    js("console.time('t'); console.timeEnd('t'); console.count(); console.assert(false, 'as'); typeof console.Console",
       re.compile(r"^t: .*ms\ndefault: 1\n'function'\n$"), re.compile("as"))


# ---------------------------------------------------------------- what is shown

def test_shown_values_are_bounded(js):
    for value in ("'x'.repeat(1e7)", "Array.from({ length: 1e6 }, (_, i) => i)", "Array(900).fill(Array(900).fill('abc'))"):
        answer = js.driver.turn(value)
        assert 1000 < len(answer["stdout"]) < 201000 and "more" in answer["stdout"][-200:]


def test_values_that_resist(js):
    js("({ [require('util').inspect.custom]() { throw 1 } })", "[a value that cannot be shown]\n")
    js("throw { [require('util').inspect.custom]() { throw 1 } }", "", "Uncaught [a value that cannot be shown]\n", 1)
    js("new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })",
       "Proxy [ {}, { get: [Function: get], ownKeys: [Function: ownKeys] } ]\n")
    js("({ get a() { throw 1 } })", "{ a: [Getter] }\n")


def test_errors_show_frames_of_the_code(js):
    js("function deep() {\n  null.x\n}\ndeep()", "",
       "Uncaught TypeError: Cannot read properties of null (reading 'x')\n    at deep (<turn-1>:2:8)\n    at <turn-1>:4:1\n", 1)
    js("throw Object.assign(new Error('m', { cause: Error('c') }), { code: 'E' })", "",
       "Uncaught Error: m\n    at <turn-2>:1:21 {\n  code: 'E',\n  [cause]: Error: c\n      at <turn-2>:1:45\n}\n", 1)
    answer = js.driver.turn("process.nextTick(() => { throw Error('t') }); await new Promise(setImmediate); 0")
    assert answer["stderr"].startswith("Uncaught Error: t\n    at <turn-3>:1:32\n"), answer
    assert "[eval]" not in answer["stderr"] and answer["exit_code"] == 0
    js("throw undefined", "", "Uncaught undefined\n", 1)


def test_syntax_errors_show_the_place(js):
    js("let ok = 1;\nlet = ;", "", "<turn-1>:2\nlet = ;\n      ^\nUncaught SyntaxError: Unexpected token ';'\n", 1)
    js("return 5", "", re.compile("^<turn-2>:1\nreturn 5\n.*\nUncaught SyntaxError: Illegal return"), 1)
    js("JSON.parse('{')", "", re.compile("^Uncaught SyntaxError: .*JSON"), 1)


# ---------------------------------------------------------------- stray errors, listeners

def test_listeners_of_the_code(js):
    js("process.on('unhandledRejection', e => console.log('U', e)); Promise.reject(5); 1", "1\nU 5\n")
    js("process.removeAllListeners('unhandledRejection'); process.on('uncaughtException', e => console.log('X', e));"
       "setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20))", "X 6\n")
    js("process.removeAllListeners(); process.on('uncaughtException', () => { throw 7 });"
       "setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20))", "", "Uncaught 7\n")


def test_capture_callback_comes_back(js):
    js("process.setUncaughtExceptionCaptureCallback(null)")
    js("setTimeout(() => { throw 6 }, 1); await new Promise(r => setTimeout(r, 20)); 1", "1\n", "Uncaught 6\n")


def test_rejections_are_told_in_their_turn(js):
    for n in range(20):
        js(f"Promise.reject({n}); Promise.resolve().then(() => {{ throw Error('x') }}); 0", "0\n",
           re.compile(f"{n}(.|\n)*Error: x"))


# ---------------------------------------------------------------- the control socket

def test_children_inherit_no_descriptor(js):
    js("const cp = require('child_process'), list = ['-1', '/proc/self/fd']; String(cp.execFileSync('ls', list))",
       "'0\\n1\\n2\\n3\\n'\n")
    js("cp.spawnSync('ls', list, { stdio: 'inherit' }).status", "0\n1\n2\n3\n0\n")


def test_forks_and_workers(js):
    js("require('fs').writeFileSync('c.js', 'process.send(process.execArgv.length)');"
       "const child = require('child_process').fork('./c.js'); await new Promise(r => child.on('message', r))", "0\n")
    js("const cluster = require('cluster'); cluster.setupPrimary({ exec: 'c.js' });"
       "await new Promise(r => cluster.fork().on('message', r))", "0\n")
    js("const w = new (require('worker_threads').Worker)('console.log(1); process.exit(3)', { eval: true });"
       "await new Promise(r => w.on('exit', r))", "1\n3\n")


def test_forged_report_spoils_nothing(js):
    js("require('fs').writeSync(3, 'done 0123456789abcdef 7 kept\\nready\\n\\n'); void 0")
    js("1", "1\n")


def test_closed_control_socket_is_noticed(js):
    for code in ("require('fs').closeSync(3)", "require('fs').closeSync(3); require('fs').openSync('f', 'w')"):
        answer = js.driver.turn(code)
        assert (answer["exit_code"], answer["state"]) == (1, "lost")
        js("typeof x", "'undefined'\n")


def test_end_of_control_socket_ends_it(js):
    js("setInterval(() => {}, 10); require('net').createServer().listen(0); process.on('exit', () => console.log('x')); 1", "1\n")
    js.driver.control.shutdown(1)
    assert js.driver.process.wait(10) == 0


def test_large_code_in_pieces(js):
    js("/*" + "\u6f22" * 2000000 + "*/ 7", "7\n")
    js("'\u6f22'.length", "1\n")


# ---------------------------------------------------------------- what code may ruin

@pytest.mark.parametrize("ruin", [
    "Array.prototype.push = Array.prototype.includes = Array.prototype.find = null",
    "Array.prototype[Symbol.iterator] = null", "Function.prototype.call = null",
    "Function.prototype.bind = null", "String.prototype.slice = String.prototype.split = String.prototype.indexOf = null",
    "RegExp.prototype.exec = () => { throw 1 }", "Object.prototype.get = Object.prototype.timeout = 1",
    "Object.prototype.value = Object.prototype.replMode = false", "Buffer.prototype.toString = Buffer.concat = null",
    "Promise.prototype.then = () => {}", "JSON.parse = JSON.stringify = null; JSON = null", "Map.prototype.get = null",
    "for (const name of Object.getOwnPropertyNames(globalThis)) if (name != 'undefined') try { delete globalThis[name] } catch {}",
    "require('vm').Script = require('inspector').Session = null", "Error.stackTraceLimit = 0",
    "Error.prepareStackTrace = () => 'SyntaxError'",
    "Object.freeze(Error)", "const { EventEmitter: E } = require('events'); E.prototype.on = E.prototype.listeners = null",
    "require('stream').Writable.prototype.write = null", "process._tickCallback = process.reallyExit = process.cwd = null",
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


def test_start_adds_little():
    """Against a node that opens the same socket; generous, as the machine is shared."""
    def start(text):
        name, argv = harness.DRIVERS["node"]
        begun = time.monotonic()
        driver = Driver.__new__(Driver)
        harness.DRIVERS["node"] = (name, lambda own: argv(text or own))
        try:
            Driver.__init__(driver, "node")
            while not driver.ready:
                time.sleep(0.001)
                driver.report("")
            return time.monotonic() - begun
        finally:
            harness.DRIVERS["node"] = (name, argv)
            driver.close()

    bare = "new (require('net').Socket)({ fd: 3 }).write('ready\\n')"
    times = {text: sorted(start(text) for _ in range(9))[4] for text in (bare, None)}
    assert times[None] < 2 * times[bare]

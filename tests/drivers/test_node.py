# SPDX-License-Identifier: MIT
"""The node driver by itself: the corpus' cases, and what is best provoked without agent and jail.

TEST_NODE chooses another node than the system's.
"""
import json
import os
import re
import time

import corpus
import pytest
from node_session import js  # noqa: F401

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


# ---------------------------------------------------------------- declarations

KINDS = {"let": "let %s = %d", "const": "const %s = %d", "pattern": "const { a: %s } = { a: %d }",
         "var": "var %s = %d", "class": "class %s { static n = %d }",
         "function": "function %s() { return %d }",
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
    js("const a = 'A', x = 1;\nlet b = 'B';\nfunction c() { if (1) { return 'C' } }\nvar d = 'D'\n"
       "a + b + c() + d", "'ABCD'\n")


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
    ("({ ...await import('path') }).sep + typeof [...Object.keys(await import ('path'))]", "'/object'\n"),
    ("`import(1)` + 'import(2)' /* import(3) */ // import(4)", "'import(1)import(2)'\n"),
    ("/import (x)/.test('import x')", "true\n"),
    ("({ import(x) { return x } }).import(5)", "5\n"),
    ("(await import('./m.mjs')).default", "1\n"),
    ("(await import(`${process.cwd()}/m.mjs`)).default", "1\n"),
    ("process.chdir('sub'); (await import('../m.mjs?again')).default", "1\n"),
    ("(await import('./d.json', { with: { type: 'json' } }).catch(() => ({ default: 6 }))).default", "6\n"),
])
def test_import(js, code, shown):
    os.mkdir(f"{js.driver.workspace}/sub")
    for name, text in (("m.mjs", "export default 1"), ("d.json", "6")):
        with open(f"{js.driver.workspace}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    js(code, shown, re.compile(""))


def test_import_that_fails(js):
    js("await import('./nope.mjs')", "", re.compile("ERR_MODULE_NOT_FOUND"), 1)
    js("await import({ toString() { throw 1 } })", "", "Uncaught 1\n", 1)


# ---------------------------------------------------------------- process.exit

EXITS = {
    "try": "try { process.exit(9) } catch (e) { console.log('caught') } finally { console.log('finally') }",
    "catch of a function":
        "(async () => { try { await 0; process.exit(9) } catch { process.exit(1) } })()",
    "microtask": "await 0; try { process.exit(9) } catch {}; console.log('on')",
    "after a timer":
        "await new Promise(r => setTimeout(r, 1)); try { process.exit(9) } catch {}; console.log('on')",
    "timer":
        "setTimeout(() => process.exit(9), 1); setTimeout(() => {}, 1); await new Promise(() => {})",
    "interval":
        "const t = setInterval(() => { clearInterval(t); process.exit(9) }, 1); await new Promise(() => {})",
    "tick":
        "process.nextTick(() => process.exit(9)); process.nextTick(() => {}); await new Promise(() => {})",
    "immediate": "setImmediate(() => process.exit(9)); for (const n of 'abc') setImmediate(() => {});"
                 "await new Promise(() => {})",
    "io": "require('fs').stat('/', () => process.exit(9)); await new Promise(() => {})",
    "child": "require('child_process').spawn('true').on('exit', () => process.exit(9));"
             "await new Promise(() => {})",
    "module": "const { exit } = await import('node:process'); exit(9); console.log('on')",
    "while it is shown": "({ [require('util').inspect.custom]() { process.exit(9) } })",
}


@pytest.mark.parametrize("code", EXITS.values(), ids=EXITS)
def test_exit(js, code):
    js("var kept = 1")
    for _ in range(3):
        js(code, "", "", 9)
        js.interrupt_idle()
        js("kept", "1\n")
    js("await new Promise(r => setTimeout(r, 2)); await new Promise(setImmediate);"
       "await new Promise(process.nextTick); await require('fs').promises.stat('/'); 'all of them work'",
       "'all of them work'\n")


def test_exit_leaves_later_immediates_alone(js):
    """Node would wait for them for ever, at full speed."""
    js("let n = 0; setImmediate(() => process.exit(9)); for (const i of 'abc') setImmediate(() => n++);"
       "await new Promise(() => {})", "", "", 9)
    js("n", "3\n")


@pytest.mark.parametrize("code", EXITS.values(), ids=EXITS)
def test_exit_under_async_hooks(js, code):
    js("const hooks = require('async_hooks'), storage = new hooks.AsyncLocalStorage();"
       "hooks.createHook({ init() {}, before() {}, after() {} }).enable(); void 0")
    for _ in range(3):
        js(f"storage.enterWith('theirs'); {code}", "", "", 9)
        js("await new Promise(r => setTimeout(r, 1)); 1", "1\n")
    js("process.nextTick(() => { throw 5 }); await new Promise(setImmediate); 1", "1\n", "Uncaught 5\n")
    js.interrupted("process.nextTick(() => { for (;;); }); await new Promise(() => {})")
    js("await new Promise(r => setTimeout(r, 1)); 2", "2\n")


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
    "while (true);", "for (;;) try { for (;;); } catch {} finally {}", "await 0; while (true);",
    "/(a+)+$/.test('a'.repeat(40) + 'b')",
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
        js.interrupt_idle()
        js("kept", "1\n")


def test_interrupted_turn_ends_no_later_one(js):
    js.interrupted("await new Promise(r => setTimeout(r, 800)); throw Error('late')")
    js("await new Promise(r => setTimeout(r, 600)); 'mine'", "'mine'\n")


def test_handlers_of_the_code(js):
    wait = "await new Promise(r => setTimeout(r, 20)); void 0"
    js(f"process.on('SIGINT', s => console.log(s)); process.kill(process.pid, 'SIGINT'); {wait}", "SIGINT\n")
    js(f"process.kill(process.pid, 2); {wait}", "SIGINT\n")
    js.interrupted("await new Promise(() => {})", "SIGINT\n")
    js.interrupted("while (true);")
    js("process.on('SIGUSR2', s => console.log(s)); 0", "0\n")
    js(f"process.kill(process.pid, 'SIGUSR2'); {wait}", "SIGUSR2\n")


def test_interrupt_of_itself(js):
    js("process.kill(process.pid, 'SIGINT'); await new Promise(() => {})", "", "", 130)

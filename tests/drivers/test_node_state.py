# SPDX-License-Identifier: MIT
"""The node driver's save, restore, list and show, by themselves."""
import json
import os
import random
import signal

import pytest
from harness import Driver
from node_session import Session, js          # noqa: F401
from state import Died, Fifos, command, listed, names, restore, save, show, wait


def survives(js, setup, question, answer, before="0"):
    """What the question is answered is the same in the old process and, restored, in a new one."""
    js(f"{setup}; void 0")
    state, report = save(js.driver)
    assert report["ok"] and not names(report), report
    with Driver("node") as other:
        new = Session(other)
        new(f"void {before}")
        report = restore(other, state)
        assert report["ok"] and not names(report), report
        new(question, answer)
    js(question, answer)


@pytest.mark.parametrize("setup, question, answer", [
    ("let a = 1; const b = 'x'; var c = 2n; d = [NaN, -0, undefined, null, true]", "[a, b, c, d]",
     "[ 1, 'x', 2n, [ NaN, -0, undefined, null, true ] ]\n"),
    ("const o = { x: { y: 1 } }; const same = o.x; o.self = o", "o.x === same && o.self === o", "true\n"),
    ("const m = new Map([[{ k: 1 }, new Set([1, 'a'])]])", "m", "Map(1) { { k: 1 } => Set(2) { 1, 'a' } }\n"),
    ("const d = new Date(0), r = /a\\/b/giu", "[d, r]", "[ 1970-01-01T00:00:00.000Z, /a\\/b/giu ]\n"),
    ("const u = new Uint16Array([1, 2]); const v = new DataView(u.buffer, 2, 2); const b = Buffer.from('é')",
     "u[1] = 9; [v.getUint16(0, true), b.toString(), Buffer.isBuffer(b), u]", "[ 9, 'é', true, Uint16Array(2) [ 1, 9 ] ]\n"),
    ("function f(x) { return g(x) + 1 }; const g = (x) => x * 2; async function* h() { yield 1 }; f.memo = { a: 1 }",
     "f(2) + g.name + f.memo.a + typeof h().next", "'5g1function'\n"),
    ("class B extends A2 { z() { return super.z() + 1 } }; class A extends B {}; const i = new A(); i.p = i".replace(
        "class B extends A2", "class A2 { z() { return 1 } static n = 1 }; A2.n = 5; class B extends A2"),
     "[i.z(), i instanceof A2, i.p === i, A2.n, A.name]", "[ 2, true, true, 5, 'A' ]\n"),
    ("function Old(x) { this.x = x }; Old.prototype.get = function () { return this.x }; const old = new Old(3)",
     "old.get() + (old instanceof Old)", "4\n"),
    ("const o = { m() { return 1 }, async n() {}, ['a b']() { return 2 }, get: (x) => x, f: Math.max, l: console.log }",
     "o.m() + o['a b']() + o.get(3) + o.f(1, 9) + (o.l === console.log)", "16\n"),
    ("const fs = require('fs'); const { join } = require('path'); const ee = new (require('events'))(); const os = await import('node:os')",
     "[typeof fs.readFileSync, join('a', 'b'), typeof ee.on, os.EOL]", "[ 'function', 'a/b', 'function', '\\n' ]\n"),
    ("const e = new RangeError('bad', { cause: 1 }); e.code = 'X'; class E2 extends Error {}; const f = new E2('q')",
     "[e.message, e.cause, e.code, e instanceof RangeError, f instanceof E2, f.message, typeof e.stack]",
     "[ 'bad', 1, 'X', true, true, 'q', 'string' ]\n"),
    ("const z = Object.freeze({ a: 1 }); const n = Object.create(null); n.x = 1; const p = Object.create({ inherited: 1 }); const h = [1, , 3]; h.k = 1",
     "[Object.isFrozen(z), Object.getPrototypeOf(n), p.inherited, 1 in h, h.k]", "[ true, null, 1, false, 1 ]\n"),
    ("const s = Symbol.for('k'); const bo = new String('boxed'); const hidden = Object.defineProperty({}, 'h', { value: 1 })",
     "[s === Symbol.for('k'), bo.length, Object.keys(hidden).length, hidden.h]", "[ true, 5, 0, 1 ]\n"),
    ("process.env.NEW = 'v'; process.env.USER = 'u'; delete process.env.TERM; process.chdir('/usr')",
     "[process.env.NEW, process.env.USER, process.env.TERM, process.cwd()]", "[ 'v', 'u', undefined, '/usr' ]\n"),
    ("let list = null; for (let i = 0; i < 100000; i++) list = { next: list }; const big = new Array(200000).fill(1.5)",
     "let n = 0; for (let l = list; l; l = l.next) n++; n + big.length", "300000\n"),
    ("url = 'mine'; var path = require('path'); os", "url + typeof path.join + os.EOL", "'minefunction\\n'\n"),
    ("let yielded = 1; let $a_é = 2; let undef; const proto = { '__proto__x': 1 }", "[$a_é, undef, proto]",
     "[ 2, undefined, { __proto__x: 1 } ]\n"),
])
def test_survives(js, setup, question, answer):
    survives(js, setup, question, answer)


def test_own_modules_are_loaded_again(js):
    with open(f"{js.driver.workspace}/lib.js", "w", encoding="utf-8") as f:
        f.write("let n = 0; exports.next = () => ++n; exports.table = { a: 1 }")
    survives(js, "const lib = require(process.cwd() + '/lib.js'); const { next } = lib", "next() + lib.table.a", "2\n")


def test_names_can_be_declared_again(js):
    js("let a = 1; const b = 2; function f() { return 1 } class C {}; var v = 1; void 0")
    state, _ = save(js.driver)
    with Driver("node") as other:
        new = Session(other)
        assert restore(other, state)["ok"]
        new("const a = 5; let b = 6; function f() { return 7 } class C { static n = 8 }; let v = 9; [a, b, f(), C.n, v]",
            "[ 5, 6, 7, 8, 9 ]\n")


@pytest.mark.parametrize("code, why", [
    ("Promise.resolve(1)", "Promise"), ("new Proxy({}, {})", "proxy"), ("new WeakMap()", "WeakMap"),
    ("Symbol('x')", "symbol"), ("(() => { let n = 0; return () => n++ })()", "variables of another"),
    ("setTimeout(() => {}, 1e6)", "Timeout"), ("{ get a() { return 1 } }", "getter"), ("(() => {}).bind(1)", "not written"),
    ("new (class P { #x = 1 })", "private"), ("process.stdout", "cannot be saved"), ("[1].values()", "cannot be saved"),
    ("require('child_process').spawn('true')", "cannot be saved"), ("new SharedArrayBuffer(1)", "SharedArrayBuffer"),
    ("(function* () {})()", "cannot be saved"), ("new WeakRef({})", "WeakRef"), ("new (require('net').Socket)()", "Socket"),
])
def test_what_cannot_be_saved_is_named(js, code, why):
    js(f"let before = {{ x: 1 }}; let bad = {{ deep: [before, {code}] }}; let after = [before]; void 0")
    state, report = save(js.driver)
    assert why in names(report)["bad"] and report["ok"], report
    with Driver("node") as other:
        assert restore(other, state)["ok"]
        Session(other)("[typeof bad, after[0] === before]", "[ 'undefined', true ]\n")


def test_resources_and_what_was_never_initialised(js):
    js("setInterval(() => {}, 1e6).unref; let c = (() => { throw 1 })()", "", "Uncaught 1\n", 1)
    report = save(js.driver)[1]
    assert "Timeout" in names(report) and "c" in names(report), report


def test_missing_directory_and_module(js):
    os.mkdir(f"{js.driver.workspace}/d")
    with open(f"{js.driver.workspace}/lib.js", "w", encoding="utf-8") as f:
        f.write("exports.a = 1")
    js("process.chdir('d'); const lib = require('../lib.js'.replace('..', require('path').dirname(process.cwd()))); let x = 1; void 0")
    state, _ = save(js.driver)
    os.rmdir(f"{js.driver.workspace}/d")
    os.unlink(f"{js.driver.workspace}/lib.js")
    with Driver("node") as other:
        report = restore(other, state)
        assert report["ok"] and set(names(report)) == {"working directory", "lib"}, report
        Session(other)("x", "1\n")


@pytest.mark.parametrize("harm", [
    "Object.prototype.x = 1; Object.prototype.get = () => hooked++; void 0",
    "Object.defineProperty(Object.prototype, 'value', { get() { hooked++ }, set() { hooked++ }, configurable: true }); void 0",
    "const v8 = require('v8'); v8.serialize = v8.deserialize = () => hooked++; v8.Serializer.prototype.writeValue = () => hooked++;"
    "v8.Deserializer.prototype.readValue = () => hooked++; void 0",
    "JSON.stringify = () => hooked++; Reflect.ownKeys = Object.getOwnPropertyDescriptor = Reflect.apply = () => { hooked++; throw 1 }; void 0",
    "require('util').types.isProxy = require('util').inspect = () => { hooked++; return true }; void 0",
    "Array.prototype[Symbol.iterator] = function* () { hooked++ }; void 0",
    "Array.prototype.map = Array.prototype.filter = Map.prototype.get = Map.prototype.set = WeakMap.prototype.get ="
    " () => { hooked++; throw 1 }; void 0",
    "const fs = require('fs'); fs.openSync = fs.writeSync = fs.readSync = () => { hooked++; throw 1 }; void 0",
    "process.cwd = process.chdir = process.getActiveResourcesInfo = () => { hooked++; throw 1 }; void 0",
    "Error.prepareStackTrace = () => { hooked++ }; void 0",
    "globalThis.Object = globalThis.Map = globalThis.Array = null; void 0",
])
def test_hostile_prototypes(js, harm):
    js("var hooked = 0; let o = { a: new Map([[1, [2]]]), d: new Date(0) }; class K {}; let k = new K(); void 0")
    js(harm)
    state, report = save(js.driver)
    assert report["ok"], report
    found = {v["name"]: v["text"] for v in listed(js.driver)}
    assert found["o"] == "{ a: Map(1) { 1 => [ 2 ] }, d: 1970-01-01T00:00:00.000Z }" and found["hooked"] == "0", found
    assert show(js.driver, "k")["text"] == "K {}"
    with Driver("node") as other:
        new = Session(other)
        assert restore(other, state)["ok"]
        new("[o.a.get(1)[0], k instanceof K]", "[ 2, true ]\n")
    with Driver("node") as other:
        new = Session(other)
        new("var hooked = 0; void 0")
        if "Map = " in harm:                # then there is nothing to make one of
            return
        new(harm)
        restore(other, state)
        new("typeof o", "'object'\n")


def test_list_runs_no_code(js):
    js("let ran = 0; const hook = () => { ran++; return 'x' };"
       "let a = { get g() { return hook() }, toString: hook, valueOf: hook, toJSON: hook, [Symbol.toPrimitive]: hook,"
       "[require('util').inspect.custom]: hook };"
       "Object.defineProperty(a, Symbol.toStringTag, { get: hook });"
       "let p = new Proxy({}, { get: hook, ownKeys: hook, getPrototypeOf: hook, getOwnPropertyDescriptor: hook });"
       "class K { get [Symbol.toStringTag]() { return hook() } }; let k = new K(), n = [p, k];"
       "Object.defineProperty(K.prototype, 'constructor', { get: hook });"
       "Object.defineProperty(globalThis, 'trap', { get: hook, enumerable: true });"
       "let r = /x/; Object.defineProperty(r, 'source', { get: hook }); let d = new Date(0); d.toISOString = hook;"
       "let e = new Error('m'); Object.defineProperty(e, 'name', { get: hook }); Error.prepareStackTrace = hook; void 0")
    found = {v["name"]: v for v in listed(js.driver)}
    assert found["p"]["type"] == "Proxy" and "g: [Getter/Setter]" in found["a"]["text"] and found["r"]["text"] == "/x/"
    for name in found:
        show(js.driver, name)
    save(js.driver)
    js("ran", "0\n")


def test_list_and_show_are_bounded(js):
    js("let big = new Array(3e6).fill('x'.repeat(50)); let s = '😀'.repeat(1e5); let deep = {}; for (let i = 0, o = deep; i < 1e5; i++) o = o.n = {};"
       "let wide = {}; for (let i = 0; i < 1e5; i++) wide['k' + i] = i; for (let i = 0; i < 700; i++) globalThis['w' + i] = '\\u{1f600}'.repeat(200); void 0")
    found = listed(js.driver)
    assert "more" in found[-1] and found[-1]["more"] + len(found) - 1 == 704
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 256 * 1024 and all(len(v.get("text", "")) <= 200 for v in found)
    for name in ("big", "s", "wide"):
        shown = show(js.driver, name)
        assert shown["truncated"] and len(shown["text"]) <= 20000
    assert "n: " in show(js.driver, "deep")["text"]
    assert [v["name"] for v in found[:3]] == ["big", "deep", "s"]


def test_show(js):
    js("let x = 1; function f() { return 'source' }; void 0")
    assert show(js.driver, "x") == {"name": "x", "type": "number", "size": None, "text": "1", "truncated": False}
    assert show(js.driver, "f")["text"] == "function f() { return 'source' }"
    for name in ("nothing", "", "x y", "process", "x; y", "__proto__", "é\"", "x" * 100000):
        assert "error" in show(js.driver, name), name


def test_last_turn_is_left_alone(js):
    js("let n = 0; const i = setInterval(() => n++, 1); globalThis.later = Promise.resolve(5); void 0")
    save(js.driver)
    listed(js.driver)
    js("clearInterval(i); await later", "5\n")


def test_interrupts_mean_nothing(js):
    js("let a = Array.from({ length: 200000 }, (_, i) => ({ i })); void 0")
    pid = js.driver.process.pid
    with Fifos(2) as fifos:
        readers = [fifos.reader(0), fifos.reader(1)]
        token = command(js.driver, "save", fifos.paths)
        for _ in range(20):
            os.kill(pid, signal.SIGINT)
        state, report = wait(js.driver, token, readers)
    assert json.loads(report)["ok"]
    with Driver("node") as other:
        Session(other)("0", "0\n")
        assert restore(other, state, interrupt=lambda: os.kill(other.process.pid, signal.SIGINT))["ok"]
        Session(other)("a[199999].i", "199999\n")


def test_a_reader_that_has_gone_and_paths_that_are_not_there(js):
    js("let a = 'x'.repeat(1e6); void 0")
    with Fifos(2) as fifos:
        reader = fifos.reader(0)
        token = command(js.driver, "save", fifos.paths)
        while True:
            try:
                if os.read(reader, 10):
                    break
            except BlockingIOError:
                pass
        os.close(reader)
        fifos.fds.clear()
        wait(js.driver, token, [])
    for verb, lines in (("save", ["/no/such/1", "/no/such/2"]), ("list", ["/no/such"]), ("show", ["/no/such", "x"]),
                        ("restore", ["/no/such/1", "/no/such/2"]), ("unknown", ["a", "b"]), ("save", [""]), ("__proto__", ["a"])):
        wait(js.driver, command(js.driver, verb, lines), [])
        js("a.length", "1000000\n")


@pytest.mark.parametrize("text", [
    "(process.exit(3), () => {})", "(process.kill(process.pid, 9), () => {})", "(() => { throw 1 })()", "(Object.prototype.x = 1, () => {})",
    "(() => { throw Object.defineProperty(new Error(), 'message', { get() { process.exit(1) } }) })()", "class A { static { throw null } }",
    "(process.stdout.write = 1, () => {})", "0", "(", "}); process.exit(); ({", "(Promise.prototype.then = null, () => {})",
    "(__sandbox_driver.run(), () => {})", "(__sandbox_driver.take(), () => {})",
])
def test_hostile_states(js, text):
    js("let x = 1; function marker() { return 'replaced' } let y = { marker }; void 0")
    state, _ = save(js.driver)
    old = b"function marker() { return 'replaced' }"
    assert state.count(old) == 1
    bad = text.encode().ljust(len(old))
    if len(bad) > len(old):             # V8 writes the length as a varint before it
        bad = text.encode()
        state = state.replace(bytes([len(old)]) + old, bytes([len(bad) & 127 | 128, len(bad) >> 7] if len(bad) > 127 else [len(bad)]) + bad)
    else:
        state = state.replace(old, bad)
    with Driver("node") as other:
        new = Session(other)
        new("0", "0\n")
        try:
            report = restore(other, state)
            if report:
                assert report["ok"]
            assert other.turn("typeof x")["stdout"] in ("'number'\n", "'undefined'\n")
        except (Died, BrokenPipeError):
            pass


def test_corrupted_states(js):
    js("let o = { a: [1, 'x', new Map([[1, 2]])], d: new Date(0), b: Buffer.from('abc') }; class K { m() {} }; let k = new K(); const f = () => 1; void 0")
    state, _ = save(js.driver)
    chance = random.Random(4)
    other = Driver("node")
    try:
        for n in range(200):
            bad = bytearray(state)
            for _ in range(chance.choice((1, 3, 30))):
                at = chance.randrange(len(bad))
                if n % 3 == 0:
                    bad[at] = chance.randrange(256)
                elif n % 3 == 1:
                    del bad[at:at + chance.randrange(1, 40)]
                else:
                    bad = bad[:max(at, 1)]
            try:
                report = restore(other, bytes(bad), 15)
                assert report is None or isinstance(report["ok"], bool)
                answer = other.turn("1 + 1")
                assert answer["stdout"] == "2\n", (bytes(bad), answer)
            except Died:
                pass
            if other.process is None or n % 50 == 49:
                other.close()
                other = Driver("node")
        for bad in (b"garbage", b"\0", b"nix-sandbox node state 1\n"):
            report = restore(other, bad)
            assert not report["ok"] and report["why"]
            assert other.turn("1 + 1")["stdout"] == "2\n"
    finally:
        other.close()

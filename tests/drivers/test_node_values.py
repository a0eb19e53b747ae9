# SPDX-License-Identifier: MIT
"""What turns of node give back besides text: sandbox.result() and sandbox.image()."""
import json
import re

import pytest
from node_session import js  # noqa: F401

PNG = "Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])"


def result(answer):
    [(kind, data)] = answer["values"]
    assert kind == "result"
    return json.loads(data)


def test_result_is_of_its_turn_and_the_last_counts(js):
    assert result(js("sandbox.result(1); sandbox.result({ n: [1, null, true, 'é\\ud800'], f: () => 1 }); 5", "5\n")) == {
        "n": [1, None, True, "é\ud800"]}
    assert js("1", "1\n")["values"] == []
    assert result(js("sandbox.result(7); throw 1", stderr=re.compile("Uncaught 1"), exit_code=1)) == 7
    assert result(js("sandbox.result(8); process.exit(3)", exit_code=3)) == 8
    assert result(js("await new Promise(r => setTimeout(r, 10)); sandbox.result(9)")) == 9


@pytest.mark.parametrize("code", ["undefined", "() => 1", "10n", "(x => (x.x = x, x))({})"])
def test_what_json_has_not_is_an_error(js, code):
    assert js(f"sandbox.result({code})", stderr=re.compile("Uncaught TypeError"), exit_code=1)["values"] == []


def test_images(js):
    answer = js(f"require('fs').writeFileSync('x.png', {PNG}); sandbox.image('x.png');"
                "sandbox.image(new Uint8Array([255, 216, 255, 0]).subarray(0, 3)); sandbox.image(Buffer.from('<svg/>'))")
    assert answer["values"] == [("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff"), ("image/svg+xml", b"<svg/>")]


def test_an_image_is_what_it_was_when_it_was_given(js):
    assert js(f"const b = {PNG}; sandbox.image(b); b.fill(0); b.length", "8\n")["values"] == [("image/png", b"\x89PNG\r\n\x1a\n")]


@pytest.mark.parametrize("code", ["Buffer.alloc(9)", "Buffer.alloc(0)", "5", "'none.png'", "{}", "null"])
def test_images_that_are_none(js, code):
    assert js(f"sandbox.image({code})", stderr=re.compile("Uncaught .*Error"), exit_code=1)["values"] == []


def test_large_values(js):
    assert len(result(js("sandbox.result('x'.repeat(5000000))"))) == 5000000
    js("1", "1\n")


def test_broken_globals_do_no_harm(js):
    js("Buffer.from = Buffer.concat = JSON.stringify = Array.prototype.filter = () => { throw 1 }; 0", "0\n")
    assert result(js("sandbox.result({ a: 1 })")) == {"a": 1}
    js("sandbox.result = 5; sandbox.result({}); delete globalThis.sandbox", "true\n")
    js("const sandbox = 6; sandbox", "6\n")

# SPDX-License-Identifier: MIT
"""Pictures, results and files of turns through agent, daemon and API; also what code makes up."""
import base64

import pytest

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")
# How code reaches its driver's socket and token, which nothing hides from it.
FORGE = ("import os, gc\n"
         "control = max(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')\n"
         "              and os.readlink(f'/proc/self/fd/{fd}').startswith('socket:'))\n"
         "def say(data):\n    while data: data = data[os.write(control, data):]\n"
         "token = sandbox.result.__globals__['owed'][0]\n")


def pictures(reply):
    return [(p["type"], base64.b64decode(p["data"], validate=True)) for p in reply["pictures"]]


def test_pictures_result_and_files(daemon, name):
    reply = daemon.run(f"sandbox.image({PNG!r}); sandbox.image(b'<svg>\\xc3\\xa9</svg>'); sandbox.result([1, {{'a': None}}])\n"
                       "import os; os.mkdir('out'); open('out/é.txt', 'w').write('abc'); 5", name, "python")
    assert reply["stdout"] == "5\n" and reply["images"] == 2 and reply["result"] == [1, {"a": None}] and reply["notice"] is None
    assert pictures(reply) == [("image/png", PNG), ("image/svg+xml", "<svg>é</svg>".encode())]
    assert reply["outputs"] == [{"path": "/workspace/out/é.txt", "bytes": 3}]

    reply = daemon.run("1", name, "python")
    assert (reply["images"], reply["pictures"], reply["result"], reply["outputs"]) == (0, [], None, [])


def test_every_interpreter(daemon, name):
    assert daemon.run("sandbox.result({ n: 3 })", name, "node")["result"] == {"n": 3}
    reply = daemon.run("echo '[true]' | sandbox-result; mkdir out; echo a >out/a; exit 4", name)
    assert reply["result"] == [True] and reply["exit_code"] == 4 and reply["outputs"] == [{"path": "/workspace/out/a", "bytes": 2}]
    assert daemon.run("x=$(<out/a)", name)["outputs"] == []
    assert daemon.run("sandbox-result '\"x\"'", env="shell")["result"] == "x"


@pytest.mark.parametrize("code", ["sandbox-result 'NaN'", "sandbox-result '{'", "sandbox-result 1 2", "sandbox-result $'\\xff'",
                                  "sandbox-result 123456789012345678901", "printf '[%.0s' {1..100} | sandbox-result"])
def test_results_that_are_no_json(daemon, code):
    reply = daemon.run(code)
    assert reply["result"] is None and "The result was left out" in reply["notice"] and reply["exit_code"] == 0


def test_what_is_over_the_limits_is_said(daemon):
    reply = daemon.run(f"for _ in range(100): sandbox.image({PNG!r})", env="python")
    assert len(reply["pictures"]) == reply["images"] == 16 and reply["notice"].startswith("Pictures or results left out: 84.")
    reply = daemon.run(f"sandbox.image({PNG!r} + bytes(50_000_000)); sandbox.result('x' * 300000)", env="python")
    assert reply["pictures"] == [] and reply["result"] is None and reply["notice"].startswith("Pictures or results left out: 2.")
    assert "/workspace/out" in reply["notice"]


def test_the_largest_reply(daemon):
    reply = daemon.run(f"sandbox.image({PNG!r} + bytes((2 << 20) - {len(PNG)})); sandbox.image({PNG!r} + bytes(1800000))\n"
                       "sandbox.result('r' * 200000)\nimport os\nos.write(1, bytes(200000)); os.write(2, bytes(200000)); None",
                       env="python")
    assert [len(data) for _, data in pictures(reply)] == [2 << 20, 1800000 + len(PNG)] and len(reply["result"]) == 200000
    assert len(reply["stdout"]) > 131072


def test_while_it_runs_there_are_none(daemon, name):
    reply = daemon.run(f"sandbox.image({PNG!r}); sandbox.result(1); import time; time.sleep(1)", name, "python", answer_after_ms=0)
    assert reply["exit_code"] is None and reply["pictures"] == [] and reply["result"] is None
    reply = daemon.call("Wait", session=name, project="/test")
    assert reply["result"] == 1 and pictures(reply) == [("image/png", PNG)]


def test_values_of_failing_and_interrupted_turns(daemon, name):
    assert daemon.run("sandbox.result(1); 1 / 0", name, "python")["result"] == 1
    reply = daemon.run("sandbox.result(2)\nwhile True: pass", name, "python", timeout_ms=300)
    assert reply["timed_out"] and reply["result"] == 2 and reply["state"] == "kept"
    assert daemon.run("import os; sandbox.result(3); os._exit(0)", name, "python")["result"] is None


def test_forgeries_spoil_their_own_turn_only(daemon, name):
    daemon.run(FORGE, name, "python")
    forge = "token = sandbox.result.__globals__['owed'][0]\n"
    reply = daemon.run(forge + "say(b'value %s image/png 5\\nGIF89value %s result 4\\n1, 2' % (token, token))", name, "python")
    assert reply["pictures"] == [] and reply["result"] is None and reply["state"] == "kept"
    assert "Pictures left out: 1." in reply["notice"] and "The result was left out" in reply["notice"]
    reply = daemon.run("say(b'value 0123456789abcdef result 3\\n666value x y 3\\nabc')", name, "python")
    assert reply["result"] is None and reply["notice"] is None
    reply = daemon.run(forge + "say(b'value %s result 900000\\n' % token)", name, "python", timeout_ms=300)
    assert reply["timed_out"] and reply["state"] == "lost" and reply["result"] is None
    assert daemon.run("sandbox.result(5)", name, "python")["result"] == 5


def test_names_in_out(daemon, name):
    reply = daemon.run("mkdir -p out/dir; touch out/ok out/$'\\e[31m' out/$'a\\nb' out/dir/below; ln -s /etc/passwd out/link", name)
    assert reply["outputs"] == [{"path": "/workspace/out/ok", "bytes": 0}] and "not named: 2." in reply["notice"]
    reply = daemon.run("for i in {1..40}; do echo >out/$i; done", name)
    assert len(reply["outputs"]) == 32 and "not named: 8." in reply["notice"]
    assert daemon.run("rm -r out; ln -s /usr/bin out", name)["outputs"] == []

# SPDX-License-Identifier: MIT
"""What editors really do to a server, beyond the protocol: opening messages, cancelling, killing, pipes
that are full, environments that are stripped. Behaviour was recorded from Claude Code, Codex, Gemini CLI and
opencode, and read in VS Code and Zed. The daemon is a fake."""
import os
import signal
import time

import pytest

from fake_sandboxd import FakeSandboxd
from stdio_client import META, clean_environment, cpu_ticks, eventually, rss_kib, text


# ---- opening messages


def test_claude_code(start, fake, tmp_path):
    env = {**os.environ, "CLAUDE_PROJECT_DIR": str(tmp_path)}
    shim = start("--socket", fake.path, sockets=True, env=env, cwd="/")
    meta = {**META, "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.332"}}
    found = shim.ask("server/discover", {"_meta": meta}, rid=0)["result"]
    assert "2026-07-28" in found["supportedVersions"]
    assert shim.ask("tools/list", {"_meta": meta})["result"]["tools"]
    result = shim.ask("tools/call", {"name": "run", "arguments": {"code": "out hi"}, "_meta": {
        **meta, "progressToken": 2, "claudecode/toolUseId": "toolu_01"}})["result"]
    assert "hi" in text(result)
    assert fake.calls[-1][1]["project"] == str(tmp_path)


def test_codex(start, fake, tmp_path):
    shim = start("--socket", fake.path, env=clean_environment(), cwd=tmp_path)
    reply = shim.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {
        "elicitation": {"form": {}, "url": {}}, "experimental": {"codex/sandbox-state": {"version": "1"}}},
        "clientInfo": {"name": "codex-mcp-client", "title": "Codex", "version": "0.171.0"}}, rid=0)
    assert reply["result"]["protocolVersion"] == "2025-06-18"
    shim.notify("notifications/initialized")
    assert shim.ask("tools/list", {"_meta": {"progressToken": 0}})["result"]["tools"]
    result = shim.call({"code": "out hi"}, progressToken=1, callId="call_1", threadId="t", sessionId="s")
    assert "hi" in text(result)
    assert fake.calls[-1][1]["project"] == os.path.realpath(tmp_path)


def test_gemini(start, fake):
    shim = start("--socket", fake.path, sockets=True)
    shim.ask("initialize", {
        "protocolVersion": "2025-06-18", "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "gemini-cli-mcp-client", "version": "0.61.0"}}, rid=0)
    shim.notify("notifications/initialized")
    assert shim.ask("ping")["result"] == {}
    for method in ("prompts/list", "resources/list"):
        assert shim.ask(method)["error"]["code"] == -32601
    shim.notify("notifications/roots/list_changed")
    token = "0fd0a7a9-4a55-4d4f-8c2f-9c7c8f6c1b0e"
    assert "hi" in text(shim.call({"code": "out hi", "wait_for_previous": False}, progressToken=token))


def test_opencode_cancels_what_is_over(start, fake):
    shim = start("--socket", fake.path, sockets=True)
    shim.initialize("2025-11-25")
    for n in range(3):
        rid = shim.start_call({"code": f"out {n}", "session": "dev"}, progressToken=n)
        assert str(n) in text(shim.answer(rid)["result"])
        shim.notify("notifications/cancelled", {"requestId": rid, "reason": "finished"})
    assert "turn 4" in shim.run("out more", session="dev")
    assert fake.abandoned == []


def test_vscode_and_zed(start, fake, tmp_path):
    shim = start("--socket", fake.path, "--project", str(tmp_path))
    shim.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {
        "roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}},
        "tasks": {"list": {}, "cancel": {}}},
        "clientInfo": {"name": "Visual Studio Code", "version": "1.131"}}, rid=0)
    shim.notify("notifications/initialized")
    assert shim.ask("logging/setLevel", {"level": "info"})["error"]["code"] == -32601
    assert "hi" in text(shim.call({"code": "out hi"}))
    assert shim.close() < 1


def test_probed_and_killed(start, fake):
    for _ in range(3):
        shim = start("--socket", fake.path)
        assert shim.ask("server/discover", {"_meta": META})["result"]
        shim.process.send_signal(signal.SIGTERM)
        assert shim.wait() < 1
    assert fake.calls == []


# ---- several things at once


def test_ping_lists_and_other_calls_while_one_runs(shim):
    slow = shim.start_call({"code": "sleep 1.5\nout slept"})
    start = time.monotonic()
    assert shim.ask("ping")["result"] == {} and shim.ask("tools/list")["result"]
    assert "side" in shim.run("out side")
    assert time.monotonic() - start < 1
    assert "slept" in text(shim.answer(slow)["result"])


def test_parallel_calls_each_have_a_connection(shim, fake):
    start = time.monotonic()
    ids = [shim.start_call({"code": f"sleep 1\nout n{n}"}) for n in range(20)]
    for n, rid in enumerate(ids):
        assert f"n{n}\n" in text(shim.answer(rid)["result"])
    assert time.monotonic() - start < 4
    assert fake.count("Run") == 20
    eventually(lambda: len(fake.connections) <= 4)


def test_too_many_calls_are_refused(shim):
    ids = [shim.start_call({"code": "sleep 8"}) for _ in range(64)]
    assert "Too many calls" in text(shim.call({"code": "out"}))
    for rid in ids:
        shim.notify("notifications/cancelled", {"requestId": rid})
    assert "fine" in shim.run("out fine")


def test_one_connection_serves_calls_in_turn(shim, fake):
    for _ in range(5):
        shim.run("out")
    assert fake.count("Run") == 5 and fake.count("GetVersion") == 1


# ---- cancelling


def test_cancelled_call_is_not_answered_and_its_turn_ends(shim, fake):
    rid = shim.start_call({"code": "sleep 20", "session": "dev"})
    eventually(lambda: fake.count("Run") == 1)
    shim.notify("notifications/cancelled", {"requestId": rid, "reason": "user"})
    eventually(lambda: len(fake.abandoned) == 1)
    assert "turn 2" in shim.run("out", session="dev")
    assert shim.answer(rid, patience=0.2) is None


def test_cancel_goes_by_request(shim, fake):
    kept = shim.start_call({"code": "sleep 1\nout kept", "session": "dev"})
    gone = shim.start_call({"code": "sleep 20", "session": "dev"})
    eventually(lambda: fake.count("Run") == 2)
    for rid in (str(gone), 999, None, {"a": 1}):
        shim.notify("notifications/cancelled", {"requestId": rid})
    shim.notify("notifications/cancelled")
    shim.notify("notifications/cancelled", {"requestId": gone})
    assert "kept" in text(shim.answer(kept)["result"])
    assert [call["code"] for call in fake.abandoned] == ["sleep 20"]


def test_cancel_while_connecting(start, tmp_path):
    slow = FakeSandboxd(str(tmp_path / "slow"), version_delay=1)
    shim = start("--socket", slow.path)
    shim.initialize()
    rid = shim.start_call({"code": "out never"})
    shim.notify("notifications/cancelled", {"requestId": rid})
    assert "later" in shim.run("out later")
    assert [call["code"] for name, call in slow.calls if name.endswith("Run")] == ["out later"]
    assert shim.answer(rid, patience=0.1) is None
    slow.stop()


# ---- progress


def test_progress_with_a_token(shim):
    shim.call({"code": "sleep 4.5"}, progressToken="tok")
    progress = shim.progress("tok")
    assert len(progress) == 2
    assert progress[0]["progress"] < progress[1]["progress"]
    assert all(p["message"] for p in progress)
    assert shim.lines[-1]["id"], "nothing follows the result"


def test_no_progress_without_a_token_or_for_fast_calls(shim):
    shim.call({"code": "sleep 1.5"})
    shim.call({"code": "out"}, progressToken=1)
    shim.call({"code": "out"}, progressToken={"a": 1})
    assert not [m for m in shim.lines if m.get("method")]


# ---- the end


def gone_mid_turn(shim, fake, end):
    """Starts a turn, ends the shim by a function, and sees both go."""
    shim.start_call({"code": "sleep 20", "session": "dev"})
    eventually(lambda: fake.count("Run") == 1)
    end()
    assert shim.wait() < 0.5
    eventually(lambda: len(fake.abandoned) == 1)


def test_end_of_input_mid_turn(shim, fake):
    gone_mid_turn(shim, fake, shim.stdin.close)
    assert shim.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_mid_turn(shim, fake, number):
    gone_mid_turn(shim, fake, lambda: shim.process.send_signal(number))
    assert shim.process.returncode == 0


def test_end_of_input_on_sockets(start, fake):
    shim = start("--socket", fake.path, sockets=True)
    shim.initialize()
    gone_mid_turn(shim, fake, shim.stdin.close)


def test_reader_gone_mid_turn(start, fake):
    shim = start("--socket", fake.path)
    shim.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
               b'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
               b'"params":{"name":"run","arguments":{"code":"sleep 20"}}}\n')
    eventually(lambda: fake.count("Run") == 1)
    shim.stdout.close()
    assert shim.wait() < 0.5
    eventually(lambda: len(fake.abandoned) == 1)


@pytest.mark.parametrize("end", ["eof", "signal"])
def test_end_while_connecting(start, tmp_path, end):
    slow = FakeSandboxd(str(tmp_path / "slow"), version_delay=30)
    shim = start("--socket", slow.path)
    shim.initialize()
    shim.start_call({"code": "out"})
    eventually(lambda: slow.count("GetVersion") == 1)
    assert shim.ask("ping", patience=1)
    if end == "eof":
        shim.stdin.close()
    else:
        shim.process.send_signal(signal.SIGTERM)
    assert shim.wait() < 1
    slow.stop()


def test_answers_are_flushed_at_the_end_of_input(start, fake):
    shim = start("--socket", fake.path)
    shim.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
               b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    shim.stdin.close()
    shim.wait()
    assert shim.stdout.read().count(b"\n") == 2


def test_idle_costs_nothing(shim):
    shim.run("out")
    before = cpu_ticks(shim.process.pid)
    time.sleep(1)
    assert cpu_ticks(shim.process.pid) - before <= 1
    assert rss_kib(shim.process.pid) <= 3072

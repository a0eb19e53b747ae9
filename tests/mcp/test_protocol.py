# SPDX-License-Identifier: MIT
"""The shim's side of the protocol, both eras, message by message. The daemon is a fake."""
import base64
import json

import pytest

from stdio_client import META, MODERN, text

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def modern(**params):
    """Parameters of a request of the stateless revision."""
    return {**params, "_meta": {**META, **params.get("_meta", {})}}


# ---- the handshake revisions


@pytest.mark.parametrize("version", HANDSHAKE)
def test_supported_version_is_echoed(start, fake, version):
    reply = start("--socket", fake.path).initialize(version)
    assert reply["result"]["protocolVersion"] == version
    assert set(reply["result"]) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert reply["result"]["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("params", [{"protocolVersion": "2031-01-01"}, {"protocolVersion": MODERN},
                                    {"protocolVersion": 7}, {}, None])
def test_unknown_version_gets_our_latest(start, fake, params):
    reply = start("--socket", fake.path).ask("initialize", params)
    assert reply["result"]["protocolVersion"] == "2025-11-25"


def test_results_of_the_handshake_era_have_no_new_members(shim):
    assert set(shim.ask("tools/list")["result"]) == {"tools"}
    assert shim.ask("ping")["result"] == {}
    result = shim.call({"code": "out 1"})
    assert set(result) == {"content", "isError", "_meta"}
    assert set(result["_meta"]) == {"io.nixsandbox/turn"}


def test_requests_before_initialize(start, fake):
    shim = start("--socket", fake.path)
    assert shim.ask("ping")["result"] == {}
    for method in ("tools/list", "tools/call", "server/discover", "resources/list", "no/such"):
        assert shim.ask(method, {})["error"]["code"] == -32602, method
    assert shim.initialize()["result"]
    assert fake.calls == []


@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "logging/setLevel", "no/such/method",
                                    "server/discover", "completion/complete"])
def test_unknown_methods(shim, method):
    assert shim.ask(method, {})["error"]["code"] == -32601


# ---- the stateless revision


def test_stateless_requests_need_no_initialize(start, fake):
    shim = start("--socket", fake.path)
    tools = shim.ask("tools/list", modern())["result"]
    assert tools["resultType"] == "complete" and tools["ttlMs"] > 0 and tools["cacheScope"] == "private"
    assert tools["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    result = shim.ask("tools/call", modern(name="run", arguments={"code": "out hi"}))["result"]
    assert result["resultType"] == "complete" and "hi" in text(result)
    assert set(result["_meta"]) == {"io.modelcontextprotocol/serverInfo", "io.nixsandbox/turn"}


def test_discover(start, fake):
    result = start("--socket", fake.path).ask("server/discover", modern())["result"]
    assert result["supportedVersions"] == [MODERN]
    assert result["resultType"] == "complete" and result["instructions"] and result["ttlMs"] > 0
    assert result["capabilities"] == {"tools": {}}


def test_unsupported_version(start, fake):
    shim = start("--socket", fake.path)
    for version in ("2031-01-01", "2025-11-25"):
        meta = {**META, "io.modelcontextprotocol/protocolVersion": version}
        error = shim.ask("tools/list", {"_meta": meta})["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": [MODERN], "requested": version}


def test_missing_capabilities(start, fake):
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    assert start("--socket", fake.path).ask("tools/list", {"_meta": meta})["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such"])
def test_removed_methods(start, fake, method):
    assert start("--socket", fake.path).ask(method, modern())["error"]["code"] == -32601


def test_subscription_is_acknowledged_and_stays_open(start, fake):
    shim = start("--socket", fake.path)
    rid = shim.request("subscriptions/listen", modern(notifications={"toolsListChanged": True}))
    assert shim.ask("tools/list", modern())
    shim.notify("notifications/cancelled", {"requestId": rid})
    assert shim.ask("tools/list", modern())
    assert shim.lines[0]["method"] == "notifications/subscriptions/acknowledged"
    assert shim.lines[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == rid
    assert all(m.get("id") != rid for m in shim.lines)


def test_both_eras_in_one_process(shim):
    assert "resultType" in shim.ask("tools/list", modern())["result"]
    assert "resultType" not in shim.ask("tools/list")["result"]


# ---- tools


def test_tool_list_is_stable_small_and_flat(shim):
    first, second = (shim.ask("tools/list")["result"]["tools"] for _ in range(2))
    assert first == second
    assert [tool["name"] for tool in first] == ["run", "session"]
    assert len(json.dumps(first)) < 6000
    for tool in first:
        assert tool["inputSchema"]["type"] == "object" and "outputSchema" not in tool
        assert not {"oneOf", "anyOf", "allOf", "$ref"} & set(tool["inputSchema"])
        assert all(p["type"] in ("string", "number", "integer") for p in tool["inputSchema"]["properties"].values())
        assert set(tool["annotations"]) == {"title", "readOnlyHint", "destructiveHint", "idempotentHint",
                                            "openWorldHint"}


def test_what_the_daemon_is_asked_before_the_first_call(start, fake):
    shim = start("--socket", fake.path)
    shim.initialize()
    shim.ask("server/discover", modern())
    assert fake.calls == [] and not fake.connections
    shim.ask("tools/list")
    assert [method for method, _ in fake.calls] == ["io.nixsandbox.GetVersion", "io.nixsandbox.Environments"]


def described(shim, params=None):
    """What the tools are said to reach."""
    run, session = shim.ask("tools/list", params)["result"]["tools"]
    assert session["annotations"]["openWorldHint"] is False
    return run["description"].partition("as text. ")[2].partition(". The project")[0], run["annotations"]["openWorldHint"]


UNKNOWN = ("There is no network but what an environment allows (see the session tool's action environments)", True)


def test_tools_say_what_may_be_reached(shim, fake):
    assert described(shim) == ("There is no network", False)
    fake.networks["node"] = "nothing"
    assert described(shim) == ("There is no network", False)
    fake.networks["python"] = "pypi.example, *.files.example:443"
    for params in (None, modern()):
        assert described(shim, params) == (
            "Network, through a proxy for HTTP(S) and SOCKS5 only: python may reach pypi.example, *.files.example:443; "
            "nothing else may be reached", True)
    fake.networks["node"] = fake.networks["python"] = ", ".join(f"host-{n}.example" for n in range(200))
    said, is_open = described(shim)
    assert is_open and "python, node may reach host-0.example, " in said and " and more; nothing else" in said and len(said) < 400
    assert len(json.dumps(shim.ask("tools/list"))) < 6000


def test_tools_are_listed_without_a_daemon(start, fake, tmp_path):
    shim = start("--socket", str(tmp_path / "nobody"))
    shim.initialize()
    assert described(shim) == UNKNOWN
    shim = start("--socket", fake.path)
    shim.initialize()
    fake.do_Environments = lambda *_: fake.error("Internal", "It is broken.")
    assert described(shim) == UNKNOWN
    fake.do_Environments = lambda *_: b"\xff\xfe{]"
    assert described(shim) == UNKNOWN
    fake.do_Environments = lambda *_: {"environments": 5}
    assert described(shim) == UNKNOWN
    fake.stop()
    assert described(shim) == UNKNOWN


def test_a_slow_daemon_does_not_hold_up_the_list(shim, fake):
    fake.environments_delay = 5
    asked = [shim.request("tools/list") for _ in range(3)]
    shim.notify("notifications/cancelled", {"requestId": asked[1]})
    shim.request("tools/list", rid=asked[2])
    answers = [shim.answer(asked[0])["result"], shim.answer(asked[2])]
    assert "but what an environment allows" in json.dumps(answers[0])
    assert answers[1]["error"]["code"] == -32600, "that id was in use"
    fake.environments_delay = 0
    assert shim.run("out fine").startswith("fine")
    assert described(shim) == ("There is no network", False)
    assert all(m.get("id") != asked[1] for m in shim.lines)


def test_list_at_the_end_of_input(start, fake):
    fake.environments_delay = 5
    shim = start("--socket", fake.path)
    shim.initialize()
    rid = shim.request("tools/list")
    shim.stdin.close()
    assert len(shim.answer(rid)["result"]["tools"]) == 2
    assert shim.wait() < 1


@pytest.mark.parametrize("params", [
    {}, {"name": 5}, {"arguments": {"code": "out"}}, {"name": "nothing", "arguments": {}},
    {"name": "run", "arguments": "{}"}, {"name": "run", "arguments": []}])
def test_bad_calls_are_protocol_errors(shim, params):
    assert shim.ask("tools/call", params)["error"]["code"] == -32602


@pytest.mark.parametrize("arguments", [
    {}, {"code": 5}, {"code": "out", "timeout": "5"}, {"code": "out", "x": 1},
    {"code": "out", "env": "no-such"}, {"code": "out", "session": "../x"}])
def test_bad_arguments_are_results_that_say_what_to_do(shim, arguments):
    result = shim.call(arguments)
    assert result["isError"] is True and len(text(result)) > 20
    assert "fine" in shim.run("out fine")


def test_failing_code_is_an_error_result(shim):
    result = shim.call({"code": "out partial\nerr why\nexit 3", "session": "dev"})
    assert result["isError"] is True
    assert text(result) == "partial\n--- stderr ---\nwhy\n[exit 3 · session dev (new) · turn 1 · 12 ms]"
    assert result["_meta"]["io.nixsandbox/turn"]["exit_code"] == 3


def test_output_is_never_bare_json(shim):
    for value in ("42", "[1, 2]", '"x"', "null"):
        with pytest.raises(ValueError):
            json.loads(shim.run(f"out {value}"))


def test_early_answer_and_wait(shim):
    result = shim.call({"code": "out so far\nearly", "session": "dev"})
    assert result["isError"] is False
    assert "still running" in text(result) and 'action "wait" and session "dev"' in text(result)
    assert "waited" in text(shim.call({"action": "wait", "session": "dev"}, tool="session"))


def test_every_call_says_when_to_answer(shim, fake, tmp_path):
    shim.run("out", timeout=90)
    method, parameters = fake.calls[-1]
    assert len(parameters.pop("tag")) == 24
    assert (method, parameters) == ("io.nixsandbox.Run", {
        "code": "out", "project": str(tmp_path), "project_mode": "read-only", "timeout_ms": 90000, "answer_after_ms": 50000})


@pytest.mark.parametrize("arguments, mode", [([], "read-only"), (["--project-mode", "none"], "none")])
def test_a_restored_session_has_the_project_as_well(start, fake, tmp_path, arguments, mode):
    shim = start("--socket", fake.path, "--project", str(tmp_path), *arguments)
    shim.initialize()
    shim.call({"action": "restore", "session": "a", "name": "b"}, tool="session")
    method, parameters = fake.calls[-1]
    assert method == "io.nixsandbox.Restore"
    assert parameters == {"session": "a", "name": "b", "project": str(tmp_path), "project_mode": mode}


@pytest.mark.parametrize("given, sent", [({}, {}), ({"steps": None}, {}), ({"steps": 1}, {"steps": 1}),
                                         ({"steps": 3.0}, {"steps": 3}), ({"steps": 1000}, {"steps": 1000})])
def test_rollback_by_some_steps(start, fake, tmp_path, given, sent):
    shim = start("--socket", fake.path, "--project", str(tmp_path))
    shim.initialize()
    shim.call({"action": "rollback", "session": "a", **given}, tool="session")
    assert fake.calls[-1] == ("io.nixsandbox.Rollback", {"session": "a", "project": str(tmp_path), **sent})


@pytest.mark.parametrize("steps, why", [(0, "whole number from 1 to 1000"), (-1, "whole number from 1 to 1000"),
                                        (1001, "whole number from 1 to 1000"), (1.5, "whole number from 1 to 1000"),
                                        (1e300, "whole number from 1 to 1000"), ("2", "must be a number"),
                                        (True, "must be a number"), ([2], "must be a number")])
def test_rollback_by_what_is_no_number_of_steps(shim, fake, steps, why):
    before = len(fake.calls)
    result = shim.call({"action": "rollback", "session": "a", "steps": steps}, tool="session")
    assert result["isError"] is True and "steps" in text(result) and why in text(result)
    assert len(fake.calls) == before


def test_session_actions(shim):
    shim.run("out", session="a")

    def session(**arguments):
        return text(shim.call(arguments, tool="session"))

    assert session(action="list").startswith("a · id id-a · default")
    assert "node: nodejs" in session(action="environments")
    assert "echo 1" in session(action="history", session="a")
    assert "was interrupted" in session(action="interrupt", session="a")
    assert "has ended" in session(action="kill", session="a")
    assert "refused: NoSuchSession" in session(action="kill", session="a")
    assert "starts fresh" in session(action="reset", session="a")


def test_long_output_is_cut_in_the_middle(shim):
    answer = shim.run("fill 200000")
    assert 10000 <= len(answer) < 10500
    assert answer.startswith("00000000\n00000001\n") and "characters left out" in answer


def test_text_arrives_unchanged(shim):
    strange = 'héllo ☃ 😀 \u2028\u2029 \\n "q" \t \x1b[31m \x7f'
    assert shim.run("out " + strange).startswith(strange + "\n")


# ---- pictures, results, files


def picture(kind, data):
    return {"type": kind, "data": base64.b64encode(data).decode()}


def with_pictures(*pictures, also=""):
    return {"code": f"out text\nset pictures={json.dumps(pictures)}\n{also}"}


def test_images_are_blocks_after_the_text(shim):
    png, jpeg = b"\x89PNG\r\n\x1a\n" + bytes(100), b"\xff\xd8\xff" + bytes(50)
    result = shim.call(with_pictures(picture("image/png", png), picture("image/jpeg", jpeg)))
    head, *blocks = result["content"]
    assert head["text"].startswith("text\n[exit 0 ") and "2 pictures" in head["text"] and not result["isError"]
    assert blocks == [
        {"type": "image", "data": base64.b64encode(png).decode(), "mimeType": "image/png"},
        {"type": "image", "data": base64.b64encode(jpeg).decode(), "mimeType": "image/jpeg"}]


def test_images_of_failing_code_and_of_both_eras(start, fake):
    shim = start("--socket", fake.path)
    reply = shim.ask("tools/call", modern(name="run", arguments=with_pictures(picture("image/png", b"p"), also="exit 3")))
    assert reply["result"]["isError"] and [b["type"] for b in reply["result"]["content"]] == ["text", "image"]
    assert reply["result"]["resultType"] == "complete" and "structuredContent" not in reply["result"]


def test_svg_and_html_are_text(shim):
    content = shim.call(with_pictures(picture("image/svg+xml", b"<svg/>"), picture("text/html", "é".encode())))["content"]
    assert [b["type"] for b in content] == ["text"] * 3
    assert content[1]["text"].endswith(":\n<svg/>") and content[2]["text"].endswith(":\né")
    content = shim.call(with_pictures(picture("image/svg+xml", b"<svg>" + bytes(20000))))["content"]
    assert len(content) == 1 and "1 of 1 pictures is not shown" in content[0]["text"]


def test_images_of_one_reply_have_a_bound(shim):
    content = shim.call(with_pictures(*[picture("image/png", bytes(500_000))] * 2, picture("image/png", b"small")))["content"]
    assert [len(b.get("data", "")) for b in content] == [0, 666668, 8]
    assert "1 of 3 pictures is not shown" in content[0]["text"] and "/workspace/out" in content[0]["text"]


@pytest.mark.parametrize("result", [{"a": [1, None, "é"]}, [1, 2], 42, "text", False])
def test_results_are_shown(shim, result):
    answer = shim.run("set result=" + json.dumps(result))
    shown = answer.partition("result: ")[2].partition("\n[exit")[0]
    assert json.loads(shown) == result and not answer.startswith(("[1", "4", "{"))


def test_files_are_named(shim):
    outputs = [{"path": "/workspace/out/plot 1.png", "bytes": 12345}, {"path": "/workspace/out/é", "bytes": 3}]
    assert "\nfiles: out/plot 1.png (12 kB), out/é (3 B)\n[exit" in shim.run("out x\nset outputs=" + json.dumps(outputs))
    many = [{"path": f"/workspace/out/{n:0250}", "bytes": n} for n in range(32)]
    answer = shim.run("set outputs=" + json.dumps(many))
    assert len(answer) < 1500 and " and 28 more\n" in answer


# ---- framing and ids


@pytest.mark.parametrize("rid", [0, -1, 2**53 + 1, 2**63 - 1, 2**64 - 1, "", "a", 'q"\\\n☃', "2"])
def test_ids_come_back_as_they_were(shim, rid):
    assert shim.ask("ping", rid=rid)["id"] == rid
    reply = shim.ask("tools/call", {"name": "run", "arguments": {"code": "out hi"}}, rid=rid)
    assert "hi" in text(reply["result"])


BATCH = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
BAD_LINES = [
    (b"not json", -32700), (b"\xff\xfe", -32700), (b"[" * 5000, -32700), (b'{"jsonrpc":"2.0"', -32700),
    (b"{}", -32600), (b"null", -32600), (b"[]", -32600), (BATCH, -32600),
    (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","method":5}', -32600),
]


@pytest.mark.parametrize("line,code", BAD_LINES)
def test_bad_line_gets_one_error_without_id(shim, line, code):
    before = len(shim.lines)
    shim.write(line + b"\n")
    assert shim.ask("ping", rid="after")
    errors = [m for m in shim.lines[before:] if m["id"] is None]
    assert [m["error"]["code"] for m in errors] == [code]
    assert len(shim.lines) == before + 2


@pytest.mark.parametrize("line", [line for line, _ in BAD_LINES])
def test_bad_line_before_the_handshake_is_only_logged(start, fake, line):
    shim = start("--socket", fake.path)
    shim.write(line + b"\n")
    assert shim.initialize()
    assert len(shim.lines) == 1


@pytest.mark.parametrize("line", [
    b"", b"   ", b"\r",
    b'{"jsonrpc":"2.0","id":77,"result":{}}',
    b'{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","method":"notifications/unknown"}',
    b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'])
def test_lines_that_get_no_answer(shim, line):
    before = len(shim.lines)
    shim.write(line + b"\n")
    assert shim.ask("ping")
    assert len(shim.lines) == before + 1


def test_wrong_version_of_json_rpc_is_answered_by_id(shim):
    shim.write(b'{"jsonrpc":"1.0","id":"v1","method":"ping"}\n')
    assert shim.answer("v1")["error"]["code"] == -32600


def test_carriage_returns_pieces_and_a_byte_order_mark(start, fake):
    shim = start("--socket", fake.path)
    shim.start_reading()
    line = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\r\n\r\n'
    for i in range(0, len(line), 7):
        shim.write(line[i:i + 7])
    assert shim.answer(1)["result"]


@pytest.mark.parametrize("head,tail", [
    (b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"x":"', b'"}}'),
    (b'{"method":"tools/call","params":{"x":"', b'"},"jsonrpc":"2.0","id":"long"}')])
def test_line_over_the_limit(shim, head, tail):
    shim.write(head + b"a" * (9 << 20) + tail + b"\n")
    assert shim.answer("long")["error"]["code"] == -32600
    assert "fine" in shim.run("out fine")


def test_big_code_is_passed_on(shim, fake):
    shim.run("out 1\n" + "#" * 1000000)
    assert len(fake.calls[-1][1]["code"]) == 1000006


def test_duplicate_id_in_flight_is_refused(shim):
    rid = shim.start_call({"code": "sleep 1\nout first"})
    shim.start_call({"code": "out second"})
    shim.request("tools/call", {"name": "run", "arguments": {"code": "out third"}}, rid=rid)
    assert shim.answer(rid)["error"]["code"] == -32600

# SPDX-License-Identifier: MIT
"""Variables of a session: the API's Variables and Variable, sandboxctl vars. What drivers say is hostile."""
import json
import os
import subprocess

import pytest

from daemonlib import VarlinkError


def variables(daemon, session, interpreter=None):
    """{(interpreter, name): entry}"""
    reply = daemon.call("Variables", session=session, project=daemon.project, interpreter=interpreter)
    found = {(v["interpreter"], v["name"]): v for v in reply["variables"]}
    assert len(found) == len(reply["variables"])
    return found


def variable(daemon, session, name, interpreter=None):
    return daemon.call("Variable", session=session, project=daemon.project, name=name, interpreter=interpreter)["variable"]


def refused(name, function, *args, **more):
    with pytest.raises(VarlinkError) as e:
        function(*args, **more)
    assert e.value.name == name and (e.value.message or name.startswith("org."))
    return e.value


def ctl(daemon, *args):
    return daemon.ctl(*args, env={**os.environ, "PROJECT_DIR": daemon.project})


def test_of_two_interpreters(daemon, name):
    daemon.run("x = 42\ns = 'a\\x1b[31m\\nb'\ndef f(): pass", name, "default", interpreter="python")
    daemon.run("y='two words'; declare -a z=(1 2)", name, "default", interpreter="bash")
    found = variables(daemon, name)
    assert ("python", "x") in found and ("bash", "y") in found and not [i for i, _ in found if i == "node"]
    assert found["python", "x"]["text"] == "42" and found["python", "x"]["type"] == "int"
    assert "two words" in found["bash", "y"]["text"]
    assert not any(c < " " for v in found.values() for c in v["name"] + v["type"] + v["text"])
    assert {i for i, _ in variables(daemon, name, "bash")} == {"bash"}
    assert variables(daemon, name, "node") == {}
    assert variable(daemon, name, "x")["text"] == "42"
    assert variable(daemon, name, "y")["interpreter"] == "bash"
    refused("NoSuchVariable", variable, daemon, name, "x", "bash")


def test_nothing_is_started_for_it(daemon, name):
    daemon.run("true", name, "default", interpreter="bash")
    before = daemon.show(name)["processes"]
    assert variables(daemon, name, "python") == {}
    refused("NoSuchVariable", variable, daemon, name, "x", "python")
    assert daemon.run("pgrep -c python3", name, "default", interpreter="bash")["stdout"] in ("", "0\n")
    assert daemon.show(name)["processes"] == before


def test_what_is_refused(daemon, name):
    daemon.run("true", name)
    refused("NoSuchInterpreter", variables, daemon, name, "cobol")
    refused("NoSuchSession", variables, daemon, "nosuch")
    refused("org.varlink.service.InvalidParameter", variable, daemon, name, "")
    refused("org.varlink.service.InvalidParameter", variable, daemon, name, "x" * 257)
    for strange in ("; rm -rf /", "a b", "$(reboot)", "x\ny", "__class__", "-", "\u00e4", "a[0]"):
        refused("NoSuchVariable", variable, daemon, name, strange)


def test_frozen(daemon, name):
    daemon.run("x=1", name)
    if not daemon.show(name)["cgroup"]:
        pytest.skip("no cgroups")
    daemon.call("Freeze", session=name, project=daemon.project)
    refused("SessionFrozen", variables, daemon, name)


def test_waits_for_the_turn_and_holds_the_next(daemon, name):
    daemon.run("x = 1", name, "python")
    code = "import time\ntry:\n    print('on', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    x = 2"
    with daemon.begin(code, name, "python", _more=True) as first, daemon.link() as asker:
        assert first.answer()["output"]["text"] == "on\n"
        asker.send("Variable", session=name, project=daemon.project, name="x")
        daemon.settle()
        with daemon.begin("x = 3; print(x)", name, "python") as second:
            daemon.wait_queued(name, 1)
            assert asker.quiet()
            daemon.call("Interrupt", session=name, project=daemon.project)
            assert first.answer()["exit_code"] == 130
            assert asker.answer()["variable"]["text"] == "2", "after the turn that ran, before the one that waited"
            assert second.answer()["stdout"] == "3\n"


def test_client_that_goes_away(daemon, name):
    daemon.run("x=1", name)
    with daemon.begin("sleep 2", name), daemon.link() as link:
        daemon.wait_busy(name)
        link.send("Variables", session=name, project=daemon.project)
        daemon.settle()
        link.close()
        assert variable(daemon, name, "x")["name"] == "x"


def test_session_that_ends(daemon, name):
    daemon.run("x=1", name)
    with daemon.begin("sleep 60", name), daemon.link() as link:
        daemon.wait_busy(name)
        link.send("Variables", session=name, project=daemon.project)
        daemon.settle()
        daemon.call("Kill", session=name, project=daemon.project)
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "SessionEnded"


def test_many_variables_and_long_ones(daemon, name):
    daemon.run("for i in range(600): globals()[f'v{i}'] = i\nbig = 'x' * 10**6", name, "python")
    reply = daemon.call("Variables", session=name, project=daemon.project)
    assert len(reply["variables"]) <= 500 and reply["more"] >= 100
    assert all(len(v["text"]) <= 1024 for v in reply["variables"])
    v = variable(daemon, name, "big")
    assert v["truncated"] and 1000 < len(v["text"]) <= 20100


def test_reprs_that_misbehave(daemon, name):
    """None of it runs in the session itself, holds it up, or reaches a terminal."""
    daemon.run("""
class Loud:
    def __repr__(self):
        global touched
        touched = True
        return '\\x1b]0;owned\\x07' + 'x' * 100000
class Slow:
    def __repr__(self):
        import time
        time.sleep(1000)
class Deadly:
    def __repr__(self):
        import os
        os._exit(1)
touched = False
a, b, c, d = Loud(), Slow(), Deadly(), 5
""", name, "python")
    reply = daemon.call("Variables", session=name, project=daemon.project)
    assert not any(c < " " for v in reply["variables"] for c in v["text"])
    assert daemon.run("print(touched, d)", name, "python")["stdout"] == "False 5\n"


def test_ctl(daemon, name):
    daemon.run("answer = 42\ntext = 'line\\nline'", name, "python")
    done = ctl(daemon, "vars", name)
    assert done.returncode == 0 and not done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["NAME", "INTERPRETER", "TYPE", "SIZE", "VALUE"]
    assert [line[:3] + line[4:] for line in lines if line[0] == "answer"] == [["answer", "python", "int", "42"]]
    assert ctl(daemon, "vars", name, "answer").stdout == "42\n"
    assert ctl(daemon, "vars", "-i", "cobol", name).returncode == 1
    done = ctl(daemon, "vars", name, "nosuch")
    assert done.returncode == 1 and "nosuch" in done.stderr
    for args in ([], ["-x", name], [name, "a", "b"]):
        assert ctl(daemon, "vars", *args).returncode == 2
    status, reply = daemon.json("vars", name, "answer", env={**os.environ, "PROJECT_DIR": daemon.project})
    assert status == 0 and reply["variable"]["name"] == "answer"


def mcp(daemon, *calls):
    """The texts of tools/call results, from a shim of its own."""
    requests = [{"method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                    "clientInfo": {"name": "test", "version": "1"}}}]
    requests += [{"method": "tools/call", "params": {"name": "session", "arguments": a}} for a in calls]
    shim = subprocess.Popen([os.path.join(daemon.programs, "nix-sandbox-mcp")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env={**os.environ, "NIX_SANDBOX_SOCKET": daemon.sock, "CLAUDE_PROJECT_DIR": daemon.project})
    answers = []
    for number, request in enumerate(requests):
        shim.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode() + b"\n")
        shim.stdin.flush()
        answers.append(json.loads(shim.stdout.readline()))
    shim.stdin.close()
    assert shim.wait(20) == 0
    return [a["result"]["content"][0]["text"] for a in answers[1:]]


def test_mcp(daemon, name):
    daemon.run("answer = 42", name, "python")
    sid = daemon.show(name)["id"]
    listed, one, none = mcp(daemon, {"action": "variables", "session": sid},
                            {"action": "variables", "session": sid, "name": "answer"},
                            {"action": "variables", "session": sid, "name": "nosuch"})
    assert "[python]\n" in listed and "answer (int): 42\n" in listed
    assert one == "42\n[answer · python · int]"
    assert "nosuch" in none and none.endswith("[refused: NoSuchVariable]")

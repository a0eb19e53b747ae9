# SPDX-License-Identifier: MIT
"""Two users of one machine: what they see of each other, and an editor's way in."""
import json

from guestlib import WAIT, other, root, tester


def case_invisible():
    """Another's session is neither listed nor found by name or id, and is refused with the words for a missing one."""
    tester.run("x = 'mine'", "mine")
    other.run("x = 'theirs'", "theirs")
    ident = tester.session("mine")["id"]
    assert [s["name"] for s in other.ctl("list")["sessions"]] == ["theirs"]
    for verb in ("show", "freeze", "kill", "history"):
        for name in ("mine", ident):
            found, missing = other.refused(verb, name), other.refused(verb, "f" * len(name))
            assert found.error == missing.error == "NoSuchSession", (verb, found, missing)
            assert found.message.replace(name, "") == missing.message.replace("f" * len(name), ""), (found, missing)

    # The same name is another session of another user.
    reply = other.run("print('x' in dir())", "mine")
    assert reply["stdout"] == "False\n" and reply["session_state"] == "created", reply
    assert tester.run("print(x)", "mine")["stdout"] == "mine\n"
    for user, name in ((tester, "mine"), (other, "mine"), (other, "theirs")):
        user.ctl("kill", name)


def case_root_sees_all():
    """root lists everybody's sessions, with their owners."""
    tester.run("pass", "mine")
    other.run("pass", "theirs")
    listed = {(s["uid"], s["name"]) for s in root.ctl("list", "-a")["sessions"]}
    assert listed >= {(1000, "mine"), (1001, "theirs")}, listed
    tester.ctl("kill", "mine")
    other.ctl("kill", "theirs")


class Editor:
    """nix-sandbox-mcp on the other end of two pipes."""

    def __init__(self, user):
        self.process = user.start("nix-sandbox-mcp", stdin=-1)
        self.last = 0

    def send(self, method, params=None, ident=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if ident is not None:
            message["id"] = ident
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def call(self, method, params=None):
        self.last += 1
        self.send(method, params, self.last)
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last:
                assert "error" not in answer, answer
                return answer["result"]

    def text(self, tool, **arguments):
        """The text of a tool's result."""
        return self.call("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(WAIT) == 0, self.process.stderr.read()


def case_editor():
    """An editor of an ordinary user says hello, lists two tools and runs Python twice; the second run knows x."""
    editor = Editor(tester)
    hello = editor.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                       "clientInfo": {"name": "case", "version": "1"}})
    assert hello["protocolVersion"] == "2025-11-25", hello
    editor.send("notifications/initialized")
    assert sorted(t["name"] for t in editor.call("tools/list")["tools"]) == ["run", "session"]
    editor.text("run", env="python", code="x = 41", session="ed")
    assert editor.text("run", env="python", code="print(x + 1)", session="ed").startswith("42\n")
    editor.close()
    tester.ctl("kill", "ed")

# SPDX-License-Identifier: MIT
# What the scripts of the tests in virtual machines say to the service, as users of the machine. It stands before each
# of them; "machine", "subtest" and "retry" are the test driver's.
import json
import shlex

PROJECT = "/var/lib/project"


def as_user(user, command):
    """The command, as the user has it after login, in the project."""
    return f"su -l {user} -c {shlex.quote(f'cd {PROJECT} && {command}')}"


def ctl(user, *words):
    """The reply of sandboxctl."""
    return json.loads(machine.succeed(as_user(user, shlex.join(["sandboxctl", "--json", *words]))))


def refusal(user, *words):
    """The name of the error that sandboxctl must end with."""
    status, output = machine.execute(as_user(user, shlex.join(["sandboxctl", "--json", *words])))
    assert status == 1, f"{words} was not refused: {output}"
    return json.loads(output)["error"].removeprefix("io.nixsandbox.")


def run(user, env, code, *options):
    """One turn: the reply."""
    return ctl(user, "run", "-e", env, *options, code)


def printed(user, env, code, *options):
    """What a turn prints, which must go well."""
    reply = run(user, env, code, *options)
    assert reply["exit_code"] == 0, reply
    return reply["stdout"].strip()


def shown(user, session):
    return ctl(user, "show", session)["session"]


def names_of(user):
    return [s["name"] for s in ctl(user, "list")["sessions"]]


def conversation(user, *requests):
    """The answers to MCP requests, each (method, parameters), after the handshake."""
    opening = ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                              "clientInfo": {"name": "test", "version": "1"}})
    lines = [json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": parameters}, separators=(",", ":"))
             for i, (method, parameters) in enumerate([opening, *requests])]
    lines.insert(1, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
    output = machine.succeed(f"printf '%s\\n' {shlex.join(lines)} | {as_user(user, 'mcp-talk')}")
    answers = [json.loads(line) for line in output.splitlines()]
    assert [a["id"] for a in answers] == list(range(len(requests) + 1)), output
    return [a["result"] for a in answers]


def tool(user, **arguments):
    """(text, whether it is an error, its notes) of one call of the tool run."""
    result = conversation(user, ("tools/call", {"name": "run", "arguments": arguments}))[1]
    return result["content"][0]["text"], result["isError"], result["_meta"]["io.nixsandbox/turn"]


def until(condition, what):
    """Looks again until it is so."""
    def look(last):
        good = condition()
        assert good or not last, f"it never came to pass: {what}"
        return good
    retry(look, 120)


def switch_to(specialisation):
    """What nixos-rebuild switch does, to another configuration of this machine."""
    machine.succeed(f"/run/booted-system/specialisation/{specialisation}/bin/switch-to-configuration test >&2")

# SPDX-License-Identifier: MIT
# The service as one line of configuration makes it; common.py stands before this.


def made_brief(name):
    """Makes a session anew; whether its idle time is that of the specialisation."""
    run("alice", "python", "", "-s", name)
    good = shown("alice", name)["idle_left_usec"] <= 4_000_000
    if not good:
        ctl("alice", "kill", name)
    return good


machine.wait_for_unit("sandboxd.socket")

with subtest("socket activation"):
    machine.require_unit_state("sandboxd.socket", "active")
    machine.require_unit_state("sandboxd.service", "inactive")
    assert names_of("alice") == []
    machine.require_unit_state("sandboxd.service", "active")
    machine.succeed("systemctl --no-pager show -P Slice sandboxd.service | grep -x nix-sandbox.slice")

with subtest("initialize + tools/list"):
    hello, tools = conversation("alice", ("tools/list", {}))
    assert hello["serverInfo"]["name"] == "nix-sandbox", hello
    assert hello["protocolVersion"] == "2025-06-18", hello
    assert [t["name"] for t in tools["tools"]] == ["run", "session"], tools

with subtest("the presets are there"):
    environments = {e["name"]: e for e in ctl("alice", "envs")["environments"]}
    assert {"python", "shell", "node", "default"} <= set(environments), environments
    assert not any(e["missing"] for e in environments.values()), environments

with subtest("python"):
    text, failed, turn = tool("alice", env="python", code="import sys\nprint(6 * 7, sys.version_info.major)")
    assert text.startswith("42 3\n") and not failed and turn["interpreter"] == "python", text

with subtest("shell"):
    text, failed, turn = tool("alice", env="shell", code="for i in 1 2 3; do echo $((i * i)); done")
    assert text.startswith("1\n4\n9\n") and not failed and turn["interpreter"] == "bash", text

with subtest("node"):
    text, failed, turn = tool("alice", env="node", code="console.log([1, 2, 3].map(x => x * 2).join())")
    assert text.startswith("2,4,6\n") and not failed and turn["interpreter"] == "node", text

with subtest("cwd is /workspace"):
    assert printed("alice", "python", "import os; print(os.getcwd())") == "/workspace"
    assert printed("alice", "shell", "pwd") == "/workspace"
    assert printed("alice", "node", "console.log(process.cwd())") == "/workspace"

with subtest("network blocked"):
    assert printed("alice", "python", "import socket; print([name for _, name in socket.if_nameindex()])") == "['lo']"
    reply = run("alice", "python", "import socket; socket.create_connection(('192.0.2.1', 80), 5)")
    assert reply["exit_code"] == 1 and "Network is unreachable" in reply["stderr"], reply
    reply = run("alice", "shell", "exec 3<>/dev/tcp/192.0.2.1/80")
    assert reply["exit_code"] != 0 and "Network is unreachable" in reply["stderr"], reply

    namespace = "readlink /proc/self/ns/net"
    assert printed("alice", "shell", namespace) != machine.succeed(namespace).strip(), "the machine's own network"

with subtest("synthetic /etc/passwd"):
    lines = printed("alice", "shell", "cat /etc/passwd").splitlines()
    assert [line.split(":")[0] for line in lines] == ["sandbox", "nobody"], lines
    assert printed("alice", "python", "import os; print(os.getuid())") == "1000"

with subtest("nothing of the host's is there"):
    machine.succeed("echo secret >/etc/secret && echo secret >/run/secret && chmod 644 /etc/secret /run/secret")
    places = ["/home", "/root", "/run", "/boot", "/etc/secret", "/var/lib/nix-sandbox", PROJECT]
    assert printed("alice", "python", f"import os; print([p for p in {places} if os.path.exists(p)])") == "[]"

with subtest("stderr captured"):
    reply = run("alice", "python", "import sys; print('out'); print('err', file=sys.stderr)")
    assert (reply["stdout"], reply["stderr"]) == ("out\n", "err\n"), reply
    text, failed, _ = tool("alice", env="shell", code="echo to stderr >&2")
    assert "to stderr" in text and not failed, text

with subtest("failing code = error"):
    text, failed, turn = tool("alice", env="python", code="1 / 0")
    assert failed and "ZeroDivisionError" in text and turn["exit_code"] == 1, text
    text, failed, turn = tool("alice", env="shell", code="exit 3")
    assert failed and turn["exit_code"] == 3, text

with subtest("empty code = success"):
    for env in ("python", "shell", "node"):
        text, failed, turn = tool("alice", env=env, code="")
        assert not failed and turn["exit_code"] == 0, text

with subtest("python/shell state persists"):
    assert run("alice", "python", "x = 41\nimport math", "-s", "work")["session_state"] == "created"
    assert printed("alice", "python", "print(x + 1, math.floor(2.5))", "-s", "work") == "42 2"
    run("alice", "shell", "cd /tmp; greeting=hello; greet() { echo \"$greeting $1\"; }", "-s", "work")
    assert printed("alice", "shell", "greet alice; pwd", "-s", "work") == "hello alice\n/tmp"
    text, failed, turn = tool("alice", env="python", session="work", code="print(x)")
    assert text.startswith("41\n") and turn["session_state"] == "resumed", text

with subtest("sessions isolated"):
    reply = run("alice", "python", "print(x)", "-s", "other")
    assert reply["exit_code"] == 1 and "NameError" in reply["stderr"], reply
    assert printed("alice", "shell", "echo \"[${greeting-}]\"", "-s", "other") == "[]"
    assert sorted(names_of("alice")) == ["other", "work"]

with subtest("/workspace files persist"):
    printed("alice", "python", "open('/workspace/kept', 'w').write('by python')", "-s", "work")
    assert printed("alice", "shell", "cat /workspace/kept", "-s", "work") == "by python"
    assert printed("alice", "node", "console.log(fs.existsSync('/workspace/kept'))", "-s", "other") == "false"

with subtest("ephemeral run"):
    before = names_of("alice")
    reply = run("alice", "python", "y = 1; open('/workspace/gone', 'w').close()")
    assert (reply["session"], reply["session_state"], reply["exit_code"]) == (None, "ephemeral", 0), reply
    assert printed("alice", "python", "import os; print('y' in globals(), os.listdir('/workspace'))") == "False []"
    assert names_of("alice") == before

with subtest("two users, one refused"):
    id_of_alice = shown("alice", "work")["id"]
    assert names_of("bob") == []
    for verb in ("show", "kill", "freeze", "history"):
        assert refusal("bob", verb, id_of_alice) == "NoSuchSession"
    assert refusal("bob", "list", "-a") == "PermissionDenied"
    assert run("bob", "python", "x = 'of bob'", "-s", "work")["session_state"] == "created"
    assert printed("alice", "python", "print(x)", "-s", "work") == "41"
    everyone = json.loads(machine.succeed("sandboxctl --json list -a"))["sessions"]
    assert len({s["uid"] for s in everyone if s["name"] == "work"}) == 2, everyone
    ctl("bob", "kill", "work")

with subtest("limits"):
    reply = run("alice", "shell", "sleep 100", "--timeout", "1")
    assert reply["timed_out"] and reply["duration_ms"] < 60_000, reply
    touch_all = "b = bytearray(900 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"
    reply = run("alice", "python", touch_all, "-s", "hungry")
    assert reply["exit_code"] != 0 and "was killed" in reply["notice"], reply
    assert shown("alice", "work")["state"] == "running"
    ctl("alice", "kill", "hungry")
    assert ctl("alice", "set", "work", "memory=300")["session"]["memory_mb"] == 300
    group = shown("alice", "work")["cgroup"]
    machine.succeed(f"test $(cat {group}/memory.max) = {300 << 20}", f"test $(cat {group}/pids.max) = 512")

with subtest("reboot with restore"):
    printed("alice", "python", "x += 1", "-s", "work")
    printed("alice", "shell", "cd /workspace; greeting=again", "-s", "work")
    machine.shutdown()
    machine.start()
    machine.wait_for_unit("sandboxd.socket")
    reply = run("alice", "python", "print(x, open('/workspace/kept').read())", "-s", "work")
    assert (reply["session_state"], reply["stdout"]) == ("restored", "42 by python\n"), reply
    assert printed("alice", "shell", "greet alice; pwd", "-s", "work") == "again alice\n/workspace"

with subtest("a switch keeps sessions"):
    daemon = machine.get_unit_property("sandboxd.service", "MainPID")
    identity = shown("alice", "work")["id"]
    switch_to("brief")
    configuration = json.loads(machine.succeed("cat /etc/nix-sandbox/sandboxd.json"))
    assert configuration["session"]["idle_timeout_seconds"] == 4, configuration
    assert shown("alice", "work")["id"] == identity
    assert printed("alice", "python", "print(x)", "-s", "work") == "42"
    assert machine.get_unit_property("sandboxd.service", "MainPID") == daemon, "sandboxd was restarted, not reloaded"

with subtest("standby"):
    # The reload was asked for; from when on it counts only the service knows.
    until(lambda: made_brief("sleepy"), "new sessions have the new bounds")
    printed("alice", "python", "n = 0", "-s", "sleepy")
    until(lambda: shown("alice", "sleepy")["state"] == "standby", "an idle session is frozen")
    reply = run("alice", "python", "n += 1; print(n)", "-s", "sleepy")
    assert (reply["stdout"], reply["state"]) == ("1\n", "kept"), reply

with subtest("idle expiry"):
    until(lambda: "sleepy" not in names_of("alice"), "an idle session is ended")
    assert "work" in names_of("alice"), "its bounds are those of the configuration that it was made under"
    events = json.loads(machine.succeed("sandboxctl --json events"))["events"]
    ends = [e["detail"] for e in events if e["event"] == "killed" and e["name"] == "sleepy"]
    assert any(detail.startswith("idle") for detail in ends), events

# SPDX-License-Identifier: MIT
# The options of the module; common.py stands before this.
DIRECTORY = "/etc/nix-sandbox/environments.d"


def environments_of(user):
    return {e["name"]: e for e in ctl(user, "envs")["environments"]}


machine.wait_for_unit("sandboxd.socket")

with subtest("environments of the configuration"):
    there = environments_of("alice")
    assert {"python", "shell", "node", "default", "data", "bare", "toml"} <= set(there), there
    assert there["data"]["description"] == "Python that reads YAML", there
    assert (there["data"]["memory_mb"], there["data"]["timeout_seconds"]) == (300, 5), there
    assert there["bare"]["interpreters"] == ["bash"], there

with subtest("packages of an environment"):
    assert printed("alice", "data", "import yaml; print(yaml.safe_load('a: [1, 2]'))") == "{'a': [1, 2]}"
    answer = printed("alice", "data", "import dill, subprocess; print(subprocess.check_output(['jq', '-n', '6 * 7']))")
    assert answer == "b'42\\n'", answer
    assert run("alice", "python", "import yaml")["exit_code"] == 1
    assert run("alice", "bare", "jq --version")["exit_code"] == 127
    assert run("alice", "bare", "true", "-s", "bare")["exit_code"] == 0
    assert refusal("alice", "run", "-e", "bare", "-i", "python", "1") == "NoSuchInterpreter"
    ctl("alice", "kill", "bare")

with subtest("only the closure is visible"):
    closure = machine.succeed(f"sort {DIRECTORY}/data/store-paths").splitlines()
    store = closure[0].rpartition("/")[0]
    inside = printed("alice", "data", f"import os; print(*sorted(os.listdir('{store}')), sep=chr(10))").splitlines()
    assert [f"{store}/{name}" for name in inside] == closure, inside
    assert len(machine.succeed(f"ls {store}").split()) > len(closure)
    reply = run("alice", "data", f"open('{closure[0]}/new', 'w')")
    assert reply["exit_code"] == 1 and "Error" in reply["stderr"], reply

with subtest("TOML form"):
    assert there["toml"]["interpreters"] == ["bash"] and there["toml"]["memory_mb"] == 128, there
    assert there["python"]["timeout_seconds"] == 20, there
    configuration = json.loads(machine.succeed("cat /etc/nix-sandbox/sandboxd.json"))
    assert configuration["session"] == {"idle_timeout_seconds": 3600}, configuration
    assert configuration["max"]["memory_mb"] == 1024 and configuration["user"]["max_sessions"] == 3, configuration

with subtest("settings are in force"):
    for name in ("one", "two", "three"):
        printed("alice", "shell", "", "-s", name)
    assert refusal("alice", "run", "-e", "shell", "-s", "four", "") == "TooManySessions"
    ctl("alice", "kill", "two")
    ctl("alice", "kill", "three")
    assert run("alice", "shell", "", "-s", "two", "--memory", "4096")["exit_code"] == 0
    assert shown("alice", "two")["memory_mb"] == 1024
    ctl("alice", "kill", "two")

with subtest("editors are told"):
    told = json.loads(machine.succeed("cat /etc/nix-sandbox/mcp.json"))["mcpServers"]["sandbox"]
    machine.succeed(f"test -x {told['command']}")

with subtest("adminGroup"):
    one = shown("alice", "one")["id"]
    assert refusal("bob", "list", "-a") == "PermissionDenied"
    assert one in [s["id"] for s in ctl("carol", "list", "-a")["sessions"]]
    assert refusal("bob", "freeze", "-y", one) == "NoSuchSession"
    ctl("carol", "freeze", "-y", one)
    assert shown("alice", "one")["state"] == "frozen"
    ctl("carol", "thaw", "-y", one)

with subtest("an environment is added and removed while the service runs"):
    daemon = machine.get_unit_property("sandboxd.service", "MainPID")
    assert refusal("alice", "run", "-e", "dropped", "hello") == "NoSuchEnvironment"
    machine.succeed(f"ln -s $(readlink -f /etc/built/dropped) {DIRECTORY}/dropped")
    assert printed("alice", "dropped", "hello", "-s", "lives") == "Hello, world!"
    machine.succeed(f"rm {DIRECTORY}/dropped")
    assert refusal("alice", "run", "-e", "dropped", "hello") == "NoSuchEnvironment"
    assert printed("alice", "dropped", "hello", "-s", "lives") == "Hello, world!"
    ctl("alice", "kill", "lives")

with subtest("a broken one is passed over, and the reason told"):
    machine.succeed(f"mkdir {DIRECTORY}/broken && echo '{{' >{DIRECTORY}/broken/environment.json")
    broken = ctl("alice", "envs")["broken"]
    assert [b["path"] for b in broken] == [f"{DIRECTORY}/broken"] and broken[0]["reason"], broken
    assert "data" in environments_of("alice")
    machine.succeed(f"rm -r {DIRECTORY}/broken")

with subtest("an environment of one user"):
    own = "~/.config/nix-sandbox/environments.d"
    machine.succeed(as_user("alice", f"mkdir -p {own} && ln -s $(readlink -f /etc/built/dropped) {own}/dropped"))
    assert printed("alice", "dropped", "hello") == "Hello, world!"
    assert "dropped" in environments_of("alice") and "dropped" not in environments_of("bob")
    assert refusal("bob", "run", "-e", "dropped", "hello") == "NoSuchEnvironment"

with subtest("reload keeps sessions"):
    printed("alice", "shell", "answer=42", "-s", "one")
    assert "more" not in environments_of("alice")
    switch_to("more")
    until(lambda: environments_of("alice")["python"]["memory_mb"] == 256, "the new configuration is in force")
    assert "more" in environments_of("alice")
    assert printed("alice", "shell", "echo $answer", "-s", "one") == "42"
    assert shown("alice", "one")["id"] == one
    assert machine.get_unit_property("sandboxd.service", "MainPID") == daemon, "sandboxd was restarted, not reloaded"

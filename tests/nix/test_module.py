# SPDX-License-Identifier: MIT
"""services.nix-sandbox: what it makes of its options, and what it refuses."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from modulelib import EVALUATE, FULL, evaluated
from nixlib import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
# pylint: disable=wrong-import-position
from daemonlib import Daemon, public_directory, removed  # noqa: E402

# Of FULL.
SETTINGS = {
    "defaults": {"timeout_seconds": 60, "memory_mb": 1024, "cpus": 1.5, "disk_mb": 2048, "processes": 256, "cpu_weight": 50,
                 "io_weight": 60, "io_read_mbps": 10, "io_write_mbps": 5.5, "project": "none"},
    "max": {"timeout_seconds": 600.5, "memory_mb": 4096},
    "session": {"standby_after_seconds": 60, "idle_timeout_seconds": 600, "max_lifetime_seconds": 0, "turn_budget_seconds": 300,
                "reclaim_after_seconds": 30, "background_jobs": "keep-awake", "checkpoints": "never", "on_disconnect": "end"},
    "network": {"sets": {"web": ["www.example", "*.www.example:8080"]},
                "limits": {"connections": 5, "rate_mbps": 0.5, "transfer_mb": 100, "idle_seconds": 30, "total_seconds": 600.5}},
    "user": {"max_sessions": 4},
    "audit": {"log_code": True},
}


# ---- what it makes

def test_one_line_is_enough(nix):
    made = evaluated(nix, "{ }", """{
      etc = lib.attrNames c.environment.etc;
      inherit (c.services.nix-sandbox) settings;
      inherit (c) warnings;
      polkit = c.security.polkit;
      onPath = map (p: p.pname) c.environment.systemPackages;
      groups = lib.attrNames c.users.groups;
    }""")
    assert made["etc"] == [f"nix-sandbox/{f}" for f in (
        "environments.d/default", "environments.d/node", "environments.d/python", "environments.d/shell", "mcp.json", "sandboxd",
        "sandboxd.json")]
    assert made["settings"] == {} and made["warnings"] == [] and made["onPath"] == ["nix-sandbox"]
    assert made["polkit"] == {"enable": True, "extraConfig": ""} and made["groups"] == ["nix-sandbox", "nix-sandbox-jail"]


def test_nothing_without_enable(nix):
    assert evaluated(nix, "{ services.nix-sandbox.enable = lib.mkForce false; }", """
      [ c.environment.etc c.environment.systemPackages c.systemd.packages c.systemd.services c.users.users c.security.polkit.enable ]
    """) == [{}, [], [], {}, {}, False]


def test_every_option(nix):
    made = evaluated(nix, FULL, """{
      inherit (c.services.nix-sandbox) settings;
      inherit (c) warnings;
      etc = lib.attrNames c.environment.etc;
      environments = lib.mapAttrs (name: _: c.environment.etc."nix-sandbox/environments.d/${name}".source.environment)
        c.services.nix-sandbox.environments;
      groups = lib.attrNames c.users.groups;
    }""")
    assert made["settings"] == SETTINGS and made["warnings"] == [] and "sandbox-admins" in made["groups"]
    assert [f for f in made["etc"] if "environments.d" in f] == [f"nix-sandbox/environments.d/{n}" for n in ("analysis", "both")]
    assert made["environments"] == {
        "analysis": {"version": 1, "name": "analysis", "description": "Python", "interpreters": ["python"], "memory_mb": 2048,
                     "timeout_seconds": 300, "cpus": 2, "disk_mb": 500, "project": "read-write",
                     "network": ["@web", "!x.www.example"]},
        "both": {"version": 1, "name": "both", "description": "Two of them", "interpreters": ["node", "bash"]},
    }


def test_environment_builds_on_its_preset(nix):
    names = evaluated(nix, FULL.replace('preset = "python"', 'preset = "default"'), """
      let
        names = map lib.getName;
        of = name: let e = c.environment.etc."nix-sandbox/environments.d/${name}".source; in
          { packages = names e.packages; python = names (e.pythonPackages pkgs.python3.pkgs); node = names e.nodePackages; };
      in [ (of "analysis") (of "both") ]""")
    assert {"ripgrep", "jq", "gawk"} <= set(names[0]["packages"]) and "python3-numpy" in names[0]["python"]
    assert names[1] == {"packages": [], "python": [], "node": ["jq"]}


def test_preset_with_a_limit_is_another_environment(nix):
    """Only the unchanged one shares a session with the others."""
    presets = evaluated(nix, '{ services.nix-sandbox.environments.python = { preset = "python"; memoryMb = 99; }; }', """
      lib.mapAttrs (_: e: e.source.environment.preset or false) (lib.filterAttrs (n: _: lib.hasInfix "environments.d" n) c.environment.etc)
    """)
    assert {os.path.basename(n): p for n, p in presets.items()} == {"default": True, "node": True, "shell": True, "python": False}


def test_artifact_is_taken_as_it_is(nix):
    same = evaluated(nix, """{ pkgs, ... }: { services.nix-sandbox.environments.mine.artifact =
      pkgs.callPackage <repo/nix/mk-sandbox.nix> { } { name = "mine"; interpreters = [ "bash" ]; }; }""", """
      [ "${c.environment.etc."nix-sandbox/environments.d/mine".source}"
        "${pkgs.callPackage <repo/nix/mk-sandbox.nix> { } { name = "mine"; interpreters = [ "bash" ]; }}" ]""")
    assert same[0] == same[1]


def test_without_any_environment_there_is_a_warning(nix):
    (warning,) = evaluated(nix, "{ services.nix-sandbox.presets = false; }", "c.warnings")
    assert "services.nix-sandbox.presets" in warning and "services.nix-sandbox.environments" in warning


def test_registration_for_editors(nix):
    path = nix.build(f'{EVALUATE} (evaluate ({FULL})).environment.etc."nix-sandbox/mcp.json".source')
    with open(path, encoding="utf-8") as f:
        assert json.load(f) == {"mcpServers": {"box": {
            "type": "stdio", "command": "/run/current-system/sw/bin/nix-sandbox-mcp", "args": ["--project-mode", "none"]}}}
    off = evaluated(nix, "{ services.nix-sandbox.mcp.enable = false; }", "lib.attrNames c.environment.etc")
    assert "nix-sandbox/mcp.json" not in off and "nix-sandbox/sandboxd.json" in off


def test_users_are_those_of_sysusers(nix):
    with open(os.path.join(ROOT, "units/sysusers.d/nix-sandbox.conf"), encoding="utf-8") as f:
        wanted = dict(re.findall(r'^u (\S+) +- "(.*)"$', f.read(), re.M))
    assert len(wanted) == 2
    assert evaluated(nix, "{ }", "c.users.users") == {
        name: {"isSystemUser": True, "group": name, "description": what} for name, what in wanted.items()}


# ---- switches

def of_switch(nix, module):
    """What a switch compares and what changes without it."""
    made = evaluated(nix, module, """{ etc = sources c; inherit (c.systemd) services sockets packages; }""")
    etc = made.pop("etc")
    return made, etc


def test_one_environment_more_changes_no_unit_and_no_configuration(nix):
    before, etc = of_switch(nix, "{ }")
    after, more = of_switch(nix, '{ services.nix-sandbox.environments.mine = { preset = "shell"; memoryMb = 99; }; }')
    assert before == after
    assert set(more.items()) - set(etc.items()) == {("nix-sandbox/environments.d/mine", more["nix-sandbox/environments.d/mine"])}


def test_new_configuration_is_a_reload(nix):
    before, etc = of_switch(nix, "{ }")
    after, more = of_switch(nix, "{ services.nix-sandbox.settings.user.max_sessions = 3; }")
    assert [etc["nix-sandbox/sandboxd.json"]] == before["services"]["sandboxd"].pop("restartTriggers")
    assert [more["nix-sandbox/sandboxd.json"]] == after["services"]["sandboxd"].pop("restartTriggers")
    assert before == after and etc["nix-sandbox/sandboxd.json"] != more["nix-sandbox/sandboxd.json"]


def test_new_version_is_behind_the_same_path(nix):
    other = "{ pkgs, ... }: { services.nix-sandbox.package = pkgs.jq; }"
    before, etc = of_switch(nix, "{ }")
    after, more = of_switch(nix, other)
    assert etc["nix-sandbox/sandboxd"] != more["nix-sandbox/sandboxd"]
    assert more["nix-sandbox/sandboxd"].endswith("-jq-1.0/libexec/nix-sandbox/sandboxd")
    for field in ("serviceConfig", "reloadIfChanged"):
        assert before["services"]["sandboxd"][field] == after["services"]["sandboxd"][field]
    assert before["services"]["sandboxd"]["reloadIfChanged"]


# ---- polkit

POLKIT = """
  const rules = [];
  const polkit = { Result: { YES: "yes" }, addRule: f => rules.push(f) };
  new Function("polkit", process.argv[1])(polkit);
  const ask = (id, groups) => {
    for (const rule of rules) {
      const said = rule({ id, lookup: () => undefined }, { isInGroup: g => groups.includes(g) });
      if (said) return said;
    }
    return null;
  };
  const asked = JSON.parse(process.argv[2]);
  console.log(JSON.stringify(asked.map(([id, groups]) => ask(id, groups))));
"""


def test_polkit_rule_decides_as_meant(nix):
    rule = evaluated(nix, FULL, "c.security.polkit.extraConfig")
    with open(os.path.join(ROOT, "polkit/io.nixsandbox.policy"), encoding="utf-8") as f:
        actions = re.findall('<action id="(.*)">', f.read())
    assert len(actions) == 5
    mine = {"io.nixsandbox.list-others", "io.nixsandbox.manage-others"}
    asked = [(a, g) for a in [*actions, "org.freedesktop.systemd1.manage-units"]
             for g in (["sandbox-admins"], ["wheel", "nix-sandbox"], [])]
    said = subprocess.run(["node", "-e", POLKIT, rule, json.dumps(asked)], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == ["yes" if a in mine and "sandbox-admins" in g else None for a, g in asked]


# ---- the daemon

def config_file(nix, module):
    return nix.build(f'{EVALUATE} (evaluate ({module})).environment.etc."nix-sandbox/sandboxd.json".source')


def test_daemon_takes_the_configuration(nix, package):
    path = config_file(nix, FULL)
    with open(path, encoding="utf-8") as f:
        assert json.load(f) == SETTINGS
    shown = json.loads(subprocess.run([f"{package}/libexec/nix-sandbox/sandboxd", "--config", path, "--check-config"],
                                      capture_output=True, check=True).stdout)
    for section, values in SETTINGS.items():
        assert {k: shown[section][k] for k in values} == values
    with open(config_file(nix, "{ }"), encoding="utf-8") as f:
        assert json.load(f) == {}


def lay_out(nix, environments, root):
    """What a configuration has in environments.d, with programs that run, as NixOS links it: through one directory."""
    evaluate = EVALUATE.replace("import <nixpkgs> { }", "import <nixpkgs> { overlays = [ (import <nixpkgs/hostpkgs.nix>) ]; }")
    paths = nix.build_all(f"""{evaluate}
      lib.mapAttrsToList (_: e: e.source) (lib.filterAttrs (name: _: lib.hasInfix "environments.d" name)
        (evaluate {{ services.nix-sandbox = {{ presets = false; environments = {{ {environments} }}; }}; }}).environment.etc)""")
    made = {nix.name(p).removeprefix("sandbox-environment-"): p for p in paths}
    static, there = os.path.join(root, "static"), os.path.join(root, "environments.d")
    shutil.rmtree(static, ignore_errors=True)
    for folder in (static, there):
        os.makedirs(folder, exist_ok=True)
    for name, path in made.items():
        os.symlink(path, os.path.join(static, name))
    for name in set(os.listdir(there)) - set(made):
        os.unlink(os.path.join(there, name))
    for name in set(made) - set(os.listdir(there)):
        os.symlink(os.path.join(static, name), os.path.join(there, name))
    return there


def test_daemon_finds_the_environments(nix, package):
    """Those that are added, changed and removed by a switch, too, without a reload."""
    def found(d):
        reply = d.call("Environments")
        assert reply["broken"] == []
        return {e["name"]: (e["description"], e["memory_mb"]) for e in reply["environments"] if e.get("root")}

    one = 'one = { preset = "shell"; description = "One"; memoryMb = 100; };'
    two = 'two = { interpreters = [ "bash" ]; description = "Only bash"; };'
    with removed(public_directory()) as root:
        directory = lay_out(nix, one, root)
        with Daemon({"environment_dirs": [directory]}, programs=f"{package}/libexec/nix-sandbox") as d:
            assert found(d) == {"one": ("One", 100)}
            lay_out(nix, one.replace("100", "200") + two, root)
            assert found(d) == {"one": ("One", 200), "two": ("Only bash", 512)}
            lay_out(nix, two, root)
            assert found(d) == {"two": ("Only bash", 512)}


@pytest.mark.parametrize("settings, what", [
    ("user.max_session = 4", "user.max_session: "),
    ('session.checkpoints = "sometimes"', "session.checkpoints: "),
    ("nothing = true", "nothing: "),
    ('network.sets.web = [ "*.org" ]', "network.sets.web: '*.org' is no network rule"),
])
def test_what_the_daemon_refuses_is_not_built(nix, settings, what):
    module = f"{{ services.nix-sandbox.settings.{settings}; }}"
    assert f"sandboxd-unchecked.json: {what}" in not_built(nix, module)


def test_network_that_the_daemon_refuses_is_not_built(nix):
    """Of an environment, which the configuration does not have."""
    module = """{ services.nix-sandbox = { network.sets.web = [ "a.example" ];
                  environments.x = { preset = "shell"; network = [ "@web" "http://b.example" ]; }; }; }"""
    assert "sandboxd-networks.json: environments.x.network: 'http://b.example' is no network rule" in not_built(nix, module)


def not_built(nix, module):
    """What is said of it."""
    done = nix.run("nix-build", "--no-out-link", "-E",
                   f'{EVALUATE} (evaluate ({module})).environment.etc."nix-sandbox/sandboxd.json".source', check=False)
    assert done.returncode != 0
    return done.stderr


# ---- what is refused

OPTION = "services.nix-sandbox"
BAD = [
    # of a type
    ("memory = 1", "memory", "does not exist"),
    ("limits.defaults.memoryMB = 64", "limits.defaults.memoryMB", "does not exist"),
    ("environments.x.networks = true", "environments.x.networks", "does not exist"),
    ("environments.x.network = true", "environments.x.network", "is not of type"),
    ("network.limits.connections = 0", "network.limits.connections", "between 1 and 1024"),
    ('network.sets.web = "a.example"', "network.sets.web", "is not of type"),
    ("limits.max.memoryMb = 16", "limits.max.memoryMb", "between 32 and 16777216"),
    ('limits.defaults.timeoutSeconds = "30"', "limits.defaults.timeoutSeconds", "is not of type"),
    ("session.idleTimeoutSeconds = -1", "session.idleTimeoutSeconds", "is not of type"),
    ('session.onDisconnect = "stop"', "session.onDisconnect", '"keep", "end"'),
    ('environments.x.preset = "ruby"', "environments.x.preset", '"default", "node", "python", "shell"'),
    ('environments.x.interpreters = [ "perl" ]', "environments.x.interpreters", '"python", "bash", "node"'),
    ('environments.x = { preset = "shell"; packages = [ "jq" ]; }', "environments.x.packages", "is not of type"),
    ('environments.x.project = "write"', "environments.x.project", '"none", "read-only", "read-write"'),
    ("settings.audit = x: x", "settings", "JSON value"),
    ('adminGroup = "a\\"); polkit"', "adminGroup", "is not of type"),
    # that does not go together
    ("environments.x = { }", "environments.x", "set preset, interpreters or artifact"),
    ('environments."a b".preset = "python"', "environments.a b", "letters, digits"),
    ('environments.x = { preset = "python"; interpreters = [ "bash" ]; }', "environments.x", "exclude each other"),
    ('environments.x.interpreters = [ "bash" "bash" ]', "environments.x.interpreters", "twice"),
    ('environments.x = { preset = "shell"; pythonPackages = ps: [ ps.numpy ]; }', "environments.x.pythonPackages", "no python"),
    ('environments.x = { interpreters = [ "bash" ]; nodePackages = [ pkgs.jq ]; }', "environments.x.nodePackages", "no node"),
    ('environments.x = { preset = "shell"; network = [ "@web" "@no" ]; }; services.nix-sandbox.network.sets.web = [ ]',
     "environments.x.network", f"@no is not in {OPTION}.network.sets"),
    ("environments.x.artifact = pkgs.jq", "environments.x.artifact", "mkSandbox"),
    ("environments.x = { artifact = pkgs.jq; memoryMb = 64; }", "environments.x.artifact", "without memoryMb"),
    ("limits = { defaults.memoryMb = 128; max.memoryMb = 64; }", "limits.defaults.memoryMb", f"{OPTION}.limits.max.memoryMb"),
    ('limits.max.cpus = 1; services.nix-sandbox.environments.x = { preset = "node"; cpus = 1.5; }', "environments.x.cpus",
     f"{OPTION}.limits.max.cpus"),
    ('environments.x.preset = "node"; services.nix-sandbox.settings.environments.x.preset = "shell"', "environments.x",
     f"{OPTION}.settings.environments.x goes before it"),
    ("settings.defaults.memory_mb = 1; services.nix-sandbox.limits.defaults.memoryMb = 64", "settings.defaults.memory_mb",
     "conflicting definition values"),
    ('settings.environment_dirs = [ "/srv" ]', "settings.environment_dirs", "/etc/nix-sandbox/environments.d"),
    ("environments = lib.genAttrs (map toString (lib.range 1 61)) (_: { preset = \"shell\"; })", "environments", "64 environments"),
]


@pytest.mark.parametrize("bad, option, text", BAD, ids=[b[0][:40] for b in BAD])
def test_bad_configuration_is_refused(nix, bad, option, text):
    said = nix.refused(f"""{EVALUATE} let c = evaluate ({{ pkgs, ... }}: {{ services.nix-sandbox.{bad}; }}); in
      builtins.deepSeq [ c.services.nix-sandbox.settings c.security.polkit ] (sources c)""")
    assert f"{OPTION}.{option}" in said and text in said


def test_jails_need_user_namespaces(nix):
    said = nix.refused(f"{EVALUATE} (evaluate {{ security.allowUserNamespaces = false; }}).warnings")
    assert "services.nix-sandbox" in said and "security.allowUserNamespaces must be true" in said

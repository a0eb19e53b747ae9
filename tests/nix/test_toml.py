# SPDX-License-Identifier: MIT
"""services.nix-sandbox.configFile: TOML in the place of options."""
import pytest

from modulelib import EVALUATE, evaluated
from nixlib import quoted

TOML = """
[defaults]
timeout_seconds = 60
memory_mb = 1024
[max]
memory_mb = 4096
[session]
idle_timeout_seconds = 600
max_lifetime_seconds = 0
[environments.data]
preset = "python"
memory_mb = 2048
[environments.run]
interpreter = "bash"
description = "Only bash"
project = "none"
network = ["@web", "b.example"]
[network]
sets = { web = ["a.example"] }
limits = { rate_mbps = 0.5 }
"""

THE_SAME = """{ services.nix-sandbox = {
  limits = { defaults = { timeoutSeconds = 60; memoryMb = 1024; }; max.memoryMb = 4096; };
  session = { idleTimeoutSeconds = 600; maxLifetimeSeconds = 0; };
  environments.data = { preset = "python"; memoryMb = 2048; };
  environments.run = { interpreters = [ "bash" ]; description = "Only bash"; project = "none";
                       network = [ "@web" "b.example" ]; };
  network = { sets.web = [ "a.example" ]; limits.rateMbps = 0.5; };
}; }"""


@pytest.fixture
def toml(tmp_path):
    def write(text):
        (tmp_path / "sandboxes.toml").write_text(text, encoding="utf-8")
        return f"{{ services.nix-sandbox.configFile = /. + {quoted(tmp_path / 'sandboxes.toml')}; }}"
    return write


def test_toml_is_the_same_as_options(nix, toml):
    what = "{ inherit (c.services.nix-sandbox) settings; etc = sources c; inherit (c.systemd) services; }"
    assert evaluated(nix, toml(TOML), what) == evaluated(nix, THE_SAME, what)


def test_toml_and_options_together(nix, toml):
    both = f"{{ imports = [ ({toml(TOML)}) {{ services.nix-sandbox.limits.defaults.cpus = 3; }} ]; }}"
    assert evaluated(nix, both, "c.services.nix-sandbox.settings.defaults") == {"timeout_seconds": 60, "memory_mb": 1024, "cpus": 3}


@pytest.mark.parametrize("text, words_", [
    ("[defaults]\ntimeout = 3", ['sandboxes.toml: [defaults]: there is no key "timeout"', "timeout_seconds"]),
    ("[session]\nidle_timeout = 3", ['sandboxes.toml: [session]: there is no key "idle_timeout"', "idle_timeout_seconds"]),
    ("[environments.x]\nimage = 'a'", ['sandboxes.toml: [environments.x]: there is no key "image"', "preset"]),
    ("[environments.x]\npreset = 'ruby'", ['sandboxes.toml: [environments.x]: there is no preset "ruby"', "default, node, python, shell"]),
    ("[audit]\nkeep = 3", ['sandboxes.toml: top level: there is no section "audit"', "environments"]),
    ("[network]\nallow = true", ['sandboxes.toml: [network]: there is no key "allow"', "limits, sets"]),
    ("[network.limits]\nrate = 3", ['sandboxes.toml: [network.limits]: there is no key "rate"', "rate_mbps"]),
    ("[network.sets]\nweb = 'a.example'", ["services.nix-sandbox.network.sets.web", "is not of type"]),
    ("defaults = 3", ["sandboxes.toml: [defaults]: must be a table"]),
    ("[environments]\nx = 3", ["sandboxes.toml: [environments.x]: must be a table"]),
    ("[environments.x]\nflake = 3", ["sandboxes.toml: [environments.x]: flake must be a string"]),
    # by the types of the options
    ("[defaults]\nmemory_mb = '1G'", ["services.nix-sandbox.limits.defaults.memoryMb", "is not of type"]),
    ("[environments.x]\ninterpreter = 'perl'", ["services.nix-sandbox.environments.x.interpreters", '"python", "bash", "node"']),
    ("[environments.x]\nmemory_mb = 64", ["services.nix-sandbox.environments.x", "set preset, interpreters or artifact"]),
    ("[environments.x", ["TOML"]),
])
def test_bad_toml_is_refused(nix, toml, text, words_):
    said = nix.refused(f"{EVALUATE} sources (evaluate ({toml(text)}))")
    assert all(w in said for w in words_), said


FLAKE = """{
  outputs = { self }:
    let pkgs = import <nixpkgs> { }; in {
      legacyPackages.${builtins.currentSystem} = { inherit (pkgs) tree; sets.of.them = pkgs.gnused; };
      packages.${builtins.currentSystem} = {
        default = pkgs.jq;
        mine = pkgs.callPackage <repo/nix/mk-sandbox.nix> { } { name = "mine"; interpreters = [ "bash" ]; };
      };
    };
}"""


def test_flakes_in_toml(nix, toml, tmp_path):
    """One that is an environment, and one that is a package to be made one of."""
    (tmp_path / "flake").mkdir()
    (tmp_path / "flake/flake.nix").write_text(FLAKE, encoding="utf-8")
    reference = f"path:{tmp_path}/flake"
    module = toml(f"""
      [environments.mine]
      flake = "{reference}#mine"
      [environments.query]
      flake = "{reference}"
      interpreter = "bash"
      [environments.old]
      flake = "{reference}#tree"
      interpreter = "bash"
      [environments.deep]
      flake = "{reference}#sets.of.them"
      interpreter = "bash"
    """)
    made = evaluated(nix, module, """lib.mapAttrs (_: e: [ (e.artifact.name or null) (map (p: p.name) e.packages) e.interpreters ])
      c.services.nix-sandbox.environments""")
    assert made == {"mine": ["sandbox-environment-mine", [], []], "query": [None, ["jq-1.0"], ["bash"]],
                    "old": [None, ["tree-1.0"], ["bash"]], "deep": [None, ["gnused-1.0"], ["bash"]]}
    module = toml(f"environments.x.flake = '{reference}#y'")
    said = nix.refused(f"{EVALUATE} sources (evaluate ({module}))")
    assert 'has no package "y"' in said

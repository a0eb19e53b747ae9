# SPDX-License-Identifier: MIT
"""flake.nix over the stand-in for nixpkgs: its outputs are of the kinds that Nix wants, and there is what we promise."""
import json
import os

import pytest

from nixlib import STAND_IN, SYSTEMS, quoted

STAND_IN_PATH = f"(/. + {quoted(STAND_IN)})"
PACKAGES = {"default", "nix-sandbox", "env-default", "env-node", "env-python", "env-shell"}


@pytest.fixture(scope="module")
def tree(nix):
    with nix.source_tree() as path:
        yield path


def test_check(nix, package, tree):
    """Evaluates all outputs and builds the checks, of which `package` is one that is there already."""
    nix.flake(tree, "flake", "check", timeout=900)
    assert not os.path.exists(os.path.join(tree, "flake.lock"))


def test_package_is_that_of_the_tree(nix, package, tree):
    """A flake has what git knows of; that must be all that the package needs."""
    path = json.loads(nix.flake(tree, "eval", "--json", ".#default.outPath").stdout)
    assert path == package


def test_outputs(nix, tree):
    shown = json.loads(nix.flake(tree, "flake", "show", "--json").stdout)
    assert set(shown) == {"checks", "devShells", "formatter", "lib", "nixosModules", "overlays", "packages"}
    for system in SYSTEMS:
        assert set(shown["packages"][system]) == PACKAGES
        assert set(shown["devShells"][system]) == {"default"}
        assert set(shown["checks"][system]) == PACKAGES - {"default"} | {"vm-service", "vm-options"}
    assert set(shown["nixosModules"]) == set(shown["overlays"]) == {"default"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_evaluates_for(nix, tree, system):
    drvs = json.loads(nix.flake(tree, "eval", "--json", f".#packages.{system}", "--apply", "builtins.mapAttrs (_: p: p.drvPath)").stdout)
    assert set(drvs) == PACKAGES and all(d.endswith(".drv") for d in drvs.values())


def test_one_input(nix, tree):
    done = nix.flake(tree, "flake", "metadata", "--json")
    assert set(json.loads(done.stdout)["locks"]["nodes"]) == {"nixpkgs", "root"}


def test_overlay(nix, tree):
    name = nix.flake(tree, "eval", "--json", ".#overlays.default", "--apply",
                     f"o: (import {STAND_IN_PATH} {{ system = \"x86_64-linux\"; overlays = [ o ]; }}).nix-sandbox.pname",
                     "--impure").stdout
    assert json.loads(name) == "nix-sandbox"


def test_from_toml(nix, tree, tmp_path):
    (tmp_path / "a.toml").write_text("[defaults]\nmemory_mb = 64", encoding="utf-8")
    options = nix.flake(tree, "eval", "--json", ".#lib.fromToml", "--apply", f"""fromToml:
        fromToml (import {STAND_IN_PATH} {{ system = "x86_64-linux"; }}) (/. + {quoted(tmp_path / "a.toml")})""", "--impure").stdout
    assert json.loads(options) == {"limits": {"defaults": {"memoryMb": 64}}}


def test_mk_sandbox(nix, tree):
    name = nix.flake(tree, "eval", "--json", ".#lib.mkSandbox", "--apply", f"""mkSandbox:
        (mkSandbox (import {STAND_IN_PATH} {{ system = "x86_64-linux"; }}) {{
          name = "data"; interpreters = [ "python" ];
        }}).name""", "--impure").stdout
    assert json.loads(name) == "sandbox-environment-data"

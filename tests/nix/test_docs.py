# SPDX-License-Identifier: MIT
"""docs/nix.md says what is so: its examples evaluate, and its tables name the options that there are."""
import json
import os
import re

import pytest

from nixlib import ROOT, quoted

with open(os.path.join(ROOT, "docs", "nix.md"), encoding="utf-8") as f:
    TEXT = f.read()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.M | re.S)
NIX = [text for kind, text in BLOCKS if kind == "nix"]
EVALUATE = """
  let
    pkgs = import <nixpkgs> { };
    inherit (pkgs) lib;
    evaluate = module: lib.evalModules {
      specialArgs = { inherit pkgs; };
      modules = [ <repo/nix/module.nix> <nixpkgs/nixos-options.nix> module ];
    };
  in
"""


def the(blocks, part):
    """The block with a text in it, of which there must be one."""
    (block,) = (b for b in blocks if part in b)
    return block


def named_in_table(after):
    """What the first column of the first table after a text names."""
    table = re.match(r".*?\n((?:\|[^\n]*\n)+)", TEXT[TEXT.index(after):], re.S)[1]
    return {name for row in table.splitlines() for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}


@pytest.mark.parametrize("block", NIX, ids=range(len(NIX)))
def test_examples_parse(nix, block):
    path = os.path.join(nix.scratch, "example.nix")
    with open(path, "w", encoding="utf-8") as f:
        f.write(block)
    nix.run("nix-instantiate", "--parse", path)


def test_example_of_the_module(nix):
    made = nix.eval(f"""{EVALUATE} let c = (evaluate ({the(NIX, "environments.analysis")})).config; in {{
      environments = lib.mapAttrs (_: e: e.memoryMb) c.services.nix-sandbox.environments;
      failed = builtins.filter (a: !a.assertion) c.assertions;
    }}""")
    assert made == {"environments": {"analysis": 4096, "web": None}, "failed": []}


def test_example_of_a_network(nix):
    made = nix.eval(f"""{EVALUATE} let c = (evaluate ({the(NIX, "network.sets.git-hosts")})).config; in {{
      inherit (c.services.nix-sandbox.settings) network;
      fetch = c.services.nix-sandbox.environments.fetch.network;
      failed = builtins.filter (a: !a.assertion) c.assertions;
    }}""")
    assert made["network"] == {"sets": {"git-hosts": ["git.example", "*.git.example:22", "!internal.git.example"]},
                               "limits": {"transfer_mb": 1024}}
    assert made["fetch"] == ["@git-hosts", "files.example:443"] and made["failed"] == []


def test_example_of_credentials(nix, package):
    """The check of the package's daemon, without the secret."""
    module = the(NIX, "LoadCredential").replace("./nix/mk-sandbox.nix", "<repo/nix/mk-sandbox.nix>")
    path = nix.build(f"""{EVALUATE} (evaluate {{ imports = [ ({module}) ]; services.nix-sandbox.enable = true; }})
      .config.environment.etc."nix-sandbox/sandboxd.json".source""")
    with open(path, encoding="utf-8") as f:
        (credential,) = json.load(f)["environments"]["builder"]["credentials"]
    assert credential["credential"] == "artifacts-token"


def test_example_of_toml(nix):
    path = os.path.join(nix.scratch, "example.toml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(the((text for kind, text in BLOCKS if kind == "toml"), "[session]"))
    made = nix.eval(f"""{EVALUATE} let
        read = import <repo/nix/from-toml.nix> {{ inherit lib; system = "x86_64-linux"; }} {quoted(path)};
      in read // {{ environments = lib.mapAttrs (n: e: if n == "team" then null else e) read.environments; }}""")
    assert made["session"] == {"idleTimeoutSeconds": 7200, "maxLifetimeSeconds": 86400}
    assert made["environments"] == {"data": {"preset": "python", "memoryMb": 2048}, "scripts": {"interpreters": ["bash"], "network": ["@git-hosts"]},
                                    "team": None}


def test_options_are_those_that_there_are(nix):
    of_service, of_environment = nix.eval(f"""{EVALUATE} let
        options = (evaluate {{ }}).options.services.nix-sandbox;
      in [ (builtins.attrNames options)
           (builtins.attrNames (evaluate {{ services.nix-sandbox.environments.x = {{ }}; }}).config.services.nix-sandbox.environments.x) ]""")
    named = named_in_table("The service has, besides")
    assert {name.partition(".")[0] for name in named} == set(of_service) - {"enable", "environments"}
    assert named_in_table("environments.web = {") == set(of_environment)

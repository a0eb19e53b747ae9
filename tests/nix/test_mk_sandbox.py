# SPDX-License-Identifier: MIT
"""mkSandbox and the presets, evaluated and built with packages that are only names."""
import json
import os
import subprocess

import pytest

from nixlib import ROOT

BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))

SHELL_TOOLS = "bash coreutils gnused gnugrep gawk findutils jq tree diffutils file bc"
PRESETS = {         # interpreters; python's packages; what is in PATH besides
    "shell": (["bash"], None, SHELL_TOOLS),
    "python": (["python"], ["dill"], "bash coreutils"),
    "node": (["node"], None, "bash coreutils nodejs"),
    "default": (["python", "bash", "node"], ["dill"], SHELL_TOOLS + " nodejs"),
}
# Arguments (besides a good name and interpreters = [ "bash" ]), and what is said of them.
BAD = {
    'name = "a b"': 'name must be 1 to 64 letters',
    'name = "-a"': 'name must be',
    'name = ""': 'name must be',
    f'name = "{"a" * 65}"': 'name must be',
    'name = 3': 'name must be',
    'interpreters = [ ]': 'interpreters must be a list of one interpreter or more, not an empty list',
    'interpreters = "bash"': 'interpreters must be a list',
    'interpreters = [ "ruby" ]': 'each of interpreters must be one of "python", "bash", "node", not "ruby"',
    'interpreters = [ 1 ]': 'each of interpreters must be',
    'interpreters = [ "bash" "bash" ]': 'interpreters must name each one once',
    'interpreter = "node"': 'interpreter and interpreters exclude each other',
    'packages = [ "jq" ]': 'each of packages must be a package, not "jq"',
    'packages = [ pkgs.jq [ pkgs.jq ] ]': 'each of packages must be a package, not a list',
    'packages = pkgs.jq': 'packages must be a list of packages, not a set',
    'interpreters = [ "python" ]; pythonPackages = [ ]': 'pythonPackages must be a function',
    'interpreters = [ "python" ]; pythonPackages = _: [ 1 ]': 'each of what pythonPackages returns must be a package, not 1',
    'pythonPackages = ps: [ ps.numpy ]': 'pythonPackages must be empty, for interpreters has no "python"',
    'interpreters = [ "node" ]; nodePackages = 1': 'nodePackages must be a list of packages',
    'nodePackages = [ pkgs.jq ]': 'nodePackages must be empty, for interpreters has no "node"',
    'description = 3': 'description must be a text of at most 512 bytes',
    f'description = "{"a" * 513}"': 'description must be a text of at most 512 bytes',
    'timeoutSeconds = 0': 'timeoutSeconds must be a number between 0.01 and 31536000, not 0',
    'timeoutSeconds = "30"': 'timeoutSeconds must be a number',
    'memoryMb = 512.5': 'memoryMb must be a whole number between 32 and 16777216',
    'memoryMb = -1': 'memoryMb must be',
    'cpus = 4097': 'cpus must be a number between 0.01 and 4096',
    'project = "writable"': 'project must be one of "none", "read-only", "read-write"',
    'preset = "python"': 'preset must be true or false',
    'network = "a.example"': 'network must be a list of texts, or null, not "a.example"',
    'network = [ 1 ]': 'each of network must be a rule, such as "*.example.org", not 1',
    'network = [ ]; preset = true': 'preset must be true or false, and false with a network',
    'timeout = 30': "unexpected argument 'timeout'",
}
# Argument, key, and the values at both ends of what is possible, each with the nearest that is not.
BOUNDS = [
    ("timeoutSeconds", "timeout_seconds", (0.01, 0.009), (31536000, 31536001)),
    ("memoryMb", "memory_mb", (32, 31), (16777216, 16777217)),
    ("cpus", "cpus", (0.01, 0.009), (4096, 4096.5)),
    ("diskMb", "disk_mb", (1, 0), (16777216, 16777217)),
]


def sandbox(arguments):
    return f"""let pkgs = import <nixpkgs> {{ }}; in pkgs.callPackage <repo/nix/mk-sandbox.nix> {{ }}
               ({{ name = "x"; interpreters = [ "bash" ]; }} // {{ {arguments}; }})"""


def presets(expression):
    return f"let pkgs = import <nixpkgs> {{ }}; presets = import <repo/nix/environments/index.nix> pkgs; in {expression}"


def accepted(tmp_path, key, value):
    """Whether sandboxd takes this of an environment in its configuration, where the keys are the same."""
    path = tmp_path / "config"
    path.write_text(json.dumps({"environments": {"x": {"interpreters": ["bash"], key: value}}}))
    return subprocess.run([os.path.join(BUILD, "sandboxd"), "--check-config", "--config", path], capture_output=True,
                          check=False).returncode == 0


@pytest.mark.parametrize("arguments", BAD)
def test_a_bad_argument_is_named_when_it_is_evaluated(nix, arguments):
    assert BAD[arguments] in nix.refused(f"({sandbox(arguments)}).drvPath")


def test_arguments_that_are_needed(nix):
    function = "(import <nixpkgs> { }).callPackage <repo/nix/mk-sandbox.nix> { }"
    assert "required argument 'name'" in nix.refused(f'({function} {{ interpreters = [ "bash" ]; }}).drvPath')
    assert "interpreters must be a list of one interpreter or more" in nix.refused(f'({function} {{ name = "x"; }}).drvPath')


def test_one_interpreter(nix):
    function = "(import <nixpkgs> { }).callPackage <repo/nix/mk-sandbox.nix> { }"
    assert nix.eval(f'({function} {{ name = "x"; interpreter = "node"; }}).interpreters') == ["node"]
    assert 'not "ruby"' in nix.refused(f'({function} {{ name = "x"; interpreter = "ruby"; }}).drvPath')


@pytest.mark.parametrize("argument, key, least, most", BOUNDS)
def test_the_bounds_are_those_of_the_daemon(nix, tmp_path, argument, key, least, most):
    for possible, not_possible in (least, most):
        assert nix.eval(f"({sandbox(f'{argument} = {possible}')}).environment")[key] == possible
        assert accepted(tmp_path, key, possible)
        assert argument in nix.refused(f"({sandbox(f'{argument} = {not_possible}')}).drvPath")
        assert not accepted(tmp_path, key, not_possible)


def test_the_artifact(nix):
    """environment.json has what was given and nothing else; store-paths the closure of its root."""
    plain = nix.build(sandbox('name = "plain"'))
    with open(f"{plain}/environment.json", encoding="utf-8") as f:
        read = json.load(f)
    root = read["root"]
    assert read == {"version": 1, "name": "plain", "interpreters": ["bash"], "root": root, "closure": "store-paths"}
    assert root.endswith("-sandbox-env-plain") and os.path.isdir(f"{root}/bin")
    with open(f"{plain}/store-paths", encoding="utf-8") as f:
        assert sorted(f.read().split("\n")[:-1]) == nix.closure(root)
    # So that the artifact keeps all of it from being collected.
    assert set(nix.closure(root)) < set(nix.closure(plain))

    full = nix.build(sandbox('''
        name = "A-1_b"; interpreters = [ "node" "python" ]; packages = [ pkgs.jq ]; pythonPackages = ps: [ ps.numpy ];
        description = "It's \\"ours\\", \\${whose}?"; timeoutSeconds = 2.5; memoryMb = 64; cpus = 2; diskMb = 20; project = "read-only";
        network = [ "a.example:8080" "@web" ]'''))
    with open(f"{full}/environment.json", encoding="utf-8") as f:
        read = json.load(f)
    assert read == {"version": 1, "name": "A-1_b", "interpreters": ["node", "python"], "description": "It's \"ours\", ${whose}?",
                    "timeout_seconds": 2.5, "memory_mb": 64, "cpus": 2, "disk_mb": 20, "project": "read-only",
                    "network": ["a.example:8080", "@web"],
                    "root": read["root"], "closure": "store-paths"}
    closure = [os.path.basename(path).split("-", 1)[1] for path in nix.closure(read["root"])]
    assert {"jq-1.0", "python3-numpy-1.0", "python3-dill-1.0"} <= set(closure)


def test_what_is_passed_through(nix):
    assert nix.eval(f"""let e = {sandbox("packages = [ pkgs.jq ]")}; in [
        e.environment e.interpreters (e.closure == "${{e}}/store-paths") (map (p: p.pname) e.packages) (e.root.name) ]""") == [
            {"version": 1, "name": "x", "interpreters": ["bash"]}, ["bash"], True, ["jq"], "sandbox-env-x"]


def test_packages_of_node_are_found_by_node_only(nix):
    artifact = nix.build(sandbox('interpreters = [ "node" ]; nodePackages = [ pkgs.jq ]'))
    with open(f"{artifact}/environment.json", encoding="utf-8") as f:
        node = os.path.realpath(json.load(f)["root"] + "/bin/node")
    with open(node, encoding="utf-8") as f:
        text = f.read()
    assert f"NODE_PATH={nix.store}/" in text and "sandbox-node-modules-x/lib/node_modules" in text


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_packages_that_are_promised(nix, name):
    interpreters, python, programs = PRESETS[name]
    preset = nix.eval(presets(f"presets.{name}.environment"))
    assert preset.pop("description")
    assert preset == {"version": 1, "name": name, "preset": True, "interpreters": interpreters}

    paths = nix.eval(presets(f"map (p: p.name) presets.{name}.root.paths"))
    assert sorted(p for p in paths if p != "python3-env") == sorted(f"{p}-1.0" for p in programs.split())
    assert ("python3-env" in paths) == (python is not None)
    if python:
        (env,) = nix.eval(presets(f"map (p: map (x: x.pname) p.packages) (builtins.filter (p: p ? packages) presets.{name}.root.paths)"))
        assert env == [f"python3-{p}" for p in python]


def test_there_are_no_other_presets(nix):
    assert nix.eval(presets("builtins.attrNames presets")) == sorted(PRESETS)


@pytest.mark.parametrize("change, where, package", [
    ("shell.override { extraPackages = [ pkgs.git ]; }", "p.root.paths", "git"),
    ("node.override { extraNodePackages = [ pkgs.git ]; }", "p.nodePackages", "git"),
    ("python.override { extraPackages = [ pkgs.git ]; }", "p.root.paths", "git"),
    ("python.override { extraPythonPackages = ps: [ ps.scipy ]; }", "(p.pythonPackages pkgs.python3.pkgs)", "python3-scipy"),
    ("python.override { withScience = true; }", "(p.pythonPackages pkgs.python3.pkgs)", "python3-pandas"),
    ("default.override { extraPythonPackages = ps: [ ps.scipy ]; }", "(p.pythonPackages pkgs.python3.pkgs)", "python3-scipy"),
    ("default.override { extraPackages = [ pkgs.git ]; }", "p.root.paths", "git"),
])
def test_a_preset_with_more_in_it_is_a_preset_no_longer(nix, change, where, package):
    """Sessions would get what "default" has otherwise."""
    name, names = nix.eval(presets(f"let p = presets.{change}; in [ p.environment (map (x: x.pname or x.name) {where}) ]"))
    assert package in names
    assert name["name"] == change.split(".")[0] and "preset" not in name


def test_science_is_numpy_pandas_and_matplotlib(nix):
    assert nix.eval(presets("map (p: p.pname) ((presets.python.override { withScience = true; }).pythonPackages pkgs.python3.pkgs)")) == [
        "python3-numpy", "python3-pandas", "python3-matplotlib"]


def test_no_argument_is_filled_in_that_should_have_its_default(nix):
    """callPackage would, where an argument has the name of something in nixpkgs."""
    arguments = nix.eval("""builtins.mapAttrs (_: f: builtins.attrNames (removeAttrs (builtins.functionArgs f) [ "mkSandbox" ]))
        (builtins.listToAttrs (map (n: { name = n; value = import (<repo/nix/environments> + "/${n}.nix"); })
            [ "default" "node" "python" "shell" ]))""")
    optional = {"extraPackages", "extraPythonPackages", "extraNodePackages", "withScience"}
    for names in arguments.values():
        assert set(names) - optional <= set("bash bc callPackage coreutils diffutils file findutils gawk gnugrep gnused jq python3 tree".split())

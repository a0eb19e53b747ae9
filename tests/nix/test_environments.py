# SPDX-License-Identifier: MIT
"""Environments that Nix has built of this machine's programs, in sandboxd: their sessions see the closure and nothing else."""
import json
import os
import statistics
import sys
import time

import pytest

from nixlib import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
from daemonlib import Daemon, removed, public_directory  # noqa: E402

HOST = "import <nixpkgs> { overlays = [ (import <nixpkgs/hostpkgs.nix>) ]; }"
FEW, MANY, STARTS, ROUNDS, MOST = 6, 300, 9, 4, 1.5


def host(expression):
    """Of packages that run."""
    return f"""let pkgs = {HOST}; presets = import <repo/nix/environments/index.nix> pkgs;
               mkSandbox = pkgs.callPackage <repo/nix/mk-sandbox.nix> {{ }}; in {expression}"""


def environment(artifact):
    with open(f"{artifact}/environment.json", encoding="utf-8") as f:
        return json.load(f)


def configured(artifact):
    """The artifact as an entry of the configuration."""
    read = environment(artifact)
    return {"interpreters": read["interpreters"], "root": read["root"], "closure": f"{artifact}/store-paths"}


def output(reply):
    assert reply["exit_code"] == 0, reply["stderr"]
    return reply["stdout"]


@pytest.fixture(scope="module")
def presets(nix):
    """Name to artifact."""
    names = ["default", "node", "python", "shell"]
    return dict(zip(names, nix.build_all(host(f"map (n: presets.${{n}}) {json.dumps(names).replace(',', '')}"))))


@pytest.fixture(scope="module")
def daemon(presets):
    """With the presets in a directory of environments, which is the attribute `environments`."""
    with removed(public_directory()) as directory:
        for name, artifact in presets.items():
            os.symlink(artifact, os.path.join(directory, name))
        with Daemon({"environment_dirs": [directory], "user_environment_dirs": []}) as d:
            d.environments = directory
            yield d


def test_python_bash_and_node_in_one_session(daemon, nix):
    name = daemon.name()
    assert output(daemon.run("import dill, sys; x = 20; sys.prefix", name, "python")).startswith(f"'{nix.store}/")
    assert output(daemon.run("y=1; type -P sed sh env >/workspace/where; cat /workspace/where", name, "shell"))
    assert output(daemon.run("const z = 1; process.execPath", name, "node")).startswith(f"'{nix.store}/")
    # What each of them had is there yet.
    assert output(daemon.run("x + 1", name, "python")) == "21\n"
    assert output(daemon.run("echo $((y + 1))", name, "shell")) == "2\n"
    assert output(daemon.run("z + 1", name, "node")) == "2\n"
    root = environment(os.path.join(daemon.environments, "default"))["root"]
    assert output(daemon.run("open('/workspace/where').read().split()", name, "python")) == str(
        [f"{root}/bin/{p}" for p in ("sed", "sh", "env")]) + "\n"
    assert daemon.show(name)["environment"] == "default"


def test_what_programs_expect_to_find_is_there(daemon):
    """system() and scripts use /bin/sh and /usr/bin/env."""
    assert output(daemon.run("import subprocess; subprocess.check_output('echo $((1 + 1))', shell=True)", env="python")) == "b'2\\n'\n"
    assert output(daemon.run("""
        printf '#!/usr/bin/env bash\\necho script' >s; chmod +x s; ./s; printf '#!/bin/sh\\necho sh' >s; ./s""")) == "script\nsh\n"
    assert output(daemon.run("require('child_process').execSync('echo $0').toString()", env="node")) == "'/bin/sh\\n'\n"


@pytest.mark.parametrize("preset, code", [
    ("shell", "cd %s; printf '%%s\\n' *"),
    ("python", "import os; print('\\n'.join(sorted(os.listdir('%s'))))"),
    ("node", "console.log(require('fs').readdirSync('%s').join('\\n'))"),
])
def test_the_store_inside_is_exactly_the_closure(daemon, nix, presets, preset, code):
    closure = [os.path.basename(path) for path in nix.closure(environment(presets[preset])["root"])]
    # Run once, since a session is made with "default".
    assert sorted(output(daemon.run(code % nix.store, env=preset)).split()) == sorted(closure)
    assert len(os.listdir(nix.store)) > len(closure)


def test_nothing_of_the_host_is_there(daemon):
    shown = output(daemon.run("cd /; shopt -s dotglob nullglob; echo /*; echo /usr/*; echo /usr/bin/* /bin/*; echo /etc/*; echo /run/* /home/* /root/*"))
    top, usr, programs, etc, private = shown.split("\n")[:-1]
    assert not set(top.split()) & {"/lib", "/lib64", "/sbin", "/opt", "/boot", "/srv"}
    assert (usr, programs) == ("/usr/bin", "/usr/bin/env /bin/bash /bin/sh")
    assert set(etc.split()) <= {"/etc/" + name for name in ("passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "localtime")}
    assert private == ""
    assert daemon.run("type -P python3 node perl")["exit_code"] == 1


def test_devices_are_those_of_every_jail(daemon):
    code = "cd /dev; for f in * pts/*; do echo $f $(stat -c '%A %t %T' $f) $(readlink $f); done"
    with Daemon() as other:
        assert output(daemon.run(code)) == output(other.run(code))
    assert output(daemon.run("echo x >/dev/null; head -c 3 /dev/urandom | wc -c; exec 3<>/dev/ptmx && echo terminal")) == "3\nterminal\n"
    assert "Read-only file system" in daemon.run(": >/dev/new")["stderr"]


def test_what_is_in_the_store_cannot_be_written(daemon, nix):
    name = daemon.name()
    for path in (nix.store, "$(dirname $(readlink -f $(type -P sed)))", "$(dirname $(type -P sed))"):
        reply = daemon.run(f"cd {path} && : >new", name)
        assert reply["exit_code"] == 1 and "Read-only file system" in reply["stderr"]


def test_an_environment_is_there_in_the_call_after_it_was_built(daemon, nix):
    """nix-build makes the link by itself; it is gone when the link is; nothing else happens to the daemon or its sessions."""
    late = os.path.join(daemon.environments, "late")
    assert daemon.refused("Run", code="1", environment="late", project="/test").name.endswith("NoSuchEnvironment")
    nix.run("nix-build", "--out-link", late, "-E", host("""
        mkSandbox { name = "late"; interpreters = [ "bash" "python" ]; description = "made while it runs"; memoryMb = 128; }"""))
    name, pid = daemon.name(), daemon.pid
    reply = daemon.run("x=kept", name, "late")
    assert (reply["environment"], reply["interpreter"]) == ("late", "bash")
    (told,) = [e for e in daemon.call("Environments")["environments"] if e["name"] == "late"]
    assert told["description"] == "made while it runs"
    assert daemon.show(name)["memory_mb"] == 128

    os.unlink(late)
    assert daemon.refused("Run", code="1", environment="late", project="/test").name.endswith("NoSuchEnvironment")
    assert output(daemon.run("echo $x", name, None)) == "kept\n"
    assert daemon.pid == pid


def test_an_override_of_a_preset_has_its_own_sessions(daemon, nix):
    os.unlink(os.path.join(daemon.environments, "python"))
    nix.run("nix-build", "--out-link", os.path.join(daemon.environments, "python"), "-E", host("""
        presets.python.override { extraPackages = [ pkgs.gnugrep ]; }"""))
    name = daemon.name()
    assert "GNU grep" in output(daemon.run("import os; os.system('grep --version') and 1", name, "python"))
    assert daemon.show(name)["environment"] == "python"


def test_packages_of_node(nix):
    artifact = nix.build(host("""mkSandbox { name = "modules"; interpreters = [ "node" ]; nodePackages = [
        (pkgs.runCommandLocal "seven" { } ''
          mkdir -p $out/lib/node_modules/seven; echo 'module.exports = 7' >$out/lib/node_modules/seven/index.js'') ]; }"""))
    with Daemon({"environments": {"modules": configured(artifact)}}) as d:
        assert output(d.run("require('seven')", env="modules")) == "7\n"


def test_a_start_does_not_wait_for_the_number_of_paths(nix, tmp_path):
    """As binds of bubblewrap, 300 paths would cost half a second."""
    (tmp_path / "more").write_text("one of many\n")
    artifacts = nix.build_all(host(f"""
        let more = map (n: builtins.path {{ path = {tmp_path}; name = "more-${{toString n}}"; }}) (pkgs.lib.range 1 {MANY - FEW - 1});
            sandbox = name: packages: mkSandbox {{ inherit name packages; interpreters = [ "python" ]; }}; in
        [ (sandbox "few" [ ]) (sandbox "many" [ (pkgs.runCommandLocal "all" {{ inherit more; }} ''mkdir $out; echo $more >$out/more'') ]) ]"""))
    assert [len(nix.closure(environment(a)["root"])) for a in artifacts] == [FEW, MANY]

    with Daemon({"environments": {n: configured(a) for n, a in zip(("few", "many"), artifacts)}}) as d, d.link() as link:
        def start(name):
            """In milliseconds."""
            begin = time.monotonic()
            reply = link.call("Run", code=f"import os; len(os.listdir('{nix.store}'))", environment=name, project="/test")
            taken = (time.monotonic() - begin) * 1000
            assert output(reply) == f"{FEW if name == 'few' else MANY}\n"
            return taken

        def ratio():
            pairs = [(start("few"), start("many")) for _ in range(STARTS)]
            few, many = (statistics.median(times) for times in zip(*pairs))
            print(f"start with {FEW} paths {few:.1f} ms, with {MANY} {many:.1f} ms, ratio {many / few:.2f}")
            return many / few

        start("few"), start("many")     # these read files
        # A machine that does something else besides makes it more, never less.
        assert any(ratio() <= MOST for _ in range(ROUNDS))

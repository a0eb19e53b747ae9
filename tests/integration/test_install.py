# SPDX-License-Identifier: MIT
"""make install and make uninstall: what they write, and that they write it only where they are told."""
import json
import os
import re
import subprocess

import pytest

from daemonlib import BUILD, ROOT, public_directory, removed

PROGRAMS = {"bin/nix-sandbox-mcp", "bin/sandboxctl", "libexec/nix-sandbox/sandbox-agent", "libexec/nix-sandbox/sandbox-snapshot",
            "libexec/nix-sandbox/sandbox-environments", "libexec/nix-sandbox/sandbox-proxy", "libexec/nix-sandbox/sandbox-become",
            "libexec/nix-sandbox/sandboxd"}
DATA = {
    "lib/systemd/catalog/nix-sandbox.catalog", "lib/systemd/system/nix-sandbox.slice",
    "lib/systemd/system/sandboxd.service", "lib/systemd/system/sandboxd.socket", "lib/sysusers.d/nix-sandbox.conf",
    "lib/tmpfiles.d/nix-sandbox.conf", "share/bash-completion/completions/sandboxctl",
    "share/doc/nix-sandbox/CHANGELOG.md", "share/doc/nix-sandbox/LICENSE", "share/doc/nix-sandbox/README.md",
    "share/doc/nix-sandbox/architecture.md", "share/doc/nix-sandbox/examples/50-nix-sandbox.rules.example",
    "share/doc/nix-sandbox/examples/network.json", "share/doc/nix-sandbox/examples/sandboxd.json", "share/fish/vendor_completions.d/sandboxctl.fish",
    "share/man/man1/nix-sandbox-mcp.1", "share/man/man1/sandboxctl.1", "share/man/man5/nix-sandbox.conf.5",
    "share/man/man8/sandboxd.8", "share/nix-sandbox/io.nixsandbox.varlink",
    "share/polkit-1/actions/io.nixsandbox.policy",
}


def make(*arguments, writable):
    """make, where it can write to these directories only."""
    binds = [word for path in (BUILD, *writable) for word in ("--bind", path, path)]
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "DESTDIR", "PREFIX")} | {"TMPDIR": writable[0]}
    done = subprocess.run(["bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", *binds, "make", "-s", "-C", ROOT,
                           f"BUILD={BUILD}", *arguments], capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done


def files_below(root):
    return {os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files}


@pytest.mark.parametrize("prefix", ["/usr", "/opt/nix-sandbox"])
def test_install_and_uninstall(prefix):
    with removed(public_directory()) as dest:
        make("install", f"DESTDIR={dest}", f"PREFIX={prefix}", writable=[dest])
        installed = files_below(dest)
        assert {os.path.join(prefix[1:], f) for f in PROGRAMS | DATA} <= installed
        assert all(f.startswith(prefix[1:] + "/") for f in installed)
        for f in installed:
            mode = os.stat(os.path.join(dest, f)).st_mode & 0o7777
            assert mode == (0o755 if os.path.relpath(f, prefix[1:]) in PROGRAMS else 0o644), f
        with open(f"{dest}{prefix}/lib/systemd/system/sandboxd.service", encoding="utf-8") as f:
            unit = f.read()
        assert not re.search("@[A-Z_]+@", unit)
        assert f"\nExecStart={prefix}/libexec/nix-sandbox/sandboxd " in unit

        foreign = f"{dest}{prefix}/share/doc/nix-sandbox/of-somebody-else"
        with open(foreign, "w", encoding="utf-8"):
            pass
        make("uninstall", f"DESTDIR={dest}", f"PREFIX={prefix}", writable=[dest])
        assert files_below(dest) == {os.path.relpath(foreign, dest)}
        assert not os.path.exists(f"{dest}{prefix}/libexec/nix-sandbox")


@pytest.mark.parametrize("version, there", [("252", False), ("253", False), ("254", True), ("257", True), ("", False)])
def test_unit_is_made_for_a_systemd(version, there):
    """An unknown directive would be a warning at every start, and there is something in its place."""
    with removed(public_directory()) as dest:
        make("install", f"DESTDIR={dest}", f"SYSTEMD_VERSION={version}", writable=[dest])
        with open(f"{dest}/usr/lib/systemd/system/sandboxd.service", encoding="utf-8") as f:
            assert re.findall("^DelegateSubgroup=.*", f.read(), re.M) == (["DelegateSubgroup=supervisor"] if there else [])
        others = {"usr/lib/systemd/system/nix-sandbox-sessions.service", "usr/lib/systemd/system/sandboxd.service.d/50-sessions.conf"}
        assert others & files_below(dest) == (set() if there else others)


def test_example_configuration_is_what_is_built_in():
    sandboxd = os.path.join(BUILD, "sandboxd")
    example, built_in = (json.loads(subprocess.run([sandboxd, "--check-config", *more], capture_output=True, check=True).stdout)
                         for more in (["--config", os.path.join(ROOT, "docs/examples/sandboxd.json")], ["--private"]))
    assert example == built_in


def test_example_of_a_network_is_one():
    """With the sets that others speak of, and no host that there is: all of them are below .example."""
    path = os.path.join(ROOT, "docs/examples/network.json")
    shown = json.loads(subprocess.run([os.path.join(BUILD, "sandboxd"), "--check-config", "--config", path], capture_output=True,
                                      check=True).stdout)
    sets = shown["network"]["sets"]
    assert set(sets) == {"python-packages", "node-packages", "git-hosts"}
    assert shown["environments"]["python"]["network"] == sets["python-packages"] + sets["git-hosts"]
    rules = [rule for e in shown["environments"].values() for rule in e.get("network", [])] + sum(sets.values(), [])
    assert all(rule.split(":")[0].endswith(".example") for rule in rules)

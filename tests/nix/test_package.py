# SPDX-License-Identifier: MIT
"""nix/package.nix: it builds, tests and installs where only its own source is, and what it installs works from there."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import pytest

from nixlib import ROOT, SYSTEMS


def to_install(prefix):
    """What the repository's `make install` would install: (path, mode) below the prefix."""
    done = subprocess.run(["make", "-s", "-C", ROOT, "--eval", "what: ; @printf '%s\\n' $(INSTALLED)", "what", f"PREFIX={prefix}",
                           "BUILD=build", "SYSTEMD_VERSION=258"], capture_output=True, text=True, check=True,
                          env={"PATH": os.environ["PATH"]})
    for line in done.stdout.split():
        mode, source, folder, *name = line.split(":")
        yield os.path.relpath(os.path.join(folder, name[0] if name else os.path.basename(source)), prefix), mode


def files_below(root):
    return {os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files}


def test_installs_what_make_install_does(package):
    wanted = dict(to_install("/prefix"))
    assert files_below(package) == set(wanted)
    for path, mode in wanted.items():
        assert bool(os.stat(os.path.join(package, path)).st_mode & 0o111) == (mode == "755"), path


@pytest.mark.parametrize("program", ["bin/sandboxctl", "bin/nix-sandbox-mcp", "libexec/nix-sandbox/sandboxd"])
def test_programs_run(nix, package, program):
    version = nix.name(package).rpartition("-")[2]
    done = subprocess.run([os.path.join(package, program), "--version"], capture_output=True, text=True, check=True, env={})
    assert version in done.stdout


def test_configuration_is_read(package):
    sandboxd = os.path.join(package, "libexec/nix-sandbox/sandboxd")
    example = os.path.join(package, "share/doc/nix-sandbox/examples/sandboxd.json")
    done = subprocess.run([sandboxd, "--check-config", "--config", example], capture_output=True, check=True)
    assert "environments" in json.loads(done.stdout)


def test_configuration_is_looked_for_in_etc(package):
    with open(os.path.join(package, "libexec/nix-sandbox/sandboxd"), "rb") as f:
        assert b"\0/etc/nix-sandbox/sandboxd.json\0" in f.read()


def test_unit_names_programs_that_are_there(package):
    """NixOS has neither /usr/bin nor a PATH in which systemd would find a program."""
    with open(os.path.join(package, "lib/systemd/system/sandboxd.service"), encoding="utf-8") as f:
        unit = f.read()
    programs = dict(re.findall(r"^(Exec\w+)=(\S+)", unit, re.M))
    assert programs["ExecStart"] == os.path.join(package, "libexec/nix-sandbox/sandboxd")
    assert set(programs) == {"ExecStart", "ExecReload"}
    for program in programs.values():
        assert os.path.isabs(program) and os.access(program, os.X_OK)
    assert "\nDelegateSubgroup=supervisor\n" in unit
    assert not re.search(r"@\w+@|/usr|/bin/sh", unit)
    assert not os.path.exists(os.path.join(package, "lib/systemd/system/nix-sandbox-sessions.service"))


def test_refers_to_nothing_of_its_build(nix, package):
    names = {re.sub(r"-[0-9.]+$", "", nix.name(p)) for p in nix.closure(package)}
    assert {"nix-sandbox", "bubblewrap", "coreutils"} <= names
    assert not names & {"source", "pkg-config", "criterion", "glibc-static", "libarchive", "acl"}


@contextlib.contextmanager
def private_daemon(directory):
    """Ends the daemon that a client started for itself in this run-time directory."""
    lock = os.path.join(directory, "nix-sandbox", "run", "lock")
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            with open(lock, encoding="ascii") as f:
                pid = int(f.read())
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + 20
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
                time.sleep(0.05)
            assert not os.path.exists(f"/proc/{pid}"), "the private daemon did not end"


@pytest.mark.skipif(os.path.exists("/run/nix-sandbox/io.nixsandbox"), reason="the system service would be used")
def test_runs_code_without_a_path(package):
    """The client finds the daemon, the daemon its agent and bubblewrap, where PATH leads nowhere."""
    with tempfile.TemporaryDirectory(prefix="nix-sandbox-nix-") as home, private_daemon(home):
        env = {"PATH": "/var/empty", "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_STATE_HOME": home}
        done = subprocess.run([os.path.join(package, "bin/sandboxctl"), "run", "-i", "bash", "-"], env=env, cwd="/",
                              input="echo $((6*7))", capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


@pytest.mark.parametrize("system", SYSTEMS)
def test_evaluates_for(nix, system):
    value = nix.eval(f"""with import <nixpkgs> {{ system = "{system}"; }};
        let p = callPackage <repo/nix/package.nix> {{ }};
        in {{ inherit (p) system pname; drv = p.drvPath; program = lib.getExe p; platform = lib.elem p.system p.meta.platforms; }}""")
    assert value["system"] == system and value["platform"] and value["drv"].endswith(".drv")
    assert value["program"].endswith("/bin/sandboxctl")


def test_attributes_can_be_changed(nix):
    """What is made of others follows: finalAttrs."""
    name = nix.eval("""with import <nixpkgs> { };
        ((callPackage <repo/nix/package.nix> { }).overrideAttrs (_: { version = "9"; })).name""")
    assert name == "nix-sandbox-9"

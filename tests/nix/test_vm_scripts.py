# SPDX-License-Identifier: MIT
"""The scripts of the NixOS tests, judged without a machine; tests/pid1 runs them on one."""
import os

import pytest

from recorder import check, subtests

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TESTS = os.path.join(ROOT, "nix", "tests")
SCRIPTS = ["service.py", "options.py"]
# What a test in a virtual machine has to show at least, and what this one shows besides.
SERVICE = ["initialize + tools/list", "python", "shell", "node", "cwd is /workspace", "network blocked", "synthetic /etc/passwd",
           "stderr captured", "failing code = error", "empty code = success", "python/shell state persists",
           "sessions isolated", "/workspace files persist", "ephemeral run", "idle expiry", "two users, one refused",
           "socket activation", "limits", "standby", "reboot with restore"]
OPTIONS = ["packages of an environment", "only the closure is visible", "TOML form", "adminGroup", "reload keeps sessions"]


def script(name):
    text = ""
    for part in ("common.py", name):
        with open(os.path.join(TESTS, part), encoding="utf-8") as f:
            text += f.read()
    return text


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_use_what_the_driver_has(name):
    text = script(name)
    compile(text, name, "exec")
    assert check(text) == []


def test_machines_survive_a_full_memory(nix):
    """The driver's have vm.panic_on_oom = 2 otherwise, which a control group's memory triggers as well."""
    machine = nix.eval("""(import <repo/nix/tests/common.nix> { pkgs = import <nixpkgs> { }; }).boot.kernel.sysctl""")
    assert machine == {"vm.panic_on_oom": 0}


@pytest.mark.parametrize("name, wanted", [("service.py", SERVICE), ("options.py", OPTIONS)])
def test_subtests(name, wanted):
    names = subtests(script(name))
    assert set(wanted) <= set(names) and len(names) == len(set(names))


@pytest.mark.parametrize("line, why", [
    ("machine.suceed('true')", "suceed is no method"),
    ("machine.screenshot('a')", "screenshot is no method"),
    ("machine.wait_for_unit('a', patience=3)", "patience"),
    ("machine.require_unit_state()", "unit"),
    ("subtset('a')", "nobody defines subtset"),
    ("print(machine2)", "nobody defines machine2")])
def test_what_is_wrong_is_found(line, why):
    assert len(found := check("import json\n" + line)) == 1 and found[0].startswith("line 2: ") and why in found[0], found

# SPDX-License-Identifier: MIT
"""The scripts of the NixOS tests (nix/tests), with this machine in the place of the virtual one: its systemd, the units, users
and reboots are real; the configuration is written as the module would write it."""
import json
import os
import subprocess
import sys

import pytest

from pid1lib import CONFIG, RUNTIME, command, systemctl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TESTS = os.path.join(ROOT, "nix", "tests")
sys.path.insert(0, os.path.join(ROOT, "tests", "nix"))
# pylint: disable=wrong-import-position
from recorder import Recorder  # noqa: E402

PROGRAMS = "/run/nixos-programs"
SPECIALISATION = "/run/booted-system/specialisation/{}/bin/switch-to-configuration"
# What a machine with the controllers of cgroup v2 answers.
LIMITED = {part: (0, json.dumps(reply)) for part, reply in {
    "900 << 20": {"exit_code": None, "notice": "Memory limit 512 MB reached: a process was killed."},
    "kill hungry": {"id": "0"},
    "memory=300": {"session": {"memory_mb": 300}},
    "/memory.max": None,
    "/pids.max": None}.items()}
BRIEF = {"standby_after_seconds": 1, "idle_timeout_seconds": 4}


def text_of(name):
    with open(os.path.join(TESTS, name), encoding="utf-8") as f:
        return f.read()


def program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/bash\n{text}")
    os.chmod(path, 0o755)


def specialisation(name, settings):
    """What a switch comes to: another configuration, and a reload."""
    program(SPECIALISATION.format(name), f"echo '{json.dumps(settings)}' >{CONFIG} && systemctl reload sandboxd\n")


def text(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


@pytest.fixture
def machine(service):
    """As nix/tests/common.nix has it."""
    def off():
        systemctl("stop", "sandboxd.socket", "sandboxd.service")
        assert not os.path.exists(RUNTIME)

    def on():
        systemctl("start", "sandboxd.socket")

    program(os.path.join(PROGRAMS, "mcp-talk"), text_of("mcp-talk.sh"))
    with open("/etc/profile.d/nixos-programs.sh", "w", encoding="utf-8") as f:
        f.write(f"PATH={PROGRAMS}:$PATH\n")
    subprocess.run(["systemd-sysusers", "-"], input="u carol 4003 - - /bin/sh\n", text=True, check=True)
    command("install", "-d", "-o", "alice", "/var/lib/project", "/var/lib/alice")
    command("usermod", "-d", "/var/lib/alice", "alice")
    os.makedirs("/etc/built", exist_ok=True)
    return Recorder(power=(off, on))


def perform(machine, name):
    # pylint: disable=exec-used
    exec(compile(text_of("common.py") + text_of(name), name, "exec"), machine.symbols())


def has_memory_controller():
    with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as f:
        return "memory" in f.read().split()


def test_service(machine):
    if not has_memory_controller():
        machine.answers.update(LIMITED)
    specialisation("brief", {"require_limits": False, "session": BRIEF})
    perform(machine, "service.py")

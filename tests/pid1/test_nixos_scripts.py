# SPDX-License-Identifier: MIT
"""The scripts of the NixOS tests (nix/tests), with this machine in the place of the virtual one: its systemd, the units, users
and reboots are real; the configuration is written as the module would write it."""
import glob
import json
import os
import shutil
import subprocess
import sys

import pytest

from pid1lib import CONFIG, RUNTIME, command, systemctl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TESTS = os.path.join(ROOT, "nix", "tests")
sys.path.insert(0, os.path.join(ROOT, "tests", "nix"))
# pylint: disable=wrong-import-position
from recorder import Recorder  # noqa: E402

PROGRAMS, STORE = "/run/nixos-programs", "/var/lib/nixos-store"
ARTIFACTS = "/etc/nix-sandbox/environments.d"
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


def specialisation(name, settings, before=""):
    """What a switch comes to: another configuration, and a reload."""
    program(SPECIALISATION.format(name), f"{before}echo '{json.dumps(settings)}' >{CONFIG} && systemctl reload sandboxd\n")


def text(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


class Store:
    """Store paths made of this machine's programs, and artifacts of them."""

    def __init__(self):
        os.makedirs(STORE)
        for name in ("bash", "coreutils", "python"):
            self.make("package", name, os.path.join(STORE, name))

    @staticmethod
    def make(*words):
        command(os.path.join(ROOT, "tests", "nix", "host-closure"), *words)

    @staticmethod
    def package(name, content):
        """With a program of that name."""
        program(os.path.join(STORE, name, "bin", name), content)

    @staticmethod
    def python_with(module, content):
        """A second python, with dill as all of Nix have it; it needs the libraries of the first."""
        path = os.path.join(STORE, f"python-{module}")
        command("cp", "-al", os.path.join(STORE, "python"), path)
        (folder,) = glob.glob(os.path.join(path, "lib", "python3.*", ""))
        text(os.path.join(folder, module + ".py"), content)
        shutil.copytree("/usr/lib/python3/dist-packages/dill", os.path.join(folder, "dill"))

    def artifact(self, name, interpreters, packages=(), needed=(), **members):
        """Its path, in the store. needed: what its packages refer to."""
        packages = [os.path.join(STORE, p) for p in ("bash", "coreutils", *packages)]
        root, path = os.path.join(STORE, f"env-{name}"), os.path.join(STORE, f"environment-{name}")
        self.make("environment", root, *packages)
        text(os.path.join(path, "environment.json"), json.dumps(
            {"version": 1, "name": name, "interpreters": interpreters, "root": root, "closure": "store-paths", **members}))
        text(os.path.join(path, "store-paths"), "".join(p + "\n" for p in (*packages, *(os.path.join(STORE, n) for n in needed), root)))
        return path


def install(artifact):
    os.makedirs(ARTIFACTS, exist_ok=True)
    os.symlink(artifact, os.path.join(ARTIFACTS, os.path.basename(artifact).removeprefix("environment-")))


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


def test_options(machine):
    settings = {"require_limits": False, "user": {"max_sessions": 3}, "max": {"memory_mb": 1024},
                "defaults": {"timeout_seconds": 20}, "session": {"idle_timeout_seconds": 3600}}
    text(CONFIG, json.dumps(settings))
    text("/etc/nix-sandbox/mcp.json", json.dumps({"mcpServers": {"sandbox": {"command": "/usr/bin/nix-sandbox-mcp"}}}))
    store = Store()
    store.package("jq", "echo 42\n")
    store.package("hello", "echo 'Hello, world!'\n")
    store.python_with("yaml", "def safe_load(text):\n    return {'a': [1, 2]}\n")
    install(store.artifact("python", ["python"], ["python"], preset=True))
    install(store.artifact("data", ["python"], ["python-yaml", "jq"], ["python"], description="Python that reads YAML",
                           memory_mb=300, timeout_seconds=5))
    install(store.artifact("bare", ["bash"]))
    install(store.artifact("toml", ["bash"], memory_mb=128))
    os.symlink(store.artifact("dropped", ["bash"], ["hello"]), "/etc/built/dropped")
    more = store.artifact("more", ["bash"])
    settings["defaults"]["memory_mb"] = 256
    specialisation("more", settings, f"ln -s {more} {ARTIFACTS}/more\n")
    machine.instead["su -l carol -c"] = "bash -c"       # there is no polkit here, but root
    perform(machine, "options.py")

# SPDX-License-Identifier: MIT
"""What environments may reach, as the configuration and artifacts say it and clients are told; and the files of credentials."""
import json
import os
import subprocess

import pytest

from artifactlib import Artifacts
from daemonlib import BUILD, as_user
from test_environments import broken, environments, runs, shim
from test_reload import configure, hangup

ALICE = 4711
SETS = {"web": ["www.example", "*.www.example:8080"], "none": []}
LIST = "print(json.dumps(Link(sys.argv[1]).call('Environments')))"


def sandboxd(*arguments):
    return subprocess.run([os.path.join(BUILD, "sandboxd"), *arguments], capture_output=True, text=True, check=False)


def networks(d):
    return {name: e["network"] for name, e in environments(d).items()}


def test_what_clients_are_told(start, place):
    directory = place.directory()
    d = start({"network": {"sets": SETS}, "environment_dirs": [directory],
               "environments": {"python": {"network": ["A.example", "@web", "!x.www.example"]}, "node": {"network": ["@none"]}}})
    place.drop(directory, "tools", network=["b.example:22", "@web"])
    place.drop(directory, "closed", network=[])
    place.drop(directory, "plain")
    web = "www.example, *.www.example:8080"
    assert networks(d) == {"python": f"a.example, {web}, !x.www.example", "node": "nothing", "shell": "none", "default": "none",
                           "tools": f"b.example:22, {web}", "closed": "nothing", "plain": "none"}
    text, = shim(d, ("session", {"action": "environments"}))
    lines = {line.split(":")[0].split(" ")[0]: line for line in text.splitlines()}
    assert f"network a.example, {web}, !x.www.example" in lines["python"] and "network" not in lines["plain"]


@pytest.mark.parametrize("members,reason", [
    ({"network": ["@no"]}, "network: there is no set '@no'; there are @web, @none"),
    ({"network": ["*"]}, "network: '*' is no network rule: * would be everything"),
    ({"network": ["http://a.example/"]}, "is no network rule: a rule is a host and maybe a port, not a URL"),
    ({"network": "a.example"}, "network: must be a list of rules"),
    ({"network": [["a.example"]]}, "network: must be a list of rules"),
    ({"network": {"a.example": True}}, "network: must be a list of rules"),
    ({"network": ["a.example"] * 1025}, "network: more than 1024 network rules"),
    ({"network": ["@web"] * 513}, "network: with the rules of '@web' there are more than 1024"),
    ({"network": ["a\0.example"]}, "network: 'a' is no network rule"),
    ({"network": [], "credentials": []}, "credentials: unknown key"),
])
def test_artifacts_that_are_none(start, place, members, reason):
    directory = place.directory()
    d = start({"network": {"sets": SETS}, "environment_dirs": [directory]})
    place.drop(directory, "tools", **members)
    assert reason in broken(d)["tools"] and "tools" not in environments(d)
    place.make("tools", network=["@web"])
    assert not broken(d) and runs(d, "tools")


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_of_users(start, place):
    """With the sets of the configuration; how much is read of them is bounded, and costs nobody else."""
    d = start({"network": {"sets": {**SETS, "large": ["a.example"] * 1000}}, "environment_dirs": [],
               "user_environment_dirs": [f"{place.root}/user-%U"]})
    alice = Artifacts(place.root, ALICE)
    directory = alice.directory(f"user-{ALICE}")
    alice.drop(directory, "hers", network=["b.example", "@web"])
    for i in range(70):
        alice.make("z", name=f"z{i:02}", path=os.path.join(directory, f"z{i:02}"), network=["@large"])

    reply = as_user(ALICE, LIST, d.sock)
    listed = {e["name"]: e["network"] for e in reply["environments"]}
    reasons = {os.path.basename(b["path"]): b["reason"] for b in reply["broken"]}
    assert listed["hers"] == "b.example, www.example, *.www.example:8080"
    assert listed["z58"].endswith(" more") and len(listed["z58"]) < 5000
    # 64 environments, and 65536 of what is read.
    assert "one environment too many" in reasons["z60"] and "too many network rules" in reasons["z69"]
    assert set(networks(d)) == {"python", "shell", "node", "default"}


def test_written_as_it_is_read(place):
    config = {"network": {"sets": SETS, "limits": {"connections": 5}}, "environments": {"python": {
        "network": ["@web"], "credentials": [{"host": "www.example", "header": "Authorization", "file": "/nonexistent/token"}]}}}
    path = os.path.join(place.root, "config")
    place.write(path, json.dumps(config))
    first = sandboxd("--config", path, "--check-config")
    assert first.returncode == 0, first.stderr
    shown = json.loads(first.stdout)
    assert shown["network"]["sets"] == SETS and shown["network"]["limits"]["connections"] == 5
    assert shown["environments"]["python"]["network"] == SETS["web"]
    assert shown["environments"]["python"]["credentials"] == [
        {"host": "www.example", "port": 80, "header": "Authorization", "file": "/nonexistent/token"}]
    place.write(path, first.stdout)
    assert sandboxd("--config", path, "--check-config").stdout == first.stdout


def with_credential(**where):
    return {"environments": {"shell": {"network": [], "credentials": [{"host": "www.example", "header": "X-Token", **where}]}}}


def test_credentials_are_needed_by_who_serves(place):
    """And by who asks for them, but nobody shows them."""
    path, token = os.path.join(place.root, "config"), os.path.join(place.root, "token")
    place.write(path, json.dumps(with_credential(file=token)))
    assert sandboxd("--config", path, "--check-config").returncode == 0
    for arguments in (["--check-credentials"], ["--socket", os.path.join(place.root, "socket")]):
        done = sandboxd("--config", path, *arguments)
        assert done.returncode == 1
        assert f"{path}: environments.shell.credentials: {token}: No such file or directory" in done.stderr

    place.write(token, "Bearer secret-value\n")
    done = sandboxd("--config", path, "--check-credentials")
    assert done.returncode == 0 and token in done.stdout and "secret" not in done.stdout + done.stderr
    place.write(token, "secret-value\nsecret-value\n")
    done = sandboxd("--config", path, "--check-credentials")
    assert done.returncode == 1 and "printable" in done.stderr and "secret" not in done.stdout + done.stderr


def test_credentials_of_systemd(start, place, monkeypatch):
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", place.root)
    place.write(os.path.join(place.root, "token"), "secret-value")
    d = start(with_credential(credential="token"))
    assert networks(d)["shell"] == "nothing" and "secret" not in json.dumps(d.call("Environments"))
    # No session has the variable, or any other of the daemon's.
    assert d.run("env | grep -c CREDENTIALS")["stdout"] == "0\n"


def test_a_reload_without_them_is_refused(start, place):
    token = os.path.join(place.root, "token")
    place.write(token, "secret-value")
    d = start(with_credential(file=token))
    d.run("x=1", "a")
    os.unlink(token)
    error = d.refused("Reload")
    assert error.name == "ReloadRefused" and f"{token}: No such file or directory" in d.log()
    assert d.run("echo $x", "a")["stdout"] == "1\n"

    configure(d, {})
    hangup(d)
    assert d.run("echo $x", "a")["stdout"] == "1\n" and networks(d)["shell"] == "none"

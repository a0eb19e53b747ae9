# SPDX-License-Identifier: MIT
"""The cases of tests/cases/network.json on a host with a network in which everybody answers. So that a case can fail,
what it tries is also tried by root beside the jail, where it must succeed."""
import json
import os
import re
import socket
import sys
import types

import pytest

from daemonlib import BUILD, ROOT
from hostlib import HostDaemon
from netlib import PUBLIC4, PUBLIC6

sys.path.insert(0, os.path.join(ROOT, "tests", "cases"))
import caselib  # noqa: E402

with open(os.path.join(ROOT, "tests", "cases", "network.json"), encoding="utf-8") as f:
    CASES = json.load(f)
INTERPRETERS = {"python": ["/usr/bin/python3", "-c"], "shell": ["bash", "-c"], "node": ["node", "-e"]}
PROXY_PORT = 3128
CONFIG = {"environments": {f"listed-{e}": {"preset": e, "network": ["named.example", PUBLIC4, f"[{PUBLIC6}]:443"]} for e in INTERPRETERS},
          "snapshots": {"enabled": False}}
# What uses a proxy by itself.
BY_PROXY = {"net-no-proxy", "net-http", "net-node"}
# What root cannot show, and why.
NOT_TRIED = {
    "net-unix-sessions": "it is about two sessions",
    "net-descriptors": "pid 1 is the machine's",
    "net-ptrace": "pid 1 is the machine's",
    "net-x32": "not every kernel has these calls",
}


def of(cases):
    return pytest.mark.parametrize("case", cases, ids=[c["id"] for c in cases])


@pytest.fixture(scope="module")
def host(world, programs):
    """With abstract sockets, a proxy of its own, and pings for everyone."""
    world.network.host.set("ipv4/ping_group_range", "0 2147483647")
    sockets = []
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
        for name in "nix-sandbox-canary", "/tmp/.X11-unix/X0", "/tmp/dbus-canary":
            s = world.network.host.socket(socket.AF_UNIX, kind)
            s.bind(f"\0{name}")
            if kind != socket.SOCK_DGRAM:
                s.listen(64)
            sockets.append(s)
    for family, address in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
        s = world.network.host.socket(family, socket.SOCK_STREAM)
        s.bind((address, PROXY_PORT))
        s.listen(64)
        sockets.append(s)
    with HostDaemon(world.network, CONFIG, programs=programs) as d:
        yield d
    for s in sockets:
        s.close()


def check(host, world, case):
    tester = caselib.Tester(case["id"], caselib.Ctl(os.path.join(BUILD, "sandboxctl"), host.sock, slack=2.0),
                            types.SimpleNamespace(slack=2.0))
    world.contacts()
    world.dns.set("named.example", PUBLIC4, PUBLIC6)
    try:
        assert not tester.steps(case["steps"])
    finally:
        tester.close()
    assert not world.contacts(), "something was sent"
    assert not world.dns.questions("named.example"), "somebody was asked"


@of(CASES)
def test_fails(host, world, case):
    check(host, world, case)


@of([c for c in CASES if c["id"] not in BY_PROXY])
def test_fails_beside_a_proxy(host, world, case):
    """Where there is a list, and whatever is on it, the proxy is the only way."""
    steps = [{**step, "env": f"listed-{step['env']}"} for step in case["steps"]]
    check(host, world, {**case, "steps": steps})


@of([c for c in CASES if c["id"] not in NOT_TRIED])
def test_succeeds_outside(host, world, case, tmp_path):
    world.dns.set("named.example", PUBLIC4, PUBLIC6)
    for step in case["steps"]:
        code = f"(async () => {{ {step['code']} }})()" if step["env"] == "node" else step["code"]
        said, failure = host.beside(*INTERPRETERS[step["env"]], code, cwd=tmp_path), step["expect"]["stdout"]
        assert said != failure
        assert "REACHED" in said or not re.search(r"\bE[A-Z]{4}", failure), said

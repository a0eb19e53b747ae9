# SPDX-License-Identifier: MIT
"""On what terms a session has a network: credentials that it never sees, limits, and what it was used for."""
import json
import os
import re

import pytest

from daemonlib import NOBODY, as_user, descendants, wait_for
from hostlib import PYTHON
from netlib import OTHER4, PUBLIC4

SECRET = "Bearer s3cr3t-0f-th3-s3ss10n"
LIST = ["secret.example", "secret.example:8080", "plain.example", "tls.example"]


@pytest.fixture(autouse=True)
def names(world):
    for name in "secret.example", "tls.example":
        world.dns.set(name, PUBLIC4)
    world.dns.set("plain.example", OTHER4)
    world.contacts()


def config(limits=None, **more):
    return {"environments": {"python": {"network": LIST, **more}, "shell": {"network": LIST, **more}},
            **({"network": {"limits": limits}} if limits else {})}


# Credentials

@pytest.fixture
def secretive(world, start_on_host, tmp_path):
    """A daemon with a credential, in the two ways there are of having one, and the file of it."""
    path = tmp_path / "token"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    (tmp_path / "second").write_text("second-s3cr3t")
    return start_on_host(config(credentials=[
        {"host": "secret.example", "port": 80, "header": "Authorization", "file": str(path)},
        {"host": "plain.example", "port": 80, "header": "X-Token", "credential": "second"}]),
        env={"CREDENTIALS_DIRECTORY": str(tmp_path)})


def test_credential_arrives(world, secretive):
    """At its host and port, and nowhere else; what code says in its place does not count."""
    s = secretive.session(world.certificate)
    code = """
for url in "http://secret.example/seen?one", "http://secret.example:8080/seen?two", "http://plain.example/seen?three":
    fetch(url, headers={"Authorization": "mine", "X-Token": "mine"})
"""
    assert secretive.run(code, s, "python")["exit_code"] == 0
    seen = {r.argument: r for r in world.internet.find("/seen", 3)}
    assert seen["one"].values("Authorization") == [SECRET] and seen["one"].values("X-Token") == ["mine"]
    assert seen["two"].values("Authorization") == ["mine"]
    assert seen["three"].values("X-Token") == ["second-s3cr3t"] and seen["three"].values("Authorization") == ["mine"]


def test_credential_and_tunnel(world, secretive):
    s = secretive.session(world.certificate)
    reply = secretive.run("t, line = tunnel('secret.example:80'); print(line, t.recv(4096))\nprint(fetch('https://secret.example/')[:0] or tunnel('secret.example:443')[1])",
                          s, "python")
    first, second = reply["stdout"].splitlines()
    assert "403" in first and "credential" in first and "plain HTTP requests only" in first
    assert second.startswith("HTTP/1.") and world.contacts() in ([], [(PUBLIC4, 443)] * 2)


def test_credential_is_in_no_view(world, secretive):
    """Of root's and of others' calls, of commands, of the jail, of the audit trail; nor in what any user may read of a process."""
    s = secretive.session(world.certificate)
    secretive.run("fetch('http://secret.example/hello')", s, "python")
    code = r"""
import glob, os
found = [str(dict(os.environ))]
for path in glob.glob("/proc/[0-9]*/*") + [os.path.join(top, f) for base in ("/workspace", "/tmp", "/run", "/etc", "/dev/shm") for top, _, files in os.walk(base) for f in files]:
    if os.path.basename(path) in ("environ", "cmdline", "status", "maps", "comm", "mountinfo") or not path.startswith("/proc/"):
        try:
            with open(path, "rb") as f: found.append(f.read(1 << 20).decode("latin-1"))
        except OSError: pass
print(any("s3c" + "r3t" in t for t in found), len(found) > 10)
"""
    assert secretive.run(code, s, "python", timeout_ms=60000)["stdout"] == "False True\n"
    views = [json.dumps(secretive.call(m, **p)) for m, p in (
        ("Show", {"session": s, "project": secretive.project}), ("List", {}), ("Events", {}), ("Environments", {}),
        ("History", {"session": s, "project": secretive.project}))]
    checked = secretive.beside(secretive.command[secretive.command.index("--socket") - 1], "--check-config",
                               secretive.command[secretive.command.index("--config") + 1], env=secretive.env)
    views += [checked, secretive.log()] + [secretive.ctl(*c).stdout for c in (("show", s), ("envs",), ("audit",), ("events",), ("doctor",))]
    for top, _, files in os.walk(secretive.root):
        for path in (os.path.join(top, name) for name in files if os.path.isfile(os.path.join(top, name))):
            with open(path, "rb") as f:
                views.append(f.read().decode("latin-1"))
    for pid, _ in descendants(secretive.pid):
        for part in "environ", "cmdline":
            with open(f"/proc/{pid}/{part}", "rb") as f:
                views.append(f.read().decode("latin-1"))
    assert not [v for v in views if "s3cr3t" in v]


def test_credential_and_the_user(world, secretive):
    """Whose proxy has it: he is not let near its memory and descriptors."""
    said = as_user(NOBODY, f"""
with Link({secretive.sock!r}) as link:
    def run(code): return link.call("Run", code=code, session="s", environment="python", project="/test")
    run({PYTHON.replace('cafile="/workspace/ca.pem"', "")!r})
    print(json.dumps(run("print(fetch('http://secret.example/seen?user'))")["stdout"]))
""")
    assert SECRET in said               # /seen says what it was sent
    proxies = list(secretive.proxies())
    read = as_user(NOBODY, f"""
import os
read = []
for pid in {proxies!r}:
    assert "{NOBODY}" in open(f"/proc/{{pid}}/status").read()
    for part in "mem", "environ", "maps", "fd", "auxv", "io":
        try:
            (os.listdir if part == "fd" else lambda p: open(p, "rb").read(1))(f"/proc/{{pid}}/{{part}}"); read.append(part)
        except OSError: pass
print(json.dumps(read))
""")
    assert len(proxies) == 1 and read == []


def test_credential_that_is_not_there(world, start_on_host, tmp_path):
    """The daemon does not start with less than it was told, and says which."""
    missing = tmp_path / "missing"
    with pytest.raises(AssertionError, match=re.escape(str(missing))):
        start_on_host(config(credentials=[{"host": "secret.example", "port": 80, "header": "Authorization", "file": str(missing)}]))


# Limits

def test_connections(world, start_on_host):
    d = start_on_host(config({"connections": 2}))
    s = d.session(world.certificate)
    reply = d.run("held = [tunnel('tls.example:443') for _ in range(3)]; print(*(line for _, line in held), sep='\\n')", s, "python")
    one, two, three = reply["stdout"].splitlines()
    assert "200" in one and "200" in two and re.search("403|503", three)
    assert d.wait_usage(s, lambda u: u["connections_open"] == 2 and u["refused"] == 1)["connections_max"] == 2
    assert "too many connections at once" in d.run("held[2][0].settimeout(20); print(held[2][0].recv(999))", s, "python")["stdout"]
    d.run("for t, _ in held: t.close()", s, "python")
    d.wait_usage(s, lambda u: not u["connections_open"])
    assert "200" in d.run("print(tunnel('tls.example:443')[1])", s, "python")["stdout"]


def test_transfer(world, start_on_host):
    d = start_on_host(config({"transfer_mb": 2}))
    s, other = d.session(world.certificate), d.session(world.certificate)
    assert d.run("print(len(fetch('http://tls.example/blob?1000000')))", s, "python")["stdout"] == "1000000\n"
    assert d.run("print(fetch('http://tls.example/blob?4000000'))", s, "python")["stdout"].endswith("reset by peer\n")
    refused = d.run("print(fetch('http://tls.example/hello'))", s, "python")
    assert "(403, 'tls.example:80 was not connected to: the session has moved all the bytes that it may." in refused["stdout"]
    u = d.wait_usage(s, lambda u: u["refused"])
    assert u["transfer_mb"] == 2 and u["bytes_in"] + u["bytes_out"] <= 2 << 20
    assert d.run("print(fetch('http://tls.example/hello'))", other, "python")["stdout"] == "b'hello\\n'\n"


def test_rate(world, start_on_host):
    """Half a MiB a second: 1.5 MB take two seconds at least, whatever the machine."""
    d = start_on_host(config({"rate_mbps": 0.5}))
    s = d.session(world.certificate)
    reply = d.run("import time; t = time.monotonic(); n = len(fetch('http://tls.example/blob?1500000')); print(n, time.monotonic() - t)", s, "python")
    size, seconds = reply["stdout"].split()
    assert size == "1500000" and float(seconds) > 1.5


def test_idle_and_total(world, start_on_host):
    d = start_on_host(config({"idle_seconds": 1, "total_seconds": 3}))
    s = d.session(world.certificate)
    code = """
import time
def lives(active):
    t, _ = tunnel("tls.example:443"); began = time.monotonic()
    t.settimeout(0.2)
    while time.monotonic() - began < 20:
        try:
            if active: t.sendall(b"\\x16")
            if not t.recv(99): break
        except TimeoutError: pass
        except OSError: break
    return time.monotonic() - began
print(lives(False))
"""
    seconds = float(d.run(code, s, "python", timeout_ms=60000)["stdout"])
    assert 0.9 < seconds < 15
    d.wait_usage(s, lambda u: not u["connections_open"])
    u = d.usage(s)
    assert (u["idle_seconds"], u["total_seconds"]) == (1, 3)


# What is told

def test_usage(world, start_on_host):
    """Of each session alone; and the same by all ways."""
    d = start_on_host(config())
    s, quiet = d.session(world.certificate), d.session(world.certificate)
    d.run("fetch('http://tls.example/blob?300000'); fetch('http://other.example/'); fetch('http://other.example/')\n"
          "world = tunnel('tls.example:443')", s, "python")
    u = d.wait_usage(s, lambda u: u["bytes_in"] > 300000 and u["refused"] == 2 and u["connections_open"] == 1)
    assert u["connections"] == 2 and u["failed"] == 0 and 300000 < u["bytes_in"] < 310000 and 0 < u["bytes_out"] < 10000
    assert (u["allow"], u["narrowed"], u["granted"]) == (LIST, None, [])
    assert (u["connections_max"], u["rate_mbps"], u["transfer_mb"], u["idle_seconds"], u["total_seconds"]) == (64, 0, 0, 60, 3600)
    assert all(d.usage(quiet)[k] == 0 for k in ("connections", "connections_open", "refused", "bytes_in", "bytes_out"))
    listed = {e["name"]: e for e in d.call("List")["sessions"]}
    assert listed[s]["network"]["connections"] == 2 and listed[s]["network"]["refused"] == 2
    shown, stats = d.ctl("show", s), d.ctl("stats", s)
    assert shown.returncode == stats.returncode == 0
    assert all(re.search("2 refused|REFUSED", text) for text in (shown.stdout, stats.stdout)), (shown.stdout, stats.stdout)


def test_failed_is_not_refused(world, start_on_host):
    d = start_on_host({"environments": {"python": {"network": ["nowhere.example"]}}})
    s = d.session(world.certificate)
    reply = d.run("print(fetch('http://nowhere.example/'))", s, "python")
    assert "is allowed, but there is no such host" in reply["stdout"] and reply["notice"] is None
    assert d.wait_usage(s, lambda u: u["failed"])["refused"] == 0


def test_environments_say_what_they_reach(start_on_host):
    d = start_on_host({"environments": {"python": {"network": ["a.example", "*.b.example:22"]}, "shell": {"network": []}}})
    found = {e["name"]: e["network"] for e in d.call("Environments")["environments"]}
    assert found == {"python": "a.example, *.b.example:22", "shell": "nothing", "node": "none", "default": "none"}


def test_sets(world, start_on_host):
    d = start_on_host({"environments": {"python": {"network": ["@web", "!plain.example"]}},
                       "network": {"sets": {"web": ["tls.example", "plain.example"]}}})
    s = d.session(world.certificate)
    reply = d.run("print(fetch('https://tls.example/hello')); print(fetch('http://plain.example/hello')[0])", s, "python")
    assert reply["stdout"] == "b'hello\\n'\n403\n"


def test_proxies_of_a_host_without_names(world, start_on_host):
    """A name server that says nothing: the tool is told so in bounded time, others are not held."""
    world.dns.set("plain.example", silent=True)
    d = start_on_host(config())
    s = d.session(world.certificate)
    link = d.begin("print(fetch('http://plain.example/'))", s, "python", timeout_ms=60000, link=d.link(wait=60))
    wait_for(lambda: world.dns.questions("plain.example"))
    assert d.run("curl -sS --max-time 20 http://tls.example/hello", env="shell")["stdout"] == "hello\n"
    assert "could not be looked up" in link.answer()["stdout"]
    link.close()

# SPDX-License-Identifier: MIT
"""What becomes of sessions with a network when their proxy, their daemon or its configuration goes; and of proxies when
their sessions do."""
import contextlib
import json
import os
import signal

import pytest

from daemonlib import NOBODY, as_user, stat_of, together, wait_for
from hostlib import PYTHON, HostService
from netlib import OTHER4, PUBLIC4
from test_lifecycle import need_cgroups

LIST = ["tls.example", "plain.example"]
CONFIG = {"environments": {"python": {"network": LIST}, "shell": {"network": LIST}, "none": {"preset": "shell"}}}
# Says "up" in a file when half of it is there.
DOWNLOAD = """
import http.client
def download(url, size):
    try:
        with opened(url) as r:
            got = len(r.read(size // 4)); open("up", "w").close()
            got += len(r.read())
        return got == size
    except (OSError, http.client.HTTPException) as e:
        return "cut"
"""


@pytest.fixture(autouse=True)
def names(world):
    world.dns.set("tls.example", PUBLIC4)
    for name in "plain.example", "other.example":
        world.dns.set(name, OTHER4)
    world.contacts()
    world.internet.gate.clear()
    yield
    world.internet.gate.set()


@pytest.fixture
def service(world, programs):
    with contextlib.ExitStack() as stack:
        def start(config=CONFIG):
            d = stack.enter_context(HostService(world.network, config, programs=programs))
            need_cgroups(d, "freezer")
            return d
        yield start


def configure(d, config):
    with open(d.command[d.command.index("--config") + 1], "w", encoding="utf-8") as f:
        json.dump(config, f)


def listing(*rules):
    return {"environments": {**CONFIG["environments"], "python": {"network": list(rules)}}}


def listings(rules):
    """The same for environments of Python and of bash; None: they have no network."""
    return {"environments": {e: {"description": e, "interpreters": [i], **({} if rules is None else {"network": rules})}
                             for e, i in (("python", "python"), ("shell", "bash"))}}


def hangup(d):
    if isinstance(d, HostService):
        return d.reload()
    before = d.log().count(" serves ")
    d.process.send_signal(signal.SIGHUP)
    return wait_for(lambda: d.log().count(" serves ") > before)



def begin_download(world, d, s, url="http://tls.example/held?800000", size=800000):
    """A turn in the middle of one; its link."""
    count = sum(r.path == "/held" for r in world.internet.requests)
    link = d.begin(DOWNLOAD + f"print(download({url!r}, {size}))", s, "python", timeout_ms=60000, link=d.link(wait=70))
    world.internet.find("/held", count + 1)
    d.wait_usage(s, lambda u: u["connections_open"] and u["bytes_in"] >= size // 4)
    return link


def recorded(d, s):
    """What the next daemon will know of a session's network; written a while after it has changed."""
    with open(os.path.join(d.runtime, "sessions", d.show(s)["id"]), encoding="utf-8") as f:
        return json.load(f)["network"]


def fetches(d, s, url="http://tls.example/hello"):
    return d.run(f"print(fetch({url!r}))", s, "python", timeout_ms=60000)["stdout"] == "b'hello\\n'\n"


# A proxy

def test_killed_in_the_middle_of_a_transfer(world, start_on_host):
    """The turn gets an error and is told why; the session and its state stay, and what was used; another proxy serves it."""
    d = start_on_host(CONFIG)
    s = d.session(world.certificate)
    d.run("x = 41", s, "python")
    assert fetches(d, s)
    link = begin_download(world, d, s)
    [(pid, started)] = d.proxies().items()
    before = d.usage(s)
    os.kill(pid, signal.SIGKILL)
    reply = link.answer()
    link.close()
    assert reply["stdout"] == "cut\n" and "sandbox-proxy ended" in reply["notice"], reply
    assert fetches(d, s)
    assert d.run("print(x + 1)", s, "python")["stdout"] == "42\n"
    [(other, _)] = d.proxies().items()
    assert other != pid and not ((found := stat_of(pid)) and found[2] == started and found[0] != "Z")
    after = d.wait_usage(s, lambda u: u["connections"] == before["connections"] + 1 and not u["connections_open"])
    assert after["bytes_in"] >= before["bytes_in"] and after["bytes_out"] > 0
    assert "network_lost" in d.events(d.show(s)["id"])


def test_killed_again_and_again(world, start_on_host):
    """It comes back each time, and what was used is not forgotten, nor counted twice."""
    d = start_on_host({**CONFIG, "network": {"limits": {"transfer_mb": 2}}})
    s = d.session(world.certificate)
    for n in range(1, 5):
        assert d.run("print(len(fetch('http://tls.example/blob?400000')))", s, "python", timeout_ms=60000)["stdout"] == "400000\n"
        d.wait_usage(s, lambda u, n=n: n * 400000 < u["bytes_in"] < n * 410000 and not u["connections_open"])
        [(pid, _)] = d.proxies().items()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda p=pid: (q := d.proxies()) and p not in q)
    assert d.run("print(fetch('http://tls.example/blob?800000'))", s, "python", timeout_ms=60000)["stdout"].endswith("reset by peer\n")


def test_stopped(world, start_on_host):
    """A proxy that hangs is its user's trouble: neither the daemon nor another user waits for it."""
    d = start_on_host(CONFIG)
    s = d.session(world.certificate)
    assert fetches(d, s)
    [(pid, _)] = d.proxies().items()
    os.kill(pid, signal.SIGSTOP)
    try:
        link = d.begin("print(fetch('http://tls.example/hello'))", s, "python", timeout_ms=3000)
        found = as_user(NOBODY - 1, f"""
with Link({d.sock!r}) as link:
    def run(code): return link.call("Run", code=code, session="s", environment="shell", project="/test")
    said = [run("curl -sS http://plain.example/hello")["stdout"] for _ in range(3)]
    link.call("Kill", session="s", project="/test")
    print(json.dumps(said))
""")
        assert found == ["hello\n"] * 3
        reply = link.answer()
        link.close()
        assert reply["timed_out"]
        assert d.run("print(6 * 7)", s, "python")["stdout"] == "42\n"
        assert d.call("Set", session=s, project=d.project, allow=["other.example"])["session"]["network"]["granted"]
        new = d.session(world.certificate)
        assert d.show(new)["network"]["connections"] == 0
        d.call("Kill", session=new, project=d.project)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert fetches(d, s) and fetches(d, s, "http://other.example/hello")


def test_proxy_of_a_user(world, start_on_host):
    """Two users have two proxies, each as himself; whichever is killed, the other's transfers go on."""
    d = start_on_host(CONFIG)
    users = NOBODY, NOBODY - 1
    code = f"""
with Link({d.sock!r}) as link:
    def run(code, name="s"): return link.call("Run", code=code, session=name, environment="python", project="/test")
    run({PYTHON.replace('cafile="/workspace/ca.pem"', "")!r})
    print(json.dumps([run("print(fetch('http://tls.example/hello'))")["stdout"] for _ in range(2)]))
"""
    for uid in users:
        assert as_user(uid, code) == ["b'hello\\n'\n"] * 2
    found = {}
    for pid in d.proxies():
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = dict(line.split(":", 1) for line in f)
        found[int(status["Uid"].split()[0])] = pid
        assert len(set(status["Uid"].split())) == len(set(status["Gid"].split())) == 1 and not status["Groups"].split()
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2" and int(status["CapEff"], 16) == 0
    assert set(found) == set(users)
    os.kill(found[NOBODY], signal.SIGKILL)
    assert found[NOBODY - 1] in d.proxies()
    for uid in users:
        assert as_user(uid, code) == ["b'hello\\n'\n"] * 2


def test_one_proxy_for_all_sessions_of_a_user(world, start_on_host):
    """Started with the first that has a network, and ended a while after the last; nothing of it stays."""
    d = start_on_host(CONFIG)
    d.run(":", d.name(), "none")
    assert d.proxies() == {}
    sessions = [d.session(world.certificate) for _ in range(4)]
    assert all(fetches(d, s) for s in sessions) and len(d.proxies()) == 1
    [(pid, _)] = d.proxies().items()
    for s in sessions:
        d.call("Kill", session=s, project=d.project)
    wait_for(lambda: not d.proxies())
    assert not stat_of(pid)             # reaped
    assert fetches(d, d.session(world.certificate))


def test_sessions_that_come_and_go(world, start_on_host):
    """Of each, whatever it had open, nothing is left: no descriptor in the daemon or the proxy, no socket in the directory."""
    d = start_on_host(CONFIG)
    keep = d.session(world.certificate)
    assert fetches(d, keep)
    [(pid, _)] = d.proxies().items()

    def there():
        return len(os.listdir(f"/proc/{d.pid}/fd")), len(os.listdir(f"/proc/{pid}/fd"))
    before = wait_for(lambda: d.usage(keep)["connections_open"] == 0 and there())

    def one():
        s = d.session(world.certificate)
        d.run("held = [tunnel('tls.example:443') for _ in range(5)]", s, "python")
        d.call("Kill", session=s, project=d.project)
    for _ in range(4):
        together(*[one] * 3)
    wait_for(lambda: all(now <= then + 1 for now, then in zip(there(), before)))
    assert not [f for f in os.listdir(os.path.join(d.runtime, "sessions")) if "network" in f]
    assert fetches(d, keep)


# A daemon

def test_crash_of_the_daemon(world, service):
    """Sessions are adopted with their network: what they may reach, what was granted and narrowed, and what was used."""
    d = service()
    s = d.session(world.certificate, network=["tls.example", "plain.example"])
    d.run("x = 41", s, "python")
    d.call("Set", session=s, project=d.project, allow=["other.example"])
    assert fetches(d, s) and d.run("print(fetch('http://bad.example/'))", s, "python")["notice"]
    before = d.wait_usage(s, lambda u: u["connections"] == 1 and u["refused"] == 1 and not u["connections_open"] and u["bytes_in"])
    wait_for(lambda: recorded(d, s)["used"] | {"connections_open": 0} == {k: v for k, v in before.items() if k in recorded(d, s)["used"]})
    old = set(d.proxies())
    d.restart()
    assert d.usage(s) == before
    assert fetches(d, s) and fetches(d, s, "https://tls.example/hello") and fetches(d, s, "http://other.example/hello")
    assert "403" in d.run("print(fetch('http://bad.example/'))", s, "python")["stdout"]
    assert d.run("print(x + 1)", s, "python")["stdout"] == "42\n"
    assert d.wait_usage(s, lambda u: u["connections"] == 4)["refused"] == 2
    wait_for(lambda: not [p for p in old if (found := stat_of(p)) and found[0] != "Z"])
    d.call("Kill", session=s, project=d.project)
    wait_for(lambda: not d.proxies())


def test_crash_in_the_middle_of_a_transfer(world, service):
    """What was open is cut, which the turn sees; the turn goes on."""
    d = service()
    s = d.session(world.certificate)
    link = begin_download(world, d, s)
    d.restart()
    link.close()
    reply = d.call("Wait", session=s, project=d.project)
    assert reply["stdout"] == "cut\n" and fetches(d, s)


@pytest.mark.parametrize("kind", ["foreground", "service"])
def test_reload_with_another_list(world, start_on_host, service, kind):
    """What living sessions may reach is what the configuration says now."""
    d = start_on_host(CONFIG) if kind == "foreground" else service()
    s = d.session(world.certificate)
    d.run("x = 41", s, "python")
    assert fetches(d, s) and not fetches(d, s, "http://other.example/hello")
    link = begin_download(world, d, s)
    configure(d, listing("plain.example", "other.example"))
    hangup(d)
    link.close()
    assert d.call("Wait", session=s, project=d.project)["stdout"] == "cut\n"
    assert not fetches(d, s) and fetches(d, s, "http://other.example/hello")
    assert d.usage(s)["allow"] == ["plain.example", "other.example"]
    assert d.run("print(x + 1)", s, "python")["stdout"] == "42\n"
    configure(d, CONFIG)
    hangup(d)
    assert fetches(d, s) and not fetches(d, s, "http://other.example/hello")


def test_reload_that_takes_the_network_away(world, start_on_host):
    """A list that is gone allows nothing. One that comes is for new sessions: a jail without a way out gets none."""
    d = start_on_host(CONFIG)
    s, none = d.session(world.certificate), d.name()
    d.run(":", none, "none")
    configure(d, {"environments": {"python": {}, "shell": {"network": LIST}, "none": {"preset": "shell", "network": LIST}}})
    hangup(d)
    assert not fetches(d, s)
    assert d.run("echo [$http_proxy]", none, "none")["stdout"] == "[]\n" and d.show(none)["network"] is None
    assert d.run("curl -sS http://tls.example/hello", d.name(), "none")["stdout"] == "hello\n"
    new = d.name()
    d.run("pass", new, "python")
    assert d.show(new)["network"] is None


def test_reload_that_is_refused(world, start_on_host):
    """What the configuration cannot mean changes nothing."""
    d = start_on_host(CONFIG)
    s = d.session(world.certificate)
    configure(d, listing("not a name"))
    assert "goes on as it was" in d.refused("Reload").message and "not a name" in d.log()
    assert fetches(d, s)


def test_exception_of_an_administrator_cuts_what_is_open(world, start_on_host):
    d = start_on_host(CONFIG)
    s, other = d.session(world.certificate), d.session(world.certificate)
    links = [begin_download(world, d, session) for session in (s, other)]
    d.call("Set", session=s, project=d.project, allow=["!tls.example"])
    assert links[0].answer()["stdout"] == "cut\n"
    world.internet.gate.set()
    assert links[1].answer()["stdout"] == "True\n" and fetches(d, other) and not fetches(d, s)
    for link in links:
        link.close()


# A snapshot

PROXY_NAMES = {"python": "import os; print(len([k for k in os.environ if 'prox' in k.lower()]))", "shell": "env | grep -ic proxy"}


@pytest.mark.parametrize("env", PROXY_NAMES)
def test_restored_where_there_is_another_network(world, start_on_host, env):
    """What leads to the proxy is the new session's, and not of the state; so is what it may reach: no grant outlives its session."""
    d = start_on_host(listings(LIST))
    s = d.name()
    n = int(d.run(PROXY_NAMES[env], s, env)["stdout"])
    assert n > 4
    d.call("Set", session=s, project=d.project, allow=["other.example"])
    d.call("Save", session=s, project=d.project)
    for rules, count in (None, 0), (LIST, n):
        configure(d, listings(rules))
        hangup(d)
        new = d.name()
        d.call("Restore", session=s, name=new, project=d.project)
        assert d.run(PROXY_NAMES[env], new, env)["stdout"] == f"{count}\n"
        assert (d.usage(new) or {}).get("granted", []) == []


# Standby

def test_standby_and_back(world, start_on_host):
    d = start_on_host({**CONFIG, "session": {"standby_after_seconds": 1}, "snapshots": {"enabled": False}})
    need_cgroups(d, "freezer")
    s = d.session(world.certificate)
    d.run("x = 41", s, "python")
    assert fetches(d, s)
    used = d.wait_usage(s, lambda u: u["connections"] == 1)
    wait_for(lambda: d.state(s) == "standby")
    assert d.usage(s)["connections"] == used["connections"]
    assert fetches(d, s) and d.run("print(x + 1)", s, "python")["stdout"] == "42\n"


def test_frozen_by_hand(world, start_on_host):
    """What it had open is held, or ended by the limits; nobody else waits for it."""
    d = start_on_host(CONFIG)
    need_cgroups(d, "freezer")
    s, other = d.session(world.certificate), d.session(world.certificate)
    d.run(DOWNLOAD + "import threading\nwhole = []\nt = threading.Thread(target=lambda: whole.append(download('http://tls.example/held?800000', 800000)))\n"
          "t.start()", s, "python")
    d.wait_usage(s, lambda u: u["bytes_in"] >= 400000)
    d.call("Freeze", session=s, project=d.project)
    world.internet.gate.set()
    assert fetches(d, other)
    d.call("Thaw", session=s, project=d.project)
    assert d.run("t.join(); print(whole)", s, "python")["stdout"] == "[True]\n" and fetches(d, s)

# SPDX-License-Identifier: MIT
"""What callers say and see of a session's network: narrowing, granting, what is told, and garbage. No byte goes anywhere."""
import os

import pytest

from daemonlib import NOBODY, Daemon, VarlinkError, as_user
from polkitlib import DENY, GRANT, FakePolkit, link_as, private_bus

INVALID = "org.varlink.service.InvalidParameter"
ALLOW = ["pypi.example", "*.files.example:443", "!bad.files.example"]
CONFIG = {"environments": {"net": {"interpreters": ["bash"], "network": [*ALLOW, "@set"]},
                           "closed": {"interpreters": ["bash"], "network": []}},
          "network": {"sets": {"set": ["Set.EXAMPLE."]}, "limits": {"connections": 7, "rate_mbps": 1.5, "transfer_mb": 9}}}
RULES = [*ALLOW, "set.example"]
UNUSED = {"connections_open": 0, "connections": 0, "refused": 0, "failed": 0, "bytes_in": 0, "bytes_out": 0}
LIMITS = {"connections_max": 7, "rate_mbps": 1.5, "transfer_mb": 9, "idle_seconds": 60, "total_seconds": 3600}

# What is no list of rules, and a word of the sentence that says so.
BAD = [("a.example", "'PARAMETER'"), ({"0": "a.example"}, "'PARAMETER'"), (7, "'PARAMETER'"), (True, "'PARAMETER'"),
       ([7], "[0]: must be a string"), ([None], "[0]: must be a string"), (["a.example", ["b.example"]], "[1]: must be a string"),
       ([{}], "must be a string"), ([""], "names no host"), (["a.example", "*"], "[1]: '*' is no network rule"), (["*.org"], "too much"),
       (["a\0.example"], "is no network rule"), (["\0"], "is no network rule"), (["http://a.example/"], "not a URL"), (["u@a.example"], "not a URL"),
       (["a b"], "space"), (["a.example,b.example"], "neither a name"), (["a.example:0"], "port"), (["a.example:65536"], "port"),
       (["127.1"], "neither a name"), (["0x7f.0.0.1"], "neither a name"), (["a\r\nb.example"], "is no network rule"),
       (["💥.example"], "neither a name"), (["xn--0.example"], "neither a name"), (["\u202ea.example"], "is no network rule"),
       (["x" * 64 + ".example"], "neither a name"), (["a" * 30000], "is no network rule"), (["a" * 100000], "32 KiB"), (["@set"], "configuration only"),
       (["a.example", "!@set"], "configuration only"), (["@"], "configuration only"),
       (["a.example"] * 1025, "[1024]: more than 1024"), (["a.example"] * 100000, "more than 1024"), (["a.example" * 400] * 1000, "32 KiB"), ([[]] * 100000, "must be a string")]


@pytest.fixture(name="daemon", scope="module")
def daemon_fixture(programs):
    with Daemon(CONFIG, programs=programs) as d:
        yield d


@pytest.fixture(autouse=True)
def ended(daemon):
    """Saved at the end of the daemon, so many sessions would take long."""
    yield
    for session in daemon.call("List")["sessions"]:
        daemon.call("Kill", session=session["id"])


@pytest.fixture(name="sid")
def sid_fixture(daemon, name):
    return daemon.run("true", name, env="net")["id"]


def network(daemon, session):
    return daemon.show(session)["network"]


# What is told

def test_what_a_session_may_reach(daemon, sid, name):
    assert network(daemon, name) == {"allow": RULES, "narrowed": None, "granted": [], **UNUSED, **LIMITS}
    daemon.run("true", name + "-closed", env="closed")
    assert network(daemon, name + "-closed") == {"allow": [], "narrowed": None, "granted": [], **UNUSED, **LIMITS}
    daemon.run("true", name + "-none")
    assert network(daemon, name + "-none") is None


def test_a_list_has_numbers_but_no_lists(daemon, sid):
    listed = next(s for s in daemon.call("List")["sessions"] if s["id"] == sid)["network"]
    assert listed == {"allow": None, "narrowed": None, "granted": None, **UNUSED, **LIMITS}


def test_no_bounds_are_zero(start):
    d = start({"environments": CONFIG["environments"], "network": {"sets": CONFIG["network"]["sets"]}})
    d.run("true", "a", env="net")
    shown = network(d, "a")
    assert (shown["connections_max"], shown["rate_mbps"], shown["transfer_mb"]) == (64, 0, 0)


def test_environments(daemon):
    told = {e["name"]: e["network"] for e in daemon.call("Environments")["environments"]}
    assert told["net"] == ", ".join(RULES) and told["closed"] == "nothing" and told["python"] == "none"
    line = next(line for line in daemon.ctl("envs").stdout.splitlines() if line.startswith("net "))
    assert "pypi.example, *.files.example:443, !bad.…" in line


# Narrowing

@pytest.mark.parametrize("rules, canonical", [
    ([], []), (["pypi.example"], ["pypi.example"]), (["PyPI.Example.", "!x.example", "[::1]:80", "Bücher.example"],
                                                     ["pypi.example", "!x.example", "[::1]:80", "xn--bcher-kva.example"]),
    (["pаypal.example"], ["xn--pypal-4ve.example"]), (["a.example"] * 1024, ["a.example"] * 1024)], ids=range(5))
def test_narrowed_by_its_maker(daemon, name, rules, canonical):
    assert daemon.run("true", name, env="net", network=rules)["notice"] is None
    assert network(daemon, name)["narrowed"] == canonical and network(daemon, name)["allow"] == RULES


def test_null_narrows_nothing(daemon, name):
    daemon.run("true", name, env="net", network=None)
    assert network(daemon, name)["narrowed"] is None


def test_a_session_that_is_there_stays_as_it_is(daemon, sid, name):
    for rules in ([], ["pypi.example"]):
        assert "network stays as it is" in daemon.run("true", name, env="net", network=rules)["notice"]
    assert network(daemon, name)["narrowed"] is None
    assert daemon.run("true", name, env="net")["notice"] is None


def test_an_environment_without_a_network(daemon, name):
    assert daemon.run("true", name, network=[])["notice"] is None
    for session in (name, name + "-new", None):
        assert "has no network" in daemon.run("true", session, network=["pypi.example"])["notice"]
    assert daemon.run("true", name, network=[])["notice"] is None
    assert network(daemon, name) is None


def test_sandboxctl_narrows(daemon, name):
    for rules, shown in (("pypi.example,!x.example", ["pypi.example", "!x.example"]), ("none", []), ("", [])):
        session = daemon.name()
        done = daemon.ctl("run", "-s", session, "-e", "net", "--network", rules, "echo x")
        assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")
        status, reply = daemon.json("show", session)
        assert status == 0 and reply["session"]["network"]["narrowed"] == shown


# Granting

def test_an_administrator_allows_more(daemon, sid, name):
    reply = daemon.call("Set", session=sid, allow=["More.example", "!x.example:22"])
    assert reply["notice"] is None and reply["session"]["network"]["granted"] == ["more.example", "!x.example:22"]
    daemon.call("Set", session=sid, allow=["more.example"])
    assert network(daemon, name)["granted"] == ["more.example", "!x.example:22", "more.example"]
    events = [e for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "network_allowed"]
    assert [(e["by"], e["uid"]) for e in events] == [(os.getuid(), os.getuid())] * 2
    assert "more.example" in events[0]["detail"] and "!x.example:22" in events[0]["detail"]
    assert daemon.run("echo x", name, env="net")["stdout"] == "x\n"


def test_a_session_that_was_narrowed_is_widened(daemon, name):
    sid = daemon.run("true", name, env="closed", network=[])["id"]
    daemon.call("Set", session=sid, allow=["more.example"])
    shown = network(daemon, name)
    assert (shown["allow"], shown["narrowed"], shown["granted"]) == ([], [], ["more.example"])


def test_no_more_rules_than_there_may_be(daemon, sid, name):
    daemon.call("Set", session=sid, allow=["a.example"] * 1000)
    error = daemon.refused("Set", session=sid, allow=["a.example"] * 25)
    assert (error.name, error.parameters["limit"]) == ("LimitExceeded", "network") and "has 1000 of them" in error.message
    assert len(network(daemon, name)["granted"]) == 1000
    assert len(daemon.call("Set", session=sid, allow=["a.example"] * 24)["session"]["network"]["granted"]) == 1024


def test_what_has_no_network_gets_none(daemon, name):
    sid = daemon.run("true", name)["id"]
    error = daemon.refused("Set", session=sid, allow=["a.example"])
    assert error.name == "NotSupported" and "has no network" in error.message and "'default'" in error.message
    # All or nothing.
    before = daemon.show(name)["cpu_weight"]
    assert daemon.refused("Set", session=sid, allow=["a.example"], cpu_weight=7).name == "NotSupported"
    assert daemon.show(name)["cpu_weight"] == before


def test_limits_and_rules_in_one_call(daemon, sid, name):
    try:
        reply = daemon.call("Set", session=sid, cpus=0.5, allow=["a.example"])["session"]
    except VarlinkError as e:
        assert e.name == "NotSupported"
        assert network(daemon, name)["granted"] == []
        pytest.skip("no cpu controller here")
    assert reply["cpus"] == 0.5 and reply["network"]["granted"] == ["a.example"]
    # What is refused of one leaves the other as it is.
    daemon.run("head -c 50M /dev/zero > big", name, env="net")
    error = daemon.refused("Set", session=sid, memory_mb=40, allow=["b.example"])
    assert error.name == "LimitExceeded" and network(daemon, name)["granted"] == ["a.example"]
    error = daemon.refused("Set", session=sid, cpus=0.25, allow=["*"])
    assert error.name == INVALID and daemon.show(name)["cpus"] == 0.5


def test_nothing_to_allow(daemon, sid):
    error = daemon.refused("Set", session=sid, allow=[])
    assert error.name == INVALID and error.parameters["parameter"] == "allow"
    assert daemon.refused("Set", session=sid).parameters["parameter"] == "memory_mb"


def test_sandboxctl_allows(daemon, sid, name):
    env = {**os.environ, "PROJECT_DIR": "/test"}
    done = daemon.ctl("set", name, "--allow", "more.example,*.x.example:22", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = daemon.ctl("show", name, env=env).stdout
    assert f"network: {', '.join(RULES)}\n" in shown and "granted: more.example, *.x.example:22\n" in shown
    done = daemon.ctl("set", name, "--allow", "*", env=env)
    assert done.returncode == 1 and "allow[0]: '*' is no network rule" in done.stderr
    done = daemon.ctl("set", name, "--allow", "@set", env=env)
    assert done.returncode == 1 and "configuration only" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_nobody_else_allows_anything(daemon, sid):
    """His own session neither, where polkit does not answer."""
    answer = as_user(NOBODY, """
link = Link(sys.argv[1])
link.call("Run", code="true", session="mine", environment="net", project="/test")
seen = []
for session in ("mine", sys.argv[2]):
    try: link.call("Set", session=session, project="/test", allow=["a.example"])
    except VarlinkError as e: seen.append([e.name, e.message])
print(json.dumps([seen, link.call("Show", session="mine", project="/test")["session"]["network"]["granted"]]))""", daemon.sock, sid)
    (own, foreign), granted = answer
    assert own[0] == "PermissionDenied" and "let a session reach more of the network" in own[1]
    assert foreign[0] == "NoSuchSession" and granted == []


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be several users")
def test_polkit_is_asked(start):
    action = "io.nixsandbox.allow-network"
    with private_bus() as bus, FakePolkit(bus) as polkit:
        d = start(CONFIG, env=bus.env)
        with link_as(d, 61002) as bob:
            what = {"session": "s", "project": "/p", "allow": ["a.example"]}
            bob.call("Run", code="true", session="s", environment="net", project="/p", network=["pypi.example"])
            assert polkit.quiet(), "narrowing needs nobody's consent"
            for verdict in (DENY, GRANT):
                bob.send("Set", **what)
                question = polkit.question()
                assert question["action"] == action
                polkit.answer(question, verdict)
                if verdict == DENY:
                    with pytest.raises(VarlinkError, match=action):
                        bob.answer()
                    assert bob.call("Show", session="s", project="/p")["session"]["network"]["granted"] == []
            assert bob.answer()["session"]["network"]["granted"] == ["a.example"]
            # What is of no use is refused before anybody is asked.
            for bad in ({"allow": ["*"]}, {"allow": []}, {"allow": ["a.example"] * 1024}):
                bob.send("Set", **{**what, **bad})
                with pytest.raises(VarlinkError, match="allow|rules"):
                    bob.answer()
            assert polkit.quiet()


# Garbage

@pytest.mark.parametrize("rules, word", BAD, ids=range(len(BAD)))
def test_what_is_no_list_of_rules(daemon, sid, name, rules, word):
    for method, parameter, more in (("Run", "network", {"code": "true", "session": name + "-new", "environment": "net"}),
                                    ("Run", "network", {"code": "true"}), ("Set", "allow", {"session": sid})):
        error = daemon.refused(method, **more, **{parameter: rules})
        assert error.name == INVALID and error.parameters["parameter"] == parameter
        assert word.replace("PARAMETER", parameter) in error.message, error.message
        assert error.message.isprintable() and len(error.message) < 1000
    assert daemon.refused("Show", session=name + "-new").name == "NoSuchSession"
    assert network(daemon, name)["granted"] == []


@pytest.mark.parametrize("rule", ["a" + "\u00ad" * 500 + ".example", ".".join(["ü" * 6] * 18) + ".example", "a" * 60 + ".example"],
                         ids=range(3))
def test_lists_are_no_longer_than_others_can_wait(daemon, sid, name, rule):
    size = len(rule.encode())
    most = min(32768 // size, 1024)
    assert len(daemon.call("Set", session=sid, allow=[rule] * most)["session"]["network"]["granted"]) == most
    for n in (most + 1, 1000):
        error = daemon.refused("Run", code="true", network=[rule] * n)
        assert error.name == INVALID and "32 KiB" in error.message

# SPDX-License-Identifier: MIT
"""Other users' sessions: who may see and act on them, whatever polkit answers, or does not."""
import contextlib
import os
import select
import signal
import socket
import subprocess

import pytest

from daemonlib import Daemon, VarlinkError, wait_for
from polkitlib import CHALLENGE, DENY, GRANT, PYTHON, Bus, FakePolkit, link_as, private_bus

ALICE, BOB = 61001, 61002
VERBS = {"Show": "show", "History": "show", "Kill": "kill", "Freeze": "freeze", "Thaw": "thaw", "Interrupt": "interrupt",
         "Set": "set"}
LIST, MANAGE, EXCEED, SYSTEM = (f"io.nixsandbox.{action}" for action in (
    "list-others", "manage-others", "exceed-limits", "manage-system"))
NOWHERE = "0123456789ab"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")


@pytest.fixture(name="bus", scope="module")
def bus_fixture():
    with private_bus() as bus:
        yield bus


@pytest.fixture(name="daemon", scope="module")
def daemon_fixture(bus, programs):
    with Daemon({"user": {"max_connections": 1500}}, programs=programs, env=bus.env) as d:
        yield d


@pytest.fixture(name="polkit")
def polkit_fixture(bus):
    with FakePolkit(bus) as polkit:
        yield polkit


@pytest.fixture(name="bob")
def bob_fixture(daemon):
    with link_as(daemon, BOB) as link:
        yield link


@pytest.fixture(name="sid")
def sid_fixture(daemon):
    """A session of Alice's."""
    with link_as(daemon, ALICE) as link:
        sid = link.call("Run", code="true", session=daemon.name(), environment="shell", project="/a")["id"]
        yield sid
        with contextlib.suppress(VarlinkError):
            link.call("Kill", session=sid)


def refused(link, send=True, **call):
    """The error of a call, or, without send, of the one before."""
    if send:
        link.send(**call)
    with pytest.raises(VarlinkError) as e:
        link.answer()
    return e.value


def ask(link, polkit, verdict, method, **parameters):
    """One call that needs polkit; the question it was."""
    link.send(method, **parameters)
    question = polkit.question()
    polkit.answer(question, verdict)
    return question


# What is asked

def test_question(daemon, polkit, bob, sid):
    q = ask(bob, polkit, GRANT, "Kill", session=sid, any_user=True)
    assert bob.answer() == {"id": sid}
    assert q["signature"] == "(sa{sv})sa{ss}us" and q["kind"] == "unix-process"
    assert (q["pid"], q["uid"], q["start_time"]) == (os.getpid(), BOB, 0)
    assert q["pidfd_pid"] == os.getpid()
    assert (q["action"], q["details"], q["flags"]) == (MANAGE, {"session": sid, "verb": "kill"}, 0)
    assert q["id"]


@pytest.mark.parametrize("method", VERBS)
def test_each_verb(daemon, polkit, bob, sid, method):
    q = ask(bob, polkit, GRANT, method, session=sid, any_user=True, **({"processes": 500} if method == "Set" else {}))
    reply = bob.answer()
    assert q["action"] == (LIST if method in ("Show", "History") else MANAGE)
    assert q["details"] == {"session": sid, "verb": VERBS[method]}
    if method == "Show":
        assert reply["session"]["uid"] == ALICE


def test_list_and_events(daemon, polkit, bob, sid):
    for method, key in (("List", "sessions"), ("Events", "events")):
        q = ask(bob, polkit, GRANT, method, all=True)
        assert (q["action"], q["details"]) == (LIST, {})
        assert ALICE in [s["uid"] for s in bob.answer()[key]]
        assert ALICE not in [s["uid"] for s in bob.call(method)[key]]
    assert polkit.quiet()


def test_events_of_all_are_followed(daemon, polkit, bob, sid):
    bob.send("Events", _more=True, follow=True, all=True)
    polkit.answer(polkit.question(), GRANT)
    bob.answer()
    daemon.call("Kill", session=sid)
    event = bob.answer()["events"][0]
    assert (event["event"], event["session"], event["by"]) == ("killed", sid, 0)


def test_interaction_only_if_wanted(daemon, polkit, bob, sid):
    assert ask(bob, polkit, DENY, "Show", session=sid, any_user=True, interactive=True)["flags"] == 1
    assert refused(bob, send=False).name == "NoSuchSession"
    assert ask(bob, polkit, CHALLENGE, "List", all=True, interactive=True)["flags"] == 1
    e = refused(bob, send=False)
    assert e.name == "PermissionDenied" and "authenticate" in e.message and LIST in e.message
    assert ask(bob, polkit, CHALLENGE, "List", all=True)["flags"] == 0
    assert "interactive" in refused(bob, send=False).message


def test_root_and_owners_are_not_asked_for(daemon, polkit, bob, sid):
    assert daemon.call("Show", session=sid)["session"]["uid"] == ALICE
    assert sid in [s["id"] for s in daemon.call("List", all=True)["sessions"]]
    assert ALICE in [e["uid"] for e in daemon.call("Events")["events"]]
    own = bob.call("Run", code="true", session="own", environment="shell", project="/b")["id"]
    assert bob.call("Show", session=own, any_user=True)["session"]["id"] == own
    assert bob.call("Kill", session="own", any_user=True) == {"id": own}
    assert daemon.call("Kill", session=sid) == {"id": sid}
    assert polkit.quiet()


def test_reload(start, bus, polkit):
    d = start({}, env=bus.env)
    with link_as(d, BOB) as bob:
        assert ask(bob, polkit, DENY, "Reload")["action"] == SYSTEM
        e = refused(bob, send=False)
        assert e.name == "PermissionDenied" and SYSTEM in e.message
        assert d.log().count(" serves ") == 1
        ask(bob, polkit, GRANT, "Reload")
        assert bob.answer() == {}
    wait_for(lambda: d.log().count(" serves ") == 2)


def test_exceeding_limits(start, bus, polkit):
    d = start({"defaults": {"processes": 100}, "max": {"processes": 100}}, env=bus.env)
    with link_as(d, BOB) as bob, link_as(d, ALICE) as alice:
        for link in (bob, alice):
            sid = link.call("Run", code="true", session="s", environment="shell", project="/p")["id"]
        what = {"session": "s", "project": "/p", "processes": 300}
        try:
            assert "over the maximum" in bob.call("Set", **what)["notice"]
        except VarlinkError as e:
            assert e.name == "NotSupported"
            pytest.skip("no pids controller here")
        assert polkit.quiet()
        for verdict in (DENY, GRANT):
            assert ask(bob, polkit, verdict, "Set", exceed=True, **what)["action"] == EXCEED
            if verdict == DENY:
                e = refused(bob, send=False)
                assert e.name == "PermissionDenied" and EXCEED in e.message
        reply = bob.answer()
        assert reply["notice"] is None and reply["session"]["processes_max"] == 300
        # What was granted stays.
        assert bob.call("Set", session="s", project="/p", cpus=1)["session"]["processes_max"] == 300
        assert "over the maximum" in bob.call("Set", session="s", project="/p", processes=301)["notice"]

        # Of somebody else: one call, two questions.
        for last in (DENY, GRANT):
            ask(bob, polkit, GRANT, "Set", session=sid, any_user=True, exceed=True, processes=200)
            question = polkit.question()
            assert question["action"] == EXCEED
            polkit.answer(question, last)
            if last == DENY:
                assert refused(bob, send=False).name == "PermissionDenied"
                assert alice.call("Show", session=sid)["session"]["processes_max"] == 100
        assert bob.answer()["session"]["processes_max"] == 200
        assert d.call("Set", session=sid, exceed=True, processes=250)["session"]["processes_max"] == 250
        assert polkit.quiet()


# What a refusal tells

@pytest.mark.parametrize("method", VERBS)
@pytest.mark.parametrize("verdict", [DENY, CHALLENGE])
def test_foreign_and_missing_look_alike(daemon, polkit, bob, sid, method, verdict):
    seen = []
    for session in (sid, NOWHERE):
        q = ask(bob, polkit, verdict, method, session=session, any_user=True)
        e = refused(bob, send=False)
        seen.append([e.name, e.message.replace(session, "ID"), sorted(e.parameters), q["action"], q["flags"],
                     {**q["details"], "session": "ID"}])
    assert seen[0] == seen[1] and seen[0][0] == "NoSuchSession"
    plain = refused(bob, method=method, session=NOWHERE)
    assert plain.message.replace(NOWHERE, "ID") == seen[0][1]
    assert daemon.call("Show", session=sid)["session"]["state"] == "running"


def test_granted_and_missing(daemon, polkit, bob):
    ask(bob, polkit, GRANT, "Show", session=NOWHERE, any_user=True)
    assert refused(bob, send=False).name == "NoSuchSession"


def test_not_everything_is_asked(daemon, polkit, bob, sid):
    with link_as(daemon, ALICE) as alice:
        name = alice.call("Show", session=sid)["session"]["name"]
    for parameters in ({"session": sid}, {"session": name, "any_user": True}, {"session": sid.upper(), "any_user": True},
                       {"session": sid[:-1], "any_user": True}, {"session": sid, "any_user": False}):
        assert refused(bob, method="Kill", **parameters).name == "NoSuchSession"
    assert refused(bob, method="Show", session=sid, any_user="yes").name == "org.varlink.service.InvalidParameter"
    assert polkit.quiet()


def test_nobody_runs_or_waits_in_a_foreign_session(daemon, polkit, bob, sid):
    for link in (bob, daemon.link()):
        assert refused(link, method="Wait", session=sid).name == "NoSuchSession"
        assert refused(link, method="Wait", session=sid, any_user=True).name == "org.varlink.service.InvalidParameter"
        reply = link.call("Run", code="true", session=sid, environment="shell", project="/b")
        assert reply["session_state"] == "created" and reply["id"] != sid
        reply = link.call("Run", code="true", session=sid, environment="shell", project="/b")
        assert reply["session_state"] == "resumed" and reply["id"] != sid, "its own of that name"
        link.call("Kill", session=sid, project="/b")
    with link_as(daemon, ALICE) as alice:
        assert alice.call("Show", session=sid)["session"]["turns"] == 1
    assert polkit.quiet()


def test_denied_list_says_what_would_allow_it(daemon, polkit, bob):
    for method in ("List", "Events"):
        ask(bob, polkit, DENY, method, all=True)
        e = refused(bob, send=False)
        assert e.name == "PermissionDenied" and LIST in e.message and "rule" in e.message


# The world goes on meanwhile

def test_slow_answer(daemon, polkit, bob, sid):
    bob.send("Kill", session=sid, any_user=True)
    bob.send("GetVersion")
    question = polkit.question()
    with link_as(daemon, BOB) as other:
        assert other.call("List")["sessions"] == []
    assert bob.quiet(), "calls of one connection are answered in order"
    polkit.answer(question, GRANT)
    assert bob.answer() == {"id": sid}
    assert "version" in bob.answer()


def test_session_that_ended_meanwhile(daemon, polkit, bob, sid):
    bob.send("Kill", session=sid, any_user=True)
    question = polkit.question()
    daemon.call("Kill", session=sid)
    polkit.answer(question, GRANT)
    assert refused(bob, send=False).name == "NoSuchSession"


def test_verdicts_are_for_one_call(daemon, polkit, bob, sid):
    ask(bob, polkit, GRANT, "Show", session=sid, any_user=True)
    bob.answer()
    ask(bob, polkit, DENY, "Show", session=sid, any_user=True)
    assert refused(bob, send=False).name == "NoSuchSession"


def test_who_did_it_is_kept(daemon, polkit, bob, sid):
    ask(bob, polkit, GRANT, "Kill", session=sid, any_user=True)
    bob.answer()
    killed = next(e for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "killed")
    assert (killed["uid"], killed["by"]) == (ALICE, BOB)


def test_verdicts_are_events(daemon, polkit, bob, sid):
    def verdicts():
        return [(e["event"], e["session"], e["uid"], e["by"], e["detail"]) for e in daemon.call("Events")["events"]
                if e["event"].startswith("access_")]
    before = len(verdicts())
    ask(bob, polkit, DENY, "Kill", session=sid, any_user=True)
    refused(bob, send=False)
    ask(bob, polkit, GRANT, "Show", session=sid, any_user=True)
    bob.answer()
    ask(bob, polkit, DENY, "List", all=True)
    refused(bob, send=False)
    daemon.call("Show", session=sid)  # root
    assert verdicts()[before:] == [("access_denied", sid, BOB, BOB, f"{MANAGE} verb=kill"),
                                   ("access_granted", sid, BOB, BOB, f"{LIST} verb=show"),
                                   ("access_denied", "", BOB, BOB, LIST)]


def test_peer_that_hangs_up_withdraws_its_question(daemon, polkit, sid):
    with link_as(daemon, BOB) as link:
        link.send("Kill", session=sid, any_user=True, interactive=True)
        question = polkit.question()
    cancel = polkit.expect("CancelCheckAuthorization")
    assert cancel["arguments"] == [question["id"]] and cancel["no_reply"]
    polkit.answer(question, GRANT)
    with link_as(daemon, BOB) as link:  # the late grant is nobody's
        ask(link, polkit, DENY, "Show", session=sid, any_user=True)
        assert refused(link, send=False).name == "NoSuchSession"
    assert daemon.call("Show", session=sid)["session"]["state"] == "running"


def test_peer_that_only_closes_its_sending_side_is_answered(daemon, polkit, bob, sid):
    bob.send("Show", session=sid, any_user=True)
    bob.socket.shutdown(socket.SHUT_WR)
    polkit.answer(polkit.question(), GRANT)
    assert bob.answer()["session"]["id"] == sid


def test_process_that_ended_is_granted_nothing(daemon, polkit, sid):
    """Its connection lives on in a child, and its pid may be somebody else's by now."""
    code = f"""
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({daemon.sock!r})
s.sendall(b'{{"method":"io.nixsandbox.Kill","parameters":{{"session":"{sid}","any_user":true}}}}\\0')
if os.fork():
    sys.stdin.read()
    os._exit(0)
os.close(0)
print(s.recv(4096).decode(), flush=True)
"""
    with subprocess.Popen([PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=BOB, group=BOB,
                          extra_groups=[]) as p:
        question = polkit.question()
        assert question["pid"] == question["pidfd_pid"] == p.pid
        p.stdin.close()
        assert p.wait(30) == 0
        polkit.answer(question, GRANT)
        assert b"NoSuchSession" in p.stdout.read()
    assert daemon.call("Show", session=sid)["session"]["state"] == "running"


# Whatever is not a clear yes is a no

GARBAGE = [
    ("", []), ("s", ["yes"]), ("b", [True]), ("(bb)", [[True, True]]), ("(bba{sv})", [[True, False, {}]]),
    ("(iia{ss})", [[1, 0, {}]]), ("(bba{ss})s", [[True, False, {}], "more"]), ("a(bba{ss})", [[[True, False, {}]]]),
    ("v", [True]),
]


@pytest.mark.parametrize("signature, values", GARBAGE)
def test_garbage(daemon, polkit, bob, sid, signature, values):
    bob.send("Kill", session=sid, any_user=True)
    polkit.tell(serial=polkit.question()["serial"], signature=signature, values=values)
    assert refused(bob, send=False).name == "NoSuchSession"
    assert daemon.call("Show", session=sid)["session"]["state"] == "running"


@pytest.mark.parametrize("name", ["org.freedesktop.PolicyKit1.Error.Failed", "org.freedesktop.PolicyKit1.Error.Cancelled",
                                  "org.freedesktop.PolicyKit1.Error.NotAuthorized", "org.example.Any"])
def test_error(daemon, polkit, bob, sid, name):
    bob.send("Kill", session=sid, any_user=True)
    polkit.tell(serial=polkit.question()["serial"], error=name, message="no\nsuch\x1b[1m luck" * 100)
    assert refused(bob, send=False).name == "NoSuchSession"
    assert "\x1b" not in daemon.log()


def test_polkit_that_ends_in_the_middle(daemon, bus, bob, sid):
    with FakePolkit(bus) as polkit, link_as(daemon, BOB) as other:
        bob.send("Kill", session=sid, any_user=True)
        other.send("List", all=True)
        polkit.question(), polkit.question()
        polkit.end()
        assert refused(bob, send=False).name == "NoSuchSession"
        assert refused(other, send=False).name == "PermissionDenied"
    with FakePolkit(bus) as polkit:
        ask(bob, polkit, GRANT, "Show", session=sid, any_user=True)
        assert bob.answer()["session"]["id"] == sid


def test_no_polkit_on_the_bus(daemon, bus, bob, sid):
    before = daemon.log().count("polkit cannot be asked")
    for _ in range(3):
        assert refused(bob, method="Kill", session=sid, any_user=True).name == "NoSuchSession"
        e = refused(bob, method="List", all=True)
        assert e.name == "PermissionDenied" and "Only root" in e.message
    assert daemon.log().count("polkit cannot be asked") <= before + 1, "said once"
    assert bob.call("Run", code="echo x", environment="shell")["stdout"] == "x\n"


def doctor(daemon):
    check = next(c for c in daemon.call("Doctor")["checks"] if c["name"] == "polkit")
    return check["verdict"], check["detail"]


def test_doctor(start, bus, polkit):
    d = start(env=bus.env)
    assert doctor(d)[0] == "ok" and "not asked" in doctor(d)[1]
    with link_as(d, BOB) as bob:
        bob.send("List", all=True)
        polkit.answer(polkit.question(), DENY)
        refused(bob, send=False)
        assert doctor(d) == ("ok", "answers")
        bob.send("List", all=True)
        polkit.tell(serial=polkit.question()["serial"], error="org.freedesktop.PolicyKit1.Error.Failed",
                    message="Action is not registered")
        refused(bob, send=False)
    assert doctor(d)[0] == "warning" and "not registered" in doctor(d)[1]


def test_peers_cannot_make_polkit_look_bad(start, bus, polkit):
    """A dialog that is dismissed, or that nobody answers, is no failure of polkit's."""
    d = start(env=bus.env)
    with link_as(d, BOB) as bob:
        bob.send("List", all=True, interactive=True)
        polkit.tell(serial=polkit.question()["serial"], error="org.freedesktop.PolicyKit1.Error.Cancelled", message="x")
        assert "polkit does not grant" in refused(bob, send=False).message
    assert doctor(d)[0] == "ok" and "polkit" not in d.log()


def test_no_bus(start, bus):
    d = start()
    with link_as(d, BOB) as bob:
        for _ in range(3):
            assert refused(bob, method="List", all=True).name == "PermissionDenied"
            assert refused(bob, method="Kill", session=NOWHERE, any_user=True).name == "NoSuchSession"
        assert bob.call("Run", code="echo x", environment="shell")["stdout"] == "x\n"
    assert d.log().count("polkit cannot be asked") == 1


def test_bus_that_ends_and_comes_back(start, tmp_path):
    with Bus(str(tmp_path)) as bus:
        d = start(env=bus.env)
        with link_as(d, BOB) as bob, link_as(d, BOB) as other:
            with FakePolkit(bus) as polkit:
                bob.send("List", all=True)
                other.send("List", all=True)
                polkit.question(), polkit.question()
                bus.end()
                for link in (bob, other):
                    assert refused(link, send=False).name == "PermissionDenied"
            assert refused(bob, method="List", all=True).name == "PermissionDenied"
            bus.start()
            with FakePolkit(bus) as polkit:
                ask(bob, polkit, GRANT, "List", all=True)
                assert bob.answer() == {"sessions": []}


def test_silence(start, bus, polkit, tmp_path):
    """A polkit and a bus that take the question and say nothing: 25 seconds, and the question is taken back."""
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute"))
        mute.listen()
        daemons = start(env=bus.env), start(env={"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/mute"})
        with link_as(daemons[0], BOB) as one, link_as(daemons[1], BOB) as other:
            for link in (one, other):
                link.socket.settimeout(45)
                link.send("List", all=True)
            question = polkit.question()
            for link in (one, other):
                assert refused(link, send=False).name == "PermissionDenied"
            assert polkit.expect("CancelCheckAuthorization")["arguments"] == [question["id"]]
            polkit.answer(question, GRANT)
            ask(one, polkit, GRANT, "List", all=True)
            assert one.answer() == {"sessions": []}


# Caps

def split(links, n):
    """The links that still wait, and the others, once n have an answer."""
    def answered():
        found = {fd for fd, _ in poll.poll(0)}
        return found if len(found) >= n else None
    poll = select.poll()
    for link in links:
        poll.register(link.socket, select.POLLIN)
    found = wait_for(answered)
    assert len(found) == n
    return [link for link in links if link.socket.fileno() not in found], [link for link in links if link.socket.fileno() in found]


def test_questions_are_capped(daemon, polkit):
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(link_as(daemon, BOB)) for _ in range(1000)]
        for link in links:
            link.send("Kill", session=NOWHERE, any_user=True)
        questions = [polkit.question() for _ in range(8)]
        asked, answered = split(links, 992)
        for link in answered:
            e = refused(link, send=False)
            assert e.name == "LimitExceeded" and e.parameters["limit"] == "questions"
        assert polkit.quiet()
        alice = stack.enter_context(link_as(daemon, ALICE))
        ask(alice, polkit, GRANT, "List", all=True)
        alice.answer()

        for q in questions:
            polkit.answer(q, DENY)
        for link in asked:
            assert refused(link, send=False).name == "NoSuchSession"
        ask(links[0], polkit, DENY, "Kill", session=NOWHERE, any_user=True)
        assert refused(links[0], send=False).name == "NoSuchSession"


def test_questions_of_all_are_capped(daemon, polkit):
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(link_as(daemon, 62000 + i // 8)) for i in range(9 * 8)]
        for link in links:
            link.send("List", all=True)
        for _ in range(64):
            polkit.question()
        for link in split(links, len(links) - 64)[1]:
            assert refused(link, send=False).name == "LimitExceeded"
        assert polkit.quiet()
    for _ in range(64):
        polkit.expect("CancelCheckAuthorization")


def test_large_calls_are_not_kept(daemon, polkit, bob, sid):
    e = refused(bob, method="Kill", session=sid, project="/" + "x" * (1 << 20), any_user=True)
    assert e.name == "NoSuchSession" and polkit.quiet()


def test_stop_with_open_questions(bus, polkit, programs):
    with Daemon(programs=programs, env=bus.env) as d, link_as(d, BOB) as link:
        link.send("List", all=True)
        polkit.question()
        d.process.send_signal(signal.SIGTERM)
        assert d.process.wait(20) == 0
        assert link.receive() is None
    wait_for(lambda: not os.path.exists(d.root))

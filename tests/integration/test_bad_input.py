# SPDX-License-Identifier: MIT
"""What peers and agents send that they should not: the right refusal, a sentence that helps, and no harm to anyone."""
import contextlib
import itertools
import json
import os
import shutil
import socket
import struct
import time

import pytest

from daemonlib import Daemon, VarlinkError, memory_kilobytes, public_directory, wait_for

INVALID = "org.varlink.service.InvalidParameter"
BAD_NAMES = ["", "/", "a/b", "..", ".", "../../etc/passwd", ".hidden", "-a", "_a", "a b", "a\nb", "a\x1b[2J", "a.b", "ä",
             "sеssion", "ａ", "a\u202eb", "x" * 65, "x" * 5000, "a'; rm -rf /;'", "\ufeffa", "%s%n", "💥"]


@pytest.fixture(scope="module")
def session(daemon):
    """A session that is to survive all of it."""
    daemon.run("kept=yes", "survivor")
    yield "survivor"
    assert daemon.run("echo $kept", "survivor")["stdout"] == "yes\n"


def check(error, name, *words):
    assert error.name == name, error
    for word in words:
        assert word in error.message, error.message
    assert error.message.isprintable() and len(error.message) < 1000, error.message


# Names

@pytest.mark.parametrize("bad", BAD_NAMES, ids=lambda s: ascii(s)[:20])
def test_bad_session_names(daemon, session, bad):
    for method in ("Show", "Kill", "Wait", "Interrupt", "Freeze", "Thaw", "History"):
        check(daemon.refused(method, session=bad), "BadName", "is no session name", "letters, digits")
    error = daemon.refused("Run", code="true", session=bad)
    check(error, "BadName", "letters, digits")
    assert error.parameters["name"] == bad


@pytest.mark.parametrize("bad", BAD_NAMES + ["ruby", "Python", "pythоn", "python3", "sh", "default "], ids=lambda s: ascii(s)[:20])
def test_unknown_environments_and_interpreters(daemon, session, bad):
    error = daemon.refused("Run", code="true", environment=bad)
    check(error, "NoSuchEnvironment", "sandboxctl envs")
    assert error.parameters["environment"] == bad
    error = daemon.refused("Run", code="true", session=session, project="/test", environment=bad)
    check(error, "NoSuchEnvironment", "Leave env out")
    error = daemon.refused("Run", code="true", interpreter=bad)
    check(error, "NoSuchInterpreter", "There are python, bash and node")
    assert error.parameters["interpreter"] == bad


def test_interpreter_that_the_environment_has_not(daemon, session):
    check(daemon.refused("Run", code="", environment="shell", interpreter="python"), "NoSuchInterpreter",
          "Environment 'shell' has no interpreter 'python'")
    check(daemon.refused("Run", code="", environment="shell", interpreter="python", session=session, project="/test"),
          "NoSuchInterpreter", "Environment 'shell' has no interpreter 'python'")


@pytest.mark.parametrize("name", ["unknown", "0123456789ab", "x" * 64])
def test_unknown_sessions(daemon, name):
    for method in ("Show", "Kill", "Wait", "Interrupt", "Freeze", "Thaw", "History"):
        check(daemon.refused(method, session=name), "NoSuchSession", "sandboxctl list")


def test_environment_of_another_session(start):
    d = start({"environments": {"data": {"interpreters": ["python"], "description": "d"}}})
    d.run("x = 1", "a", env="data")
    assert d.run("print(x)", "a", env="python")["stdout"] == "1\n"
    error = d.refused("Run", code="", session="a", project="/test", environment="shell")
    check(error, "NoSuchEnvironment", "created with environment 'data'", "another session name")


# Parameters

@pytest.mark.parametrize("method, parameters, field", [
    ("Run", {}, "code"), ("Run", {"code": None}, "code"), ("Run", {"code": 7}, "code"), ("Run", {"code": ["a"]}, "code"),
    ("Run", {"code": "", "session": 7}, "session"), ("Run", {"code": "", "session": "a\0b"}, "session"),
    ("Run", {"code": "", "environment": "a\0b"}, "environment"), ("Run", {"code": "", "interpreter": {}}, "interpreter"),
    ("Run", {"code": "", "timeout_ms": -1}, "timeout_ms"), ("Run", {"code": "", "timeout_ms": 1.5}, "timeout_ms"),
    ("Run", {"code": "", "timeout_ms": "1"}, "timeout_ms"), ("Run", {"code": "", "memory_mb": True}, "memory_mb"),
    ("Run", {"code": "", "cpus": "2"}, "cpus"), ("Run", {"code": "", "cpus": -1}, "cpus"),
    ("Run", {"code": "", "answer_after_ms": -1}, "answer_after_ms"), ("Run", {"code": "", "Session": "a"}, "Session"),
    ("Run", {"code": "", "more\x1b": 1}, "more\x1b"),
    ("Run", {"code": "", "project": "relative"}, "project"), ("Run", {"code": "", "project": ""}, "project"),
    ("Run", {"code": "", "project": "/" + "x" * 5000}, "project"), ("Run", {"code": "a\0b"}, "code"),
    ("Show", {}, "session"), ("Show", {"session": None}, "session"), ("Show", {"session": "a", "x": 1}, "x"),
    ("List", {"all": 1}, "all"), ("List", {"all": "yes"}, "all"), ("Events", {"follow": 1}, "follow"),
    ("Wait", {"session": "a", "answer_after_ms": 0.5}, "answer_after_ms"), ("Doctor", {"x": None}, "x"),
], ids=lambda v: ascii(v)[:30])
def test_bad_parameters(daemon, session, method, parameters, field):
    error = daemon.refused(method, **parameters)
    check(error, INVALID)
    assert error.parameters["parameter"] == field and len(error.message) > 20


def test_nul_in_code_is_explained(daemon):
    check(daemon.refused("Run", code="print(1)\0"), INVALID, "NUL", "Write binary data to a file")


def test_numbers_at_the_edges(daemon):
    for parameters in ({"timeout_ms": 2**63 - 1}, {"memory_mb": 2**63 - 1}, {"cpus": 1e308}, {"cpus": 5e-324},
                       {"answer_after_ms": 2**63 - 1}, {"timeout_ms": 0}, {"memory_mb": 0}, {"cpus": 0}):
        assert daemon.run("echo x", **parameters)["stdout"] == "x\n", parameters


def test_long_code(daemon, session):
    assert daemon.run(": " + "#" * (4 * 1024 * 1024 - 2), session)["exit_code"] == 0
    check(daemon.refused("Run", code=": " + "#" * (4 * 1024 * 1024), session=session, project="/test"), INVALID, "4 MiB")


# The wire

def refused_bytes(daemon, data):
    """What comes back of them before the daemon hangs up."""
    answers = []
    with daemon.link() as link:
        with contextlib.suppress(OSError):
            link.send_bytes(data)
        while (message := link.receive()) is not None:
            answers.append(message)
    return answers


@pytest.mark.parametrize("data", [
    b"\0", b"\0\0\0", b"{\0", b"[]\0", b"null\0", b"7\0", b'"x"\0', b"GET / HTTP/1.0\r\n\r\n\0", b"\xff\xfe\0", b"{}\0",
    b'{"method":7}\0', b'{"method":null}\0', b'{"method":"io.nixsandbox.List","parameters":[]}\0',
    b'{"method":"io.nixsandbox.List","parameters":{"all":tru}}\0',
    b'{"method":"io.nixsandbox.Run","parameters":{"code":"\xff"}}\0',
    b'{"method":"io.nixsandbox.Run","parameters":{"code":"a","code":"b"}}\0',
    b'{"method":"io.nixsandbox.List","more":1}\0',
    b'{"method":"io.nixsandbox.List","parameters":' + b'{"x":' * 5000 + b"1" + b"}" * 5001 + b"\0",
    struct.pack(">IBQ", 9, 7, 0) * 10 + b"\0", os.urandom(65536) + b"\0",
], ids=lambda d: ascii(d)[:24])
def test_garbage(daemon, session, data):
    assert refused_bytes(daemon, data) == []
    assert daemon.call("GetVersion")


def test_message_that_is_too_long(daemon, session):
    prefix = b'{"method":"io.nixsandbox.Run","parameters":{"code":"'
    answers = refused_bytes(daemon, prefix + b"x" * (9 * 1024 * 1024))
    assert len(answers) <= 1 and all(a["error"] == INVALID for a in answers)
    assert "at most 8388608 bytes" in answers[0]["parameters"]["message"]


def test_longest_message(daemon):
    limit = 8 * 1024 * 1024
    message = b'{"method":"io.nixsandbox.GetVersion"' + b" " * limit
    with daemon.link() as link:
        link.send_bytes(message[:limit - 1] + b"}\0")
        assert "version" in link.answer()
        link.send_bytes(message[:limit] + b"}\0")
        with pytest.raises(VarlinkError):
            link.answer()
        assert link.receive() is None


def test_half_messages(daemon, session):
    links = [daemon.link() for _ in range(20)]
    for i, link in enumerate(links):
        link.send_bytes(b'{"method":"io.nixsandbox.GetVersion"'[:i])
    assert daemon.run("echo x", session)["stdout"] == "x\n"
    for link in links[10:]:
        link.socket.shutdown(socket.SHUT_WR)
        assert link.receive() is None
    for link in links:
        link.close()
    assert daemon.call("GetVersion")


def test_message_byte_by_byte(daemon):
    with daemon.link() as link:
        for i in range(len(message := b'{"method":"io.nixsandbox.GetVersion"}\0')):
            link.send_bytes(message[i:i + 1])
        assert "version" in link.answer()


def test_peers_that_connect_and_go(daemon):
    for _ in range(300):
        daemon.link().close()
    assert daemon.call("GetVersion")


def fill(link, message, seconds=1.0):
    """Sends it again and again until nothing more is taken."""
    link.socket.setblocking(False)
    idle = time.monotonic() + seconds
    while time.monotonic() < idle:
        try:
            if link.socket.send(message):
                idle = time.monotonic() + seconds
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return  # the daemon has hung up, which is as good


def test_peers_that_never_read(daemon, session):
    """They are served no more until they do, so that what they leave is one reply each; nobody else notices."""
    call = json.dumps({"method": "org.varlink.service.GetInterfaceDescription",
                       "parameters": {"interface": "io.nixsandbox"}}).encode() + b"\0"
    before = memory_kilobytes(daemon.pid)
    links = [daemon.link() for _ in range(20)]
    for link in links:
        fill(link, call * 100, seconds=0.1)
        assert daemon.run("echo x", session)["stdout"] == "x\n"
    assert memory_kilobytes(daemon.pid) < before + len(links) * 512
    # The one that begins to read gets an answer to all that it has asked.
    reader = links[0]
    reader.socket.setblocking(True)
    for _ in range(200):
        assert "interface io.nixsandbox" in reader.answer()["description"]
    for link in links:
        link.close()


def test_caller_that_does_not_read_its_output(daemon, session):
    before = memory_kilobytes(daemon.pid)
    links = [daemon.begin("head -c 5000000 /dev/urandom; head -c 5000000 /dev/urandom >&2", _more=True) for _ in range(4)]
    daemon.settle()
    wait_for(lambda: not [s for s in daemon.call("List")["sessions"] if s["busy"]])
    assert daemon.run("echo x", session)["stdout"] == "x\n"
    assert memory_kilobytes(daemon.pid) < before + len(links) * 8 * 1024
    for link in links:
        link.close()


# Agents

@pytest.fixture(scope="module")
def fake(programs):
    """fake(mode): a daemon whose sandboxes have a false agent."""
    with contextlib.ExitStack() as stack:
        def make(mode):
            path = public_directory()
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            for program in ("sandboxd", "sandbox-become"):
                shutil.copy(os.path.join(programs, program), path)
            with open(os.path.join(os.path.dirname(__file__), "fake_agent.py"), encoding="utf-8") as f:
                text = f.read()
            with open(os.path.join(path, "sandbox-agent"), "w", encoding="utf-8") as f:
                f.write(text + f"\n\nmain({mode!r})\n")
            os.chmod(os.path.join(path, "sandbox-agent"), 0o755)
            return stack.enter_context(Daemon(programs=path))
        yield make


@pytest.fixture(scope="module", autouse=True)
def slow_agents(fake):
    """Those that take their time do so while the other tests run: {mode: (daemon, link, begin)}"""
    found = {}
    for mode, timeout in (("silent", None), ("slow", 100), ("endless", 100)):
        d = fake(mode)
        found[mode] = d, d.begin("true", "a", link=d.link(wait=100), timeout_ms=timeout), time.monotonic()
    return found


@pytest.mark.parametrize("mode, words", [
    ("old", "sandbox-agent is too old for this sandboxd"), ("new", "sandboxd is too old for this sandbox-agent"),
    ("garbage", "it sent a frame"), ("hang-up", "it ended"), ("exit", "it ended")])
def test_agents_that_do_not_start(fake, mode, words):
    d = fake(mode)
    began = time.monotonic()
    check(d.refused("Run", code="true", session="a"), "StartFailed", words)
    assert time.monotonic() - began < 10, "there is no use in trying again"
    assert d.call("List")["sessions"] == []
    check(d.refused("Run", code="true"), "StartFailed", words)


@pytest.mark.parametrize("mode", ["flood", "dies", "other-turn"])
def test_agents_that_break_a_turn(fake, mode):
    d = fake(mode)
    before = memory_kilobytes(d.pid)
    error = d.refused("Run", code="true", session="a")
    check(error, "SessionEnded", "crashed", "Use the same name again")
    assert error.parameters["reason"] == "crashed"
    assert memory_kilobytes(d.pid) < before + 8 * 1024
    assert d.refused("Run", code="true").name == "SessionEnded"


def test_interpreter_that_is_missing(fake):
    d = fake("missing")
    error = d.refused("Run", code="true", session="a", environment="node")
    check(error, "NoSuchInterpreter", "'node' is not installed in environment 'default'", "Install it on the host")
    assert error.parameters["interpreter"] == "node"
    assert d.call("Show", session="a")["session"]["state"] == "running"


def test_interpreter_that_does_not_start(fake):
    check(fake("no-start").refused("Run", code="true", session="a"), "StartFailed", "a\\nreason \\x1b[2J", "Try again")


def get(daemon, path):
    """The last reply."""
    with daemon.link() as link:
        link.send("Get", _more=True, session="a", path=path)
        while True:
            reply = link.answer()
            if "data" not in reply or reply["data"] is None:
                return reply


def refused(function, *args):
    with pytest.raises(VarlinkError) as e:
        function(*args)
    return e.value


def test_agents_that_operate_badly(fake):
    d = fake("operations")
    d.call("Run", code="true", session="a")
    assert get(d, "ready") == {"size": 10, "mode": 0o644}
    for path, error, words in (
            ("no-file", "NoSuchFile", "its\\x1bwords"), ("refused", "PermissionDenied", "its\\x1bwords"),
            ("full", "LimitExceeded", "no room left"), ("too-large", "LimitExceeded", "larger"),
            ("io", "OperationFailed", "its\\x1bwords"), ("busy", "Busy", "A turn is running"),
            ("bad-mode", "OperationFailed", "no proper report"), ("no-mode", "OperationFailed", "no proper report"),
            ("open", "OperationFailed", "sends on after it was done")):
        check(refused(get, d, path), error, words)
    with d.link() as link:
        def put():
            for offset in itertools.count():            # until its answer is there
                link.call("Put", session="a", path="plain", offset=offset, data="eA==", last=False)
        check(refused(put), "OperationFailed", "done before the file was")
    assert get(d, "ready")["size"] == 10


def test_agents_that_lie_about_variables(fake):
    d = fake("operations")
    d.call("Run", code="true", session="a")
    reply = d.call("Variables", session="a")
    assert reply["variables"] == [{"interpreter": "bash", "name": "x ", "type": " ", "text": " 2J", "size": 1}]
    assert "python: 'what it says of its variables cannot be read'" in reply["notice"] and "node: " in reply["notice"]
    check(refused(lambda: d.call("Variable", session="a", name="ready")), "NoSuchVariable", "cannot be read")
    check(refused(lambda: d.call("Variable", session="a", name="no-file")), "NoSuchVariable", "'no-file'")


@pytest.mark.parametrize("word", ["malformed", "twice"])
def test_agents_that_answer_badly(fake, word):
    d = fake("operations")
    d.call("Run", code="true", session="a")
    with contextlib.suppress(VarlinkError):
        get(d, word)
    wait_for(lambda: d.call("List")["sessions"] == [])
    assert [e["detail"] for e in d.call("Events")["events"] if e["event"] == "killed"] == ["crashed"]


# The slow ones last

def test_turn_that_waits_for_its_interpreter(slow_agents):
    _, link, began = slow_agents["slow"]
    assert link.answer()["exit_code"] == 0
    assert time.monotonic() - began > 9


def test_agent_that_never_ends_a_turn(slow_agents):
    d, link, _ = slow_agents["endless"]
    with pytest.raises(VarlinkError) as e:
        link.answer()
    assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "crashed"
    assert "did not stop a turn in time" in d.log()


def test_agent_that_never_says_hello(slow_agents):
    d, link, began = slow_agents["silent"]
    with pytest.raises(VarlinkError) as e:
        link.answer()
    check(e.value, "StartFailed", "did not come up in time", "try again")
    assert time.monotonic() - began < 90
    assert d.call("List")["sessions"] == []

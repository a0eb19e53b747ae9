# SPDX-License-Identifier: MIT
"""The interface, method by method, as its description says."""
import os
import re
import socket
import time

import pytest

from daemonlib import HOLD, ROOT, VarlinkError, memory_kilobytes, wait_for

SHOW = {"id": str, "name": str, "uid": int, "project": str, "project_mode": str, "environment": str, "interpreters": list, "state": str,
        "busy": bool, "queued": int, "turns": int, "created_usec": int, "idle_usec": int, "turn_usec": int,
        "memory_mb": int, "processes_max": int, "workspace_mb": int}


def check_types(reply, types):
    for key, kind in types.items():
        assert type(reply[key]) is kind, (key, reply[key])


# About the service

def test_get_version(daemon):
    reply = daemon.call("GetVersion")
    assert set(reply) == {"version", "api_min", "api_max", "mode", "audit"}
    assert reply["audit"] == os.path.join(daemon.root, "state", "audit")
    assert reply["mode"] == "foreground" and 1 <= reply["api_min"] <= reply["api_max"]
    assert daemon.call("GetVersion", later=1) == reply


def test_get_info(daemon):
    reply = daemon.call("org.varlink.service.GetInfo")
    assert reply["interfaces"] == ["org.varlink.service", "io.nixsandbox"]
    assert reply["version"] == daemon.call("GetVersion")["version"]


def test_interface_description(daemon):
    method = "org.varlink.service.GetInterfaceDescription"
    with open(os.path.join(ROOT, "daemon", "io.nixsandbox.varlink"), encoding="utf-8") as f:
        assert daemon.call(method, interface="io.nixsandbox")["description"] == f.read()
    assert "GetInfo" in daemon.call(method, interface="org.varlink.service")["description"]
    assert daemon.refused(method, interface="io.nix").name == "org.varlink.service.InterfaceNotFound"


def test_every_described_method_is_there(daemon):
    text = daemon.call("org.varlink.service.GetInterfaceDescription", interface="io.nixsandbox")["description"]
    methods = re.findall(r"^method (\w+)", text, re.M)
    with open(os.path.join(ROOT, "daemon", "api.c"), encoding="utf-8") as f:
        assert sorted(methods) == sorted(re.findall(r'\{ "io\.nixsandbox\.(\w+)", vl_method_', f.read()))
    for method in methods:
        if method != "GetVersion":
            assert daemon.refused(method, nonsense=1).name == "org.varlink.service.InvalidParameter", method


@pytest.mark.parametrize("method, error", [
    ("io.nixsandbox.Nothing", "MethodNotFound"), ("io.nixsandbox.run", "MethodNotFound"),
    ("org.varlink.service.Nothing", "MethodNotFound"), ("io.other.Run", "InterfaceNotFound")])
def test_unknown_method(daemon, method, error):
    assert daemon.refused(method).name == "org.varlink.service." + error


def test_environments(daemon):
    found = {e["name"]: e for e in daemon.call("Environments")["environments"]}
    assert set(found) == {"python", "shell", "node", "default"}
    assert found["default"]["interpreters"] == ["python", "bash", "node"]
    assert found["shell"]["interpreters"] == ["bash"]
    check_types(found["shell"], {"name": str, "description": str, "memory_mb": int, "network": str, "missing": list})
    assert found["shell"]["missing"] == [] and found["shell"]["network"] == "none"


def test_doctor(daemon):
    checks = daemon.call("Doctor")["checks"]
    assert {c["verdict"] for c in checks} <= {"ok", "warning", "error"}
    assert all(set(c) == {"name", "verdict", "detail", "fix"} and c["detail"] for c in checks)
    assert {"version", "bubblewrap", "user namespaces", "cgroups", "environment python"} <= {c["name"] for c in checks}


# Run

def test_run_without_a_session(daemon):
    reply = daemon.run("echo out; echo err >&2; exit 3")
    assert (reply["stdout"], reply["stderr"], reply["exit_code"]) == ("out\n", "err\n", 3)
    assert (reply["session"], reply["state"], reply["session_state"]) == (None, "none", "ephemeral")
    assert reply["environment"] == "shell" and reply["interpreter"] == "bash" and reply["turn"] == 1
    error = daemon.refused("Show", session=reply["id"])
    assert error.name == "SessionEnded"
    assert error.parameters["session"] == reply["id"] and error.parameters["reason"] == "done"


def test_reply_has_all_described_members(daemon, name):
    text = daemon.call("org.varlink.service.GetInterfaceDescription", interface="io.nixsandbox")["description"]
    described = re.search(r"^method Run\(.*?\) -> \((.*?)^\)", text, re.M | re.S)[1]
    members = set(re.findall(r"^  (\w+):", described, re.M)) - {"output"}
    reply = daemon.run("true", name)
    assert set(reply) == members
    assert set(daemon.show(name)) == set(re.findall(r"^  (\w+):", re.search(
        r"^type Session \((.*?)^\)", text, re.M | re.S)[1], re.M))


def test_session_keeps_state(daemon, name):
    first = daemon.run("x = 41", name, env="python")
    assert (first["session"], first["session_state"], first["turn"]) == (name, "created", 1)
    second = daemon.run("print(x + 1)", name, env=None)
    assert (second["stdout"], second["session_state"], second["turn"]) == ("42\n", "resumed", 2)
    assert second["id"] == first["id"] and second["environment"] == "default"
    third = daemon.run("echo $((6 * 7))", name, interpreter="bash", env=None)
    assert third["stdout"] == "42\n" and third["interpreter"] == "bash"
    assert daemon.run("1 + 1", name, env="node")["interpreter"] == "node"


def test_sessions_belong_to_projects(daemon, name):
    daemon.run("x = 1", name, env="python")
    other = daemon.call("Run", code="print(x)", session=name, environment="python", project="/elsewhere")
    assert other["exit_code"] == 1 and other["session_state"] == "created"

    error = daemon.refused("Show", session=name)
    assert error.name == "BadName" and "several projects" in error.message
    error = daemon.refused("Show", session=name, project="/third")
    assert error.name == "BadName"
    assert daemon.call("Show", session=name, project="/elsewhere")["session"]["id"] == other["id"]
    assert daemon.call("Show", session=other["id"])["session"]["project"] == "/elsewhere"
    daemon.call("Kill", session=other["id"])
    assert daemon.call("Show", session=name, project="/third")["session"]["project"] == "/test"


def test_show_and_list(daemon, name):
    daemon.run("true", name, memory_mb=100, cpus=0.5)
    shown = daemon.show(name)
    check_types(shown, SHOW)
    assert shown["uid"] == os.getuid() and shown["project"] == "/test" and shown["turns"] == 1
    assert shown["memory_mb"] == 100 and shown["cpus"] == 0.5 and shown["state"] == "running"
    assert shown["interpreters"] == ["python", "bash", "node"] and not shown["busy"]
    assert shown["id"] in [s["id"] for s in daemon.call("List")["sessions"]]
    daemon.call("Kill", session=name)
    assert shown["id"] not in [s["id"] for s in daemon.call("List")["sessions"]]


def test_turns_wait_in_order(daemon, name):
    daemon.run("x = []", name, env="python")
    links = []
    with daemon.begin(HOLD, name):
        daemon.wait_busy(name)
        for i in range(5):
            links.append(daemon.begin(f"import time; time.sleep(0.02); x.append({i}); print(x)", name, env="python"))
            daemon.wait_queued(name, i + 1)
        daemon.release(name)
        daemon.wait_busy(name, False)
    for i, link in enumerate(links):
        reply = link.answer()
        assert reply["stdout"] == f"{list(range(i + 1))}\n" and reply["turn"] == i + 3
        link.close()


def test_queue_is_bounded(daemon, name):
    links = [daemon.begin("sleep 100", name)]
    daemon.wait_busy(name)
    links += [daemon.begin("true", name) for _ in range(64)]
    daemon.wait_queued(name, 64)
    error = daemon.refused("Run", code="true", session=name, project="/test")
    assert error.name == "Busy" and "64 turns" in error.message
    daemon.call("Kill", session=name)
    for link in links:
        with pytest.raises(VarlinkError) as e:
            link.answer()
        assert e.value.name == "SessionEnded" and e.value.parameters["reason"] == "admin"
        assert set(e.value.parameters) == {"session", "reason", "message"}
        link.close()


def test_limits_of_a_session_stay(daemon, name):
    daemon.run("true", name, memory_mb=100)
    reply = daemon.run("true", name, memory_mb=200)
    assert "keeps 100 MB" in reply["notice"] and daemon.show(name)["memory_mb"] == 100


def test_limits_are_clamped_and_told(daemon):
    reply = daemon.run("true", memory_mb=1000000, cpus=100000.0, timeout_ms=10**12)
    for word in ("memory 1000000 MB", "cpus 100000", "timeout 1000000000 s"):
        assert word in reply["notice"], reply["notice"]


def test_timeout_is_of_the_turn(daemon, name):
    reply = daemon.run("echo before; sleep 60", name, timeout_ms=200)
    assert reply["timed_out"] and reply["exit_code"] == 124 and reply["stdout"] == "before\n"
    assert reply["state"] == "kept" and "Timed out after 0.2 s" in reply["notice"]
    assert daemon.show(name)["timeout_seconds"] == 30
    assert daemon.run("sleep 0.3; echo ok", name)["stdout"] == "ok\n"


def test_output_in_pieces(daemon, name):
    """As it comes: the code goes on when its last piece is here."""
    with daemon.begin(f"for i in 1 2 3; do echo $i; {HOLD} echo e$i >&2; done; printf '\\0\\377'", name, _more=True) as link:
        pieces = {"stdout": "", "stderr": ""}
        n = 0
        while (message := link.receive()).get("continues"):
            assert set(message["parameters"]) == {"output"}
            output = message["parameters"]["output"]
            pieces[output["stream"]] += output["text"]
            n += 1
            if output["text"] in ("1\n", "2\n", "3\n"):
                daemon.release(name)
    reply = message["parameters"]
    assert n >= 4
    assert pieces["stdout"] == reply["stdout"] == "1\n2\n3\n\0\ufffd"
    assert pieces["stderr"] == reply["stderr"] == "e1\ne2\ne3\n"


@pytest.mark.parametrize("code", [
    "head -c 300000 /dev/zero | tr '\\0' x", "yes ü | head -c 100000", "head -c 200000 /dev/urandom",
    "printf 'ü%.0s' {1..50000}"])
def test_long_output_in_pieces(daemon, code):
    with daemon.begin(code, _more=True) as link:
        text = ""
        while (message := link.receive()).get("continues"):
            text += message["parameters"]["output"]["text"]
    assert text == message["parameters"]["stdout"]


def test_character_between_head_and_tail(daemon):
    reply = daemon.run("printf 'x'; printf 'ü%.0s' {1..40000}")
    assert reply["stdout"] == "x" + "ü" * 40000


def test_long_output_is_kept_in_a_file(daemon, name):
    reply = daemon.run("seq 100000", name)
    total = sum(len(str(i)) + 1 for i in range(1, 100001))
    assert reply["truncated"]["stdout"] > 0 and reply["stdout"].startswith("1\n2\n")
    assert reply["stdout"].endswith("\n100000\n") and f"{reply['truncated']['stdout']} bytes omitted" in reply["stdout"]
    assert reply["files"]["stdout"] in reply["notice"]
    assert daemon.run(f"wc -c < {reply['files']['stdout']}", name)["stdout"].strip() == str(total)


# Early answers and Wait

def test_early_answer_and_wait(daemon, name):
    daemon.run("true", name)  # its start is not of the time after which is answered
    early = daemon.run(f"echo a; {HOLD} echo b", name, answer_after_ms=500)
    assert early["exit_code"] is None and early["stdout"] == "a\n" and 100 < early["duration_ms"] < 20000
    again = daemon.call("Wait", session=name, project="/test", answer_after_ms=0)
    assert again["exit_code"] is None and again["turn"] == early["turn"]
    daemon.release(name)
    last = daemon.call("Wait", session=name, project="/test")
    assert last["exit_code"] == 0 and last["stdout"] == "a\nb\n" and last["turn"] == early["turn"]
    error = daemon.refused("Wait", session=name, project="/test")
    assert error.name == "NoSuchTurn" and error.parameters["session"] == name and "history" in error.message


def test_wait_for_a_finished_turn(daemon, name):
    daemon.run("echo a; sleep 0.1", name, answer_after_ms=0)
    daemon.wait_busy(name, False)
    assert daemon.call("Wait", session=name)["stdout"] == "a\n"
    assert daemon.refused("Wait", session=name).name == "NoSuchTurn"


def test_wait_by_id_without_a_session(daemon):
    early = daemon.run("sleep 0.3; echo done; exit 4", answer_after_ms=0)
    assert early["session"] is None
    last = daemon.call("Wait", session=early["id"])
    assert last["stdout"] == "done\n" and last["exit_code"] == 4
    wait_for(lambda: daemon.refused("Wait", session=early["id"]).name == "SessionEnded")


def test_parked_sandbox_waits_for_its_caller(daemon):
    early = daemon.run("echo done", answer_after_ms=0)
    wait_for(lambda: not daemon.show(early["id"])["busy"])
    assert daemon.call("Wait", session=early["id"])["stdout"] == "done\n"


def test_two_wait_for_one_turn(daemon, name):
    daemon.run(HOLD + "echo x", name, answer_after_ms=0)
    with daemon.link() as first, daemon.link() as second:
        for link in (first, second):
            link.send("Wait", session=name)
        daemon.settle()
        daemon.release(name)
        a = first.answer()
        assert a == second.answer() and a["stdout"] == "x\n"


def test_wait_beside_the_caller(daemon, name):
    with daemon.begin(HOLD + "echo x", name) as link, daemon.link() as other:
        daemon.wait_busy(name)
        other.send("Wait", session=name)
        daemon.settle()
        daemon.release(name)
        assert other.answer() == link.answer()
    assert daemon.refused("Wait", session=name).name == "NoSuchTurn"


def test_only_who_asked_for_it_is_answered_early(daemon, name):
    with daemon.begin(HOLD + "echo x", name) as link:
        daemon.wait_busy(name)
        assert daemon.call("Wait", session=name, answer_after_ms=50)["exit_code"] is None
        daemon.release(name)
        assert link.answer()["exit_code"] == 0


def test_waiter_that_goes_away_stops_nothing(daemon, name):
    daemon.run(HOLD + "echo x", name, answer_after_ms=0)
    with daemon.link() as link:
        link.send("Wait", session=name)
        daemon.settle()
    daemon.settle()
    assert daemon.call("Wait", session=name, answer_after_ms=0)["exit_code"] is None
    daemon.release(name)
    assert daemon.call("Wait", session=name)["stdout"] == "x\n"


def test_wait_without_a_turn(daemon, name):
    daemon.run("true", name)
    assert daemon.refused("Wait", session=name).name == "NoSuchTurn"
    assert daemon.refused("Wait", session="nothing").name == "NoSuchSession"


def test_early_answer_while_it_waits_in_the_queue(daemon, name):
    with daemon.begin(HOLD, name) as link:
        daemon.wait_busy(name)
        early = daemon.run("echo second", name, answer_after_ms=50)
        assert early["exit_code"] is None and early["turn"] == 0 and early["duration_ms"] == 0
        daemon.release(name)
        link.answer()
    daemon.wait_busy(name, False)
    assert daemon.call("Wait", session=name)["stdout"] == "second\n"


# Interrupt

def test_interrupt_keeps_state(daemon, name):
    daemon.run("x = 7", name, env="python")
    with daemon.begin("import time\nprint('on', flush=True)\ntime.sleep(60)", name, env="python", _more=True) as link:
        assert link.receive()["parameters"]["output"]["text"] == "on\n"
        assert daemon.call("Interrupt", session=name)["interrupted"] is True
        while (message := link.receive()).get("continues"):
            pass
    reply = message["parameters"]
    assert reply["exit_code"] == 130 and reply["state"] == "kept" and not reply["timed_out"]
    assert "Interrupted" in reply["notice"]
    assert daemon.run("print(x)", name, env="python")["stdout"] == "7\n"
    assert daemon.call("Interrupt", session=name)["interrupted"] is False


def test_interrupt_leaves_the_queue(daemon, name):
    first = daemon.begin("sleep 60", name)
    daemon.wait_busy(name)
    second = daemon.begin("echo next", name)
    daemon.wait_queued(name, 1)
    assert daemon.call("Interrupt", session=name)["interrupted"]
    assert first.answer()["exit_code"] == 130
    assert second.answer()["stdout"] == "next\n"


# History and events

def test_history(daemon, name):
    daemon.run("x = 1", name, env="python")
    daemon.run("exit 3", name)
    entries = daemon.call("History", session=name)["entries"]
    assert [(e["turn"], e["interpreter"], e["code"], e["exit_code"], e["code_truncated"]) for e in entries] == \
        [(1, "python", "x = 1", 0, False), (2, "bash", "exit 3", 3, False)]
    assert all(abs(e["time_usec"] / 1e6 - time.time()) < 60 and 0 <= e["duration_ms"] < 60000 for e in entries)


def test_history_is_capped(daemon, name):
    daemon.run("#" + "ü" * 10000, name)
    entry = daemon.call("History", session=name)["entries"][0]
    assert entry["code_truncated"] and entry["code"] == "#" + "ü" * 8191
    for i in range(20):
        daemon.run(":" + "x" * 4095, name)
    entries = daemon.call("History", session=name)["entries"]
    assert [e["turn"] for e in entries] == list(range(6, 22))


def test_events_in_order(daemon, name):
    sid = daemon.run("true", name)["id"]
    daemon.call("Freeze", session=name)
    daemon.call("Thaw", session=name)
    daemon.call("Kill", session=name)
    assert daemon.story(sid) == ["session_created default", "sandbox_started", "exec_turn", "frozen by hand",
                                 "thawed by hand", "killed admin", "usage_metered", "torn_down"]
    mine = [e for e in daemon.call("Events")["events"] if e["session"] == sid]
    assert all(e["name"] == name and e["uid"] == os.getuid() for e in mine)
    assert [e["seq"] for e in mine] == sorted(e["seq"] for e in mine)
    asked = ("frozen", "thawed", "killed")
    assert all(e["by"] == (os.getuid() if e["event"] in asked else None) for e in mine)
    assert re.fullmatch(r"turn=1 interpreter=bash duration_usec=\d+ exit_code=0", mine[2]["detail"])
    assert re.fullmatch(r"turns=1 turn_usec=\d+( cpu_usec=[1-9]\d+ memory_peak_bytes=\d+)?", mine[-2]["detail"])


def test_turns_that_do_not_end_well(daemon, name):
    sid = daemon.run("exit 3", name)["id"]
    assert daemon.run("sleep 60", name, timeout_ms=200)["timed_out"]
    with daemon.begin("sleep 60", name):
        daemon.wait_busy(name)
        daemon.call("Kill", session=name)
    turns = [e["detail"] for e in daemon.call("Events")["events"] if e["session"] == sid and e["event"] == "exec_turn"]
    assert [re.sub(r"duration_usec=\d+", "", t) for t in turns] == [
        "turn=1 interpreter=bash  exit_code=3", "timed-out turn=2 interpreter=bash  exit_code=124",
        "unfinished turn=3 interpreter=bash "]
    assert daemon.events(sid)[-4:] == ["exec_turn", "killed", "usage_metered", "torn_down"]


def test_follow_events(daemon, name):
    with daemon.link() as link:
        link.send("Events", _more=True, follow=True)
        past = link.receive()
        assert past["continues"] and "events" in past["parameters"]
        sid = daemon.run("true", name)["id"]
        daemon.call("Kill", session=name)
        seen, seqs = [], []
        while not seen or seen[-1] != "torn_down":
            for e in link.receive()["parameters"]["events"]:
                seqs.append(e["seq"])
                if e["session"] == sid:
                    seen.append(e["event"])
    assert seen == ["session_created", "sandbox_started", "exec_turn", "killed", "usage_metered", "torn_down"]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def test_follow_needs_more(daemon):
    assert daemon.refused("Events", follow=True).name == "org.varlink.service.ExpectedMore"


# The wire

def test_pipelined_calls(daemon):
    with daemon.link() as link:
        for i in range(50):
            link.send("Run", code=f"echo {i}", environment="shell") if i % 10 == 0 else link.send("GetVersion")
        for i in range(50):
            reply = link.answer()
            assert reply["stdout"] == f"{i}\n" if i % 10 == 0 else "version" in reply


def test_oneway(daemon, name):
    with daemon.link() as link:
        link.send("Run", _oneway=True, code="echo x > f", session=name, environment="shell", project="/test")
        link.send("GetVersion")
        assert "version" in link.answer()
    assert daemon.run("cat f", name)["stdout"] == "x\n"


def test_half_closed_peer_gets_its_reply(daemon):
    with daemon.begin("sleep 0.2; echo x") as link:
        link.socket.shutdown(socket.SHUT_WR)
        assert link.answer()["stdout"] == "x\n"
        assert link.receive() is None


def test_refusal_members_are_as_described(daemon, name):
    """Each error of the interface that can be had cheaply has all of its members, of their types."""
    text = daemon.call("org.varlink.service.GetInterfaceDescription", interface="io.nixsandbox")["description"]
    errors = {e: dict(m.split(": ") for m in members.split(", "))
              for e, members in re.findall(r"^error (\w+) \((.*)\)", text, re.M)}
    kinds = {"string": str, "int": int}
    gone = daemon.run("true")["id"]
    daemon.run("true", name)
    daemon.call("Freeze", session=name)
    refusals = [
        daemon.refused("Show", session="nothing"), daemon.refused("Show", session="a/b"),
        daemon.refused("Show", session=gone), daemon.refused("Wait", session=name),
        daemon.refused("Run", code="", environment="ruby"), daemon.refused("Run", code="", interpreter="ruby"),
        daemon.refused("Run", code="", environment="shell", interpreter="node"),
        daemon.refused("Run", code="", session=name, project="/test"),
    ]
    assert {e.name for e in refusals} == {
        "NoSuchSession", "BadName", "SessionEnded", "NoSuchTurn", "NoSuchEnvironment", "NoSuchInterpreter",
        "SessionFrozen"}
    for e in refusals:
        assert set(e.parameters) == set(errors[e.name]), e
        for member, kind in errors[e.name].items():
            assert type(e.parameters[member]) is kinds[kind], e


def test_memory_of_the_daemon_stays(daemon, name):
    for _ in range(20):
        daemon.run("true", name)
    before = memory_kilobytes(daemon.pid)
    for _ in range(300):
        daemon.run("true", name)
    for _ in range(10):
        daemon.run("true")
    assert memory_kilobytes(daemon.pid) < before + 1024

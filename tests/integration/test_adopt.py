# SPDX-License-Identifier: MIT
"""What a crash of sandboxd takes with it, which is nothing that can be kept."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from daemonlib import HOLD, VarlinkError, alive, cgroups_named, stat_of, tree_name, wait_for
from managerlib import Service, tree_pids
from test_lifecycle import need_cgroups

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs control groups")
KEPT = "sandboxd was restarted meanwhile; the session and its state were kept."


@pytest.fixture
def service(programs):
    """Starts one with a configuration for this test."""
    with contextlib.ExitStack() as stack:
        def start(config=None, **more):
            d = stack.enter_context(Service(config, programs=programs, **more))
            need_cgroups(d, "freezer")
            return d
        yield start


def record(d, sid):
    return os.path.join(d.runtime, "sessions", sid)


def records(d):
    return set(os.listdir(os.path.join(d.runtime, "sessions")))


# Nothing is lost

def test_state_survives(service):
    d = service()
    d.run("x = 41\ndef f(): return x + 1", "p", "python")
    d.run("declare -A m=([k]=v); f() { echo ${m[k]}$1; }; cd /tmp; sleep 600 & echo $! >/workspace/pid", "b", "shell")
    d.run("let y = 7; const g = () => y + 1", "n", "node")
    before = {s["name"]: s for s in d.call("List")["sessions"]}
    d.restart()
    after = {s["name"]: s for s in d.call("List")["sessions"]}
    assert set(before) == set(after)
    for name, s in after.items():
        for key in ("id", "uid", "project", "environment", "created_usec", "memory_mb", "cpus", "cgroup", "timeout_seconds"):
            assert s[key] == before[name][key], key
    reply = d.run("print(f())", "p", "python")
    assert (reply["stdout"], reply["turn"], reply["session_state"], reply["notice"]) == ("42\n", 2, "resumed", None)
    assert d.run("f x; pwd; kill -0 $(cat /workspace/pid) && echo there", "b")["stdout"] == "vx\n/tmp\nthere\n"
    assert d.run("g()", "n", "node")["stdout"] == "8\n"
    assert d.show("p")["turns"] == 2 and d.show("p")["turn_usec"] > 0
    assert d.events(after["p"]["id"])[:1] == ["adopted"]


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_any_death_will_do(service, sig):
    d = service()
    d.run("x=1", "a")
    d.process.send_signal(sig)
    d.process.wait()
    d.start()
    assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_running_turn_goes_on(service):
    """Its caller is gone with the daemon; Wait gets the result."""
    d = service()
    link = d.begin("import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
                   "print('two'); x = 5", "a", "python")
    d.wait_busy("a")
    begun = time.monotonic()
    d.restart()
    link.close()
    d.wait_busy("a")
    least = (time.monotonic() - begun) * 1000
    d.release("a")
    reply = d.call("Wait", session="a", project="/test")
    assert (reply["stdout"], reply["exit_code"], reply["turn"], reply["session_state"]) == ("one\ntwo\n", 0, 1, "created")
    assert reply["notice"] == KEPT and least <= reply["duration_ms"] < least + 20000
    assert d.run("print(x)", "a", "python")["stdout"] == "5\n"


def test_result_that_was_not_fetched(service):
    d = service()
    reply = d.run("sleep 0.3; echo done; exit 3", "a", answer_after_ms=0)
    assert reply["exit_code"] is None
    d.wait_busy("a", False)
    d.restart()
    reply = d.call("Wait", session="a", project="/test")
    assert (reply["stdout"], reply["exit_code"], reply["notice"]) == ("done\n", 3, KEPT)
    assert d.show("a")["idle_usec"] > 0


def test_values_that_were_not_fetched(service):
    """The agent tells them again, to one daemon after the other."""
    d = service()
    d.run("sandbox.image(b'\\xff\\xd8\\xff' + bytes(700000)); sandbox.result([1])\n"
          "import os, time; os.mkdir('out'); _ = open('out/a', 'w').write('1'); time.sleep(0.5)", "a", "python", answer_after_ms=0)
    d.wait_busy("a", False)
    d.restart()
    d.restart()
    reply = d.call("Wait", session="a", project="/test")
    assert reply["result"] == [1] and [p["type"] for p in reply["pictures"]] == ["image/jpeg"]
    assert len(reply["pictures"][0]["data"]) == 933340 and reply["outputs"] == [{"path": "/workspace/out/a", "bytes": 1}]


def test_much_output_in_a_crash(service):
    d = service()
    d.run("yes | head -c 300000; echo err >&2; until [ -e go ]; do sleep 0.05; done; echo END", "a", answer_after_ms=0)
    wait_for(lambda: d.call("Wait", session="a", project="/test", answer_after_ms=0)["stderr"])
    d.restart()
    sid = d.show("a")["id"]
    with d.begin("true", "a") as link:  # waits behind it
        d.wait_queued("a", 1)
        d.call("Interrupt", session=sid)
        assert link.answer()["turn"] == 2
    reply = d.call("Wait", session="a", project="/test")
    assert reply["exit_code"] == 130 and reply["stderr"] == "err\n" and reply["truncated"]["stdout"] > 100000
    assert reply["stdout"].startswith("y\ny\n") and reply["notice"].startswith(KEPT)


def test_one_crash_after_another(service):
    d = service()
    d.run("n=0", "a")
    for i in range(6):
        link = d.begin(HOLD + "n=$((n + 1))", "a")
        d.wait_busy("a")
        d.restart()
        link.close()
        if i % 2:
            d.restart()
        d.release("a")
        assert d.call("Wait", session="a", project="/test")["exit_code"] == 0
    assert d.run("echo $n", "a")["stdout"] == "6\n"
    assert d.show("a")["turns"] == 8


def history(d, name):
    return [(e["turn"], e["code"], e["exit_code"]) for e in d.call("History", session=name, project="/test")["entries"]]


def kept_record(d, sid):
    with open(record(d, sid), encoding="utf-8") as f:
        return json.load(f)


def test_history_survives(service):
    """It is written a while after turns, once for many, with the code of the one that runs."""
    d = service()
    sid = d.run("n=1", "a")["id"]
    d.run("exit 3", "a")
    link = d.begin("until [ -e go ]; do sleep 0.05; done # third", "a")
    wait_for(lambda: kept_record(d, sid).get("turn", {}).get("number") == 3)
    d.restart()
    link.close()
    assert history(d, "a") == [(1, "n=1", 0), (2, "exit 3", 3)]
    d.call("Interrupt", session=sid)
    d.call("Wait", session="a", project="/test")
    assert history(d, "a")[2:] == [(3, "until [ -e go ]; do sleep 0.05; done # third", 130)]
    wait_for(lambda: len(kept_record(d, sid)["history"]) == 3)
    d.call("Freeze", session=sid)
    d.restart()
    assert len(history(d, "a")) == 3


def test_twenty_sessions(service):
    d = service()
    for i in range(20):
        d.run(f"x={i}", f"s{i}")
    names = [s["name"] for s in d.call("List")["sessions"]]
    d.restart()
    assert [s["name"] for s in d.call("List")["sessions"]] == names
    for i in range(20):
        assert d.run("echo $x", f"s{i}")["stdout"] == f"{i}\n"
    wait_for(lambda: len(d.manager.store) == len(records(d)) == 20)


def test_nameless_sandbox(service):
    """It ends when nobody comes for it, in the time that every sandbox that was answered early has."""
    d = service()
    reply = d.run("sleep 1; echo x", answer_after_ms=0)
    d.restart()
    reply = d.call("Wait", session=reply["id"])
    assert (reply["stdout"], reply["session_state"]) == ("x\n", "ephemeral")
    wait_for(lambda: not d.call("List")["sessions"])
    wait_for(lambda: not records(d) and not d.manager.store)


def test_crash_while_it_starts(service):
    d = service()
    with contextlib.ExitStack() as stack:
        for i in range(4):
            stack.enter_context(d.begin(f"x={i}", f"s{i}"))
        wait_for(lambda: len(d.manager.store) >= 2)
        d.restart()
    wait_for(lambda: not any(s["busy"] for s in d.call("List")["sessions"]))
    for s in d.call("List")["sessions"]:
        assert d.run("echo $x", s["name"])["stdout"].strip() in (s["name"][1:], "")


# Frozen ones

def test_frozen_by_hand(service):
    d = service()
    d.run("x=1", "a")
    d.call("Freeze", session="a")
    d.restart()
    assert d.state("a") == "frozen"
    assert d.refused("Run", code="echo $x", session="a", project="/test").name == "SessionFrozen"
    d.restart()
    d.call("Thaw", session="a")
    assert d.run("echo $x", "a")["stdout"] == "1\n"
    d.restart()
    assert d.state("a") == "running"
    assert d.run("echo $x", "a")["turn"] == 3


def test_standby(service):
    d = service({"session": {"standby_after_seconds": 0.3}})
    d.run("x=1", "a")
    wait_for(lambda: d.state("a") == "standby")
    d.restart()
    assert d.state("a") == "standby" and d.show("a")["idle_usec"] >= 300000
    reply = d.run("echo $x", "a")
    assert (reply["stdout"], reply["turn"]) == ("1\n", 2)
    assert d.events(d.show("a")["id"])[:2] == ["adopted", "thawed"]


def test_frozen_one_can_be_killed(service):
    d = service()
    d.run("sleep 600 &", "a")
    d.call("Freeze", session="a")
    d.restart()
    inside = tree_pids(d.runtime)
    assert len(inside) >= 3
    d.call("Kill", session="a")
    assert not [p for p, _ in inside if alive(p)] and not records(d)


# What cannot be kept

def lost(d, name, words="could not take it over"):
    """It is gone as a whole, and the next who uses the name is told."""
    reply = d.run("echo ${x-empty}", name)
    assert (reply["stdout"], reply["session_state"]) == ("empty\n", "created")
    assert f"The earlier session '{name}' has ended: sandboxd was" in reply["notice"] and words in reply["notice"]


def leaves(d):
    return {os.path.basename(folder) for base in cgroups_named(tree_name(d.runtime)) for folder, below, _ in os.walk(base)
            if not below and folder != base}


def check_only(d, *names):
    """No group, record or stored socket of any other session is there."""
    ids = {d.show(name)["id"] for name in names}
    wait_for(lambda: leaves(d) == records(d) == set(d.manager.store) == ids)


def three(d):
    for name in "abc":
        d.run("x=1; sleep 600 &", name)
    return [d.show(name)["id"] for name in "abc"]


def test_no_socket(service):
    d = service()
    a, _, _ = three(d)
    d.crash()
    for fd in d.manager.store.pop(a):
        os.close(fd)
    d.start()
    check_only(d, "b", "c")
    events = [e for e in d.call("Events")["events"] if e["session"] == a]
    assert [e["event"] for e in events] == ["killed", "torn_down"]
    error = d.refused("Show", session=a)
    assert error.name == "SessionEnded" and "sandboxd was stopped or crashed" in error.message
    lost(d, "a", "stopped or crashed")
    assert d.run("echo $x", "b")["stdout"] == "1\n"


def test_no_record(service):
    d = service()
    a, _, _ = three(d)
    d.crash()
    os.unlink(record(d, a))
    d.start()
    check_only(d, "b", "c")
    assert d.run("echo ${x-empty}", "a")["stdout"] == "empty\n"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id":"x"}', "\0" * 100, "x" * 2_000_000], ids=lambda s: ascii(s)[:12])
def test_broken_record(service, text):
    d = service()
    a, _, _ = three(d)
    d.crash()
    with open(record(d, a), "w", encoding="ascii") as f:
        f.write(text)
    d.start()
    check_only(d, "b", "c")
    assert f"Session {a} is lost: its record cannot be read" in d.log()
    assert d.run("echo $x", "b")["stdout"] == "1\n"


def change_record(d, sid, **members):
    with open(record(d, sid), encoding="utf-8") as f:
        o = json.load(f)
    o.update(members)
    with open(record(d, sid), "w", encoding="utf-8") as f:
        json.dump(o, f)


@pytest.mark.parametrize("members,why", [
    ({"environment": "gone"}, "its environment is not configured any more"),
    ({"created_usec": 1 << 60}, "it is of before the last boot"),
    ({"uid": 4242}, "its control group is gone")], ids=lambda s: str(s)[:12])
def test_record_that_does_not_fit(service, members, why):
    d = service()
    a, _, _ = three(d)
    d.crash()
    change_record(d, a, **members)
    d.start()
    assert f"is lost: sandboxd was restarted and could not take it over: {why}" in d.log()
    check_only(d, "b", "c")
    if "uid" not in members:
        lost(d, "a")


def test_jail_that_ended_meanwhile(service):
    d = service()
    a, _, _ = three(d)
    cgroup = d.show("a")["cgroup"]
    d.crash()
    with open(os.path.join(cgroup, "cgroup.kill"), "w", encoding="ascii") as f:
        f.write("1")
    wait_for(lambda: not [p for p in open(os.path.join(cgroup, "cgroup.procs"), encoding="ascii")])
    d.start()
    assert "its control group is gone" in d.log() or "its processes are gone" in d.log()
    check_only(d, "b", "c")
    lost(d, "a")


def test_garbage_instead_of_an_agent(service):
    """Something else answers on the socket, or nothing does."""
    import socket
    d = service()
    a, b, _ = three(d)
    d.crash()
    ends, held = [], []
    for sid in (a, b):
        held += d.manager.store.pop(sid)  # or the agents would end
        ours, theirs = socket.socketpair()
        d.manager.store[sid] = [ours.detach()]
        ends.append(theirs)
    ends[0].sendall(b"GET / HTTP/1.0\r\n" * 100)
    d.start()
    assert d.run("echo $x", "c")["stdout"] == "1\n"
    data = b""
    while len(data) < 45:
        data += ends[0].recv(4096)
    ends[0].sendall(data[13:] + b"\0\0\0\1garbage")
    lost_at = time.monotonic()
    wait_for(lambda: d.refused("Show", session=a))
    assert time.monotonic() - lost_at < 5
    assert d.state("b") == "running"  # silent: it has its ten seconds
    wait_for(lambda: len(d.call("List")["sessions"]) == 1)
    assert "its agent did not answer the new sandboxd" in d.log()
    check_only(d, "c")
    for end in ends:
        end.close()
    for fd in held:
        os.close(fd)


def test_store_that_keeps_nothing(service):
    """FileDescriptorStoreMax=0: as ever, and a crash ends the sessions."""
    d = service()
    d.manager.keep = False
    d.run("x=1; sleep 600 &", "a")
    inside = tree_pids(d.runtime)
    d.restart()
    assert not [p for p, start in inside if (s := stat_of(p)) and s[2] == start and s[0] != "Z"]
    lost(d, "a", "stopped or crashed")


def test_stop_empties_the_store(service):
    d = service()
    three(d)
    wait_for(lambda: len(d.manager.store) == 3)
    assert d.end() == 0
    d.start()
    reply = d.run("echo ${x-empty}", "a")
    assert (reply["stdout"], reply["session_state"]) == ("1\n", "restored") and "stopped or crashed" in reply["notice"]
    check_only(d, "a")


def test_stop_after_a_crash(service):
    """Sessions whose monitors are not children end as completely (Service.end)."""
    d = service()
    three(d)
    with d.begin("sleep 600", "a"):
        d.wait_busy("a")
        d.call("Freeze", session="b")
        d.restart()
        assert d.end() == 0
    d.start()


# Turns by their tags

def test_tag_finds_the_running_turn(service):
    """Its caller comes again before the agent has said what it runs, and goes on as if nothing had been."""
    d = service()
    link = d.begin(f"echo one; {HOLD} echo two", "a", tag="t-1")
    d.wait_busy("a")
    other = d.begin("echo three", "a", tag="t-2")
    d.wait_queued("a", 1)
    d.restart()
    link.close()
    other.close()
    with d.link() as link:
        link.send("Wait", tag="t-1", session="a", project="/test", _more=True)
        d.settle()
        d.release("a")
        output = ""
        while "output" in (reply := link.answer()) and reply["output"]:
            output += reply["output"]["text"]
        assert output == reply["stdout"] == "one\ntwo\n" and reply["notice"] == KEPT
    error = d.refused("Wait", tag="t-2", session="a", project="/test")
    assert error.name == "NoSuchTurn" and "never begun" in error.message


def test_tag_finds_the_last_turn(service):
    d = service()
    d.run("echo x; exit 3", "a", tag="t-1")
    d.restart()
    reply = d.call("Wait", tag="t-1")
    assert (reply["stdout"], reply["exit_code"], reply["turn"], reply["notice"]) == ("x\n", 3, 1, KEPT)
    assert d.refused("Wait", tag="t-1").name == "NoSuchTurn"


def test_tag_of_a_nameless_sandbox(service):
    d = service()
    link = d.begin(HOLD + "echo x", tag="t-1")
    sid = wait_for(lambda: [s["id"] for s in d.call("List")["sessions"] if s["busy"] and s["state"] == "running"])[0]
    d.restart()
    link.close()
    with d.link() as link:
        link.send("Wait", tag="t-1")
        d.settle()
        d.release(sid)
        assert link.answer()["stdout"] == "x\n"
    wait_for(lambda: not records(d))


def test_caller_by_tag_that_leaves(service):
    """It is the turn's owner from then on."""
    d = service()
    link = d.begin("while :; do echo x; sleep 0.1; done", "a", tag="t-1")
    d.wait_busy("a")
    d.restart()
    link.close()
    with d.link() as link:
        link.send("Wait", tag="t-1", _more=True)
        assert link.answer()["output"], "it has the turn"
    d.wait_busy("a", False)


def test_tag_of_a_lost_session(service):
    d = service()
    link = d.begin("sleep 600", "a", tag="t-1")
    d.wait_busy("a")
    sid = d.show("a")["id"]
    d.crash()
    link.close()
    for fd in d.manager.store.pop(sid):
        os.close(fd)
    d.start()
    error = d.refused("Wait", tag="t-1", session="a", project="/test")
    assert error.name == "SessionEnded" and "stopped or crashed" in error.message


def test_kept_calls_end_with_their_agents(service):
    """One agent does not answer: whoever waits for any turn of that user hears of it when that is certain."""
    d = service()
    d.run("sleep 600 &", "a")
    pid = next(p for p, _ in tree_pids(d.runtime) if open(f"/proc/{p}/comm", encoding="ascii").read() == "sandbox-agent\n")
    os.kill(pid, signal.SIGSTOP)
    d.restart()
    with d.link() as link, d.link() as gone:
        link.send("Wait", tag="t-1")
        gone.send("Wait", session="a")
        assert link.quiet(0.5)
        gone.close()
        with pytest.raises(VarlinkError, match="NoSuchTurn"):
            link.answer()
    assert "has ended: crashed" in d.run("true", "a")["notice"]


# Clients

def ctl(d, *args):
    """sandboxctl, running."""
    return subprocess.Popen([os.path.join(d.programs, "sandboxctl"), "--socket", d.sock, *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, "PROJECT_DIR": "/test"})


@pytest.mark.parametrize("step", ["restart", "reload"])
def test_sandboxctl_goes_on(service, step):
    """What it prints, it prints once; a turn that was queued is sent again, in a session that has kept its state."""
    d = service()
    d.run("n=5", "a")
    first = ctl(d, "run", "-e", "shell", "-s", "a", "for i in 1 2 3 4 5 6; do echo $i; echo e$i >&2; sleep 0.3; done; n=6; exit 7")
    assert first.stdout.readline() == "1\n"
    queued = ctl(d, "--json", "run", "-e", "shell", "-s", "a", "echo $n")
    wait_for(lambda: d.show("a")["queued"] == 1)
    getattr(d, step)()
    out, err = first.communicate(timeout=30)
    assert out == "2\n3\n4\n5\n6\n" and first.returncode == 7, err
    assert err == "".join(f"e{i}\n" for i in range(1, 7)) + f"sandboxctl: {KEPT}\n"
    out, err = queued.communicate(timeout=30)
    reply = json.loads(out)
    assert not err and reply["stdout"] in ("5\n", "6\n") and "sent again" in reply["notice"]


def test_sandboxctl_of_a_lost_session(service):
    d = service()
    p = ctl(d, "run", "-e", "shell", "-s", "a", "echo x; sleep 600")
    assert p.stdout.readline() == "x\n"
    sid = d.show("a")["id"]
    d.crash()
    for fd in d.manager.store.pop(sid):
        os.close(fd)
    d.start()
    out, err = p.communicate(timeout=30)
    assert out == "" and p.returncode == 1 and "has ended: sandboxd was stopped or crashed" in err


def test_sandboxctl_without_a_daemon(service):
    d = service()
    p = ctl(d, "run", "-e", "shell", "-s", "a", "sleep 600")
    wait_for(lambda: any(s["busy"] for s in d.call("List")["sessions"]))
    d.crash()
    d.listener.close()
    os.unlink(d.sock)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 1 and "went away" in err
    d.listen()
    d.start()


@pytest.mark.parametrize("step", ["restart", "reload"])
@pytest.mark.parametrize("name", ["a", None])
def test_editor_goes_on(service, step, name):
    """Two runs of an editor at once: the one that ran gets its result, the one that waited runs after it."""
    d = service()
    shim = subprocess.Popen([os.path.join(d.programs, "nix-sandbox-mcp"), "--socket", d.sock], cwd=d.root, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(rid, method, **params):
        shim.stdin.write(json.dumps({"jsonrpc": "2.0", "id": rid, "method": method, "params": params}) + "\n")
        shim.stdin.flush()

    def run(rid, code):
        ask(rid, "tools/call", name="run", arguments={"code": code, "env": "shell", **({"session": name} if name else {})})
    ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    shim.stdout.readline()
    run(1, "echo one; sleep 1; echo two; n=1")
    wait_for(lambda: any(s["busy"] and s["state"] == "running" for s in d.call("List")["sessions"]))
    if name:
        run(2, "echo n=$n")
        wait_for(lambda: d.call("List")["sessions"][0]["queued"] == 1)
    getattr(d, step)()
    results = {}
    for _ in range(2 if name else 1):
        message = json.loads(shim.stdout.readline())
        results[message["id"]] = message["result"]["content"][0]["text"]
    assert results[1].startswith("one\ntwo\n") and f"note: {KEPT}" in results[1] and "exit 0" in results[1]
    if name:
        assert results[2].startswith("n=1\n") and "sent again" in results[2]
    shim.stdin.close()
    assert shim.wait(10) == 0
    if not name:
        wait_for(lambda: not records(d))

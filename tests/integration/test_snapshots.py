# SPDX-License-Identifier: MIT
"""When sessions are saved and restored, with an agent whose state is a few words (state_agent.py): all that sandboxd does
can be seen, and what can go wrong made to. What interpreters keep is for test_snapshots_real.py."""
import glob
import os
import shutil
import signal
import subprocess
import time

import pytest

from daemonlib import NOBODY, as_user, descendants, public_directory, removed, wait_for
from test_lifecycle import need_cgroups

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")


def snapshots(d, session=None):
    return d.call("Snapshots", session=session, project=d.project)["snapshots"]


def directory(d):
    return sorted(glob.glob(os.path.join(d.root, "state", "snapshots", "u*", "*", "2*")))


def restart(d):
    assert d.end(90) == 0, d.log()
    return d.start()


def saves(d):
    return d.events().count("saved")


def damage(path, bit=1):
    name = max(glob.glob(os.path.join(path, "*.state")), key=os.path.getsize)
    with open(name, "r+b") as f:
        f.seek(os.path.getsize(name) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ bit]))


def test_state_outlives_the_daemon(daemons):
    d = daemons()
    assert d.run("set x 42", "a")["session_state"] == "created"
    restart(d)
    assert len(directory(d)) == 1
    reply = d.run("get x", "a")
    assert reply["stdout"] == "42\n" and reply["turn"] == 1 and reply["session_state"] == "restored"
    assert "has ended" in reply["notice"] and "restored from the state of" in reply["notice"] and "(turn 1)" in reply["notice"]
    assert d.run("get x", "a")["session_state"] == "resumed"
    story = [e["event"] for e in d.call("Events")["events"]]
    assert story.index("sandbox_started") < story.index("restored") < story.index("exec_turn")


def test_history_comes_back_marked(daemons):
    d = daemons()
    d.run("set x 42", "a")
    restart(d)
    d.run("get x", "a")
    entries = d.call("History", session="a", project=d.project)["entries"]
    assert [(e["turn"], e["code"], e["restored"]) for e in entries] == [(1, "set x 42", True), (1, "get x", False)]


def test_what_is_left_out_is_named(daemons):
    d = daemons()
    d.run("skip sock socket", "a")
    reply = d.call("Save", session="a", project=d.project)
    assert reply["skipped"] == [{"part": "python", "name": "sock", "why": "socket"}]
    assert reply["notice"] == "Not in the saved state: sock (socket)"
    assert snapshots(d)[0]["skipped"] == 1
    d.run("restore part", "a")
    restart(d)
    assert "; not restored: sock (socket), lock (too old)." in d.run("get x", "a")["notice"]


def test_unchanged_costs_nothing(daemons):
    d = daemons({"snapshots": {"interval_seconds": 0.1}})
    d.run("set x 42", "a")
    wait_for(lambda: saves(d) == 1)
    first = d.call("Save", session="a", project=d.project)
    assert first["unchanged"] and first["snapshot"] == snapshots(d)[0]["id"] and first["size"] > 0
    time.sleep(0.5)  # several intervals
    assert saves(d) == 1 and len(directory(d)) == 1
    restart(d)
    assert len(directory(d)) == 1


def test_unchanged_before_the_agent_says_so(daemons):
    """The snapshot is whole when its process says so; the agent's word can come later, and is not waited for."""
    d = daemons()
    d.run("save late", "a")
    assert not d.call("Save", session="a", project=d.project)["unchanged"]
    assert d.call("Save", session="a", project=d.project)["unchanged"]
    assert saves(d) == 1


def test_saved_while_it_is_used(daemons):
    """The last interval is all that kill -9 takes; in the foreground sessions end with their daemon."""
    d = daemons({"snapshots": {"interval_seconds": 0.2}})
    d.run("set x 1", "a")
    d.run("set x 2", "a")
    wait_for(lambda: saves(d) == 1)
    d.crash()
    d.sweep()
    d.start()
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("2\n", "restored")
    assert snapshots(d)[0]["reason"] == "periodic"


def test_saving_is_not_use(daemons):
    d = daemons({"snapshots": {"interval_seconds": 0.5}, "session": {"idle_timeout_seconds": 3}})
    d.run("set x 1", "a")
    wait_for(lambda: saves(d) == 1)
    assert d.show("a")["idle_usec"] >= 500000, "since the turn, after which it was saved no sooner"
    wait_for(lambda: "killed" in d.events())
    assert saves(d) == 1


@pytest.mark.parametrize("bound, reason", [("idle_timeout_seconds", "idle"), ("max_lifetime_seconds", "lifetime")])
def test_reaped_and_back(daemons, bound, reason):
    d = daemons({"session": {bound: 1}})
    session = d.run("set x 42", "a")["id"]
    wait_for(lambda: "torn_down" in d.events(session))
    assert [e for e in d.events(session) if e not in ("frozen", "thawed")] == [
        "session_created", "sandbox_started", "exec_turn", "saved", "killed", "usage_metered", "torn_down"]
    reply = d.run("get x", "a")
    assert reply["stdout"] == "42\n" and reply["session_state"] == "restored"
    assert f"has ended: {reason}." in reply["notice"] and "starts empty" not in reply["notice"]
    assert d.refused("Show", session=session, project=d.project).parameters["reason"] == reason
    assert {s["reason"] for s in snapshots(d)} >= {reason}


def test_lifetime_ends_a_turn_and_keeps_what_was_before(daemons):
    d = daemons({"session": {"max_lifetime_seconds": 1}})
    d.run("set x 42", "a")
    with d.begin("sleep 60", "a") as link:
        message = link.receive()
    assert message["error"].endswith("SessionEnded") and message["parameters"]["reason"] == "lifetime"
    # At once: it waits until the last one is saved.
    assert d.run("get x", "a")["stdout"] == "42\n"


def test_a_turn_keeps_what_was_about_to_be_reaped(daemons):
    d = daemons({"session": {"idle_timeout_seconds": 0.5}})
    session = d.run("save slow", "a")["id"]
    wait_for(lambda: d.show("a")["busy"])
    reply = d.run("save well", "a")
    assert reply["id"] == session and reply["turn"] == 2
    assert "killed" not in d.events(session)


def test_saved_before_standby(daemons):
    d = daemons({"session": {"standby_after_seconds": 0.3}})
    need_cgroups(d, "freezer")
    session = d.run("set x 42", "a")["id"]
    wait_for(lambda: d.state("a") == "standby")
    assert d.events(session)[-2:] == ["saved", "frozen"] and snapshots(d)[0]["reason"] == "standby"
    d.run("get x", "a")
    wait_for(lambda: d.state("a") == "standby")
    d.crash()
    d.sweep()
    d.start()
    assert d.run("get x", "a")["stdout"] == "42\n"


def test_ended_by_hand_starts_fresh_and_can_be_had_back(daemons):
    d = daemons()
    d.run("set x 42", "a")
    d.call("Save", session="a", project=d.project)
    d.call("Kill", session="a", project=d.project)
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("none\n", "created")
    assert "ended by hand" in reply["notice"] and "sandboxctl restore a" in reply["notice"]
    e = d.refused("Restore", session="a", name="a", project=d.project)
    assert e.name == "Busy" and "Kill it first" in e.message
    d.call("Kill", session="a", project=d.project)
    assert "restored from" in d.call("Restore", session="a", name="a", project=d.project)["notice"]
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("42\n", "restored", 1)
    # Saved again, it is one like all others.
    d.run("set y 1", "a")
    restart(d)
    assert d.run("get y", "a")["stdout"] == "1\n"


def test_kill_of_what_has_ended_already(daemons):
    d = daemons()
    d.run("set x 42", "a")
    restart(d)
    d.refused("Kill", session="a", project=d.project)
    assert d.run("get x", "a")["stdout"] == "none\n"


def test_two_sessions_from_one_snapshot(daemons):
    d = daemons()
    d.run("set x 42", "a")
    first = d.call("Save", session="a", project=d.project)["snapshot"]
    d.run("set x 43", "a")
    d.call("Save", session="a", project=d.project)
    d.call("Restore", session="a", name="b", project=d.project)
    d.call("Restore", snapshot=first, name="c", project=d.project)
    d.run("set x 0", "b")
    assert [d.run("get x", s)["stdout"] for s in "abc"] == ["43\n", "0\n", "42\n"]
    assert d.refused("Restore", session="nobody", name="z", project=d.project).name == "NoSuchSnapshot"
    assert d.refused("Restore", snapshot="20260101T000000-00000000", name="z", project=d.project).name == "NoSuchSnapshot"
    assert d.refused("Restore", session="a", name="../z", project=d.project).name == "BadName"
    assert d.refused("Restore", name="z", project=d.project).parameters["parameter"] == "session"


def test_restore_sees_the_save_before_it(daemons):
    d = daemons()
    d.run("set x 1", "a")
    d.call("Save", session="a", project=d.project)
    d.run("set x 2", "a")
    d.run("save slow", "a")
    with d.link() as save:
        save.send("Save", session="a", project=d.project)
        snapshot_process(d)
        d.call("Restore", session="a", name="b", project=d.project)
        assert not save.answer()["unchanged"]
    assert d.run("get x", "b")["stdout"] == "2\n"


def test_damage(daemons):
    d = daemons()
    d.run("set x 1", "a")
    d.call("Save", session="a", project=d.project)
    d.run("set x 2", "a")
    d.call("Save", session="a", project=d.project)
    restart(d)
    damage(directory(d)[-1])
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("1\n", "restored")
    assert "1 newer snapshot is damaged" in reply["notice"]

    d.end()
    for path in directory(d):
        damage(path, 2)
    d.start()
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("none\n", "created")
    assert "could not be restored, so it starts empty" in reply["notice"]
    assert d.refused("Restore", session="a", name="b", project=d.project).name == "SnapshotInvalid"
    assert [s["name"] for s in d.call("List")["sessions"]] == ["a"]


@pytest.mark.parametrize("how", ["die", "fail"])
def test_restore_that_fails_half_way(daemons, how):
    """A session that may hold half of a state is replaced, and the turn runs in another one."""
    d = daemons()
    d.run("set x 1", "a")
    d.run(f"restore {how}", "a")
    restart(d)
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("none\n", "created", 1)
    assert "could not be restored, so it starts empty" in reply["notice"]
    assert [s["name"] for s in d.call("List")["sessions"]] == ["a"]
    assert d.refused("Restore", session="a", name="b", project=d.project).name == "SnapshotInvalid"
    wait_for(lambda: len(d.call("List")["sessions"]) == 1)


@pytest.mark.parametrize("how, words", [("garbage", ""), ("half", ""), ("fail", "reason"), ("endless", "")])
def test_save_that_fails(daemons, how, words):
    d = daemons({"snapshots": {"interval_seconds": 0.2, "max_mb": 4}})
    d.run("set x 1", "a")
    wait_for(lambda: saves(d) == 1)
    d.run(f"save {how}", "a")
    wait_for(lambda: "was not saved" in d.log())
    reply = wait_for(lambda: (r := d.run("get x", "a"))["notice"] and r)
    assert "State could not be saved: " in reply["notice"] and words in reply["notice"]
    e = d.refused("Save", session="a", project=d.project)
    assert e.name == "SaveFailed" and "last snapshot" in e.message
    assert d.log().count("was not saved") == 1, "it is said once"
    assert not [p for p, _ in descendants(d.pid) if "sandbox-snapsho" in comm(p)]
    assert len(snapshots(d)) == 1
    d.crash()
    d.sweep()
    d.start()
    assert d.run("get x", "a")["stdout"] == "1\n", "the last good one"


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def test_agent_that_dies_while_it_saves(daemons):
    d = daemons()
    d.run("set x 1", "a")
    d.call("Save", session="a", project=d.project)
    d.run("save die", "a")
    d.refused("Save", session="a", project=d.project)
    wait_for(lambda: "killed" in d.events())
    reply = d.run("get x", "a")
    assert reply["stdout"] == "1\n" and "has ended: crashed." in reply["notice"]


def snapshot_process(d):
    return wait_for(lambda: [p for p, _ in descendants(d.pid) if comm(p).startswith("sandbox-snapsho")])[0]


def test_program_that_dies_or_hangs(daemons):
    d = daemons()
    d.run("save hang", "a")
    with d.link() as link:
        link.send("Save", session="a", project=d.project)
        os.kill(snapshot_process(d), signal.SIGKILL)
        # The agent still hangs: nobody waits for it.
        message = link.receive()
        assert message["error"].endswith("SaveFailed")
    d.call("Kill", session="a", project=d.project)


def test_program_that_is_missing(daemons, stateful):
    with removed(public_directory()) as path:
        for program in ("sandboxd", "sandbox-agent", "sandbox-become"):
            shutil.copy(os.path.join(stateful, program), path)
        d = daemons(programs=path)
        d.run("set x 1", "a")
        e = d.refused("Save", session="a", project=d.project)
        assert e.name == "SaveFailed" and "installed" in e.message
        assert d.run("get x", "a")["stdout"] == "1\n"
        assert d.end() == 0
        d.start()
        assert d.run("get x", "a")["stdout"] == "none\n"


def test_save_waits_for_a_turn(daemons):
    d = daemons()
    d.run("set x 1", "a")
    with d.begin("sleep 60", "a") as turn, d.link() as save:
        d.wait_busy("a")
        save.send("Save", session="a", project=d.project)
        d.settle()
        after = d.begin("get x", "a")
        d.wait_queued("a", 1)
        assert save.quiet(0.3)
        d.call("Interrupt", session="a", project=d.project)
        assert turn.answer()["stdout"] == "interrupted\n"
        assert not save.answer()["unchanged"]
        assert after.answer()["stdout"] == "1\n"
        after.close()


def test_frozen_and_nameless(daemons):
    d = daemons()
    d.run("set x 1", "a")
    need_cgroups(d, "freezer")
    d.call("Freeze", session="a", project=d.project)
    assert d.refused("Save", session="a", project=d.project).name == "SessionFrozen"
    d.call("Thaw", session="a", project=d.project)
    assert not d.call("Save", session="a", project=d.project)["unchanged"]


def test_not_enabled(daemons):
    d = daemons({"snapshots": {"enabled": False, "interval_seconds": 0.1}, "session": {"standby_after_seconds": 0.2}})
    d.run("set x 1", "a")
    time.sleep(0.5)  # it would have been saved several times
    assert not directory(d)
    d.call("Save", session="a", project=d.project)
    restart(d)
    assert len(directory(d)) == 1
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"]) == ("none\n", "created")
    d.call("Restore", session="a", name="b", project=d.project)
    assert d.run("get x", "b")["stdout"] == "1\n"


def test_environment(daemons):
    d = daemons({"environments": {"mine": {"interpreters": ["python"]}}})
    d.run("set x 1", "a", env="mine")
    restart(d)
    reply = d.run("get x", "a", env="shell")
    assert (reply["stdout"], reply["session_state"], reply["environment"]) == ("none\n", "created", "default")
    assert "another environment" in reply["notice"]
    d.call("Restore", session="a", name="b", project=d.project)
    reply = d.run("get x", "b", env=None)
    assert (reply["stdout"], reply["environment"]) == ("1\n", "mine")


def test_environment_is_the_snapshots(daemons):
    d = daemons({"environments": {"mine": {"interpreters": ["node"]}}})
    d.run("set x 1", "a", env="mine")
    restart(d)
    reply = d.run("get x", "a", env=None)
    assert (reply["stdout"], reply["environment"], reply["interpreter"]) == ("1\n", "mine", "node")


def test_environment_that_is_gone(daemons):
    d = daemons({"environments": {"mine": {"interpreters": ["python"]}}})
    d.run("set x 1", "a", env="mine")
    d.end()
    with open(os.path.join(d.root, "config"), "w", encoding="utf-8") as f:
        f.write("{}")
    d.start()
    reply = d.run("get x", "a", env=None)
    assert reply["stdout"] == "none\n" and "not configured any more" in reply["notice"]
    assert d.refused("Restore", session="a", name="b", project=d.project).name == "SnapshotInvalid"


def test_turns_at_once(daemons):
    """All that come before it is restored have the same session."""
    d = daemons()
    d.run("set x 42", "a")
    restart(d)
    links = [d.begin("get x", "a") for _ in range(8)]
    replies = [link.answer() for link in links]
    for link in links:
        link.close()
    assert {r["stdout"] for r in replies} == {"42\n"} and len({r["id"] for r in replies}) == 1
    assert sorted(r["turn"] for r in replies) == list(range(1, 9))
    assert [r["session_state"] for r in replies].count("restored") == 1


def test_caller_that_leaves_while_it_is_restored(daemons):
    d = daemons()
    d.run("set x 42", "a")
    restart(d)
    for _ in range(20):
        d.begin("get x", "a").close()
    reply = d.run("get x", "a")
    assert reply["stdout"] == "42\n"


def test_many_sessions_at_the_end(daemons):
    d = daemons()
    names = [f"n{i}" for i in range(12)]
    for name in names:
        d.run(f"set x {name}", name)
    begun = time.monotonic()
    restart(d)
    assert time.monotonic() - begun < 30
    assert [d.run("get x", name)["stdout"] for name in names] == [f"{name}\n" for name in names]


def test_end_of_the_daemon_stops_a_turn(daemons):
    d = daemons()
    d.run("set x 42", "a")
    with d.begin("sleep 60", "a") as link:
        d.wait_busy("a")
        d.process.send_signal(signal.SIGTERM)
        message = link.receive()
        assert message["error"].endswith("SessionEnded") and message["parameters"]["reason"] == "shutdown"
    assert d.process.wait(30) == 0
    d.start()
    assert d.run("get x", "a")["stdout"] == "42\n"


def test_reload_keeps_what_is_known(daemons):
    d = daemons()
    d.run("set x 42", "a")
    first = d.call("Save", session="a", project=d.project)
    before = d.pid
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "Took over 1 of 1" in d.log())
    assert d.call("Wait", session="a", project=d.project)["turn"] == 1
    reply = d.call("Save", session="a", project=d.project)
    assert d.pid == before and reply["unchanged"] and reply["snapshot"] == first["snapshot"]
    d.run("set x 43", "a")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.log().count("Took over 1 of 1") == 2)
    restart(d)
    assert d.run("get x", "a")["stdout"] == "43\n"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for two users")
def test_users_do_not_reach_each_other(daemons):
    d = daemons()
    d.run("set x 42", "a")
    mine = d.call("Save", session="a", project=d.project)["snapshot"]
    os.chmod(d.sock, 0o666)
    found = as_user(NOBODY, f"""
link = Link({d.sock!r})
def refusal(method, **p):
    try:
        return [method, link.call(method, **p)]
    except VarlinkError as e:
        return e.name
print(json.dumps([link.call("Snapshots")["snapshots"], refusal("Restore", snapshot={mine!r}, name="b"),
                  refusal("Restore", session="a", name="b", project="/test"), refusal("Save", session="a"),
                  refusal("Snapshots", all=True),
                  link.call("Run", code="get x", session="a", project="/test", environment="shell")["stdout"]]))
""")
    assert found == [[], "NoSuchSnapshot", "NoSuchSnapshot", "NoSuchSession", "PermissionDenied", "none\n"]
    assert not as_user(NOBODY, f"print(json.dumps(os.access({os.path.join(d.root, 'state', 'snapshots')!r}, os.X_OK)))")
    everyone = d.call("Snapshots", all=True)["snapshots"]
    assert {s["uid"] for s in everyone} == {0}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for a mount")
def test_full_disk(daemons):
    small = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             'mkdir -p "$0/state" && mount -t tmpfs -o size=256k none "$0/state" && exec "$@"']
    root = public_directory()
    with removed(root):
        d = daemons({"snapshots": {"interval_seconds": 0.2}}, wrapper=[*small, root], root=root)
        d.run("set x 1", "a")
        wait_for(lambda: saves(d) == 1)
        subprocess.run(["nsenter", "-t", str(d.pid), "-m", "sh", "-c", f"cat /dev/zero > {root}/state/fill"],
                       check=False, stderr=subprocess.DEVNULL)
        d.run("set x 2", "a")
        reply = wait_for(lambda: (r := d.run("get x", "a"))["notice"] and r)
        assert "State could not be saved: " in reply["notice"]
        assert d.refused("Save", session="a", project=d.project).name == "SaveFailed"
        subprocess.run(["nsenter", "-t", str(d.pid), "-m", "rm", f"{root}/state/fill"], check=True)
        assert not d.call("Save", session="a", project=d.project)["unchanged"]
        d.close()


def test_ctl(daemons):
    d = daemons()
    d.project = os.getcwd()
    d.run("skip sock socket", "a")
    done = d.ctl("save", "a")
    assert done.returncode == 0 and done.stdout.startswith("Saved as 2") and "sock (socket)" in done.stderr
    assert d.ctl("save", "a").stdout.startswith("Unchanged since 2")
    status, found = d.json("snapshots", "a")
    assert status == 0 and len(found["snapshots"]) == 1
    table = d.ctl("snapshots").stdout
    assert found["snapshots"][0]["id"] in table and "by-hand" in table
    assert d.ctl("restore", "a").returncode == 1
    done = d.ctl("restore", "a", "b", "--snapshot", found["snapshots"][0]["id"])
    assert done.returncode == 0 and done.stdout.startswith("Session b (") and "restored from" in done.stderr
    status, o = d.json("restore", "a", "c")
    assert status == 0 and o["session"] == "c" and [p["name"] for p in o["parts"]] == ["workspace", "python"]
    assert d.ctl("restore").returncode == 2 and d.ctl("save").returncode == 2

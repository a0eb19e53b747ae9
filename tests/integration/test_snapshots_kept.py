# SPDX-License-Identifier: MIT
"""How long snapshots stay: the cap of all of a user's, and expiry, as sandboxd has them done. The rest of the rules is for
test_snapshot_store.py."""
import os
import shutil

import pytest

from daemonlib import NOBODY, as_user, wait_for
from snapshotlib import rewrite_manifest
from test_snapshots import directory, restart, snapshots

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")
DAY = 24 * 3600
# Of a megabyte so large that two of them fit and three do not.
LARGE = 360 << 10


def save(d, session):
    return d.call("Save", session=session, project=d.project)["snapshot"]


def save_large(d, session, value):
    d.run(f"set pad {'x' * LARGE}", session)
    d.run(f"set x {value}", session)
    return save(d, session)


def stored(d):
    """The names of all snapshots there are."""
    return {os.path.basename(path) for path in directory(d)}


def move_back(d, snapshot, seconds):
    """It was made so much earlier."""
    path = next(p for p in directory(d) if os.path.basename(p) == snapshot)
    rewrite_manifest(path, lambda o: o.update(time_usec=o["time_usec"] - seconds * 1000000))


# The cap of a user

def test_over_the_cap_the_oldest_surplus_goes(daemons):
    d = daemons({"snapshots": {"user_max_mb": 1}})
    first, second = save_large(d, "a", "1"), save_large(d, "a", "2")
    assert stored(d) == {first, second}
    other = save_large(d, "b", "3")
    assert stored(d) == {second, other}, "of a session that is not the one that was saved"
    assert d.run("get x", "a")["stdout"] == "2\n"


def test_what_does_not_fit_is_refused_and_costs_nothing(daemons):
    d = daemons({"snapshots": {"user_max_mb": 1, "interval_seconds": 0.2}})
    kept = {save_large(d, "a", "1"), save_large(d, "b", "2")}
    d.run(f"set pad {'x' * LARGE}", "c")
    reply = wait_for(lambda: (r := d.run("get y", "c"))["notice"] and r)
    assert "State could not be saved: " in reply["notice"] and "snapshots.user_max_mb" in reply["notice"]
    error = d.refused("Save", session="c", project=d.project)
    assert error.name == "SaveFailed" and "snapshots.user_max_mb" in error.message and str(1 << 20) in error.message
    assert stored(d) == kept and snapshots(d, "b")
    restart(d)
    assert [d.run("get x", s)["stdout"] for s in "abc"] == ["1\n", "2\n", "none\n"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for two users")
def test_each_user_has_a_cap_of_his_own(daemons):
    d = daemons({"snapshots": {"user_max_mb": 1}})
    mine = {save_large(d, "a", "1"), save_large(d, "b", "2")}
    os.chmod(d.sock, 0o666)
    his = as_user(NOBODY, f"""
c = Client({d.sock!r})
c.run("set pad " + "x" * {LARGE}, "a")
print(json.dumps(c.call("Save", session="a", project=c.project)["snapshot"]))
""")
    assert stored(d) == {*mine, his}


# Expiry

def test_what_has_expired_is_not_restored(daemons):
    d = daemons({"snapshots": {"expire_days": 1}})
    for session in "ab":
        d.run(f"set x {session}", session)
    expired = save(d, "a")
    restart(d)
    assert stored(d) == {expired, *(s["id"] for s in snapshots(d, "b"))}
    move_back(d, expired, DAY)

    assert snapshots(d, "a") == [] and len(snapshots(d)) == 1
    error = d.refused("Restore", session="a", name="c", project=d.project)
    assert error.name == "NoSuchSnapshot"
    assert d.refused("Restore", snapshot=expired, name="c", project=d.project).name == "NoSuchSnapshot"
    reply = d.run("get x", "a")
    assert (reply["stdout"], reply["session_state"], reply["turn"]) == ("none\n", "created", 1)
    assert "has ended" in reply["notice"] and "starts empty" in reply["notice"]
    reply = d.run("get x", "b")
    assert (reply["stdout"], reply["session_state"]) == ("b\n", "restored")

    new = save(d, "a")
    assert [s["id"] for s in snapshots(d, "a")] == [new] and expired not in stored(d) and len(stored(d)) == 2


def test_the_newest_that_has_not_expired_is_restored(daemons):
    """Times are those of a clock that somebody has set."""
    d = daemons({"snapshots": {"expire_days": 1}})
    d.run("set x 1", "a")
    save(d, "a")
    d.run("set x 2", "a")
    newest = save(d, "a")
    restart(d)
    move_back(d, newest, DAY)
    assert d.run("get x", "a")["stdout"] == "1\n"


def test_what_has_expired_is_removed_by_itself(daemons):
    d = daemons({"snapshots": {"expire_days": 0.0001}})  # 9 s; so often it is looked for
    for session in "ab":
        d.run("set x 1", session)
    kept = save(d, "b")
    move_back(d, kept, -DAY)
    save(d, "a")
    wait_for(lambda: stored(d) == {kept})
    assert [s["id"] for s in snapshots(d)] == [kept]


# Sessions without their snapshot

@pytest.mark.parametrize("how", ["by hand", "at its end"])
def test_a_session_that_outlives_its_snapshot_is_saved_again(daemons, how):
    d = daemons()
    d.run("set x 42", "a")
    first = save(d, "a")
    shutil.rmtree(directory(d)[0])  # as when it has expired
    if how == "by hand":
        second = d.call("Save", session="a", project=d.project)
        assert not second["unchanged"] and second["snapshot"] != first
    restart(d)
    assert len(directory(d)) == 1
    assert d.run("get x", "a")["stdout"] == "42\n"


def test_restored_under_another_name_it_is_saved_under_that(daemons):
    """Even if nobody has used it."""
    d = daemons()
    d.run("set x 42", "a")
    save(d, "a")
    d.call("Restore", session="a", name="b", project=d.project)
    restart(d)
    assert d.run("get x", "b")["stdout"] == "42\n"

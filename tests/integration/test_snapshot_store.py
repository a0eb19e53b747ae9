# SPDX-License-Identifier: MIT
"""sandbox-snapshot by itself: what it stores, refuses, removes, and what it leaves when it is killed or the disk fails."""
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

from daemonlib import wait_for
from snapshotlib import FAR, ID, KEY, OK, SESSION, Process, Store, a_stream, fingerprint, rewrite_manifest, stream

VARIANTS = 200
KILLS = 100
OTHER_KEY = "f" * 32


@pytest.fixture
def folder():
    # In memory if possible: a thousand snapshots are synced here, and no test can cut the power.
    path = tempfile.mkdtemp(prefix="nsc-snapshots-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def store(folder):
    return Store(os.path.join(folder, "snapshots"))


@pytest.fixture
def rng(request):
    seed = int(os.environ.get("SNAPSHOT_SEED", random.randrange(1 << 32)))
    print(f"SNAPSHOT_SEED={seed}")
    return random.Random(seed)


def check_error(answer, error):
    assert answer["ok"] is False and answer["error"] == error, answer
    assert answer["why"].endswith(".") and len(answer["why"]) > 15


# ---- what is stored ----

def test_round_trip(store):
    report = {"ok": True, "version": "3.11.2", "libraries": {"dill": "0.3.6"}, "saved": 2,
              "skipped": [{"name": "f", "why": "an open file"}], "skipped_more": 1}
    big = os.urandom(700000)
    sent = stream(("workspace", b"tar", OK), ("python", big, report), ("bash", b"", OK))
    history = [{"turn": 1, "code": "x = 42"}]
    saved = store.save(sent, history=history)
    assert saved["ok"] and ID.fullmatch(saved["id"]) and saved["removed"] == 0
    assert saved["bytes"] == 3 + len(big) + len(json.dumps(history, separators=(",", ":")))
    assert saved["parts"][1] == {"name": "python", "bytes": len(big), **report}

    answer, output = store.load()
    assert output == sent
    assert answer["ok"] and answer["id"] == saved["id"] and answer["closed"] is False and answer["damaged"] == []
    assert answer["session"] == SESSION and answer["history"] == history and answer["reason"] == "by-hand"
    assert [p["name"] for p in answer["parts"]] == ["workspace", "python", "bash"]
    assert store.load("--id", saved["id"])[1] == sent


def test_modes(store):
    snapshot = store.good_save(a_stream("a"))
    for where, folders, names in os.walk(store.root):
        assert stat.S_IMODE(os.stat(where).st_mode) == 0o700
        assert all(stat.S_IMODE(os.stat(os.path.join(where, n)).st_mode) == 0o600 for n in names)
    assert sorted(os.listdir(os.path.join(store.place, snapshot))) == ["bash.state", "manifest", "node.state", "python.state",
                                                                      "workspace.tar"]


def test_parts_are_sent_in_their_order(store):
    store.good_save(stream(("node", b"n", OK), ("python", b"p", OK), ("workspace", b"w", OK)))
    assert store.load()[1] == stream(("workspace", b"w", OK), ("python", b"p", OK), ("node", b"n", OK))


def test_a_part_that_failed(store):
    answer = store.save(stream(("workspace", b"w", OK), ("python", b"half a state", {"ok": False, "why": "recursion\x1b[2J"})))
    assert answer["ok"] and answer["bytes"] == 1
    assert answer["parts"][1] == {"name": "python", "bytes": 0, "ok": False, "why": "recursion[2J", "skipped": []}
    assert sorted(os.listdir(os.path.join(store.place, answer["id"]))) == ["manifest", "workspace.tar"]
    loaded, output = store.load()
    assert output == stream(("workspace", b"w", OK)) and [p["ok"] for p in loaded["parts"]] == [True, False]


def test_nothing_could_be_saved(store):
    first = store.good_save(a_stream("a"))
    answer = store.save(stream(("python", b"x", {"ok": False, "why": "recursion"})))
    check_error(answer, "incomplete")
    assert "python: not saved: recursion" in answer["why"]
    check_error(store.save(b"done\n"), "incomplete")
    assert store.names() == [first]


def test_a_report_that_is_none(store):
    answer = store.save(stream(("workspace", b"w", OK), ("python", b"p", b"[1,2")))
    assert answer["ok"] and answer["parts"][1]["ok"] is False
    assert store.load()[1] == stream(("workspace", b"w", OK))


def test_newest_is_loaded(store):
    """Also of those made within one second."""
    for n in range(30):
        newest = store.good_save(a_stream(str(n), 20), keep=30)
    answer, output = store.load()
    assert answer["id"] == newest and output == a_stream("29", 20)
    listed = store.list()["snapshots"]
    assert [s["id"] for s in listed] == sorted(store.ids(), reverse=True) and len(listed) == 30


def test_keep(store):
    ids = [store.good_save(a_stream(str(n)), keep=3) for n in range(8)]
    assert store.names() == ids[-3:]
    assert store.save(a_stream("x"), keep=1)["removed"] == 3


def test_none(store):
    answer, output = store.load()
    check_error(answer, "none")
    assert output == b"" and store.list() == {"snapshots": [], "damaged": [], "ok": True}
    assert not os.path.exists(store.root)
    store.good_save(a_stream("a"))
    check_error(store.load("--id", "20200101T000000-00000000")[0], "none")


def test_closed(store):
    assert store.close()["ok"] and not os.path.exists(store.root)
    store.good_save(a_stream("a"))
    assert store.close()["ok"]
    answer, output = store.load("--auto")
    check_error(answer, "closed")
    assert output == b"" and answer["closed"] is True
    assert store.load()[0]["closed"] is True and store.load()[1] == a_stream("a")
    assert store.list()["snapshots"][0]["closed"] is True

    check_error(store.save(a_stream("b")[:-1]), "incomplete")
    check_error(store.load("--auto")[0], "closed")
    store.good_save(a_stream("b"))
    assert store.load("--auto")[1] == a_stream("b")


def test_other_sessions_and_users(store):
    store.good_save(a_stream("a"))
    for other in (Store(store.root, uid=8), Store(store.root, key=OTHER_KEY)):
        check_error(other.load()[0], "none")
        assert other.list()["snapshots"] == []
    Store(store.root, key=OTHER_KEY).good_save(a_stream("b"))
    assert {s["key"] for s in store.list_all()["snapshots"]} == {KEY, OTHER_KEY}
    assert Store(store.root, uid=8).list_all()["snapshots"] == []


def test_many(store):
    first = store.good_save(stream(("bash", b"x", OK)))
    for n in range(519):
        name = f"20250101T000000-{n:08x}"
        shutil.copytree(os.path.join(store.place, first), os.path.join(store.place, name))
        rewrite_manifest(os.path.join(store.place, name), lambda o, i=name: o.update(id=i))
    answer = store.list()
    assert len(answer["snapshots"]) == 512 and answer["more"] == 8
    assert answer["snapshots"][0]["id"] == first
    assert store.prune(keep=20)["removed"] == 500 and len(store.ids()) == 20


# ---- what is refused ----

@pytest.mark.parametrize("data", [
    b"\0" * 100, b"part perl\n", b"part ../x\n", b"GET / HTTP/1.0\r\n\r\n", b"part python\npart bash\n", b"data 5\nabcde",
    b"part python\ndata 262145\n", b"part python\ndata -1\n", b"part python\nend 65537\n", b"part python\ndone\n",
    stream(("python", b"a", OK), done=False) + b"part python\n",
])
def test_garbage(store, data):
    first = store.good_save(a_stream("a"))
    check_error(store.save(data), "damaged")
    assert store.names() == [first]


def test_random_garbage(store, rng):
    """Good streams with some bytes changed: a good snapshot of what was sent, or none; never a crash or a left-over."""
    good = a_stream("a", 200)
    for _ in range(100):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        answer = store.save(bytes(data), keep=1000)
        assert answer["ok"] or answer["error"] in ("damaged", "incomplete")
        assert store.leftovers() == []
    for snapshot in store.ids():
        assert store.load("--id", snapshot)[0]["ok"]


def test_cut_stream(store):
    first = store.good_save(a_stream("a"))
    whole = a_stream("b")
    for size in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        check_error(store.save(whole[:size]), "incomplete")
    assert store.names() == [first]


def test_bad_descriptions(store):
    for text in (b"", b"x", b"{}", b"[]", json.dumps({"session": [], "reason": "x", "tool": "y"}).encode(),
                 json.dumps({"session": {}, "reason": 1, "tool": "y"}).encode(), b" " * (256 * 1024 + 1)):
        check_error(store.save(a_stream("a"), description=text), "usage")
    assert not os.path.exists(store.root)


def test_bad_options(store):
    for args in ((), ("eat",), ("load",), ("load", *store.base()),
                 ("load", *store.base(), "--expire-seconds", "1", "--id", "../x"), ("save", *store.base())):
        check_error(store.run(*args)[0], "usage")


def test_size_cap(store):
    first = store.good_save(a_stream("a"))
    p = store.start_save(max_bytes=100000)
    assert not p.feed(a_stream("b", 1 << 20))       # it does not read on for nothing
    answer, _ = p.end()
    check_error(answer, "too-large")
    assert "100000" in answer["why"] and store.names() == [first]
    assert store.save(stream(("bash", b"x" * 100000, OK)), max_bytes=100000)["ok"]
    check_error(store.save(stream(("bash", b"x" * 100001, OK)), max_bytes=100000), "too-large")


def test_what_a_failed_part_held_is_not_counted(store):
    data = stream(("python", b"x" * 900, {"ok": False}), ("bash", b"x" * 900, OK))
    assert store.save(data, max_bytes=1000)["ok"]


def test_user_cap(store):
    """The oldest surplus goes first, in other sessions too, but the newest of a session never does."""
    other = Store(store.root, key=OTHER_KEY)
    data = stream(("bash", b"x" * 100000, OK))
    others = [other.good_save(data) for _ in range(2)]
    time.sleep(1.1)                                 # the names of these are to be later than those
    mine = [store.good_save(data) for _ in range(2)]
    answer = store.save(data, user_max_bytes=450000)
    assert answer["ok"] and answer["removed"] == 1 and other.ids() == others[1:]
    answer = store.save(data, user_max_bytes=350000)
    assert answer["ok"] and answer["removed"] == 2 and not set(mine) & set(store.ids()) and len(store.ids()) == 2
    before = fingerprint(store.root)
    check_error(store.save(data, user_max_bytes=150000), "too-large")
    assert fingerprint(store.root) == before
    assert other.load()[1] == data


def test_foreign_version(store):
    old, new = store.good_save(a_stream("a")), store.good_save(a_stream("b"))
    rewrite_manifest(os.path.join(store.place, new), lambda o: o.update(format=2))
    answer, output = store.load()
    assert answer["id"] == old and output == a_stream("a")
    assert [d["id"] for d in answer["damaged"]] == [new] and "newer" in answer["damaged"][0]["why"]
    check_error(store.load("--id", new)[0], "foreign-version")
    assert "newer" in store.list()["damaged"][0]["why"]

    # It counts as good, since a newer release can read it.
    rewrite_manifest(os.path.join(store.place, old), lambda o: o.update(format=2))
    check_error(store.load()[0], "foreign-version")
    assert store.prune(keep=1)["removed"] == 1 and store.ids() == [new]
    check_error(Store(store.root, key=OTHER_KEY).save(a_stream("b"), user_max_bytes=6000), "too-large")
    assert store.ids() == [new]


def test_somebody_elses(store):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    snapshot = store.good_save(a_stream("a"))
    for path in (os.path.join(store.place, snapshot, "python.state"), os.path.join(store.place, snapshot), store.place):
        os.chown(path, 12345, -1)
        answer, output = store.load()
        check_error(answer, "io" if path == store.place else "damaged")
        assert output == b""
    check_error(store.save(a_stream("b")), "io")
    os.chown(store.place, 0, -1)
    store.good_save(a_stream("b"))
    os.chmod(os.path.dirname(store.place), 0o770)
    check_error(store.load()[0], "io")


# ---- expiry and tidying ----

def move_back(store, snapshot, seconds):
    rewrite_manifest(os.path.join(store.place, snapshot), lambda o: o.update(time_usec=o["time_usec"] - seconds * 1000000))


def test_expiry(store):
    """What the manifest says counts, not the name nor the file's times."""
    ids = [store.good_save(a_stream(str(n))) for n in range(4)]
    move_back(store, ids[0], 90)
    move_back(store, ids[2], 110)
    assert store.prune(expire=100)["removed"] == 1 and store.ids() == [ids[0], ids[1], ids[3]]
    answer = store.save(a_stream("x"), expire=80)
    assert answer["removed"] == 1 and store.ids() == [ids[1], ids[3], answer["id"]]


def test_what_has_expired_is_not_to_be_had(store):
    """Even before it is removed; and an older one that a clock has set to a later time is as good as any."""
    old, new = store.good_save(a_stream("old")), store.good_save(a_stream("new"))
    move_back(store, new, 100)
    assert [s["id"] for s in store.list(expire=90)["snapshots"]] == [old]
    assert [s["id"] for s in store.list(expire=110)["snapshots"]] == [new, old]
    assert store.load(expire=90)[1] == a_stream("old") and store.load(expire=110)[1] == a_stream("new")
    check_error(store.load("--id", new, expire=90)[0], "none")
    move_back(store, old, 100)
    answer, output = store.load("--auto", expire=90)
    check_error(answer, "none")
    assert output == b"" and store.ids() == [old, new]


def test_prune_removes_what_is_empty(store):
    last = store.good_save(a_stream("a"))
    store.close()
    move_back(store, last, 1000)
    assert store.prune(expire=10000) == {"ok": True, "removed": 0, "busy": 0}
    assert store.prune(expire=100)["removed"] == 1
    assert not os.path.exists(store.place)
    store.good_save(a_stream("b"))
    assert store.load("--auto")[1] == a_stream("b")


def test_prune_leaves_a_running_save_alone(store):
    first = store.good_save(a_stream("a"))
    whole = a_stream("b", 300000)
    p = store.start_save()
    p.feed(whole[:-10])
    p.wait_taken()
    os.mkdir(os.path.join(store.place, ".new-20200101T000000-00000000"), 0o700)
    assert store.prune()["busy"] == 1
    assert len(store.leftovers()) == 2
    p.feed(whole[-10:])
    assert p.end()[0]["ok"]
    assert len(store.leftovers()) == 1 and store.prune()["busy"] == 0 and store.leftovers() == []
    assert store.load()[1] == whole and first in store.ids()


def test_foreign_things_stay(store):
    store.good_save(a_stream("a"))
    for path in (os.path.join(store.root, "README"), os.path.join(store.root, "u7", "notes"), os.path.join(store.place, ".new-x")):
        os.mkdir(path)
    store.prune(keep=1, expire=1)
    assert {"README", "u7"} <= set(os.listdir(store.root)) and os.path.isdir(os.path.join(store.root, "u7", "notes"))


# ---- two at once, and being told to stop ----

def test_two_saves_of_one_session(store):
    first, second = store.start_save(), store.start_save()
    # Which of them gets the lock first is not said; the other one waits.
    for p, word in ((first, "1"), (second, "2")):
        p.feed(a_stream(word, 1000))
        p.feed_end()
    answers = [p.end()[0] for p in (first, second)]
    assert all(a["ok"] for a in answers)
    assert store.load()[1] in (a_stream("1"), a_stream("2")) and len(store.ids()) == 2


def test_a_save_that_is_in_the_way(store):
    p = store.start_save()
    p.feed(b"part python\n")
    p.wait_taken()
    start = time.monotonic()
    check_error(store.save(a_stream("b")), "busy")
    assert 3 < time.monotonic() - start < 30
    p.kill(signal.SIGTERM)
    check_error(p.end()[0], "incomplete")
    store.good_save(a_stream("b"))


def test_stall_and_sigterm(store):
    first = store.good_save(a_stream("a"))
    p = store.start_save()
    p.feed(a_stream("b", 300000)[:500000])
    p.wait_taken()
    assert len(store.leftovers()) == 1
    p.kill(signal.SIGTERM)
    check_error(p.end()[0], "incomplete")
    assert store.names() == [first] and store.load()[1] == a_stream("a")


def test_confined(store):
    p = store.start_save()
    p.feed(b"part python\ndata 1\nx")
    p.wait_taken()
    # It stands in its wait for more, after all preparations.
    def read(name):
        with open(f"/proc/{p.pid}/{name}", encoding="utf-8") as f:
            return f.read()
    wait_for(lambda: "Seccomp:\t2" in read("status"))
    assert "NoNewPrivs:\t1" in read("status")
    assert [line.split()[4:6] for line in read("limits").splitlines() if line.startswith("Max core")] == [["0", "0"]]
    assert {int(fd) for fd in os.listdir(f"/proc/{p.pid}/fd")} >= {0, 1, 3, 4}
    assert max(int(fd) for fd in os.listdir(f"/proc/{p.pid}/fd")) < 12
    p.kill(signal.SIGTERM)
    p.end()


def test_ends_with_its_parent(store):
    """As when the daemon dies: nothing is left, and nobody waits for a jail that may never send more."""
    ready, told = os.pipe()
    os.set_inheritable(told, True)
    pid = os.fork()
    if pid == 0:
        p = store.start_save()
        p.feed(b"part python\ndata 1\nx")
        p.wait_taken()
        os.write(told, f"{p.pid}\n".encode())
        signal.pause()
    os.close(told)
    child = int(os.read(ready, 100))
    os.close(ready)
    wait_for(store.leftovers)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: not os.path.exists(f"/proc/{child}") or "State:\tZ" in open(f"/proc/{child}/status", encoding="utf-8").read())
    assert store.leftovers() == []


def test_reader_that_goes(store):
    store.good_save(a_stream("a", 1 << 20))
    p = store.start_load()
    wait_for(lambda: os.read(p.stdout, 10))
    os.close(p.stdout)
    p.stdout = os.open("/dev/null", os.O_RDONLY)
    check_error(p.end()[0], "io")


def test_load_while_it_is_removed(store):
    """Its files are open from the check on."""
    data = a_stream("a", 1 << 20)
    store.good_save(data)
    p = store.start_load()
    head = os.read(p.stdout, 10)
    store.good_save(a_stream("b"), keep=1)
    answer, output = p.end()
    assert answer["ok"] and head + output == data


# ---- damage ----

def flip(path, rng):
    with open(path, "r+b") as f:
        size = f.seek(0, 2)
        at = rng.randrange(size)
        f.seek(at)
        byte = f.read(1)[0] ^ 1 << rng.randrange(8)
        f.seek(at)
        f.write(bytes([byte]))


def damage_flip(new, old, rng):
    flip(os.path.join(new, rng.choice(os.listdir(new))), rng)


def damage_cut(new, old, rng):
    path = os.path.join(new, rng.choice(os.listdir(new)))
    os.truncate(path, rng.randrange(os.path.getsize(path)))


def damage_grow(new, old, rng):
    with open(os.path.join(new, rng.choice(os.listdir(new))), "ab") as f:
        f.write(os.urandom(rng.randrange(1, 5000)))


def damage_swap_parts(new, old, rng):
    a, b = rng.sample([n for n in os.listdir(new) if n != "manifest"], 2)
    for source, target in ((a, "x"), (b, a), ("x", b)):
        os.rename(os.path.join(new, source), os.path.join(new, target))


def damage_part_of_other(new, old, rng):
    name = rng.choice([n for n in os.listdir(new) if n != "manifest"])
    shutil.copy(os.path.join(old, name), os.path.join(new, name))


def damage_manifest_of_other(new, old, rng):
    shutil.copy(os.path.join(old, "manifest"), os.path.join(new, "manifest"))


def damage_all_of_other(new, old, rng):
    """A good snapshot, under another's name."""
    for name in os.listdir(new):
        shutil.copy(os.path.join(old, name), os.path.join(new, name))


def damage_remove(new, old, rng):
    os.unlink(os.path.join(new, rng.choice(os.listdir(new))))


def damage_special(new, old, rng):
    name = rng.choice(os.listdir(new))
    path = os.path.join(new, name)
    os.rename(path, os.path.join(os.path.dirname(os.path.dirname(new)), "kept"))
    kind = rng.randrange(5)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        os.mkdir(path)
    elif kind == 2:
        os.symlink("/etc/passwd", path)
    elif kind == 3:
        os.symlink("../../kept", path)              # the very same bytes
    else:
        os.symlink(path, path)


def damage_directory(new, old, rng):
    kind = rng.randrange(3)
    os.rename(new, os.path.join(os.path.dirname(os.path.dirname(new)), "kept"))
    if kind == 0:
        os.symlink("../kept", new)
    elif kind == 1:
        os.mkfifo(new)
    else:
        os.mkdir(new, 0o700)


def damage_manifest_fields(new, old, rng):
    """The checksum is right, what it covers is not."""
    changes = [
        lambda o: o.update(format=0), lambda o: o.update(format="1"), lambda o: o.pop("parts"), lambda o: o.update(id="x"),
        lambda o: o["parts"].append(o["parts"][0]), lambda o: o["parts"][0].update(file="../../../etc/passwd"),
        lambda o: o["parts"][0].update(name="perl"), lambda o: o["parts"][0].update(bytes=1 << 62),
        lambda o: o["parts"][0].update(sha256="0" * 64), lambda o: o["parts"][0].update(report=None),
        lambda o: o["parts"][0].update(report={"ok": 1}), lambda o: o.update(session=[]),
    ]
    rewrite_manifest(new, rng.choice(changes))


DAMAGES = [damage_flip] * 8 + [damage_cut] * 3 + [damage_special] * 3 + [damage_manifest_fields] * 2 + [
    damage_grow, damage_swap_parts, damage_part_of_other, damage_manifest_of_other, damage_all_of_other, damage_remove,
    damage_directory]


def test_damage(folder, rng):
    """The newest is damaged in any way: it is never restored, and the one before it always is, untouched."""
    template = Store(os.path.join(folder, "template"))
    old = template.good_save(a_stream("old"), history=[1])
    new = template.good_save(a_stream("new"), history=[2])
    for n in range(VARIANTS):
        store = Store(os.path.join(folder, str(n)))
        shutil.copytree(template.root, store.root)
        paths = [os.path.join(store.place, i) for i in (new, old)]
        before = fingerprint(paths[1])
        damage = DAMAGES[n % len(DAMAGES)]
        damage(*paths, rng)

        answer, output = store.load()
        assert answer["ok"] and answer["id"] == old and answer["history"] == [1], (damage, answer)
        assert output == a_stream("old"), damage
        assert [d["id"] for d in answer["damaged"]] == [new] and answer["damaged"][0]["why"], damage
        answer, output = store.load("--id", new)
        check_error(answer, "damaged")
        assert output == b"" and store.list()["ok"]

        # A save goes on beside it, and later both go.
        saved = store.save(a_stream("newer"), keep=3)
        assert saved["ok"] and fingerprint(paths[1]) == before, damage
        assert store.load()[1] == a_stream("newer")
        store.good_save(a_stream("newest"), keep=1)
        assert store.prune(keep=1)["ok"]
        assert len(store.ids()) == 1 and store.leftovers() == [], (damage, store.names())
        shutil.rmtree(store.root)


def test_all_are_damaged(store, rng):
    for n in range(3):
        path = os.path.join(store.place, store.good_save(a_stream(str(n))))
        flip(os.path.join(path, rng.choice(os.listdir(path))), rng)
    answer, output = store.load()
    check_error(answer, "damaged")
    assert output == b"" and len(answer["damaged"]) == 3


def test_sizes_are_seen_in_lists(store):
    """Without reading the files."""
    for change in (lambda path: os.truncate(path, 5), os.unlink):
        snapshot = store.good_save(a_stream("a"))
        change(os.path.join(store.place, snapshot, "python.state"))
        answer = store.list()
        assert "python.state" in answer["damaged"][0]["why"] and answer["damaged"][0]["id"] == snapshot


def test_added_files_are_not_looked_at(store):
    snapshot = store.good_save(stream(("bash", b"x", OK)))
    with open(os.path.join(store.place, snapshot, "python.state"), "wb") as f:
        f.write(b"evil")
    os.mkfifo(os.path.join(store.place, snapshot, "more"))
    answer, output = store.load()
    assert answer["ok"] and output == stream(("bash", b"x", OK))


# ---- kill -9 ----

def check_after_kill(store, old, new):
    """What loads is the old one or the new one; True for the new one. A prune leaves nothing of the kill."""
    answer, output = store.load()
    assert answer["ok"] and answer["damaged"] == [], answer
    assert output in (old, new)
    assert store.prune(keep=1)["ok"] and store.leftovers() == [] and len(store.ids()) == 1
    assert store.load()[1] == output
    return output == new


def test_killed_in_the_stream(store, rng):
    """When it has read so many bytes."""
    old, new = a_stream("old", 100000), a_stream("new", 100000)
    store.good_save(old)
    left = 0
    for _ in range(KILLS // 2):
        p = store.start_save(keep=1)
        p.feed(new[:rng.randrange(len(new) - 1)])
        p.wait_taken()
        p.kill()
        assert p.end()[0] is None
        left += bool(store.leftovers())
        assert not check_after_kill(store, old, new)
    assert left > KILLS // 4


def test_killed_while_it_removes(store):
    """What is half removed is no damaged snapshot: it is out of sight before its first file goes."""
    old = store.good_save(a_stream("old"))
    for n in range(3000):
        os.close(os.open(os.path.join(store.place, old, f"more-{n}"), os.O_CREAT, 0o600))
    p = store.start_save(keep=1)
    p.feed(a_stream("new"))
    wait_for(lambda: f".old-{old}" in store.names() or len(os.listdir(os.path.join(store.place, old))) < 3000)
    p.kill()
    p.end()
    assert store.leftovers() == [f".old-{old}"] and store.list()["damaged"] == []
    assert store.load()[1] == a_stream("new")
    assert store.prune(keep=1)["ok"] and store.leftovers() == []


def test_next_save_tidies_up(store):
    """It may need the room, and a prune comes but now and then."""
    p = store.start_save()
    p.feed(a_stream("a")[:-1])
    p.wait_taken()
    p.kill()
    p.end()
    assert len(store.leftovers()) == 1
    store.good_save(a_stream("b"))
    assert store.leftovers() == []


def test_killed_at_its_end(store, rng):
    """Between the last byte and the answer, about the rename; how long that takes is measured before."""
    streams = [a_stream("old", 20000), a_stream("new", 20000)]

    def start(n):
        p = store.start_save(keep=1)
        p.feed(streams[n % 2][:-1])
        p.wait_taken()
        p.feed(streams[n % 2][-1:])
        return p

    times = []
    for n in range(6):
        p = start(n)
        begun = time.monotonic()
        assert p.end()[0]["ok"]
        times.append(time.monotonic() - begun)
    whole, newest, renamed = sorted(times)[3], 1, 0
    for n in range(KILLS):
        p = start(newest + 1)
        end = time.monotonic() + rng.uniform(0, whole)
        while time.monotonic() < end:
            pass                                    # a sleep is longer than the time between two system calls
        p.kill()
        p.end()
        if check_after_kill(store, streams[newest % 2], streams[(newest + 1) % 2]):
            newest += 1
            renamed += 1
    print(f"{renamed} of {KILLS} had been renamed")


# ---- a full disk ----

@pytest.fixture
def small_disk(folder):
    """A file system of 4 MB in a mount namespace of its own, which is gone with the process that holds it."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                               'mount -t tmpfs -o size=4m,mode=700 none "$0" && echo ready && exec cat', folder],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"ready\n"
        yield f"/proc/{holder.pid}/root{folder}"
    finally:
        holder.stdin.close()
        holder.wait(30)
        holder.stdout.close()


def test_full_disk(small_disk):
    store = Store(os.path.join(small_disk, "snapshots"))
    first = store.good_save(a_stream("a", 300000))
    before = fingerprint(store.root)
    for size in (5 << 20, 2 << 20, 900000):
        check_error(store.save(a_stream("b", size)), "no-space")
        assert fingerprint(store.root) == before
    assert store.load()[1] == a_stream("a", 300000)
    assert store.ids() == [first] and store.good_save(a_stream("c", 300000))


def test_no_room_at_all(small_disk):
    store = Store(os.path.join(small_disk, "snapshots"))
    store.good_save(a_stream("a"))
    rest = os.open(os.path.join(small_disk, "rest"), os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(rest, b"x" * 4096)
    os.close(rest)
    check_error(store.save(a_stream("b")), "no-space")
    assert store.load()[1] == a_stream("a") and store.close()["ok"] in (True, False)
    assert store.prune(keep=1)["ok"]

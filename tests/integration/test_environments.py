# SPDX-License-Identifier: MIT
"""Environments that are found in directories while the daemon runs: they come, go, are replaced, and are refused with a reason."""
import contextlib
import json
import os
import shutil
import subprocess

import pytest

from daemonlib import wait_for

ALICE = 4711


@pytest.fixture
def found(start, place):
    """A daemon that looks into one directory, and the directory."""
    directory = place.directory()
    return start({"environment_dirs": [directory]}), directory


def environments(d):
    return {e["name"]: e for e in d.call("Environments")["environments"]}


def broken(d):
    """Reasons by the names of entries."""
    return {os.path.basename(b["path"]): b["reason"] for b in d.call("Environments")["broken"]}


def runs(d, env):
    return d.run("echo ran", env=env)["stdout"] == "ran\n"


def memory(d, session):
    return d.show(session)["memory_mb"]


def is_missing(d, env):
    return d.refused("Run", code="true", environment=env).name == "NoSuchEnvironment"


def test_usable_in_the_next_call(found, place):
    d, directory = found
    assert is_missing(d, "tools")
    link = place.drop(directory, "tools", description="Own tools", memory_mb=300, timeout_seconds=7, disk_mb=20)
    assert runs(d, "tools")
    e = environments(d)["tools"]
    assert (e["description"], e["interpreters"], e["missing"]) == ("Own tools", ["bash"], [])
    assert (e["memory_mb"], e["timeout_seconds"], e["source"]) == (300, 7, link)
    assert e["root"].startswith(place.store)
    d.run("x=1", "a", "tools")
    assert d.show("a")["environment"] == "tools" and memory(d, "a") == 300
    assert d.show("a")["workspace_mb"] == 20
    assert d.refused("Run", code="true", environment="python", session="a", project=d.project).name == "NoSuchEnvironment"
    assert f"Environment 'tools' is there: {link}" in d.log()


def test_a_directory_that_comes_later(start, place):
    d = start({"environment_dirs": [os.path.join(place.root, "later")]})
    assert set(environments(d)) == {"python", "shell", "node", "default"} and not broken(d)
    place.drop(place.directory("later"), "tools")
    assert runs(d, "tools")
    shutil.rmtree(os.path.join(place.root, "later"))
    assert is_missing(d, "tools")


def shim(d, *calls):
    """The texts of the answers to tool calls."""
    p = subprocess.Popen([os.path.join(d.programs, "nix-sandbox-mcp"), "--socket", d.sock], cwd=d.root, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(rid, method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": rid, "method": method, "params": params}) + "\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())["result"]
    ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    for i, call in enumerate(calls):
        yield call() if callable(call) else ask(i + 1, "tools/call", name=call[0], arguments=call[1])["content"][0]["text"]
    p.stdin.close()
    assert p.wait(10) == 0


def test_through_the_shim(found, place):
    """In one connection, that began before there was such an environment."""
    d, directory = found
    run = ("run", {"code": "echo ran", "env": "tools"})
    before, _, text, after, _, gone = shim(d, run, lambda: place.drop(directory, "tools"), ("session", {"action": "environments"}),
                                           run, lambda: os.unlink(os.path.join(directory, "tools")), run)
    assert "There is no environment 'tools'" in before and "There is no environment 'tools'" in gone
    assert "tools" in text and after.startswith("ran\n")


def test_removal_leaves_living_sessions(found, place):
    d, directory = found
    link = place.drop(directory, "tools")
    d.run("x=1", "a", "tools")
    os.unlink(link)
    assert is_missing(d, "tools") and "tools" not in environments(d)
    shutil.rmtree(place.store)
    assert d.run("echo $x", "a", "tools")["stdout"] == "1\n"
    assert d.show("a")["environment"] == "tools"
    assert d.refused("Run", code="true", session="b", environment="tools").name == "NoSuchEnvironment"
    assert f"Environment 'tools' is gone: {link}" in d.log()
    d.call("Kill", session="a", project=d.project)


def test_replacement(found, place):
    d, directory = found
    place.drop(directory, "tools", memory_mb=300)
    d.run("x=1", "a", "tools")
    for size in (301, 302, 303, 304):
        place.make("tools", memory_mb=size)
        assert environments(d)["tools"]["memory_mb"] == size
    # Another one under the link.
    other = place.make("tools", path=os.path.join(place.store, "hash-2-artifact"), memory_mb=400)
    os.symlink(other, os.path.join(directory, ".new"))
    os.rename(os.path.join(directory, ".new"), os.path.join(directory, "tools"))
    d.run("x=2", "b", "tools")
    assert [memory(d, s) for s in ("a", "b")] == [300, 400]
    assert d.run("echo $x", "a")["stdout"] == "1\n"


def test_changes_within_a_tick_of_the_clock(start, place):
    """In place, of the same size, and as fast as can be: stamps alone would not tell."""
    directory = place.directory()
    d = start({"environment_dirs": [directory], "user_environment_dirs": []})
    path = place.make("tools", path=os.path.join(directory, "tools"), memory_mb=300)
    text = open(os.path.join(path, "environment.json"), "rb").read()
    with d.link() as link, open(os.path.join(path, "environment.json"), "r+b", buffering=0) as f:
        for size in range(301, 400):
            f.seek(0)
            f.write(text.replace(b"300", b"%d" % size))
            listed = {e["name"]: e for e in link.call("Environments")["environments"]}
            assert listed["tools"]["memory_mb"] == size


def test_nothing_is_read_where_nothing_has_changed(found, place):
    """After a while only stat(2) is called: what cannot be seen by it is not seen."""
    d, directory = found
    place.drop(directory, "tools")
    assert runs(d, "tools")

    def opened():
        trace = os.path.join(d.root, "trace")
        with subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=openat,open", "-o", trace, "-p", str(d.pid)],
                              stderr=subprocess.PIPE) as strace:
            wait_for(lambda: f"TracerPid:\t{strace.pid}" in open(f"/proc/{d.pid}/status", encoding="ascii").read())
            assert "tools" in environments(d)
            strace.terminate()
        with open(trace, encoding="utf-8", errors="replace") as f:
            return directory in f.read()
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    wait_for(lambda: not opened())


def test_restored_while_artifacts_change(start, place):
    """What a call has chosen stays while it is looked at, though each look may find others; freed memory is garbage here."""
    directory = place.directory()
    d = start({"environment_dirs": [directory], "session": {"idle_timeout_seconds": 1}}, env={"MALLOC_PERTURB_": "165"})
    link = place.drop(directory, "tools")
    assert d.run("x=1", "s", "tools")["exit_code"] == 0
    wait_for(lambda: not d.call("List")["sessions"])
    os.utime(os.path.realpath(link))
    os.utime(directory)
    reply = d.run("echo $x", "s", None)
    assert (reply["stdout"], reply["session_state"], reply["environment"]) == ("1\n", "restored", "tools")


def test_precedence(start, place):
    first, second = place.directory("first"), place.directory("second")
    d = start({"environment_dirs": [first, second], "environments": {"mine": {"interpreters": ["bash"], "memory_mb": 256}}})
    for directory, names in ((first, ("both", "mine", "shell")), (second, ("both", "two"))):
        for name in names:
            link = os.path.join(directory, name)
            place.make(name, path=link, description=directory, preset=name == "shell")
    e = environments(d)
    assert [e[n].get("source") for n in ("both", "two", "shell", "mine", "python")] == [
        f"{first}/both", f"{second}/two", f"{first}/shell", None, None]
    assert e["mine"]["memory_mb"] == 256
    reasons = {b["path"]: b["reason"] for b in d.call("Environments")["broken"]}
    assert reasons == {f"{first}/mine": "'mine' has the name of an environment of the configuration",
                       f"{second}/both": "'both' has the name of another artifact that comes before it"}
    shutil.rmtree(os.path.join(first, "both"))
    assert environments(d)["both"]["source"] == f"{second}/both"
    shutil.rmtree(os.path.join(first, "shell"))
    assert environments(d)["shell"].get("source") is None and runs(d, "shell")


def text_is(place, path, text):
    place.write(os.path.join(path, "environment.json"), text)


def file_is(name, how):
    """A hostile file in the place of one of an artifact."""
    def work(place, path):
        target = os.path.join(path, name)
        os.unlink(target)
        how(target)
    return work


HOSTILE = {
    "garbage": (lambda p, a: text_is(p, a, "{\n!"), "environment.json:2:1: not valid JSON"),
    "deep": (lambda p, a: text_is(p, a, "[" * 60000), "environment.json:1:33: not valid JSON"),
    "unknown-key": (lambda p, a: p.make("x", path=a, packages=[]), "environment.json: packages: unknown key; known: version,"),
    "bad-value": (lambda p, a: p.make("x", path=a, cpus=-1), "environment.json: cpus: must be from"),
    "no-name": (lambda p, a: p.make("x", path=a, name=None), "environment.json: needs \"name\""),
    "path-as-name": (lambda p, a: p.make("x", path=a, name="../../x"), "environment.json: name: a name has letters"),
    "version": (lambda p, a: p.make("x", path=a, version=2), "environment.json: version: must be 1"),
    "huge": (lambda p, a: os.truncate(a + "/environment.json", 1 << 40), "environment.json is larger than the 65536 bytes"),
    "huge-closure": (lambda p, a: os.truncate(a + "/store-paths", 1 << 40), "the file that \"closure\" names is larger than"),
    "fifo": (file_is("environment.json", os.mkfifo), "environment.json is not a regular file"),
    "fifo-closure": (file_is("store-paths", os.mkfifo), "the file that \"closure\" names is not a regular file"),
    "device": (file_is("environment.json", lambda t: os.symlink("/dev/zero", t)), "environment.json is not a regular file"),
    "loop": (file_is("environment.json", lambda t: os.symlink("environment.json", t)), "environment.json cannot be read: Too many levels"),
    "nothing": (file_is("environment.json", lambda t: None), "environment.json is not there"),
    "outside": (lambda p, a: p.write(a + "/store-paths", p.environment("x") + "\n/etc/passwd\n"),
                "environment.json: closure: line 2: '/etc/passwd': all paths lie in the store"),
    "twice": (lambda p, a: p.write(a + "/store-paths", 2 * (p.environment("x") + "\n")), "is there twice"),
    "other-root": (lambda p, a: p.make("x", path=a, root="/usr"), "environment.json: closure: the root is none of its paths"),
    "no-programs": (lambda p, a: os.rename(p.environment("x") + "/bin", p.environment("x") + "/away"), "environment.json: root: has none of its interpreters"),
    "not-utf8": (lambda p, a: open(a + "/environment.json", "wb").write(b"\xff"), "environment.json is not UTF-8"),
    "of-others": (lambda p, a: os.chown(a, ALICE, ALICE), f"it belongs to uid {ALICE}, and neither to root nor to uid"),
    "text-of-others": (lambda p, a: os.chown(a + "/environment.json", ALICE, 0), f"environment.json belongs to uid {ALICE}"),
    "list-of-others": (lambda p, a: os.chown(a + "/store-paths", ALICE, 0), f"\"closure\" names belongs to uid {ALICE}"),
    "written-by-all": (lambda p, a: os.chmod(a, 0o777), "it can be written by others than its owner (mode 0777)"),
    "written-by-group": (lambda p, a: os.chmod(a + "/environment.json", 0o664), "environment.json can be written by others"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_broken_is_skipped_with_its_reason(found, place, case):
    d, directory = found
    if "others" in case and os.geteuid() != 0:
        pytest.skip("not root")
    place.drop(directory, "good")
    path = place.make("x", path=os.path.join(directory, "x"))
    assert runs(d, "x")
    work, reason = HOSTILE[case]
    work(place, path)
    listed = broken(d)
    assert list(listed) == ["x"] and reason in listed["x"]
    assert is_missing(d, "x") and runs(d, "good")
    # Once, however often it is looked at.
    assert d.log().count(f"No environment is made of '{path}': {listed['x']}.") == 1
    done = d.ctl("envs")
    assert "PASSED OVER" in done.stdout and path in done.stdout and " ".join(listed["x"].split()) in done.stdout
    assert d.json("envs")[1]["broken"] == [{"path": path, "reason": listed["x"]}]
    doctor = {c["detail"]: c["verdict"] for c in d.call("Doctor")["checks"] if c["name"] == "environment artifact"}
    assert doctor == {f"{path}: {listed['x']}": "warning"}
    # And it is an environment again when it is put right.
    shutil.rmtree(path)
    with contextlib.suppress(FileNotFoundError):
        os.rename(place.environment("x") + "/away", place.environment("x") + "/bin")
    place.make("x", path=path)
    assert not broken(d) and runs(d, "x")


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_directories_of_others(found, place):
    d, directory = found
    place.drop(directory, "x")
    assert runs(d, "x")
    os.chown(directory, ALICE, ALICE)
    assert broken(d) == {"environments.d": f"it belongs to uid {ALICE}, and neither to root nor to uid 0"} and is_missing(d, "x")
    os.chown(directory, 0, 0)
    os.chmod(directory, 0o1777)
    assert "can be written by others" in broken(d)["environments.d"] and is_missing(d, "x")
    os.chmod(directory, 0o755)
    assert runs(d, "x")


def test_names_of_any_bytes(found, place):
    d, directory = found
    for name in (b"\xff\xfe", b"a\x1b[2Jb", b"new\nline"):
        os.mkdir(os.path.join(os.fsencode(directory), name))
    listed = broken(d)
    assert len(listed) == 3 and set(listed.values()) == {"environment.json is not there"}
    os.symlink(place.make("tools"), os.path.join(os.fsencode(directory), b"good\xff"))
    assert environments(d)["tools"]["source"] == f"{directory}/good\ufffd" and runs(d, "tools")
    done = d.ctl("envs")
    assert done.returncode == 0 and "\x1b" not in done.stdout and "\x1b" not in d.log()


def test_many_entries(found, place):
    d, directory = found
    for i in range(10000):
        os.symlink("nowhere", os.path.join(directory, f"e{i}"))
    listed = broken(d)
    assert len(listed) == 257 and listed["environments.d"] == "it has more than 256 entries: the rest is not looked at"
    assert runs(d, "shell")


def test_more_than_are_possible(found, place):
    d, directory = found
    for i in range(62):
        place.make(f"e{i:02}", path=os.path.join(directory, f"e{i:02}"))
    assert len(environments(d)) == 64
    assert broken(d) == {n: "it is one environment too many: 64 are possible" for n in ("e60", "e61")}
    assert runs(d, "e59") and is_missing(d, "e60")
    shutil.rmtree(os.path.join(directory, "e00"))
    assert runs(d, "e60")


def test_directory_that_vanishes_while_it_is_read(found, place):
    """And comes again, many times: what is listed is whole or not there, and the daemon goes on."""
    d, directory = found
    stop = os.path.join(d.root, "stop")
    worker = subprocess.Popen(["/bin/sh", "-c", """
        while [ ! -e "$2" ]; do mv "$1" "$1.away"; mv "$1.away" "$1"; rm -rf "$1/x"; cp -r "$3" "$1/x"; done
        """, "sh", directory, stop, place.make("x")])
    try:
        for _ in range(300):
            reply = d.call("Environments")
            assert {e["name"] for e in reply["environments"]} >= {"python", "shell", "node", "default"}
            for b in reply["broken"]:
                assert "not there" in b["reason"] or "not valid JSON" in b["reason"] or "empty" in b["reason"], b
    finally:
        place.write(stop, "")
        worker.wait(10)
    assert environments(d)["x"]["source"] == f"{directory}/x" and not broken(d)


def test_completion_and_check_config(found, place):
    d, directory = found
    place.drop(directory, "tools")
    text = d.ctl("--json", "envs").stdout
    assert "tools" in text
    done = subprocess.run([os.path.join(d.programs, "sandboxd"), "--check-config"], capture_output=True, text=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["environment_dirs"] == ["/etc/nix-sandbox/environments.d"]
    assert shown["user_environment_dirs"] == ["%h/.config/nix-sandbox/environments.d"]

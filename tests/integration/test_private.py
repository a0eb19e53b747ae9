# SPDX-License-Identifier: MIT
"""Daemons that clients start for themselves, daemons without privileges, and users who share one daemon."""
import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from daemonlib import (NOBODY, Link, alive, as_user, cgroups_named, descendants, public_directory, removed,
                       together, tree_name, wait_for)

SYSTEM_SOCKET = "/run/nix-sandbox/io.nixsandbox"
SOCKET_NAME = "io.nixsandbox"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
no_service = pytest.mark.skipif(os.path.exists(SYSTEM_SOCKET), reason="the system service would be used")


class Home:
    """A user without a daemon: an environment of his own, and the daemons that come to be in it."""

    def __init__(self, root, programs, uid=None):
        self.root, self.programs, self.uid = root, programs, uid
        self.runtime = os.path.join(root, "runtime")
        os.mkdir(self.runtime)
        if uid is not None:
            for path in (root, self.runtime):
                os.chown(path, uid, uid)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": root, "XDG_RUNTIME_DIR": self.runtime, "PROJECT_DIR": "/test"}
        self.directory = os.path.join(self.runtime, "nix-sandbox")

    @property
    def sock(self):
        return os.path.join(self.directory, SOCKET_NAME)

    def popen(self, program, *args, **more):
        return subprocess.Popen([os.path.join(self.programs, program), *args], env=self.env, cwd="/", user=self.uid,
                                group=self.uid, extra_groups=None if self.uid is None else [], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def ctl(self, *args, wait=40):
        p = self.popen("sandboxctl", *args)
        out, err = p.communicate(timeout=wait)
        return subprocess.CompletedProcess(args, p.returncode, out, err)

    def daemon(self):
        """The pid of the private daemon, from its lock; None when there is none."""
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self.directory, "run", "lock"), encoding="ascii") as f:
                pid = int(f.read())
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
                return pid if self.directory in f.read() else None
        return None

    def end(self):
        """Ends the daemon as a logout would; nothing may be left."""
        pid = self.daemon()
        if pid is None:
            return
        children = descendants(pid)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), 20)
        assert not [p for p, _ in children if alive(p)]
        assert not cgroups_named(tree_name(os.path.join(self.directory, "run")))
        assert not os.path.exists(self.sock)


@pytest.fixture
def home(programs):
    with removed(public_directory()) as root:
        h = Home(root, programs)
        try:
            yield h
        finally:
            h.end()


@pytest.fixture
def nobody(programs):
    with removed(public_directory()) as root:
        h = Home(root, programs, NOBODY)
        try:
            yield h
        finally:
            h.end()


# Started by a client

@no_service
def test_sandboxctl_starts_one(home):
    done = home.ctl("run", "-s", "a", "x = 1; print(x)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    pid = home.daemon()
    assert pid and home.ctl("run", "-s", "a", "print(x + 1)").stdout == "2\n"
    assert home.daemon() == pid
    assert os.stat(home.directory).st_mode & 0o777 == 0o700
    with Link(home.sock) as link:
        assert link.call("GetVersion")["mode"] == "private"
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        assert int(f.read().rpartition(")")[2].split()[1]) != os.getpid(), "it is nobody's child"


@no_service
def test_it_outlives_its_client_and_comes_again(home):
    home.ctl("run", "-s", "a", "1")
    first = home.daemon()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not alive(first))
    done = home.ctl("--json", "run", "-s", "a", "1")
    reply = json.loads(done.stdout)
    assert reply["session_state"] == "created" and "stopped or crashed" in reply["notice"]
    assert home.daemon() not in (None, first)


@no_service
def test_a_list_of_tools_starts_none(home):
    """Whoever only looks needs none; who comes while it is looked for gets one."""
    p = home.popen("nix-sandbox-mcp")
    answers = {}

    def answer(rid):
        while rid not in answers:
            line = p.stdout.readline()
            assert line, p.stderr.read()
            m = json.loads(line)
            answers[m.get("id")] = m["result"]
        return answers[rid]

    def ask(rid, method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": rid, "method": method, "params": params}) + "\n")
        p.stdin.flush()

    try:
        ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        ask(2, "tools/list")
        assert "but what an environment allows" in json.dumps(answer(2))
        assert home.daemon() is None and not os.path.exists(home.directory)
        ask(3, "tools/list")
        ask(4, "tools/call", name="run", arguments={"code": "print(6 * 7)", "env": "python"})
        assert "42" in json.dumps(answer(4)) and len(answer(3)["tools"]) == 2 and home.daemon()
        ask(5, "tools/list")
        assert "There is no network." in json.dumps(answer(5))
    finally:
        p.stdin.close()
        assert p.wait(10) == 0
        p.stdout.close()
        p.stderr.close()


@no_service
def test_shim_starts_one(home):
    p = home.popen("nix-sandbox-mcp")
    try:
        for message in ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                 "params": {"name": "run", "arguments": {"code": "print(6 * 7)", "env": "python"}}}):
            p.stdin.write(json.dumps(message) + "\n")
            p.stdin.flush()
        answers = {}
        while 2 not in answers:
            line = p.stdout.readline()
            assert line, p.stderr.read()
            m = json.loads(line)
            answers[m.get("id")] = m
        assert "42" in json.dumps(answers[2]["result"])
        assert home.daemon()
    finally:
        p.stdin.close()
        assert p.wait(10) == 0
        p.stdout.close()
        p.stderr.close()


@no_service
def test_many_at_the_same_moment_share_one(home):
    done = together(*[lambda i=i: home.ctl("--json", "run", "-s", f"s{i}", "-e", "shell", "echo x") for i in range(6)])
    for d in done:
        assert d.returncode == 0 and json.loads(d.stdout)["stdout"] == "x\n", d
    assert len(json.loads(home.ctl("--json", "list").stdout)["sessions"]) == 6
    with open(os.path.join(home.directory, "log"), encoding="utf-8") as f:
        assert f.read().count(" serves ") == 1


@no_service
def test_stopping_and_starting_at_the_same_moment(home):
    """A client that comes while the daemon goes gets one that works."""
    for _ in range(5):
        home.ctl("run", "-s", "a", "-e", "shell", "sleep 600 &")
        os.kill(home.daemon(), signal.SIGTERM)
        done = home.ctl("run", "-e", "shell", "echo on")
        assert done.stdout == "on\n" or "again" in done.stderr, done.stderr


@no_service
def test_explicit_socket_starts_none(home):
    for options, env in ((["--socket", home.root + "/none"], {}), ([], {"NIX_SANDBOX_SOCKET": home.root + "/none"})):
        home.env.update(env)
        done = home.ctl(*options, "run", "1")
        assert done.returncode == 1 and home.root + "/none" in done.stderr
        assert os.listdir(home.runtime) == []


@no_service
@needs_root
def test_without_a_runtime_directory(nobody):
    """A directory in /tmp then, which must be the user's own."""
    del nobody.env["XDG_RUNTIME_DIR"]
    nobody.directory = f"/tmp/nix-sandbox-{NOBODY}"
    if os.path.exists(nobody.directory) or os.path.isdir(f"/run/user/{NOBODY}") or not os.stat("/tmp").st_mode & 1:
        pytest.skip("the place is taken, or not for all")
    try:
        assert nobody.ctl("run", "print(1)").stdout == "1\n"
        assert os.stat(nobody.directory).st_uid == NOBODY and os.stat(nobody.directory).st_mode & 0o777 == 0o700
        nobody.end()
        shutil.rmtree(nobody.directory)
        os.mkdir(nobody.directory)  # somebody else's now
        done = nobody.ctl("run", "print(1)")
        assert done.returncode == 1 and "XDG_RUNTIME_DIR" in done.stderr
    finally:
        nobody.end()
        shutil.rmtree(nobody.directory, ignore_errors=True)


# Without privileges

@no_service
@needs_root
def test_unprivileged(nobody):
    done = nobody.ctl("run", "-s", "a", "import os; x = 1; print(os.getuid())")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.strip().isdigit()
    assert nobody.ctl("run", "-s", "a", "print(x)").stdout == "1\n"
    assert nobody.ctl("run", "-s", "a", "-e", "shell", "echo $((1+1))").stdout == "2\n"
    checks = {c["name"]: c for c in json.loads(nobody.ctl("--json", "doctor").stdout)["checks"]}
    assert checks["users"]["detail"] == f"this daemon serves uid {NOBODY} only"
    shown = json.loads(nobody.ctl("--json", "show", "a").stdout)["session"]
    assert shown["uid"] == NOBODY
    if shown["cgroup"] is None:
        assert checks["cgroups"]["verdict"] == "warning" and checks["cgroups"]["fix"]
        done = nobody.ctl("freeze", "a")
        assert done.returncode == 1 and "sandboxctl doctor" in done.stderr
    assert nobody.ctl("kill", "a").returncode == 0


@no_service
@needs_root
def test_limits_without_cgroups(nobody):
    shown = json.loads(nobody.ctl("--json", "run", "-s", "a", "--memory", "64", "-e", "python",
                                  "try:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    print('bounded')").stdout)
    assert shown["stdout"] == "bounded\n" or "Memory limit" in shown["notice"]


@no_service
@needs_root
def test_unprivileged_daemon_ends_its_sessions(nobody):
    nobody.ctl("run", "-s", "a", "-e", "shell", "sleep 600 & setsid sleep 600 &")
    children = descendants(nobody.daemon())
    assert len(children) >= 4
    nobody.end()
    assert not [p for p, _ in children if alive(p)]


@needs_root
def test_unprivileged_daemon_serves_its_own_user_only(start):
    d = start(uid=NOBODY)
    error = d.refused("Run", code="true")
    assert error.name == "StartFailed" and "serves its own user only" in error.message
    assert as_user(NOBODY, f"print(json.dumps(Client({d.sock!r}).run('echo x')['stdout']))") == "x\n"


# Several users

@needs_root
def test_users_do_not_see_each_other(daemon, name):
    """A session of somebody else is like one that is not there."""
    sid = daemon.run("true", name)["id"]
    code = f"""
c = Client({daemon.sock!r})
out = {{}}
for method in ("Show", "Kill", "Wait", "Interrupt", "Freeze", "Thaw", "History"):
    for session in ({name!r}, {sid!r}, "missing"):
        e = c.refused(method, session=session)
        out[method + " " + session] = [e.name, e.message.replace(session, "X"), sorted(e.parameters)]
out["list"] = c.call("List")["sessions"]
e = c.refused("List", all=True)
out["all"] = [e.name, e.message]
out["events"] = c.call("Events")["events"]
out["run"] = c.call("Run", code="echo mine", session={name!r}, environment="shell", project="/test")
out["own"] = len(c.call("List")["sessions"])
print(json.dumps(out))
"""
    out = as_user(NOBODY, code)
    for method in ("Show", "Kill", "Wait", "Interrupt", "Freeze", "Thaw", "History"):
        missing = out[f"{method} missing"]
        assert missing[0] == "NoSuchSession"
        assert out[f"{method} {name}"] == out[f"{method} {sid}"] == missing
    assert out["list"] == [] and out["own"] == 1
    # What it was refused is its own event, and says nothing of whose sessions there are.
    assert [(e["event"], e["uid"], e["session"]) for e in out["events"]] == [("access_denied", NOBODY, "")]
    assert out["all"][0] == "PermissionDenied" and "Only root" in out["all"][1]
    assert out["run"]["session_state"] == "created" and out["run"]["id"] != sid

    assert daemon.run("true", name)["id"] == sid
    theirs = out["run"]["id"]
    assert theirs not in [s["id"] for s in daemon.call("List")["sessions"]]
    listed = {s["id"]: s for s in daemon.call("List", all=True)["sessions"]}
    assert listed[theirs]["uid"] == NOBODY and listed[sid]["uid"] == os.getuid()
    assert daemon.call("Show", session=theirs)["session"]["name"] == name
    assert "nobody" in daemon.ctl("list", "-a").stdout
    assert daemon.call("Kill", session=theirs) == {"id": theirs}


@needs_root
def test_ended_sessions_of_others_are_unknown_too(daemon, name):
    sid = daemon.run("true", name)["id"]
    daemon.call("Kill", session=name)
    assert daemon.refused("Show", session=sid).name == "SessionEnded"
    code = f"print(json.dumps(Client({daemon.sock!r}).refused('Show', session={sid!r}).name))"
    assert as_user(NOBODY, code) == "NoSuchSession"


@needs_root
def test_events_of_others_are_not_followed(daemon):
    with daemon.link() as root_link:
        code = f"""
c = Client({daemon.sock!r})
with c.link() as link:
    link.send("Events", _more=True, follow=True)
    link.receive()
    print("ready", file=sys.stderr, flush=True)
    Client({daemon.sock!r}).run("true", "own")
    seen = []
    while not seen or seen[-1][0] != "sandbox_started":
        seen += [[e["event"], e["uid"]] for e in link.receive()["parameters"]["events"]]
print(json.dumps(seen))
"""
        daemon.begin("for i in 1 2 3; do sleep 0.1; done", link=root_link)
        seen = as_user(NOBODY, code)
        root_link.answer()
    assert seen == [["session_created", NOBODY], ["sandbox_started", NOBODY]]


@needs_root
def test_jails_run_as_their_callers(daemon, name):
    daemon.run("sleep 600 &", name)
    out = as_user(NOBODY, f"print(json.dumps(Client({daemon.sock!r}).run('sleep 600 & ', {name!r})['id']))")
    listed = {s["id"]: s for s in daemon.call("List", all=True)["sessions"]}
    if not listed[out]["cgroup"]:
        pytest.skip("no cgroup to find the processes by")
    for sid in (out, daemon.show(name)["id"]):
        with open(listed[sid]["cgroup"] + "/cgroup.procs", encoding="ascii") as f:
            uids = {os.stat(f"/proc/{int(line)}").st_uid for line in f}
        # Of the agent, which is not dumpable, /proc belongs to root; ask the kernel for the rest.
        assert NOBODY in uids
    for sid in (out, daemon.show(name)["id"]):
        with open(listed[sid]["cgroup"] + "/cgroup.procs", encoding="ascii") as f:
            for line in f:
                with open(f"/proc/{int(line)}/status", encoding="ascii", errors="replace") as status:
                    words = next(s for s in status if s.startswith("Uid:")).split()[1:]
                assert "0" not in words, "nothing in a jail is root"


@needs_root
def test_caps_are_for_each_user(start):
    d = start({"user": {"max_sessions": 1, "max_connections": 3}})
    d.run("true", "a")
    links = [d.link() for _ in range(2)]
    for link in links:
        link.call("GetVersion")
    assert as_user(NOBODY, f"print(json.dumps(Client({d.sock!r}).run('echo x', 'a')['stdout']))") == "x\n"
    for link in links:
        link.close()

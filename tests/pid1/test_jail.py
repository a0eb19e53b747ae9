# SPDX-License-Identifier: MIT
"""Sessions of the service: what the unit's settings leave of a jail, whose it is, and how it ends."""
import json
import os
import pwd

import pytest

from pid1lib import ALICE, BEFORE_254, BOB, SLICE, SOCKET, alive, as_user, processes_in, status_of, systemctl, together, wait_for

STATUS = "import os, resource, json; s = dict(l.split(':', 1) for l in open('/proc/self/status')); "


def seen_inside(service, text):
    """An expression's value, in a session's python."""
    return json.loads(service.run(f"{STATUS}print(json.dumps({text}))", "look", env="python")["stdout"])


def inside(service, name):
    """The processes of a session."""
    return processes_in(service.show(name)["cgroup"])


def test_privileges(service):
    """The daemon's capabilities, signal state and limits stay outside."""
    status = {k: v.strip() for k, v in seen_inside(service, "s").items()}
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigBlk", "SigIgn"):
        expected = 0x1001000 if kind == "SigIgn" else 0         # what python itself ignores: PIPE, XFSZ
        assert int(status[kind], 16) == expected, kind
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and status["Umask"] == "0022"
    assert status["Uid"].split() == ["1000"] * 4 and status["Groups"].split() in ([], ["1000"])


def test_what_a_shell_inherits(service):
    """Of the one that ignores nothing by itself."""
    reply = service.run("grep -E '^Sig(Blk|Ign)' /proc/self/status; umask; ulimit -Sn; ls /proc/self/fd | wc -l; "
                        "grep ^0: /proc/self/cgroup", "look")
    lines = reply["stdout"].split("\n")
    assert [int(line.split()[1], 16) for line in lines[:2]] == [0, 0]
    assert lines[2:6] == ["0022", "1024", "4", "0::/"], "4: 0, 1, 2 and the directory itself"


def test_oom_killer_takes_interpreters_first(service):
    """The agent as any process, whatever the daemon has; see agent/launch.c for 500."""
    service.drop_in("[Service]\nOOMScoreAdjust=300\n")
    reply = service.run("cat /proc/1/oom_score_adj /proc/self/oom_score_adj", "look")
    assert reply["stdout"] == "0\n500\n"


def test_environment(service):
    """Nothing that systemd tells the service."""
    env = seen_inside(service, "dict(os.environ)")
    assert not [k for k in env if k.startswith(("NOTIFY", "WATCHDOG", "LISTEN", "INVOCATION", "JOURNAL", "SYSTEMD", "MAINPID"))]
    assert not {"RUNTIME_DIRECTORY", "STATE_DIRECTORY"} & set(env)


def test_project(service):
    """Users' own as they reach it; root's only where the jails' user can get at it, since the daemon may not mount."""
    code = f"""
def project(path):
    try:
        return Client({SOCKET!r}).call("Run", code="ls /project", environment="shell", project=path, project_mode="read-only")["stdout"]
    except VarlinkError as e:
        return e.message
import tempfile
with tempfile.TemporaryDirectory(dir="/tmp") as mine:
    open(mine + "/hello", "w").close()
    print(json.dumps([project(mine), project("/root")]))
"""
    mine, other = as_user(ALICE, code)
    assert mine == "hello\n" and f"permission denied for uid {ALICE}" in other
    assert "bin\n" in service.call("Run", code="ls /project", environment="shell", project="/usr", project_mode="read-only")["stdout"]


@pytest.mark.parametrize("env, code, output", [
    ("python", "import mmap; mmap.mmap(-1, 4096, prot=7).close(); print(6 * 7)", "42\n"),
    ("node", "console.log(6 * 7)", "42\n"),
    ("shell", "echo $((6 * 7)) | tee /workspace/a", "42\n")])
def test_interpreters(service, env, code, output):
    """node needs memory that is writable and executable."""
    assert service.run(code, env=env)["stdout"] == output


def test_sessions_are_their_callers(service):
    """Each runs as its user, none as root, and no user sees another's."""
    code = f"c = Client({SOCKET!r})\nprint(json.dumps([c.run('id -u', 'mine')['stdout'], len(c.call('List')['sessions'])]))"
    service.run("true", "roots")
    assert together(lambda: as_user(ALICE, code), lambda: as_user(BOB, code)) == [["1000\n", 1]] * 2
    owners = {int(status_of(pid)["Uid"].split()[0]) for pid in processes_in(SLICE)}
    assert owners == {ALICE, BOB, pwd.getpwnam("nix-sandbox").pw_uid, pwd.getpwnam("nix-sandbox-jail").pw_uid}


def test_freeze_and_thaw(service):
    service.run("x=41; (while :; do :; done) &", "a")
    group = service.show("a")["cgroup"]

    def frozen():
        with open(os.path.join(group, "cgroup.events"), encoding="ascii") as f:
            return "frozen 1" in f.read()
    service.call("Freeze", session="a")
    wait_for(frozen)
    service.call("Thaw", session="a")
    wait_for(lambda: not frozen())
    assert service.run("echo $((x + 1))", "a")["stdout"] == "42\n"


@pytest.mark.parametrize("frozen", [False, True])
def test_kill(service, frozen):
    """cgroup.kill does what kill(2) may not: the processes are another user's."""
    service.run("sleep 600 & setsid sleep 600 & (trap '' TERM HUP; sleep 600) &", "a")
    group, pids = service.show("a")["cgroup"], inside(service, "a")
    assert len(pids) >= 6 and group.startswith(service.sessions + "/")
    if frozen:
        service.call("Freeze", session="a")
    service.call("Kill", session="a")
    assert not [p for p in pids if alive(p)] and not os.path.exists(group)


def test_two_hundred_come_and_go(service):
    """Nothing is listed, running or grouped afterwards; the daemon has no more descriptors than before."""
    service.run("true")
    before = len(os.listdir(f"/proc/{service.pid}/fd"))

    def some(first):
        for i in range(first, 200, 4):
            with service.link() as link:
                link.call("Run", code="sleep 600 & sleep 600 &", session=f"s{i}", environment="shell", project=service.project)
                link.call("Kill", session=f"s{i}")
    together(*(lambda n=n: some(n) for n in range(4)))
    assert service.call("List")["sessions"] == []
    assert len(processes_in(SLICE)) == 1 + BEFORE_254
    assert not [d for d, _, _ in os.walk(SLICE) if "/u0" in d]
    wait_for(lambda: len(os.listdir(f"/proc/{service.pid}/fd")) <= before)


def test_jails_do_not_outlive_a_stop(service):
    service.run("sleep 600 &", "a")
    pids = inside(service, "a")
    systemctl("stop", "sandboxd.service")
    assert not [p for p in pids if alive(p)]
    wait_for(lambda: not service.leftovers())
    assert service.unit("Result") == "success" and service.unit("ExecMainStatus") == "0"


def test_the_socket_takes_the_service_along(service):
    """Which is how the package is removed."""
    service.run("sleep 600 &", "a")
    pids = inside(service, "a")
    systemctl("stop", "sandboxd.socket")
    assert service.active() == "inactive" and not [p for p in pids if alive(p)]
    wait_for(lambda: not service.leftovers())


def test_restart_ends_sessions_and_restores_them(service):
    first = service.pid_of_running()
    service.run("x=1; sleep 600 &", "a")
    pids = inside(service, "a")
    systemctl("restart", "sandboxd.service")
    assert not [p for p in pids if alive(p)]
    reply = service.run("echo ${x-none}", "a")
    assert reply["stdout"] == "1\n" and reply["session_state"] == "restored" and "has ended" in reply["notice"]
    assert service.pid != first


def test_others_sessions_without_polkitd(service):
    """One's own and, for root, everybody's; for others a session that is not theirs is one that is not there."""
    def kill(target):
        return f"print(json.dumps(Client({SOCKET!r}).refused('Kill', session={target!r}).args))"
    sid = as_user(BOB, f"print(json.dumps(Client({SOCKET!r}).run('true', 'his')['id']))")
    name, parameters = as_user(ALICE, kill(sid))
    other = "0" * len(sid)
    assert json.dumps([name, parameters]).replace(sid, other) == json.dumps(as_user(ALICE, kill(other)))
    assert service.call("Kill", session=sid) == {"id": sid}

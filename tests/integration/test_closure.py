# SPDX-License-Identifier: MIT
"""Environments with a closure: jails that see paths of one store and nothing of the host's."""
import os
import shutil

import pytest
from closurelib import Closure
from daemonlib import NOBODY, Daemon, Link, VarlinkError, descendants, public_directory, removed, wait_for
from test_reload import configure, hangup

ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def closure():
    with Closure() as c:
        yield c


@pytest.fixture(scope="module")
def daemon(closure, programs):
    """Of environments with a closure, too: a whole one, and one that has no shell."""
    closure.add("unlisted", listed=False)
    with Daemon(closure.config(defaults={"project": "read-write"}), programs=programs) as d:
        yield d


def run(daemon, code, interpreter="bash", **more):
    reply = daemon.run(code, env="closed", interpreter=interpreter, **more)
    assert not reply["timed_out"] and reply["signal"] is None and reply["exit_code"] in (None, 0), reply
    return reply


def test_interpreters_and_state(daemon, closure, name):
    versions = {"bash": "x=1; echo $BASH_VERSION", "python": "y = 2; import ssl, sqlite3, sys; print(sys.prefix)",
                "node": "z = 3; console.log(process.execPath)"}
    for interpreter, code in versions.items():
        reply = run(daemon, code, interpreter, session=name)
        assert reply["environment"] == "closed" and reply["interpreter"] == interpreter
        assert interpreter == "bash" or reply["stdout"].startswith(closure.store), "it is not the host's"
    assert run(daemon, "echo $x", session=name)["stdout"] == "1\n"
    assert run(daemon, "print(y)", "python", session=name)["stdout"] == "2\n"
    assert run(daemon, "console.log(z)", "node", session=name)["stdout"] == "3\n"


def test_the_store_is_the_closure(daemon, closure):
    there = run(daemon, f"ls -a {closure.store}")["stdout"].split()
    assert sorted(there) == sorted([".", "..", *map(os.path.basename, closure.paths())])
    assert os.listdir(closure.store) != there, "one is not listed"


def test_nothing_of_the_host(daemon):
    look = """
        for d in / /usr /usr/bin /bin /etc /var; do echo $d: $(ls $d); done
        for p in /home /root /run /lib /lib64 /sbin /sys /nix /opt /usr/lib /etc/alternatives /etc/ld.so.cache; do
                [ -e $p ] && echo there is $p
        done
        exec 3</proc/self/mountinfo
        while read -r _ _ _ root where _; do echo mount $where; done <&3"""
    lines = run(daemon, look)["stdout"].splitlines()
    assert "/: bin dev etc proc tmp usr var workspace" in lines
    assert {"/usr: bin", "/usr/bin: env", "/bin: bash sh", "/etc: group hosts passwd", "/var: tmp"} <= set(lines)
    assert not [line for line in lines if line.startswith("there is")]
    where = {line.split()[1] for line in lines if line.startswith("mount ")}
    assert not [w for w in where if w.startswith(("/usr", "/etc", "/home", "/run", "/sys"))], where


def test_scripts(daemon):
    scripts = r"""
        printf '#!/bin/sh\necho by sh\n' >a; printf '#!/usr/bin/env bash\necho by env $BASH\n' >b
        printf '#!/usr/bin/env python3\nimport os; os.system("echo from system")\n' >c; chmod +x a b c; ./a; ./b; ./c"""
    out = run(daemon, scripts)["stdout"].splitlines()
    assert out[0] == "by sh" and out[1].startswith("by env /") and out[2] == "from system"


def test_variables(daemon, closure):
    assert run(daemon, "echo $PATH $SHELL $HOME")["stdout"] == f"{closure.root}/bin /bin/bash /workspace\n"


def test_read_only(daemon, closure):
    path = closure.paths()[0]
    code = f"""
        for d in {path} {path}/bin {closure.store} /bin /; do : >$d/new && echo wrote $d; done
        for f in {path}/bin/bash; do : >>$f && echo appended $f; done
        rm -rf {path} && echo removed
        exec 3</proc/self/mountinfo
        while read -r _ _ _ _ where options _; do
                [[ $where == {closure.store}* ]] && [[ $options != ro,nosuid,nodev* ]] && echo mount $where $options
        done <&3; true"""
    assert run(daemon, code)["stdout"] == ""
    assert os.path.exists(f"{path}/bin/bash")


def test_privileges(daemon):
    """The agent gives up what bubblewrap gives up elsewhere."""
    look = "import re; print(re.findall('^(?:Cap.*|NoNewPrivs|Seccomp.*):.*', open('/proc/self/status').read(), re.M))"
    closed, hosts = run(daemon, look, "python")["stdout"], daemon.run(look, env="python")["stdout"]
    assert closed == hosts and "'CapBnd:\\t0000000000000000'" in closed and "'Seccomp:\\t2'" in closed


def test_the_store_stays_covered(daemon, closure):
    """All of it is below; nobody in the jail may take the cover off, nor make namespaces in which he may."""
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
errors = []
def tried(result):
    errors.append(os.strerror(ctypes.get_errno()) if result < 0 else "done")
for flags in (0, 2, 8):                                         # MNT_DETACH, UMOUNT_NOFOLLOW
    tried(libc.umount2(b"{closure.store}", flags))
tried(libc.unshare(0x10000000 | 0x00020000))                    # CLONE_NEWUSER | CLONE_NEWNS
tried(libc.mount(b"{closure.store}", b"/tmp", None, 4096, None))        # MS_BIND
tried(libc.syscall(428, -100, b"{closure.store}", 1))           # open_tree, OPEN_TREE_CLONE
print(set(errors))
print("unlisted" in str(os.listdir("{closure.store}")), os.path.exists("{closure.store}/{'0' * 32}-unlisted"))
print(os.path.exists("{closure.paths()[0]}/../{'0' * 32}-unlisted"))"""
    assert run(daemon, code, "python")["stdout"] == "{'Operation not permitted'}\nFalse False\nFalse\n"
    assert os.path.exists(f"{closure.store}/{'0' * 32}-unlisted")


def test_links_and_files_in_the_store(start):
    with Closure(("bash", "coreutils")) as own:
        links_and_files(start, own)


def links_and_files(start, closure):
    target = closure.add("target")
    closure.add("link", target)
    plain = os.path.join(closure.store, "1" * 32 + "-plain")
    with open(plain, "w", encoding="utf-8") as f:
        f.write("plain")
    with open(closure.list, "a", encoding="utf-8") as f:
        f.write(plain + "\n")
    d = start(closure.config())
    code = f"cat {closure.store}/*-link/file {plain}; : >>{plain} || echo refused"
    assert run(d, code)["stdout"] == "targetplainrefused\n"


def test_limits(daemon):
    reply = daemon.run("x = bytearray(400 << 20)", env="closed", interpreter="python", memory_mb=128)
    assert "memory" in reply["notice"], reply
    assert daemon.run("while :; do :; done", env="closed", interpreter="bash", timeout_ms=300)["timed_out"]
    assert "Read-only" in daemon.run("echo x >/x", env="closed", interpreter="bash")["stderr"]


def test_presets_are_the_hosts(daemon):
    """The other environments stay what they are, in the same daemon."""
    assert daemon.run("ls /usr/bin/env /etc/alternatives >/dev/null && echo $PATH")["stdout"] == "/usr/local/bin:/usr/bin:/bin\n"


@pytest.mark.parametrize("mode", ["read-only", "read-write"])
def test_project(daemon, mode):
    with removed(public_directory()) as project:
        os.mkdir(os.path.join(project, "sub"))
        os.chmod(project, 0o777)
        reply = daemon.call("Run", code="ls /project; touch /project/new && echo wrote; ls /sys", environment="closed",
                            interpreter="bash", project=project, project_mode=mode)
        assert reply["stdout"].startswith("sub\n")
        assert ("wrote" in reply["stdout"]) == (mode == "read-write") == os.path.exists(os.path.join(project, "new"))
        assert "/sys" in reply["stderr"], "it is not there"


@ROOT_ONLY
def test_project_that_only_root_reaches(daemon):
    with removed(public_directory()) as directory:
        project = os.path.join(directory, "project")
        os.mkdir(project)
        with open(os.path.join(project, "file"), "w", encoding="utf-8") as f:
            f.write("of root\n")
        os.chmod(directory, 0o700)
        reply = daemon.call("Run", code="cat /project/file; touch /project/new", environment="closed", interpreter="bash",
                            project=project, project_mode="read-only")
        assert reply["stdout"] == "of root\n" and "Read-only" in reply["stderr"]


def run_as(d, uid, code, **more):
    os.setgroups([])
    os.seteuid(uid)
    try:
        link = Link(d.sock)
    finally:
        os.seteuid(0)
    with link:
        return link.call("Run", code=code, project="/", environment="closed", interpreter="bash", **more)


@ROOT_ONLY
def test_as_the_caller(daemon, name):
    before = descendants(daemon.pid)
    run_as(daemon, 4711, "sleep 600 & echo", session=name)
    uids = {os.stat(f"/proc/{pid}").st_uid for pid, _ in descendants(daemon.pid) - before}
    assert uids == {4711}
    with daemon.link() as link:
        link.call("Kill", session=next(s["id"] for s in link.call("List", all=True)["sessions"] if s["name"] == name),
                  any_user=True)


@ROOT_ONLY
def test_private_daemon_of_a_user(programs, closure):
    """Without any right over others."""
    with Daemon(closure.config(), programs=programs, uid=NOBODY) as d:
        assert run_as(d, NOBODY, "echo $((6 * 7))")["stdout"] == "42\n"


@ROOT_ONLY
@pytest.mark.parametrize("allowed, complaint", [
    (0, "bwrap: Creating new namespace failed"),
    (2, "sandbox-agent: Cannot make a user namespace: No space left on device"),        # bubblewrap takes two
])
def test_no_namespaces(programs, closure, allowed, complaint):
    """A machine that forbids them, in a user namespace of the daemon's own."""
    forbid = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--keep-caps", "sh", "-c",
              f'echo {allowed} >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"', "sh")
    with Daemon(closure.config(), programs=programs, uid=NOBODY, wrapper=forbid) as d:
        with pytest.raises(VarlinkError) as e:
            run_as(d, NOBODY, "echo no")
    assert complaint in e.value.message and "sysctl user.max_user_namespaces" in e.value.message


def test_saved_and_restored(start, closure, name):
    d = start(closure.config())
    for interpreter, code in (("python", "def f():\n    return 41\nx = [1]"), ("bash", "y=(a b); g() { echo g; }; echo w >w"),
                              ("node", "var z = new Map([[1, 2]])")):
        run(d, code, interpreter, session=name)
    assert d.call("Save", session=name, project=d.project)["skipped"] == []
    d.call("Kill", session=name, project=d.project)
    d.call("Restore", session=name, name=name, project=d.project)
    assert run(d, "print(f() + x[0])", "python", session=name)["stdout"] == "42\n"
    assert run(d, "echo ${y[1]} $(g) $(cat w)", session=name)["stdout"] == "b g w\n"
    assert run(d, "console.log(z.get(1))", "node", session=name)["stdout"] == "2\n"


def test_checkpoints(start, closure, name):
    d = start(closure.config(session={"checkpoints": "always"}))
    run(d, "kept = 7", "python", session=name)
    crash = d.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", session=name, env="closed", interpreter="python")
    assert crash["state"] == "rolled_back", crash
    assert run(d, "print(kept)", "python", session=name)["stdout"] == "7\n"
    run(d, "shell=8", session=name)
    d.run("kill -9 $$", session=name, env="closed", interpreter="bash")
    assert run(d, "echo $shell", session=name)["stdout"] == "8\n"


def broken(start, closure, change):
    """The message of a session that cannot start, after change(path) of a path that is in the list."""
    with Closure(("bash",)) as own:
        path = own.add("gone")
        d = start(own.config())
        assert run(d, "echo fine")["stdout"] == "fine\n"
        change(path)
        e = d.refused("Run", code="echo no", environment="closed", interpreter="bash", project="/")
        assert e.name == "StartFailed"
        wait_for(lambda: not d.call("List")["sessions"])
        return e.message, path


def test_missing_path(start, closure):
    message, path = broken(start, closure, shutil.rmtree)
    assert f"Cannot show the store path {path}: No such file or directory" in message
    assert "build the environment again" in message


def test_special_file(start, closure):
    def pipe(path):
        shutil.rmtree(path)
        os.mkfifo(path)
    message, path = broken(start, closure, pipe)
    assert f"Cannot show the store path {path}: " in message


def test_listed(daemon):
    """What is installed is what the root has."""
    envs = {e["name"]: e for e in daemon.call("Environments")["environments"]}
    assert envs["closed"]["interpreters"] == ["python", "bash", "node"] and envs["closed"]["missing"] == []


def test_not_all_there(start, programs):
    with Closure(("bash",)) as own:
        d = start(own.config())
        envs = {e["name"]: e for e in d.call("Environments")["environments"]}
        assert envs["closed"]["missing"] == ["python", "node"], "those of the host do not count"
        e = d.refused("Run", code="1", environment="closed", interpreter="python", project="/")
        assert e.name == "NoSuchInterpreter" and "'python3' is not in the root of environment 'closed'" in e.message


def test_bad_list(programs, closure):
    with Closure(("bash",)) as own:
        with open(own.list, "a", encoding="utf-8") as f:
            f.write("/etc/passwd\n")
        d = Daemon(own.config(), programs=programs)
        with removed(d.root):
            d.spawn()
            assert d.process.wait(20) != 0
            assert f"environments.closed.closure: {own.list}: line 3: '/etc/passwd': all paths lie in the store" in d.log()


# ---- across daemons ----

@pytest.mark.parametrize("change", ["same", "other-root", "gone"])
def test_reload(start, closure, name, change):
    """A session goes on as it was, whatever its environment's name stands for by then."""
    d = start(closure.config())
    run(d, "x=5", session=name)
    with Closure(("bash",)) as other:
        config = {"same": closure.config(), "other-root": other.config(), "gone": {}}[change]
        configure(d, config)
        hangup(d)
        assert run(d, "echo $x $PATH", session=name)["stdout"] == f"5 {closure.root}/bin\n"
        assert run(d, "print(6)", "python", session=name)["stdout"] == "6\n"
        assert d.show(name)["environment"] == "closed"
        if change == "other-root":
            assert run(d, "echo $PATH", session=name + "-new")["stdout"] == f"{other.root}/bin\n"
        if change == "gone":
            e = d.refused("Run", code="1", environment="closed", project="/test")
            assert e.name == "NoSuchEnvironment"

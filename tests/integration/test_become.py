# SPDX-License-Identifier: MIT
"""sandbox-become: what it does for the daemon, for nobody else, and that nobody stops the daemon by its children."""
import contextlib
import json
import os
import re
import stat
import struct
import subprocess

import pytest

from daemonlib import BUILD, Link, VarlinkError, alive, copy_programs, parent_of, removed, wait_for

PROGRAM = os.path.join(BUILD, "sandbox-become")
ALICE, BOB, SERVICE = 64101, 64102, 64103
SETUID = 1 << 7
STATUS = "/bin/cat", "cat", "/proc/self/status"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")


def become(*arguments, **more):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20, check=False, **more)


def fields(status):
    return {k: v.strip() for k, v in (line.split(":", 1) for line in status.splitlines())}


def nothing_is_left(status, uid, gid):
    assert status["Uid"].split() == [str(uid)] * 4 and status["Gid"].split() == [str(gid)] * 4, status
    assert status["Groups"].split() in ([], [str(gid)]), status
    assert all(int(status[kind], 16) == 0 for kind in ("CapPrm", "CapEff", "CapAmb")), status


# by itself

def test_not_set_user_id():
    assert not os.stat(PROGRAM).st_mode & (stat.S_ISUID | stat.S_ISGID)
    with contextlib.suppress(OSError):
        assert "security.capability" not in os.listxattr(PROGRAM)


def test_static():
    done = subprocess.run(["readelf", "--program-headers", PROGRAM], capture_output=True, text=True, check=True)
    assert "INTERP" not in done.stdout


@pytest.mark.parametrize("arguments", [
    [], ["--"], ["--uid=1"], ["--uid=1", "--"], ["--uid=1", "--", "/bin/true"], ["--uid=1", "--", "true", "true"],
    ["--", "/bin/true", "true"], ["--uid", "--", "/bin/true", "true"], ["--uid=", "--", "/bin/true", "true"],
    ["--uid=-1", "--", "/bin/true", "true"], ["--uid=4294967295", "--", "/bin/true", "true"],
    ["--uid=4294967296", "--", "/bin/true", "true"], ["--uid=1x", "--", "/bin/true", "true"],
    ["--uid=1", "--join=1", "--", "/bin/true", "true"], ["--uid=1", "--join=-3", "--", "/bin/true", "true"],
    ["--uid=1", *["--join=9"] * 9, "--", "/bin/true", "true"], ["--uid=1", "--project=x", "--", "/bin/true", "true"],
    ["--uid=1", "--parent=0", "--", "/bin/true", "true"], ["--uid=1", "--alone=yes", "--", "/bin/true", "true"],
    ["--uid=1", "--more", "--", "/bin/true", "true"], ["--uid=1", "x", "--", "/bin/true", "true"],
    ["\udcff\udcfe", "%n%s" * 100, "-" * 5000]], ids=lambda a: ascii(" ".join(a))[:40])
def test_garbage(arguments):
    done = become(*arguments)
    assert done.returncode == 127 and done.stdout == ""
    assert re.fullmatch(r"sandbox-become: read the arguments, which are those of sandboxd: errno 22 \(Invalid argument\)\n", done.stderr)


@needs_root
def test_refused_without_privileges():
    for uid in (0, BOB):
        done = become(f"--uid={uid}", "--", "/bin/true", "true", user=ALICE, group=ALICE, extra_groups=[])
        assert done.returncode == 127
        assert done.stderr == "sandbox-become: set the user id: errno 1 (Operation not permitted)\n"
    assert become(f"--uid={ALICE}", "--", *STATUS, user=ALICE, group=ALICE, extra_groups=[]).returncode == 0


@needs_root
def test_what_is_left():
    done = become(f"--uid={ALICE}", "--", *STATUS, group=ALICE, extra_groups=[], env={"SECRET": "x"})
    assert done.returncode == 0, done.stderr
    nothing_is_left(fields(done.stdout), ALICE, ALICE)
    done = become(f"--uid={ALICE}", "--", "/usr/bin/env", "env", env={"SECRET": "x"})
    assert (done.returncode, done.stdout) == (0, "")


@needs_root
def test_ambient_capability_of_a_service():
    """As it is there, with no_new_privs; it ends where the program begins."""
    only = "-all,+setuid"
    done = subprocess.run(["setpriv", "--reuid", str(SERVICE), "--regid", str(ALICE), "--clear-groups", "--inh-caps", only,
                           "--ambient-caps", only, "--bounding-set", only, "--no-new-privs", PROGRAM, f"--uid={ALICE}", "--",
                           *STATUS], capture_output=True, text=True, timeout=20, check=True)
    status = fields(done.stdout)
    nothing_is_left(status, ALICE, ALICE)
    assert int(status["CapBnd"], 16) == SETUID and status["NoNewPrivs"] == "1"


@needs_root
@pytest.mark.parametrize("program, what", [("/nonexistent", "errno 2 (No such file or directory)"),
                                           ("/etc/passwd", "errno 13 (Permission denied)")])
def test_program_of_no_use(program, what):
    done = become(f"--uid={ALICE}", "--", program, "x")
    assert (done.returncode, done.stderr) == (127, f"sandbox-become: execute {program}: {what}\n")


@needs_root
def test_alone():
    code = "import os, resource; print(resource.getrlimit(resource.RLIMIT_NPROC)); os.fork()"
    done = become(f"--uid={ALICE}", "--alone", "--", "/usr/bin/python3", "python3", "-c", code)
    assert done.stdout == "(0, 0)\n" and "BlockingIOError" in done.stderr, done


@needs_root
def test_parent():
    """The end of whoever it is told; not one that is over before it begins."""
    done = become(f"--uid={ALICE}", f"--parent={os.getpid()}", "--", "/bin/echo", "echo", "runs")
    assert done.stdout == "runs\n"
    done = become(f"--uid={ALICE}", f"--parent={os.getppid()}", "--", "/bin/echo", "echo", "runs")
    assert (done.returncode, done.stdout) == (127, "")
    parent = subprocess.Popen(["sh", "-c", f'"$0" --uid={ALICE} --parent=$$ -- /bin/sleep sleep 1000 & echo $!; read x', PROGRAM],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    wait_for(lambda: fields(open(f"/proc/{child}/status", encoding="utf-8").read())["Name"] == "sleep")
    parent.kill()
    parent.communicate()
    wait_for(lambda: not alive(child))


@needs_root
def test_descriptor_that_joins_nothing():
    with open("/dev/full", "wb") as f:
        done = become(f"--uid={ALICE}", f"--join={f.fileno()}", "--", "/bin/true", "true", pass_fds=[f.fileno()])
    assert (done.returncode, done.stderr) == (127, "sandbox-become: join the session's cgroup: errno 28 (No space left on device)\n")


# in the daemon

def link_of(d, uid, groups=()):
    os.setgroups(groups)
    os.seteuid(uid)
    try:
        return Link(d.sock, 10)
    finally:
        os.seteuid(0)
        os.setgroups([])


def run_as(d, uid, code, groups=()):
    with link_of(d, uid, groups) as link:
        return link.call("Run", code=code, session="s", environment="shell", project="/p")


def monitor_of(d, uid):
    """The status of the process that bubblewrap leaves outside of a user's only jail."""
    children = [fields(open(f"/proc/{p}/status", encoding="utf-8").read()) for p in os.listdir("/proc")
                if p.isdigit() and parent_of(p) == d.pid]
    (status,) = (s for s in children if s["Uid"].split()[0] == str(uid))
    return status


@needs_root
@pytest.mark.parametrize("keep", [
    None, ["--inh-caps", "-all,+setuid,+setgid", "--ambient-caps", "-all,+setuid,+setgid", "--no-new-privs"]], ids=["root", "service"])
def test_monitor_of_a_jail(start, keep):
    with contextlib.ExitStack() as stack:
        if keep:
            root = stack.enter_context(removed(copy_programs()))
            os.chown(root, SERVICE, SERVICE)
            d = start(root=root, wrapper=["setpriv", "--reuid", str(SERVICE), "--regid", str(SERVICE), "--clear-groups", *keep,
                                          "--bounding-set", "-all,+setuid,+setgid"])
        else:
            d = start()
        assert run_as(d, ALICE, "echo $((6 * 7))", [BOB, SERVICE])["stdout"] == "42\n"
        status = monitor_of(d, ALICE)
        assert status["Name"] == "bwrap" and [int(g) for g in status["Groups"].split()] == [BOB, SERVICE]
        nothing_is_left({**status, "Groups": ""}, ALICE, 0)
        if keep:
            return
        assert run_as(d, 0, "echo $((6 * 7))", [BOB, SERVICE])["stdout"] == "42\n"
        jail_user = monitor_of(d, 65534)
        nothing_is_left(jail_user, 65534, 65534)


@needs_root
def test_rights_from_the_file(start):
    """A daemon whose capabilities are its file's: they are not ambient by themselves."""
    with removed(copy_programs()) as root:
        os.chown(root, SERVICE, SERVICE)
        try:    # VFS_CAP_REVISION_2, effective: linux/capability.h
            os.setxattr(os.path.join(root, "sandboxd"), "security.capability", struct.pack("<5I", 0x02000001, SETUID | SETUID >> 1, 0, 0, 0))
        except OSError as e:
            pytest.skip(f"no file capabilities here: {e}")
        d = start(programs=root, root=root, uid=SERVICE)
        assert run_as(d, ALICE, "echo $((6 * 7))")["stdout"] == "42\n"
        nothing_is_left(monitor_of(d, ALICE), ALICE, 0)


@needs_root
def test_no_program_of_its_own(start, programs):
    with removed(copy_programs("sandbox-become")) as path:
        if os.path.exists("/usr/libexec/nix-sandbox/sandbox-become"):
            pytest.skip("one is installed")
        done = subprocess.run([os.path.join(path, "sandboxd"), "--socket", f"{path}/s", "--state-dir", f"{path}/state", "--runtime-dir",
                               f"{path}/run"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode != 0 and "sandbox-become" in done.stderr and "Install nix-sandbox completely" in done.stderr
        # Who serves himself only does not need it.
        d = start(programs=path, uid=ALICE)
        assert run_as(d, ALICE, "echo ran")["stdout"] == "ran\n"


FAKE = "#include <unistd.h>\nint main(void) { return write(2, TEXT, sizeof(TEXT) - 1) < 0 ? 1 : 127; }\n"


@pytest.fixture
def failing(start):
    """A daemon whose sandbox-become says this and fails."""
    with contextlib.ExitStack() as stack:
        def make(text):
            path = stack.enter_context(removed(copy_programs("sandbox-become")))
            subprocess.run(["cc", "-x", "c", "-", f"-DTEXT={json.dumps(text)}", "-o", os.path.join(path, "sandbox-become")],
                           input=FAKE, text=True, check=True, timeout=60)
            return start(programs=path)
        yield make


@needs_root
@pytest.mark.parametrize("text, expected", [
    ("sandbox-become: set the user id: errno 1 (Operation not permitted)\n",
     "Starting the sandbox failed at the step 'set the user id': Operation not permitted."),
    ("sandbox-become: join the session's cgroup: errno 19 (No such device)\n",
     "Starting the sandbox failed at the step 'join the session's cgroup': No such device. The cgroups of sandboxd have been removed"),
    ("sandbox-become: open the project: errno 2 (No such file or directory)\n", "moved or deleted"),
    ("sandbox-become: garbage\n", "The sandbox could not be built: 'sandbox-become: garbage"),
    ("", "agent is of no use")], ids=lambda t: t[:30])
def test_sentences(failing, text, expected):
    d = failing(text)
    with pytest.raises(VarlinkError) as e:
        run_as(d, ALICE, "true")
    assert e.value.name == "StartFailed" and expected in e.value.message, e.value.message
    assert d.call("List")["sessions"] == []


@needs_root
def test_shortage_passes(start):
    """What may pass is tried again: here until it has been tried often enough."""
    with removed(copy_programs("sandbox-become")) as path:
        subprocess.run(["cc", "-x", "c", "-", "-o", os.path.join(path, "sandbox-become")], text=True, check=True, timeout=60, input=f"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char *argv[]) {{
        static const char text[] = "sandbox-become: execute x: errno 11 (Resource temporarily unavailable)\\n";
        int fd = open("{path}/tries", O_WRONLY | O_APPEND);
        return write(fd, "x", 1) < 0 || write(2, text, sizeof(text) - 1) < 0 ? 1 : 127;
}}
""")
        tries = os.path.join(path, "tries")
        with open(tries, "wb"):
            pass
        os.chmod(tries, 0o666)
        d = start(programs=path)
        with pytest.raises(VarlinkError) as e:
            run_as(d, ALICE, "true")
        assert "short of memory or processes" in e.value.message, e.value.message
        assert os.path.getsize(tries) == 3


# those who would stop it

STOPPER = """
#include <signal.h>
#include <unistd.h>
int main(void) {
        (void) write(1, "x", 1);
        for (;;)
                (void) kill(-1, SIGSTOP);
}
"""


@pytest.fixture(scope="module")
def stopper(tmp_path_factory):
    """Stops all processes that its user may, over and over."""
    path = os.path.join(tmp_path_factory.mktemp("stopper"), "stopper")
    subprocess.run(["cc", "-O2", "-Wno-unused-result", "-x", "c", "-", "-o", path], input=STOPPER, text=True, check=True, timeout=60)
    return path


@contextlib.contextmanager
def stopping(stopper, uid):
    with contextlib.ExitStack() as stack:
        # Opened by root, in whose directory it is.
        fd = os.open(stopper, os.O_RDONLY)
        stack.callback(os.close, fd)
        process = subprocess.Popen([f"/proc/self/fd/{fd}"], user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE, pass_fds=[fd])
        stack.callback(process.communicate)
        stack.callback(process.kill)
        assert process.stdout.read(1) == b"x"
        yield process


@needs_root
@pytest.mark.parametrize("method, parameters", [
    ("Run", {"code": "true", "environment": "shell", "project": "/p"}), ("Environments", {})], ids=["jails", "helpers"])
def test_nobody_stops_the_daemon(start, stopper, method, parameters):
    """Alice stops whatever has her uid, while sessions of hers are made and ended, or processes read her environments; Bob
    is served."""
    d = start({"environment_dirs": [], "user_environment_dirs": ["/u/%U"]})
    with stopping(stopper, ALICE):
        for _ in range(40):
            with link_of(d, ALICE) as link, link_of(d, BOB) as bob:
                link.send(method, **parameters)
                for _ in range(2):  # the first may be served before what came at the same time
                    assert bob.call("GetVersion")["version"]
        assert run_as(d, BOB, "echo served")["stdout"] == "served\n"
    if method == "Run":
        assert run_as(d, ALICE, "echo served")["stdout"] == "served\n", "and she, when she has ended it"


@needs_root
def test_a_user_whose_cgroup_does_not_run(start):
    """Whatever keeps the processes of Alice's sessions from running, here to the end of it, is hers alone: a start of hers waits
    there, and Bob is served."""
    d = start()
    assert run_as(d, ALICE, "true")["exit_code"] == 0
    with link_of(d, ALICE) as link:
        session = link.call("Show", session="s", project="/p")["session"]
    if not session["cgroup"]:
        pytest.skip("no cgroups here")
    users = os.path.dirname(session["cgroup"])
    assert os.path.basename(users) == f"u{ALICE}"

    def freeze(value):
        with open(os.path.join(users, "cgroup.freeze"), "w", encoding="ascii") as f:
            f.write(value)
    with link_of(d, ALICE) as link, link_of(d, BOB) as bob:
        freeze("1")
        try:
            link.send("Run", code="echo ran", session="waits", environment="shell", project="/p")
            for _ in range(2):
                assert bob.call("GetVersion")["version"]
            assert run_as(d, BOB, "echo served")["stdout"] == "served\n"
        finally:
            freeze("0")
        assert link.answer()["stdout"] == "ran\n"


@needs_root
def test_proxy_of_a_user(start):
    """A helper that stays, with nothing left of the daemon's rights; it ends with the daemon, whatever becomes of that."""
    d = start({"environments": {"net": {"preset": "shell", "network": []}}})
    with link_of(d, ALICE) as link:
        assert link.call("Run", code="echo ran", session="s", environment="net", project="/p")["stdout"] == "ran\n"

    def proxies():
        return [p for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == d.pid
                and fields(open(f"/proc/{p}/status", encoding="utf-8").read())["Name"] == "sandbox-proxy"]
    (pid,) = wait_for(proxies)
    status = fields(open(f"/proc/{pid}/status", encoding="utf-8").read())
    nothing_is_left(status, ALICE, 0)
    assert status["NoNewPrivs"] == "1"
    d.crash()
    wait_for(lambda: not alive(int(pid)))

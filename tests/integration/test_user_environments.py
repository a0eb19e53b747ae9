# SPDX-License-Identifier: MIT
"""Environments that users have in directories of their own: read as them, shown to them, and no trouble to others."""
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

import pytest

from artifactlib import Artifacts
from daemonlib import PROGRAMS, Daemon, as_user, public_directory, removed, wait_for
from managerlib import Service
from test_environments import shim
from test_lifecycle import need_cgroups

ALICE, BOB, SERVICE = 4711, 4712, 991
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root")

LIST = "print(json.dumps(Link(sys.argv[1]).call('Environments')))"
RUN = """
try:
    print(json.dumps(Link(sys.argv[1]).call('Run', code=sys.argv[3], environment=sys.argv[2], session=sys.argv[4] if len(sys.argv) > 4 else None)))
except VarlinkError as e:
    print(json.dumps({'error': e.name, 'message': e.message}))
"""


@pytest.fixture
def home(place):
    """home(uid): artifacts of a user, and his directory of them."""
    def make(uid):
        a = Artifacts(place.root, uid)
        return a, a.directory(f"user-{uid}")
    return make


@pytest.fixture
def d(start, place):
    return start({"environment_dirs": [place.directory()], "user_environment_dirs": [f"{place.root}/user-%U"]})


def listed(d, uid):
    reply = as_user(uid, LIST, d.sock)
    return {e["name"]: e for e in reply["environments"]}, {b["path"]: b["reason"] for b in reply["broken"]}


def run(d, uid, env, code="id -u", *session):
    return as_user(uid, RUN, d.sock, env, code, *session)


def test_only_for_that_user(d, home):
    alice, directory = home(ALICE)
    assert run(d, ALICE, "hers")["error"] == "NoSuchEnvironment"
    link = alice.drop(directory, "hers", memory_mb=300)
    assert run(d, ALICE, "hers", "echo ran")["stdout"] == "ran\n"
    assert listed(d, ALICE)[0]["hers"]["source"] == link
    for uid in (BOB, 0):
        assert run(d, uid, "hers")["error"] == "NoSuchEnvironment"
        assert "hers" not in listed(d, uid)[0] and not listed(d, uid)[1]
    # A session of hers lives on without it.
    assert run(d, ALICE, "hers", "x=1", "a")["exit_code"] == 0
    os.unlink(link)
    assert run(d, ALICE, "hers", "echo $x", "a")["stdout"] == "1\n"
    assert run(d, ALICE, "hers", "true", "b")["error"] == "NoSuchEnvironment"
    assert link not in d.log()          # whoever can write there could fill it


def test_root_has_some_too(d, home):
    root, directory = home(0)
    root.drop(directory, "roots")
    assert d.run("echo ran", env="roots")["stdout"] == "ran\n"
    assert run(d, ALICE, "roots")["error"] == "NoSuchEnvironment"


def test_no_shadow_on_others(d, home, place):
    alice, directory = home(ALICE)
    for name in ("python", "shell", "for-all"):
        alice.drop(directory, name, preset=name != "for-all")
    system = place.drop(place.directory(), "for-all")
    found, broken = listed(d, ALICE)
    assert found["for-all"]["source"] == system and "source" not in found["python"]
    assert broken == {f"{directory}/{n}": f"'{n}' has the name of an environment for all users" for n in ("for-all", "python", "shell")}


def test_what_others_own_or_write_to(d, home):
    alice, directory = home(ALICE)
    path = alice.make("x", path=os.path.join(directory, "x"))
    os.chown(path, BOB, BOB)
    assert listed(d, ALICE)[1] == {path: f"it belongs to uid {BOB}, and neither to root nor to uid {ALICE}"}
    os.chown(path, 0, 0)
    assert "x" in listed(d, ALICE)[0]
    os.chmod(directory, 0o777)
    assert "can be written by others" in listed(d, ALICE)[1][directory]


def test_what_only_the_user_can_read(d, home):
    alice, directory = home(ALICE)
    path = alice.make("x", path=os.path.join(directory, "x"))
    for name in ("environment.json", "store-paths"):
        os.chmod(os.path.join(path, name), 0o400)
    os.chmod(path, 0o700)
    os.chmod(directory, 0o700)
    assert run(d, ALICE, "x", "echo ran")["stdout"] == "ran\n"
    # And nothing that he cannot: root's file under a link of hers.
    os.unlink(os.path.join(path, "environment.json"))
    os.symlink("/etc/shadow", os.path.join(path, "environment.json"))
    assert listed(d, ALICE)[1] == {path: "environment.json cannot be read: Permission denied"}


def test_in_one_conversation(d, home):
    """Through the shim, which runs as root here."""
    root, directory = home(0)
    call = ("run", {"code": "echo ran", "env": "mine", "session": "s"})
    before, _, after = shim(d, call, lambda: root.drop(directory, "mine"), call)
    assert "There is no environment 'mine'" in before and after.startswith("ran\n")


def test_long_code_and_streams(d, home):
    """A call that is kept is kept whole."""
    root, directory = home(0)
    root.drop(directory, "mine")
    with d.link() as link:
        link.send("Run", _more=True, code="echo ran; : " + "x" * 1_000_000, environment="mine")
        assert link.answer()["output"]["text"] == "ran\n"
        while "exit_code" not in (reply := link.answer()):
            pass
        assert reply["exit_code"] == 0


def test_order_of_a_session(d, home):
    root, directory = home(0)
    root.drop(directory, "mine")
    links = [d.begin(f"echo {i}; x=${{x}}{i}", "s", "mine") for i in range(8)]
    assert [link.answer()["stdout"] for link in links] == [f"{i}\n" for i in range(8)]
    assert d.run("echo $x", "s", "mine")["stdout"] == "01234567\n"
    for link in links:
        link.close()


def test_a_call_is_not_overtaken(fake, home, programs):
    """It asks for environments while another one makes its session, and one more comes then."""
    root, directory = home(0)
    root.drop(directory, "mine")
    fifo = os.path.join(root.root, "fifo")
    os.mkfifo(fifo)
    d = fake(f"#!/bin/sh\n: <{fifo}\nexec {os.path.join(programs, 'sandbox-environments')} \"$@\"\n", directory)
    first, second = (d.begin(f"echo {i}; x=${{x}}{i}", "s", "mine") for i in range(2))
    d.call("GetVersion")        # both have been read by now
    os.close(os.open(fifo, os.O_WRONLY))        # one question is answered, and no other
    assert first.answer()["stdout"] == "0\n"
    assert d.run("x=${x}2", "s", "mine")["exit_code"] == 0
    assert second.answer()["stdout"] == "1\n"
    assert d.run("echo $x", "s", "mine")["stdout"] == "012\n"
    for link in (first, second):
        link.close()


def test_no_more_than_the_administrator_allows(start, place, home):
    """Of limits and of the project, whether a session is made or restored."""
    root, directory = home(0)
    d = start({"environment_dirs": [], "user_environment_dirs": [f"{place.root}/user-%U"], "defaults": {"project": "none"},
               "max": {"memory_mb": 600, "cpus": 1, "timeout_seconds": 60, "disk_mb": 100}})
    root.drop(directory, "mine", memory_mb=5000, cpus=8, timeout_seconds=10000, disk_mb=5000, project="read-write")

    def granted(session):
        s = d.show(session)
        return s["memory_mb"], s["cpus"], s["timeout_seconds"], s["workspace_mb"], s["project_mode"]
    d.run("x=1", "s", "mine", project_mode="read-write")
    d.call("Save", session="s", project=d.project)
    d.call("Restore", session="s", name="t", project=d.project, project_mode="read-write")
    assert granted("s") == granted("t") == (600, 1, 60, 100, "none")


def test_snapshots(d, home):
    root, directory = home(0)
    link = root.drop(directory, "mine")
    d.run("x=1", "s", "mine")
    d.call("Save", session="s", project=d.project)
    d.call("Kill", session="s", project=d.project)
    d.call("Restore", session="s", name="t", project=d.project)
    assert d.run("echo $x", "t")["stdout"] == "1\n" and d.show("t")["environment"] == "mine"
    os.unlink(link)
    e = d.refused("Restore", session="s", name="u", project=d.project)
    assert e.name == "SnapshotInvalid" and "'mine', which is not configured" in e.message


def test_expansion(programs):
    """What stands for a user's home and name is the user database's, whatever the environment says."""
    done = subprocess.run([os.path.join(programs, "sandbox-environments"), "--program", "bash", "--", "%h/x", "/v/%u/%U/%%", "%u"],
                          user="daemon", group="daemon", extra_groups=[], env={"HOME": "/tmp", "USER": "root"}, capture_output=True, check=True)
    home = os.path.expanduser("~daemon")
    assert [x["path"] for x in json.loads(done.stdout)["directories"]] == [f"{home}/x", "/v/daemon/1/%"]
    done = subprocess.run([os.path.join(programs, "sandbox-environments"), "--", "%h/x", "/v/%U"], user=ALICE, group=ALICE, extra_groups=[],
                          capture_output=True, check=True)
    assert [x["path"] for x in json.loads(done.stdout)["directories"]] == [f"/v/{ALICE}"]


# ---- what the process could do ----

@pytest.fixture
def fake(start, programs, place):
    """A daemon whose sandbox-environments is a script."""
    with contextlib.ExitStack() as stack:
        def make(text, directory="/u/%U", **more):
            path = stack.enter_context(removed(public_directory()))
            for program in PROGRAMS:
                shutil.copy(os.path.join(programs, program), path)
            if text is None:
                os.unlink(os.path.join(path, "sandbox-environments"))
            else:
                with open(os.path.join(path, "sandbox-environments"), "w", encoding="utf-8") as f:
                    f.write(text)
            return start({"environment_dirs": [], "user_environment_dirs": [directory]}, programs=path, **more)
        yield make


@pytest.mark.parametrize("text,reason", [
    ("#!/bin/sh\necho garbage\n", "cannot be understood"),
    ("#!/bin/sh\necho '{\"directories\":[{\"path\":\"/x\",\"artifacts\":[{}]}]}'\n", "cannot be understood"),
    ("#!/bin/sh\n", "cannot be understood"),
    ("#!/bin/sh\nexit 3\n", "sandbox-environments failed"),
    ("#!/bin/sh\nkill -9 $$\n", "sandbox-environments failed"),
    ("#!/bin/sh\nwhile :; do echo 0123456789012345678901234567890123456789012345678901234567890123; done\n", "it has too much"),
    ("no program", "could not be started"),
    (None, "could not be started")], ids=lambda s: ascii(s)[:24])
def test_answers_that_are_none(fake, text, reason):
    d = fake(text)
    reply = d.call("Environments")
    assert [e["name"] for e in reply["environments"]] == ["python", "shell", "node", "default"]
    assert [b["path"] for b in reply["broken"]] == ["/u/%U"] and reason in reply["broken"][0]["reason"]
    assert d.refused("Run", code="true", environment="x").name == "NoSuchEnvironment"
    assert d.run("echo ran")["stdout"] == "ran\n"


def test_process_has_nothing(fake, place):
    """No privileges and no way to get them, no descriptors, no processes."""
    out = os.path.join(place.root, "out")
    os.mkdir(out, 0o777)
    os.chmod(out, 0o777)
    d = fake(f"""#!/usr/bin/python3
import os, json
o = {{"uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(), "fds": sorted(os.listdir("/proc/self/fd"))}}
o.update(l.split(":\\t") for l in open("/proc/self/status").read().splitlines() if l.startswith(("Cap", "NoNewPrivs", "Sig")))
try:
    os.fork()
    o["fork"] = True
except OSError:
    o["fork"] = False
o["env"] = [k for k in os.environ if k != "LC_CTYPE"]
json.dump(o, open("{out}/" + str(os.getuid()), "w"))
""")
    for uid in (ALICE, 0):
        as_user(uid, LIST, d.sock)
        with open(os.path.join(out, str(uid)), encoding="utf-8") as f:
            o = json.load(f)
        assert o["uid"] == [uid] * 3 and o["gid"] == [uid] * 3 and o["groups"] == []
        assert o["fds"] == ["0", "1", "2", "3"]       # the last is that of the listing
        assert {int(o[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0} and o["NoNewPrivs"] == "1"
        assert int(o["SigBlk"], 16) == 0 and not o["env"]
        assert o["fork"] is (uid == 0)


HANG = "#!/usr/bin/python3\nimport time, os\nif os.getuid() == 4711: time.sleep(1000)\nprint('{\"directories\":[]}')\n"


def test_one_that_hangs_costs_its_user_only(fake):
    d = fake(HANG)
    alice = [subprocess.Popen(["/usr/bin/python3", "-c", f"""
import socket
s = socket.socket(socket.AF_UNIX); s.connect({d.sock!r})
s.sendall(b'{{"method":"io.nixsandbox.Environments"}}\\0')
import time; b = b""
while not b.endswith(b"\\0"): b += s.recv(65536)
print(b.decode()[:-1])"""], user=ALICE, group=ALICE, extra_groups=[], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    begun = time.monotonic()
    for _ in range(20):
        assert listed(d, BOB)[1] == {} and d.call("Environments")["broken"] == []
    for p in alice:
        reply = json.loads(p.communicate(timeout=40)[0])["parameters"]
        assert "takes too long" in reply["broken"][0]["reason"] and len(reply["environments"]) == 4
    assert time.monotonic() - begun > 4
    # A session of hers that is there is not asked about, nor is what all have.
    assert as_user(ALICE, RUN, d.sock, "shell", "echo ran")["stdout"] == "ran\n"


def test_who_leaves_and_who_asks_too_much(fake):
    d = fake("#!/bin/sh\nexec sleep 1000\n")
    links = [d.link() for _ in range(65)]
    for link in links:
        link.send("Environments")
    first = select.select([link.socket for link in links], [], [], 20)[0]
    refused = [link for link in links if link.socket in first]
    assert [link.receive()["error"] for link in refused] == ["io.nixsandbox.LimitExceeded"]
    for link in links:
        link.close()
    wait_for(lambda: not children(d))
    assert d.run("echo ran")["stdout"] == "ran\n"


@pytest.mark.parametrize("text, most", [
    ("os.write(1, b'x' * 200_000)", 3),
    ("time.sleep(1000)", 9)], ids=["writes", "hangs"])
def test_process_that_the_service_may_not_kill(fake, text, most):
    """The service has no right to end what is another user's: it ends with its pipe, and in any case in time."""
    only = "-all,+setuid,+setgid"
    with removed(public_directory()) as root:
        os.chown(root, SERVICE, SERVICE)
        d = fake(f"#!/usr/bin/python3\nimport os, time\ntime.sleep(0.3)\n{text}\n", root=root,
                 wrapper=["setpriv", "--reuid", str(SERVICE), "--regid", str(SERVICE), "--clear-groups", "--inh-caps", only,
                          "--ambient-caps", only, "--bounding-set", only])
        link = d.link()
        link.send("Environments")
        wait_for(lambda: children(d))
        link.close()
        begun = time.monotonic()
        wait_for(lambda: not children(d))
        assert time.monotonic() - begun < most


def children(d):
    return [p for p in os.listdir("/proc") if p.isdigit() and parent(p) == d.pid]


def parent(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    return None


def test_daemon_ends_while_one_runs(fake):
    d = fake("#!/bin/sh\nexec sleep 1000\n")
    link = d.link()
    link.send("Environments")
    wait_for(lambda: children(d))
    assert d.end() == 0
    link.close()


def test_off_and_of_a_private_daemon(start, home, place, programs):
    alice, directory = home(ALICE)
    alice.drop(directory, "hers")
    d = start({"user_environment_dirs": []})
    assert run(d, ALICE, "hers")["error"] == "NoSuchEnvironment"
    with Daemon({"user_environment_dirs": [f"{place.root}/user-%U"]}, programs=programs, uid=ALICE) as own:
        assert run(own, ALICE, "hers", "echo ran")["stdout"] == "ran\n"


def test_session_outlives_a_restart(programs, place, home):
    alice, directory = home(0)
    link = alice.drop(directory, "mine")
    with Service({"environment_dirs": [], "user_environment_dirs": [f"{place.root}/user-%U"]}, programs=programs) as d:
        need_cgroups(d, "freezer")
        d.run("x=1", "a", "mine")
        for step in (d.reload, d.restart):
            step()
            assert d.run("echo $x", "a", "mine")["stdout"] == "1\n" and d.run("echo 2", env="mine")["stdout"] == "2\n"
        os.unlink(link)
        d.restart()
        assert d.run("echo $x", "a", "mine")["stdout"] == "1\n" and "is gone" not in d.log()

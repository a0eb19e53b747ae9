# SPDX-License-Identifier: MIT
"""Sessions outlive the daemon: a reload, and every way in which it can crash."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from pid1lib import ALICE, CONFIG, RUNTIME, SOCKET, alive, as_user, command, crash, processes_in, public_directory, systemctl, wait_for


def begin(service, code, session="a", env="python"):
    """A client that knows what to do when its daemon goes away."""
    return subprocess.Popen(["sandboxctl", "--json", "run", "-e", env, "-s", session, code], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True, env={**os.environ, "PROJECT_DIR": service.project})


def answer_is_true(client):
    """The turn's result, or that it is not known."""
    out, _ = client.communicate(timeout=60)
    reply = json.loads(out)
    if client.returncode == 0:
        assert reply["stdout"] == "42\n" and reply["exit_code"] == 0, reply
    else:
        assert "sandboxd went away" in reply["message"], reply


def live_python(service):
    service.run("x = 41", "a", env="python")
    return service.show("a")["id"]


def is_kept(service, sid):
    reply = service.run("print(x + 1)", "a", env="python")
    return (reply["stdout"], reply["id"], reply["session_state"]) == ("42\n", sid, "resumed")


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_crash_between_turns(service, sig):
    sid = live_python(service)
    crash(service, sig)
    assert is_kept(service, sid)
    assert service.show("a")["cgroup"].startswith(service.sessions + "/")


def test_crash_while_a_turn_runs(service):
    """The turn goes on, and who asked for it gets its result from the next daemon, or is told that it cannot."""
    sid = live_python(service)
    client = begin(service, "import time; time.sleep(2); y = x + 1; print(y)")
    service.wait_busy("a")
    crash(service)
    answer_is_true(client)
    assert is_kept(service, sid)
    assert service.run("print(y)", "a", env="python")["stdout"] == "42\n", "the turn has come to its end"


def test_crash_while_frozen(service):
    sid = live_python(service)
    service.call("Freeze", session="a")
    crash(service)
    assert service.show("a")["state"] == "frozen"
    service.call("Thaw", session="a")
    assert is_kept(service, sid)


def test_watchdog(service):
    """A daemon that hangs is a daemon that has crashed."""
    service.drop_in("[Service]\nWatchdogSec=1\n")       # not to wait for a minute
    sid = live_python(service)
    crash(service, signal.SIGSTOP)
    assert is_kept(service, sid)


def test_reload(service):
    """Executes itself anew: the same process, with the configuration of now, and turns go on."""
    sid, pid = live_python(service), service.pid
    service.configure(max={"memory_mb": 333})
    client = begin(service, "import time; time.sleep(2); y = x + 1; print(y)")
    service.wait_busy("a")
    systemctl("reload", "sandboxd.service")
    answer_is_true(client)
    assert service.pid == pid and service.active() == "active" and is_kept(service, sid)
    assert service.run("print(y)", "a", env="python")["stdout"] == "42\n", "the turn has come to its end"
    assert "333" in str(service.run("true", memory_mb=1000)["notice"])


def test_another_version_behind_a_link(service):
    """A switch of NixOS to another version (nix/module.nix): a link leads elsewhere, the unit is another, and it is reloaded."""
    link = os.path.join(os.path.dirname(CONFIG), "sandboxd")
    root = public_directory()

    def switch(version):
        folder = os.path.join(root, version)
        shutil.copytree("/usr/libexec/nix-sandbox", folder)
        os.symlink(f"{folder}/sandboxd", f"{link}.next")
        os.rename(f"{link}.next", link)
        service.drop_in(f"[Service]\nExecStart=\nExecStart={link} --runtime-dir ${{RUNTIME_DIRECTORY}} "
                        f"--state-dir ${{STATE_DIRECTORY}}\nEnvironment=VERSION={version}\n")
        return f"{folder}/sandboxd"

    first = switch("1")
    sid = live_python(service)
    pid = service.pid
    assert os.readlink(f"/proc/{pid}/exe") == first
    second = switch("2")
    systemctl("reload", "sandboxd.service")
    wait_for(lambda: os.readlink(f"/proc/{pid}/exe") == second)
    assert is_kept(service, sid) and service.pid == pid and service.active() == "active"
    crash(service)
    assert is_kept(service, sid) and os.readlink(f"/proc/{service.pid}/exe") == second


def test_reload_with_a_broken_configuration(service):
    sid, pid = live_python(service), service.pid
    service.configure("nonsense")
    systemctl("reload", "sandboxd.service", status=None)
    wait_for(lambda: CONFIG in service.log())
    assert service.pid == pid and is_kept(service, sid)


def test_reloads_leave_no_descriptors(service):
    sid, pid = live_python(service), service.pid

    def descriptors():
        return len(os.listdir(f"/proc/{pid}/fd"))
    before = descriptors()
    for n in range(2, 6):
        systemctl("reload", "sandboxd.service")
        wait_for(lambda n=n: service.log().count(" serves the socket") == n)
        assert is_kept(service, sid)
    wait_for(lambda: descriptors() <= before, 10)
    assert service.unit("NFileDescriptorStore") == "1"


def test_what_is_whose_stays(service):
    """Processes in the background go on; a user's session is that user's."""
    alices = f"print(json.dumps(Client({SOCKET!r}).run('echo $((x += 1))', 'a')['stdout']))"
    service.run("x=1; sleep 600 &", "a")
    before = processes_in(service.show("a")["cgroup"])
    as_user(ALICE, alices)
    crash(service)
    assert processes_in(service.show("a")["cgroup"]) == before
    assert service.run("echo $x", "a")["stdout"] == "1\n"
    assert as_user(ALICE, alices) == "2\n"


def test_stop_after_a_crash(service):
    """Adopted sessions end like others."""
    service.run("sleep 600 &", "a")
    crash(service)
    pids = processes_in(service.show("a")["cgroup"])
    systemctl("stop", "sandboxd.service")
    assert not [p for p in pids if alive(p)]
    wait_for(lambda: not service.leftovers())


def test_nothing_is_orphaned_when_systemd_gives_up(service):
    """The next start ends what no daemon could take over, and says so."""
    service.drop_in("[Unit]\nStartLimitBurst=1\n")      # gives up at the first crash
    service.run("x=1; sleep 600 &", "a")
    pids = processes_in(service.show("a")["cgroup"])
    os.kill(service.pid, signal.SIGKILL)
    wait_for(lambda: service.active() == "failed")
    assert not os.path.exists(RUNTIME)
    systemctl("reset-failed", "sandboxd.service", "sandboxd.socket")
    systemctl("restart", "sandboxd.socket")
    service.call("GetVersion")
    assert not [p for p in pids if alive(p)] and service.call("List")["sessions"] == []


def snapshots(service, name):
    return service.call("Snapshots", session=name, project=service.project)["snapshots"]


def test_stop_saves_and_the_next_use_restores(service):
    """By the service's own user and with its capabilities, in a state directory that nobody else reaches."""
    service.run("x = 42", "saved", env="python")
    service.run("v=1; f() { echo f; }; echo text > file", "saved")
    systemctl("stop", "sandboxd.service")
    systemctl("start", "sandboxd.service")
    reply = service.run("print(x)", "saved", env="python")
    assert (reply["stdout"], reply["session_state"]) == ("42\n", "restored"), reply
    assert service.run("f; cat file", "saved")["stdout"] == "f\ntext\n"
    assert [s["reason"] for s in snapshots(service, "saved")] == ["shutdown"]
    status = command("stat", "-c", "%U %a", "/var/lib/nix-sandbox/snapshots")
    assert status.split() == ["nix-sandbox", "700"]


def test_crash_knows_what_is_saved(service):
    service.run("x = 42", "known", env="python")
    first = service.call("Save", session="known", project=service.project)
    crash(service)
    assert service.run("print(x)", "known", env="python")["stdout"] == "42\n"
    assert not (second := service.call("Save", session="known", project=service.project))["unchanged"]
    crash(service)
    wait_for(lambda: not service.show("known")["busy"])
    reply = service.call("Save", session="known", project=service.project)
    assert reply["unchanged"] and reply["snapshot"] == second["snapshot"] != first["snapshot"], reply

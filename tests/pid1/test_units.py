# SPDX-License-Identifier: MIT
"""The units by themselves, and how they start the service."""
import os
import pwd
import re
import signal
import stat

import pytest

from pid1lib import BEFORE_254, CONFIG, RUNTIME, SOCKET, STATE, UNITS, VarlinkError, command, status_of, systemctl, wait_for

OURS = ["sandboxd.socket", "sandboxd.service", "nix-sandbox.slice", *["nix-sandbox-sessions.service"] * BEFORE_254]
SERVICE_CAPABILITIES = 1 << 6 | 1 << 7          # CAP_SETGID, CAP_SETUID


def test_verify_is_silent():
    assert command("systemd-analyze", "verify", *(os.path.join(UNITS, u) for u in OURS)) == ""


def test_exposure():
    text = command("systemd-analyze", "security", "--offline=true", "--no-pager", os.path.join(UNITS, "sandboxd.service"))
    exposure = float(re.search(r"exposure level for sandboxd.service: ([\d.]+)", text)[1])
    assert exposure <= 4.2, text


def test_enable():
    """Enabling the service is enabling its socket: nothing of it runs before somebody asks for it."""
    systemctl("enable", "sandboxd.service")
    try:
        assert systemctl("is-enabled", "sandboxd.socket") == "enabled\n"
        assert os.listdir("/etc/systemd/system/sockets.target.wants") == ["sandboxd.socket"]
        assert not os.path.exists("/etc/systemd/system/multi-user.target.wants/sandboxd.service")
    finally:
        systemctl("disable", "sandboxd.service", "sandboxd.socket")


@pytest.mark.parametrize("name", ["nix-sandbox", "nix-sandbox-jail"])
def test_users(name):
    entry = pwd.getpwnam(name)
    assert 0 < entry.pw_uid < 1000 and entry.pw_dir == "/" and entry.pw_shell.endswith("nologin")


def test_first_connection_starts_it(service):
    assert service.active() == "inactive"
    assert service.call("GetVersion")["mode"] == "service"
    assert service.active() == "active" and service.unit("SubState") == "running"
    # Told by READY=1, and fed: WATCHDOG=1 has come since.
    assert service.unit("NotifyAccess") == "main" and service.unit("WatchdogUSec") == "1min"
    assert int(service.unit("WatchdogTimestampMonotonic")) > 0


def test_places(service):
    service.call("GetVersion")
    uid = pwd.getpwnam("nix-sandbox").pw_uid
    for path, mode, owner in ((SOCKET, 0o666, 0), (os.path.dirname(SOCKET), 0o755, 0), (RUNTIME, 0o700, uid), (STATE, 0o700, uid)):
        st = os.stat(path)
        assert (stat.S_IMODE(st.st_mode), st.st_uid) == (mode, owner), path
    systemctl("stop", "sandboxd.service")
    assert os.path.exists(SOCKET) and not os.path.exists(RUNTIME) and os.path.exists(STATE)
    assert service.call("GetVersion"), "the socket goes on"


def test_credentials(service):
    """Those of the unit, from the kernel."""
    service.call("GetVersion")
    status = status_of(service.pid)
    user = pwd.getpwnam("nix-sandbox")
    assert status["Uid"].split() == [str(user.pw_uid)] * 4 and status["Gid"].split() == [str(user.pw_gid)] * 4
    assert status["Groups"].split() in ([], [str(user.pw_gid)])
    for kind in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == SERVICE_CAPABILITIES, kind
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and status["Umask"] == "0077"
    with open(f"/proc/{service.pid}/cgroup", encoding="ascii") as f:
        path = next(line.strip() for line in f if line.startswith("0::"))
    assert re.fullmatch("0::/nix.slice/nix-sandbox.slice/sandboxd.service(/supervisor)?", path)
    assert service.unit("Delegate") == "yes"
    assert set(service.unit("DelegateControllers").split()) == {"cpu", "memory", "pids", "io"}
    assert os.stat(service.cgroup).st_uid == user.pw_uid


def fails(service, *words):
    """The service does not start, and says these words."""
    with pytest.raises((OSError, AssertionError, VarlinkError)):
        service.link(wait=5).call("GetVersion")
    wait_for(lambda: service.active() == "failed")
    for word in words:
        assert word in service.log()


def mended(service):
    systemctl("reset-failed", "sandboxd.service", "sandboxd.socket")
    systemctl("restart", "sandboxd.socket")
    return service.call("GetVersion")


def test_configuration(service):
    """The administrator's file is read if it is there."""
    service.configure(max={"memory_mb": 333})
    assert "333" in str(service.run("true", "a", memory_mb=1000))


def test_broken_configuration_is_said_and_mended(service):
    service.configure('{ "nonsense": 1 }')
    fails(service, CONFIG, "nonsense")
    service.configure()
    assert mended(service)


def test_refuses_to_run_without_limits(service):
    """A unit whose delegation somebody has taken away, on a machine that may have no controllers anyway."""
    os.unlink(CONFIG)
    service.drop_in("[Service]\nDelegate=no\nEnvironment=\n")   # nor is there the other unit's of an old systemd
    fails(service, "Delegate=cpu memory pids io", "require_limits")


def test_connections_wait_for_the_next(service):
    """systemd holds the socket: who connects while there is no daemon is served by the next one."""
    old = service.pid_of_running()
    os.kill(old, signal.SIGKILL)
    with service.link() as link:
        assert link.call("GetVersion")
    assert service.pid != old

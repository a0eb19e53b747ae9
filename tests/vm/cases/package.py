# SPDX-License-Identifier: MIT
"""Installing, and what systemd says about what was installed. Comes first: all other cases use it."""
import os
import re
import stat

from guestlib import SERVICE, SOCKET, main_pid, root, sh, show, tester

EXPOSURE_MAX = 4.2


def case_install():
    """The package installs; then the socket listens, nothing runs, and the first connection starts the service."""
    sh("dpkg", "-i", "nix-sandbox.deb")
    assert show("sandboxd.socket", "ActiveState") == "active" and show("sandboxd.socket", "UnitFileState") == "enabled"
    mode = os.stat(SOCKET)
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o666
    assert show(SERVICE, "ActiveState") == "inactive"

    reply = tester.run("print(6 * 7)")
    assert reply["stdout"] == "42\n", reply
    assert show(SERVICE, "ActiveState") == "active"


def case_upgrade():
    """Installing the package again keeps the service and its sessions."""
    tester.run("x = 41", "kept")
    sh("dpkg", "-i", "nix-sandbox.deb")
    reply = tester.run("x += 1; print(x)", "kept")
    assert reply["stdout"] == "42\n" and reply["session_state"] == "resumed", reply
    tester.ctl("kill", "kept")


def case_credentials():
    """The service is the system user nix-sandbox with the two capabilities that it needs, bounding set included."""
    with open(f"/proc/{main_pid()}/status", encoding="ascii") as f:
        status = dict(line.split(":\t", maxsplit=1) for line in f.read().splitlines() if ":\t" in line)
    uid = int(sh("id", "-u", "nix-sandbox"))
    assert status["Uid"].split() == [str(uid)] * 4 and 0 < uid < 1000, status["Uid"]
    two = 1 << 6 | 1 << 7                # CAP_SETGID, CAP_SETUID
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == two, (name, status[name])
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def case_verify():
    """systemd-analyze verify has nothing to say about any unit."""
    units = [p for p in sh("sh", "-c", "ls /usr/lib/systemd/system/sandboxd* /usr/lib/systemd/system/nix-sandbox*").split()
             if os.path.isfile(p)]
    assert len(units) >= 3, units
    said = sh("systemd-analyze", "verify", "--man=no", *units)
    assert said.strip() == "", said


def case_exposure():
    """systemd-analyze security finds an exposure of at most 4.2."""
    said = sh("systemd-analyze", "security", "--no-pager", SERVICE)
    level = re.search(r"Overall exposure level for sandboxd\.service: ([0-9.]+)", said)
    assert level, said[-500:]
    assert float(level[1]) <= EXPOSURE_MAX, level[0]


def case_doctor():
    """doctor finds nothing wrong with this machine, which has the whole of cgroup v2 but no node."""
    checks = root.ctl("doctor")["checks"]
    bad = [c for c in checks if c["verdict"] != "ok" and not c["name"].startswith("environment ")]
    assert not bad, bad
    assert "layout v2" in [c["detail"] for c in checks if c["name"] == "cgroups"], checks

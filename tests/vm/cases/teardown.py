# SPDX-License-Identifier: MIT
"""What is left when it is over: nothing. Comes last."""
import os

from guestlib import CONFIG, SERVICE, SLICE, configure, other, processes_of, read, sh, tester, wait_for, write

PROGRAMS = ("sandboxd", "sandbox-agent", "sandbox-snapshot"[:15], "sandbox-environments"[:15], "sandbox-proxy", "sandbox-become", "bwrap")


def left():
    """Lines about what belongs to the service."""
    found = [f"process {p} ({name})" for name in PROGRAMS for p in processes_of(name)]
    found += [f"group {d}" for d, _, _ in os.walk(SLICE) if "/u1" in d or "sandboxd.service" in d]
    found += [f"mount {line.split()[4]}" for line in read("/proc/self/mountinfo").splitlines() if "nix-sandbox" in line]
    if os.path.isdir("/run/nix-sandbox"):
        found += [f"/run/nix-sandbox/{f}" for f in os.listdir("/run/nix-sandbox")]
    return found


def case_stop():
    """systemctl stop of socket and service leaves no process, group, mount or file in the runtime directory."""
    configure()
    tester.run("import subprocess\np = [subprocess.Popen(['sleep', '600']) for _ in range(5)]", "one")
    tester.run("sleep 600 & disown; x=1", "one", env="shell")
    other.run("x = 1", "two")
    other.ctl("freeze", "two")
    assert len(processes_of("sleep")) >= 6
    sh("systemctl", "stop", "sandboxd.socket", SERVICE)
    assert not processes_of("sleep"), "a child of a session survived"
    wait_for(lambda: not left(), lambda: f"nothing is left; there is {left()}", 10)


def case_remove():
    """Removing the package ends everything and leaves its configuration; purging leaves nothing but the users."""
    write(CONFIG, "{}")
    sh("systemctl", "start", "sandboxd.socket")
    tester.run("import subprocess\np = subprocess.Popen(['sleep', '600'])", "last")
    sh("dpkg", "--remove", "nix-sandbox")
    wait_for(lambda: not left(), lambda: f"nothing is left; there is {left()}", 10)
    assert not processes_of("sleep") and os.path.exists(CONFIG)
    assert sh("systemctl", "list-unit-files", "--no-legend", "sandboxd*", "nix-sandbox*", check=False).strip() == ""

    os.unlink(CONFIG)                       # an administrator's own, like its directory
    os.rmdir(os.path.dirname(CONFIG))
    sh("dpkg", "--purge", "nix-sandbox")
    assert "nix-sandbox" not in sh("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n")
    paths = sh("find", "/etc", "/usr", "/var", "/run", "-xdev", "-iname", "*nix-sandbox*", "-not", "-path", "/run/payload/*",
               "-not", "-path", "/run/results/*").split()
    assert not paths, paths
    assert sh("getent", "passwd", "nix-sandbox"), "files of his may be in a backup: as Debian has it, the user stays"

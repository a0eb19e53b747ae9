# SPDX-License-Identifier: MIT
"""make deb: what is in the package, what its scripts do, and that lintian has nothing to say."""
import os
import re
import shutil
import subprocess

import pytest

from daemonlib import BUILD, ROOT, public_directory, removed
from test_install import files_below, make

pytestmark = pytest.mark.skipif(not shutil.which("dh"), reason="debhelper is not installed")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture(scope="module")
def package():
    with removed(public_directory()) as scratch:
        # Its own build directory, so that a package that somebody has made stays.
        make("deb", f"BUILD={scratch}/build", writable=[scratch])
        folder = os.path.join(scratch, "build", "deb")
        found = [f for f in os.listdir(folder) if f.endswith(".deb")]
        assert len(found) == 1, found
        yield os.path.join(folder, found[0])


def test_version(package):
    with open(os.path.join(ROOT, "lib", "version.h"), encoding="utf-8") as f:
        version = re.search(r'NIX_SANDBOX_VERSION "(.*)"', f.read())[1]
    assert output("dpkg-deb", "-f", package, "Version").strip() == version


def test_same_files_as_make_install(package):
    with removed(public_directory()) as scratch:
        subprocess.run(["dpkg-deb", "-x", package, f"{scratch}/deb"], check=True)
        make("install", f"DESTDIR={scratch}/make", writable=[scratch])
        packed = {re.sub(r"^(usr/)?lib/|\.gz$", lambda m: "" if m[0] == ".gz" else "lib/", f) for f in files_below(f"{scratch}/deb")}
        made = {re.sub("^usr/lib/", "lib/", f) for f in files_below(f"{scratch}/make")}
    doc = "usr/share/doc/nix-sandbox/"
    assert made - packed == {doc + "LICENSE", doc + "CHANGELOG.md"}
    assert packed - made == {doc + "copyright", doc + "changelog", "usr/share/lintian/overrides/nix-sandbox"}


def test_scripts(package):
    """Only the socket is enabled, started, and stopped at removal; an upgrade ends no session; a purge leaves no state."""
    with removed(public_directory()) as scratch:
        subprocess.run(["dpkg-deb", "-e", package, f"{scratch}/control"], check=True)
        scripts = {}
        for name in ("preinst", "postinst", "prerm", "postrm"):
            path = os.path.join(scratch, "control", name)
            scripts[name] = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    assert "systemd-sysusers" in scripts["postinst"] and "systemd-tmpfiles" in scripts["postinst"]
    assert "deb-systemd-helper enable 'sandboxd.socket'" in scripts["postinst"]
    assert "deb-systemd-invoke start 'sandboxd.socket'" in scripts["postinst"]
    assert "sandboxd.service" not in "".join(scripts.values()) and "restart" not in "".join(scripts.values())
    assert "deb-systemd-invoke stop 'sandboxd.socket'" in scripts["prerm"] and '= remove ]' in scripts["prerm"]
    assert "rm -rf /var/lib/nix-sandbox" in scripts["postrm"]
    assert not scripts["preinst"]


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian(package):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", package], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout

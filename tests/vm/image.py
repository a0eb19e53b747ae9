# SPDX-License-Identifier: MIT
"""How a Debian image for the vm and trixie tiers is made: the root tree (also a chroot to build in), the suite's own
kernel, an initramfs with nothing but the disk's driver, the ext4 file system, and the RAM of a machine that has started
from it. This file is part of the image's hash: what does not change an image is in cache.py.
"""
import glob
import lzma
import os
import re
import shutil
import subprocess
import tempfile

import machine

HERE = os.path.dirname(os.path.realpath(__file__))
SUITES = ("bookworm", "trixie")
BUILD_S = 420
DISK_SIZE = "3G"

RUNTIME = ["adduser", "bubblewrap", "dbus", "kmod", "libpam-systemd", "polkitd", "procps", "python3", "systemd",
           "systemd-sysv", "util-linux"]
# What the unit tests and the package need beyond what is needed to build.
BUILD = ["debhelper", "libcriterion-dev"]
SUITE_BUILD = {"bookworm": [], "trixie": ["systemd-dev"]}
# In the order in which they depend on each other; what is not there is built into the kernel.
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk", "crc16",
           "mbcache", "jbd2", "crc32c_generic", "ext4")
NEEDED = ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mkfs.ext4", "cpio", "gcc")


class Unavailable(Exception):
    """This machine cannot have images; the text says why."""


class StepFailed(Exception):
    """A step of the making failed; the text has its output."""


def host_suite():
    with open("/etc/os-release", encoding="utf-8") as f:
        found = re.search(r"^VERSION_CODENAME=(\w+)$", f.read(), re.M)
    return found[1] if found else None


def packages(suite):
    """The compiler and all only where this machine is of another suite; libraries, which the package depends on and
    which a machine without a network cannot get, come with what is needed to link to them."""
    build = subprocess.run([os.path.join(HERE, "..", "..", "tools", "install-deps"), "list"], capture_output=True, text=True,
                           check=True, timeout=60).stdout.split()
    if suite == host_suite():
        build = [p for p in build if p.endswith("-dev")]
    else:
        build += BUILD + SUITE_BUILD[suite]
    return sorted({*RUNTIME, *build})


def check_machine():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [p for p in NEEDED if not shutil.which(p, path=path)]
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise Unavailable("only root can make a Debian tree with all its owners")


def run(command, failure=StepFailed):
    """A step of the making."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=BUILD_S, check=False)
    except subprocess.TimeoutExpired as e:
        raise failure(f"{command[0]} did not end within {BUILD_S} s") from e
    if done.returncode != 0:
        text = done.stdout.decode(errors="replace").strip()[-1500:]
        raise failure(f"{os.path.basename(command[0])} failed with status {done.returncode}:\n{text}")


def make_tree(suite, tree):
    """No archive is named: mmdebstrap knows where its suites are, and what apt is told on this machine counts. Its
    mounts are in a namespace of their own and end with it, however it ends."""
    run(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
         "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(packages(suite))}",
         '--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/man/*",
         "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
         f"--customize-hook={os.path.join(HERE, 'guest', 'fetch-kernel')}",
         "--customize-hook=chroot $1 useradd -m -u 1000 -s /bin/bash tester",
         "--customize-hook=chroot $1 useradd -m -u 1001 -s /bin/bash other",
         "--customize-hook=rm -rf $1/var/lib/apt/lists/* $1/var/cache/apt/*",
         "--format=directory", suite, tree], failure=Unavailable)
    shutil.copy(os.path.join(HERE, "guest", "agent"), os.path.join(tree, "usr/local/sbin/vm-agent"))
    shutil.copy(os.path.join(HERE, "guest", "agent.service"), os.path.join(tree, "etc/systemd/system/vm-agent.service"))
    run([os.path.join(HERE, "guest", "customise"), tree])
    run(["gcc", "-O2", "-static", "-s", "-o", os.path.join(tree, "usr/local/sbin/vm-exit"),
         os.path.join(HERE, "guest", "vm-exit.c")])


def add_module(unpacked, name, target):
    """False if it is not a module of this kernel."""
    found = glob.glob(os.path.join(unpacked, "**", f"{name}.ko*"), recursive=True)
    if not found:
        return False
    with (lzma.open if found[0].endswith(".xz") else open)(found[0], "rb") as f, open(target, "wb") as out:
        shutil.copyfileobj(f, out)
    return True


def make_kernel(tree, folder):
    with tempfile.TemporaryDirectory(dir=folder) as work:
        unpacked, ramfs = os.path.join(work, "kernel"), os.path.join(work, "ramfs")
        run(["dpkg-deb", "-x", glob.glob(os.path.join(tree, "kernel", "*.deb"))[0], unpacked])
        shutil.rmtree(os.path.join(tree, "kernel"))
        shutil.move(glob.glob(os.path.join(unpacked, "boot", "vmlinuz-*"))[0], os.path.join(folder, "vmlinuz"))

        os.makedirs(os.path.join(ramfs, "modules"))
        n = 0
        for name in MODULES:
            n += add_module(unpacked, name, os.path.join(ramfs, "modules", f"{n:02}.ko"))
        run(["gcc", "-O2", "-static", "-s", "-o", os.path.join(ramfs, "init"), os.path.join(HERE, "guest", "init.c")])
        run(["sh", "-c", 'cd "$1" && find . | cpio --quiet -o -H newc >"$2"', "sh", ramfs, os.path.join(folder, "initrd")])


def make(suite, folder):
    tree = os.path.join(folder, "tree")
    make_tree(suite, tree)
    make_kernel(tree, folder)
    run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal,^metadata_csum", "-E", "root_owner=0:0", "-d", tree,
         os.path.join(folder, "root.ext4"), DISK_SIZE])
    if suite == host_suite():
        shutil.rmtree(tree)
    machine.make_snapshot(folder)

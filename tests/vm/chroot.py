# SPDX-License-Identifier: MIT
"""Builds in the root tree of an image: another suite's compiler and libraries, this machine's kernel.

What is written to the tree lands in memory, and all mounts are in a namespace that ends with the command, so nothing
of the image or of the machine changes but the build directory. What makes namespaces of its own (bubblewrap) cannot
run in a chroot. Of the network there is a loopback.
"""
import os
import subprocess
import tempfile

import image

ROOT = os.path.dirname(os.path.dirname(image.HERE))
BUILD_S = 540

ENTER = r"""
ip link set lo up
lower=$1 source=$2 build=$3 work=$4 tree=$4/tree; shift 4
mount -n -t tmpfs -o mode=755 work "$work"
mkdir "$work/upper" "$work/overlay" "$tree"
mount -n -t overlay -o "lowerdir=$lower,upperdir=$work/upper,workdir=$work/overlay" overlay "$tree"
mount -n -t proc proc "$tree/proc"
mount -n -t tmpfs -o mode=1777 tmp "$tree/tmp"
mount -n -t tmpfs -o mode=755 run "$tree/run"
mount -n -t tmpfs -o mode=755 dev "$tree/dev"
mkdir -m 1777 "$tree/dev/shm"
mknod -m 666 "$tree/dev/null" c 1 3
mknod -m 666 "$tree/dev/zero" c 1 5
mknod -m 666 "$tree/dev/full" c 1 7
mknod -m 666 "$tree/dev/random" c 1 8
mknod -m 666 "$tree/dev/urandom" c 1 9
ln -s /proc/self/fd "$tree/dev/fd"
mount -n -t tmpfs -o mode=755 mnt "$tree/mnt"
mkdir "$tree/mnt/source" "$tree/mnt/build"
mount -n --bind "$source" "$tree/mnt/source" && mount -n -o remount,bind,ro "$tree/mnt/source"
mount -n --bind "$build" "$tree/mnt/build"
cd /
exec chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 BUILD=/mnt/build \
        sh -c 'cd /mnt/source && exec "$@"' sh "$@"
"""


def call(path, build, *command):
    """Runs command in the source tree, mounted with build as /mnt/source and /mnt/build; (status, output)."""
    os.makedirs(build, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nix-sandbox-chroot-") as work:
        try:
            done = subprocess.run(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--ipc",
                                   "--uts", "--net", "bash", "-euc", ENTER, "bash", os.path.join(path, "tree"), ROOT, build,
                                   work, *command],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=BUILD_S, check=False)
        except subprocess.TimeoutExpired as e:
            return 124, (e.stdout or b"").decode(errors="replace") + f"\ndid not end within {BUILD_S} s"
    return done.returncode, done.stdout.decode(errors="replace")

# SPDX-License-Identifier: MIT
"""Images are made once and kept outside the clone, as ~/.cache/nix-sandbox/vm-SUITE-HASH.

HASH covers all that goes in, so a changed script makes a new image. It is made under another name and renamed when
complete. Whoever uses one holds a shared lock on it; old ones are removed when nobody does.
"""
import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import tempfile
import time

import image
import machine

HERE = os.path.dirname(os.path.realpath(__file__))
KEEP_UNUSED_S = 24 * 3600


def digest(suite):
    h = hashlib.sha256()
    for path in [*sorted(glob.glob(os.path.join(HERE, "guest", "*"))), image.__file__, machine.__file__]:
        with open(path, "rb") as f:
            h.update(os.path.basename(path).encode() + b"\0" + f.read() + b"\0")
    h.update(repr((suite, image.packages(suite), machine.version())).encode())
    return h.hexdigest()[:16]


def cache_folder():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "nix-sandbox")


@contextlib.contextmanager
def locked(path, operation):
    """Holds path's lock file; yields whether it was got."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, operation)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


def remove_old(cache, suite, current):
    """Other images of this suite that nobody has used for a day, and what a killed making left."""
    for name in os.listdir(cache):
        path = os.path.join(cache, name)
        if not re.fullmatch(rf"vm-{suite}-(?:[0-9a-f]{{16}}|new-\w+)", name) or path == current or os.path.islink(path):
            continue
        if not os.path.isdir(path) or time.time() - os.lstat(path).st_mtime < KEEP_UNUSED_S:
            continue
        with locked(path + ".lock", fcntl.LOCK_EX | fcntl.LOCK_NB) as free:
            if free:
                shutil.rmtree(path, ignore_errors=True)
                os.unlink(path + ".lock")


@contextlib.contextmanager
def get(suite):
    """The directory of suite's image, made if it is not there; nobody removes it meanwhile."""
    image.check_machine()
    cache = cache_folder()
    os.makedirs(cache, mode=0o700, exist_ok=True)
    path = os.path.join(cache, f"vm-{suite}-{digest(suite)}")

    with locked(os.path.join(cache, f"vm-{suite}.making"), fcntl.LOCK_EX):
        remove_old(cache, suite, path)
        if not os.path.isdir(path):
            work = tempfile.mkdtemp(prefix=f"vm-{suite}-new-", dir=cache)
            try:
                os.chmod(work, 0o755)
                image.make(suite, work)
                os.rename(work, path)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        lock = contextlib.ExitStack()
        lock.enter_context(locked(path + ".lock", fcntl.LOCK_SH))
    with lock:
        os.utime(path)
        yield path

# SPDX-License-Identifier: MIT
"""A measuring program that uses an inner interface keeps up with it. Its figures are no matter here."""
import os
import subprocess

from daemonlib import BUILD, ROOT
from relaylib import needs_jails


def test_store():
    done = subprocess.run([os.path.join(ROOT, "bench", "snapshots"), "--build", BUILD, "--only", "store"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert [line.split(",")[1].split()[:3] for line in done.stdout.splitlines()] == [
        ["1", "MB", "saved"], ["1", "MB", "loaded"], ["100", "MB", "saved"], ["100", "MB", "loaded"]]


@needs_jails
def test_proxy():
    done = subprocess.run([os.path.join(ROOT, "bench", "proxy"), "--build", BUILD, "--megabytes", "4"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert [" ".join(line.split()[:4]).rstrip(",") for line in done.stdout.splitlines() if "from a jail" in line] == [
        "download, from a jail", "download, 200 at once", "upload, from a jail", "upload, 200 at once", "connection, from a jail"]

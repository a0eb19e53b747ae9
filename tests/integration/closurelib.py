# SPDX-License-Identifier: MIT
"""A store of this host's programs, and environments in it."""
import os
import shutil
import subprocess

from daemonlib import ROOT, public_directory

INTERPRETERS = ["python", "bash", "node"]


class Closure:
    """What tests/nix/host-closure makes below a directory that every user can reach."""

    def __init__(self, names=()):
        self.directory = public_directory()
        subprocess.run([os.path.join(ROOT, "tests/nix/host-closure"), "all", self.directory, *names], check=True,
                       env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
        self.store = os.path.join(self.directory, "store")
        self.list = os.path.join(self.directory, "store-paths")
        self.root = os.path.realpath(os.path.join(self.directory, "root"))

    def paths(self):
        with open(self.list, encoding="utf-8") as f:
            return f.read().split()

    def add(self, name, path=None, listed=True):
        """A path of the store with a file or what path is; its own path."""
        added = os.path.join(self.store, "0" * 32 + "-" + name)
        if path:
            os.symlink(path, added)
        else:
            os.mkdir(added)
            with open(os.path.join(added, "file"), "w", encoding="utf-8") as f:
                f.write(name)
        if listed:
            with open(self.list, "a", encoding="utf-8") as f:
                f.write(added + "\n")
        return added

    def environment(self, **more):
        return {"interpreters": INTERPRETERS, "root": self.root, "closure": self.list, **more}

    def config(self, **more):
        return {"environments": {"closed": self.environment()}, **more}

    def remove(self):
        shutil.rmtree(self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

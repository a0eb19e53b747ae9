# SPDX-License-Identifier: MIT
"""Environment artifacts that tests drop into directories, with a bash of their own, since a jail sees nothing else."""
import json
import os
import subprocess

HOST_CLOSURE = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "nix", "host-closure")


class Artifacts:
    """A store below a directory, and the directories of artifacts beside it."""

    def __init__(self, root, uid=None):
        self.root, self.uid = root, uid
        self.store = os.path.join(root, "store")
        os.makedirs(self.store, exist_ok=True)

    def directory(self, name="environments.d"):
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        self.own(path)
        return path

    def own(self, path):
        if self.uid is not None:
            os.lchown(path, self.uid, self.uid)

    @property
    def bash(self):
        """A store path."""
        path = os.path.join(self.store, "hash-bash")
        if not os.path.exists(path):
            subprocess.run([HOST_CLOSURE, "package", "bash", path], check=True)
        return path

    def environment(self, name):
        """A store path with bin/."""
        path = os.path.join(self.store, f"hash-sandbox-env-{name}")
        if not os.path.exists(path):
            subprocess.run([HOST_CLOSURE, "environment", path, self.bash], check=True)
        return path

    def make(self, label, path=None, **members):
        """An artifact in the store, or at a path; returns that. A member that is None is left out."""
        root = self.environment(label)
        path = path or os.path.join(self.store, f"hash-sandbox-artifact-{label}-{self.uid}")
        os.makedirs(path, exist_ok=True)
        text = {"version": 1, "name": label, "interpreters": ["bash"], "root": root, "closure": "store-paths", **members}
        self.write(os.path.join(path, "store-paths"), f"{self.bash}\n{root}\n")
        self.write(os.path.join(path, "environment.json"), json.dumps({k: v for k, v in text.items() if v is not None}))
        self.own(path)
        return path

    def write(self, path, text):
        """At once, as who is careful does it."""
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        self.own(path + ".new")
        os.rename(path + ".new", path)

    def drop(self, directory, name, **members):
        """What an administrator does: a link to an artifact in the store."""
        link = os.path.join(directory, name)
        os.symlink(self.make(name, **members), link + ".new")
        self.own(link + ".new")
        os.rename(link + ".new", link)
        return link

# SPDX-License-Identifier: MIT
"""Nix for the tests: with a store of its own in a temporary directory, without a daemon, a network or nixpkgs.

Expressions name the repository as <repo/...> and the stand-in for nixpkgs as <nixpkgs>. Builders run without Nix's
sandbox: it would bind host directories into its root, and as root would write through them.
"""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
STAND_IN = os.path.join(ROOT, "tests", "nix", "stand-in")
PACKAGE = "with import <nixpkgs> { }; callPackage <repo/nix/package.nix> { }"
SYSTEMS = ("x86_64-linux", "aarch64-linux")

CONFIG = """
build-users-group =
sandbox = false
substitute = false
substituters =
flake-registry =
experimental-features = nix-command flakes
cores = {cores}
max-jobs = {cores}
"""


def nix_files():
    """Every .nix file of the repository, as paths below ROOT; also those that git does not know yet."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.nix"],
                            capture_output=True, check=True).stdout
    return sorted(f for f in listed.decode().split("\0") if f and os.path.exists(os.path.join(ROOT, f)))


def quoted(value):
    """A Nix string literal."""
    return json.dumps(str(value)).replace("${", "\\${")


class Nix:
    """One store; close() removes it, whose paths Nix makes read-only."""

    def __init__(self):
        # Everyone may read it, so that sessions of other users can run what is built here.
        self.root = tempfile.mkdtemp(prefix="nix-sandbox-nix-", dir="/tmp")
        os.chmod(self.root, 0o755)
        self.store = os.path.join(self.root, "store")
        self.scratch = os.path.join(self.root, "scratch")
        os.mkdir(self.scratch)
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": os.path.join(self.root, "home"),
            "XDG_CACHE_HOME": os.path.join(self.root, "cache"),
            "TMPDIR": self.scratch,
            "NIX_STORE_DIR": self.store,
            "NIX_STATE_DIR": os.path.join(self.root, "var"),
            "NIX_LOCALSTATE_DIR": os.path.join(self.root, "var"),
            "NIX_LOG_DIR": os.path.join(self.root, "log"),
            "NIX_CONF_DIR": os.path.join(self.root, "etc"),
            "NIX_CONFIG": CONFIG.format(cores=os.cpu_count() or 1),
            "NIX_PATH": f"repo={ROOT}:nixpkgs={STAND_IN}",
            "LC_ALL": "C.UTF-8",
        }

    def close(self):
        for folder, _, _ in os.walk(self.root):
            os.chmod(folder, 0o755)
        shutil.rmtree(self.root)

    def run(self, *argv, check=True, cwd=None, timeout=300):
        """Runs a program of Nix; its completed process, with text."""
        done = subprocess.run(argv, cwd=cwd or self.root, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, check=False)
        assert not check or done.returncode == 0, f"{' '.join(argv)[:300]}\n{done.stderr[-6000:]}"
        return done

    def eval(self, expression):
        """The value of an expression."""
        return json.loads(self.run("nix-instantiate", "--eval", "--strict", "--json", "-E", expression).stdout)

    def refused(self, expression):
        """Why an expression cannot be evaluated."""
        done = self.run("nix-instantiate", "--eval", "--strict", "--json", "-E", expression, check=False)
        assert done.returncode != 0, f"evaluated to {done.stdout[:600]}"
        return done.stderr

    def build_all(self, expression, timeout=300):
        """The store paths of an expression's derivations; built once for each store."""
        return self.run("nix-build", "--no-out-link", "-E", expression, timeout=timeout).stdout.split()

    def build(self, expression, timeout=300):
        """The store path of an expression that is one derivation with one output."""
        (path,) = self.build_all(expression, timeout)
        return path

    def name(self, path):
        """What a store path is called, without its hash."""
        return os.path.relpath(path, self.store).split("-", 1)[1]

    def closure(self, path):
        """A store path and all that it refers to."""
        return sorted(self.run("nix-store", "--query", "--requisites", path).stdout.split())

    @contextlib.contextmanager
    def source_tree(self):
        """A copy of the repository as a git tree of its own, because a flake has what git knows of only."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as tree:
            listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                    capture_output=True, check=True).stdout
            for name in filter(None, listed.decode().split("\0")):
                source, copy = os.path.join(ROOT, name), os.path.join(tree, name)
                if os.path.lexists(source):
                    os.makedirs(os.path.dirname(copy), exist_ok=True)
                    shutil.copy2(source, copy, follow_symlinks=False)
            for words in (["init", "--quiet"], ["add", "--all"]):
                subprocess.run(["git", "-C", tree, *words], env=self.env, check=True, capture_output=True)
            yield tree

    def flake(self, tree, *words, check=True, timeout=300):
        """nix WORDS in a flake, with the stand-in as its nixpkgs."""
        return self.run("nix", *words, "--override-input", "nixpkgs", f"path:{STAND_IN}", "--no-write-lock-file",
                        cwd=tree, check=check, timeout=timeout)

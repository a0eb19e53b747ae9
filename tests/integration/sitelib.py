# SPDX-License-Identifier: MIT
"""What tools fetch from a server of weblib.py: a package index of Python, a registry of npm, a repository of git."""
import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

WHEEL = "sandboxed-1.0-py3-none-any.whl"
HAS_GIT = shutil.which("git") is not None


def wheel():
    inside = {
        "sandboxed.py": "WORD = 'fetched'\n",
        "sandboxed-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sandboxed\nVersion: 1.0\n",
        "sandboxed-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    inside["sandboxed-1.0.dist-info/RECORD"] = "".join(f"{path},,\n" for path in [*inside, "sandboxed-1.0.dist-info/RECORD"])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for path, text in inside.items():
            z.writestr(path, text)
    return data.getvalue()


def npm_package():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, text in (("package/package.json", json.dumps({"name": "sandboxed", "version": "1.0.0"})),
                           ("package/index.js", "module.exports = 'fetched'\n")):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(text), 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def npm_entry(origin, tarball):
    hashed = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    version = {"name": "sandboxed", "version": "1.0.0",
               "dist": {"tarball": f"{origin}/npm/sandboxed/-/sandboxed-1.0.0.tgz", "integrity": f"sha512-{hashed}"}}
    return json.dumps({"name": "sandboxed", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()


def git_repository():
    """{path below it: bytes} of a bare repository that is read by plain HTTP."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="nsc-") as d:
        def git(*args):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@host.example", *args], cwd=d, check=True, capture_output=True,
                           timeout=30, env={"PATH": os.environ["PATH"], "HOME": d, "GIT_CONFIG_NOSYSTEM": "1"})
        git("init", "-q", "-b", "main", "work")
        with open(os.path.join(d, "work", "file"), "w", encoding="ascii") as f:
            f.write("fetched\n")
        git("-C", "work", "add", "file")
        git("-C", "work", "commit", "-q", "-m", "one")
        git("clone", "-q", "--bare", "work", "bare")
        git("-C", "bare", "update-server-info")
        bare = os.path.join(d, "bare")
        for top, _, files in os.walk(bare):
            for name in files:
                path = os.path.join(top, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, bare)] = f.read()
    return found


def site(origin):
    """{path: bytes} of all of them. origin: the URL before the path, which npm is told."""
    tarball = npm_package()
    files = {
        "/simple/sandboxed/": f'<!DOCTYPE html><a href="/files/{WHEEL}">{WHEEL}</a>\n'.encode(),
        f"/files/{WHEEL}": wheel(),
        "/npm/sandboxed": npm_entry(origin, tarball),
        "/npm/sandboxed/-/sandboxed-1.0.0.tgz": tarball,
    }
    if HAS_GIT:
        files |= {f"/repository.git/{path}": data for path, data in git_repository().items()}
    return files

# SPDX-License-Identifier: MIT
"""sandbox-snapshot as the daemon runs it: a stream on its standard input or output, the answer on descriptor 3."""
import fcntl
import hashlib
import json
import os
import re
import select
import signal
import struct
import termios
import threading
import time

from daemonlib import BUILD

PROGRAM = os.path.join(BUILD, "sandbox-snapshot")
KEY = "0123456789abcdef0123456789abcdef"
SESSION = {"id": "0123456789ab", "name": "work", "project": "/p", "environment": "python", "created_usec": 5, "turns": 3}
ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}")
OK = {"ok": True, "skipped": []}
FAR = 1 << 40
DEADLINE = 60


def stream(*parts, done=True):
    """parts: (name, data, report)"""
    out = []
    for name, data, report in parts:
        out.append(b"part %s\n" % name.encode())
        for i in range(0, len(data), 262144):
            piece = data[i:i + 262144]
            out.append(b"data %d\n%s" % (len(piece), piece))
        text = report if isinstance(report, bytes) else json.dumps(report, separators=(",", ":")).encode()
        out.append(b"end %d\n%s" % (len(text), text))
    return b"".join(out) + (b"done\n" if done else b"")


def a_stream(word, size=1000):
    """A whole session's, with contents that only this word has."""
    data = {name: (f"{word} {name} ".encode() * (size // 8 + 1))[:size] for name in ("workspace", "python", "bash", "node")}
    return stream(*((name, data[name], OK) for name in data))


def high(fd):
    """A copy out of the way of the numbers that the program wants; closes fd."""
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(fd)
    return copy


class Process:
    """One run; its descriptors are there to be fed and read by the test."""

    def __init__(self, *args, description=None, program=PROGRAM):
        fds = [high(fd) for pair in (os.pipe(), os.pipe(), os.pipe()) for fd in pair]
        child_in, self.stdin, self.stdout, child_out, self.answer, child_answer = fds
        memory = high(os.memfd_create("description"))
        os.write(memory, description if isinstance(description, bytes) else json.dumps(description).encode())
        os.lseek(memory, 0, os.SEEK_SET)
        actions = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in ((0, child_in), (1, child_out), (3, child_answer), (4, memory))]
        self.pid = os.posix_spawn(program, [program, *map(str, args)], os.environ, file_actions=actions)
        self.status = None
        for fd in (child_in, child_out, child_answer, memory):
            os.close(fd)

    def feed(self, data):
        """False when it does not read all of it."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.stdin, view[:65536]):]
            except BrokenPipeError:
                return False
        return True

    def feed_end(self):
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def wait_taken(self):
        """Until it has read all that was fed."""
        end = time.monotonic() + DEADLINE
        while struct.unpack("i", fcntl.ioctl(self.stdin, termios.FIONREAD, b"\0" * 4))[0] > 0:
            assert time.monotonic() < end, "it does not read"
            time.sleep(0.001)

    def kill(self, sig=signal.SIGKILL):
        os.kill(self.pid, sig)

    @staticmethod
    def read_all(fd):
        out = []
        while True:
            assert select.select([fd], [], [], DEADLINE)[0], "it does not end"
            piece = os.read(fd, 1 << 20)
            if not piece:
                return b"".join(out)
            out.append(piece)

    def end(self):
        """(answer or None, output); the process is gone then."""
        found = {}
        reader = threading.Thread(target=lambda: found.update(output=self.read_all(self.stdout)))
        reader.start()
        text = self.read_all(self.answer)
        reader.join()
        self.feed_end()
        self.status = os.waitpid(self.pid, 0)[1]
        os.close(self.answer)
        os.close(self.stdout)
        assert not os.WIFSIGNALED(self.status) or os.WTERMSIG(self.status) in (signal.SIGKILL, signal.SIGTERM), "it crashed"
        return (json.loads(text) if text else None), found["output"]


class Store:
    def __init__(self, root, uid=7, key=KEY):
        self.root, self.uid, self.key = root, uid, key

    @property
    def place(self):
        return os.path.join(self.root, f"u{self.uid}", self.key)

    def base(self):
        return "--root", self.root, "--uid", self.uid, "--key", self.key

    def start_save(self, keep=5, max_bytes=FAR, user_max_bytes=FAR, expire=FAR // 1000, description=None, history=None):
        if description is None:
            description = {"session": SESSION, "reason": "by-hand", "tool": "0.1", **({"history": history} if history else {})}
        return Process("save", *self.base(), "--max-bytes", max_bytes, "--user-max-bytes", user_max_bytes, "--keep", keep,
                       "--expire-seconds", expire, description=description)

    def save(self, data, **more):
        p = self.start_save(**more)
        p.feed(data)
        p.feed_end()
        answer, output = p.end()
        assert answer is not None and output == b""
        return answer

    def good_save(self, data, **more):
        answer = self.save(data, **more)
        assert answer["ok"], answer
        return answer["id"]

    def run(self, *args):
        p = Process(*args, description={})
        return p.end()

    def load(self, *more, expire=FAR // 1000):
        return self.start_load(*more, expire=expire).end()

    def start_load(self, *more, expire=FAR // 1000):
        return Process("load", *self.base(), "--expire-seconds", expire, *more, description={})

    def list(self, expire=FAR // 1000):
        return self.run("list", *self.base(), "--expire-seconds", expire)[0]

    def list_all(self):
        return self.run("list", "--root", self.root, "--uid", self.uid, "--all-keys", "--expire-seconds", FAR // 1000)[0]

    def close(self):
        return self.run("close", *self.base())[0]

    def prune(self, keep=5, expire=FAR // 1000):
        return self.run("prune", "--root", self.root, "--keep", keep, "--expire-seconds", expire)[0]

    def names(self):
        """What is in the key's directory."""
        return sorted(os.listdir(self.place)) if os.path.isdir(self.place) else []

    def ids(self):
        return [n for n in self.names() if ID.fullmatch(n)]

    def leftovers(self):
        return [n for n in self.names() if n.startswith(".")]


def rewrite_manifest(folder, change):
    """With a checksum that is right again; change is given the object."""
    path = os.path.join(folder, "manifest")
    with open(path, "rb") as f:
        o = json.loads(f.read().split(b"\n", 1)[1])
    change(o)
    body = json.dumps(o).encode() + b"\n"
    with open(path, "wb") as f:
        f.write(b"sha256 %s\n%s" % (hashlib.sha256(body).hexdigest().encode(), body))


def fingerprint(folder):
    """All of a directory: names, kinds and contents."""
    found = {}
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(where, name)
            relative = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[relative] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    found[relative] = hashlib.sha256(f.read()).hexdigest()
            else:
                found[relative] = None
    return found

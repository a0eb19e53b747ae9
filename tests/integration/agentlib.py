# SPDX-License-Identifier: MIT
"""Runs the built sandbox-agent over a socketpair, without bwrap, and speaks lib/agent-protocol.h with it."""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
AGENT = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")), "sandbox-agent")
FAKE = os.path.join(ROOT, "tests", "integration", "fake_driver.py")

REQUEST, RESULT, STDOUT, STDERR, STDOUT_TAIL, STDERR_TAIL, EVENT, INTERRUPT, ATTACH, OPERATE, OPERATED, VALUE = range(1, 13)
VALUE_KINDS = ("result", "image/png", "image/jpeg", "image/svg+xml", "text/html")
ATTACH_TURN, NONCE = 2 ** 64 - 1, 32
HEADER = struct.Struct(">IBQ")
WAIT = 30.0


def whole(result):
    """A result with what goes without saying."""
    stream = {"bytes": 0, "omitted": 0, "dropped": 0, "file": None}
    return {"signal": 0, "timed_out": False, "interrupted": False, "state": "kept", "restarted": False, "late": False,
            "error": None, "error_text": None, **result,
            **{name: {**stream, **result.get(name, {})} for name in ("stdout", "stderr")}}


class Turn:
    """What came back of a turn: the members of RESULT, and the output as one would show it."""

    def __init__(self, number):
        self.number = number
        self.head = {STDOUT: b"", STDERR: b""}
        self.tail = {STDOUT: b"", STDERR: b""}
        self.values = []                # kind and bytes
        self.result = None

    def __getattr__(self, name):
        return self.result[name]

    @property
    def out(self):
        return self.head[STDOUT] + self.tail[STDOUT]

    @property
    def err(self):
        return self.head[STDERR] + self.tail[STDERR]


def become(uid, nproc=None, fsize=None, ignore_sigchld=False):
    """In the child, before the agent is executed."""
    if nproc is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (nproc, nproc))
    if fsize is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fsize, fsize))
    if ignore_sigchld:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


JAIL = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--as-pid-1", "--new-session", "--die-with-parent",
        "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--dev-bind", "/", "/", "--proc", "/proc", "--"]


class Agent:
    """An agent process. fake: which programs are the fake driver; path: where others are; namespace: as pid
    1 of one; mounts: a script for a mount namespace of its own, $0 is the workspace; jail: by bubblewrap, with a loopback of
    its own; network: the path of the socket that it is to have; fds: whose numbers are arguments; uid, nproc, fsize,
    ignore_sigchld: what it is started as and with."""

    def __init__(self, fake=("python3",), path=":/usr/bin:/bin", namespace=False, mounts=None, env=None, wait=WAIT,
                 uid=None, jail=False, network=None, fds=(), **inherited):
        self.directory = tempfile.mkdtemp(prefix="nix-sandbox-agent-")
        self.workspace = os.path.join(self.directory, "workspace")
        self.number, self.operation, self.inbox, self.wait = 0, 0, b"", wait
        self.request, self.checkpoints = {}, []         # more members of each request; what events have told
        programs = os.path.join(self.directory, "bin")
        os.mkdir(self.workspace)
        os.mkdir(programs)
        if uid is not None:
            os.chmod(self.directory, 0o755)
            os.chown(self.workspace, uid, uid)
        for name in fake:
            os.symlink(FAKE, os.path.join(programs, name))
        ours, theirs = socket.socketpair()
        ours.settimeout(wait)
        self.socket = ours
        command = [AGENT, str(theirs.fileno()), *map(str, fds)]
        passed = [theirs.fileno(), *fds]
        if network:
            passed.append(os.open(network, os.O_PATH))
            command.append(f"network={passed[-1]}")
        if jail:
            command = JAIL + command
        if namespace:
            command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] + command
        if mounts:
            command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", mounts + '; cd "$0"; exec "$@"',
                       self.workspace] + command
        self.process = subprocess.Popen(
            command, cwd=self.workspace, pass_fds=passed, stdin=subprocess.DEVNULL,
            preexec_fn=lambda: become(uid, **inherited),
            env={"PATH": programs + path, "HOME": self.workspace, "LANG": "C.UTF-8", **(env or {})})
        theirs.close()
        if network:
            os.close(passed[-1])
        kind, turn, payload = self.receive()
        assert (kind, turn) == (EVENT, 0)
        self.hello = json.loads(payload)

    def send(self, kind, turn, payload=b""):
        self.socket.sendall(HEADER.pack(len(payload) + 9, kind, turn) + payload)

    def receive(self):
        """The next frame, or None at the end of file."""
        while len(self.inbox) < HEADER.size or len(self.inbox) < 4 + HEADER.unpack_from(self.inbox)[0]:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.inbox += data
        length, kind, turn = HEADER.unpack_from(self.inbox)
        payload, self.inbox = self.inbox[HEADER.size:4 + length], self.inbox[4 + length:]
        return kind, turn, payload

    def begin(self, code, interpreter="python", timeout=20.0):
        self.number += 1
        head = {"type": "execute", "interpreter": interpreter, "timeout_ms": int(timeout * 1000), **self.request}
        code = code if isinstance(code, bytes) else code.encode()
        self.send(REQUEST, self.number, json.dumps(head).encode() + b"\0" + code)
        return self.number

    def end(self, number=None):
        turn = Turn(self.number if number is None else number)
        value_goes_on = False
        while turn.result is None:
            frame = self.receive()
            assert frame, "the agent ended"
            kind, of, payload = frame
            if kind == EVENT:
                self.take_event(json.loads(payload))
                continue
            assert of == turn.number
            if kind in turn.head:
                assert not turn.tail[kind]
                turn.head[kind] += payload
                assert 0 < len(payload) and len(turn.head[kind]) <= 65536
            elif kind == VALUE:
                if not value_goes_on:
                    turn.values.append((VALUE_KINDS[payload[0]], b""))
                turn.values[-1] = (VALUE_KINDS[payload[0]], turn.values[-1][1] + payload[2:])
                value_goes_on = payload[1] == 1
            elif kind in (STDOUT_TAIL, STDERR_TAIL):
                assert not turn.tail[kind - 2] and 0 < len(payload) <= 65536
                turn.tail[kind - 2] = payload
            else:
                assert kind == RESULT
                turn.result = whole(json.loads(payload))
        for stream, name in ((STDOUT, "stdout"), (STDERR, "stderr")):
            counts = turn.result[name]
            assert counts["bytes"] == len(turn.head[stream]) + len(turn.tail[stream]) + counts["omitted"]
        return turn

    def operate(self, operation, fd=None, **members):
        """Begins an operation; its id. fd is the agent's end of the channel, and closed here."""
        self.operation += 1
        payload = json.dumps({"operation": operation, **members}).encode()
        frame = HEADER.pack(len(payload) + 9, OPERATE, self.operation) + payload
        if fd is None:
            self.socket.sendall(frame)
        else:
            sent = socket.send_fds(self.socket, [frame], [fd])
            os.close(fd)
            self.socket.sendall(frame[sent:])
        return self.operation

    def operated(self, number=None):
        """The answer to an operation, which must be the next frame."""
        kind, of, payload = self.receive()
        assert (kind, of) == (OPERATED, self.operation if number is None else number)
        answer = json.loads(payload)
        assert set(answer) == {"error", "error_text", "report"}
        return answer

    def get(self, path):
        """A file of the workspace as the operation get gives it: its bytes and the answer."""
        ours, theirs = os.pipe()
        with os.fdopen(ours, "rb") as f:
            self.operate("get", theirs, path=path)
            return f.read(), self.operated()

    def take_event(self, event):
        assert event.pop("event") == "checkpoints" and event.pop("interpreter") == "python"
        self.checkpoints = event.pop("turns")
        assert not event

    def read_event(self):
        kind, turn, payload = self.receive()
        assert (kind, turn) == (EVENT, 0)
        self.take_event(json.loads(payload))
        return self.checkpoints

    def put(self, path, data, end=True, piece=100000, **members):
        """A file by the operation put, its pieces as long as told; end: whether its end is told. The answer."""
        theirs, ours = os.pipe()
        with contextlib.suppress(BrokenPipeError), os.fdopen(ours, "wb") as f:
            self.operate("put", theirs, path=path, **members)
            for n in range(0, len(data), piece):
                f.write(struct.pack(">I", len(data[n:n + piece])) + data[n:n + piece])
            f.write(struct.pack(">I", 0) if end else b"")
        return self.operated()

    def attach(self, nonce=None):
        """As another daemon does it, which has not read what was on its way; the hello of the answer."""
        nonce = nonce or os.urandom(NONCE)
        self.send(ATTACH, ATTACH_TURN, nonce)
        while nonce not in self.inbox:
            self.inbox += self.socket.recv(1 << 20)
        self.inbox = self.inbox[self.inbox.index(nonce) + NONCE:]
        kind, turn, payload = self.receive()
        assert (kind, turn) == (EVENT, 0)
        return json.loads(payload)

    def turn(self, code, interpreter="python", timeout=20.0):
        self.begin(code, interpreter, timeout)
        return self.end()

    def path(self, *names):
        return os.path.join(self.workspace, *names)

    def wait_for(self, condition):
        """Until condition() is true, which must come to pass."""
        end = time.monotonic() + self.wait
        while not (value := condition()):
            assert time.monotonic() < end, "it never came to pass"
            time.sleep(0.01)
        return value

    def wait_for_file(self, name):
        self.wait_for(lambda: os.path.exists(self.path(name)))

    def close(self):
        self.socket.close()
        try:
            self.process.wait(self.wait)
        finally:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

# SPDX-License-Identifier: MIT
"""Runs an interpreter driver as the agent would, without agent or jail, for quick tests of the drivers.

It speaks agent/driver-protocol.h and applies the same end-of-turn rule (the driver's report, then exactly
what FIONREAD says). Names inside are those of the corpus' replies, so that cases can be tried on a driver.
"""
import array
import contextlib
import fcntl
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DRIVERS = {
    "python": ("python.py", lambda text: ["/usr/bin/python3", "-I", "-c", text]),
    "bash": ("bash.sh", lambda text: bash_command("/usr/bin/bash", text)),
    "node": ("node.js", lambda text: [os.environ.get("TEST_NODE", "/usr/bin/node"), "-e", text]),
}
PYTHON_PARTS = ("checkpoint", "seldom", "values")
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "sandbox", "LOGNAME": "sandbox",
               "SHELL": "/bin/bash", "TERM": "dumb"}


def read(name):
    with open(os.path.join(ROOT, "agent", "drivers", name), encoding="utf-8") as f:
        return f.read()


def bash_command(program, text):
    return [program, "--norc", "--noprofile", "-c", text, "bash", read("bash-state.sh") + read("bash-list.sh")]


def python_state():
    """As agent/drivers.c puts it together."""
    parts = {"MAKING": ("make",), "SAVING": ("reduce", "save"), "RESTORING": ("restore",), "LISTING": ("list",)}
    return "".join(f"{name} = r'''{''.join(read(f'python-{file}.py') for file in files)}'''\n"
                   for name, files in parts.items()) + read("python-state.py")


def pending(fd):
    size = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]


class Driver:
    """One interpreter process with its driver, restarted when it has died."""

    def __init__(self, kind, workspace=None, env=None):
        self.kind = kind
        self.env = {**ENVIRONMENT, **(env or {})}
        self.borrowed = workspace
        self.workspace = workspace or tempfile.mkdtemp(prefix="nix-sandbox-driver-")
        self.process = None
        self.start()

    def start(self):
        name, argv = DRIVERS[self.kind]
        text = read(name)
        if self.kind == "python":       # as agent/drivers.c puts them together
            text = "".join(f"{name.upper()} = r'''{read(f'python-{name}.py')}'''\n" for name in PYTHON_PARTS) + text
        if self.kind == "bash":
            text += "".join(map(read, ("bash-values.sh", "bash-checkpoint.sh", "bash-start.sh")))
        if self.kind == "node":
            seldom = ", ".join(f"({read(f'node-{name}.js')})" for name in ("state", "restore", "list"))
            text = (f"({read('node-proxy.js')})(); ({text})(({read('node-source.js')})(), ({read('node-output.js')})(), ({read('node-values.js')})(), "
                    f"({read('node-operate.js')})({seldom}))")
        ours, theirs = socket.socketpair()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        null = os.open("/dev/null", os.O_RDONLY)

        def child():
            os.setsid()
            for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # as by nohup and &
                signal.signal(ignored, signal.SIG_DFL)
            for n, fd in enumerate((null, out_w, err_w, theirs.fileno())):
                os.dup2(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100), n)
                os.set_inheritable(n, True)
            for fd in map(int, os.listdir("/proc/self/fd")):   # what we were started with ourselves
                if fd > 3:
                    with contextlib.suppress(OSError):
                        os.set_inheritable(fd, False)

        self.process = subprocess.Popen(argv(text), preexec_fn=child, close_fds=False, cwd=self.workspace,
                                        env={**self.env, "HOME": self.workspace})
        for fd in (out_w, err_w, null):
            os.close(fd)
        theirs.close()
        self.control, self.out, self.err = ours, out_r, err_r
        for fd in (self.control.fileno(), self.out, self.err):
            os.set_blocking(fd, False)
        self.lines, self.ready, self.loaded, self.values = b"", False, False, []
        self.copy = None                # the last checkpoint that came as a text

    def send(self, data):
        self.control.setblocking(True)
        self.control.sendall(data)
        self.control.setblocking(False)

    def command(self, verb, *lines):
        """Asks what is none of a turn, as save; the token by which report() tells that it is done."""
        token = secrets.token_hex(8)
        if self.kind == "python" and not self.loaded:
            text = python_state().encode()
            self.send(b"load %s %d\n" % (token.encode(), len(text)) + text)
            self.loaded = True
        payload = "".join(f"{line}\n" for line in lines).encode()
        self.send(b"%s %s %d\n" % (verb.encode(), token.encode(), len(payload)) + payload)
        return token

    def turn(self, code, timeout=30.0):
        """Runs one turn: {stdout, stderr, exit_code, signal, timed_out, state} as a reply has them."""
        if self.process is None:
            self.start()
        code = code if isinstance(code, bytes) else code.encode()
        token = secrets.token_hex(8)
        self.values = []                # kind and bytes
        self.send(b"execute %s %d\n" % (token.encode(), len(code)) + code)
        got = {self.out: bytearray(), self.err: bytearray()}
        begun, stage, report = time.monotonic(), 0, None
        pidfd = os.pidfd_open(self.process.pid)
        try:
            while report is None:
                deadline = begun + timeout + (0, 1, 2)[stage]
                ready, _, _ = select.select([self.control, self.out, self.err, pidfd], [], [],
                                            max(0, deadline - time.monotonic()))
                for fd in (self.out, self.err):
                    if fd in ready:
                        with contextlib.suppress(BlockingIOError):
                            got[fd] += os.read(fd, 1 << 20)
                if self.control in ready:
                    report = self.report(token)
                if report is None and pidfd in ready and not pending(self.control.fileno()):
                    report = self.died()
                if not ready and time.monotonic() >= deadline:
                    stage += 1
                    if stage == 1:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(self.process.pid, signal.SIGINT)
                    elif stage == 2:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(self.process.pid, signal.SIGKILL)
                    else:
                        raise AssertionError("the driver neither reported nor died")
        finally:
            os.close(pidfd)
        for fd in (self.out, self.err):
            left = pending(fd)
            while left > 0:
                left -= len(piece := os.read(fd, left))
                got[fd] += piece
        status, state, sig = report
        if self.process is None:
            os.close(self.out)
            os.close(self.err)
            self.control.close()
        return {"stdout": got[self.out].decode(errors="replace"), "stderr": got[self.err].decode(errors="replace"),
                "exit_code": 124 if stage else status, "signal": sig, "timed_out": bool(stage), "state": state,
                "values": self.values, "seconds": time.monotonic() - begun}

    def report(self, token):
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            self.lines += self.control.recv(1 << 20)
        while b"\n" in self.lines:
            line, _, rest = self.lines.partition(b"\n")
            words = line.decode("ascii", "replace").split()
            if len(words) == 4 and words[0] == "value":
                if len(rest) < int(words[3]):
                    return None
                assert words[1] == token
                self.values.append((words[2], rest[:int(words[3])]))
                rest = rest[int(words[3]):]
            if len(words) == 3 and words[0] == "copy":
                if len(rest) < int(words[2]):
                    return None
                self.copy = rest[:int(words[2])]
                rest = rest[int(words[2]):]
            self.lines = rest
            if words == ["ready"]:
                self.ready = True
            elif len(words) == 4 and words[:2] == ["done", token]:
                return int(words[2]), words[3], None
        return None

    def died(self):
        status = self.process.wait()
        self.process = None
        if status < 0:
            return 128 - status, "lost", signal.Signals(-status).name
        return status, "lost", None

    def close(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            os.close(self.out)
            os.close(self.err)
            self.control.close()
            self.process = None
        if not self.borrowed:
            shutil.rmtree(self.workspace, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

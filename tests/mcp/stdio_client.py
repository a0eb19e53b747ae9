# SPDX-License-Identifier: MIT
"""A raw MCP client on stdio for tests of the shim: it sends exactly what it is told and keeps every line."""
import json
import os
import queue
import socket
import subprocess
import threading
import time

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {}}
PATIENCE_S = 20


class Shim:
    """nix-sandbox-mcp as an editor starts it: on pipes, or on Unix sockets as Node hosts do."""

    def __init__(self, command, env=None, cwd=None, sockets=False, stderr=subprocess.DEVNULL):
        ours = theirs = None
        if sockets:
            ours, theirs = zip(socket.socketpair(), socket.socketpair())
        self.process = subprocess.Popen(
            command, env=env, cwd=cwd, bufsize=0, stderr=stderr,
            stdin=theirs[0] if sockets else subprocess.PIPE,
            stdout=theirs[1] if sockets else subprocess.PIPE)
        if sockets:
            for end in theirs:
                end.close()
            self.stdin, self.stdout = ours[0].makefile("wb", 0), ours[1].makefile("rb", 0)
            for end in ours:
                end.close()
        else:
            self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.lines = []             # every line of stdout, parsed; None for what is no JSON object
        self.taken = set()          # id() of those that answer() has returned
        self.arrived = queue.Queue()
        self.reader = None
        self.next_id = 1

    def start_reading(self):
        """Reads stdout from now on; the first request does it."""
        if not self.reader:
            self.reader = threading.Thread(target=self._read, daemon=True)
            self.reader.start()

    def _read(self):
        pending = b""
        while data := self._read_some():
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    message = None
                self.lines.append(message)
                self.arrived.put(message)
        if pending:
            self.lines.append(None)
        self.arrived.put(None)

    def _read_some(self):
        try:
            return self.stdout.read(65536)
        except (OSError, ValueError):
            return b""      # closed by kill()

    def write(self, data):
        """Bytes, as they are."""
        view = memoryview(data)
        while view:
            view = view[self.stdin.write(view):]

    def send(self, message):
        """One message on one line."""
        self.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def notify(self, method, params=None):
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    def request(self, method, params=None, rid=None):
        """Sends a request and returns its id."""
        self.start_reading()
        if rid is None:
            rid = self.next_id
            self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": rid, "method": method,
                   **({"params": params} if params is not None else {})})
        return rid

    def _wait_for(self, matches, patience):
        end = time.monotonic() + patience
        seen = 0
        while True:
            for message in self.lines[seen:]:
                seen += 1
                if isinstance(message, dict) and id(message) not in self.taken and matches(message):
                    self.taken.add(id(message))
                    return message
            try:
                self.arrived.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                return None

    def answer(self, rid, patience=PATIENCE_S):
        """The response with this id, or None."""
        return self._wait_for(lambda m: "method" not in m and m.get("id") == rid
                              and type(m.get("id")) is type(rid), patience)

    def count_lines(self, n, patience=PATIENCE_S):
        """How many lines there are, once there are so many."""
        self._wait_for(lambda _: len(self.lines) >= n, patience)
        return len(self.lines)

    def ask(self, method, params=None, patience=PATIENCE_S, rid=None):
        """A request and its response."""
        return self.answer(self.request(method, params, rid), patience)

    def initialize(self, version="2025-06-18"):
        """The handshake of the older revisions."""
        reply = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                        "clientInfo": {"name": "tests", "version": "1"}})
        self.notify("notifications/initialized")
        return reply

    def start_call(self, arguments, tool="run", **meta):
        """tools/call without waiting; returns the id."""
        return self.request("tools/call", {"name": tool, "arguments": arguments,
                                           **({"_meta": meta} if meta else {})})

    def call(self, arguments, tool="run", patience=PATIENCE_S, **meta):
        """The result of a tool."""
        reply = self.answer(self.start_call(arguments, tool, **meta), patience)
        assert reply and "result" in reply, reply
        return reply["result"]

    def run(self, code, **arguments):
        """The text of a run."""
        return text(self.call({"code": code, **arguments}))

    def progress(self, token):
        """The progress notifications so far."""
        all_of_it = [m["params"] for m in self.lines if m and m.get("method") == "notifications/progress"]
        return [params for params in all_of_it if params["progressToken"] == token]

    def wait(self, patience=5):
        """Seconds until the process is gone; fails when it stays."""
        start = time.monotonic()
        self.process.wait(patience)
        return time.monotonic() - start

    def close(self, patience=5):
        """End of input; seconds until the process is gone."""
        self.stdin.close()
        return self.wait(patience)

    def kill(self):
        """For after the test."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self.stdin, self.stdout):
            try:
                end.close()
            except OSError:
                pass


def text(result):
    """All text of a tool result."""
    assert all(block["type"] == "text" for block in result["content"])
    return "".join(block["text"] for block in result["content"])


def rss_kib(pid):
    """Resident memory of a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def cpu_ticks(pid):
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def clean_environment(**changes):
    """What Codex leaves of an environment, and changes."""
    kept = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, **changes}


def eventually(condition, patience=5):
    """Waits for what another thread or process brings about."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)

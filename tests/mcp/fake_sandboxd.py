# SPDX-License-Identifier: MIT
"""A sandboxd that runs nothing: it answers varlink calls by script, so that the shim can be shown what a
real daemon does rarely or never (a slow start, a lost connection, garbage, an early answer).

What a Run does is written in its code, one instruction a line:

    out TEXT        TEXT and a newline on stdout; err TEXT the same on stderr
    fill N          N characters on stdout, numbered lines
    exit N          exit code N
    sleep S         wait S seconds, or until the client hangs up
    early           answer as if the turn were still running
    hang up         close the connection without an answer
    garbage         answer with bytes that are no varlink
    set KEY=JSON    a member of the reply

Used in the process of the tests, or alone: fake_sandboxd.py SOCKET
"""
import json
import os
import select
import socket
import sys
import threading
import time

PREFIX = "io.nixsandbox."


class Hangup(Exception):
    """The client has gone, or is to be dropped."""


class FakeSandboxd:
    """Listens on a path; every call it sees is kept in `calls`, every early hang-up in `abandoned`."""

    def __init__(self, path, version_delay=0.0):
        self.path = path
        self.version_delay = version_delay
        self.calls = []
        self.abandoned = []
        self.connections = set()
        self.sessions = {}
        self.networks = {"python": "none", "node": "none"}
        self.environments_delay = 0.0
        self.tagged = lambda connection, parameters: self.error("NoSuchTurn", "There is no such turn.")
        self.lock = threading.Lock()
        self.listener = None
        self.start()

    def start(self):
        """Listens, also again after stop()."""
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """As a daemon that dies: the socket and all connections close."""
        if self.listener.fileno() < 0:
            return
        # A shutdown wakes the thread in accept(); close() alone does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, method):
        """How many calls of a method came in."""
        return sum(name == PREFIX + method for name, _ in self.calls)

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        pending = b""
        try:
            while True:
                while b"\0" not in pending:
                    data = connection.recv(65536)
                    if not data:
                        return
                    pending += data
                message, pending = pending.split(b"\0", 1)
                connection.sendall(self._answer(connection, json.loads(message)) + b"\0")
        except (Hangup, OSError):
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    def _answer(self, connection, call):
        method, parameters = call["method"], call.get("parameters") or {}
        self.calls.append((method, parameters))
        handler = getattr(self, "do_" + method.removeprefix(PREFIX), None)
        if not handler:
            return json.dumps({"error": "org.varlink.service.MethodNotFound",
                               "parameters": {"method": method}}).encode()
        reply = handler(connection, parameters)
        if isinstance(reply, bytes):
            return reply
        if "error" in reply:
            return json.dumps(reply).encode()
        return json.dumps({"parameters": reply}, ensure_ascii=False).encode()

    def _wait(self, connection, seconds, parameters):
        """Sleeps as a turn does: a client that hangs up ends it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([connection], [], [], left)[0]:
                self.abandoned.append(parameters)
                raise Hangup

    @staticmethod
    def error(name, message, /, **parameters):
        """A varlink error with a sentence."""
        return {"error": PREFIX + name, "parameters": {"message": message, **parameters}}

    # ---- methods

    def do_GetVersion(self, connection, parameters):
        """The version, after the delay of a daemon that starts slowly."""
        time.sleep(self.version_delay)
        return {"version": "0.0.0", "api_min": 1, "api_max": 1, "mode": "foreground"}

    def do_Run(self, connection, parameters):
        """One turn, as its code says."""
        if parameters.get("environment") == "no-such":
            return self.error("NoSuchEnvironment", "There is no 'no-such'.", environment="no-such")
        name = parameters.get("session")
        if name is not None and "/" in name:
            return self.error("BadName", "A session name has only letters, digits, _ and -.", name=name)
        turn = self.sessions[name] = self.sessions.get(name, 0) + 1 if name else 1
        reply = {
            "output": None, "session": name, "id": "s-1234", "environment": "shell", "interpreter": "bash",
            "turn": turn, "stdout": "", "stderr": "", "exit_code": 0, "signal": None, "timed_out": False,
            "duration_ms": 12.0, "state": "kept" if name else "none",
            "session_state": "ephemeral" if not name else "created" if turn == 1 else "resumed",
            "truncated": {"stdout": 0, "stderr": 0}, "files": {"stdout": None, "stderr": None}, "images": 0,
            "pictures": [], "result": None, "outputs": [], "notice": None,
        }
        return self._obey(connection, parameters, reply)

    def _obey(self, connection, parameters, reply):
        for line in parameters["code"].split("\n"):
            word, _, rest = line.partition(" ")
            if word == "out":
                reply["stdout"] += rest + "\n"
            elif word == "err":
                reply["stderr"] += rest + "\n"
            elif word == "fill":
                reply["stdout"] += "".join(f"{n:08}\n" for n in range(int(rest) // 9 + 1))[:int(rest)]
            elif word == "exit":
                reply["exit_code"] = int(rest)
            elif word == "sleep":
                self._wait(connection, float(rest), parameters)
            elif word == "early":
                reply["exit_code"] = None
            elif word == "hang":
                raise Hangup
            elif word == "garbage":
                return b"\xff\xfe{]"
            elif word == "set":
                key, _, value = rest.partition("=")
                reply[key] = json.loads(value)
        return reply

    def do_Wait(self, connection, parameters):
        """The result of a turn that was answered early, or what `tagged` says of one with a tag."""
        if "tag" in parameters:
            return self.tagged(connection, parameters)
        if parameters["session"] not in (*self.sessions, "s-1234"):
            return self.error("NoSuchSession", "There is no such session.", session=parameters["session"])
        return self.do_Run(connection, {"code": "out waited", "session": parameters["session"]})

    def do_List(self, connection, parameters):
        """The sessions that ran something."""
        return {"sessions": [{
            "id": f"id-{name}", "name": name, "uid": 0, "project": "/tmp", "environment": "default",
            "interpreters": ["python", "bash", "node"], "state": "running", "busy": False, "queued": 0,
            "turns": turns, "created_usec": 1, "idle_usec": 5000000, "turn_usec": 1, "cpu_usec": None,
            "memory_bytes": None, "processes": None, "cgroup": None, "memory_mb": 512, "cpus": 2.0,
            "processes_max": 100, "workspace_mb": 1024, "timeout_seconds": 30.0,
        } for name, turns in self.sessions.items() if name]}

    def do_Environments(self, connection, parameters):
        """Two environments, of which one lacks something."""
        time.sleep(self.environments_delay)
        return {"environments": [
            {"name": "python", "description": "python3", "interpreters": ["python"], "timeout_seconds": 30.0,
             "memory_mb": 512, "network": self.networks["python"], "missing": []},
            {"name": "node", "description": "nodejs", "interpreters": ["node"], "timeout_seconds": 30.0,
             "memory_mb": 512, "network": self.networks["node"], "missing": ["node"]}]}

    def do_History(self, connection, parameters):
        """One turn that ended and one that runs."""
        return {"entries": [
            {"turn": 1, "interpreter": "bash", "code": "echo 1", "code_truncated": False, "exit_code": 0,
             "duration_ms": 3.0, "time_usec": 1},
            {"turn": 2, "interpreter": "bash", "code": "sleep 9", "code_truncated": False, "exit_code": None,
             "duration_ms": 3.0, "time_usec": 1}]}

    def do_Interrupt(self, connection, parameters):
        """There is always a turn to interrupt."""
        return {"interrupted": True}

    def do_Kill(self, connection, parameters):
        """Ends a session that ran something."""
        if not self.sessions.pop(parameters["session"], None):
            return self.error("NoSuchSession", "There is no such session.", session=parameters["session"])
        return {"id": "id"}


if __name__ == "__main__":
    FakeSandboxd(sys.argv[1])
    threading.Event().wait()

# SPDX-License-Identifier: MIT
"""Foreground daemons in directories of their own, a small varlink client, and what a daemon must not leave."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
PROGRAMS = ("sandboxd", "sandbox-agent", "sandbox-snapshot", "sandbox-environments", "sandbox-proxy", "sandbox-become",
            "sandboxctl", "nix-sandbox-mcp")
NOBODY = 65534
WAIT = 30.0
I = "io.nixsandbox."
HOLD = "until [ -e go ]; do sleep 0.01; done; rm go; "  # a turn of bash that is not over before Client.release()


def others_reach(path):
    while os.stat(path).st_mode & 0o001:
        if path == "/":
            return True
        path = os.path.dirname(path)
    return False


def public_directory():
    """A new directory below which every user can get at what is made for him."""
    base = next((d for d in (tempfile.gettempdir(), "/var/tmp", "/dev/shm") if os.path.isdir(d) and others_reach(d)),
                tempfile.gettempdir())
    path = tempfile.mkdtemp(prefix="nsc-", dir=base)
    os.chmod(path, 0o755)
    return path


def wait_for(condition, wait=WAIT):
    """Until condition() is true, which must come to pass."""
    end = time.monotonic() + wait
    while not (value := condition()):
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.01)
    return value


def stat_of(pid):
    """(state, parent, start time), or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1]), words[19]


def parent_of(pid):
    """None when there is no such process."""
    found = stat_of(pid)
    return found and found[1]


def alive(pid):
    found = stat_of(pid)
    return found is not None and found[0] != "Z"


def descendants(pid):
    """{(pid, start time)} of everything below a process."""
    stats = {int(p): s for p in filter(str.isdigit, os.listdir("/proc")) if (s := stat_of(p))}
    found, todo = set(), [pid]
    while todo:
        parent = todo.pop()
        for child, (_, of, start) in stats.items():
            if of == parent and (child, start) not in found:
                found.add((child, start))
                todo.append(child)
    return found


def memory_kilobytes(pid, key="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":"))


def is_proxy(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read() == "sandbox-proxy\n"
    except OSError:
        return False


class VarlinkError(Exception):
    def __init__(self, name, parameters):
        super().__init__(name, parameters)
        self.name, self.parameters = name.removeprefix(I), parameters
        self.message = parameters.get("message", "")


class Link:
    """One connection. Messages are dicts, as they are on the wire."""

    def __init__(self, path, wait=WAIT):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(wait)
        self.inbox = b""
        wait_for(lambda: self.connect(path), wait)

    def connect(self, path):
        try:
            self.socket.connect(path)
        except BlockingIOError:  # its backlog is full
            return False
        return True

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, method, _more=False, _oneway=False, **parameters):
        message = {"method": method if "." in method else I + method, "parameters": parameters}
        if _more:
            message["more"] = True
        if _oneway:
            message["oneway"] = True
        self.send_bytes(json.dumps(message).encode() + b"\0")

    def receive(self):
        """The next message, or None when the daemon hangs up."""
        while b"\0" not in self.inbox:
            try:
                data = self.socket.recv(1 << 20)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                return None
            self.inbox += data
        text, _, self.inbox = self.inbox.partition(b"\0")
        return json.loads(text.decode())

    def answer(self):
        """The parameters of the next reply."""
        message = self.receive()
        assert message is not None, "the daemon hung up"
        if "error" in message:
            raise VarlinkError(message["error"], message.get("parameters") or {})
        return message.get("parameters", {})

    def call(self, method, **parameters):
        self.send(method, **parameters)
        return self.answer()

    def quiet(self, seconds=0.1):
        """Whether nothing comes for a while."""
        if b"\0" in self.inbox:
            return False
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1 << 20)
            self.inbox += data
            return False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Client:
    """What can be done with a socket that somebody serves."""
    numbers = itertools.count(1)

    def __init__(self, sock, programs=BUILD):
        self.sock, self.programs = sock, programs
        self.project = "/test"

    def link(self, wait=WAIT):
        return Link(self.sock, wait)

    def call(self, method, **parameters):
        with self.link() as link:
            return link.call(method, **parameters)

    def refused(self, method, **parameters):
        """The error of a call that must not succeed."""
        try:
            reply = self.call(method, **parameters)
        except VarlinkError as e:
            return e
        raise AssertionError(f"not refused: {reply}")

    def run(self, code, session=None, env="shell", **more):
        return self.call("Run", code=code, session=session, environment=env, project=self.project, **more)

    def begin(self, code, session=None, env="shell", link=None, **more):
        """Sends a Run and does not wait; returns the link. None stands for nothing, as in the API."""
        link = link or self.link()
        link.send("Run", code=code, session=session, environment=env, project=self.project, **more)
        return link

    def name(self):
        return f"s{next(self.numbers)}"

    def show(self, session):
        return self.call("Show", session=session, project=self.project)["session"]

    def state(self, session):
        return self.show(session)["state"]

    def wait_busy(self, session, busy=True):
        """Until a turn of it runs, or none; it need not have been made yet."""
        def reached():
            try:
                shown = self.show(session)
            except VarlinkError as e:
                if not busy or e.name != "NoSuchSession":
                    raise
                return False
            return shown["busy"] == busy and shown["state"] != "starting"
        return wait_for(reached)

    def wait_queued(self, session, n):
        return wait_for(lambda: self.show(session)["queued"] == n)

    def settle(self):
        """Until the daemon has taken in all that was sent to it so far. Without that, what comes on two connections is
        served in any order."""
        with self.link() as link:
            for _ in range(2):  # the first may be served before what came at the same time
                link.call("GetVersion")

    def release(self, session):
        """Lets the code go on that waits for it: HOLD."""
        self.call("Put", session=session, project=self.project, path="go", offset=0, data="", last=True)

    def events(self, session=None):
        """Words, of one session id."""
        return [e["event"] for e in self.call("Events")["events"] if session in (None, e["session"])]

    def story(self, session):
        """Words with their details, without the numbers in them, of one session id."""
        return [" ".join([e["event"], *(w for w in (e["detail"] or "").split() if "=" not in w)])
                for e in self.call("Events")["events"] if e["session"] == session]

    def ctl(self, *args, stdin=b"", wait=WAIT, **more):
        """sandboxctl: a finished process with stdout, stderr as text."""
        done = subprocess.run([os.path.join(self.programs, "sandboxctl"), "--socket", self.sock, *args], input=stdin,
                              capture_output=True, timeout=wait, check=False, **more)
        done.stdout, done.stderr = (s.decode(errors="replace") for s in (done.stdout, done.stderr))
        return done

    def json(self, *args, **more):
        """(status, object) of sandboxctl --json."""
        done = self.ctl("--json", *args, **more)
        assert not done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout)


def tree_name(runtime_dir):
    """The name of a daemon's cgroup tree (manager.c)."""
    h = 0xcbf29ce484222325
    for byte in os.fsencode(runtime_dir):
        h = (h ^ byte) * 0x100000001b3 % (1 << 64)
    return f"nix-sandbox-{h:016x}"


def cgroups_named(name):
    return [os.path.join(d, name) for d, folders, _ in os.walk("/sys/fs/cgroup") if name in folders]


class Daemon(Client):
    """sandboxd in a directory of its own. wrapper: a command that executes its arguments."""
    socket_stays = False  # when it ends

    def __init__(self, config=None, programs=BUILD, uid=None, env=None, wrapper=(), root=None):
        self.own_root = root is None
        self.root = root or public_directory()
        super().__init__(os.path.join(self.root, "socket"), programs)
        # The machine's own bus and polkit are none of the tests' business; polkitlib.py has others.
        self.uid, self.env = uid, {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent", **(env or {})}
        self.runtime = os.path.join(self.root, "run")
        self.command = [*wrapper, os.path.join(programs, "sandboxd"), "--socket", self.sock, "--state-dir",
                        os.path.join(self.root, "state"), "--runtime-dir", self.runtime]
        if config is not None:
            path = os.path.join(self.root, "config")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            self.command += ["--config", path]
        if uid is not None and self.own_root:
            os.chown(self.root, uid, uid)
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def spawn(self):
        with open(os.path.join(self.root, "log"), "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, user=self.uid, group=self.uid,
                                            extra_groups=None if self.uid is None else [])

    def start(self, wait=WAIT):
        self.spawn()

        def ready():
            assert self.process.poll() is None, f"sandboxd ended: {self.log()}"
            try:
                return self.call("GetVersion")
            except OSError:
                return False
        wait_for(ready, wait)
        return self

    def log(self):
        with open(os.path.join(self.root, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self, wait=20):
        """Its status after SIGTERM, within a bound; and nothing of it is left."""
        children = descendants(self.pid)
        proxies = {(p, start) for p, start in children if is_proxy(p)}
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        left = [f"process {p}" for p, start in children - proxies if (s := stat_of(p)) and s[2] == start and s[0] != "Z"]
        # It waits for none of these, which are others' processes: they end when they see that it is gone.
        wait_for(lambda: not [p for p, start in proxies if (s := stat_of(p)) and s[2] == start and s[0] != "Z"])
        left += cgroups_named(tree_name(self.runtime))
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            left += [line.split()[4] for line in f if line.split()[4].startswith(self.root)]
        assert not left, f"left behind: {left}"
        assert os.path.exists(self.sock) == self.socket_stays, "the socket is left, or not"
        return status

    def crash(self):
        self.process.kill()
        self.process.wait()

    def sweep(self):
        """What a daemon that was killed leaves is for the next one, and there is none."""
        def gone(base):
            for folder, _, _ in os.walk(base, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            return not os.path.exists(base)
        for base in cgroups_named(tree_name(self.runtime)):
            wait_for(lambda b=base: gone(b))

    def close(self):
        try:
            if self.process and self.process.poll() is None:
                assert self.end() == 0, self.log()
            elif self.process and self.process.returncode == -signal.SIGKILL:
                self.sweep()
        finally:
            if self.own_root:
                shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()                # nobody else does, where there is no context
            raise

    def __exit__(self, *_):
        self.close()


def as_user(uid, code, *args, wait=WAIT):
    """Runs a Python text as another user with Link in scope; what it prints as JSON."""
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "daemonlib.py"), encoding="utf-8") as f:
        library = f.read()
    done = subprocess.run(["/usr/bin/python3", "-c", "import sys; exec(sys.stdin.read())", *args],
                          input=library.replace("__file__", "'/'") + "\nimport sys\n" + code, capture_output=True, text=True, timeout=wait, check=False,
                          cwd="/", user=uid, group=uid, extra_groups=[], env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def together(*jobs):
    """Runs them in threads; their results, or the first of their exceptions."""
    results, errors = [None] * len(jobs), []

    def work(i, job):
        try:
            results[i] = job()
        except BaseException as e:  # told to the caller below
            errors.append(e)
    threads = [threading.Thread(target=work, args=(i, job), daemon=True) for i, job in enumerate(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


def copy_programs(*leave_out):
    """A directory that everyone reaches, with copies of the programs."""
    path = public_directory()
    for program in PROGRAMS:
        if program not in leave_out:
            shutil.copy(os.path.join(BUILD, program), path)
    return path


@contextlib.contextmanager
def removed(path):
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)

# SPDX-License-Identifier: MIT
"""What a driver does besides turns, asked for as the agent asks: save, restore, list, show (agent/driver-protocol.h)."""
import contextlib
import json
import os
import secrets
import select
import shutil
import tempfile
import threading
import time


class Died(Exception):
    """The driver's process has ended instead of answering."""


class Fifos:
    """Named pipes as the agent makes them: the side that reads is open before the driver opens the other."""

    def __init__(self, number):
        self.directory = tempfile.mkdtemp(prefix="nix-sandbox-fifos-", dir="/dev/shm")
        self.paths = [os.path.join(self.directory, str(n)) for n in range(number)]
        for path in self.paths:
            os.mkfifo(path, 0o600)
        self.fds = []

    def reader(self, n):
        fd = os.open(self.paths[n], os.O_RDONLY | os.O_NONBLOCK)
        self.fds.append(fd)
        return fd

    def close(self):
        for fd in self.fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        shutil.rmtree(self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def command(driver, verb, lines):
    token = secrets.token_hex(8)
    payload = "\n".join(lines).encode()
    driver.send(b"%s %s %d\n" % (verb.encode(), token.encode(), len(payload)) + payload)
    return token


def feed(driver, path, data):
    """Writes in a thread, from when the driver has opened the other side."""
    def write():
        fd = None
        while fd is None and os.path.exists(path):
            with contextlib.suppress(OSError):
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.set_blocking(fd, True)
            time.sleep(0.0005)
        with contextlib.suppress(OSError, TypeError), open(fd, "wb", buffering=0) as f:
            view = memoryview(data)
            while view:
                view = view[f.write(view):]
    threading.Thread(target=write, daemon=True).start()


def wait(driver, token, readers, timeout=20.0):
    """Until the driver has said done. What came of each reader. Raises Died if its process has ended."""
    got = {fd: bytearray() for fd in readers}
    end, pidfd, report = time.monotonic() + timeout, os.pidfd_open(driver.process.pid), None
    try:
        while report is None:
            assert time.monotonic() < end, "the driver neither answered nor died"
            watched = [driver.control, driver.out, driver.err, pidfd, *readers]
            ready, _, _ = select.select(watched, [], [], 0.05)
            for fd in (driver.out, driver.err):
                if fd in ready:
                    with contextlib.suppress(BlockingIOError):
                        driver.stray = getattr(driver, "stray", b"") + os.read(fd, 1 << 16)
            drain(got)
            if driver.control in ready:
                report = driver.report(token)
            if report is None and pidfd in ready:
                driver.died()
                raise Died
    finally:
        os.close(pidfd)
        drain(got)
    assert report == (0, "kept", None), report
    return [bytes(data) for data in got.values()]


def drain(got):
    for fd, data in got.items():
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(fd, 1 << 20):
                data += piece


def save(driver, timeout=20.0):
    """(state, report)"""
    with Fifos(2) as fifos:
        readers = [fifos.reader(0), fifos.reader(1)]
        state, report = wait(driver, command(driver, "save", fifos.paths), readers, timeout)
        return state, json.loads(report)


def restore(driver, state, timeout=20.0, interrupt=None):
    """The report, or None if there was none. Raises Died."""
    with Fifos(2) as fifos:
        reader = fifos.reader(1)
        token = command(driver, "restore", fifos.paths)
        feed(driver, fifos.paths[0], state)
        if interrupt:
            interrupt()
        (report,) = wait(driver, token, [reader], timeout)
        # Names of a damaged state may be anything.
        return json.loads(report.decode(errors="replace")) if report else None


def names(report):
    return {skipped["name"]: skipped["why"] for skipped in report["skipped"]}


def listed(driver, timeout=20.0):
    with Fifos(1) as fifos:
        (data,) = wait(driver, command(driver, "list", fifos.paths), [fifos.reader(0)], timeout)
        return json.loads(data)


def show(driver, name, timeout=20.0):
    with Fifos(1) as fifos:
        (data,) = wait(driver, command(driver, "show", [fifos.paths[0], name]), [fifos.reader(0)], timeout)
        return json.loads(data)

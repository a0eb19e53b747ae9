# SPDX-License-Identifier: MIT
"""What the python driver does besides turns, asked for as the agent asks: save, restore, list, show."""
import contextlib
import json
import os
import select
import threading
import time

from harness import Driver
from session import Session

SECONDS = 20


class Fifo:
    """A FIFO that is read from the begin, as the agent does, or written."""

    def __init__(self, session, name):
        self.path = os.path.join(session.driver.workspace, "." + name)
        os.mkfifo(self.path)
        self.data = bytearray()
        self.thread = self.holder = None
        self.given_up = False           # nobody may ever write to it, nor close it

    def read(self):
        fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.holder = os.open(self.path, os.O_WRONLY)   # else it would seem to be at its end until it is opened
        os.set_blocking(fd, True)

        def run():
            deadline = time.monotonic() + SECONDS
            while not self.given_up and time.monotonic() < deadline:
                if not select.select([fd], [], [], 0.05)[0]:
                    continue
                piece = os.read(fd, 1 << 20)
                if not piece:
                    break
                self.data += piece
                self.release()
            os.close(fd)
        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def write(self, data):
        """When the driver has opened it."""
        def run():
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                try:
                    fd = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
                    break
                except OSError:
                    time.sleep(0.0005)
            os.set_blocking(fd, True)
            with contextlib.suppress(BrokenPipeError), open(fd, "wb", 0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view[:1 << 20]):]
        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def release(self):
        holder, self.holder = self.holder, None
        if holder is not None:
            os.close(holder)

    def end(self):
        self.thread.join(SECONDS + 1)
        assert not self.thread.is_alive(), self.path
        os.unlink(self.path)
        return bytes(self.data)


def done(session, token, seconds=SECONDS):
    """Status of a command."""
    deadline = time.monotonic() + seconds
    while (report := session.driver.report(token)) is None:
        assert time.monotonic() < deadline and session.driver.process.poll() is None
        select.select([session.driver.control], [], [], 0.1)
    assert report[1] == "kept"
    return report[0]


def save(session):
    """The state and its report."""
    state, report = Fifo(session, "state").read(), Fifo(session, "report").read()
    assert done(session, session.driver.command("save", state.path, report.path)) == 0
    text = report.end()
    state.release()                     # of which there is none when that failed at once
    return state.end(), json.loads(text)


def restore(session, data):
    state, report = Fifo(session, "state").write(data), Fifo(session, "report").read()
    assert done(session, session.driver.command("restore", state.path, report.path)) == 0
    state.end()
    return json.loads(report.end())


def listed(session):
    answer = Fifo(session, "answer").read()
    assert done(session, session.driver.command("list", answer.path)) == 0
    return json.loads(answer.end())


def shown(session, name):
    answer = Fifo(session, "answer").read()
    assert done(session, session.driver.command("show", answer.path, name)) == 0
    return json.loads(answer.end())


def skipped(report):
    return {entry["name"]: entry["why"] for entry in report["skipped"]}


def again(session, expect=()):
    """A new driver with the state of this one; of what was not saved, nothing but the names expected."""
    data, report = save(session)
    assert report["ok"] and {*skipped(report)} == {*expect}, report
    driver = Driver("python")
    back = restore(Session(driver), data)
    assert back["ok"] and back["skipped"] == [], back
    return driver

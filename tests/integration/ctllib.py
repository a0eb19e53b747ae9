# SPDX-License-Identifier: MIT
"""sandboxctl on a terminal: a pty, with a terminal emulator (pyte) behind it that knows what is on the screen."""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

WAIT = 30.0


class Terminal:
    """A program on a terminal of its own, which is also the controlling one."""

    def __init__(self, command, columns=100, lines=24, env=None, wait=WAIT):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.wait, self.raw = wait, b""
        self.ours, self.theirs = pty.openpty()
        self.size(columns, lines, tell=False)
        self.before = termios.tcgetattr(self.theirs)
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
        environment |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})}
        self.process = subprocess.Popen(command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=environment,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def size(self, columns, lines, tell=True):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if tell:
            self.screen.resize(lines, columns)
            os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, seconds):
        """Takes what comes within a time; whether anything came."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):
            data = os.read(self.ours, 65536)
            self.raw += data
            self.stream.feed(data)
        return True

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def until(self, condition, what=""):
        """Until condition() is true of the screen, which must come to pass."""
        end = time.monotonic() + self.wait
        while not (value := condition()):
            assert time.monotonic() < end, f"never on the screen: {what}\n{self.text}"
            self.read(0.05)
        return value

    def until_text(self, text):
        return self.until(lambda: next((line for line in self.lines if text in line), None), text)

    def type(self, text):
        os.write(self.ours, text.encode())

    def end(self):
        """Its exit status, when it ends by itself."""
        self.until(lambda: self.process.poll() is not None, "the end")
        while self.read(0):
            pass
        return self.process.returncode

    def restored(self):
        """Whether the terminal is as it was: settings, cursor, main screen."""
        leave = self.raw.rfind(b"\x1b[?1049l")
        return (termios.tcgetattr(self.theirs) == self.before and leave > self.raw.rfind(b"\x1b[?1049h")
                and self.raw.rfind(b"\x1b[?25l") < max(self.raw.rfind(b"\x1b[?25h"), self.raw.rfind(b"\x1b[?12l\x1b[?25h")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

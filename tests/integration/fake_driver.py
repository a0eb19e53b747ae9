#!/usr/bin/python3 -ISE
# SPDX-License-Identifier: MIT
"""Stands in for python3 where sandbox-agent is tested: a driver that does what a turn's code says, lies included.

The code runs with the names below in reach. FAKE_START in the environment is code that runs before "ready".
Other commands than execute call on_COMMAND with the lines of their payload, which turns may define anew.
"""
import contextlib
import os
import signal
import socket
import sys
import time

control = socket.socket(fileno=os.dup2(3, 100, False))
os.close(3)
names = {"os": os, "signal": signal, "sys": sys, "time": time, "control": control}
token = b""


def say(data):
    control.sendall(data)


def done(status=0, state="kept", of=None):
    say(b"done %s %d %s\n" % (of or token, status, state.encode()))


def on_interrupt(number, frame):
    if token:
        raise KeyboardInterrupt     # as drivers do: outside a turn it does nothing


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def on_save(state, report):
    put(state, names.get("state", b""))
    put(report, b'{"ok":true,"version":"fake"}')


def on_restore(state, report):
    with open(state, "rb") as f:
        names["state"] = f.read()
    put(report, b'{"ok":true}')


def on_list(answer):
    put(answer, b'[{"name":"state"}]')


def on_show(answer, name):
    put(answer, b'{"name":"%s"}' % name.encode())


inbox = bytearray()


def read_turn():
    """The next command; what came behind it stays in the inbox."""
    while b"\n" not in inbox:
        inbox.extend(control.recv(65536) or sys.exit(0))
    line, _, rest = inbox.partition(b"\n")
    verb, of, length = line.split()
    while len(rest) < int(length):
        rest += control.recv(1 << 20) or sys.exit(0)
    inbox[:] = rest[int(length):]
    return verb.decode(), bytes(of), rest[:int(length)]


signal.signal(signal.SIGINT, on_interrupt)
names.update(say=say, done=done, put=put, on_save=on_save, on_restore=on_restore, on_list=on_list, on_show=on_show)
exec(os.environ.get("FAKE_START", ""), names)
say(b"ready\n")
while True:
    verb, turn, code = read_turn()
    if verb == "load":
        continue        # it is not answered; all that this driver needs is here
    status = 0
    try:
        token = names["token"] = turn
        if verb == "execute":
            exec(bytes(code), names)
        else:
            with contextlib.suppress(BrokenPipeError, FileNotFoundError):     # the agent has given it up
                names["on_" + verb](*code.decode().splitlines())
    except KeyboardInterrupt:
        status = 130
    except SystemExit as e:
        status = e.code
    if token:
        done(status)
    token = b""

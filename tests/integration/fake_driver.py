#!/usr/bin/python3 -ISE
# SPDX-License-Identifier: MIT
"""Stands in for python3 where sandbox-agent is tested: a driver that does what a turn's code says, lies included.

The code runs with the names below in reach. FAKE_START in the environment is code that runs before "ready".
"""
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


def read_turn(inbox):
    while b"\n" not in inbox:
        inbox += control.recv(65536) or sys.exit(0)
    line, _, rest = inbox.partition(b"\n")
    _, of, length = line.split()
    rest = bytearray(rest)
    while len(rest) < int(length):
        rest += control.recv(1 << 20) or sys.exit(0)
    return of, rest


signal.signal(signal.SIGINT, on_interrupt)
names.update(say=say, done=done)
exec(os.environ.get("FAKE_START", ""), names)
say(b"ready\n")
while True:
    turn, code = read_turn(b"")
    status = 0
    try:
        token = names["token"] = turn
        exec(bytes(code), names)
    except KeyboardInterrupt:
        status = 130
    except SystemExit as e:
        status = e.code
    if token:
        done(status)
    token = b""

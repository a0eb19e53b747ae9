#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stands in for sandbox-proxy and misbehaves: the file beside it says how (test_network_proxies.py)."""
import json
import os
import select
import signal
import socket
import struct
import sys

CONTROL = 3
ADD, REMOVE, READY, REFUSED, USAGE, REMOVED = 1, 3, 16, 17, 18, 19
USE = {"connections_open": 0, "connections": 1, "refused": 0, "failed": 0, "bytes_in": 1, "bytes_out": 1}
REFUSAL = {"host": "other.example", "port": 80, "address": None, "verdict": "not-listed", "count": 1}


def write(data):
    while data:
        data = data[os.write(CONTROL, data):]


def frame(kind, number, payload):
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return struct.pack(">IBQ", len(payload) + 9, kind, number) + payload


def say(kind, number, payload):
    write(frame(kind, number, payload))


def read(size):
    data = b""
    while len(data) < size:
        data += control.recv(size - len(data)) or sys.exit()
    return data


def told():
    """(kind, number) of the next frame."""
    size, kind, number = struct.unpack(">IBQ", read(13))
    read(size - 9)
    return kind, number


def wait_end():
    """Until it is given up; nothing is read."""
    p = select.poll()
    p.register(control, 0)
    p.poll()
    sys.exit()


# What is said of the first session.
LIES = {
    "garbage": lambda n: b"\xff" * 64,
    "nothing-of-a-frame": lambda n: struct.pack(">IBQ", 3, USAGE, n),
    "long": lambda n: struct.pack(">IBQ", 1 << 30, USAGE, n) + b"x" * 5000,
    "unknown-kind": lambda n: frame(99, n, {}),
    "ready-again": lambda n: frame(READY, 0, {"version": "fake"}),
    "stranger": lambda n: frame(USAGE, n + 100, USE),
    "no-session": lambda n: frame(USAGE, 0, USE),
    "no-json": lambda n: frame(USAGE, n, b'{"connections_open": '),
    "negative": lambda n: frame(USAGE, n, {**USE, "bytes_in": -1}),
    "endless-number": lambda n: frame(USAGE, n, {**USE, "bytes_in": 1 << 64}),
    "more-than-there-can-be": lambda n: frame(USAGE, n, {**USE, "connections_open": 100000, "connections": 100000}),
    "terminal": lambda n: frame(REFUSED, n, {**REFUSAL, "host": "\x1b[2Jevil\nnetwork: x"}),
    "unknown-verdict": lambda n: frame(REFUSED, n, {**REFUSAL, "verdict": "allowed"}),
    "long-host": lambda n: frame(REFUSED, n, {**REFUSAL, "host": "x" * 3000}),
    "removed": lambda n: frame(REMOVED, n, USE),
}


def main(how):
    if how == "ends":
        return
    if how == "says-something-first":
        say(USAGE, 1, USE)
    if how in ("mute", "says-something-first"):
        wait_end()
    say(READY, 0, {"version": "fake"})
    if how == "deaf":
        wait_end()
    _, number = told()
    if how == "flood":
        data = frame(REFUSED, number, REFUSAL) * 100
        for _ in range(1000):
            write(data)
    elif how == "stays":
        write(LIES["garbage"](number))
        signal.pause()
    else:
        write(LIES[how](number))
    while True:                         # until it is given up
        told()


if __name__ == "__main__":
    control = socket.socket(fileno=CONTROL)
    with open(os.path.join(os.path.dirname(sys.argv[0]), "how"), encoding="ascii") as f:
        main(f.read().strip())

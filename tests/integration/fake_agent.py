#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stands in for sandbox-agent in a jail and misbehaves: the word on the last line says how (test_bad_input.py)."""
import json
import os
import socket
import struct
import sys
import time

FD = int(sys.argv[1])
RESULT, STDOUT, EVENT, OPERATED = 2, 3, 7, 11


def write(data):
    while data:
        data = data[os.write(FD, data):]


def frame(kind, turn, payload):
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    write(struct.pack(">IBQ", len(payload) + 9, kind, turn) + payload)


def read(size):
    data = b""
    while len(data) < size:
        data += os.read(FD, size - len(data)) or sys.exit()
    return data


def hello(protocol=3):
    frame(EVENT, 0, {"event": "hello", "protocol": protocol, "version": "fake"})


def request():
    """The turn of the next request or interrupt."""
    size, _, turn = struct.unpack(">IBQ", read(13))
    read(size - 9)
    return turn


def result(turn, **more):
    stream = {"bytes": 0, "omitted": 0, "dropped": 0, "file": None}
    frame(RESULT, turn, {
        "exit_code": 0, "signal": 0, "timed_out": False, "interrupted": False, "state": "kept", "restarted": False,
        "late": False, "stdout": stream, "stderr": stream, "duration_us": 5, "error": None, "error_text": None, **more})


def flood():
    hello()
    turn = request()
    while True:
        frame(STDOUT, turn, b"x" * 65536)


def slow():
    hello()
    turn = request()
    time.sleep(10)
    result(turn)


def refuse(error):
    hello()
    result(request(), error=error, error_text="a\nreason \x1b[2J")


def operated(number, error=None, **report):
    frame(OPERATED, number, {"error": error, "error_text": error and "its\x1bwords", "report": None if error else report})


def listed(interpreter):
    """What the driver of an interpreter says of variables: one lies, one tells too much, one is hostile to terminals."""
    answers = {"python": b"[{", "node": b"[" + b" " * 300000 + b"]",
               "bash": b'[{"name":"x\\u001b","type":"\\u0000","size":1,"text":"\\u009b2J"}]'}
    return answers[interpreter]


def operate(number, request, channel):
    """Does as the path or the name says."""
    word = request.get("path") or request.get("name") or "list"
    if word == "list":
        try:
            os.write(channel, listed(request["interpreter"]))
        except BrokenPipeError:
            pass
    elif word in ("ready", "short"):
        os.write(channel, b"x" * 10)
    if word != "open":
        os.close(channel)
    if word in ("no-file", "refused", "full", "too-large", "io", "busy", "failed"):
        operated(number, error=word)
    elif word == "malformed":
        frame(OPERATED, number, b'{"error":"mine"}')
    elif word == "twice":
        operated(number, mode=0)
        operated(number, mode=0)
    else:
        operated(number, mode={"bad-mode": 0o4755, "no-mode": None}.get(word, 0o644))


def operations():
    hello()
    result(request())
    connection = socket.socket(fileno=FD)
    while True:
        header, fds, _, _ = socket.recv_fds(connection, 13, 4)
        if not header:
            sys.exit()
        size, _, number = struct.unpack(">IBQ", header)
        operate(number, json.loads(read(size - 9)), fds[0])


MODES = {
    "operations": operations,
    "old": lambda: hello(0),
    "new": lambda: hello(1000),
    "garbage": lambda: write(b"GET / HTTP/1.0\r\n\r\n" * 100),
    "hang-up": lambda: os.close(FD),
    "exit": lambda: sys.exit(3),
    "silent": lambda: None,
    "flood": flood,
    "slow": slow,
    "endless": lambda: (hello(), request()),
    "dies": lambda: (hello(), request(), sys.exit(1)),
    "other-turn": lambda: (hello(), result(request() + 1)),
    "missing": lambda: refuse("missing"),
    "no-start": lambda: refuse("start"),
}


def main(mode):
    MODES[mode]()
    time.sleep(600)

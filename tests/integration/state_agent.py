#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stands in for sandbox-agent: a session whose state is a dict of words, which it saves and restores, or spoils.
Code is one line: "set NAME VALUE", "get NAME", "skip NAME WHY", "save HOW", "restore HOW" (what the operation does from
then on, also in the session that is restored), "sleep SECONDS"."""
import array
import json
import os
import socket
import struct
import sys
import time

SOCKET = socket.socket(fileno=int(sys.argv[1]))
REQUEST, RESULT, STDOUT, EVENT, ATTACH, OPERATE, OPERATED = 1, 2, 3, 7, 9, 10, 11
PROTOCOL = 3
PIECE_MAX = 262144

state = {"values": {}, "skipped": [], "save": "well", "restore": "well"}
inbox, descriptors = b"", []
last = {"turn": 0}


def frame(kind, turn, payload):
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    SOCKET.sendall(struct.pack(">IBQ", len(payload) + 9, kind, turn) + payload)


def read(size):
    global inbox
    while len(inbox) < size:
        data, ancillary, _, _ = SOCKET.recvmsg(65536, socket.CMSG_SPACE(64))
        for level, kind, what in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(what[:len(what) - len(what) % fds.itemsize])
                descriptors.extend(fds)
        if not data:
            sys.exit()
        inbox += data
    data, inbox = inbox[:size], inbox[size:]
    return data


def result(turn, text, code=0, duration=5):
    stream = {"bytes": len(text), "omitted": 0, "dropped": 0, "file": None}
    none = {"bytes": 0, "omitted": 0, "dropped": 0, "file": None}
    if text:
        frame(STDOUT, turn, text.encode())
    last.update(turn=turn, text=text, code=code)
    frame(RESULT, turn, {
        "exit_code": code, "signal": 0, "timed_out": False, "interrupted": False, "state": "kept", "restarted": False,
        "late": False, "stdout": stream, "stderr": none, "duration_us": duration, "error": None, "error_text": None})


def run(turn, code):
    words = code.split()
    if words[0] == "set":
        state["values"][words[1]] = words[2]
        return result(turn, "")
    if words[0] == "get":
        return result(turn, state["values"].get(words[1], "none") + "\n")
    if words[0] == "skip":
        state["skipped"].append({"name": words[1], "why": words[2]})
        return result(turn, "")
    if words[0] == "sleep":
        SOCKET.settimeout(float(words[1]))
        try:
            size, kind, _ = struct.unpack(">IBQ", read(13))
            read(size - 9)
            text = "interrupted\n"
        except TimeoutError:
            text = "slept\n"
        SOCKET.settimeout(None)
        return result(turn, text)
    state[words[0]] = words[1]
    return result(turn, "")


def piece(data):
    return b"data %d\n" % len(data) + data


def pieces(data):
    return b"".join(piece(data[at:at + PIECE_MAX]) for at in range(0, len(data), PIECE_MAX))


def end(**report):
    text = json.dumps({"ok": True, "why": None, "version": "1", "libraries": {}, "saved": len(state["values"]),
                       "skipped": [], **report}).encode()
    return b"end %d\n" % len(text) + text


def stream():
    return (b"part workspace\n" + piece(b"\0" * 1024) + end() + b"part python\n" + pieces(json.dumps(state).encode()) +
            end(skipped=state["skipped"]) + b"done\n")


def save(fd):
    how = state["save"]
    with open(fd, "wb", buffering=0) as f:
        if how == "garbage":
            f.write(b"GET / HTTP/1.0\r\n\r\n" * 1000)
        elif how == "endless":
            f.write(b"part python\n")
            while True:
                f.write(piece(b"x" * PIECE_MAX))
        elif how == "half":
            f.write(stream()[:-10])
        elif how == "slow":
            f.write(b"part workspace\n")
            time.sleep(3)
            f.write(stream()[15:])
        elif how == "hang":
            time.sleep(600)
        elif how == "die":
            f.write(b"part python\n")
            sys.exit(1)
        elif how == "fail":
            return {"error": "failed", "error_text": "a\nreason \x1b[2J", "report": None}
        else:
            f.write(stream())
    if how == "late":
        time.sleep(5)
    return {"error": None, "error_text": None, "report": {"parts": 2}}


def restore(fd):
    with open(fd, "rb") as f:
        line, python, done = f.readline(), b"", False
        while line:
            words = line.split()
            if words[0] == b"part":
                part = words[1]
            elif words[0] == b"done":
                done = True
            else:
                data = f.read(int(words[1]))
                if words[0] == b"data" and part == b"python":
                    python += data
            line = f.readline()
    found = json.loads(python) if done else None
    how = found["restore"] if found else "well"
    if how == "die":
        sys.exit(1)
    if how == "hang":
        time.sleep(600)
    if not done:
        return {"error": "failed", "error_text": "incomplete", "report": None}
    if how == "fail":
        return {"error": "failed", "error_text": "it does not fit", "report": None}
    state.update(found)
    return {"error": None, "error_text": None, "report": {"parts": [
        {"name": "workspace", "ok": True, "why": None, "skipped": []},
        {"name": "python", "ok": True, "why": None, "skipped": [{"name": "lock", "why": "too old"}] if how == "part" else []}]}}


def attach(nonce):
    SOCKET.sendall(nonce)
    told = {"running": False, "age_us": 5, "total_us": 5, "request": last["request"]} if last["turn"] else {}
    hello(turn=last["turn"], **told)
    if last["turn"]:
        result(last["turn"], last["text"], last["code"])


def hello(**more):
    frame(EVENT, 0, {"event": "hello", "protocol": PROTOCOL, "version": "fake", **more})


def operate(turn, request):
    fd = descriptors.pop(0)
    try:
        answer = {"save": save, "restore": restore}[request["operation"]](fd)
    except BrokenPipeError:
        answer = {"error": "io", "error_text": "nobody reads", "report": None}
    frame(OPERATED, turn, answer)


hello()
while True:
    length, which, number = struct.unpack(">IBQ", read(13))
    payload = read(length - 9)
    if which == OPERATE:
        operate(number, json.loads(payload))
    elif which == ATTACH:
        attach(payload)
    elif which == REQUEST:
        last["request"] = json.loads(payload.partition(b"\0")[0])
        run(number, payload.partition(b"\0")[2].decode())

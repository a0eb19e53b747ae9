# SPDX-License-Identifier: MIT
"""The snapshot stream (lib/snapshot-stream.h) and operations of state, as the other end of an agent's channel has them."""
import json
import os
import threading

from agentlib import EVENT, OPERATED, Agent


class Part:
    def __init__(self, name):
        self.name, self.pieces, self.report = name, [], None

    @property
    def data(self):
        return b"".join(self.pieces)


def parse(stream):
    """Its parts by name, in order. Strict; None when it does not end with done."""
    parts, part, at = {}, None, 0
    while at < len(stream):
        end = stream.index(b"\n", at)
        word, _, rest = stream[at:end].decode().partition(" ")
        at = end + 1
        if word == "part":
            assert part is None and rest not in parts
            part = parts[rest] = Part(rest)
        elif word == "done":
            assert part is None and at == len(stream)
            return parts
        else:
            piece = stream[at:at + int(rest)]
            if len(piece) < int(rest):
                return None
            at += int(rest)
            if word == "data":
                assert 1 <= len(piece) <= 262144
                part.pieces.append(piece)
            else:
                assert word == "end" and len(piece) <= 65536
                part.report = json.loads(piece)
                part = None
    return None


def make(parts, done=True):
    """A stream of (name, data, report)s."""
    stream = bytearray()
    for name, data, report in parts:
        stream += f"part {name}\n".encode()
        for at in range(0, len(data), 262144):
            piece = data[at:at + 262144]
            stream += b"data %d\n" % len(piece) + piece
        text = json.dumps(report).encode()
        stream += b"end %d\n" % len(text) + text
    return bytes(stream) + (b"done\n" if done else b"")


def read_all(fd, into):
    with os.fdopen(fd, "rb") as f:
        into.append(f.read())


class StateAgent(Agent):
    """Answers of operations may come among a turn's frames; they are kept for operated()."""

    def __init__(self, *args, **kwargs):
        self.answers = []
        super().__init__(*args, **kwargs)

    def receive(self):
        while (frame := super().receive()) and frame[0] == OPERATED:
            self.answers.append((frame[1], json.loads(frame[2])))
        return frame

    def operated(self, number=None):
        while not self.answers:
            frame = super().receive()
            if frame and frame[0] == EVENT:
                self.take_event(json.loads(frame[2]))
                continue
            assert frame and frame[0] == OPERATED
            self.answers.append((frame[1], json.loads(frame[2])))
        of, answer = self.answers.pop(0)
        assert of == (self.operation if number is None else number)
        return answer

    def begin_reading(self, operation, **members):
        """Begins an operation that writes; the thread that reads the channel and where the bytes come."""
        ours, theirs = os.pipe()
        got = []
        reader = threading.Thread(target=read_all, args=(ours, got))
        self.operate(operation, theirs, **members)
        reader.start()
        return reader, got

    def end_reading(self, reader, got):
        reader.join(self.wait)
        return got[0], self.operated()

    def save(self):
        """Bytes of the stream, and the answer."""
        return self.end_reading(*self.begin_reading("save"))

    def restore(self, stream):
        theirs, ours = os.pipe()

        def write():
            try:
                with os.fdopen(ours, "wb") as f:
                    f.write(stream)
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=write)
        self.operate("restore", theirs)
        writer.start()
        answer = self.operated()
        writer.join(self.wait)
        return answer

    def ask(self, operation, **members):
        data, answer = self.end_reading(*self.begin_reading(operation, **members))
        return data, answer

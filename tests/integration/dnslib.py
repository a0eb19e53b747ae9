# SPDX-License-Identifier: MIT
"""A name server of the internet that netlib.py makes, which answers what a test tells it to."""
import collections
import contextlib
import ipaddress
import socket
import struct
import threading

from netlib import NAME_SERVER, OTHER_NAME_SERVER

A, CNAME, AAAA = 1, 5, 28
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
HEADER = struct.Struct(">HHHHHH")


class Silence:
    """No answer."""


def wire_name(name):
    return b"".join(bytes([len(label)]) + label for label in name.encode().split(b".") if label) + b"\0"


def read_question(packet):
    """(name in lower case, type, the question's bytes)"""
    at, labels = HEADER.size, []
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode("latin-1").lower())
        at += 1 + packet[at]
    return ".".join(labels), struct.unpack_from(">H", packet, at + 1)[0], packet[HEADER.size:at + 5]


def record(name, kind, data):
    """With a life of 0: whoever asks again gets to know what there is by then."""
    return wire_name(name) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data


class NameServer:
    """One at each of two addresses. What a name leads to is a list of addresses, a code, Silence or another name
    (a string); or, as turns, one of these for each time it is asked, the last of which goes on."""

    def __init__(self, network):
        self.lock = threading.Lock()
        self.names = {}
        self.asked = collections.defaultdict(list)      # the types, in the order of questions
        self.servers = collections.Counter()            # how often which server was asked
        self.silent = set()                             # servers that do not answer
        self.sockets = []
        for address in (NAME_SERVER, OTHER_NAME_SERVER):
            s = network.internet.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((address, 53))
            self.sockets.append(s)
            threading.Thread(target=self.serve, args=(s, address), daemon=True).start()

    def set(self, name, *addresses, code=None, alias=None, silent=False, turns=None):
        """What a name leads to from now on. Returns it."""
        if turns is None:
            turns = [Silence if silent else alias or (code if code is not None else list(addresses))]
        with self.lock:
            self.names[name] = list(turns)
            self.asked.pop(name, None)
        return name

    def questions(self, name):
        with self.lock:
            return list(self.asked[name])

    def find(self, name, kind):
        """The code and the records of an answer, or Silence."""
        if name not in self.names:
            return NO_SUCH_NAME, []
        turns = self.names[name]
        n = self.asked[name].count(kind)
        self.asked[name].append(kind)
        answer = turns[min(n, len(turns) - 1)]
        if answer is Silence:
            return Silence
        if isinstance(answer, int):
            return answer, []
        if isinstance(answer, str):
            found = self.find(answer, kind)
            if found is Silence:
                return Silence
            return found[0], [record(name, CNAME, wire_name(answer)), *found[1]]
        family = {A: 4, AAAA: 6}.get(kind)
        return NO_ERROR, [record(name, kind, a.packed) for a in map(ipaddress.ip_address, answer) if a.version == family]

    def serve(self, s, address):
        with contextlib.suppress(OSError):
            while True:
                packet, peer = s.recvfrom(4096)
                if len(packet) < HEADER.size:
                    return              # shut down
                name, kind, question = read_question(packet)
                with self.lock:
                    self.servers[address] += 1
                    found = Silence if address in self.silent else self.find(name, kind)
                if found is not Silence:
                    code, records = found
                    s.sendto(HEADER.pack(struct.unpack_from(">H", packet)[0], 0x8180 | code, 1, len(records), 0, 0) +
                             question + b"".join(records), peer)

    def close(self):
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)    # wakes its thread
            s.close()

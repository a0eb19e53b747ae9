# SPDX-License-Identifier: MIT
"""Clients of a proxy, in a session: HTTP, tunnels of CONNECT, and SOCKS5, from bytes up."""
import contextlib
import hashlib
import ipaddress
import socket
import struct

from weblib import Stream

REFUSED_BY_RULES, UNREACHABLE_NETWORK, UNREACHABLE_HOST, REFUSED_BY_HOST, EXPIRED = 2, 3, 4, 5, 6
BAD_COMMAND, BAD_ADDRESS_TYPE = 7, 8


class Answer:
    """Of HTTP: status, fields, body to the end."""

    def __init__(self, head, body):
        line, *lines = head[:-4].decode("latin-1").split("\r\n")
        self.version, status, self.reason = line.split(" ", 2)
        self.status, self.head, self.body = int(status), head, body
        self.fields = {k.lower(): v for k, _, v in (text.partition(": ") for text in lines)}

    @property
    def text(self):
        return self.body.decode()


def connect_head(target):
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"


class Client(Stream):
    """A connection of a session."""
    was_reset = False

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def end(self):
        """Nothing more will come from this side."""
        self.socket.shutdown(socket.SHUT_WR)

    def finish(self):
        """(all that still comes, whether its end was clean)"""
        try:
            return self.rest(), not self.was_reset
        except (ConnectionResetError, BrokenPipeError):
            taken, self.inbox = self.inbox, b""
            return taken, False

    def answer(self, body=True):
        """One of HTTP: its body is what comes to the end, or with body=False nothing (what CONNECT is answered)."""
        head = self.until(b"\r\n\r\n")
        assert head, f"no answer, but {self.inbox!r}"
        return Answer(head, self.finish()[0] if body else b"")

    def get(self, url, method="GET", more="", body=b""):
        """A request for a URL, and the answer."""
        host = url.partition("://")[2].partition("/")[0]
        return self.request(f"{method} {url} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode("latin-1") + body)

    def try_send(self, data):
        """As far as the other side takes it."""
        try:
            self.send(data)
        except ConnectionResetError:
            self.was_reset = True       # nobody is told twice
        except BrokenPipeError:
            pass

    def request(self, data):
        """Bytes as they are, and the answer, or None where there is none."""
        self.try_send(data)
        head = None
        with contextlib.suppress(ConnectionResetError):
            head = self.until(b"\r\n\r\n")
        rest, _ = self.finish()
        self.close()
        return Answer(head, rest) if head else None

    def tunnel(self, target):
        """CONNECT, and its answer; what is refused comes with its sentence."""
        self.send(connect_head(target))
        answer = self.answer(body=False)
        if answer.status != 200:
            answer.body = self.finish()[0]
            self.close()
        return answer

    def opened(self, target):
        answer = self.tunnel(target)
        assert answer.status == 200, answer.text
        return self

    def greet(self):
        self.send(b"\x05\x01\x00")
        assert self.exactly(2) == b"\x05\x00"

    def socks(self, host, port, command=1):
        """By SOCKS5, to a name or, if it is one, an address; the code of the reply, 0 when it is open."""
        self.greet()
        try:
            a = ipaddress.ip_address(host)
            address = bytes([1 if a.version == 4 else 4]) + a.packed
        except ValueError:
            name = host if isinstance(host, bytes) else host.encode("latin-1")
            address = bytes([3, len(name)]) + name
        self.send(bytes([5, command, 0]) + address + struct.pack(">H", port))
        reply = self.exactly(10)
        assert len(reply) == 10 and reply[:1] + reply[2:] == b"\x05\0\x01" + bytes(6), reply
        return reply[1]

    def digest(self):
        """(size, digest) of all that still comes, which must end cleanly."""
        size, sha = len(self.inbox), hashlib.sha256(self.inbox)
        self.inbox = b""
        while data := self.socket.recv(1 << 18):
            size += len(data)
            sha.update(data)
        return size, sha.hexdigest()

    def close(self):
        self.socket.close()

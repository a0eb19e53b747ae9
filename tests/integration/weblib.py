# SPDX-License-Identifier: MIT
"""Servers in the namespaces of netlib.py: at every address there is, on a port for each habit. They note what they
get, byte for byte."""
import contextlib
import hashlib
import os
import random
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

HTTP, HTTPS, HTTP_OTHER = 80, 443, 8080
ECHO, SINK, SOURCE, BLOB, RESET, MUTE, HELLO, LATE_RESET = 7, 9, 19, 20, 25, 26, 27, 28
WAIT = 30.0
PIECE = random.Random(1).randbytes(1 << 16)
IPV6_V6ONLY = 26


def blob(size):
    """Bytes of which no part looks like the one before it."""
    return b"".join(hashlib.sha256(n.to_bytes(8, "big")).digest() + PIECE[32:] for n in range((size >> 16) + 1))[:size]


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class Request:
    """One of HTTP: head and body as they came, and what came on the connection after it."""

    def __init__(self, head, local):
        self.head, self.body, self.rest, self.local = head, b"", b"", local
        self.line, *lines = head[:-4].decode("latin-1").split("\r\n")
        self.method, self.target, self.version = self.line.split(" ")
        self.fields = [tuple(line.split(": ", 1)) for line in lines]

    def values(self, name):
        return [value for n, value in self.fields if n.lower() == name.lower()]

    @property
    def path(self):
        return self.target.partition("?")[0]

    @property
    def argument(self):
        return self.target.partition("?")[2]


class Stream:
    """A connection that is read by pieces of meaning."""

    def __init__(self, s):
        self.socket, self.inbox = s, b""

    def more(self):
        data = self.socket.recv(1 << 16)
        self.inbox += data
        return bool(data)

    def until(self, mark):
        """What comes up to mark, with it; None if it does not come."""
        while mark not in self.inbox:
            if not self.more():
                return None
        end = self.inbox.index(mark) + len(mark)
        taken, self.inbox = self.inbox[:end], self.inbox[end:]
        return taken

    def exactly(self, size):
        while len(self.inbox) < size and self.more():
            pass
        taken, self.inbox = self.inbox[:size], self.inbox[size:]
        return taken

    def wait_end(self):
        while self.more():
            pass

    def rest(self):
        self.wait_end()
        taken, self.inbox = self.inbox, b""
        return taken


def read_body(stream, request):
    if request.values("Transfer-Encoding"):
        while True:
            size = stream.until(b"\r\n") or b"0\r\n"
            request.body += stream.exactly(int(size, 16))
            stream.until(b"\r\n")
            if int(size, 16) == 0:
                return
    request.body = stream.exactly(int((request.values("Content-Length") or ["0"])[0]))


def respond(s, request, files, gate):
    """By the path; what it is about is the query."""
    argument = request.argument
    kind, body, more = "200 OK", b"hello\n", ""
    if request.path in files:
        body = files[request.path]
        if body.startswith(b"<!DOCTYPE"):
            more = "Content-Type: text/html\r\n"
    elif request.path.startswith("/repository.git/"):
        kind, body = "404 Not Found", b""
    elif request.path == "/echo":
        body = request.body
    elif request.path == "/blob":
        body = blob(int(argument))
    elif request.path == "/seen":
        body = request.head
    elif request.path == "/go":
        kind, body, more = "302 Found", b"", f"Location: {argument}\r\n"
    elif request.path == "/chunks":
        s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n\n\r\n0\r\nSum: 1\r\n\r\n")
        return
    elif request.path == "/held":       # one half, and the other when the gate is opened
        body = blob(int(argument))
        s.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:len(body) // 2])
        gate.wait(WAIT)
        s.sendall(body[len(body) // 2:])
        return
    elif request.path == "/endless":
        s.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {1 << 50}\r\n\r\n".encode())
        while True:
            s.sendall(PIECE)
    elif request.path == "/cut":
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhel")
        return
    head = f"HTTP/1.1 {kind}\r\n{more}Content-Length: {len(body)}\r\nServer: ours\r\n\r\n"
    s.sendall(head.encode() + (b"" if request.method == "HEAD" else body))


class Web:
    """All servers of a namespace. tls: a context for the one of HTTPS."""

    def __init__(self, namespace, tls=None):
        self.lock = threading.Condition()
        self.requests = []              # of HTTP
        self.files = {}                 # what is at a path: bytes
        self.gate = threading.Event()   # of /held
        self.taken = []                 # of others, and of requests that were cut: (bytes, whether to their end)
        self.tls = tls
        self.listeners = []
        habits = {HTTP: self.http, HTTP_OTHER: self.http, HTTPS: self.https, ECHO: self.echo, SINK: self.sink,
                  SOURCE: self.source, BLOB: self.blob, RESET: self.reset, MUTE: self.mute, HELLO: self.hello,
                  LATE_RESET: self.late_reset}
        for port, habit in habits.items():
            for family, anywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                s = namespace.socket(family, socket.SOCK_STREAM)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    s.setsockopt(socket.IPPROTO_IPV6, IPV6_V6ONLY, 1)
                s.bind((anywhere, port))
                s.listen(1024)
                self.listeners.append(s)
                threading.Thread(target=self.accept, args=(s, habit), daemon=True).start()

    def accept(self, listener, habit):
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                s.settimeout(WAIT)
                threading.Thread(target=self.run, args=(s, habit), daemon=True).start()

    @staticmethod
    def run(s, habit):
        with contextlib.suppress(OSError, ValueError), s:
            habit(s)

    def note(self, what, where):
        with self.lock:
            where.append(what)
            self.lock.notify_all()

    def find(self, path, count=1):
        """The requests for a path, once there are so many."""
        def found():
            return [r for r in self.requests if r.path == path]
        with self.lock:
            assert self.lock.wait_for(lambda: len(found()) >= count, WAIT), f"no request for {path}"
            return found()

    def find_taken(self, mark):
        """(bytes, whether to their end) of the connection that brought some with a mark, once it is over."""
        def found():
            return [t for t in self.taken if mark in t[0]]
        with self.lock:
            assert self.lock.wait_for(found, WAIT), f"no end of {mark}"
            return found()[0]

    def http(self, s):
        stream = Stream(s)
        head = stream.until(b"\r\n\r\n")
        if head is None:
            return
        request = Request(head, s.getsockname()[:2])
        if request.values("Expect"):
            s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            read_body(stream, request)
        except ConnectionResetError:
            self.note((head + stream.inbox, False), self.taken)
            raise
        self.note(request, self.requests)
        respond(s, request, self.files, self.gate)
        s.shutdown(socket.SHUT_WR)
        request.rest = stream.rest()

    def https(self, s):
        with self.tls.wrap_socket(s, server_side=True) as secure:
            self.http(secure)

    @staticmethod
    def echo(s):
        while data := s.recv(1 << 16):
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)

    @staticmethod
    def sink(s):
        """Tells what it got when that ends."""
        size, digest = 0, hashlib.sha256()
        while data := s.recv(1 << 18):
            size += len(data)
            digest.update(data)
        s.sendall(f"{size} {digest.hexdigest()}".encode())
        s.shutdown(socket.SHUT_WR)

    @staticmethod
    def source(s):
        while True:
            s.sendall(PIECE)

    @staticmethod
    def blob(s):
        """As many bytes as the line says."""
        stream = Stream(s)
        s.sendall(blob(int(stream.until(b"\n") or 0)))
        s.shutdown(socket.SHUT_WR)
        stream.rest()

    @staticmethod
    def reset(s):
        s.recv(1)
        reset(s)

    def mute(self, s):
        """Says nothing, and notes what it got, and whether that ended cleanly."""
        stream, clean = Stream(s), True
        try:
            stream.wait_end()
        except ConnectionResetError:
            clean = False
        self.note((stream.inbox, clean), self.taken)

    @staticmethod
    def hello(s):
        s.sendall(b"hello")
        s.shutdown(socket.SHUT_WR)
        Stream(s).rest()

    @staticmethod
    def late_reset(s):
        """Says something first; the reset follows when something is said to it."""
        s.sendall(b"hello")
        s.recv(1)
        reset(s)

    def close(self):
        for s in self.listeners:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()


class Certificate:
    """A key and what it certifies: tls.example, and what is below sub.example."""

    def __init__(self):
        with tempfile.TemporaryDirectory(prefix="nsc-") as d:
            key, certificate = os.path.join(d, "key"), os.path.join(d, "certificate")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=tls.example",
                            "-addext", "subjectAltName=DNS:tls.example,DNS:*.sub.example"],
                           check=True, capture_output=True, timeout=WAIT)
            self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.server.load_cert_chain(certificate, key)
            self.client = ssl.create_default_context(cafile=certificate)
            with open(certificate, encoding="ascii") as f:
                self.text = f.read()

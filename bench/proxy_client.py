# SPDX-License-Identifier: MIT
"""What bench/proxy measures with, as code of a turn: the same text with and without a proxy in between.

A place is an address, and whom to ask a proxy there for, or None: who answers there is the origin itself. The origin's
protocol: so many MB are asked for and come; what is sent is read to its end, and then answered by a dot.
"""
import socket
import threading
import time

PIECE = bytes(1 << 20)


def connect(address, target):
    s = socket.create_connection(address)
    if target:
        s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            piece = s.recv(1)
            if not piece:
                raise RuntimeError("no answer")
            answer += piece
        if b" 200 " not in answer:
            raise RuntimeError(answer.decode())
    return s


def take(s, size=1 << 62):
    """So many bytes, or all that come; what is missing."""
    into = bytearray(1 << 20)
    while size > 0 and (n := s.recv_into(into)):
        size -= n
    return size


def ask(s, megabytes):
    s.sendall((b"%d\n" % megabytes).ljust(100))


def download(s, megabytes):
    ask(s, megabytes)
    if take(s, megabytes << 20) != 0:
        raise RuntimeError("not all has come")


def upload(s, megabytes):
    ask(s, 0)
    for _ in range(megabytes):
        s.sendall(PIECE)
    s.shutdown(socket.SHUT_WR)
    if take(s, 1) != 0:
        raise RuntimeError("not all has arrived")


def measure(copy, place, megabytes, connections):
    """Seconds, and the processor's, for so much over each of so many connections at once."""
    sockets = [connect(*place) for _ in range(connections)]
    threads = [threading.Thread(target=copy, args=(s, megabytes)) for s in sockets]
    start, used = time.perf_counter(), time.process_time()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    result = time.perf_counter() - start, time.process_time() - used
    for s in sockets:
        s.close()
    return result


def connections(place, count):
    """The same for connections one after the other, each to its end."""
    start, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        with connect(*place) as s:
            s.shutdown(socket.SHUT_WR)
            take(s, 1)
    return time.perf_counter() - start, time.process_time() - used

# SPDX-License-Identifier: MIT
"""Two network namespaces without names: a host, and an internet in which every address there is answers. What the
host sends is watched on the wire. Nothing of the machine's own network is used, and nothing of it is left."""
import concurrent.futures
import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading

CLONE_NEWNET = 0x40000000
ETH_P_ALL, PACKET_OUTGOING, SO_ATTACH_FILTER = 3, 4, 26
HOST4, ROUTER4, BITS4 = "45.10.20.2", "45.10.20.1", 24
HOST6, ROUTER6, BITS6 = "2a01:100::2", "2a01:100::1", 64
# Somewhere out there. There is a server at these as at all others but DEAD4 and DEAD6, where packets vanish, and
# CLOSED4, of which routers say that there is no such host.
PUBLIC4, OTHER4, PUBLIC6, OTHER6 = "93.184.216.34", "93.184.217.99", "2606:2800:220::34", "2606:2800:221::99"
DEAD4, DEAD6, CLOSED4 = "93.184.218.1", "2606:2800:dead::1", "93.184.219.1"
NAME_SERVER, OTHER_NAME_SERVER = "9.9.9.10", "149.112.112.10"

libc = ctypes.CDLL(None, use_errno=True)


def why_not():
    """Why this machine cannot have such networks, or None."""
    if os.getuid() != 0:
        return "network namespaces need root"
    if not any(os.access(os.path.join(d, "ip"), os.X_OK) for d in ("/usr/sbin", "/sbin", "/usr/bin", "/bin")):
        return "iproute2 is not installed"
    with concurrent.futures.ThreadPoolExecutor(1) as thread:    # the namespace ends with its thread
        error = thread.submit(lambda: libc.unshare(CLONE_NEWNET) and ctypes.get_errno()).result()
    return f"no network namespace to be had: {os.strerror(error)}" if error else None


class Namespace:
    """A network namespace that lives in a thread: what is called there, and the sockets and processes that are made
    there, belong to it."""

    def __init__(self):
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.id = self.call(self.enter)
        self.ip("link set lo up")

    @staticmethod
    def enter():
        if libc.unshare(CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), "unshare")
        return threading.get_native_id()

    def call(self, function, *args, **named):
        return self.thread.submit(function, *args, **named).result()

    def ip(self, *commands):
        self.call(subprocess.run, ["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True,
                  stdout=subprocess.DEVNULL)

    def set(self, name, value):
        def write():
            with open(f"/proc/sys/net/{name}", "w", encoding="ascii") as f:
                f.write(value)
        self.call(write)

    def socket(self, *args):
        return self.call(socket.socket, *args)

    def close(self):
        self.thread.shutdown()


def filter_program():
    """What says that somebody wants something: SYN without ACK, and UDP that is no DNS."""
    accept, reject = 100, 101           # places of the two ends
    code, places = [], {}

    def step(op, k=0, yes=None, no=None):
        code.append((op, k, yes, no))
    LDB, LDBX, LDHX, LDX_LENGTH, LDX = 0x30, 0x50, 0x48, 0xb1, 0x01
    AND, EQUAL, RETURN = 0x54, 0x15, 0x06
    step(LDB, 0)
    step(AND, 0xf0)
    step(EQUAL, 0x40, None, "six")
    step(LDX_LENGTH, 0)
    step(LDB, 9)
    step(EQUAL, socket.IPPROTO_TCP, "tcp", "other")
    places["six"] = len(code)
    step(LDX, 40)
    step(LDB, 6)
    step(EQUAL, socket.IPPROTO_TCP, "tcp", "other")
    places["tcp"] = len(code)
    step(LDBX, 13)
    step(AND, 0x12)
    step(EQUAL, 0x02, accept, reject)
    places["other"] = len(code)
    step(EQUAL, socket.IPPROTO_UDP, None, reject)
    step(LDHX, 0)
    step(EQUAL, 53, reject, None)
    step(LDHX, 2)
    step(EQUAL, 53, reject, accept)
    places[accept] = len(code)
    step(RETURN, 0xffff)
    places[reject] = len(code)
    step(RETURN, 0)
    return b"".join(struct.pack("HBBI", op, *(0 if to is None else places[to] - n - 1 for to in (yes, no)), k)
                    for n, (op, k, yes, no) in enumerate(code)), len(code)


class Wire:
    """Whom the host has sent something to: the first packet of each connection, and UDP, loopback too. What was sent
    before one asks is there when one asks."""

    def __init__(self, namespace):
        self.socket = namespace.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        program, size = filter_program()
        at = ctypes.create_string_buffer(program)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", size, ctypes.addressof(at)))
        self.socket.setblocking(False)
        self.take()

    def take(self):
        """(address, port) of each since the last time. A connection that is tried again is there again."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, (_, _, kind, *_) = self.socket.recvfrom(256)
                if kind != PACKET_OUTGOING:
                    continue
                if packet[0] >> 4 == 4:
                    address, rest = socket.inet_ntop(socket.AF_INET, packet[16:20]), packet[(packet[0] & 15) * 4:]
                else:
                    address, rest = socket.inet_ntop(socket.AF_INET6, packet[24:40]), packet[40:]
                found.append((address, struct.unpack_from(">H", rest, 2)[0]))
        return found

    def close(self):
        self.socket.close()


class Network:
    """The two, joined."""

    def __init__(self):
        self.host, self.internet = Namespace(), Namespace()
        self.host.ip(f"link add net0 type veth peer name net1 netns {self.internet.id}")
        self.internet.set("ipv4/ip_forward", "1")       # or it would not say what is unreachable
        self.internet.ip(
            f"addr add {ROUTER4}/{BITS4} dev net1", f"addr add {ROUTER6}/{BITS6} dev net1 nodad", "link set net1 up",
            # Not in the table "local", which would come before the network in which the host is.
            "route add local 0.0.0.0/0 dev lo table main", "route add local ::/0 dev lo table main",
            f"route add blackhole {DEAD4}/32", f"route add blackhole {DEAD6}/128", f"route add unreachable {CLOSED4}/32")
        self.host.ip(
            f"addr add {HOST4}/{BITS4} dev net0", f"addr add {HOST6}/{BITS6} dev net0 nodad", "link set net0 up",
            f"route add 0.0.0.0/0 via {ROUTER4}", f"route add ::/0 via {ROUTER6}")
        self.wire = Wire(self.host)

    def close(self):
        self.wire.close()
        self.host.ip("link del net0")
        self.host.close()
        self.internet.close()

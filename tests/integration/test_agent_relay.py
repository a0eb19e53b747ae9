# SPDX-License-Identifier: MIT
"""The relay as a process: without its proxy, killed, looked into; what interpreters know of it; in jails of sandboxd's."""
import contextlib
import os
import shutil
import signal
import socket
import struct
import tempfile
import time

import pytest

from agentlib import Agent
from closurelib import Closure
from daemonlib import public_directory, removed
from relaylib import CLIENT, Net, arrived, echo, needs_jails, net, processor_time, relay_of, serving  # noqa: F401

pytestmark = needs_jails
FDS_IDLE = 7                            # of the relay: 0 to 2, two listeners, the proxy's, epoll


# A proxy that is away

def test_proxy_is_away_for_a_while(net):
    """Nobody takes connections off a backlog that is full: it may be so for longer than nobody listens."""
    net.listener.listen(0)
    net.begin("a, b, c = connect(), connect(), connect(); c.sendall(b'third'); say(c.recv(99))")
    time.sleep(6)
    pid = relay_of(net)
    before = processor_time(pid)
    time.sleep(0.5)
    assert processor_time(pid) - before < 0.1
    with serving(net, echo):
        assert net.end() == "b'third'"


def test_proxy_is_gone(net):
    net.listener.close()
    begun = time.monotonic()
    out = net.run("s = connect()\ntry: say(s.recv(1))\nexcept ConnectionResetError: say('reset')")
    assert out == "reset" and 4 < time.monotonic() - begun < 8
    assert net.run("s = connect(); s.close(); say(1)") == "1"


def test_client_that_waits_in_vain_may_go(net):
    net.listener.close()
    net.run("s = connect(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()")
    pid = relay_of(net)
    net.agent.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) == FDS_IDLE)


# The relay itself

def test_relay_is_killed(net):
    with serving(net, echo):
        net.run("x = 41; s = connect(); s.sendall(b'1'); s.recv(1); first = relays()")
        out = net.run("""
os.kill(first[0], 9); s.sendall(b'still'); say(s.recv(99))
t = connect(); t.sendall(b'next'); say(t.recv(99)); say(x + 1); say(relays() != first and len(relays()))""")
    assert out == "b'still'b'next'421"


def test_relay_is_killed_with_a_client_that_waits(net):
    """Who has not been handed over is told so, and does not take it for an end."""
    net.listener.close()
    assert net.run("""
s = connect(); time.sleep(0.3); os.kill(relays()[0], 9)
try: say(s.recv(1))
except ConnectionResetError: say('reset')""") == "reset"


def test_relay_that_is_killed_again_and_again(net):
    """Pauses grow, nothing else suffers."""
    with serving(net, echo):
        killed = int(net.run("""
killed = 0; end = time.monotonic() + 2
while time.monotonic() < end:
    for pid in relays():
        try: os.kill(pid, 9); killed += 1
        except ProcessLookupError: pass
    time.sleep(0.001)
say(killed)"""))
        assert 2 < killed < 40
        assert net.run("t = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_everything_is_killed(net):
    """kill -9 -1 of a shell."""
    with serving(net, echo):
        with contextlib.suppress(AssertionError):
            net.agent.turn("os.kill(-1, 9)")
        assert net.run(CLIENT + "\nt = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_signals_are_nothing_to_it(net):
    assert net.run("""
first = relays()
for sig in range(1, 65):
    if sig not in (9, 19):
        os.kill(first[0], sig)
time.sleep(0.2); say(relays() == first)""") == "True"


def test_turn_that_is_stopped_leaves_it_alone(net):
    with serving(net, echo):
        net.run("s = connect(); first = relays()")
        net.agent.begin("signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)", timeout=0.2)
        assert net.agent.end().state == "lost"
        assert net.run(CLIENT + "\nsay(relays())") == net.run("say(relays())")
        assert net.run("t = connect(); t.sendall(b'next'); say(t.recv(99))") == "b'next'"


def test_code_cannot_look_into_it(net):
    assert net.run("""
import ctypes
pid = relays()[0]; libc = ctypes.CDLL(None, use_errno=True)
for name in 'fd/3', 'mem', 'environ', 'maps':
    try: open('/proc/%d/%s' % (pid, name)); say('open ' + name)
    except PermissionError: say('no ')
say(libc.ptrace(16, pid, 0, 0))
fd = os.pidfd_open(pid)
say(libc.syscall(438, fd, 4, 0))
status = dict(line.split(':', 1) for line in open('/proc/%d/status' % pid))
say(status['NoNewPrivs'].strip() + status['CapEff'].strip() + status['CapBnd'].strip())
""") == "no no no no -1-11" + "0" * 32


def test_relay_keeps_few_descriptors(net):
    net.run("")
    pid = relay_of(net)
    fds = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert [fds.pop(n) for n in range(3)] == ["/dev/null"] * 3
    kinds = sorted(where.split(":")[0] for where in fds.values())
    assert len(fds) == FDS_IDLE - 3 and kinds[1:] == ["anon_inode", "socket", "socket"]
    with serving(net, echo):
        net.run("s = [connect() for _ in range(20)]\nfor c in s: c.sendall(b'x'); c.recv(1); c.close()")
        net.agent.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) == FDS_IDLE)


def test_port_is_taken(net):
    assert net.run("""
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::1')):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try: s.bind((host, 3128)); say('taken over')
    except OSError: say('no ')""") == "no no no "


# The environment of interpreters

SHOW = "say(sorted((k, v) for k, v in os.environ.items() if 'proxy' in k.lower()))"


def test_variables(net):
    url = "http://127.0.0.1:3128"
    expected = {"NODE_USE_ENV_PROXY": "1", "NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
                **{name: url for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")}}
    assert net.run(SHOW) == str(sorted(expected.items()))


def test_without_a_network():
    with Agent(jail=True) as a:
        a.turn(CLIENT)
        assert a.turn(SHOW).out == b"[]"
        assert a.turn("try: connect()\nexcept ConnectionRefusedError: say('refused')").out == b"refused"
        assert a.turn("say(relays())").out == b"[]"


def test_in_a_closure():
    """The agent makes namespaces of its own first."""
    store = tempfile.mkdtemp(prefix="nix-sandbox-store-")
    os.mkdir(os.path.join(store, "one"))
    listed, allow = os.memfd_create("list"), os.memfd_create("filter")
    os.write(listed, f"{store}\0one\0".encode())
    os.write(allow, struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    for fd in (listed, allow):
        os.lseek(fd, 0, os.SEEK_SET)
    try:
        with Net(fds=(listed, allow)) as n:
            with serving(n, echo):
                assert n.run(f"s = connect(); s.sendall(b'x'); say(s.recv(1)); say(os.listdir({store!r}))") == "b'x'['one']"
    finally:
        os.close(listed)
        os.close(allow)
        shutil.rmtree(store)


# In the jails of sandboxd, by a bubblewrap that gives the agent what the daemon does not give it yet

WRAPPER = """#!/usr/bin/python3 -ISE
import os, sys
fd = os.open({path!r}, os.O_PATH)
os.set_inheritable(fd, True)
os.execv({bwrap!r}, sys.argv + [f"network={{fd}}"])
"""


@pytest.mark.parametrize("closed", [False, True])
def test_in_a_jail_of_the_daemon(start, closed):
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(removed(public_directory()))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        path, bwrap = os.path.join(directory, "proxy"), os.path.join(directory, "bwrap")
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen()
        listener.settimeout(20)
        with open(bwrap, "w", encoding="utf-8") as f:
            f.write(WRAPPER.format(path=path, bwrap=shutil.which("bwrap")))
        os.chmod(bwrap, 0o755)
        config = stack.enter_context(Closure()).config() if closed else None
        d = start(config, env={"PATH": f"{directory}:{os.environ['PATH']}"})
        link = d.begin("exec 9<>/dev/tcp/127.0.0.1/3128; echo ping >&9; read -u 9 x; echo $x $http_proxy", session="s",
                       env="closed" if closed else "shell", **({"interpreter": "bash"} if closed else {}))
        s = arrived(listener.accept()[0])
        assert s.recv(99) == b"ping\n"
        s.sendall(b"pong\n")
        assert link.answer()["stdout"] == "pong http://127.0.0.1:3128\n"
        s.close()

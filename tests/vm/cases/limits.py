# SPDX-License-Identifier: MIT
"""What the kernel enforces, measured by the kernel's own counters, and what the replies say about it."""
import os
import time

from guestlib import configure, keyed, other, read, tester, wait_for, write

HOG = "x = bytearray(512 << 20)"
FORK_BOMB = """
import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError as e:
    print("stopped", n > 10, e.errno)
"""

# From the disk each time, whatever the page cache holds.
READER = """
import mmap, os
files = [os.path.join(d, f) for d, _, names in os.walk('/usr/lib/x86_64-linux-gnu') for f in names]
path = max((f for f in files if not os.path.islink(f)), key=os.path.getsize)
fd, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 18)
while True:
    if os.readv(fd, [buffer]) < len(buffer):
        os.lseek(fd, 0, os.SEEK_SET)
"""
CACHE = """
import os
n = 0
for d, _, names in os.walk('/usr/lib/x86_64-linux-gnu'):
    for f in names:
        f = os.path.join(d, f)
        if n < 48 << 20 and os.path.isfile(f) and not os.path.islink(f):
            n += len(open(f, 'rb').read())
print(n >> 20)
"""


def rate(group, counter, seconds):
    """What counter() gains in a second, measured over some."""
    before, begun = counter(group), time.monotonic()
    time.sleep(seconds)                     # the time that is measured over
    return (counter(group) - before) / (time.monotonic() - begun)


def cpu_usec(group):
    return keyed(f"{group}/cpu.stat")["usage_usec"]


def read_bytes(group):
    """Of all devices."""
    words = read(f"{group}/io.stat").split()
    return sum(int(w.removeprefix("rbytes=")) for w in words if w.startswith("rbytes="))


def end(user, name):
    user.ctl("kill", name)


def case_memory_limit():
    """A hog of 512 MB is killed by memory.max, the reply says "memory limit 512 MB", and the session goes on."""
    tester.run("y = 41", "hog")
    group = tester.cgroup("hog")
    assert int(read(f"{group}/memory.max")) == 512 << 20
    tester.run("echo kept > /workspace/file; z=43", "hog", env="shell")

    reply = tester.run(HOG, "hog")
    assert "memory limit 512 mb" in reply["notice"].lower(), reply
    assert keyed(f"{group}/memory.events")["oom_kill"] >= 1
    assert reply["state"] in ("lost", "rolled_back"), reply

    reply = tester.run("print('alive')", "hog")
    assert reply["stdout"] == "alive\n" and reply["session_state"] == "resumed", reply
    reply = tester.run("cat /workspace/file; echo $z", "hog", env="shell")
    assert reply["stdout"] == "kept\n43\n", "the other interpreter's state and the files are not lost"
    end(tester, "hog")


def case_process_limit():
    """A fork bomb is stopped by pids.max while another user's session answers, and the reply names the limit."""
    other.run("x = 1", "calm")
    tester.run("pass", "bomb")
    group = tester.cgroup("bomb")
    bomb = tester.begin_run(FORK_BOMB, "bomb", timeout=240)
    wait_for(lambda: int(read(f"{group}/pids.current")) > 20, "the bomb goes off")
    assert other.run("print(x)", "calm")["stdout"] == "1\n"
    reply = tester.finish(bomb, 280)
    assert "stopped True 11" in reply["stdout"], reply
    assert "Process limit 512" in reply["notice"], reply
    assert keyed(f"{group}/pids.events")["max"] >= 1
    assert int(read(f"{group}/pids.peak")) <= 512 if os.path.exists(f"{group}/pids.peak") else True
    end(tester, "bomb")
    end(other, "calm")


def case_cpu_limit():
    """A session with half a CPU gets between 45 % and 55 % of one, by cpu.stat over wall time, and the reply says so."""
    tester.run("pass", "half", cpus=0.5)
    group = tester.cgroup("half")
    spin = tester.begin_run("while True: pass", "half", timeout=60)
    start = cpu_usec(group)
    wait_for(lambda: cpu_usec(group) > start + 500000, "the loop runs")
    share = rate(group, cpu_usec, 8) / 1e6
    tester.ctl("interrupt", "half")
    reply = tester.finish(spin)
    end(tester, "half")
    assert 0.45 <= share <= 0.55, share
    assert "CPU limit 0.5" in reply["notice"], reply


def case_set():
    """Limits of a living session change at once, a running turn's too; what is over the maximum is lowered and said."""
    tester.run("pass", "live")
    group = tester.cgroup("live")
    spin = tester.begin_run("while True: pass", "live", timeout=60)
    start = cpu_usec(group)
    wait_for(lambda: cpu_usec(group) > start + 500000, "the loop runs")
    tester.ctl("set", "live", "cpus=0.25", "memory=256M", "processes=64", "cpu-weight=50")
    assert read(f"{group}/cpu.max").split()[0] == "25000" and read(f"{group}/memory.max").strip() == str(256 << 20)
    assert read(f"{group}/pids.max").strip() == "64" and read(f"{group}/cpu.weight").strip() == "50"
    share = rate(group, cpu_usec, 6) / 1e6
    tester.ctl("interrupt", "live")
    tester.finish(spin)
    assert 0.2 <= share <= 0.3, share

    reply = tester.run("x = bytearray(300 << 20)", "live", timeout=200)
    assert "memory limit 256 mb" in reply["notice"].lower(), reply
    answer = tester.ctl("set", "live", "memory=100G")
    assert answer["notice"] and read(f"{group}/memory.max").strip() == str(8192 << 20), answer
    end(tester, "live")


def case_io_limit():
    """Reading from the disk with a bound of 4 MiB/s is within 20 % of it, by io.stat over wall time."""
    tester.run("pass", "io")
    tester.ctl("set", "io", "io-read=4M")
    group = tester.cgroup("io")
    assert "rbps=4194304" in read(f"{group}/io.max"), read(f"{group}/io.max")
    reader = tester.begin_run(READER, "io", timeout=100)
    wait_for(lambda: read_bytes(group) > 8 << 20, "it reads")
    speed = rate(group, read_bytes, 10)
    tester.ctl("interrupt", "io")
    tester.finish(reader)
    end(tester, "io")
    assert 0.8 * (4 << 20) <= speed <= 1.2 * (4 << 20), speed


def case_user_caps():
    """All sessions of a user together stay within his caps; another user has his own."""
    configure({"user": {"max_memory_mb": 900, "max_processes": 100}})
    tester.run("pass", "first")
    refused = tester.refused("run", "-e", "python", "-s", "second", "pass")
    assert refused.error == "LimitExceeded" and "user.max_memory_mb" in refused.message, refused
    other.run("x = 1", "calm")
    user = os.path.dirname(tester.cgroup("first"))
    assert read(f"{user}/memory.max").strip() == str(900 << 20) and read(f"{user}/pids.max").strip() == "100"

    bomb = tester.begin_run(FORK_BOMB, "first", timeout=240)
    wait_for(lambda: int(read(f"{user}/pids.current")) > 50, "the bomb goes off")
    assert other.run("print(x)", "calm")["stdout"] == "1\n"
    reply = tester.finish(bomb, 280)
    assert "stopped True 11" in reply["stdout"], reply
    end(tester, "first")
    end(other, "calm")


def case_reclaim():
    """A session that stays frozen gives the memory back that the kernel can have again."""
    configure({"session": {"standby_after_seconds": 2, "reclaim_after_seconds": 2}})
    tester.run("pass", "cache")
    group = tester.cgroup("cache")
    write("/proc/sys/vm/drop_caches", "3")
    before = int(read(f"{group}/memory.current"))
    assert int(tester.run(CACHE, "cache", timeout=120)["stdout"]) >= 40
    full = int(read(f"{group}/memory.current"))
    assert full > before + (30 << 20), (before, full)
    wait_for(lambda: int(read(f"{group}/memory.current")) < full - (25 << 20), "memory is given back", 60)
    assert tester.session("cache")["state"] == "standby"
    assert tester.run("print(n > 0)", "cache")["stdout"] == "True\n"
    end(tester, "cache")
    configure()

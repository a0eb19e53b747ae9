# SPDX-License-Identifier: MIT
"""What the kernel enforces, measured by the kernel's own counters, and what the replies say about it."""
import os
import time

from guestlib import keyed, read, tester, other, wait_for

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
    assert keyed(f"{group}/pids.events")["max"] >= 1
    assert int(read(f"{group}/pids.peak")) <= 512 if os.path.exists(f"{group}/pids.peak") else True
    end(tester, "bomb")
    end(other, "calm")


def case_cpu_limit():
    """A session with half a CPU gets between 45 % and 55 % of one, by cpu.stat over wall time."""
    tester.run("pass", "half", cpus=0.5)
    group = tester.cgroup("half")
    spin = tester.begin_run("while True: pass", "half", timeout=60)
    start = keyed(f"{group}/cpu.stat")["usage_usec"]
    wait_for(lambda: keyed(f"{group}/cpu.stat")["usage_usec"] > start + 500000, "the loop runs")

    used, begun = keyed(f"{group}/cpu.stat")["usage_usec"], time.monotonic()
    time.sleep(8)                           # the time that is measured over
    share = (keyed(f"{group}/cpu.stat")["usage_usec"] - used) / 1e6 / (time.monotonic() - begun)
    tester.ctl("interrupt", "half")
    tester.finish(spin)
    end(tester, "half")
    assert 0.45 <= share <= 0.55, share

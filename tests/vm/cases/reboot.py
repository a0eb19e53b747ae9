# SPDX-License-Identifier: MIT
"""What a reboot of the machine costs: the processes, but not the state."""
import guestlib
from guestlib import configure, other, sh, tester, wait_for


def case_reboot():
    """A session in use and one in standby; the machine reboots: the next turn of each finds what was there, and
    says that it was restored. Their owners still reach only their own."""
    if not guestlib.rebooted:
        configure({"session": {"standby_after_seconds": 5}})
        tester.run("x = 42\ndef f(): return x + 1", "kept")
        tester.run("declare -A m=([k]=v); f() { echo ${m[k]}$1; }; mkdir -p /workspace/d; cd d; echo file >f", "kept", env="shell")
        other.run("y = 7", "kept")
        wait_for(lambda: other.session("kept")["state"] == "standby", "it is in standby")
        raise guestlib.Reboot

    sh("systemctl", "is-active", "sandboxd.socket")
    reply = tester.run("print(f())", "kept")
    assert reply["stdout"] == "43\n" and reply["session_state"] == "restored" and "restored" in reply["notice"], reply
    reply = tester.run("f x; pwd; cat f", "kept", env="shell")
    assert reply["stdout"] == "vx\n/workspace/d\nfile\n", reply
    reply = other.run("print(y)", "kept")
    assert reply["stdout"] == "7\n" and reply["session_state"] == "restored", reply

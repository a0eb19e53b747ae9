# SPDX-License-Identifier: MIT
"""The state of sessions as the service keeps it: whose files they are, and what stores them."""
import os
import pwd
import stat
import threading

from pid1lib import STATE, processes_in, status_of, systemctl, wait_for

STORE = os.path.join(STATE, "snapshots")


def all_below(folder):
    for where, folders, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in (*folders, *names))


def storing(service):
    """The processes that store or load something now."""
    found = []
    for pid in processes_in(service.cgroup):
        try:
            status = status_of(pid)
        except OSError:
            continue
        if status["Name"] == "sandbox-snapshot"[:15]:
            found.append(status)
    return found


def test_outlives_the_service(service):
    """The states of two interpreters and a file; and nobody but the service reads any of it."""
    service.run("x = 41", "a", env="python")
    service.run("y=1; echo text >/workspace/file", "a")
    systemctl("stop", "sandboxd.service")
    uid = pwd.getpwnam("nix-sandbox").pw_uid
    found = list(all_below(STORE))
    assert {"manifest", "python.state", "bash.state", "workspace.tar"} <= {os.path.basename(path) for path in found}
    assert all(os.stat(path).st_uid == uid and not stat.S_IMODE(os.stat(path).st_mode) & 0o077 for path in [STORE, *found])
    assert os.listdir(STORE) == ["u0"]

    reply = service.run("print(x + 1)", "a", env="python")
    assert (reply["stdout"], reply["session_state"]) == ("42\n", "restored")
    assert service.run("cat /workspace/file; echo $y", "a")["stdout"] == "text\n1\n"


def test_what_stores_has_no_privileges(service):
    """Of the daemon's capabilities it has none, and few system calls."""
    service.run("import os; data = os.urandom(100 << 20)", "a", env="python", memory_mb=1024)
    seen = []
    done = threading.Event()

    def watch():
        while not done.is_set() and not seen:
            seen.extend(s for s in storing(service) if int(s["Seccomp_filters"]) > service_filters)
    service_filters = int(status_of(service.pid)["Seccomp_filters"])
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        reply = service.call("Save", session="a")
    finally:
        done.set()
        watcher.join()
    assert reply["skipped"] == [] and reply["size"] > 100 << 20
    assert seen, "it was never seen"
    uid = str(pwd.getpwnam("nix-sandbox").pw_uid)
    assert seen[0]["Uid"].split() == [uid] * 4 and seen[0]["NoNewPrivs"] == "1"
    for kind in ("CapPrm", "CapEff", "CapAmb"):
        assert int(seen[0][kind], 16) == 0, kind
    wait_for(lambda: not storing(service))

# SPDX-License-Identifier: MIT
"""The whole way, with the real agent and python, when what takes part in a save is killed in the middle of it."""
import os
import random
import shutil
import signal
import time

import pytest

from daemonlib import Daemon, descendants, wait_for
from snapshotlib import ID

pytestmark = [pytest.mark.skipif(not shutil.which("bwrap"), reason="no bubblewrap")]
KILLS = 8
# So that a save takes long enough to be killed in: some hundredths of a second.
BEGIN = "import os; data = os.urandom(20 << 20); x = 0"


@pytest.fixture
def daemon_with_state(programs):
    with Daemon(programs=programs) as d:
        d.run(BEGIN, "a", env="python")
        assert d.call("Save", session="a", project=d.project)["skipped"] == []
        yield d


@pytest.fixture
def rng():
    seed = int(os.environ.get("SNAPSHOT_SEED", random.randrange(1 << 32)))
    print(f"SNAPSHOT_SEED={seed}")
    return random.Random(seed)


def value(d):
    """Of x, and whether its session was made anew from a snapshot."""
    reply = d.run("print(x, len(data))", "a", env="python")
    assert reply["exit_code"] == 0, reply
    x, size = reply["stdout"].split()
    assert size == str(20 << 20)
    return int(x), reply["session_state"]


def begin_save(d, x):
    d.run(f"x = {x}", "a", env="python")
    link = d.link()
    link.send("Save", session="a", project=d.project)
    return link


def processes(d, name):
    found = []
    for pid, _ in descendants(d.pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                if f.read().strip() == name[:15]:
                    found.append(pid)
        except OSError:
            pass
    return found


def stored(d):
    """What is in the directory of the one session that there is."""
    user = os.path.join(d.root, "state", "snapshots", f"u{os.geteuid()}")
    return os.listdir(os.path.join(user, *os.listdir(user)))


def ids(d):
    return [name for name in stored(d) if ID.fullmatch(name)]


def check_stored(d):
    """Each is a snapshot, once a save has ended well."""
    reply = d.call("Save", session="a", project=d.project)
    assert reply["skipped"] == [] and reply["snapshot"] in stored(d)
    assert ids(d) == stored(d)


def test_the_daemon(daemon_with_state, rng):
    """The next one has the state from before or from this save, and never none."""
    d, last = daemon_with_state, 0
    for n in range(1, KILLS + 1):
        link = begin_save(d, n)
        time.sleep(rng.uniform(0, 0.3))
        d.crash()
        link.close()
        d.start()
        x, state = value(d)
        assert x in (last, n) and state == "restored", (x, last, n, state)
        last = x
    check_stored(d)


def test_the_store(daemon_with_state, rng):
    """The save fails and says so, the session and what was stored before are as they were."""
    d, failed = daemon_with_state, 0
    for n in range(1, KILLS + 1):
        newest = max(ids(d))
        link = begin_save(d, n)
        found = wait_for(lambda: processes(d, "sandbox-snapshot"))
        time.sleep(rng.uniform(0, 0.1))
        try:
            os.kill(found[0], signal.SIGKILL)
        except ProcessLookupError:
            pass
        message = link.receive()
        link.close()
        if "error" in message:
            failed += 1
            assert newest in ids(d)
        assert value(d) == (n, "resumed")
    assert failed > 0, "none was killed in time"
    check_stored(d)

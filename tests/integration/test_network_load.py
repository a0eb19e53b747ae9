# SPDX-License-Identifier: MIT
"""Sessions with many transfers, and the turns of one beside them."""
import os
import statistics

from daemonlib import as_user, wait_for
from netlib import PUBLIC4
from test_lifecycle import need_cgroups

SESSIONS, TRANSFERS, TURNS, ROUNDS = 4, 50, 60, 4
# 2 MiB a second each, so that it is sandboxd that is measured, and not who else wants a processor.
CONFIG = {"environments": {"python": {"network": ["tls.example"]}, "none": {"preset": "shell"}},
          "network": {"limits": {"rate_mbps": 2}}, "snapshots": {"enabled": False}}
TAKE = f"""
import threading
got, lost = [0] * {TRANSFERS}, []
def take(n):
    try:
        with opened("http://tls.example/endless") as r:
            while piece := r.read1(65536):
                got[n] += len(piece)
    except OSError as e:
        lost.append(str(e))
for n in range({TRANSFERS}):
    threading.Thread(target=take, args=(n,), daemon=True).start()
"""
TIMES = """
import statistics
found = []
with Link({sock!r}) as link:
    for _ in range({turns}):
        began = time.monotonic()
        assert link.call("Run", code="echo x", session={name!r}, environment="none", project="/test")["stdout"] == "x\\n"
        found.append(time.monotonic() - began)
print(statistics.median(found))
"""


def test_200_transfers(world, start_on_host):
    """Beside them a turn of another session takes at most twice its time: compared with the same while they are frozen,
    several times in turn, since other things run on the machine, too."""
    world.dns.set("tls.example", PUBLIC4)
    d = start_on_host(CONFIG)
    need_cgroups(d, "freezer")
    name = d.name()
    d.run(":", name, "none")

    def latency():                      # of a process of its own, as an editor is
        return as_user(os.getuid(), TIMES.format(sock=d.sock, turns=TURNS, name=name))

    sessions = [d.session(world.certificate) for _ in range(SESSIONS)]
    for s in sessions:
        d.run(TAKE, s, "python")
    for s in sessions:
        d.wait_usage(s, lambda u: u["connections_open"] == TRANSFERS)
        wait_for(lambda s=s: d.run("print(all(got))", s, "python")["stdout"] == "True\n")
    ratios = []
    for _ in range(ROUNDS):
        before = [d.usage(s)["bytes_in"] for s in sessions]
        beside = latency()
        for s, n in zip(sessions, before):
            d.wait_usage(s, lambda u, n=n: u["bytes_in"] > n)
            d.call("Freeze", session=s, project=d.project)
        ratios.append(beside / latency())
        for s in sessions:
            d.call("Thaw", session=s, project=d.project)
    for s in sessions:
        assert d.usage(s)["connections_open"] == d.usage(s)["connections"] == TRANSFERS
        assert d.run("print(lost)", s, "python")["stdout"] == "[]\n"
    assert statistics.median(ratios) <= 2, ratios
    print(ratios)

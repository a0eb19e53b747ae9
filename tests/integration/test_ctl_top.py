# SPDX-License-Identifier: MIT
"""sandboxctl top on a terminal: what it draws, what keys do, and how it gives the terminal back."""
import json
import os
import re
import signal
import subprocess

import pytest

from ctllib import Terminal
from daemonlib import WAIT, Client, public_directory, removed
from test_ctl import VERSION
from test_ctl_select import record


@pytest.fixture
def own(start):
    """A daemon whose sessions are this test's alone."""
    d = start()
    for n in ("alpha", "beta", "gamma"):
        d.run("true", n)
    return d


def top(d, *args, **more):
    return Terminal([os.path.join(d.programs, "sandboxctl"), "--socket", d.sock, "top", "-d", "0.2", *args],
                    **{"columns": 130, "lines": 20, **more})


def rows(t):
    """The first words of the lines below the titles."""
    start = next((i for i, line in enumerate(t.lines) if line.startswith("SESSION ")), len(t.lines))
    return [line.split()[0] for line in t.lines[start + 1:] if line]


def selected(t):
    """The session of the row that is shown reversed."""
    for y in range(5, t.screen.lines):
        if t.screen.buffer[y][0].reverse:
            return t.lines[y].split()[0]
    return None


def test_draws_and_quits(own):
    with top(own) as t:
        t.until_text("Sessions: 3 total, 0 busy, 3 running")
        assert t.lines[0].startswith("sandboxctl top - ") and own.sock in t.lines[0]
        assert t.lines[4].split() == ["SESSION", "USER", "STATE", "ENV", "%CPU", "CPU", "MEM", "LIMIT", "PROC", "TURNS", "TIME", "IDLE"]
        t.until(lambda: sorted(rows(t)) == ["alpha", "beta", "gamma"], "three rows")
        row = next(line for line in t.lines if line.startswith("beta")).split()
        assert row[1:4] == ["root", "running", "default"] and row[7] == "512M"
        t.type("q")
        assert t.end() == 0
        assert t.restored()


def test_follows_what_happens(own):
    with top(own) as t:
        t.until_text("3 total")
        with own.begin("while :; do :; done", "beta"):
            t.until_text("1 busy")
            row = t.until(lambda: next((line.split() for line in t.lines if re.match(r"beta +\S+ +busy .* [1-9]\d*\.\d ", line)), None),
                          "beta's CPU")
            assert float(row[4]) > 5
            t.type("P")
            t.until(lambda: rows(t)[0] == "beta", "beta first")
        own.call("Kill", session="alpha", project="/test")
        t.until(lambda: "alpha" not in rows(t), "alpha gone")


def test_orders(own):
    with top(own) as t:
        t.until_text("3 total")
        for key in "MPTN":
            t.type(key)
        t.until(lambda: rows(t) == ["alpha", "beta", "gamma"], "by name")


def test_selection(own):
    with top(own) as t:
        t.type("N")
        t.until(lambda: rows(t) == ["alpha", "beta", "gamma"], "by name")
        t.type("g")
        t.until(lambda: selected(t) == "alpha", "the first")
        for key, expected in (("j", "beta"), ("\x1bOB", "gamma"), ("\x1bOB", "gamma"), ("\x1bOA", "beta"), ("K", "alpha"), ("G", "gamma")):
            t.type(key)
            t.until(lambda e=expected: selected(t) == e, expected)


def test_kill_and_freeze(own):
    with top(own) as t:
        t.type("N")
        t.until(lambda: rows(t) == ["alpha", "beta", "gamma"], "by name")
        t.type("gj")
        t.until(lambda: selected(t) == "beta", "beta")
        t.type("f")
        t.until_text("Freeze session 'beta'? [y/N]")
        t.type("n")
        t.until_text("Nothing done")
        assert own.state("beta") == "running"
        t.type("f")
        t.until_text("Freeze session 'beta'?")
        t.type("y")
        t.until_text("Froze 'beta'")
        t.until_text("1 frozen by hand")
        t.type("fy")
        t.until_text("Thawed 'beta'")
        assert own.state("beta") == "running"
        t.type("k")
        t.until_text("Kill session 'beta'?")
        t.type("y")
        t.until_text("Killed 'beta'")
        t.until(lambda: rows(t) == ["alpha", "gamma"], "two")
        t.type("q")
        assert t.end() == 0
    assert own.refused("Show", session="beta", project="/test")


def test_what_fails_is_said(own):
    with own.begin("sleep 60", "alpha"):
        own.wait_busy("alpha")
        with top(own) as t:
            t.type("N")
            t.until(lambda: rows(t) and rows(t)[0] == "alpha", "by name")
            t.type("gfy")
            t.until_text("A turn is running in session 'alpha'")


def test_interval(own):
    with top(own) as t:
        t.until_text("every 0.2 s")
        t.type("d")
        t.until_text("Seconds between updates, now 0.2:")
        t.type("x9\x7f\x7f0.5\r")
        t.until_text("every 0.5 s")
        t.type("s0\r")
        t.until_text("A number from 0.1 to 3600, not '0'")
        t.type("s7\x1b")
        t.until(lambda: "Seconds" not in t.text and "every 0.5 s" in t.text, "left as it was")


def test_help(own):
    with top(own) as t:
        t.until_text("3 total")
        t.type("h")
        t.until_text("kill the selected session")
        t.type("q")
        t.until_text("3 total")
        assert t.process.poll() is None


def test_resize(own):
    with top(own) as t:
        t.until_text("IDLE")
        t.size(60, 6)
        t.until(lambda: len(rows(t)) == 1 and "IDLE" not in t.text, "one row")
        t.size(1, 1)
        t.size(130, 40)
        t.until(lambda: len(rows(t)) == 3 and "IDLE" in t.text, "all")
        t.type("q")
        assert t.end() == 0 and t.restored()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_restore_the_terminal(own, sig):
    with top(own) as t:
        t.until_text("3 total")
        t.process.send_signal(sig)
        assert t.end() == -sig
        assert t.restored()


def test_stops_and_goes_on(own):
    """Control-Z: the terminal is the shell's while it is stopped."""
    script = 'set -m; "$@"; echo stopped; read _; fg; echo ended $?'
    with Terminal(["bash", "-c", script, "bash", os.path.join(own.programs, "sandboxctl"), "--socket", own.sock, "top", "-d", "0.2"],
                  columns=130) as t:
        t.until_text("3 total")
        t.type("\x1a")
        t.until_text("stopped")
        assert t.restored()
        t.raw = b""
        t.type("\n")
        t.until(lambda: b"\x1b[?1049h" in t.raw, "the screen again")
        t.type("q")
        t.until_text("ended 0")
        assert t.restored()


def test_daemon_goes_away_and_comes_back(own):
    with top(own) as t:
        t.until_text("3 total")
        assert own.end() == 0
        t.until_text("sandboxd went away; trying again")
        t.type("j")
        own.start()
        t.until_text("sandboxd is back")
        t.until_text("Sessions: 0 total")
        own.run("true", "new")
        t.until_text("new ")
        t.type("q")
        assert t.end() == 0


def test_iterations(own):
    with top(own, "-n", "2") as t:
        assert t.end() == 0 and t.restored()
    with top(own, "-n", "1") as t:
        assert t.end() == 0 and t.restored()


def test_hostile_names(own):
    own.call("Run", code="true", session="evil", project="/p\x1b[31m", environment="shell")
    with top(own, columns=40) as t:
        t.until_text("evil")
        t.type("q")
        assert t.end() == 0


def test_draws_only_what_changed(own):
    """No flicker: an update with nothing new moves a few characters, not a screen."""
    with top(own) as t:
        t.until_text("3 total")
        while t.read(0.1):
            if len(t.raw) > 100000:
                break
        before, seen = len(t.raw), set()
        t.until(lambda: seen.add(t.lines[0]) or len(seen) > 2, "the clock goes on")
        assert b"\x1b[2J" not in t.raw[before:] and b"\x1b[H\x1b[J" not in t.raw[before:]
        assert len(t.raw) - before < 4000


def test_colours(own):
    own.call("Freeze", session="alpha", project="/test")
    with top(own) as t:
        t.until_text("1 frozen")
        t.type("G")
        t.until(lambda: any(t.screen.buffer[y][0].fg == "blue" for y in range(5, 8)), "blue")
    with top(own, env={"NO_COLOR": "1"}) as t:
        t.until_text("1 frozen")
        assert not any(t.screen.buffer[y][x].fg != "default" for y in range(20) for x in range(130))


def test_a_thousand_sessions(programs):
    """All can be reached, and an update costs a part of the interval only."""
    sessions = [{"id": f"{i:012x}", "name": f"s{i:04}", "uid": 0, "state": "running", "cpu_usec": i, "memory_bytes": i << 20,
                 "memory_mb": 2000, "turn_usec": i} for i in range(1000)]
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "List": {"sessions": sessions}})
        with top(client, "-n", "30") as t:
            t.until_text("1000 total")
            t.type("NG")
            t.until(lambda: selected(t) == "s0999" and len(rows(t)) == 15, "the last")
            t.type("g")
            t.until(lambda: selected(t) == "s0000", "the first")
            before, updates = len(t.raw), {t.lines[0]}
            t.until(lambda: updates.add(t.lines[0]) or len(updates) > 2, "the clock goes on")
            assert len(t.raw) - before < 8000
            _, status, used = t.until(lambda: (w := os.wait4(t.process.pid, os.WNOHANG))[0] and w, "the end")
            assert status == 0 and used.ru_utime + used.ru_stime < 3


# Without a screen

def test_batch(own):
    done = own.ctl("top", "-b", "-n", "2", "-d", "0.1")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert done.stdout.count("\nSESSION ") == 2 and done.stdout.count("\nbeta ") == 2
    assert re.search(r"^beta .* \d+\.\d ", done.stdout.rpartition("SESSION")[2], re.M)


def test_json(own):
    done = own.ctl("--json", "top", "-n", "2", "-d", "0.1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(lines) == 2
    assert {s["name"] for s in lines[1]["sessions"]} == {"alpha", "beta", "gamma"}


def test_pipe_that_closes(own):
    done = subprocess.run(["bash", "-c", f"{own.programs}/sandboxctl --socket {own.sock} top -b -d 0.1 | head -n 1"],
                          capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.stdout.startswith("sandboxctl top") and done.stderr == ""


def test_no_terminal(own):
    done = own.ctl("top")
    assert done.returncode == 2 and "use -b" in done.stderr
    with top(own, env={"TERM": "no-such-terminal"}) as t:
        assert t.end() == 2 and "use -b" in t.text


@pytest.mark.parametrize("args", [["x"], ["-x"], ["-n", "0"], ["-n", "x"], ["-d", "0"], ["-d", "nan"], ["-d", "-1"], ["-d", "1e9"]],
                         ids=" ".join)
def test_usage(daemon, args):
    assert daemon.ctl("top", *args).returncode == 2


def test_refused(start):
    """What is wrong from the start is said as any verb says it, before there is a screen."""
    d = start()
    with top(d) as t:
        t.until_text("Sessions: 0 total")
    d.crash()
    with top(d) as t:
        assert t.end() == 1 and "No sandboxd answers" in t.text and b"\x1b[?1049h" not in t.raw

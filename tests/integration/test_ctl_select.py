# SPDX-License-Identifier: MIT
"""kill, freeze, thaw, interrupt on several sessions; and what sandboxctl does on a terminal."""
import json
import os
import re
import socket
import subprocess
import threading

import pytest

from ctllib import Terminal
from daemonlib import Client, as_user, public_directory, removed
from test_ctl import VERSION


@pytest.fixture
def own(start):
    """A daemon whose sessions are this test's alone, and three of them."""
    d = start()
    for n in ("dev-1", "dev-2", "other"):
        d.run("true", n)
    return d


def names(d):
    return sorted(s["name"] for s in d.call("List")["sessions"])


def on_terminal(d, *args, **more):
    return Terminal([os.path.join(d.programs, "sandboxctl"), "--socket", d.sock, *args], **more)


# Which sessions

def test_pattern(own):
    assert own.ctl("kill", "dev-*").returncode == 0
    assert names(own) == ["other"]


def test_pattern_names_and_ids_together(own):
    sid = own.show("other")["id"]
    done = own.ctl("--json", "freeze", "*-1", sid, "dev-1")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    assert [own.state(n) for n in ("dev-1", "dev-2", "other")] == ["frozen", "running", "frozen"]
    assert own.ctl("thaw", "--all", "--yes").returncode == 0
    assert {own.state(n) for n in ("dev-1", "dev-2", "other")} == {"running"}


def test_pattern_that_matches_nothing(own):
    done = own.ctl("kill", "x*", "dev-2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sandboxctl: No session matches 'x*'. See 'sandboxctl list'.\n"
    assert names(own) == ["dev-1", "other"]
    status, reply = own.json("kill", "x*")
    assert status == 1 and reply["error"] == "io.nixsandbox.NoSuchSession" and reply["parameters"] == {"session": "x*"}


def test_failures_say_of_whom(own):
    done = own.ctl("interrupt", "dev-1", "nothing", "other")
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"sandboxctl: nothing: [^\n]+\n", done.stderr)


def test_all_needs_a_yes_without_a_terminal(own):
    for words in (["--all"], ["--user", "root"], ["-a", "--all"]):
        done = own.ctl("kill", *words)
        assert done.returncode == 2 and "--yes" in done.stderr
    assert len(names(own)) == 3
    assert own.ctl("kill", "--all", "-y").returncode == 0
    assert names(own) == []
    done = own.ctl("kill", "--all", "-y")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No sessions.\n")


@pytest.mark.parametrize("args", [["kill", "--all", "x"], ["kill", "--user"], ["kill", "--user", "no such", "x"], ["kill", "-y"],
                                  ["kill", "-a"], ["freeze", "--nonsense"]], ids=" ".join)
def test_usage(daemon, args):
    assert daemon.ctl(*args).returncode == 2


def parameters_of(programs, args, method):
    """What a daemon that knows everything is asked for, as root asks about other users' sessions."""
    sessions = [{"id": "a1", "name": "dev", "uid": 0}, {"id": "b2", "name": "dev", "uid": 65534}, {"id": "c3", "uid": 65534}]
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        calls = record(client.sock, {"List": {"sessions": sessions}, "GetVersion": json.loads(VERSION[:-1])["parameters"]})
        done = client.ctl(*args)
        return done, [c["parameters"] for c in calls if c["method"].endswith(method)]


def record(path, replies):
    """A server that answers as replies say, else with {"id": "x"}; the list of calls grows as they come."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.settimeout(20)
    calls = []

    def work():
        connection, _ = listener.accept()
        listener.close()
        connection.settimeout(20)
        data = b""
        while more := connection.recv(65536):
            data += more
            while b"\0" in data:
                message, _, data = data.partition(b"\0")
                calls.append(json.loads(message))
                reply = replies.get(calls[-1]["method"].rpartition(".")[2], {"id": "x"})
                connection.sendall(json.dumps(reply if "error" in reply else {"parameters": reply}).encode() + b"\0")
        connection.close()
    threading.Thread(target=work, daemon=True).start()
    return calls


def test_own_sessions_are_asked_for_without_more(programs):
    done, calls = parameters_of(programs, ["kill", "dev", "x"], "Kill")
    assert done.returncode == 0 and [c["session"] for c in calls] == ["dev", "x"]
    assert all("any_user" not in c and "interactive" not in c for c in calls)


@pytest.mark.parametrize("args, expected", [
    (["-a", "dev"], ["a1", "b2"]), (["-a", "c3"], ["c3"]), (["--user", "65534", "dev"], ["b2"]), (["--user", "65534", "-y"], ["b2", "c3"]),
    (["-a", "--all", "-y"], ["a1", "b2", "c3"]), (["-a", "d*"], ["a1", "b2"])])
def test_sessions_of_others(programs, args, expected):
    done, calls = parameters_of(programs, ["kill", *args], "Kill")
    assert done.returncode == 0, done.stderr
    assert [c["session"] for c in calls] == expected and all(c["any_user"] is True for c in calls)
    assert all("interactive" not in c for c in calls), "nobody sits there"


def test_interactive_only_on_a_terminal(programs):
    for more, expected in ([], True), (["--no-ask-password"], None):
        with removed(public_directory()) as root:
            client = Client(os.path.join(root, "socket"), programs)
            calls = record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"],
                                         "List": {"sessions": [{"id": "a1", "name": "dev"}]}})
            with on_terminal(client, *more, "kill", "-a", "dev") as t:
                assert t.end() == 0
            assert [c["method"].rpartition(".")[2] for c in calls] == ["GetVersion", "List", "Kill"]
            assert all(c["parameters"].get("interactive") is expected for c in calls[1:])


def test_polkit_asks_on_the_terminal(programs):
    """A user's agent runs beside sandboxctl, is registered before the first question, and ends with it."""
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "List": {"sessions": []}})
        os.chmod(client.sock, 0o666)
        os.mkdir(out := os.path.join(root, "out"))
        os.chown(out, 65534, 65534)
        with open(agent := os.path.join(root, "pkttyagent"), "w", encoding="utf-8") as f:
            f.write(f"#!/bin/bash\necho $PPID \"$@\" >{out}/started; trap 'echo >{out}/ended; exit' TERM; exec 3>&-\n"
                    "while :; do sleep 0.05; done\n")
        os.chmod(agent, 0o755)
        with Terminal(["setpriv", "--reuid=65534", "--clear-groups", os.path.join(programs, "sandboxctl"), "--socket", client.sock,
                       "list", "-a"], env={"PATH": f"{root}:{os.environ['PATH']}"}) as t:
            assert t.end() == 0 and "No sessions." in t.text
            with open(os.path.join(out, "started"), encoding="utf-8") as f:
                assert f.read().split() == [str(t.process.pid), "--notify-fd", "3", "--fallback"]
        assert os.path.exists(os.path.join(out, "ended"))


@pytest.mark.parametrize("error", [
    {"error": "org.varlink.service.InvalidParameter", "parameters": {"parameter": "any_user"}},
    {"error": "org.varlink.service.MethodNotFound", "parameters": {"method": "io.nixsandbox.Kill"}}])
def test_older_daemon(programs, error):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "Kill": error,
                             "List": {"sessions": [{"id": "a1", "name": "dev"}]}})
        done = client.ctl("kill", "-a", "dev")
        assert done.returncode == 1 and "older than this sandboxctl" in done.stderr and "restart" in done.stderr


# On a terminal

def test_question(own):
    with on_terminal(own, "kill", "--all") as t:
        t.until_text("Kill 3 sessions (")
        t.type("\n")
        assert t.end() == 1 and "Nothing done." in t.text
    assert len(names(own)) == 3
    with on_terminal(own, "kill", "dev-1", "dev-2") as t:
        t.until_text("Kill 2 sessions (dev-1, dev-2)? [y/N]")
        t.type("y\n")
        assert t.end() == 0
    assert names(own) == ["other"]


def test_no_question_for_one_or_with_yes(own):
    with on_terminal(own, "kill", "dev-1") as t:
        assert t.end() == 0 and "[y/N]" not in t.text
    with on_terminal(own, "kill", "-y", "dev-2", "other") as t:
        assert t.end() == 0 and "[y/N]" not in t.text


def test_colours_only_on_a_terminal(own):
    own.call("Freeze", session="dev-1", project="/test")
    with on_terminal(own, "list") as t:
        assert t.end() == 0
    assert b"\x1b[34mfrozen\x1b[0m" in t.raw and b"\x1b[1mSESSION\x1b[0m" in t.raw
    for env in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        with on_terminal(own, "list", env=env) as t:
            assert t.end() == 0 and b"\x1b" not in t.raw and "frozen" in t.text
    assert "\x1b" not in own.ctl("list").stdout


def test_cut_at_the_width_of_the_terminal(own):
    own.call("Run", code="true", session="far", project="/" + "very/" * 30, environment="shell")
    with on_terminal(own, "list", columns=60) as t:
        assert t.end() == 0
    lines = t.raw.decode().replace("\r", "").split("\n")
    plain = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines if line]
    assert len(plain) == 5 and max(map(len, plain)) == 60 and plain[-1].endswith("…")
    assert "very/" * 30 in own.ctl("list").stdout


def test_pipe_that_closes_early(own):
    script = f"{own.programs}/sandboxctl --socket {own.sock} list | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.startswith("SESSION") and done.stderr == ""


# list

def test_columns(own):
    assert own.ctl("list").stdout.splitlines()[0].split() == ["SESSION", "ID", "STATE", "ENV", "CPU", "MEMORY", "TURNS", "IDLE"]
    own.call("Run", code="true", session="far", project="/elsewhere", environment="shell")
    lines = own.ctl("list", "-a").stdout.splitlines()
    assert lines[0].split() == ["SESSION", "ID", "STATE", "ENV", "USER", "CPU", "MEMORY", "TURNS", "IDLE", "PROJECT"]
    row = next(line for line in lines if line.startswith("far ")).split()
    assert row[2:5] == ["running", "default", "root"] and row[-1] == "/elsewhere"
    assert re.fullmatch(r"(-|[\d.]+[KMG])/512M", row[6]) and row[7] == "1"


@pytest.mark.skipif(os.getuid() != 0, reason="another user's sessions need root")
def test_root_and_another_user(own):
    """The same with a real daemon: root ends what is another's by name, and only that."""
    code = 'print(json.dumps(Link(sys.argv[1]).call("Run", code="true", session="dev-1", environment="shell")["id"]))'
    sid = as_user(65534, code, own.sock)
    assert "nobody" in next(line for line in own.ctl("list", "-a").stdout.splitlines() if sid in line)
    assert "nobody" in own.ctl("show", "-a", sid).stdout
    assert own.ctl("set", "-a", sid, "cpus=0.5").returncode == 0
    done = own.ctl("kill", "--user", "nobody", "dev-*")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(own) == ["dev-1", "dev-2", "other"] and sid not in own.ctl("list", "-a").stdout


# show, history and stats of others

def test_show_of_another_users_session(programs):
    done, calls = parameters_of(programs, ["show", "-a", "c3"], "Show")
    assert done.returncode == 0 and [c["session"] for c in calls] == ["c3"] and calls[0]["any_user"] is True
    done, calls = parameters_of(programs, ["show", "-a", "dev"], "Show")
    assert done.returncode == 1 and calls == [] and "2 sessions match 'dev'. Give the id" in done.stderr
    done, calls = parameters_of(programs, ["history", "-a", "x"], "History")
    assert done.returncode == 1 and calls == [] and "No session matches 'x'" in done.stderr


def test_show_by_pattern(own):
    assert "name: other" in own.ctl("show", "oth*").stdout
    assert "2 sessions match" in own.ctl("show", "dev*").stderr


def test_stats(own):
    lines = own.ctl("stats").stdout.splitlines()
    assert lines[0].split() == ["SESSION", "CPU", "THROTTLED", "MEM", "PEAK", "LIMIT", "OOM", "PROC", "MAX", "READ", "WRITE", "TURNS", "TIME"]
    row = next(line for line in lines if line.startswith("other ")).split()
    assert row[5] == "512M" and row[11] == "1" and len(lines) == 4
    assert [line.split()[0] for line in own.ctl("stats", "dev-*").stdout.splitlines()[1:]].count("other") == 0
    status, reply = own.json("stats", "other")
    assert status == 0 and [s["name"] for s in reply["sessions"]] == ["other"]
    done = own.ctl("stats", "x", "other")
    assert done.returncode == 1 and "No session matches 'x'" in done.stderr and "other" in done.stdout


NETWORK = {"allow": ["pypi.example", "*.files.example:443"], "narrowed": None, "granted": [], "connections_open": 2, "connections": 17,
           "refused": 3, "failed": 1, "bytes_in": 5 << 20, "bytes_out": 7 << 10, "connections_max": 64, "rate_mbps": 0, "transfer_mb": 0,
           "idle_seconds": 60, "total_seconds": 3600}


@pytest.mark.parametrize("network, lines, absent", [
    (None, ["network: none"], ["narrowed", "granted", "connections", "traffic"]),
    (NETWORK, ["network: pypi.example, *.files.example:443", "traffic: 5 MB in, 7 kB out",
               "connections: 17, 2 open, at most 64, 3 refused, 1 failed, each ends after 60 s idle, after 3600 s at the latest"],
     ["narrowed", "granted"]),
    ({**NETWORK, "narrowed": ["pypi.example"], "granted": ["!a.example", "b.example"], "rate_mbps": 1.5, "transfer_mb": 100},
     ["narrowed to: pypi.example", "granted: !a.example, b.example", "traffic: 5 MB in, 7 kB out, at most 100 MB, at most 1.5 MB/s"], []),
    ({**NETWORK, "allow": [], "narrowed": []}, ["network: nothing", "narrowed to: nothing"], ["granted"]),
    ({**NETWORK, "allow": ["a\x1b[31m.example"]}, ["network: a?[31m.example"], ["narrowed"])], ids=range(5))
def test_network_of_a_session(programs, network, lines, absent):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "Show": {"session": {**NEW, "network": network}}})
        shown = [line.strip() for line in client.ctl("show", "dev").stdout.splitlines()]
        assert [line for line in lines if line not in shown] == [], shown
        assert [word for word in absent if any(line.startswith(word) for line in shown)] == [], shown


def test_stats_of_networks(programs):
    """Columns of their own where there is one."""
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        listed = [{**NEW, "network": None}, {**NEW, "name": "with", "network": {**NETWORK, "allow": None}}]
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "List": {"sessions": listed}})
        lines = client.ctl("stats").stdout.splitlines()
        assert lines[0].endswith("NET IN  NET OUT  REFUSED")
        assert [line.split()[-3:] for line in lines[1:]] == [["-", "-", "-"], ["5M", "7K", "3"]]


NEW = {"id": "a1", "name": "dev", "uid": 0, "state": "frozen", "frozen_by": 65534, "frozen_usec": 1700000000000000, "cpu_usec": 2500000,
       "throttled_usec": 1200000, "cpu_weight": 50, "cpus": 2.0, "memory_bytes": 1 << 24, "memory_peak_bytes": 1 << 25, "memory_mb": 64,
       "oom_kills": 3, "processes": 4, "processes_max": 9, "process_hits": 7, "io_read_bytes": 1 << 21, "io_write_bytes": 1 << 22,
       "io_read_mbps": 50, "io_write_mbps": None, "interpreters": ["bash", "python"]}


def test_all_of_a_session(programs):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        version = json.loads(VERSION[:-1])["parameters"]
        record(client.sock, {"GetVersion": version, "Show": {"session": NEW}})
        shown = client.ctl("show", "dev", env={**os.environ, "TZ": "UTC"}).stdout
        for line in ("state: frozen, since 2023-11-14 22:13:20, frozen by nobody", "cpu: 2 s used, at most 2 CPUs, weight 50, 1 s throttled",
                     "memory: 16 MB used, 32 MB at its peak, at most 64 MB, of them 0 MB for files, 3 processes killed for it",
                     "processes: 4, at most 9, 7 refused", "io: 2 MB read, at most 50 MB/s read, 4 MB written", "interpreters: bash, python"):
            assert line in shown, shown
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        listed = {k: None if k.startswith(("io_", "throttled", "memory_peak")) else v for k, v in NEW.items()}
        record(client.sock, {"GetVersion": version, "List": {"sessions": [listed]}, "Show": {"session": NEW}})
        assert client.ctl("stats").stdout.splitlines()[1].split() == [
            "dev", "0:02.50", "0:01.20", "16M", "32M", "64M", "3", "4", "9", "2M", "4M", "-", "-"]


def test_stats_of_what_has_ended_meanwhile(programs):
    """It stays as the list had it."""
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        gone = {"error": "io.nixsandbox.SessionEnded", "parameters": {"message": "It ended."}}
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"], "List": {"sessions": [NEW]}, "Show": gone})
        done = client.ctl("stats")
        assert done.returncode == 0 and done.stderr == "" and done.stdout.splitlines()[1].split()[:2] == ["dev", "0:02.50"]


# set

@pytest.mark.parametrize("args, expected", [
    (["memory=1G", "cpus=2", "processes=128"], {"memory_mb": 1024, "cpus": 2, "processes": 128}),
    (["memory=512"], {"memory_mb": 512}), (["memory=1.5G", "cpus=0.5"], {"memory_mb": 1536, "cpus": 0.5}),
    (["cpu-weight=50", "io-read=50M", "io-write=1.5MiB"], {"cpu_weight": 50, "io_read_mbps": 50, "io_write_mbps": 1.5}),
    (["io-read=max", "io-write=0"], {"io_read_mbps": 0, "io_write_mbps": 0}),
    (["--allow", "a.example"], {"allow": ["a.example"]}),
    (["--allow=*.a.example:22, !b.a.example,", "cpus=1"], {"allow": ["*.a.example:22", "!b.a.example"], "cpus": 1})], ids=str)
def test_set(programs, args, expected):
    done, calls = parameters_of(programs, ["set", "dev", *args], "Set")
    assert done.returncode == 0 and done.stdout == "" and len(calls) == 1
    assert calls[0].pop("session") == "dev" and calls[0].pop("project")
    assert calls[0] == expected


@pytest.mark.parametrize("rules, sent", [
    ("a.example", ["a.example"]), ("a.example,*.b.example:22", ["a.example", "*.b.example:22"]), ("", []), ("none", []),
    ("*", ["*"]), ("bücher.example", ["bücher.example"])])
def test_run_with_a_network(programs, rules, sent):
    calls = parameters_of(programs, ["run", "--network", rules, "x"], "Run")[1]
    assert [c["network"] for c in calls] == [sent]


def test_run_without_saying(programs):
    assert ["network" in c for c in parameters_of(programs, ["run", "x"], "Run")[1]] == [False]


def test_set_of_a_session(own):
    done = own.ctl("set", "dev-1", "memory=300", "cpus=0.5", "processes=99", "cpu-weight=7", env={**os.environ, "PROJECT_DIR": "/test"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = own.show("dev-1")
    assert (shown["memory_mb"], shown["cpus"], shown["processes_max"], shown["cpu_weight"]) == (300, 0.5, 99, 7)
    status, reply = own.json("set", "dev-1", "memory=200")
    assert status == 0 and reply["session"]["memory_mb"] == 200
    done = own.ctl("set", "dev-1", "memory=900000G")
    assert done.returncode in (0, 1) and done.stderr.startswith("sandboxctl: "), "over any maximum: it says so"


def test_stats_of_a_real_session(own):
    own.run("sleep 0.1; for i in {1..20000}; do :; done", "dev-1")
    shown = own.show("dev-1")
    row = own.ctl("stats", "dev-1").stdout.splitlines()[1].split()
    assert (row[4] == "-") == (shown["memory_peak_bytes"] is None) and (row[1] == "-") == (shown["cpu_usec"] is None)
    assert row[11] == "2"


def test_set_for_another_user(programs):
    done, calls = parameters_of(programs, ["set", "-a", "c3", "cpus=1"], "Set")
    assert done.returncode == 0 and calls[0]["session"] == "c3" and calls[0]["any_user"] is True


def test_set_beyond_the_maxima(programs):
    for args, asked in ((["-x"], True), (["-ax"], True), ([], None)):
        done, calls = parameters_of(programs, ["set", *args, "c3", "cpus=1"], "Set")
        assert done.returncode == 0 and calls[0].get("exceed") is asked, done.stderr


def test_notice_of_set(programs):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        record(client.sock, {"GetVersion": json.loads(VERSION[:-1])["parameters"],
                             "Set": {"session": {"id": "a"}, "notice": "memory: 64 MB\x1b, the most\nthat there is"}})
        done = client.ctl("set", "dev", "memory=1G")
        assert (done.returncode, done.stderr) == (0, "sandboxctl: memory: 64 MB?, the most\nsandboxctl: that there is\n")


@pytest.mark.parametrize("args", [
    [], ["x"], ["x", "memory"], ["x", "memory="], ["x", "memory=0"], ["x", "memory=1K"], ["x", "memory=-1"], ["x", "memory=99999999999T"],
    ["x", "cpus=0"], ["x", "cpus=nan"], ["x", "cpus="], ["x", "cpus=1e3"], ["x", "processes=1.5"], ["x", "processes=0"], ["x", "cpu-weight=x"],
    ["x", "--allow"], ["x", "--allow", ""], ["x", "--allow", "none"], ["x", "--allow", ","], ["--allow", "a.example"],
    ["x", "io-read=fast"], ["x", "=1"], ["x", "colour=blue"], ["x", "mem=1G"], ["x", "memory=1G", "memory=2G"], ["-z", "x", "cpus=1"]], ids=" ".join)
def test_set_usage(daemon, args):
    done = daemon.ctl("set", *args)
    assert done.returncode == 2 and done.stdout == ""

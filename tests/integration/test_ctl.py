# SPDX-License-Identifier: MIT
"""sandboxctl: exit statuses, what it prints with and without --json, and how it fails."""
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from daemonlib import Client, public_directory, removed, wait_for


@pytest.fixture
def ctl(daemon):
    """sandboxctl run in a directory that stands for the project of the tests."""
    return lambda *args, **more: daemon.ctl(*args, **{"env": {**os.environ, "PROJECT_DIR": "/test"}, **more})


@pytest.fixture
def ctl_json(ctl):
    def run(*args, **more):
        done = ctl("--json", *args, **more)
        assert done.stderr == "" and done.stdout.endswith("\n") and done.stdout.count("\n") == 1
        return done.returncode, json.loads(done.stdout)
    return run


# Usage

@pytest.mark.parametrize("args", [
    [], ["nonsense"], ["--nonsense"], ["--socket"], ["run"], ["run", "a", "b"], ["run", "--nonsense", "x"], ["run", "-e"],
    ["run", "--timeout", "soon", "x"], ["run", "--timeout", "0", "x"], ["run", "--timeout", "-1", "x"],
    ["run", "--memory", "0", "x"], ["run", "--memory", "1G", "x"], ["run", "--cpus", "0", "x"], ["run", "--cpus", "nan", "x"],
    ["run", "--cpus", "two", "x"], ["list", "x"], ["list", "-b"], ["list", "-a", "b"], ["show"], ["show", "a", "b"],
    ["show", "-x"], ["stats", "-x"], ["kill"], ["kill", "--all"], ["freeze"], ["thaw"], ["interrupt"], ["history"], ["events", "-x"],
    ["envs", "x"], ["doctor", "x"]], ids=lambda a: " ".join(a) or "nothing")
def test_usage(ctl, args):
    done = ctl(*args)
    assert done.returncode == 2 and done.stdout == ""
    assert "sandboxctl --help" in done.stderr


def test_help_and_version(ctl):
    done = ctl("--help")
    assert done.returncode == 0
    for verb in ("run", "list", "top", "show", "stats", "kill", "freeze", "thaw", "interrupt", "history", "events", "envs", "doctor"):
        assert f"\n  {verb}" in done.stdout
    assert re.fullmatch(r"sandboxctl \d+\.\d+\.\d+\n", ctl("--version").stdout)


def test_usage_errors_start_no_daemon():
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "none"))
        assert client.ctl("show").returncode == 2
        assert os.listdir(root) == []


# run

def test_run(ctl):
    done = ctl("run", "-e", "shell", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_run_in_a_session(ctl, daemon, name):
    assert ctl("run", "-s", name, "x = 1").returncode == 0
    assert ctl("run", "-s", name, "print(x)").stdout == "1\n"
    assert ctl("run", "-s", name, "-i", "bash", "echo $0").returncode == 0
    assert ctl("run", "--session", name, "--env", "node", "--interpreter", "node", "console.log(2)").stdout == "2\n"
    assert daemon.show(name)["project"] == "/test"


def test_run_from_standard_input(ctl):
    assert ctl("run", "-e", "shell", "-", stdin=b"echo one\necho two\n").stdout == "one\ntwo\n"
    assert ctl("run", "-e", "shell", "-", stdin=b"").returncode == 0
    assert ctl("run", "-e", "shell", "--", "-x").returncode == 127


def test_run_limits(ctl, daemon, name):
    done = ctl("run", "-s", name, "-e", "shell", "--timeout", "0.2", "--memory", "99", "--cpus", "0.5", "sleep 60")
    assert done.returncode == 124 and "sandboxctl: Timed out after 0.2 s" in done.stderr
    shown = daemon.show(name)
    assert (shown["memory_mb"], shown["cpus"]) == (99, 0.5)


def test_run_prints_output_as_it_comes(daemon):
    p = subprocess.Popen([os.path.join(daemon.programs, "sandboxctl"), "--socket", daemon.sock, "run", "-e", "shell",
                          "echo first; read -t 20 < <(sleep 60); echo late"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    try:
        assert p.stdout.readline() == b"first\n"
        assert p.poll() is None
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_run_says_everything_once(ctl):
    done = ctl("run", "-e", "shell", "seq 100000")
    assert done.stdout.startswith("1\n2\n") and done.stdout.endswith("\n100000\n")
    assert done.stdout.count("bytes omitted") == 1
    assert done.stdout.count("\n100000\n") == 1 and len(done.stdout) < 140000
    assert ctl("run", "-e", "shell", "printf 'a\\0b'").stdout == "a\0b"


def test_interrupted_run_stops_its_turn(daemon, name):
    p = subprocess.Popen([os.path.join(daemon.programs, "sandboxctl"), "--socket", daemon.sock, "run", "-s", name, "-e",
                          "shell", "sleep 60"], env={**os.environ, "PROJECT_DIR": "/test"})
    wait_for(lambda: [s for s in daemon.call("List")["sessions"] if s["name"] == name and s["busy"]])
    p.send_signal(signal.SIGINT)
    assert p.wait(10) == -signal.SIGINT
    daemon.wait_busy(name, False)
    assert daemon.run("echo on", name)["stdout"] == "on\n"


def test_pipe_that_closes(daemon):
    script = f"{daemon.programs}/sandboxctl --socket {daemon.sock} run -e shell 'yes | head -c 3000000' | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=30, check=False)
    assert done.stdout == b"y\n" and done.stderr == b""


def test_run_json(ctl_json, name):
    status, reply = ctl_json("run", "-s", name, "-e", "shell", "echo x; exit 3")
    assert status == 0
    assert (reply["exit_code"], reply["stdout"], reply["session"], reply["session_state"]) == (3, "x\n", name, "created")


# Refusals

@pytest.mark.parametrize("args, error", [
    (["run", "-e", "ruby", "1"], "io.nixsandbox.NoSuchEnvironment"),
    (["run", "-i", "ruby", "1"], "io.nixsandbox.NoSuchInterpreter"),
    (["run", "-s", "a/b", "1"], "io.nixsandbox.BadName"), (["run", "-s", "", "1"], "io.nixsandbox.BadName"),
    (["run", "-s", "x" * 5000, "1"], "io.nixsandbox.BadName"),
    (["show", "nothing"], "io.nixsandbox.NoSuchSession"), (["kill", "nothing"], "io.nixsandbox.NoSuchSession"),
    (["freeze", "nothing"], "io.nixsandbox.NoSuchSession"), (["history", "sеssion"], "io.nixsandbox.BadName"),
    (["run", "--memory", "18446744073709551615", "1"], None)], ids=lambda v: str(v)[:30])
def test_refusals(ctl, ctl_json, args, error):
    if error is None:
        assert ctl(*args).returncode in (0, 1)
        return
    status, reply = ctl_json(*args)
    assert status == 1 and set(reply) == {"error", "message", "parameters"}
    assert reply["error"] == error and reply["message"] and isinstance(reply["parameters"], dict)
    done = ctl(*args)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"sandboxctl: {reply['message']}\n"


@pytest.mark.parametrize("code, place", [(b"\xff", 0), (b"print(1)\n\x80", 9), (b"'\xc3'", 1), (b"\xed\xa0\x80", 0)])
def test_code_that_is_not_utf8(ctl, ctl_json, code, place):
    status, reply = ctl_json("run", "-", stdin=code)
    assert status == 1 and reply["error"] == "org.varlink.service.InvalidParameter"
    assert f"byte {place}" in reply["message"] and "UTF-8" in reply["message"]
    assert ctl("run", "-", stdin=code).returncode == 1
    assert ctl_json("run", code)[1] == reply


def test_arguments_that_are_not_utf8(ctl):
    """They cannot be sent; that is said, and nothing is left hanging."""
    for args in (["run", "-s", b"a\xff", "1"], ["run", "-e", b"\xff", "1"], ["show", b"\xff"]):
        done = ctl(*args, wait=10)
        assert done.returncode == 2 and done.stdout == "" and "UTF-8" in done.stderr, done.stderr


def test_directory_that_is_not_utf8(daemon, name):
    with removed(public_directory()) as root:
        os.mkdir(path := os.path.join(os.fsencode(root), b"a\xff"))
        environment = {k: v for k, v in os.environ.items() if k != "PROJECT_DIR"}
        done = daemon.ctl("run", "-s", name, "-e", "shell", "echo x", cwd=path, env=environment)
        assert done.stdout == "x\n"
        assert daemon.call("Show", session=name)["session"]["project"] == os.path.join(root, "a\ufffd")
        assert daemon.ctl("show", name, cwd=path, env=environment).returncode == 0


def test_code_with_nul(ctl_json):
    status, reply = ctl_json("run", "-", stdin=b"echo\0x")
    assert status == 1 and "NUL" in reply["message"]


def test_code_that_is_too_long(ctl_json):
    for size in (4 * 1024 * 1024 + 1, 20 * 1024 * 1024):
        status, reply = ctl_json("run", "-e", "shell", "-", stdin=b": " + b"#" * size)
        assert status == 1 and "4 MiB" in reply["message"]
    status, reply = ctl_json("run", "-e", "shell", "-", stdin=b": " + b"#" * (4 * 1024 * 1024 - 2))
    assert status == 0 and reply["exit_code"] == 0


def test_code_whose_request_is_too_long(ctl_json):
    """Characters that JSON writes with six bytes."""
    status, reply = ctl_json("run", "-e", "shell", "-", stdin=b"\x01" * (4 * 1024 * 1024))
    assert status == 1 and reply["error"] == "io.nixsandbox.LimitExceeded" and "8 MiB" in reply["message"]


# Sessions

def test_verbs_on_sessions(ctl, ctl_json, daemon):
    a, b = daemon.name(), daemon.name()
    ids = [daemon.run("true", n)["id"] for n in (a, b)]
    assert ctl_json("freeze", a) == (0, {"id": ids[0]})
    done = ctl("run", "-s", a, "1")
    assert done.returncode == 1 and f"sandboxctl thaw {a}" in done.stderr
    assert ctl("thaw", a).stdout == ""
    assert ctl_json("interrupt", b) == (0, {"interrupted": False})
    done = ctl("--json", "kill", a, "nothing", ids[1])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [line.get("id") for line in lines] == [ids[0], None, ids[1]]
    assert lines[1]["error"] == "io.nixsandbox.NoSuchSession"
    assert ctl_json("show", ids[0])[1]["error"] == "io.nixsandbox.SessionEnded"


def test_list(ctl, ctl_json, daemon, name):
    sid = daemon.run("true", name)["id"]
    lines = ctl("list").stdout.splitlines()
    assert lines[0].split()[:4] == ["SESSION", "ID", "STATE", "ENV"]
    row = next(line for line in lines if sid in line)
    assert row.startswith(name) and " default " in row
    status, reply = ctl_json("list")
    assert status == 0 and sid in [s["id"] for s in reply["sessions"]]
    with daemon.begin("sleep 60", name):
        daemon.wait_busy(name)
        assert " busy " in next(line for line in ctl("list").stdout.splitlines() if sid in line)


def test_list_of_nothing(start):
    d = start()
    assert d.ctl("list").stdout == "No sessions.\n"
    assert d.ctl("events").stdout == ""
    assert json.loads(d.ctl("--json", "list").stdout) == {"sessions": []}


def test_hostile_project_in_tables(daemon, ctl, name):
    daemon.run("true", name)
    project = "/p\x1b]0;owned\x07\n\u009b31m\u202e"
    other = daemon.name()
    daemon.call("Run", code="true", session=other, project=project, environment="shell")
    for args in (["list"], ["show", other]):
        done = ctl(*args)
        assert done.returncode == 0
        assert "/p?]0;owned??" in done.stdout and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)


def test_hostile_code_in_the_history(daemon, ctl, ctl_json, name):
    daemon.run("echo '\x1b[2J'\necho two", name)
    daemon.run("echo " + "x" * 200, name)
    lines = ctl("history", name).stdout.splitlines()
    assert lines[0].split() == ["TURN", "TIME", "INTERPRETER", "EXIT", "TOOK", "CODE"] and len(lines) == 3
    assert lines[1].endswith("echo '?[2J' …") and lines[2].endswith("x …") and len(lines[2]) < 160
    assert ctl_json("history", name)[1]["entries"][0]["code"] == "echo '\x1b[2J'\necho two"


def test_history_cuts_between_characters(daemon, ctl, name):
    daemon.run(": " + "ü" * 100, name)
    assert "\ufffd" not in ctl("history", name).stdout


def test_show(ctl, daemon, name):
    daemon.run("true", name)
    text = ctl("show", name).stdout
    for line in (f"name: {name}\n", "state: running\n", "environment: default\n", "turns: 1, 0 waiting, ", "project: /test\n", "user: root\n"):
        assert line in text, text


def test_envs(ctl, ctl_json):
    lines = ctl("envs").stdout.splitlines()
    assert lines[0].split() == ["NAME", "INTERPRETERS", "TIMEOUT", "MEMORY", "NETWORK", "DESCRIPTION"]
    assert any(re.match(r"default +python, bash, node +30 s +512 MB +none ", line) for line in lines)
    assert {e["name"] for e in ctl_json("envs")[1]["environments"]} == {"python", "shell", "node", "default"}


# Events

def test_events(ctl, ctl_json, daemon, name):
    sid = daemon.run("true", name)["id"]
    daemon.call("Kill", session=name)
    lines = [line.split() for line in ctl("events").stdout.splitlines() if sid in line]
    assert [line[4] for line in lines] == ["session_created", "sandbox_started", "exec_turn", "killed", "usage_metered",
                                           "torn_down"]
    assert lines[3][3:] == [name, "killed", "admin"]
    assert sid in [e["session"] for e in ctl_json("events")[1]["events"]]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_follow_events_beyond_the_daemon(start, options):
    """A new daemon is found, and what it says of the past is not told twice."""
    d = start()
    p = subprocess.Popen([os.path.join(d.programs, "sandboxctl"), "--socket", d.sock, *options, "events", "-f"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines, said = [], []
    readers = [threading.Thread(target=lambda f=f, to=to: to.extend(iter(f.readline, "")), daemon=True)
               for f, to in ((p.stdout, lines), (p.stderr, said))]
    for reader in readers:
        reader.start()
    wait_for(lambda: d.run("true") and any("torn_down" in line for line in lines))
    assert d.end() == 0
    wait_for(lambda: any("sandboxd went away; connecting again" in line for line in (lines if options else said)))
    assert p.poll() is None
    d.start()
    wait_for(lambda: d.run("true", "again") and any("again" in line for line in lines))
    if options:
        assert all(json.loads(line) for line in lines) and not said
    else:
        assert said[-1] == "sandboxctl: sandboxd is back.\n"
        assert len(set(lines)) == len(lines)
    p.send_signal(signal.SIGTERM)
    assert p.wait(10) == -signal.SIGTERM
    for reader in readers:
        reader.join(10)
    p.stdout.close()
    p.stderr.close()


def test_events_are_told_once(programs):
    """A daemon that comes back may begin with what was told before."""
    events = [{"time_usec": n, "event": f"event-{n}", "session": "a"} for n in (1, 2, 3)]
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(client.sock)
        listener.listen()
        listener.settimeout(20)
        p = subprocess.Popen([os.path.join(programs, "sandboxctl"), "--socket", client.sock, "events", "-f"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        for told in (events[:2], events):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(20)
                for answer in (VERSION, json.dumps({"parameters": {"events": told}, "continues": True}).encode() + b"\0",
                               json.dumps({"parameters": {"events": [told[-1]]}, "continues": True}).encode() + b"\0"):
                    connection.sendall(answer)
                    while answer == VERSION and b"Events" not in connection.recv(65536):
                        pass
        lines = [p.stdout.readline().split()[4] for _ in range(5)]
        p.kill()
        p.wait()
        p.stdout.close()
        listener.close()
        assert lines == ["event-1", "event-2", "event-2", "event-3", "event-3"], "a live event is always told"


# No daemon, or a strange one

def test_explicit_socket_without_a_daemon(programs):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "none"), programs)
        done = client.ctl("list")
        assert done.returncode == 1 and "No sandboxd answers on" in done.stderr and client.sock in done.stderr
        status, reply = client.json("list")
        assert status == 1 and set(reply) == {"error", "message", "parameters"}
        assert os.listdir(root) == []


def serve(path, *answers):
    """A server that gives one connection fixed answers, one for each message, and closes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.settimeout(20)

    def work():
        connection, _ = listener.accept()
        connection.settimeout(20)
        for answer in answers:
            data = b""
            while b"\0" not in data and (more := connection.recv(65536)):
                data += more
            connection.sendall(answer)
        connection.close()
        listener.close()
    threading.Thread(target=work, daemon=True).start()


VERSION = b'{"parameters":{"version":"9","api_min":1,"api_max":1,"mode":"service"}}\0'


@pytest.mark.parametrize("answers, words", [
    ([b""], "closed the connection at once"), ([b"HTTP/1.0 400\r\n\r\n\0"], ""),
    ([b'{"parameters":{"version":"9","api_min":90,"api_max":99,"mode":"x"}}\0'], "This program is too old"),
    ([b'{"parameters":{"version":"0","api_min":0,"api_max":0,"mode":"x"}}\0'], "The daemon is too old"),
    ([VERSION, b""], "went away before it answered"), ([VERSION, b"garbage\0"], "does not speak varlink"),
    ([VERSION, b'{"error":"io.nixsandbox.Later"}\0'], "sandboxd refused: io.nixsandbox.Later"),
    ([VERSION, b'{"error":"io.x.Y","parameters":{"message":"\\u001b[2J\\u009b"}}\0'], "sandboxctl: ?[2J?\n")])
def test_strange_daemons(programs, answers, words):
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        serve(client.sock, *answers)
        done = client.ctl("list")
        assert done.returncode == 1 and done.stdout == "" and words in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("reply", ["{}", '{"sessions":null}', '{"sessions":7}', '{"sessions":[7,null,{},{"name":7,"turns":"x"}]}'])
def test_replies_of_another_version(programs, reply):
    """They are shown as far as they can be, and crash nothing."""
    with removed(public_directory()) as root:
        client = Client(os.path.join(root, "socket"), programs)
        serve(client.sock, VERSION, b'{"parameters":' + reply.encode() + b"}\0")
        assert client.ctl("list").returncode == 0


# Pictures, result, files

PICTURES = ("import struct, zlib\n"
            "def part(kind, data):\n"
            "    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
            "png = (b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 0, 0, 0, 0))\n"
            "       + part(b'IDAT', zlib.compress(bytes(2))) + part(b'IEND', b''))\n"
            "sandbox.image(png); sandbox.image(b'<svg/>'); sandbox.result({'n': [1, '\\x1b']})\n"
            "import os; os.makedirs('out', exist_ok=True); open('out/a b.txt', 'w').write('12'); print('text')")


def test_values_are_told_beside_the_output(ctl, name):
    done = ctl("run", "-e", "python", "-s", name, PICTURES)
    assert done.returncode == 0 and done.stdout == "text\n"
    assert done.stderr.splitlines() == [
        'sandboxctl: result: {"n":[1,"\\u001b"]}',
        "sandboxctl: picture 1: image/png, 67 B (use --pictures DIR)",
        "sandboxctl: picture 2: image/svg+xml, 6 B (use --pictures DIR)",
        "sandboxctl: file /workspace/out/a b.txt, 2 B"]
    assert ctl("run", "-e", "python", "-s", name, "print(1)").stderr == ""


def test_pictures_become_files(ctl, ctl_json, name, tmp_path):
    directory = tmp_path / "pictures"
    victim = tmp_path / "victim"
    victim.write_text("kept")
    directory.mkdir()
    (directory / "turn-1-1.png").symlink_to(victim)
    done = ctl("run", "-e", "python", "-s", name, "--pictures", str(directory), PICTURES)
    assert done.returncode == 0 and f"picture 1: {directory}/turn-1-1.png, 67 B" in done.stderr
    assert (directory / "turn-1-1.png").read_bytes().startswith(b"\x89PNG") and victim.read_text() == "kept"
    assert (directory / "turn-1-2.svg").read_bytes() == b"<svg/>"

    status, reply = ctl_json("run", "-e", "python", "-s", name, "--pictures", str(tmp_path / "new"), PICTURES)
    assert status == 0 and reply["images"] == 2 and [p["type"] for p in reply["pictures"]] == ["image/png", "image/svg+xml"]
    assert reply["result"] == {"n": [1, "\x1b"]}
    assert reply["outputs"] == [{"path": "/workspace/out/a b.txt", "bytes": 2}]
    assert sorted(os.listdir(tmp_path / "new")) == ["turn-2-1.png", "turn-2-2.svg"]


def test_pictures_that_cannot_be_written(ctl, name, tmp_path):
    (tmp_path / "file").write_text("")
    done = ctl("run", "-e", "python", "-s", name, "--pictures", str(tmp_path / "file" / "x"), PICTURES)
    assert done.returncode == 1 and "cannot make the directory" in done.stderr and done.stdout == "text\n"
    assert ctl("run", "-e", "python", "--pictures", str(tmp_path / "none"), "1").returncode == 0
    assert not (tmp_path / "none").exists()

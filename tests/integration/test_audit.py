# SPDX-License-Identifier: MIT
"""The audit trail: what is in it and what never is, crashes, a full disk, tampering, and the journal."""
import collections
import contextlib
import glob
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile

import pytest

from daemonlib import BUILD, ROOT, Daemon, wait_for

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def folder(d):
    return os.path.join(d.root, "state", "audit")


def lines(path):
    """The lines of a directory, oldest first."""
    found = []
    for name in sorted(glob.glob(os.path.join(path, "audit-*.jsonl"))):
        with open(name, encoding="utf-8") as f:
            found += [json.loads(line) for line in f]
    return found


def verify(path, *more):
    """(status, report) of sandboxctl audit verify, without a daemon."""
    done = subprocess.run([os.path.join(BUILD, "sandboxctl"), "--json", "audit", "verify", "-f", path, *more],
                          capture_output=True, text=True, timeout=60, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def assert_good(path, *more):
    status, report = verify(path, *more)
    assert (status, report["faults"]) == (0, []) and report["ok"]
    return report


# What is in it

def test_a_life_in_order(start):
    d = start()
    sid = d.run("x=1", "a")["id"]
    d.run("exit 3", "a")
    freezer = any(c["name"] == "freezer" and c["verdict"] == "ok" for c in d.call("Doctor")["checks"])
    if freezer:
        d.call("Freeze", session="a", project="/test")
        d.call("Thaw", session="a", project="/test")
    d.call("Kill", session="a", project="/test")
    wait_for(lambda: "torn_down" in [e["event"] for e in lines(folder(d))])
    mine = [e for e in lines(folder(d)) if e.get("session") == sid]
    assert [e["event"] for e in mine] == ["session_created", "sandbox_started", "exec_turn", "exec_turn",
                                          *(["frozen", "thawed"] if freezer else []), "killed", "usage_metered",
                                          "torn_down"]
    assert all(e["uid"] == os.getuid() and e["name"] == "a" and len(e["project"]) == 16 for e in mine)
    first, second, end, usage = mine[2], mine[3], mine[-3], mine[-2]
    assert (first["turn"], first["interpreter"], first["exit_code"]) == (1, "bash", 0) and first["duration_usec"] > 0
    assert (second["turn"], second["exit_code"]) == (2, 3)
    assert (end["detail"], end["by"]) == ("admin", os.getuid())
    assert usage["turns"] == 2 and usage["turn_usec"] >= first["duration_usec"]
    if freezer:
        assert usage["cpu_usec"] > 0
        assert (mine[4]["detail"], mine[4]["by"]) == ("by hand", os.getuid())
    times = [e["time_usec"] for e in lines(folder(d))]
    assert times == sorted(times)
    d.end()
    words = [e["event"] for e in lines(folder(d))]
    assert words[:2] == ["log_opened", "sandboxd_started"] and words[-1] == "sandboxd_stopped"
    assert_good(folder(d))


def test_limits_are_in_it(start):
    d = start()
    if any(c["name"] == "memory limit" and c["verdict"] != "ok" for c in d.call("Doctor")["checks"]):
        pytest.skip("no memory controller")
    sid = d.run("x = bytearray(200 << 20)", "a", "python", memory_mb=64)["id"]
    d.call("Set", session="a", project="/test", memory_mb=128)
    d.end()
    mine = [e for e in lines(folder(d)) if e.get("session") == sid]
    hit, change = (next(e for e in mine if e["event"] == word) for word in ("limit_hit", "limits_set"))
    assert "memory" in hit["detail"] and "by" not in hit
    assert change["by"] == os.getuid() and change["memory_mb"] == 128
    words = [e["event"] for e in mine]
    assert abs(words.index("limit_hit") - words.index("exec_turn")) == 1 < words.index("limits_set") < words.index("killed")
    assert next(e for e in mine if e["event"] == "usage_metered")["memory_peak_bytes"] > 32 << 20


SECRETS = {"code": "code-8d7f", "output": "output-8d7f", "error": "error-8d7f", "env": "env-8d7f", "file": "file-8d7f",
           "result": "result-8d7f", "project": "/project-8d7f"}


def use_secrets(d):
    d.project = SECRETS["project"]
    half = len(SECRETS["output"]) // 2
    d.run(f"# {SECRETS['code']}\necho {SECRETS['output'][:half]}\"\"{SECRETS['output'][half:]}; echo {SECRETS['error']} >&2\n"
          f"echo {SECRETS['file']} >f; sandbox-result '{{\"x\": \"{SECRETS['result']}\"}}'; exit 1", "a")
    d.run(f"raise ValueError({SECRETS['error']!r})", "a", "python")
    d.run(f"sleep 60 # {SECRETS['code']}", "a", timeout_ms=100)
    d.refused("Run", code=SECRETS["code"], session="a", environment=SECRETS["env"], project="/x")
    d.end()


def everything(d):
    text = d.log()
    for name in glob.glob(os.path.join(folder(d), "*")):
        with open(name, encoding="utf-8") as f:
            text += f.read()
    return text


def test_no_secrets(start):
    d = start(env={"NIX_SANDBOX_LOG": "debug", "SECRET_TOKEN": SECRETS["env"]})
    use_secrets(d)
    text = everything(d)
    assert "exec_turn" in text
    assert [what for what, secret in SECRETS.items() if secret in text] == []


def test_code_is_logged_if_the_admin_wants_it(start):
    d = start({"audit": {"log_code": True}})
    use_secrets(d)
    text = everything(d)
    assert SECRETS["code"] in text
    assert [what for what in ("output", "env", "project") if SECRETS[what] in text] == []
    code = next(e["code"] for e in lines(folder(d)) if e["event"] == "exec_turn")
    assert code.startswith(f"# {SECRETS['code']}\necho ")
    assert_good(folder(d))


def test_only_for_its_owner(start):
    d = start()
    d.run("true")
    assert os.stat(folder(d)).st_mode & 0o7777 == 0o700
    assert {os.stat(f).st_mode & 0o7777 for f in glob.glob(os.path.join(folder(d), "*"))} == {0o600}


# Crashes and rotation

def test_killed_in_the_middle_of_turns(start):
    d = start()
    total = 0
    for round_ in range(3):
        links = [d.begin("for i in $(seq 1000); do sleep 0.01; done", f"s{round_}{i}") for i in range(3)]
        for _ in range(20):
            d.run("true", f"t{round_}")
        total += 20
        d.crash()
        for link in links:
            link.close()
        d.start()
    assert_good(folder(d))
    d.end()
    report = assert_good(folder(d))
    words = collections.Counter(e["event"] for e in lines(folder(d)))
    assert words["log_opened"] == 1 and words["sandboxd_started"] == 4 and words["sandboxd_stopped"] == 1
    # What was answered is written with the next turn of the loop: of each crash at most the last turn is missing.
    assert total - 3 <= words["exec_turn"]
    assert report["head"]["seq"] == report["lines"]


def test_a_torn_end_is_mended(start):
    d = start()
    d.run("true")
    d.crash()
    name = glob.glob(os.path.join(folder(d), "*"))[0]
    with open(name, "ab") as f:
        f.write(b'{"seq":9,"prev":"')
    status, report = verify(folder(d))
    assert status == 1 and [f["fault"] for f in report["faults"]] == ["torn"]
    d.start()
    wait_for(lambda: "recovered" in [e["event"] for e in lines(folder(d))])
    assert_good(folder(d))


def test_what_does_not_verify_is_kept(start):
    d = start()
    d.run("true")
    d.end()
    name = glob.glob(os.path.join(folder(d), "*"))[0]
    with open(name, "r+b") as f:
        data = f.read().replace(b'"exit_code":0', b'"exit_code":1')
        f.seek(0)
        f.write(data)
    d.start()
    d.run("true")
    check = next(c for c in d.call("Doctor")["checks"] if c["name"] == "audit trail")
    assert check["verdict"] == "warning" and "audit-00000001.jsonl:5: the line was changed" in check["detail"]
    d.end()
    with open(name, "rb") as f:
        assert f.read() == data
    status, report = verify(folder(d))
    assert status == 1
    assert [(f["file"], f["line"], f["fault"]) for f in report["faults"]] == [
        ("audit-00000001.jsonl", 5, "changed"), ("audit-00000002.jsonl", 1, "begun_anew")]
    assert "does not verify and was begun anew" in d.log()


def test_files_follow_each_other(start):
    d = start({"audit": {"max_mb": 1, "keep": 1, "log_code": True}})
    code = "#" + "\x01" * 16000  # 96 KB in a line
    for _ in range(45):
        d.run(code, "a")
    d.end()
    assert [os.path.basename(f) for f in sorted(glob.glob(os.path.join(folder(d), "*")))] == [
        f"audit-0000000{n}.jsonl" for n in (4, 5)]
    assert_good(folder(d))


# A full disk

@contextlib.contextmanager
def on_a_small_disk(start, size):
    """A daemon whose state directory is a tmpfs of a mount namespace of its own; and the way to it."""
    script = 'mkdir -p "$1" && mount -t tmpfs -o size="$0" none "$1" && shift && exec "$@"'
    root = tempfile.mkdtemp(prefix="nsc-")
    os.chmod(root, 0o755)
    try:
        d = start(root=root, wrapper=["unshare", "--mount", "sh", "-c", script, size, os.path.join(root, "state")])
        yield d, os.path.join(f"/proc/{d.pid}/root", root[1:], "state")
    finally:
        with contextlib.suppress(UnboundLocalError):
            d.close()
        shutil.rmtree(root, ignore_errors=True)


@needs_root
def test_a_full_disk(start):
    def audit_check():
        return next(c for c in d.call("Doctor")["checks"] if c["name"] == "audit trail")

    with on_a_small_disk(start, "100k") as (d, state):
        d.run("true", "a")
        with open(os.path.join(state, "filler"), "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(b"x" * 4096)
        for _ in range(20):
            assert d.run("echo x", "a")["stdout"] == "x\n"
        wait_for(lambda: audit_check()["verdict"] == "warning")
        assert "No space left on device" in audit_check()["detail"]
        assert_good(os.path.join(state, "audit"))
        assert d.log().count("cannot be written") == 1

        os.unlink(os.path.join(state, "filler"))
        wait_for(lambda: audit_check()["verdict"] == "ok")
        d.run("true", "a")
        wait_for(lambda: sum(e["event"] == "exec_turn" for e in lines(os.path.join(state, "audit"))) == 22)
        assert_good(os.path.join(state, "audit"))


# Tampering, as sandboxctl finds it

@pytest.fixture(scope="module")
def trail(programs):
    """A good trail of two files, and its lines."""
    with Daemon({"audit": {"max_mb": 1, "log_code": True}}, programs=programs) as d:
        d.run("true", "a")
        for _ in range(12):
            d.run("#" + "\x01" * 16000, "a")
        d.call("Kill", session="a", project="/test")
        d.end()
        files = []
        for name in sorted(os.listdir(folder(d))):
            with open(os.path.join(folder(d), name), "rb") as f:
                files.append(f.read().splitlines(keepends=True))
        assert len(files) == 2 and all(len(f) > 4 for f in files)
        yield files


def forged(line):
    """A line with another text, and a hash that fits it."""
    body = line.rpartition(b',"hash":')[0].replace(b'"exit_code":0', b'"exit_code":7')
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def spoil(kind, first, second):
    """Changes lists of lines; the place of the first fault, and its word."""
    if kind == "changed":
        first[4] = first[4].replace(b'"exit_code":0', b'"exit_code":7')
        return "audit-00000001.jsonl", 5, "changed"
    if kind == "removed":
        del first[4]
        return "audit-00000001.jsonl", 5, "missing"
    if kind == "reordered":
        first[4], first[5] = first[5], first[4]
        return "audit-00000001.jsonl", 5, "missing"
    if kind == "repeated":
        first.insert(5, first[4])
        return "audit-00000001.jsonl", 6, "misplaced"
    if kind == "forged":
        first[4] = forged(first[4])
        return "audit-00000001.jsonl", 6, "other_past"
    if kind == "cut in the middle":
        first[4] = first[4][:100] + b"\n"
        return "audit-00000001.jsonl", 5, "not_a_line"
    if kind == "end of the first file":
        del first[-1]
        return "audit-00000002.jsonl", 1, "missing"
    if kind == "start of the second file":
        del second[0]
        return "audit-00000002.jsonl", 1, "no_start"
    if kind == "torn":
        second[-1] = second[-1][:-5]
        return "audit-00000002.jsonl", len(second), "torn"
    raise AssertionError(kind)


def write_trail(path, files):
    for n, content in enumerate(files, 1):
        with open(os.path.join(path, f"audit-{n:08}.jsonl"), "wb") as f:
            f.writelines(content)


def test_a_good_trail(trail, tmp_path):
    write_trail(tmp_path, trail)
    last = json.loads(trail[1][-1])
    report = assert_good(str(tmp_path))
    assert report["head"] == {"seq": last["seq"], "hash": last["hash"]}
    assert [f["file"] for f in report["files"]] == ["audit-00000001.jsonl", "audit-00000002.jsonl"]
    assert_good(str(tmp_path / "audit-00000002.jsonl"))
    os.unlink(tmp_path / "audit-00000001.jsonl")  # as rotation does
    assert_good(str(tmp_path))


@pytest.mark.parametrize("kind", ["changed", "removed", "reordered", "repeated", "forged", "cut in the middle",
                                  "end of the first file", "start of the second file", "torn"])
def test_tampering_is_found(trail, tmp_path, kind):
    files = [list(f) for f in trail]
    file, line, word = spoil(kind, *files)
    write_trail(tmp_path, files)
    status, report = verify(str(tmp_path))
    assert status == 1 and not report["ok"]
    fault = report["faults"][0]
    assert (fault["file"], fault["line"], fault["fault"]) == (file, line, word)
    done = subprocess.run([os.path.join(BUILD, "sandboxctl"), "audit", "verify", "-f", tmp_path], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"{file}:{line}: " in done.stdout and "NOT GOOD" in done.stdout


def test_a_missing_file_is_found(trail, tmp_path):
    write_trail(tmp_path, [*trail, []])
    os.rename(tmp_path / "audit-00000002.jsonl", tmp_path / "audit-00000003.jsonl")
    assert_good(str(tmp_path))  # the number in a name proves nothing, and nothing is missing
    write_trail(tmp_path, [trail[0], trail[0]])
    os.unlink(tmp_path / "audit-00000002.jsonl")
    with open(tmp_path / "audit-00000003.jsonl", "wb") as f:
        f.writelines(trail[0])
    assert verify(str(tmp_path))[0] == 1


def test_a_cut_end_is_found_with_a_head_from_the_journal(trail, tmp_path):
    last = json.loads(trail[1][-1])
    head = f"{last['seq']}:{last['hash']}"
    write_trail(tmp_path, trail)
    assert_good(str(tmp_path), "--expect", head)
    write_trail(tmp_path, [trail[0], trail[1][:-1]])
    assert_good(str(tmp_path))
    status, report = verify(str(tmp_path), "--expect", head)
    assert status == 1 and report["faults"][0]["fault"] == "no_head"
    write_trail(tmp_path, trail)
    status, report = verify(str(tmp_path), "--expect", f"{last['seq']}:{'0' * 64}")
    assert status == 1 and report["faults"][0]["fault"] == "other_head"


# sandboxctl audit

def test_show(start):
    d = start()
    sid = d.run("exit 3", "dev")["id"]
    d.call("Kill", session="dev", project="/test")
    wait_for(lambda: "torn_down" in [e["event"] for e in lines(folder(d))])
    done = d.ctl("audit")
    words = [line.split() for line in done.stdout.splitlines()]
    assert [w[0] for w in words] == [str(n) for n in range(1, len(words) + 1)]
    turn = next(w for w in words if "exec_turn" in w)
    assert turn[3] == sid and turn[5:7] == ["dev", "exec_turn"] and "exit_code=3" in turn
    killed = next(w for w in words if "killed" in w)
    assert killed[7] == "admin"
    assert d.ctl("audit", "-n", "2").stdout.splitlines() == done.stdout.splitlines()[-2:]

    raw = d.ctl("--json", "audit", "-n", "1").stdout
    with open(os.path.join(folder(d), "audit-00000001.jsonl"), encoding="utf-8") as f:
        assert raw == f.readlines()[-1]
    verified = d.ctl("audit", "verify").stdout
    assert "Good:" in verified and f"Head: {len(words)}:" in verified
    d.end()
    done = subprocess.run([os.path.join(d.programs, "sandboxctl"), "audit", "-f", folder(d)], capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 0 and "sandboxd_stopped" in done.stdout


def test_show_without_right_or_trail(start, tmp_path):
    d = start()
    done = d.ctl("audit", "-f", str(tmp_path))
    assert done.returncode == 1 and "Cannot read the audit trail" in done.stderr
    status, error = d.json("audit", "-f", "/nonexistent")
    assert status == 1 and error["error"] == "io.nixsandbox.NotSupported"
    for bad in (["-n", "0"], ["verify", "--expect", "1:x"], ["nonsense"], ["--expect", "1:" + "0" * 64]):
        assert d.ctl("audit", *bad).returncode == 2
    if os.getuid() == 0:
        done = d.ctl("audit", user=65534, group=65534, extra_groups=[])
        assert done.returncode == 1 and "belongs to the user that sandboxd runs as" in done.stderr


def test_show_harmless_on_a_terminal(tmp_path):
    path = tmp_path / "audit-00000001.jsonl"
    path.write_bytes(forged(b'{"seq":1,"prev":"' + b"0" * 64 + b'","event":"log_opened","detail":"\\u001b[2J","hash":"'))
    done = subprocess.run([os.path.join(BUILD, "sandboxctl"), "audit", "-f", path], capture_output=True, timeout=30,
                          check=False)
    assert done.returncode == 0 and b"\x1b" not in done.stdout and b"?[2J" in done.stdout


# The journal

class Journal:
    """What stands in for it: the socket, in a directory that a daemon sees in the place of the real one."""
    script = 'mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal && exec "$@"'

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(self.path, "socket"))
        self.socket.setblocking(False)

    @property
    def wrapper(self):
        return ["unshare", "--mount", "sh", "-c", self.script, self.path]

    def entries(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(dict(line.split("=", 1) for line in self.socket.recv(1 << 20).decode().splitlines()))
        return found


@contextlib.contextmanager
def with_journal(start, tmp_path):
    """A daemon, and the journal that it takes for its service manager's."""
    os.chmod(tmp_path, 0o755)
    journal = Journal(tmp_path)
    root = tempfile.mkdtemp(prefix="nsc-")
    os.chmod(root, 0o755)
    log = os.path.join(root, "log")
    with open(log, "wb"):
        st = os.stat(log)
    try:
        yield start(root=root, wrapper=journal.wrapper, env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}",
                                                                  "NIX_SANDBOX_LOG": "err"}), journal
    finally:
        shutil.rmtree(root, ignore_errors=True)
        journal.socket.close()


@needs_root
def test_journal(start, tmp_path):
    with with_journal(start, tmp_path) as (d, journal):
        sid = d.run("echo secret-9c1", "dev")["id"]
        d.call("Kill", session="dev", project="/test")
        d.end()
        entries = journal.entries()
        mine = [e for e in entries if e.get("SANDBOXD_SESSION") == sid]
        assert [e["SANDBOXD_EVENT"] for e in mine] == ["session_created", "sandbox_started", "killed", "usage_metered",
                                                       "torn_down"], "turns are for debug"
        assert all(e["SANDBOXD_UID"] == "0" and e["SANDBOXD_NAME"] == "dev" for e in mine)
        assert mine[2]["SANDBOXD_REASON"] == "admin" and mine[2]["SANDBOXD_BY"] == "0"
        assert mine[3]["SANDBOXD_TURNS"] == "1"
        assert len({e["MESSAGE_ID"] for e in mine}) == 5 and all(e["SYSLOG_IDENTIFIER"] == "sandboxd" for e in mine)
        assert "secret-9c1" not in str(entries)

        # Each head that the journal knows is one of the trail, and the last is the trail's own.
        for e in entries:
            if "SANDBOXD_AUDIT_SEQ" in e:
                report = assert_good(folder(d), "--expect", f"{e['SANDBOXD_AUDIT_SEQ']}:{e['SANDBOXD_AUDIT_HASH']}")
        assert entries[-1]["SANDBOXD_EVENT"] == "audit_head"
        assert report["head"] == {"seq": int(entries[-1]["SANDBOXD_AUDIT_SEQ"]), "hash": entries[-1]["SANDBOXD_AUDIT_HASH"]}


@needs_root
def test_a_journal_that_hangs(start, tmp_path):
    with with_journal(start, tmp_path) as (d, journal), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        other.connect(os.path.join(journal.path, "socket"))
        d.run("true", "before")
        with contextlib.suppress(BlockingIOError):
            while True:
                other.send(b"MESSAGE=others are loud\n")
        d.run("true", "during")
        d.call("Kill", session="during", project="/test")
        journal.entries()
        d.run("true", "after")
        names = [e.get("SANDBOXD_NAME") for e in journal.entries()]
        assert "after" in names and "during" not in names
        d.end()
        assert {"before", "during", "after"} <= {e.get("name") for e in lines(folder(d))}


@pytest.mark.skipif(not shutil.which("journalctl"), reason="needs journalctl")
def test_catalog(tmp_path):
    """systemd's own reader takes it."""
    place = tmp_path / "usr/lib/systemd/catalog"
    place.mkdir(parents=True)
    source = os.path.join(ROOT, "units", "nix-sandbox.catalog")
    shutil.copy(source, place)
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    subprocess.run(["journalctl", f"--root={tmp_path}", "--update-catalog"], check=True, timeout=60, capture_output=True)
    listed = subprocess.run(["journalctl", f"--root={tmp_path}", "--list-catalog"], check=True, timeout=60,
                            capture_output=True, text=True).stdout.splitlines()
    with open(source, encoding="utf-8") as f:
        ids = [line[3:].strip() for line in f if line.startswith("-- ")]
    assert sorted(line.split()[0] for line in listed) == sorted(ids)


JOURNALD = next((p for p in ("/usr/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald") if os.path.exists(p)), None)


@contextlib.contextmanager
def with_journald(tmp_path):
    """The real one, for itself in a mount namespace and with our catalog; the command that enters it."""
    (tmp_path / "journald.conf").write_text("[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\nForwardToSyslog=no\n")
    script = ('mount -t tmpfs none /run && mkdir -p /run/systemd/journal &&'
              ' mount --bind "$0/journald.conf" /etc/systemd/journald.conf &&'
              ' mount --bind "$0/var/lib/systemd/catalog" /var/lib/systemd/catalog && exec "$1"')
    p = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, tmp_path, JOURNALD], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists(f"/proc/{p.pid}/root/run/systemd/journal/socket") or p.poll() is not None)
        yield p, ["nsenter", "-t", str(p.pid), "-m", "--"]
    finally:
        p.terminate()
        p.wait(20)


@needs_root
@pytest.mark.skipif(not JOURNALD or not os.path.exists("/etc/machine-id"), reason="needs systemd-journald and a machine id")
def test_journalctl_explains(start, tmp_path):
    root = tempfile.mkdtemp(prefix="nsc-")
    os.chmod(root, 0o755)
    log, catalog = os.path.join(root, "log"), tmp_path / "usr/lib/systemd/catalog"
    with open(log, "wb"):
        st = os.stat(log)
    catalog.mkdir(parents=True)
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    shutil.copy(os.path.join(ROOT, "units", "nix-sandbox.catalog"), catalog)
    subprocess.run(["journalctl", f"--root={tmp_path}", "--update-catalog"], check=True, timeout=60, capture_output=True)
    try:
        with with_journald(tmp_path) as (journald, enter):
            if journald.poll() is not None:
                pytest.skip("systemd-journald does not run here")
            d = start(root=root, wrapper=enter, env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
            sid = d.run("true", "dev")["id"]
            d.call("Kill", session="dev", project="/test")
            d.end()

            def shown():
                done = subprocess.run([*enter, "journalctl", "-x", "--no-pager", f"SANDBOXD_SESSION={sid}"], check=False,
                                      timeout=60, capture_output=True, text=True)
                return done.stdout if "torn_down" in done.stdout else None
            text = wait_for(shown)
        assert f"Session {sid} 'dev' of uid 0: killed (admin), asked for by uid 0" in text
        assert f"Subject: Sandbox session {sid} is ended" in text and 'The reason is: admin. "admin" means by hand' in text
    finally:
        shutil.rmtree(root, ignore_errors=True)

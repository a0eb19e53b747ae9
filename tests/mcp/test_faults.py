# SPDX-License-Identifier: MIT
"""What goes wrong around the shim: pipes that nobody reads, a daemon that is slow, dies or answers nonsense, a
bad command line. The daemon is a fake."""
import os
import subprocess
import threading
import time

import pytest

from fake_sandboxd import FakeSandboxd
from stdio_client import clean_environment, eventually, rss_kib, text


# ---- pipes that are not read


def test_full_stderr_does_not_hang(start, fake):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        pass
    os.set_blocking(writing, True)
    shim = start("--socket", fake.path, stderr=writing, env={**os.environ, "NIX_SANDBOX_LOG": "debug"})
    shim.initialize()
    for _ in range(100):
        shim.write(b"not json\n")
    assert "fine" in shim.run("out fine")
    assert shim.close() < 1
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("sockets", [False, True])
def test_slow_reader_gets_everything(start, fake, sockets):
    shim = start("--socket", fake.path, sockets=sockets)
    requests = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}\n' + b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n for n in range(6000))
    # 20 MB of answers that nobody reads: the shim must stop reading, so writing the requests blocks.
    writer = threading.Thread(target=shim.write, args=(requests,), daemon=True)
    writer.start()
    writer.join(0.5)
    assert writer.is_alive()
    assert rss_kib(shim.process.pid) < 8192
    shim.start_reading()
    # Those that the daemon was asked for may be overtaken.
    assert shim.count_lines(6001) == 6001 and None not in shim.lines


def test_reader_that_is_late_at_the_end(start, fake):
    shim = start("--socket", fake.path)
    # More than a pipe holds, so that there is something left when the input ends.
    shim.write(b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}\n' + b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % n for n in range(100)))
    shim.stdin.close()
    shim.start_reading()
    assert shim.answer(99)
    assert shim.wait() < 1


def test_nothing_but_json_on_stdout(start, fake):
    shim = start("--socket", fake.path, env={**os.environ, "NIX_SANDBOX_LOG": "debug"})
    shim.initialize()
    shim.write(b"garbage\n")
    shim.run("out")
    fake.stop()
    shim.call({"code": "out"})
    assert shim.close() < 1
    assert None not in shim.lines


def test_closed_standard_descriptors(program, fake):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f'exec "$0" --socket "$1" {closed}', program, fake.path],
                              input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', capture_output=True,
                              timeout=5, check=False)
        assert done.returncode == 0, closed
        assert done.stdout in (b"", b'{"jsonrpc":"2.0","id":1,"result":{}}\n')


# ---- the daemon's faults


def test_daemon_restart_between_calls(shim, fake):
    shim.run("out one")
    fake.stop()
    fake.start()
    assert "two" in shim.run("out two")


def tags(fake, method):
    return [p.get("tag") for name, p in fake.calls if name.endswith("." + method)]


def test_turn_that_goes_on_after_a_restart(shim, fake):
    """The shim asks for it by its tag, which no other run has."""
    fake.tagged = lambda connection, parameters: fake.do_Run(connection, {"code": "out waited", "session": "dev"})
    shim.run("out x")
    result = shim.call({"code": "hang up", "session": "dev", "timeout": 5})
    assert "waited" in text(result) and result.get("isError", False) is False
    first, second = tags(fake, "Run")
    assert tags(fake, "Wait") == [second] and first != second and len(second) == 24 and second.isalnum()
    asked = next(p for name, p in fake.calls if name.endswith(".Wait"))
    assert asked["session"] == "dev" and asked["answer_after_ms"] == 50000 and "code" not in asked and "timeout_ms" not in asked


def test_turn_that_never_began_is_sent_again(shim, fake):
    hangs = [True]
    run = fake.do_Run

    def run_after_a_hangup(connection, parameters):
        if hangs:
            hangs.pop()
            run(connection, {"code": "hang up"})
        return run(connection, parameters)
    fake.do_Run = run_after_a_hangup
    result = shim.call({"code": "out x\nset notice=\"first\"", "session": "dev"})
    assert "x\n" in text(result) and "note: first\nnote: sandboxd was restarted before the code had begun" in text(result)
    assert len(tags(fake, "Run")) == 2 and len(set(tags(fake, "Run") + tags(fake, "Wait"))) == 1


def test_run_is_sent_again_once_only(shim, fake):
    result = shim.call({"code": "hang up", "session": "dev"})
    assert result["isError"] is True
    assert "went away" in text(result) and "may be lost" in text(result)
    assert fake.count("Run") == 2 and fake.count("Wait") == 2
    assert "fine" in shim.run("out fine")


@pytest.mark.parametrize("error,words", [("SessionEnded", "It has ended."), ("Internal", "went away")])
def test_turn_that_is_lost_is_not_repeated(shim, fake, error, words):
    fake.tagged = lambda connection, parameters: fake.error(error, "It has ended.", session="dev", reason="x")
    result = shim.call({"code": "hang up", "session": "dev"})
    assert result["isError"] is True and words in text(result) and fake.count("Run") == 1
    assert "fine" in shim.run("out fine")


def test_daemon_that_comes_back_late(shim, fake):
    fake.tagged = lambda connection, parameters: fake.do_Run(connection, {"code": "out waited"})
    rid = shim.start_call({"code": "sleep 20"})
    eventually(lambda: fake.count("Run") == 1)
    fake.stop()
    time.sleep(1.5)
    assert shim.request("ping") is not None
    fake.start()
    assert "waited" in text(shim.answer(rid)["result"])


def test_daemon_dies_during_a_turn(shim, fake):
    rid = shim.start_call({"code": "sleep 20"})
    eventually(lambda: fake.count("Run") == 1)
    fake.stop()
    assert "went away" in text(shim.answer(rid, patience=40)["result"])
    result = shim.call({"code": "out"})
    assert result["isError"] is True and fake.path in text(result)
    fake.start()
    assert "again" in shim.run("out again")


def test_reading_is_repeated_once(shim, fake):
    hangs = [True]
    listing = fake.do_List

    def list_after_a_hangup(connection, parameters):
        if hangs:
            hangs.pop()
            connection.shutdown(2)
        return listing(connection, parameters)

    fake.do_List = list_after_a_hangup
    assert "no sessions" in text(shim.call({"action": "list"}, tool="session"))
    assert fake.count("List") == 2


def test_garbage_instead_of_a_reply(shim):
    assert "is not sandboxd" in text(shim.call({"code": "garbage"}))
    assert "fine" in shim.run("out fine")


@pytest.mark.parametrize("change", ["stdout=5", "id=null", "truncated=[]", "duration_ms=\"x\""])
def test_reply_of_another_shape(shim, change):
    result = shim.call({"code": f"set {change}"})
    assert result["isError"] is True and "cannot be understood" in text(result)


def test_no_daemon_at_all(start, tmp_path):
    shim = start("--socket", str(tmp_path / "nobody"))
    shim.initialize()
    ids = [shim.start_call({"code": "out"}) for _ in range(5)]
    for rid in ids:
        result = shim.answer(rid)["result"]
        assert result["isError"] is True and "nobody" in text(result)


def test_slow_daemon_does_not_hold_up_the_editor(start, tmp_path):
    slow = FakeSandboxd(str(tmp_path / "slow"), version_delay=1.5)
    shim = start("--socket", slow.path)
    shim.initialize()
    rid = shim.start_call({"code": "out at last"}, progressToken=1)
    start_time = time.monotonic()
    assert shim.ask("ping") and shim.ask("tools/list")
    assert time.monotonic() - start_time < 1
    assert "at last" in text(shim.answer(rid)["result"])
    assert "connecting" in shim.progress(1)[0]["message"]
    slow.stop()


# ---- the command line and the environment


def project_of(start, fake, *arguments, **options):
    """The project that a run is made for."""
    shim = start("--socket", fake.path, *arguments, **options)
    shim.initialize()
    shim.run("out")
    return fake.calls[-1][1].get("project")


def test_project(start, fake, tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    for directory in (a, b, c):
        directory.mkdir()
    (tmp_path / "link").symlink_to(a)
    (tmp_path / "file").touch()
    env = clean_environment(PROJECT_DIR=str(a), CLAUDE_PROJECT_DIR=str(b))
    assert project_of(start, fake, "--project", str(c), env=env, cwd="/") == str(c)
    assert project_of(start, fake, env=env, cwd=c) == str(a)
    assert project_of(start, fake, env=clean_environment(CLAUDE_PROJECT_DIR=str(b)), cwd=c) == str(b)
    assert project_of(start, fake, env=clean_environment(), cwd=c) == str(c)
    assert project_of(start, fake, "--project", str(tmp_path / "link"), env=env) == str(a)
    for useless in ("${workspaceFolder}", "", str(tmp_path / "file")):
        assert project_of(start, fake, env=clean_environment(PROJECT_DIR=useless), cwd=c) == str(c)
    assert project_of(start, fake, env=clean_environment(), cwd="/") is None


def test_socket_from_the_environment(start, fake):
    shim = start(env=clean_environment(NIX_SANDBOX_SOCKET=fake.path))
    shim.initialize()
    assert "hi" in shim.run("out hi")


def test_options(program, tmp_path):
    def run(*arguments):
        return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=5, check=False)

    assert run("--help").returncode == 0 and b"--socket" in run("--help").stdout
    assert run("--version").stdout.startswith(b"nix-sandbox-mcp ")
    for bad in (["--nonsense"], ["extra"], ["--project", str(tmp_path / "missing")], ["--socket"]):
        done = run(*bad)
        assert done.returncode == 1 and done.stderr and not done.stdout, bad

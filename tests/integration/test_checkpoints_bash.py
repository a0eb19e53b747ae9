# SPDX-License-Identifier: MIT
"""sandbox-agent with the real bash driver: what is left of the state when the shell is killed, or replaced by exec."""
import os
import signal

import pytest

from test_checkpoints import running

ENDS = {
    "exec": ("exec sh -c 'exit 7'", 7),
    "exec, no output": ("exec 2>/dev/null; exec true", 0),
    "kill": ("kill -9 $$", 128 + signal.SIGKILL),
    "from a child": ("bash -c 'kill -9 $PPID'; sleep 5", 128 + signal.SIGKILL),
    "in a function": ("f() { local x=5; exec false; }; f", 1),
}


@pytest.fixture(params=[False, True], ids=["subreaper", "pid1"])
def agent(request):
    with running("auto", namespace=request.param) as a:
        yield a


@pytest.fixture
def always():
    with running("always") as a:
        yield a


def run(agent, code, out=b"", **arguments):
    t = agent.turn(code, "bash", **arguments)
    assert (t.exit_code, t.state, t.out, t.err) == (0, "kept", out, b""), (t.result, t.out, t.err)
    return t


@pytest.mark.parametrize("end", ENDS)
def test_code_that_ends_the_shell_loses_itself_only(agent, end):
    """Also where turns are too short for a checkpoint after each: the code is looked at."""
    code, status = ENDS[end]
    run(agent, "x=41; f() { echo \"f $x\"; }; alias g=f; cd /usr")
    run(agent, "x=42")
    t = agent.turn(f"x=43\n{code}", "bash")
    assert (t.state, t.rolled_back_to, t.exit_code, t.restarted) == ("rolled_back", 2, status, False), t.result
    run(agent, "g; pwd", b"f 42\n/usr\n")


def test_again_and_again(agent):
    run(agent, "x=1")
    for _ in range(6):
        assert agent.turn("x=2; exec true", "bash").state == "rolled_back"
        run(agent, "echo $x", b"1\n")
    run(agent, "x=3; exit 0")
    assert agent.turn("exec true", "bash").state == "rolled_back"
    run(agent, "echo $x", b"3\n")


def test_nothing_to_go_back_to(agent):
    t = agent.turn("x=1; exec true", "bash")
    assert t.state == "lost"
    t = agent.turn("echo ${x-none}", "bash")
    assert (t.out, t.restarted) == (b"none\n", True)


def test_mode_never():
    with running("never") as agent:
        run(agent, "x=1")
        assert agent.turn("exec true", "bash").state == "lost"


def test_a_loop_that_nothing_stops(always):
    run(always, "x=1")
    run(always, "true")                 # by its end the checkpoint of the first one is made
    t = always.turn("trap '' INT; kill -STOP $$", "bash", timeout=0.2)
    assert t.timed_out and t.state == "rolled_back" and t.rolled_back_to in (1, 2)
    run(always, "echo $x", b"1\n")


def test_death_between_turns(always):
    pid = int(always.turn("x=1; echo $$", "bash").out)
    run(always, "x=2")                  # by its end that of the first one is made
    os.kill(pid, signal.SIGKILL)
    always.wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
    t = always.turn("echo $x; x=3", "bash")
    assert (t.state, t.restarted) == ("kept", True) and t.out == b"%d\n" % t.rolled_back_to
    run(always, "echo $x", b"3\n")


def test_what_is_gone_is_told(agent):
    run(agent, "mkdir d; cd d; sleep 100 & exec 5>f")
    t = agent.turn("rm -r ../d; exec true", "bash")
    assert t.children_gone and t.directory_gone and t.files_gone and "pipes_gone" not in t.result
    run(agent, "[[ $PWD -ef $HOME ]] && echo home", b"home\n")


def test_the_memory_of_texts_is_bounded():
    with running("always", mb=0) as agent:
        run(agent, "x=1")
        assert agent.turn("exec true", "bash").state == "lost"


def test_a_large_state(agent):
    run(agent, "x=$(head -c 1100000 /dev/zero | tr '\\0' y)")
    t = agent.turn("exec true", "bash")
    assert (t.state, t.obstacle) == ("lost", "large")


def test_forged_copies(agent):
    """What code says of itself to the agent counts for nothing but a report of its own turn."""
    run(agent, "x=1")
    for forged in ("copy 0123456789abcdef 7\\nx=2; :\\n", "copy x 3\\nabc", "copy 0123456789abcdef 2000000\\n"):
        t = agent.turn(f"printf '\\n{forged}' >&77; x=9", "bash", timeout=1)
        assert t.state in ("kept", "lost", "rolled_back")
        if t.state != "kept":
            run(agent, "x=1")
    run(agent, "x=7")
    assert agent.turn("exec true", "bash").state == "rolled_back"
    run(agent, "echo $x", b"7\n")

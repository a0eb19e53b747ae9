# SPDX-License-Identifier: MIT
"""Checkpoints of the bash driver: the state as a text, and a new shell that goes on with it."""
import secrets
import select
import time

import pytest
from harness import Driver
from test_bash import STATE, Session

LARGE, WAKE_CHILDREN, WAKE_DIRECTORY, WAKE_FILES = 4, 2, 8, 16


@pytest.fixture
def sh():
    with Driver("bash") as driver:
        yield Session(driver)


@pytest.fixture
def other(sh):
    """A new process in the place of the shell."""
    with Driver("bash", sh.driver.workspace) as driver:
        yield Session(driver)


def ask(driver, verb, data):
    """The status that it says it is done with; None: its process has ended."""
    token = secrets.token_hex(8)
    driver.send(b"%s %s %d\n" % (verb.encode(), token.encode(), len(data)) + data)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        select.select([driver.control], [], [], 0.05)
        if report := driver.report(token):
            return report[0]
        if driver.process.poll() is not None:
            return None
    raise AssertionError("it does not answer")


def park(session):
    session.driver.copy = None
    status = ask(session.driver, "park", b"auto")
    assert (status == 0) == (session.driver.copy is not None)
    return session.driver.copy if status == 0 else status


def wake(session, copy):
    return ask(session.driver, "wake", copy)


@pytest.mark.parametrize("before, after, stdout", STATE)
def test_what_is_kept(sh, other, before, after, stdout):
    if before.startswith("trap"):                       # $$ is another one
        after = after.replace("kill -USR2 $$; ", "")
    sh(before)
    copy = park(sh)
    assert wake(other, copy) == 0
    other(after, stdout)
    sh(after, stdout)                                   # and the shell itself has lost nothing by it


def test_arguments_and_status(sh, other):
    sh("set -- a 'b c' ''; f() { return 7; }; f", status=7)
    copy = park(sh)
    sh("echo $? $#", "7 3\n")
    assert wake(other, copy) == 0
    other("echo $? $# $2", "7 3 b c\n")


def test_it_goes_on_as_any_other(sh, other):
    sh("x=1; trap 'echo bye' EXIT")
    assert wake(other, park(sh)) == 0
    other("x=2; exit 3", "bye\n", 3)
    other("echo $x", "2\n")
    copy = park(other)
    with Driver("bash") as third:
        assert wake(Session(third), copy) == 0
        Session(third)("echo $x; exit", "2\nbye\n")


def test_nothing_is_gone_where_nothing_was(sh, other):
    sh("x=1; cd /usr; true | cat; $(true)")
    assert wake(other, park(sh)) == 0


def test_what_is_gone_is_told(sh, other):
    sh("mkdir d; cd d; sleep 100 & exec 5>f {n}>g")
    copy = park(sh)
    sh("kill %1; wait %1; exec 5>&- {n}>&-; rm -r ../d", status=0)
    assert wake(other, copy) == WAKE_CHILDREN | WAKE_DIRECTORY | WAKE_FILES
    other("[[ $PWD -ef %s ]] && echo home; jobs; [[ -e /proc/$$/fd/5 ]] || echo closed" % other.driver.workspace,
          "home\nclosed\n")


def test_a_limit_stays(sh, other):
    sh("ulimit -n 100; ulimit -S -v 900000")
    assert wake(other, park(sh)) == 0
    other("ulimit -H -n; ulimit -S -v", "100\n900000\n")


def test_a_large_state(sh):
    sh("x=$(head -c 1100000 /dev/zero | tr '\\0' y)")
    assert park(sh) == LARGE
    sh("echo ${#x}", "1100000\n")


def test_half_a_copy_ends_the_shell(sh):
    sh("x=1")
    copy = park(sh)
    for bad in (b"", b"garbage", copy[:len(copy) // 2], copy[:-len("kept")]):
        with Driver("bash") as other:
            assert wake(Session(other), bad) is None


@pytest.mark.parametrize("setup", [
    "set -eu", "set -f; IFS=0123456789", "set -k", "declare() { echo no; }; printf() { :; }", "alias builtin=false",
    "enable -n printf declare umask jobs ulimit", "trap 'echo debug' DEBUG", "trap 'echo err' ERR; set -E",
    "shopt -s nocasematch nullglob", "LC_ALL=C.UTF-8; x=é", "set -o posix", "declare -r r=1", "REPLY=1; TMOUT=1",
    "jobs() { echo no; }; export -f jobs", "mapfile() { :; }; read() { :; }", "unset PATH; cd /",
])
def test_code_does_not_get_in_the_way(sh, other, setup):
    def look(session):
        answer = session.driver.turn("v=a; echo $v $-")
        return answer["stdout"], answer["stderr"], answer["exit_code"], answer["state"]
    sh(setup)
    before = look(sh)
    copy = park(sh)
    assert look(sh) == before
    assert wake(other, copy) == 0
    assert look(other) == before


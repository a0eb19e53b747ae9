# SPDX-License-Identifier: MIT
"""The bash driver by itself: the corpus' cases, and what is best provoked without agent and jail.

TEST_BASH chooses another bash than the system's.
"""
import os
import re
import signal
import time

import corpus
import harness
import pytest
from harness import Driver

BASH = os.environ.get("TEST_BASH", "/usr/bin/bash")
NEED_THE_REST = {"sh-kill-tree",                    # the agent kills the children
                 "out-huge", "out-timeout-flood"}   # and it is what bounds output
ISOLATION = {"iso-fds", "iso-signal-mask", "iso-environment"}
CASES = [pytest.param(steps, id=name) for topic in ("shell", "output", "isolation")
         for name, steps in corpus.cases("shell", topic, NEED_THE_REST)
         if topic != "isolation" or name in ISOLATION]


def re_any(*values):
    """Equal to each of them."""
    class Any:
        __eq__ = lambda self, other: other in values            # noqa: E731
        __ne__ = lambda self, other: other not in values        # noqa: E731
        __repr__ = lambda self: f"one of {values}"              # noqa: E731
    return Any()


@pytest.fixture(autouse=True)
def chosen_bash(monkeypatch):
    monkeypatch.setitem(harness.DRIVERS, "bash", ("bash.sh", lambda text: harness.bash_command(BASH, text)))
    yield


@pytest.mark.parametrize("steps", CASES)
def test_case(steps):
    assert corpus.run("bash", steps) == []


class Session:
    """Runs turns and expects of each: this output, nothing on stderr, status 0, state kept."""

    def __init__(self, driver):
        self.driver = driver

    def __call__(self, code, stdout="", status=0, stderr="", state="kept", timeout=20.0):
        answer = self.driver.turn(code, timeout)
        for stream, expected in (("stdout", stdout), ("stderr", stderr)):
            if isinstance(expected, re.Pattern):
                assert expected.search(answer[stream]), answer
            else:
                assert answer[stream] == expected, answer
        assert (answer["exit_code"], answer["state"]) == (status, state), answer
        return answer

    def interrupted(self, code, stdout="", state="kept", stderr=re.compile("")):
        """The code must come to an end, by SIGINT if the state is to be kept."""
        return self(code, stdout, 124, stderr, state, timeout=0.5)

    def loses(self, code, status=0):
        """The session is lost with the turn and not later, at once, and the next one is whole."""
        assert self(code, re.compile(""), status, re.compile(""), "lost")["seconds"] < 10
        self("echo new", "new\n")


@pytest.fixture
def sh():
    with Driver("bash") as driver:
        yield Session(driver)


# ---------------------------------------------------------------- where code runs


def test_lines_are_counted_from_the_code(sh):
    sh("\nno_such_1\n\n  no_such_2", status=127, stderr="bash: line 2: no_such_1: command not found\n"
       "bash: line 4: no_such_2: command not found\n")
    sh("echo $LINENO\nf() {\n  echo $LINENO\n}\nf", "1\n3\n")
    sh("break", stderr="")
    sh("exit 1", status=1)
    sh("\n)", status=2, stderr=re.compile("line 2: syntax error"))


def test_status_of_the_last_turn(sh):
    sh("echo $?; (exit 3)", "0\n", 3)
    sh("echo $?; exit 4", "3\n", 4)
    sh("echo $?; set -e; echo $?", "4\n0\n")
    sh("false", status=1)
    sh("echo $?; set +e", "1\n")


def test_top_level(sh):
    sh("declare -A m=([k]=v); declare -i n=2; local x", status=1, stderr=re.compile("local"))
    sh("n+=2; echo ${m[k]} $n ${#FUNCNAME[@]} $0", "v 4 0 bash\n")
    sh("set -- a 'b c'")
    sh("echo $# $2; exit", "2 b c\n")
    sh("set -- x 'd e'; exit")
    sh("echo $# $2; g() { exit 1; }; g x", "2 d e\n", 1)
    sh("echo $# $2", "2 d e\n")


def test_leaving_loops(sh):
    for word in ("break", "break 9", "continue", "continue 9", "for i in 1; do break 3; done; true"):
        sh(f"sleep 30 & v='{word}'; {word}")
        sh("kill -0 $! && echo $v; kill $!; wait $!; echo $?", f"{word}\n143\n")


def test_descriptors(sh):
    sh("exec 3>f 10>g 11>h; echo a >&3; echo b >&10; echo c >&11; exit")
    sh("echo d >&10; cat f g h; ls /proc/self/fd | tr '\\n' ' '", "a\nb\nd\nc\n0 1 10 11 2 3 4 ")
    sh("exec 3>&- 10>&- 11>&-; exec {x}>f; echo $x", "10\n")
    sh("exec <f; exec >g; echo lost")
    sh("read -r v; echo $? $(cat g)", "1 lost\n")
    sh("exec 0<&- 1>&- 2>&-; exit 3", status=3)
    sh("echo x; echo y >&2", "x\n", stderr="y\n")


def test_code_arrives_in_pieces(sh):
    sh("IFS=0; TMOUT=1; set -k")
    token = b"0123456789abcdef"
    for piece in (b"exe", b"cute ", token, b" 1", b"0\n", b"echo '\xc3", b"\xa9'\n"):
        sh.driver.send(piece)
        time.sleep(1.2 if piece == b"0\n" else 0.01)
    deadline = time.monotonic() + 10
    while (report := sh.driver.report(token.decode())) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert report == (0, "kept", None) and os.read(sh.driver.out, 100) == "é\n".encode()


def test_large_code(sh):
    sh("v=" + "y" * 300000 + "; #" + "é" * 300000 + "\necho ${#v}; exit", "300000\n")
    sh("echo ${#v}", "300000\n")


def test_end_of_the_control_socket(sh):
    sh.driver.control.shutdown(1)
    assert sh.driver.process.wait(10) == 0


# ---------------------------------------------------------------- what exit keeps

STATE = [
    ("v=$'\\x01\\xff\\n\\t\\'\"'", "printf %s \"$v\" | od -An -tx1", " 01 ff 0a 09 27 22\n"),
    ("declare -A m=([$'a\\nb ]']=$'v\\n' [' ']=s ['$x']=d ['\"']=q)",
     "for k in $'a\\nb ]' ' ' '$x' '\"'; do printf '<%s>' \"${m[$k]}\"; done", "<v\n><s><d><q>"),
    ("declare -A u; declare -i i; declare -u up; declare -x ex=1; declare -n ref=q; q=7; declare -a ar",
     "u[k]=1; i=2+3; up=a; echo ${!u[@]} $i $up $(printenv ex) $ref; declare -p ar",
     "k 5 A 1 7\ndeclare -a ar\n"),
    ("big=$(head -c 1000000 /dev/zero | tr '\\0' x)", "echo ${#big}", "1000000\n"),
    ("unset PATH IFS; OPTIND=3", "echo ${PATH-none} ${IFS-none} $OPTIND", "none none 3\n"),
    ("f() { cat <<E\nhere $1 $(cat <<'Q'\nin $q\nQ\n)\nE\n}; export -f f", "f 1; bash -c 'f 2'",
     "here 1 in $q\nhere 2 in $q\n"),
    ("shopt -s extglob\nf() { case $1 in @(a|b)) echo ab;; esac; }\nshopt -u extglob",
     "shopt -q extglob; echo $?; shopt -s extglob; f a", "1\nab\n"),
    ("alias x='echo \"a\nb\"' y=x", "y", "a\nb\n"),
    ("set -Tefu -o pipefail; set +B; shopt -s nullglob", "echo $- {a,b}; shopt nullglob; set +efu",
     re.compile("^[efuhTc]{6} {a,b}\\nnullglob +\ton\n$")),
    ("set -o posix; alias x='echo X'", "x; echo $SHELLOPTS", re.compile("^X\n.*posix")),
    ("trap 'echo usr' USR1; trap '' USR2", "kill -USR1 $$; kill -USR2 $$; echo on; trap - USR2; trap",
     "usr\non\ntrap -- 'echo usr' SIGUSR1\n"),
    ("mkdir d; ln -s d l; cd l", "pwd; echo $BASH_SUBSHELL; cd ..; ls", re.compile("/l\n0\nd\nl\n$")),
    ("mkdir d; ln -s d l; cd l; pushd / >/dev/null; popd >/dev/null; pushd /tmp >/dev/null",
     "pwd; cd \"$OLDPWD\"; echo ${PWD##*/}; popd >/dev/null; echo ${PWD##*/}", "/tmp\nl\nl\n"),
    ("umask 027; ulimit -S -n 90", "umask; ulimit -n", "0027\n90\n"),
]


@pytest.mark.parametrize("before, after, stdout", STATE)
def test_exit_keeps(sh, before, after, stdout):
    sh(f"{before}\nexit 5", status=5)
    sh(after, stdout)


def test_locals_do_not_become_globals(sh):
    sh("v=global; f() { local v=local w=1 IFS=,; eval \"$1\"; }; g() { local v=outer; f \"$@\"; }")
    for how in ("exit 3", "h() { local x; exit 3; }; h"):
        sh(f"g '{how}'", status=3)
        sh("echo $v ${w-none} \"${#IFS}\"", "global none 3\n")
    sh("set -e; g false", status=1)
    sh("set +e; echo $v ${w-none}", "global none\n")


def test_what_ends_a_shell(sh):
    sh("v=1; set -u; echo $none", status=re_any(1, 127), stderr=re.compile("none: unbound"))
    sh("set +u; echo ${none?msg}", status=re_any(1, 127), stderr=re.compile("none: msg"))
    for name, status in (("TERM", 143), ("INT", 130), ("HUP", 129), ("USR1", 138)):
        sh(f"kill -{name} $$; echo no", status=status)
    sh("grep SigBlk /proc/self/status", "SigBlk:\t0000000000000000\n")
    sh("exec no_such; echo on", "on\n", stderr=re.compile("not found"))
    sh("> plain; exec ./plain", status=126, stderr=re.compile("Permission denied"))
    sh("echo $v; exit 2", "1\n", 2)
    sh.loses("exec sh -c 'exit 7'", 7)


def test_nothing_but_the_shell_is_needed(sh):
    sh("v=1; PATH=/nowhere; TMPDIR=/nowhere; exit 3", status=3)
    sh("echo $v; exit 4", "1\n", 4)


def test_environment_of_the_new_shell(sh):
    sh("echo 'echo RUN' > env; export BASH_ENV=$PWD/env SHELLOPTS BASHOPTS; declare() { echo no; };"
       "zz() { echo zz; }; export -f declare zz; v=1; exit")
    sh("echo $v; declare; unset -f declare; bash -c zz", "1\nno\nRUN\nzz\n")


def test_a_state_that_does_not_come_through_is_lost(sh):
    sh("readonly __sandbox_text; exit 3", status=3, state="lost")
    sh("echo on", "on\n")


def test_endless_recursion(sh):
    sh("v=1; FUNCNEST=100; f() { f; }; f; echo no", status=re_any(1, 127), stderr=re.compile("nesting"))
    sh("echo $v; exit", "1\n")


# ---------------------------------------------------------------- traps


def test_exit_trap(sh):
    sh("trap 'echo bye $?' EXIT; (exit 9)", status=9)
    sh("exit 3", "bye 3\n", 3)
    sh("trap; f() { exit 4; }; f", "trap -- 'echo bye $?' EXIT\nbye 4\n", 4)
    sh("trap 'echo rc=$?; exit 6; echo no' 0; set -e; false", "rc=1\n", 6)
    sh("set +e; trap 'echo a; (exit 1); exit' SIGEXIT; exit 7", "a\n", 7)
    sh("trap 'kill $(jobs -p); wait; echo gone' EXIT; sleep 60 & exit 2", "gone\n", 2)
    sh("(trap 'echo sub' EXIT; trap -p EXIT; exit 3); echo $?; trap - EXIT; exit 5",
       "trap -- 'echo sub' EXIT\nsub\n3\n", 5)


def test_exit_trap_is_interrupted(sh):
    sh.interrupted("v=1; trap 'echo a; sleep 60; echo b' EXIT; exit 3", "a\n")
    sh("trap - EXIT; echo $v", "1\n")


def test_err_trap(sh):
    sh("trap 'n=$((n+1))' ERR; true\nfalse", status=1)
    sh("false", status=1)
    sh("echo $n; trap 'echo err $? $LINENO' ERR; true\nfalse", "2\nerr 1 2\n", 1)
    sh("false", "err 1 1\n", 1)
    sh("(exit 3)\n! false; if false; then :; fi", "err 3 1\n")
    sh("exit 2", status=2)
    sh("trap -p ERR; f() { false; }; f", "trap -- 'echo err $? $LINENO' ERR\nerr 1 1\n", 1)
    sh("set -E; f; set +E", "err 1 1\nerr 1 1\n")
    sh("set -e; false; echo no", "err 1 1\n", 1)
    sh("set +e; trap - ERR; false", status=1)
    sh("false", status=1)


def test_debug_and_return_traps(sh):
    sh("n=0; trap 'n=$((n+1)); echo \"<$BASH_COMMAND>\"' DEBUG; echo a", "<echo a>\na\n")
    sh("exit 1", "<exit 1>\n", 1)
    sh("trap - DEBUG; echo $n", "<trap - DEBUG>\n3\n")
    sh("f() { trap 'echo ret' RETURN; }; g() { echo g; }; f; g", "ret\ng\n")
    sh("set -T; g; exit", "g\nret\n")
    sh("g; trap - RETURN; g; trap", "g\nret\ng\n")


def test_trap_wrapper(sh):
    sh("unset -f trap")
    sh("trap 'echo t' EXIT; exit 1", "t\n", 1)
    sh("trap - EXIT; trap() { echo mine; }; exit")
    sh("trap x EXIT; unset -f trap", "mine\n")
    sh("set -o posix; unset -f trap")
    sh("set +o posix; exit")
    sh("set -k; trap 'a=b' USR1; trap -p USR1; trap - USR1; set +k", "trap -- 'a=b' SIGUSR1\n")


def test_trap_arguments(sh):
    sh("trap 'echo t' TERM 2; kill $$; kill -INT $$; trap TERM; trap - INT; trap", "t\nt\n")
    sh("trap 'echo t' TERM INT; trap 2 15; trap; kill -INT $$", status=130)
    sh("\ntrap FOO", status=1, stderr="bash: line 2: trap: FOO: invalid signal specification\n")
    sh("trap x BAR", status=1, stderr="bash: line 1: trap: BAR: invalid signal specification\n")
    sh("trap -p BAZ", status=1, stderr="bash: line 1: trap: BAZ: invalid signal specification\n")
    sh("trap -l | head -1", re.compile("SIGHUP"))
    sh("trap \"echo 'q'\" EXIT; x=$(trap -p EXIT); trap - EXIT; eval \"$x\"; exit", "q\n")
    sh("trap - EXIT INT; kill -INT $$", status=130)


# ---------------------------------------------------------------- interrupts


def test_interrupt(sh):
    sh("v=1; trap '' USR1; f() { sleep 60; }")
    for code in ("while :; do :; done", "sleep 60; echo no", "f; echo no", "wait", "(while :; do :; done)",
                 "x=$(sleep 60); echo no", "sleep 60 | cat", "read -r x < <(sleep 60)",
                 "set -o posix; sleep 60"):
        sh("sleep 60 &")
        sh.interrupted(f"v=$((v+1)); {code}")
        sh("set +o posix")
    sh("echo $v", "10\n")


def test_interrupt_between_turns(sh):
    sh("v=1; sleep 60 & p=$!")
    for name in (signal.SIGINT, signal.SIGTERM):
        os.kill(sh.driver.process.pid, name)
        sh("echo $v; kill -0 $p", "1\n")
    sh("kill $p; wait $p", status=143)


def test_trap_of_interrupt(sh):
    sh.interrupted("trap 'echo int; exit 3' INT; sleep 60", "int\n")
    sh("trap - INT; echo on", "on\n")
    sh.interrupted("trap '' INT; while :; do :; done", state="lost")
    sh("echo on", "on\n")


# ---------------------------------------------------------------- code against the driver


def test_separators_of_the_user(sh):
    sh("IFS=0; readonly IFS")
    for length in range(8, 31):                     # also those that end in the separator
        sh(("echo x " + "#" * 30)[:length], "x\n")
    sh("v=101; exit")
    sh("echo $v; echo é", "1 1\né\n")


HARMLESS = [
    "builtin() { :; }", "enable -n builtin", "enable -n printf read eval exec exit trap local",
    "; ".join(f"{name}() {{ :; }}" for name in
              "eval read printf echo exit trap command exec cd unset local declare kill test [ set source "
              "return enable mapfile export readonly alias shopt : . type".split()),
    "alias builtin=false eval=: printf=: exit=: local=: read=: trap=: exec=:", "unset -f trap",
    "IFS=0; readonly IFS TMOUT=1", "readonly LC_ALL=C", "declare -i IFS; declare -n LC_ALL=v; TMOUT=1",
    "set -f; set -k; set -C; set -h; set -t; set +B", "set -o posix; readonly PATH", "set -v; set +v",
    "shopt -s extdebug lastpipe nocasematch localvar_inherit localvar_unset failglob xpg_echo compat31",
    "PROMPT_COMMAND='echo p'; PS4='$(echo no)'; BASH_COMPAT=4.0; FUNCNEST=100; HISTFILE=/h",
    "POSIXLY_CORRECT=",
    "unset BASHOPTS BASH_EXECUTION_STRING FUNCNAME BASH_SOURCE BASH_LINENO LINENO 2>/dev/null",
    "line=1 code=2 token=3 status=4 state=5; readonly line code token status state",
    "for f in /proc/$$/fd/*; do builtin echo -n junk >&${f##*/}; done", "unset -f $(compgen -A function)",
]


@pytest.mark.parametrize("code", HARMLESS)
def test_harmless(sh, code):
    sh("builtin echo begun; v=1", "begun\n")
    sh(code, re.compile(""), re_any(*range(256)), re.compile(""))
    sh("\\builtin echo $v; \\builtin exit 3", "1\n", 3)
    sh("\\builtin echo $v", "1\n")


def test_exit_from_a_shell_without_builtins(sh):
    sh("v=1; builtin() { :; }; exit 4", status=4, stderr=re.compile("do not outlive"))
    sh("enable -n builtin; exit 5", status=5, stderr=re.compile("do not outlive"))
    sh("echo $v", "1\n")


DEADLY = [
    "set -n", "enable -n builtin enable", "unset $(compgen -v)", "unset $(compgen -v); exit",
    "exec 77>&-", "exec 78>&-", "exec 76<&-",
    "for f in /proc/$$/fd/*; do eval \"exec ${f##*/}>&-\"; done", "ulimit -n 70; exit 2", "set -r; exit 2",
    "builtin trap 'echo x' EXIT; exit 3", "shopt -s extdebug; builtin trap false DEBUG",
]


@pytest.mark.parametrize("code", DEADLY)
def test_deadly_but_at_once(sh, code):
    answer = sh.driver.turn(code, 20)
    assert answer["state"] == "lost" and answer["seconds"] < 10 and answer["signal"] is None, answer
    sh("echo new", "new\n")


def test_tracing(sh):
    sh("set -x; echo a", "a\n", stderr="+++ echo a\n")
    sh("trap 'echo t' EXIT; exit 3", "t\n", 3, "+++ trap 'echo t' EXIT\n+++ exit 3\n")
    sh("exec 5>trace; BASH_XTRACEFD=5; echo b; set +x", "b\n",
       stderr=re.compile("^[+]+ exec\n[+]+ BASH_XTRACEFD=5\n$"))
    sh("cat trace; trap - EXIT", re.compile("^[+]+ echo b\n[+]+ set [+]x\n$"))
    sh("set -v; echo c\n", "c\n")
    sh("set +v", stderr="set +v\n")


# ---------------------------------------------------------------- speed


def test_speed(sh, tmp_path, monkeypatch):
    """A turn against the least that reads, evaluates and reports; an exit against a start of bash."""
    (tmp_path / "least.sh").write_text(
        "exec 9<&3; while read -r -u 9 _ token length; do LC_ALL=C IFS= read -r -N $length -u 9 code\n"
        "eval -- \"$code\" </dev/null >&1 2>&2; printf 'done %s %d kept\\n' $token $? >&9; done")
    monkeypatch.setitem(harness.DRIVERS, "least", (tmp_path / "least.sh", harness.DRIVERS["bash"][1]))
    with Driver("least") as least:
        def median(driver, code, count):
            return sorted(driver.turn(code)["seconds"] for _ in range(count))[count // 2]
        assert min(median(sh.driver, ":", 100) / median(least, ":", 100) for _ in range(5)) < 3
        # bash 5.1 reads its command line byte by byte, later ones need a fifth of that
        start = median(least, "bash --norc -c :", 9)
        assert min(median(sh.driver, "exit", 9) for _ in range(5)) < 30 * start

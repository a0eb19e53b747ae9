# SPDX-License-Identifier: MIT
"""The bash driver's save, restore, list and show, by themselves."""
import json
import os
import random
import re
import signal

import pytest
from harness import Driver
from state import Died, command, Fifos, listed, names, restore, save, show, wait
from test_bash import Session, chosen_bash, sh          # noqa: F401


def moved(sh, before="", after=""):
    """A new shell with the state of this one."""
    state, report = save(sh.driver)
    assert report["ok"], report
    with Driver("bash") as other:
        new = Session(other)
        if before:
            new(before)
        new.report = restore(other, state)
        assert new.report["ok"], new.report
        return new.driver.turn(after) if after else new


def survives(sh, setup, question, answer, status=0):
    """What the question is answered is the same in the old shell and, restored, in a new one."""
    sh(setup, stderr=re.compile(""))
    state, _ = save(sh.driver)
    with Driver("bash") as other:
        new = Session(other)
        assert restore(other, state)["ok"]
        new(question, answer, status)
    sh(question, answer, status)


@pytest.mark.parametrize("setup, question, answer", [
    ("x=5; y='a  b'; z=$'\\x01\\n\\\\\"$(touch /no)`'", "declare -p x y z",
     "declare -- x=\"5\"\ndeclare -- y=\"a  b\"\ndeclare -- z=$'\\001\\n\\\\\"$(touch /no)`'\n"),
    ("a=(1 'b c' $'d\\ne'); a[7]=x", 'printf "<%s>" "${!a[@]}" "${a[@]}"', "<0><1><2><7><1><b c><d\ne><x>"),
    ("declare -A m=([k]=v ['a b']=$'q\"\\n'); declare -A none", 'none[p]=q; echo "${m[k]}${m[a b]}${!none[@]}"', "vq\"\np\n"),
    ("declare -n r=x; x=3", "r=4; echo $x", "4\n"),
    ("declare -i n=3; declare -u U=up; declare -a empty", "n+=4; U+=x; echo $n $U; declare -p empty",
     "7 UPX\ndeclare -a empty\n"),
    ("readonly R=1", "(R=2) 2>/dev/null; echo $R", "1\n"),
    ("export E=exported; unset TERM; PATH=$PATH:/x", "env | grep -c '^E=exported\\|^TERM\\|^PATH=.*:/x'", "2\n"),
    ("f() { echo \"f $1\"; }; export -f f", "f 1; bash -c 'f 2'", "f 1\nf 2\n"),
    ("a-b() { echo dash; }; readonly -f a-b", "a-b; (unset -f a-b) 2>/dev/null || echo ro", "dash\nro\n"),
    ("shopt -s extglob\nf() { [[ $1 == +(a|b) ]] && echo yes; }; shopt -u extglob", "f aab; shopt -q extglob; echo $?", "yes\n1\n"),
    ("alias hi='echo hello'; alias declare=false", "hi", "hello\n"),
    ("set -u -o pipefail; shopt -s nullglob; shopt -u expand_aliases", "echo $- $(shopt -p nullglob expand_aliases); echo no*such",
     "huBc shopt -s nullglob shopt -u expand_aliases\n\n"),
    ("trap 'echo int\ntrap -- x 2>/dev/null' USR2; trap 'echo bye' EXIT; trap '' INT", "trap; kill -USR2 $$",
     "trap -- 'echo bye' EXIT\ntrap -- '' SIGINT\ntrap -- 'echo int\ntrap -- x 2>/dev/null' SIGUSR2\nint\n"),
    ("trap 'echo err' ERR", "false", None),
    ("umask 027; set -- 1 '2 3' ''; cd /usr; pushd /var >/dev/null", 'umask; printf "<%s>" "$@" "$OLDPWD"; dirs; pwd',
     "0027\n<1><2 3><></usr>/var /usr\n/var\n"),
    ("IFS=:; OPTIND=3", 'set -- a b; echo "$*$OPTIND"', "a:b3\n"),
    ("export LC_ALL=C; s=é; b=$'\\xff'", 'printf %s "$s$b" | od -An -tx1', " c3 a9 ff\n"),
    ("BASH_REMATCH=; [[ abc =~ b ]]", "echo $BASH_REMATCH", "b\n"),
    ("enable -n declare printf local shopt; x=1", "enable declare; declare -p x", "declare -- x=\"1\"\n"),
    ("set -o posix; x=1", "shopt -qo posix && echo $x", "1\n"),
    ("set -euo pipefail -E -T; x=1", "echo $x", "1\n"),
    ("set -f; set -C; shopt -s failglob nocasematch; x=1", "echo $x*", "1*\n"),
])
def test_survives(sh, setup, question, answer):
    if answer is None:
        survives(sh, setup, question, "err\n", 1)
    else:
        survives(sh, setup, question, answer)


def test_last_status_and_state_of_the_live_shell(sh):
    sh("x=1; sleep 0.2 & pid=$!; (exit 7)", status=7)
    state, report = save(sh.driver)
    assert report["version"].startswith("5.") and report["saved"] >= 2
    assert any(n.startswith("processes ") for n in names(report))
    listed(sh.driver)
    sh('echo $? $((pid == $!)); wait $pid; echo $?', "7 1\n0\n")
    with Driver("bash") as other:
        assert restore(other, state)["ok"]
        Session(other)("echo $? $x; false", "7 1\n", 1)
        assert save(other)[1]["ok"]
        Session(other)("echo $?", "1\n")


def test_what_cannot_be_saved_is_named(sh):
    sh("exec 5<>/dev/null; coproc cat; sleep 30 & disown; x=1", stderr=re.compile(""))
    skipped = names(save(sh.driver)[1])
    assert skipped["descriptor 5"] == "open files are not saved"
    assert "COPROC" in skipped and not any(re.fullmatch("descriptor (7[6-9]|1[0-9])", n) for n in skipped), skipped


def test_state_after_an_exit_in_place(sh):
    sh("x=1; exit 3", status=3)
    assert [v["name"] for v in listed(sh.driver)] == ["x"]
    survives(sh, "y=2", "echo $x$y", "12\n")


def test_a_directory_that_is_gone(sh):
    sh("mkdir d; cd d; x=1")
    state, _ = save(sh.driver)
    sh("cd ..; rmdir d")
    with Driver("bash") as other:
        report = restore(other, state)
        assert report["ok"] and "working directory" in names(report)
        Session(other)("echo $x ${PWD##*/}", f"1 {os.path.basename(other.workspace)}\n")


def test_readonly_here(sh):
    sh("x=1; y=2")
    state, _ = save(sh.driver)
    with Driver("bash") as other:
        Session(other)("readonly x=9; declare() { echo mine; }; alias eval=false")
        report = restore(other, state)
        assert report["ok"]
        Session(other)("echo $x", "9\n")


def test_bad_records_do_not_spoil_the_rest(sh):
    sh("a=1; b=2; f() { :; }; c=3")
    state, _ = save(sh.driver)
    state = state.replace(b'declare -- b="2"', b'declare -- b="2').replace(b"function f\0f ()", b"function f\0f (")
    with Driver("bash") as other:
        report = restore(other, state)
        assert report["ok"] and set(names(report)) == {"b", "f"}, report
        Session(other)("echo $a$b$c", "13\n")


def test_no_state_and_half_a_state(sh):
    sh("a=1; b=2")
    state, _ = save(sh.driver)
    for bad in (b"garbage", b"\0\0\0", state[:len(state) // 2]):
        with Driver("bash") as other:
            report = restore(other, bad)
            assert not report["ok"] and report["why"], report
            Session(other)("echo fine", "fine\n")


@pytest.mark.parametrize("script", [
    "exit 3", "exec true", "exec >&-", "kill -9 $$", "builtin() { :; }", "eval() { exit; }", "return 1", "break 9",
    "set -e; false", "set -n", "trap 'exit' DEBUG", "trap exit ERR; false", "${x:?}", "readonly __sandbox_records",
    "exec 76<&- 77<&- 78<&- 79<&-", "__sandbox_record=1000000", "set -o posix; . /no/such", "kill -INT $$", "kill $$",
    "enable -n builtin eval", "unset __sandbox_token", "shopt -s extdebug; trap false DEBUG", "ulimit -n 3",
])
def test_hostile_states(sh, script):
    state = b"\0".join([b"nix-sandbox bash state 1", b":", b"variable x", b'declare -- x="1"', b"variable y",
                        script.encode(), b"variable z", b'declare -- z="1"', b"end ", b":", b""])
    with Driver("bash") as other:
        try:
            restore(other, state, 8)
        except Died:
            return
        except AssertionError:                          # the agent would kill it
            assert script in ("set -n", "exec 76<&- 77<&- 78<&- 79<&-", "ulimit -n 3"), script
            return
        try:
            answer = other.turn("echo alive")
        except BrokenPipeError:
            return
        if script.startswith("shopt -s extdebug"):      # means just that
            return
        assert answer["stdout"] == "alive\n" or answer["state"] == "lost", answer


def test_corrupted_states(sh):
    sh("x=5; a=(1 2 3); declare -A m=([k]=v); f() { echo f; }; alias q=w; trap 'echo t' USR2; cd /usr; set -- 1 2")
    state, _ = save(sh.driver)
    chance = random.Random(4)
    other = Driver("bash")
    try:
        for n in range(200):
            bad = bytearray(state)
            kind = n % 4
            for _ in range(chance.choice((1, 3, 30))):
                at = chance.randrange(len(bad))
                if kind == 0:
                    bad[at] = chance.randrange(256)
                elif kind == 1:
                    del bad[at:at + chance.randrange(1, 40)]
                elif kind == 2:
                    bad[at:at] = bytes(chance.choices(b"\0'\"`$(){};&|<>\n\\ ", k=chance.randrange(1, 6)))
                else:
                    bad = bad[:max(at, 1)]
            try:
                report = restore(other, bytes(bad), 15)
                assert report is None or isinstance(report["ok"], bool)
                answer = other.turn("echo alive 2>/dev/null")
                assert answer["stdout"].endswith("alive\n") or answer["exit_code"], (bytes(bad), answer)
            except Died:
                pass
            if other.process is None or n % 20 == 19:
                other.close()
                other = Driver("bash")
    finally:
        other.close()


def test_interrupts_mean_nothing(sh):
    sh("a=({1..30000}); f() { echo f; }")
    pid = sh.driver.process.pid
    for _ in range(5):
        with Fifos(2) as fifos:
            readers = [fifos.reader(0), fifos.reader(1)]
            token = command(sh.driver, "save", fifos.paths)
            for _ in range(20):
                os.killpg(pid, signal.SIGINT)
            state, report = wait(sh.driver, token, readers)
        sh("echo ${#a[@]}; trap", "30000\n")
        if report and json.loads(report)["ok"]:
            with Driver("bash") as other:
                Session(other)("true")
                new_pid = other.process.pid
                assert restore(other, state, interrupt=lambda: [os.kill(new_pid, signal.SIGINT) for _ in range(20)])["ok"]
                Session(other)("echo ${#a[@]}; trap; f", "30000\nf\n")


def test_a_reader_that_has_gone(sh):
    sh("a=({1..100000})")
    with Fifos(2) as fifos:
        reader = fifos.reader(0)
        fifos.reader(1)
        token = command(sh.driver, "save", fifos.paths)
        os.read(reader, 10) if wait_readable(reader) else None
        os.close(reader)
        wait(sh.driver, token, [])
    sh("echo ${#a[@]}", "100000\n")


def wait_readable(fd):
    import select
    return select.select([fd], [], [], 10)[0]


def test_paths_that_are_not_there(sh):
    sh("x=1")
    for verb, lines in (("save", ["/no/such/1", "/no/such/2"]), ("list", ["/no/such"]), ("show", ["/no/such", "x"]),
                        ("restore", ["/no/such/1", "/no/such/2"]), ("unknown", ["a", "b"]), ("save", [""])):
        wait(sh.driver, command(sh.driver, verb, lines), [])
        sh("echo $x", "1\n")


# ---------------------------------------------------------------- list and show


def test_list(sh):
    assert listed(sh.driver) == []
    sh("x='a b'; declare -A m=([k]=v); a=(1 2 3); f() { :; }; export E=1; readonly R=2; declare -i n=3; declare -n ref=x;"
       "declare -A empty; PATH=$PATH; IFS=$' \\t\\n'; IFS=:")
    found = {v["name"]: v for v in listed(sh.driver)}
    assert list(found) == sorted(["x", "m", "a", "f", "E", "R", "n", "ref", "empty", "IFS"])
    assert found["x"] == {"name": "x", "type": "string", "size": 3, "text": '"a b"'}
    assert found["a"]["type"] == "array of 3" and found["a"]["text"] == '([0]="1" [1]="2" [2]="3")'
    assert found["m"]["type"] == "associative array of 1" and found["ref"] == {
        "name": "ref", "type": "nameref", "size": None, "text": '"x"'}
    assert (found["E"]["type"], found["R"]["type"], found["n"]["type"]) == ("exported string", "readonly string", "integer")
    assert found["f"]["type"] == "function" and found["f"]["text"].startswith("f ()")


def test_list_runs_nothing(sh):
    sh("a=(1); declare -n ref='a[$(touch touched)]'; declare -n loop=loop2; declare -n loop2=loop;"
       "declare() { touch touched; }; printf() { touch touched; }; local() { touch touched; }; mapfile() { touch touched; }\n"
       "trap 'touch touched' DEBUG RETURN ERR", stderr=re.compile(""))
    sh("rm -f touched", stderr=re.compile(""))
    sh("builtin trap - DEBUG; trap '' RETURN ERR; rm -f touched", stderr=re.compile(""))
    found = {v["name"] for v in listed(sh.driver)}
    assert {"a", "ref", "declare", "printf"} <= found
    assert show(sh.driver, "ref")["text"] == '"a[\\$(touch touched)]"'
    assert "error" in show(sh.driver, "a[$(touch touched)]") and save(sh.driver)[1]["ok"]
    assert not os.path.exists(os.path.join(sh.driver.workspace, "touched"))


def test_list_is_bounded(sh):
    sh("for ((i = 0; i < 700; i++)); do builtin printf -v v$i %s $i; done; big=$(head -c 300000 /dev/zero | tr '\\0' é)")
    found = listed(sh.driver)
    assert len(found) == 501 and found[-1] == {"more": 202}     # i and big as well
    assert found[0]["name"] == "big" and len(found[0]["text"]) == 200
    sh("for ((i = 0; i < 700; i++)); do builtin printf -v v$i %200d; builtin eval \"v$i=\\${v$i// /😀}\"; done")
    found = listed(sh.driver)
    assert found[-1]["more"] + len(found) - 1 == 702 and 150000 < len(json.dumps(found, ensure_ascii=False).encode()) < 256 * 1024
    shown = show(sh.driver, "big")
    assert shown["truncated"] is True and len(shown["text"]) == 20000 and shown["size"] >= 300000


def test_texts_are_valid_whatever_the_locale(sh):
    sh("b=$'\\xff\\xc3('; u=é; c=$'\\x01\\x1f\\x7f\\b\\f'; LC_ALL=C")
    found = {v["name"]: v["text"] for v in listed(sh.driver)}
    assert found["b"] == "$'\\377\\303('" and found["u"] == '"é"' and found["LC_ALL"] == '"C"'
    sh("echo $LC_ALL", "C\n")
    sh("readonly LC_ALL; readonly IFS")
    assert "b" in {v["name"] for v in listed(sh.driver)}
    assert save(sh.driver)[1]["ok"]


def test_show(sh):
    sh("x=1; f() { echo hi; }; alias q=w")
    assert show(sh.driver, "x") == {"name": "x", "type": "string", "size": 1, "text": '"1"', "truncated": False}
    assert "echo hi" in show(sh.driver, "f")["text"]
    for name in ("nothing", "", "x y", "$(echo x)", "x[0]", "\"", "__sandbox_token", "é", "x" * 100000):
        assert "error" in show(sh.driver, name), name

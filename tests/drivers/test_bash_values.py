# SPDX-License-Identifier: MIT
"""What turns of bash give back besides text: sandbox-result."""
import pytest
from harness import Driver


@pytest.fixture
def sh():
    with Driver("bash") as driver:
        def turn(code, result=None, stdout="", stderr="", exit_code=0):
            got = driver.turn(code)
            assert (got["stdout"], got["stderr"], got["exit_code"], got["state"]) == (stdout, stderr, exit_code, "kept"), got
            assert got["values"] == ([] if result is None else [("result", result.encode())])
        yield turn
        driver.turn("rm -f /dev/shm/.sandbox-result-$$")        # a jail has a /dev/shm of its own


def test_result_is_of_its_turn_and_the_last_counts(sh):
    sh("sandbox-result '{\"n\": [1,  \"a b\"]}'", '{"n": [1,  "a b"]}')
    sh("echo $?", stdout="0\n")
    sh("sandbox-result 1; sandbox-result 2", "2")
    sh("sandbox-result '\"é\"'; false", '"é"', exit_code=1)


def test_from_standard_input_and_subshells(sh):
    sh("echo '{\"n\":\n1}' | sandbox-result", '{"n":\n1}\n')
    sh("sandbox-result <<<'[1]'", "[1]\n")
    sh("(sandbox-result 3)", "3")
    sh("for i in 7 7 7; do sandbox-result $i & done; wait", "7")
    sh("f() { sandbox-result 4; }; f | cat", "4")


def test_survives_the_end_of_the_shell(sh):
    sh("sandbox-result 1; exit 3", "1", exit_code=3)
    sh("set -e; sandbox-result 2; false; echo no", "2", exit_code=1)
    sh("set +e; trap 'sandbox-result 5' EXIT; exit", "5")
    sh("trap - EXIT; sandbox-result 6", "6")


@pytest.mark.parametrize("options", ["-e", "-u", "-C", "-o posix", "-f", "-k", "-a", "-E -o functrace"])
def test_options(sh, options):
    sh(f"set {options}; printf '[1, 2]' | sandbox-result; sandbox-result '\"x y\"'", '"x y"')
    sh("sandbox-result 8; exit 4", "8", exit_code=4)
    sh("printf 9 | sandbox-result", "9")


def test_no_json_at_all(sh):
    sh("sandbox-result", stderr="sandbox-result: give JSON, as an argument or from standard input\n", exit_code=2)
    sh("sandbox-result ''", stderr="sandbox-result: give JSON, as an argument or from standard input\n", exit_code=2)


def test_a_late_background_job_gives_nothing(sh):
    sh("(sleep 0.2; sandbox-result 9) &")
    sh("wait; sandbox-result 1; sleep 0.1", "1")
    sh("(sleep 0.2; sandbox-result 9) &")
    sh("wait")
    sh("true")


def test_large_values_are_cut_above_what_the_agent_takes(sh):
    sh("head -c 262144 /dev/zero | tr '\\0' 1 | sandbox-result", "1" * 262144)
    sh("head -c 9000000 /dev/zero | tr '\\0' 1 | sandbox-result", "1" * 300000)


def test_things_in_the_way(sh):
    sh("IFS=1; sandbox-result 212; unset IFS", "212")
    sh("rm -f /dev/shm/.sandbox-result-$$; mkfifo /dev/shm/.sandbox-result-$$")
    sh("rm -f /dev/shm/.sandbox-result-$$; ln -s /dev/zero /dev/shm/.sandbox-result-$$")
    sh("rm -f /dev/shm/.sandbox-result-$$; printf 'x\\n1' >/dev/shm/.sandbox-result-$$")
    sh("rm -f /dev/shm/.sandbox-result-$$; sandbox-result() { echo mine; }; sandbox-result 1", stdout="mine\n")
    sh("sandbox-result 1; exit", stdout="mine\n")

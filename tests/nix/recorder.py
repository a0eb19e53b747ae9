# SPDX-License-Identifier: MIT
"""A stand-in for the driver of NixOS tests: what its scripts may use, by name and parameters, for a machine that is not
a virtual one. Written from what the driver does (nixpkgs, nixos/lib/test-driver, as of 24.05 and 2026); what only
one of the two has is left out, as a script that uses it would fail with the other.

check() judges a script without running it. Recorder runs commands on this machine, and writes down what was asked for.
"""
import ast
import contextlib
import inspect
import os
import subprocess
import sys
import time

# The methods of a machine and their parameters beside self. None: only a virtual machine has that.
METHODS = {
    "block": None, "connect": "", "console_interact": None, "copy_from_host": "source, target",
    "copy_from_host_via_shell": "source, target", "crash": "", "dump_tty_contents": None,
    "execute": "command, check_return=True, check_output=True, timeout=900", "fail": "*commands, timeout=None",
    "forward_port": None, "get_screen_text": None, "get_screen_text_variants": None, "get_tty_text": None,
    "get_unit_info": "unit, user=None", "get_unit_property": "unit, property, user=None", "get_window_names": None,
    "is_up": "", "log": "msg", "log_serial": None, "nested": "msg, attrs={}", "reboot": "",
    "require_unit_state": "unit, require_state='active'", "screenshot": None, "send_chars": None, "send_console": None,
    "send_key": None, "send_monitor_command": None, "shell_interact": None, "shutdown": "", "sleep": "secs",
    "start": "allow_reboot=False", "start_job": "jobname, user=None", "stop_job": "jobname, user=None",
    "succeed": "*commands, timeout=None", "switch_root": None, "systemctl": "q, user=None", "unblock": None,
    "wait_for_closed_port": "port, addr='localhost', timeout=900", "wait_for_console_text": None,
    "wait_for_file": "filename, timeout=900", "wait_for_open_port": "port, addr='localhost', timeout=900",
    "wait_for_open_unix_socket": "addr, is_datagram=False, timeout=900", "wait_for_qmp_event": None, "wait_for_shutdown": "",
    "wait_for_text": None, "wait_for_unit": "unit, user=None, timeout=900", "wait_for_window": None, "wait_for_x": None,
    "wait_until_fails": "command, timeout=900", "wait_until_succeeds": "command, timeout=900", "wait_until_tty_matches": None,
}
# Names that the driver gives to a script, beside its machines'.
SYMBOLS = ["create_machine", "driver", "join_all", "log", "os", "polling_condition", "retry", "run_tests", "serial_stdout_off",
           "serial_stdout_on", "start_all", "subtest", "test_script", "vlans"]


def signature(method):
    # pylint: disable=eval-used
    return inspect.signature(eval(f"lambda {METHODS[method]}: None"))


def subtests(script):
    """The names of a script's subtests, in order."""
    return [node.args[0].value for node in ast.walk(ast.parse(script))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "subtest"]


def calls_of(tree, machines):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                isinstance(node.func.value, ast.Name) and node.func.value.id in machines:
            yield node


def wrong_call(call):
    """What is wrong with a call of a machine's method, or None."""
    name = call.func.attr
    if METHODS.get(name) is None:
        return f"{name} is no method of a machine"
    try:
        signature(name).bind(*call.args, **{k.arg: k.value for k in call.keywords})
    except TypeError as e:
        return f"{name}: {e}"
    return None


def bound_names(tree):
    """Every name that is bound anywhere in a script: enough to find those that nobody binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def check(script, machines=("machine",)):
    """What is wrong with a script, a sentence each."""
    tree = ast.parse(script)
    wrong = [f"line {c.lineno}: {why}" for c in calls_of(tree, machines) if (why := wrong_call(c))]
    known = {*bound_names(tree), *SYMBOLS, *machines, *dir(__builtins__), *__builtins__}
    wrong += [f"line {n.lineno}: nobody defines {n.id}" for n in ast.walk(tree)
              if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in known]
    return wrong


def retry(fn, timeout=900):
    """Until fn(False) is true; in the end fn(True) has to be. Nothing takes as long here as in a virtual machine."""
    end = time.monotonic() + min(timeout, 30)
    while time.monotonic() < end:
        if fn(False):
            return
        time.sleep(0.05)
    assert fn(True), "it was never true"


class Recorder:
    """A machine of a script, which is this one. For what this one has not, answers is {part of a command: (status, output)},
    and instead {part of a command: what stands there instead}. power: what it is to be switched off, and on."""

    def __init__(self, power=(lambda: None, lambda: None)):
        self.answers, self.instead, self.power = {}, {}, power
        self.record, self.up = [], True

    def symbols(self, name="machine"):
        return {name: self, "subtest": self.subtest, "retry": retry, "start_all": self.start, "os": os}

    @contextlib.contextmanager
    def subtest(self, name):
        self.record.append(("subtest", name))
        print(f"subtest: {name}", file=sys.stderr, flush=True)
        yield

    def __getattr__(self, name):
        raise AttributeError(f"a machine of the driver has {'this only as a virtual one' if name in METHODS else 'no'}: {name}")

    def log(self, msg):
        self.record.append(("log", msg))

    def is_up(self):
        return self.up

    def start(self, allow_reboot=False):
        self.record.append(("start", allow_reboot))
        if not self.up:
            self.power[1]()
            self.up = True

    def shutdown(self):
        self.record.append(("shutdown",))
        if self.up:
            self.power[0]()
            self.up = False

    def execute(self, command, check_return=True, check_output=True, timeout=900):
        """(status, standard output), as bash with the driver's options has it."""
        assert check_return and check_output, "not here"
        self.start()
        self.record.append(("execute", command))
        for part, answer in self.answers.items():
            if part in command:
                return answer
        for part, other in self.instead.items():
            command = command.replace(part, other)
        done = subprocess.run(["bash", "-c", "set -euo pipefail; " + command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              timeout=timeout, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def succeed(self, *commands, timeout=None):
        output = ""
        for command in commands:
            status, text = self.execute(command, timeout=timeout)
            assert status == 0, f"{command}: status {status}: {text}"
            output += text
        return output

    def fail(self, *commands, timeout=None):
        output = ""
        for command in commands:
            status, text = self.execute(command, timeout=timeout)
            assert status != 0, f"{command} has succeeded: {text}"
            output += text
        return output

    def wait_until_succeeds(self, command, timeout=900):
        retry(lambda _: self.execute(command)[0] == 0, timeout)

    def systemctl(self, q, user=None):
        assert user is None, "no managers of users here"
        return self.execute(f"systemctl --no-pager {q}")

    def get_unit_property(self, unit, property, user=None):  # pylint: disable=redefined-builtin
        return self.systemctl(f"show -P {property} {unit}", user)[1].strip()

    def require_unit_state(self, unit, require_state="active"):
        state = self.get_unit_property(unit, "ActiveState")
        assert state == require_state, f"{unit} is {state}, not {require_state}"

    def wait_for_unit(self, unit, user=None, timeout=900):
        retry(lambda _: self.get_unit_property(unit, "ActiveState", user) == "active", timeout)

    def wait_for_file(self, filename, timeout=900):
        self.wait_until_succeeds(f"test -e {filename}", timeout)

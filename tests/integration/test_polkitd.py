# SPDX-License-Identifier: MIT
"""The machine's polkitd, on a bus of our own, is asked by sandboxd and understands what it is asked."""
import json
import os
import pwd
import re
import subprocess

import pytest

from daemonlib import ROOT, Daemon, as_user, public_directory, removed
from polkitlib import PYTHON, Polkitd, private_bus

ALICE, BOB = "daemon", "nobody"
RULES = """
polkit.addRule(function(action, subject) {
        if (subject.user != "nobody")
                return polkit.Result.NOT_HANDLED;
        if (action.id == "io.nixsandbox.list-others")
                return polkit.Result.YES;
        if (action.id == "io.nixsandbox.manage-others" && action.lookup("verb") == "interrupt" &&
            /^[0-9a-f]{12}$/.test(action.lookup("session")))
                return polkit.Result.YES;
});
"""

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users"),
              pytest.mark.skipif(not os.path.exists(Polkitd.PROGRAM), reason="polkitd is not installed")]


def do(daemon, user, method, **parameters):
    """What a process of a user gets for a call: its reply, or [error, message]."""
    code = """
try:
    print(json.dumps(Client(sys.argv[1]).call(sys.argv[2], **json.loads(sys.argv[3]))))
except VarlinkError as e:
    print(json.dumps([e.name, e.message]))
"""
    return as_user(pwd.getpwnam(user).pw_uid, code, daemon.sock, method, json.dumps(parameters))


def test_polkitd(programs):
    with private_bus() as bus, removed(public_directory()) as root, Polkitd(bus, root, RULES), \
            Daemon(programs=programs, env=bus.env) as d:
        sid = do(d, ALICE, "Run", code="true", session="a", environment="shell", project="/a")["id"]

        assert do(d, BOB, "Show", session=sid, any_user=True)["session"]["id"] == sid
        assert sid in [s["id"] for s in do(d, BOB, "List", all=True)["sessions"]]
        assert do(d, BOB, "Interrupt", session=sid, any_user=True) == {"interrupted": False}
        kill, missing = (do(d, BOB, "Kill", session=s, any_user=True) for s in (sid, "0123456789ab"))
        assert kill[0] == missing[0] == "NoSuchSession"
        assert kill[1].replace(sid, "X") == missing[1].replace("0123456789ab", "X")

        other = do(d, BOB, "Run", code="true", session="b", environment="shell", project="/b")["id"]
        assert do(d, ALICE, "Show", session=other, any_user=True)[0] == "NoSuchSession"
        error, message = do(d, ALICE, "List", all=True)
        assert error == "PermissionDenied" and "authenticate" in message
        assert do(d, ALICE, "Show", session=sid, any_user=True)["session"]["id"] == sid
        assert do(d, "root", "Show", session=other)["session"]["id"] == other
        assert "polkit cannot be asked" not in d.log()


@pytest.mark.parametrize("owner, allowed", [(BOB, True), (ALICE, False)])
def test_only_the_owner_of_the_actions_may_ask(owner, allowed):
    """As a service sandboxd is not root: without the annotation polkitd would not answer it."""
    code = f"""
import dbus, os
polkit = dbus.Interface(dbus.SystemBus().get_object("org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority"),
                        "org.freedesktop.PolicyKit1.Authority")
fd = os.pidfd_open({os.getpid()})
subject = {{"pid": dbus.UInt32({os.getpid()}), "start-time": dbus.UInt64(0), "uid": dbus.Int32(0), "pidfd": dbus.types.UnixFd(fd)}}
try:
    print(bool(polkit.CheckAuthorization(("unix-process", dbus.Dictionary(subject, signature="sv")), "io.nixsandbox.manage-others",
                                         {{"session": "x"}}, dbus.UInt32(0), "")[0]))
except dbus.DBusException as e:
    print(e.get_dbus_name())
"""
    user = pwd.getpwnam(BOB)
    with private_bus() as bus, removed(public_directory()) as root, Polkitd(bus, root, RULES, owner):
        done = subprocess.run([PYTHON, "-c", code], env={**os.environ, **bus.env}, capture_output=True, text=True,
                              check=True, timeout=60, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    assert done.stdout == ("True\n" if allowed else "org.freedesktop.PolicyKit1.Error.NotAuthorized\n")


def test_example_rules_are_rules():
    """For want of a JavaScript engine of polkit's own: they load and do what they say in ours."""
    with open(os.path.join(ROOT, "polkit", "50-nix-sandbox.rules.example"), encoding="utf-8") as f:
        rules = f.read()
    script = """
const rules = [], polkit = {Result: {YES: "yes"}, addRule: f => rules.push(f)};
%s
const ask = (id, group, details = {}) => rules.map(f => f({id, lookup: k => details[k]}, {isInGroup: g => g == group}))
        .find(r => r) ?? "no";
console.log(JSON.stringify([
        ask("io.nixsandbox.list-others", "nix-sandbox-admin"), ask("io.nixsandbox.manage-others", "nix-sandbox-admin"),
        ask("io.nixsandbox.exceed-limits", "nix-sandbox-admin"), ask("io.nixsandbox.list-others", "users"),
        ask("io.nixsandbox.manage-others", "operator", {verb: "thaw"}),
        ask("io.nixsandbox.manage-others", "operator", {verb: "kill"}), ask("org.example.any", "nix-sandbox-admin")]));
""" % rules
    done = subprocess.run(["node", "-e", script], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == ["yes", "yes", "no", "no", "yes", "no", "no"]
    with open(os.path.join(ROOT, "polkit", "io.nixsandbox.policy"), encoding="utf-8") as f:
        known = re.findall(r'<action id="([^"]+)"', f.read())
    assert set(re.findall(r"io\.nixsandbox\.[a-z-]+", rules)) <= set(known)

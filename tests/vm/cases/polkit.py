# SPDX-License-Identifier: MIT
"""The machine's own polkitd decides about others' sessions: no by default, yes by a rule, no again without it."""
import os
import time

from guestlib import other, sh, tester, wait_for, write

RULES = "/etc/polkit-1/rules.d/50-nix-sandbox.rules"
GRANT = """
polkit.addRule(function(action, subject) {
        if (subject.user == "other" && action.id == "io.nixsandbox.list-others")
                return polkit.Result.YES;
        if (subject.user == "other" && action.id == "io.nixsandbox.manage-others" && action.lookup("verb") == "freeze")
                return polkit.Result.YES;
});
"""


def listed_by_other():
    """Names that `list -a` shows the other user; None where he is refused."""
    process = other.begin_ctl("list", "-a")
    try:
        return [s["name"] for s in other.finish(process)["sessions"]]
    except Exception as e:                  # pylint: disable=broad-except
        if getattr(e, "error", "") == "PermissionDenied":
            return None
        raise


def case_polkit_refuses():
    """Without a rule an ordinary user may neither list nor touch another's session; the id gives nothing away."""
    tester.run("x = 1", "guarded")
    ident = tester.session("guarded")["id"]
    assert listed_by_other() is None
    for verb in ("show", "freeze", "kill"):
        refused = other.refused(verb, ident)
        assert refused.error == "NoSuchSession", (verb, refused)
    # With -a the list of all comes first, and that is what he may not have.
    assert other.refused("show", "-a", ident).error == "PermissionDenied"
    assert tester.run("print(x)", "guarded")["stdout"] == "1\n"


def case_polkit_grants():
    """A rule lets him list and freeze, and only that; taking the rule away ends it."""
    ident = tester.session("guarded")["id"]
    write(RULES, GRANT)
    wait_for(lambda: "guarded" in (listed_by_other() or []), "polkitd has read the rule")
    other.ctl("freeze", "-a", ident)
    assert tester.session("guarded")["state"] == "frozen"
    for verb in ("thaw", "kill"):
        assert other.refused(verb, "-a", ident).error == "NoSuchSession", verb
    refused = tester.refused("run", "-e", "python", "-s", "guarded", "print(x)")
    assert refused.error == "SessionFrozen", refused

    os.unlink(RULES)
    wait_for(lambda: listed_by_other() is None, "polkitd has seen that the rule is gone")
    tester.ctl("thaw", "guarded")


def case_without_polkitd():
    """With polkitd gone own sessions work, root may do all, and others are refused without a wait."""
    ident = tester.session("guarded")["id"]
    sh("systemctl", "mask", "--runtime", "--now", "polkit.service")
    try:
        assert tester.run("print(x)", "guarded")["stdout"] == "1\n"
        begun = time.monotonic()
        assert other.refused("kill", ident).error == "NoSuchSession"
        assert time.monotonic() - begun < 20
        assert listed_by_other() is None
        sh("sandboxctl", "freeze", "-a", ident)
        sh("sandboxctl", "kill", "-a", ident)
    finally:
        sh("systemctl", "unmask", "--runtime", "polkit.service")
    assert "guarded" not in [s["name"] for s in tester.ctl("list")["sessions"]]

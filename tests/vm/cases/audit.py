# SPDX-License-Identifier: MIT
"""The trail of what happened: in the journal, with words, and in a file that shows when it was changed."""
import glob
import shutil

from guestlib import journal, root, sh, tester

TRAIL = "/var/lib/nix-sandbox/audit"
SECRET = "never-in-the-trail-4711"


def events(ident):
    return [e["SANDBOXD_EVENT"] for e in journal(f"SANDBOXD_SESSION={ident}")]


def case_journal():
    """A session's life is in the journal, in order, each entry with a message id that journalctl -x explains."""
    tester.run(f"x = '{SECRET}'; print(x)", "audited")
    ident = tester.session("audited")["id"]
    tester.ctl("freeze", "audited")
    tester.ctl("thaw", "audited")
    tester.ctl("kill", "audited")

    sh("journalctl", "--sync")
    seen = events(ident)
    wanted = ["session_created", "sandbox_started", "frozen", "thawed", "killed", "torn_down"]
    assert [e for e in seen if e in wanted] == wanted, seen
    entries = journal(f"SANDBOXD_SESSION={ident}")
    assert all(e.get("MESSAGE_ID") and e["SANDBOXD_UID"] == "1000" for e in entries), entries
    explained = sh("journalctl", "-b", "-x", "--no-pager", f"SANDBOXD_SESSION={ident}")
    assert f"Subject: Sandbox session {ident} of uid 1000 was created" in explained, explained[-2000:]
    assert explained.count("Subject: ") == len(entries), "an entry without an explanation"
    assert "SANDBOXD_" not in explained.replace("SANDBOXD_SESSION=", ""), "a field without a value"


def case_trail():
    """audit verify is content; no code or output is in the trail or in the journal; a changed copy is found by its line."""
    verdict = root.start("sandboxctl", "audit", "verify")
    said, err = verdict.communicate(timeout=100)
    assert verdict.returncode == 0, (said, err)
    files = sorted(glob.glob(f"{TRAIL}/audit-*.jsonl"))
    assert files
    for path in files:
        with open(path, encoding="utf-8") as f:
            assert SECRET not in f.read(), path
    assert SECRET not in sh("journalctl", "-b", "--no-pager", "-o", "json")

    copy = "/run/audit-copy"
    shutil.copytree(TRAIL, copy)
    path = sorted(glob.glob(f"{copy}/audit-*.jsonl"))[-1]
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    lines[2] = lines[2].replace("1000", "1001", 1) if "1000" in lines[2] else lines[2].replace("event", "Event", 1)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)
    verdict = root.start("sandboxctl", "audit", "verify", "-f", copy)
    said, err = verdict.communicate(timeout=100)
    shutil.rmtree(copy)
    assert verdict.returncode == 1 and ":3" in said + err, (said, err)

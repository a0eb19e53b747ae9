# SPDX-License-Identifier: MIT
"""Directives that break a jail, or the daemon's work, in units/. A test on one machine does not find them all: systemd
before 253 leaves an uncovered /proc behind in a service's mount namespace, later ones do not, and bubblewrap may mount
a /proc of its own only where the outer one is uncovered. All of this was measured."""
import re

FALSE = {"", "0", "no", "n", "false", "f", "off"}
PROC = "bubblewrap cannot mount a /proc in the jail (systemd >= 253)"

# Deny-lists that leave bubblewrap and the interpreters what they call (a jail's own filter leaves nothing of @debug).
# No list of what is allowed does: jails inherit it, and there is none with mount and seccomp on every systemd.
CALLS_DENIED = {"@clock", "@cpu-emulation", "@debug", "@module", "@obsolete", "@raw-io", "@reboot", "@swap"}
FAMILIES_NEEDED = {
    "AF_UNIX": "the daemon serves a Unix socket",
    "AF_NETLINK": "bubblewrap sets up the loopback with it",
}
CAPABILITIES_NEEDED = dict.fromkeys(("CAP_SETUID", "CAP_SETGID"), "a session becomes its caller's with it")

# Must be off, whatever values they have.
OFF = {
    "DynamicUser": "its user may not become another one",
    "MemoryDenyWriteExecute": "node aborts",
    "PrivateTmp": "projects in /tmp are not there",
    "PrivateUsers": "callers' uids are not mapped",
    "ProtectControlGroups": "the daemon makes groups",
    "ProtectHome": "projects in /home are not there",
    "ProtectHostname": PROC + ", and no host name be set",
    "ProtectKernelLogs": PROC,
    "ProtectKernelTunables": PROC,
    "RestrictSUIDSGID": "it answers openat2() with ENOSYS, and bubblewrap >= 0.12 has no other way",
    "RestrictNamespaces": "bubblewrap makes all kinds; a part of them makes clone3() fail",
    "RootDirectory": "user namespaces cannot be made in a chroot",
    "RootImage": "user namespaces cannot be made in a chroot",
}
# Must not have this value.
VALUES = {
    "ProcSubset": ("pid", "bubblewrap reads /proc/sys/kernel/overflowuid"),
    "ProtectProc": ("invisible|noaccess|ptraceable", "the daemon cannot see jails in /proc"),
    "ProtectSystem": ("strict", "projects are read-only"),
}
COVERS = {"BindPaths", "BindReadOnlyPaths", "InaccessiblePaths", "ReadOnlyPaths", "TemporaryFileSystem"}


def settings(text):
    """{directive: [words]} of [Service], as systemd adds lists up: an empty assignment starts anew."""
    found, section = {}, None
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and line[0] not in "#;":
            key, _, value = line.partition("=")
            words = value.split()
            found[key.strip()] = found.get(key.strip(), []) + words if words else []
    return found


def need_faults(key, words, needed):
    """Of a list that is one of denials when it begins with a ~."""
    names = {w.lstrip("~") for w in words}
    denies = bool(words) and words[0].startswith("~")
    return [f"{key}= without {n}: {why}" for n, why in sorted(needed.items()) if (n in names) == denies]


def call_faults(words):
    if words and not words[0].startswith("~"):
        yield "SystemCallFilter= with what is allowed: jails inherit it, and it lacks mount or seccomp"
    elif denied := {w.lstrip("~") for w in words} - CALLS_DENIED:
        yield f"SystemCallFilter=~{' '.join(sorted(denied))}: takes away more than is known to be harmless"


def faults(text):
    """Sentences."""
    found = settings(text)
    for key, words in found.items():
        value = " ".join(words)
        if key in OFF and value.lower() not in FALSE:
            yield f"{key}={value}: {OFF[key]}"
        if key in VALUES and re.fullmatch(VALUES[key][0], value):
            yield f"{key}={value}: {VALUES[key][1]}"
        if key in COVERS and re.search(r"(^|[\s:+-])/proc\b", value):
            yield f"{key}={value}: {PROC}"
    yield from call_faults(found.get("SystemCallFilter", []))
    if families := found.get("RestrictAddressFamilies"):
        yield from need_faults("RestrictAddressFamilies", families, FAMILIES_NEEDED)
    if "CapabilityBoundingSet" in found:
        yield from need_faults("CapabilityBoundingSet", found["CapabilityBoundingSet"], CAPABILITIES_NEEDED)


# One for each rule at least, so that none goes blind unnoticed.
BAD = [
    *(f"{key}=yes" for key in OFF if not key.startswith("Root")),
    "RootDirectory=/srv", "RootImage=/srv/image", "PrivateTmp=disconnected", "PrivateUsers=identity",
    "ProtectControlGroups=strict", "ProtectHome=read-only", "ProtectHome=tmpfs", "ProtectHostname=private",
    "RestrictNamespaces=user mnt pid net ipc uts", "RestrictNamespaces=~cgroup",
    "ProcSubset=pid", "ProtectProc=invisible", "ProtectSystem=strict",
    "InaccessiblePaths=-/proc/kcore", "ReadOnlyPaths=/proc/sys", "BindReadOnlyPaths=/etc/null:/proc/kmsg",
    "SystemCallFilter=@system-service", "SystemCallFilter=@system-service @mount", "SystemCallFilter=~@mount",
    "SystemCallFilter=~@clock @resources", "SystemCallFilter=~@clock\nSystemCallFilter=~@mount",
    "RestrictAddressFamilies=AF_UNIX", "RestrictAddressFamilies=AF_NETLINK AF_INET", "RestrictAddressFamilies=none",
    "RestrictAddressFamilies=~AF_NETLINK",
    "CapabilityBoundingSet=", "CapabilityBoundingSet=CAP_SETUID", "CapabilityBoundingSet=~CAP_SETGID",
    "ProtectKernelTunables = 1", "ProtectKernelLogs=\\\n  on",
]
GOOD = [
    "ProtectKernelTunables=no", "#ProtectKernelLogs=yes", "RestrictNamespaces=no", "PrivateUsers=false",
    "ProtectProc=default", "ProtectSystem=full", "ReadOnlyPaths=/srv/proc",
    "SystemCallFilter=~@clock @swap", "SystemCallFilter=@system-service\nSystemCallFilter=",
    "RestrictAddressFamilies=AF_UNIX AF_NETLINK", "RestrictAddressFamilies=~AF_PACKET", "RestrictAddressFamilies=",
    "CapabilityBoundingSet=CAP_SETUID CAP_SETGID", "CapabilityBoundingSet=~CAP_SYS_ADMIN",
]


def self_test():
    for text in BAD:
        if not list(faults("[Service]\n" + text)):
            yield f"tools/lint_units.py: does not catch {text!r}"
    for text in GOOD:
        yield from (f"tools/lint_units.py: takes {text!r} for bad: {fault}" for fault in faults("[Service]\n" + text))

# SPDX-License-Identifier: MIT
"""Units as NixOS makes them of the module are those of units/."""
import os
import re
import shutil
import subprocess

import pytest

from modulelib import FULL, evaluated
from nixlib import ROOT


def words(unit):
    """{(section, key): values} of a unit's text, continued lines joined."""
    section, found = None, {}
    for line in re.sub(r"\\\n", "", unit).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault((section, key), []).append(value.strip())
    return found


def together(unit, dropin):
    """As systemd reads both: an empty value takes back what came before."""
    found = words(unit)
    for place, values in words(dropin).items():
        for value in values:
            if value == "":
                found[place] = []
            else:
                found.setdefault(place, []).append(value)
    return found


def lines(values):
    return "".join(f"{key}={v}\n" for key, value in sorted(values.items()) for v in (value if isinstance(value, list) else [value]))


def rendered(kind, unit):
    """The drop-in that NixOS writes for a unit which a package has (nixos/lib/systemd-lib.nix)."""
    text = "[Unit]\n" + lines(unit["unitConfig"])
    if unit["restartTriggers"]:
        text += f"X-Restart-Triggers={' '.join(unit['restartTriggers'])}\n"
    text += f"\n[{kind}]\n"
    if unit.get("reloadIfChanged"):
        text += "X-ReloadIfChanged=true\n"
    return text + lines(unit.get("serviceConfig") or unit.get("socketConfig") or {})


def drop_ins(nix, module="{ }"):
    made = evaluated(nix, module, "{ inherit (c.systemd) services sockets; }")
    assert set(made["services"]) == {"sandboxd"} and set(made["sockets"]) == {"sandboxd"}
    assert made["sockets"]["sandboxd"]["wantedBy"] == ["sockets.target"] and made["services"]["sandboxd"]["wantedBy"] == []
    return {"sandboxd.service": rendered("Service", made["services"]["sandboxd"]),
            "sandboxd.socket": rendered("Socket", made["sockets"]["sandboxd"])}


def of_repository(name):
    """A unit as make install writes it for /usr and the systemd that NixOS has."""
    path = os.path.join(ROOT, "units", name)
    with open(path if os.path.exists(path) else f"{path}.in", encoding="utf-8") as f:
        text = f.read()
    for word, value in (("LIBEXECDIR", "/usr/libexec/nix-sandbox"), ("KILL", "kill"), ("SUBGROUP", "DelegateSubgroup=supervisor")):
        text = text.replace(f"@{word}@", value)
    return text


def without_paths(values):
    return [re.sub(r"/[^ \"]*/(sandboxd|kill)\b", r"\1", v) for v in values]


@pytest.mark.parametrize("name", ["sandboxd.service", "sandboxd.socket", "nix-sandbox.slice"])
def test_units_are_those_of_the_repository(nix, package, name):
    with open(os.path.join(package, "lib/systemd/system", name), encoding="utf-8") as f:
        installed = f.read()
    made = together(installed, drop_ins(nix).get(name, ""))
    own = {("Unit", "X-Restart-Triggers"), ("Service", "X-ReloadIfChanged")}
    assert {k: without_paths(v) for k, v in made.items() if k not in own} == \
        {k: without_paths(v) for k, v in words(of_repository(name)).items()}
    if name == "sandboxd.service":
        assert made[("Service", "X-ReloadIfChanged")] == ["true"] and ("Unit", "X-Restart-Triggers") in made
        assert made[("Service", "ExecStart")][0].split()[0] == "/etc/nix-sandbox/sandboxd"
        assert nix.name(made[("Service", "ExecReload")][0].split()[0]) == "coreutils-1.0/bin/kill"
    else:
        assert not own & set(made)


def test_package_brings_the_units(nix, package):
    assert evaluated(nix, "{ }", "map toString (c.systemd.packages ++ c.systemd.tmpfiles.packages)") == [package, package]
    assert os.path.exists(f"{package}/lib/tmpfiles.d/nix-sandbox.conf")
    assert os.path.exists(f"{package}/share/polkit-1/actions/io.nixsandbox.policy")


def test_systemd_has_nothing_to_say_of_the_units(nix, package, tmp_path):
    shutil.copytree(f"{package}/lib/systemd/system", tmp_path, dirs_exist_ok=True)
    for name, text in drop_ins(nix, FULL).items():
        folder = tmp_path / f"{name}.d"
        folder.mkdir(exist_ok=True)
        (folder / "overrides.conf").write_text(
            text.replace("/etc/nix-sandbox/sandboxd ", f"{package}/libexec/nix-sandbox/sandboxd "), encoding="utf-8")
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if int(version) < 254:
        unit = tmp_path / "sandboxd.service"
        unit.write_text(re.sub("(?m)^DelegateSubgroup=.*\n", "", unit.read_text()))
    units = [str(tmp_path / u) for u in ("sandboxd.service", "sandboxd.socket", "nix-sandbox.slice")]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False,
                          env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    assert not done.stdout + done.stderr and done.returncode == 0, done.stdout + done.stderr

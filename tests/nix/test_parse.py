# SPDX-License-Identifier: MIT
"""Every .nix file parses: no syntax error, no unknown variable, no attribute twice."""
import os

import pytest

from nixlib import ROOT, nix_files


@pytest.mark.parametrize("path", nix_files())
def test_parses(nix, path):
    nix.run("nix-instantiate", "--parse", os.path.join(ROOT, path))


def test_the_check_sees_a_fault(nix):
    path = os.path.join(nix.scratch, "fault.nix")
    with open(path, "w", encoding="utf-8") as f:
        f.write("{ a = b; }\n")
    assert "undefined variable 'b'" in nix.run("nix-instantiate", "--parse", path, check=False).stderr

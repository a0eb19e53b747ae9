# SPDX-License-Identifier: MIT
"""One store for the whole tier, so that what several files need is built once."""
import contextlib

import pytest

from nixlib import PACKAGE, Nix


@pytest.fixture(scope="session")
def nix():
    with contextlib.closing(Nix()) as n:
        yield n


@pytest.fixture(scope="session")
def package(nix):
    """Our programs, built and installed by nix/package.nix."""
    return nix.build(PACKAGE, timeout=900)

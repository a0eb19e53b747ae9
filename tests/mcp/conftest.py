# SPDX-License-Identifier: MIT
"""Fixtures: shims on pipes with a fake daemon behind them, ended whatever happens."""
import os
import pathlib

import pytest

from fake_sandboxd import FakeSandboxd
from stdio_client import Shim

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def program():
    """The shim that is tested: NIX_SANDBOX_MCP, else the one of the build directory."""
    path = os.environ.get("NIX_SANDBOX_MCP", str(ROOT / "build/nix-sandbox-mcp"))
    assert os.access(path, os.X_OK), f"{path} is not built"
    return path


@pytest.fixture
def fake(tmp_path):
    """A daemon by script."""
    daemon = FakeSandboxd(str(tmp_path / "socket"))
    yield daemon
    daemon.stop()


@pytest.fixture
def start(program):
    """Starts shims with these arguments."""
    shims = []

    def start(*arguments, **options):
        shims.append(Shim([program, *arguments], **options))
        return shims[-1]

    yield start
    for shim in shims:
        shim.kill()


@pytest.fixture
def shim(start, fake, tmp_path):
    """A shim that has a fake daemon and has been initialized."""
    shim = start("--stdio", "--socket", fake.path, "--project", str(tmp_path))
    assert shim.initialize()
    return shim

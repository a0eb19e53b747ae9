# SPDX-License-Identifier: MIT
"""Daemons for the tests: one for a whole file, or as many of one's own as a test starts; all are ended."""
import contextlib
import os

import pytest

from daemonlib import BUILD, Daemon, copy_programs, others_reach, removed


@pytest.fixture(scope="session")
def programs():
    """Where the programs are, for any user."""
    if others_reach(os.path.join(BUILD, "sandboxd")):
        yield BUILD
        return
    with removed(copy_programs()) as path:
        yield path


@pytest.fixture(scope="module")
def daemon(programs):
    """With the built-in configuration, for all tests of a file: they use session names of their own."""
    with Daemon(programs=programs) as d:
        yield d


@pytest.fixture
def start(programs):
    """Starts a daemon with a configuration for this test."""
    with contextlib.ExitStack() as stack:
        yield lambda config=None, **more: stack.enter_context(Daemon(config, **{"programs": programs, **more}))


@pytest.fixture
def name(daemon):
    return daemon.name()

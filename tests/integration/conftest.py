# SPDX-License-Identifier: MIT
"""Daemons for the tests: one for a whole file, or as many of one's own as a test starts; all are ended."""
import contextlib
import os
import shutil

import pytest

import netlib
from artifactlib import Artifacts
from daemonlib import BUILD, Daemon, copy_programs, others_reach, public_directory, removed
from hostlib import HostDaemon
from worldlib import World


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


@pytest.fixture(scope="module")
def stateful(programs):
    """A directory of programs with an agent whose state is a few words: state_agent.py."""
    with removed(public_directory()) as path:
        for program in ("sandboxd", "sandbox-become", "sandbox-snapshot", "sandboxctl"):
            shutil.copy(os.path.join(programs, program), path)
        shutil.copy(os.path.join(os.path.dirname(os.path.realpath(__file__)), "state_agent.py"),
                    os.path.join(path, "sandbox-agent"))
        os.chmod(os.path.join(path, "sandbox-agent"), 0o755)
        yield path


@pytest.fixture
def daemons(stateful):
    """daemons(config): one that keeps its directories when it is stopped and started."""
    made = []

    def make(config=None, **more):
        d = Daemon(config, programs=more.pop("programs", stateful), **more)
        made.append(d)
        return d.start()
    yield make
    for d in made:
        d.close()


@pytest.fixture
def place():
    """A store and directories of artifacts, which every user can get at."""
    with removed(public_directory()) as path:
        yield Artifacts(path)


@pytest.fixture(scope="module")
def world():
    """A host and an internet in network namespaces of their own, for all tests of a file, with a proxy on the host."""
    why = netlib.why_not()
    if why:
        pytest.skip(why)
    with World() as w:
        yield w


@pytest.fixture
def session(world):
    """session(rules…): one of the proxy, for this test."""
    with contextlib.ExitStack() as stack:
        yield lambda *rules, **more: stack.enter_context(contextlib.closing(world.proxy.session(*rules, **more)))
        world.contacts()


@pytest.fixture
def start_on_host(world, programs):
    """Starts a daemon on the host of a world, for this test."""
    with contextlib.ExitStack() as stack:
        yield lambda config=None, **more: stack.enter_context(HostDaemon(world.network, config, **{"programs": programs, **more}))
        world.contacts()

# SPDX-License-Identifier: MIT
"""Sessions keep what they were made of, whatever becomes of artifacts and of the daemon meanwhile."""
import contextlib
import os

import pytest

from managerlib import Service
from test_environments import is_missing, runs
from test_lifecycle import need_cgroups
from test_reload import configure, hangup


@pytest.fixture
def service(programs, place):
    directory = place.directory()
    with contextlib.ExitStack() as stack:
        d = stack.enter_context(Service({"environment_dirs": [directory]}, programs=programs))
        yield d, directory


@pytest.mark.parametrize("step", ["reload", "restart"])
def test_session_outlives_environment_and_daemon(service, place, step):
    d, directory = service
    need_cgroups(d, "freezer")
    link = place.drop(directory, "tools", interpreters=["bash"])
    d.run("x=1", "a", "tools")
    sid = d.show("a")["id"]
    getattr(d, step)()
    assert d.run("echo $x", "a", "tools")["stdout"] == "1\n" and "is gone" not in d.log()
    os.unlink(link)
    for _ in range(2):
        getattr(d, step)()
        assert d.run("echo $x", "a", "tools")["stdout"] == "1\n"
        assert d.show("a")["environment"] == "tools" and is_missing(d, "tools")
        assert "adopted sandboxd was restarted; the environment is gone" in d.story(sid)
    assert f"Session {sid} goes on, but its environment 'tools' is gone: {link}" in d.log()


def test_environment_that_became_another_while_the_daemon_was_away(service, place):
    d, directory = service
    need_cgroups(d, "freezer")
    place.drop(directory, "tools", interpreters=["bash"])
    d.run("y=1", "b", "tools")
    os.unlink(os.path.join(directory, "tools"))
    place.make("tools", path=os.path.join(directory, "other"), interpreters=["bash", "python"])
    d.restart()
    assert d.run("echo $y", "b", "tools")["stdout"] == "1\n"
    assert d.refused("Run", code="1", session="b", project=d.project, interpreter="python").name == "NoSuchInterpreter"


def test_artifact_in_the_place_of_what_is_built_in(service, place):
    """A session of the machine's programs stays one."""
    d, directory = service
    need_cgroups(d, "freezer")
    d.run("z=1", "c", "default", interpreter="bash")
    place.drop(directory, "default", interpreters=["bash"])
    for _ in range(2):
        d.restart()
        assert d.run("echo $z", "c", "default", interpreter="bash")["stdout"] == "1\n"
        assert d.show("c")["interpreters"] == ["python", "bash", "node"] and "is gone" not in d.log()


def test_reload_with_other_directories(start, place):
    one, two = place.directory("one"), place.directory("two")
    place.drop(one, "a")
    place.drop(two, "b")
    d = start({"environment_dirs": [one]})
    d.run("x=1", "s", "a")
    assert is_missing(d, "b")
    configure(d, {"environment_dirs": [two]})
    hangup(d)
    assert runs(d, "b") and is_missing(d, "a") and d.run("echo $x", "s", "a")["stdout"] == "1\n"

# SPDX-License-Identifier: MIT
"""Artifacts as the service finds them: it is not root, so what is a user's is read with rights that it does not have itself."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "integration"))
from artifactlib import Artifacts  # noqa: E402
from pid1lib import ALICE, BOB, SOCKET, as_user, crash, public_directory  # noqa: E402

LIST = f"""
reply = Link({SOCKET!r}).call('Environments')
print(json.dumps([[e['name'] for e in reply['environments'] if 'source' in e], [b['reason'] for b in reply['broken']]]))"""
RUN = f"print(json.dumps(Client({SOCKET!r}).run('echo ran', env=sys.argv[1])['stdout']))"


@pytest.fixture
def place():
    path = public_directory()
    yield path
    shutil.rmtree(path)


PATCHELF = pytest.mark.skipif(not shutil.which("patchelf"), reason="patchelf is not installed")


@PATCHELF
def test_of_all_and_of_one(service, place):
    for_all, alices = Artifacts(place), Artifacts(place, ALICE)
    for_all.drop(for_all.directory("all"), "tools")
    directory = alices.directory("alices")
    alices.drop(directory, "hers")
    os.chmod(directory, 0o700)
    os.symlink("/etc/shadow", os.path.join(directory, "shadow"))
    service.configure(environment_dirs=[f"{place}/all"], user_environment_dirs=[f"{place}/%us"])

    assert as_user(ALICE, LIST) == [["tools", "hers"], ["it is not a directory"]]
    assert as_user(ALICE, RUN, "hers") == as_user(ALICE, RUN, "tools") == as_user(BOB, RUN, "tools") == "ran\n"
    assert as_user(BOB, LIST) == [["tools"], []]

    # What is the service's own user's, or root's, is taken for all; what is a user's is not.
    alices.drop(for_all.directory("all"), "smuggled")
    assert as_user(BOB, LIST) == [["tools"], [f"it belongs to uid {ALICE}, and neither to root nor to uid {os.stat('/var/lib/nix-sandbox').st_uid}"]]


@PATCHELF
@pytest.mark.parametrize("removed", [False, True], ids=["there", "removed"])
def test_crash(service, place, removed):
    """A session stays in its closure, which the next daemon need not know any more."""
    artifacts = Artifacts(place)
    link = artifacts.drop(artifacts.directory("all"), "tools")
    service.configure(environment_dirs=[f"{place}/all"])
    assert service.run("x=5; echo $PATH", "a", env="tools")["stdout"].startswith(artifacts.store)
    if removed:
        os.unlink(link)
    crash(service)
    shown = f"{artifacts.store}/hash-bash {artifacts.store}/hash-sandbox-env-tools"
    assert service.run(f"echo $x; echo {artifacts.store}/*", "a", env=None)["stdout"] == f"5\n{shown}\n"
    assert service.show("a")["environment"] == "tools"

"""One real control plane for all tests of a process. Where there can be none the tests fail, each with the reason."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield.testing.control_plane import (
    ControlPlane,
    ControlPlaneError,
    RealNode,
    Settings,
    Snapshot,
    User,
)

USERS = (User("alice"), User("jackfield", ("jackfield:controllers",)))


@pytest.fixture(scope="session")
def started(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this process; tests ask for `plane`."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    starting = threading.Event()
    starting.set()

    def say(words: str) -> None:
        if starting.is_set():
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"control plane: {words}\n")

    try:
        with ControlPlane(Settings(users=USERS, audit=True), say=say) as made:
            starting.clear()
            yield made
    except ControlPlaneError as error:
        raise pytest.fail.Exception(f"there is no real control plane here: {error}", pytrace=False) from None


@pytest.fixture(scope="session")
def empty(started: ControlPlane) -> Snapshot:
    """The cluster as it was when it started: before any test, whichever comes first."""
    return started.snapshot()


@pytest.fixture(scope="session")
def plane(started: ControlPlane, empty: Snapshot) -> ControlPlane:
    """A control plane with an audit log, and with users who may do nothing yet."""
    del empty  # it has been taken
    return started


@pytest.fixture(scope="session")
def kubeconfig(plane: ControlPlane) -> Path:
    """The administrator's way in."""
    return plane.kubeconfig


@pytest.fixture
def fresh(plane: ControlPlane, empty: Snapshot) -> ControlPlane:
    """The control plane with nothing in it, whatever the test before left behind."""
    plane.restore(empty)
    return plane


@pytest.fixture(scope="session")
def node(plane: ControlPlane) -> Iterator[RealNode]:
    """A real node of that control plane. Whoever asks for it is marked `node`, as it takes more than Go."""
    try:
        with RealNode(plane) as started:
            yield started
    except ControlPlaneError as error:
        raise pytest.fail.Exception(f"there is no real node here: {error}", pytrace=False) from None


@pytest.fixture(scope="session")
def image() -> Path:
    """The image that Jackfield runs in, as an archive; assembled anew where the source has changed."""
    script = Path(__file__).resolve().parents[2] / "tools" / "image" / "build"
    run = subprocess.run([script], capture_output=True, text=True, check=False)
    if run.returncode:
        raise pytest.fail.Exception(f"there is no image here: {run.stderr}", pytrace=False)
    return Path(run.stdout.strip())

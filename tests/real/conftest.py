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
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane with an audit log, and with users who may do nothing yet."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    starting = threading.Event()
    starting.set()

    def say(words: str) -> None:
        if starting.is_set():
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"control plane: {words}\n")

    try:
        with ControlPlane(Settings(users=USERS, audit=True), say=say) as started:
            starting.clear()
            yield started
    except ControlPlaneError as error:
        raise pytest.fail.Exception(f"there is no real control plane here: {error}", pytrace=False) from None


@pytest.fixture(scope="session")
def kubeconfig(plane: ControlPlane) -> Path:
    """The administrator's way in."""
    return plane.kubeconfig


@pytest.fixture(scope="session")
def empty(plane: ControlPlane) -> Snapshot:
    """The cluster as it was when it started."""
    return plane.snapshot()


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

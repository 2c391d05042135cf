"""What the control plane goes through in the tests of others, many times over."""

from itertools import cycle, islice

import pytest

from jackfield.testing.control_plane import ControlPlane, Program

ROUNDS = 12

pytestmark = pytest.mark.slow


def test_nothing_that_was_written_is_lost_in_many_kills(plane: ControlPlane) -> None:
    written: list[str] = []
    for number, program in enumerate(islice(cycle(Program), ROUNDS)):
        plane.kubectl("create", "configmap", f"kept-{number}")
        written.append(f"configmap/kept-{number}")
        plane.kill(program)
        plane.start(program)
        plane.wait(Program.APISERVER)
        found = plane.kubectl("get", "configmaps", "--output=name").split()
        assert [name for name in written if name not in found] == []
    plane.kubectl("delete", *written)


def test_time_goes_back_and_forth_between_snapshots(plane: ControlPlane) -> None:
    snapshots = []
    for number in range(3):
        plane.kubectl("create", "configmap", f"age-{number}")
        snapshots.append(plane.snapshot())
    for number in (0, 2, 1):
        plane.restore(snapshots[number])
        names = plane.kubectl("get", "configmaps", "--output=name").split()
        assert [name for name in names if name.startswith("configmap/age-")] == [
            f"configmap/age-{older}" for older in range(number + 1)
        ]
    plane.kubectl("delete", "configmap", "age-0", "age-1")

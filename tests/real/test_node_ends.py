"""A real node leaves nothing behind however it ends, and says why where it did not start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from jackfield.testing.control_plane import (
    ControlPlane,
    ControlPlaneError,
    NodeSettings,
    RealNode,
    cgroups,
    folder,
)
from real.leftovers import alive, groups_of, members_of, mounts_below, processes_of
from real.pods import POD_SECONDS, create, phase_comes, pod
from real.waiting import comes_true

pytestmark = pytest.mark.node

OWNER = """
import sys
from jackfield.testing.control_plane import ControlPlane, RealNode
from real.waiting import comes_true
with ControlPlane() as plane, RealNode(plane) as node:
    plane.kubectl("create", "--filename=-", text=sys.argv[1])
    assert comes_true(lambda: len(node.containers()) == 2, seconds=float(sys.argv[2]))
    print(plane.folder, flush=True)
    sys.stdin.read()
"""


def test_a_node_leaves_nothing_behind_when_it_ends(plane: ControlPlane, node: RealNode) -> None:
    others = members_of(plane.folder)
    with RealNode(plane, "node-2", NodeSettings(labels={"made-for": "the-end"})) as second:
        create(plane, pod("last", "/bin/sleep", "infinity", spec={"nodeSelector": {"made-for": "the-end"}}))
        phase_comes(plane, second, "last", "Running")
        inhabitants = members_of(plane.folder) - others
        # The machine and its first process, containerd, kubelet, a shim, two containers.
        assert len(inhabitants) >= 7
        assert mounts_below(second.folder) == []
        assert [one.name.split("_")[1] for one in second.place("/var/log/pods").iterdir()] == ["last"]
    plane.kubectl("delete", "pod", "last", "--force", "--grace-period=0")
    assert alive(inhabitants) == set()
    assert not second.folder.exists()
    assert [one.name for one in groups_of(plane.folder) if one.name.endswith("node-2")] == []
    assert plane.kubectl("get", "nodes", "--output=name").split() == [f"node/{node.name}"]
    node.check()


def test_a_node_ends_with_its_owner_even_if_that_is_killed() -> None:
    words = msgspec.json.encode(pod("orphan", "/bin/sleep", "infinity")).decode()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, words, str(POD_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert owner.stdin
    assert owner.stdout
    with owner.stdin, owner.stdout:
        line = owner.stdout.readline()
        assert line, "the owner of the node has failed, and said why"
        place = Path(line.strip())
        inhabitants = members_of(place)
        assert len(inhabitants) >= 7
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    assert comes_true(lambda: alive(inhabitants) == set() and processes_of(place) == [], seconds=POD_SECONDS)
    assert mounts_below(place) == []
    # Nobody was left to remove these, so the next one does.
    assert groups_of(place)
    cgroups.sweep()
    folder.sweep(place.parent)
    assert groups_of(place) == []
    assert not place.exists()


def test_the_groups_of_a_living_node_are_not_swept_away(plane: ControlPlane, node: RealNode) -> None:
    empty = [tree / "empty" for tree in groups_of(plane.folder)]
    for group in empty:
        group.mkdir()
    cgroups.sweep()
    left = [group for group in empty if group.exists()]
    for group in left:
        group.rmdir()
    assert empty
    assert left == empty
    node.check()


def test_a_kubelet_that_does_not_start_is_named_with_the_end_of_its_log(plane: ControlPlane) -> None:
    before = groups_of(plane.folder)
    broken = RealNode(plane, "broken", NodeSettings(kubelet={"maxPods": -1}))
    with pytest.raises(ControlPlaneError) as failed, broken:
        pass
    assert "kubelet ended with status 1" in str(failed.value)
    assert "maxPods" in str(failed.value)
    assert groups_of(plane.folder) == before
    assert not broken.folder.exists()


def test_two_nodes_cannot_have_one_name(plane: ControlPlane, node: RealNode) -> None:
    with pytest.raises(ControlPlaneError, match="take another name"):
        RealNode(plane, node.name)
    node.check()

"""`jackfield dev cluster` does what its help says, and goes when it is told to."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield.testing.control_plane import binaries, folder
from real.leftovers import processes_of
from real.waiting import comes_true

Cluster = subprocess.Popen[str]


@pytest.fixture
def way_in(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


@pytest.fixture
def cluster(way_in: Path) -> Iterator[Cluster]:
    """A cluster that is on its way."""
    words = ["dev", "cluster", "--nodes=2", f"--kubeconfig={way_in}", "--for=2m"]
    with subprocess.Popen(
        [sys.executable, "-m", "jackfield", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        yield started
        started.kill()


def place_of(cluster: Cluster) -> Path:
    """Return the folder of a cluster, which the greeting names; wait for it."""
    assert cluster.stdout
    for line in cluster.stdout:
        if found := re.match(r"Logs are in (.*)/logs\.", line):
            return Path(found[1])
    raise AssertionError(cluster.stderr.read() if cluster.stderr else "")


def test_a_cluster_has_its_nodes_and_leaves_nothing_behind_when_it_is_told_to_end(
    cluster: Cluster, way_in: Path
) -> None:
    place = place_of(cluster)
    nodes = subprocess.run(
        [binaries.built() / binaries.KUBECTL, f"--kubeconfig={way_in}", "get", "nodes", "--no-headers"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert [line.split()[:2] for line in nodes.stdout.splitlines()] == [
        ["node-1", "Ready"],
        ["node-2", "Ready"],
    ]
    cluster.send_signal(signal.SIGTERM)
    _, said = cluster.communicate()
    assert cluster.returncode == 0
    assert "nodes: 2 of 2\nended by SIGTERM\n" in said
    assert processes_of(place) == []
    assert not place.exists()
    assert not way_in.exists()


def test_a_cluster_ends_with_an_error_when_one_of_its_programs_dies(cluster: Cluster, way_in: Path) -> None:
    place = place_of(cluster)
    scheduler = next(
        one
        for one in processes_of(place)
        if b"/kube-scheduler\0" in Path(f"/proc/{one}/cmdline").read_bytes()
    )
    os.kill(scheduler, signal.SIGKILL)
    _, said = cluster.communicate()
    assert cluster.returncode == 1
    assert "kube-scheduler ended with status -9\nThe end of kube-scheduler.log:\n" in said
    assert not place.exists()
    assert not way_in.exists()


def test_a_cluster_can_be_ended_while_it_starts(cluster: Cluster, way_in: Path) -> None:
    assert cluster.stderr
    assert "etcd: ready" in cluster.stderr.readline()
    cluster.send_signal(signal.SIGINT)
    _, said = cluster.communicate()
    assert cluster.returncode == 0
    assert said == "ended by SIGINT\n"
    assert not way_in.exists()


def test_no_program_of_a_cluster_that_is_killed_goes_on(cluster: Cluster) -> None:
    place = place_of(cluster)
    cluster.kill()
    cluster.wait()
    assert comes_true(lambda: processes_of(place) == [])
    folder.sweep(place.parent)
    assert not place.exists()

"""The examples' drivers on a real node, and what introductions show: met by the real scheduler, seen in containers."""

import importlib.util
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield.testing.control_plane import ControlPlane, ControlPlaneError, RealNode
from jackfield.testing.control_plane.process import Process
from jackfield.testing.sysfs import Machine
from real.example_drivers import EXAMPLES, documents, installed, saying, starts
from real.pods import POD_SECONDS, create, delete, phase_comes
from real.waiting import comes_true
from unit.driver.introduced import WRONG, Wrong

pytestmark = pytest.mark.node

CPUS = "env | grep ^CPUSET_ | sort; exec sleep infinity"
PAIR = "env | grep -E '^(GPU|NIC)_' | sort; stat -c '%n %t:%T' /dev/nvidia* /dev/infiniband/*; exec sleep infinity"


def heard(plane: ControlPlane, node: RealNode, driver: Process, pod: str, lines: int) -> list[str]:
    """Return so many lines that a pod had to say, which stays. A failure says what its driver had to say, too."""
    try:
        phase_comes(plane, node, pod, "Running")
    except AssertionError as error:
        raise AssertionError(f"{error}\nThe driver's log:\n{driver.tail()}") from error
    assert comes_true(lambda: len(plane.kubectl("logs", pod).splitlines()) == lines, seconds=POD_SECONDS)
    return plane.kubectl("logs", pod).splitlines()


# --- CPUs by NUMA node


@pytest.fixture
def cpus(plane: ControlPlane, node: RealNode, tmp_path: Path) -> Iterator[Process]:
    """The CPU driver, on a machine with two NUMA nodes of 32 CPUs of Intel's."""
    machine = Machine(tmp_path / "machine")
    machine.cpus({0: "0-31", 1: "32-63"}, "0-63")
    (machine.proc / "cpuinfo").write_text("vendor_id\t: GenuineIntel\n")
    (machine.proc / "sys/kernel").mkdir(parents=True)
    (machine.proc / "sys/kernel/arch").write_text("x86_64\n")
    where = (f"--sysfs-root={machine.sysfs}", f"--proc-root={machine.proc}")
    with installed(plane, node, "cpu-driver", "class.yaml", *where) as driver:
        yield driver


def test_containers_get_cpus_of_the_numa_nodes_they_asked_for_and_none_that_somebody_has(
    plane: ControlPlane, node: RealNode, cpus: Process
) -> None:
    create(plane, *saying(documents("cpu-driver", "two-numa-nodes.yaml"), CPUS))
    assert heard(plane, node, cpus, "two-halves", 4) == [
        "CPUSET_LEFT=0-9",
        "CPUSET_LEFT_NUMA_NODE=0",
        "CPUSET_RIGHT=32-41",
        "CPUSET_RIGHT_NUMA_NODE=1",
    ]
    # The next life of the driver knows who has what.
    cpus.kill()
    starts(cpus)
    # As introductions show it: ten on each, and one of a certain maker's.
    create(plane, *saying(documents("cpu-driver", "introduction.yaml"), CPUS))
    words = dict(line.split("=") for line in heard(plane, node, cpus, "introduction", 6))
    # A kubelet asks for both claims at once, in any order: whoever is first has the lowest.
    either = {
        ("10-19", "42-51", "20"),
        ("10-19", "42-51", "52"),
        ("11-20", "42-51", "10"),
        ("10-19", "43-52", "42"),
    }
    names = ("CPUSET_NUMA0_CPUS", "CPUSET_NUMA1_CPUS", "CPUSET_INTEL")
    assert tuple(words[name] for name in names) in either
    create(plane, *saying(documents("cpu-driver", "one-numa-node.yaml"), CPUS))
    five, where = heard(plane, node, cpus, "near-the-disks", 2)
    assert five in {"CPUSET_CPUS=52-56", "CPUSET_CPUS=53-57"}
    assert where == "CPUSET_CPUS_NUMA_NODE=1"
    delete(plane, "two-halves", "introduction", "near-the-disks")
    assert comes_true(lambda: [*node.cdi.glob("cpu.example.com_*")] == [], seconds=POD_SECONDS)


# --- a GPU and a network card on one PCIe root


@pytest.fixture
def pairs(plane: ControlPlane, node: RealNode, tmp_path: Path) -> Iterator[Process]:
    """The driver of GPUs and RDMA cards, on a machine whose only card hangs on the root of the second GPU."""
    spec = importlib.util.spec_from_file_location("machine", EXAMPLES / "rdma-and-gpu" / "machine.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    gpus = example.gpu(0, "0000:17:00.0", example.NEAR), example.gpu(1, "0000:65:00.0", example.FAR)
    machine = example.build(tmp_path / "machine", *gpus, example.nic(1, "0000:66:00.0", example.FAR))
    for file in (one for one in machine.dev.rglob("*") if one.is_file()):
        # A character device that anybody can read from: it has to be a real one for a container to get it.
        file.unlink()
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with installed(
        plane, node, "rdma-and-gpu", "classes.yaml", f"--host-root={tmp_path / 'machine'}"
    ) as driver:
        yield driver


def test_a_container_gets_a_gpu_and_the_card_on_its_root_with_the_files_of_both(
    plane: ControlPlane, node: RealNode, pairs: Process
) -> None:
    create(plane, *saying(documents("rdma-and-gpu", "pair.yaml"), PAIR))
    assert heard(plane, node, pairs, "pair", 10) == [
        "GPU_ADDRESS=0000:65:00.0",
        "GPU_UUID=GPU-00000000-0000-0000-0000-000000000001",
        "NIC_ADDRESS=0000:66:00.0",
        "NIC_INTERFACES=eth1",
        "NIC_RDMA_DEVICES=mlx5_1",
        *(f"/dev/{name} 1:5" for name in ("nvidia-uvm", "nvidia1", "nvidiactl")),
        *(f"/dev/infiniband/{name} 1:5" for name in ("rdma_cm", "uverbs1")),
    ]
    delete(plane, "pair")
    assert comes_true(lambda: [*node.cdi.glob("pair.example.com_*")] == [], seconds=POD_SECONDS)


# --- what is shown and no server takes


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_no_server_takes_is_refused_with_the_reason(plane: ControlPlane, wrong: Wrong) -> None:
    with pytest.raises(ControlPlaneError) as refused:
        plane.kubectl("create", "--validate=ignore", "--filename=-", text=wrong.text)
    assert wrong.words in str(refused.value)

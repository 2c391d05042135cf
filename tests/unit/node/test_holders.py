"""Who uses a device, in words that name the process, its pod, or what the kernel does with it."""

from pathlib import Path

import pytest

from jackfield.model.host import HostDevice, HostNode
from jackfield.node.holders import HOLDERS_MAX, Holder, Holders, sentence
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.testing.sysfs import Machine, PciDevice, Process

ADDRESS = "0000:17:00.0"
UID = "0a1b2c3d-0000-4000-8000-0123456789ab"
CARD = PciDevice(ADDRESS, driver="nvidia", uuid="GPU-1", minor=0)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "host")
    made.plug(CARD)
    made.pod("default", "train_0", UID)
    return made


def words(machine: Machine) -> list[str]:
    roots = Roots(machine.sysfs, machine.proc, machine.dev)
    found = Holders(machine.proc, machine.sysfs, machine.pod_logs).of(tuple(Sysfs(roots).devices()))
    return [one.words for one in found]


PROCESSES = {
    "nobody": (Process(7, opens=("/dev/null", "socket:[1]", "/dev/nvidia1")), []),
    "an open file": (Process(7, opens=("/dev/nvidia0",)), ["python (pid 7)"]),
    "a file that all such cards share": (Process(7, opens=("/dev/nvidiactl",)), []),
    "a deleted device file": (Process(7, opens=("/dev/nvidia0 (deleted)",)), ["python (pid 7)"]),
    "a mapping": (Process(7, maps=("/dev/nvidia0",)), ["python (pid 7)"]),
    "a mapping of something else": (Process(7, maps=("/usr/lib/libc.so",)), []),
    "in a pod": (Process(7, opens=("/dev/nvidia0",), pod=UID), ["python (pid 7) of pod default/train_0"]),
    "in a pod, as systemd spells it": (
        Process(7, opens=("/dev/nvidia0",), pod=UID.replace("-", "_")),
        ["python (pid 7) of pod default/train_0"],
    ),
    "in a pod that nobody knows": (
        Process(7, opens=("/dev/nvidia0",), pod=UID.replace("0a", "0b")),
        [f"python (pid 7) of the pod with uid {UID.replace('0a', '0b')}"],
    ),
    "a process without a name": (Process(7, name="", opens=("/dev/nvidia0",)), ["a process (pid 7)"]),
}


@pytest.mark.parametrize(("process", "said"), PROCESSES.values(), ids=PROCESSES)
def test_a_process_that_uses_a_device_is_named(machine: Machine, process: Process, said: list[str]) -> None:
    machine.run(process)
    assert words(machine) == said


@pytest.mark.parametrize("blind", [False, True])
def test_who_may_not_look_into_processes_does_not_say_that_nobody_is_there(
    machine: Machine, *, blind: bool
) -> None:
    machine.run(Process(1, opens=("/dev/null",)))
    if blind:
        (machine.proc / "1/fd/9").write_text("")  # what cannot be followed stands for what may not be
    said = "somebody, perhaps: processes may not be looked into (the plugin needs CAP_SYS_PTRACE)"
    assert words(machine) == ([said] if blind else [])


def test_processes_are_named_in_order_and_ourselves_are_not(machine: Machine) -> None:
    for pid in (1000, 20, 3):
        machine.run(Process(pid, opens=("/dev/nvidia0",)))
    (machine.proc / "self").symlink_to("20")
    assert words(machine) == ["python (pid 3)", "python (pid 1000)"]


def test_who_speaks_to_a_card_past_its_driver_is_named(machine: Machine) -> None:
    folder = (machine.sysfs / "bus/pci/devices" / ADDRESS).resolve()
    machine.run(Process(7, maps=(f"{folder}/resource0_wc",)))
    assert words(machine) == ["python (pid 7)"]


def test_a_device_file_is_known_by_its_number_whatever_it_is_called(machine: Machine) -> None:
    """The machine that tests run on has /dev/null, 1:3, for whatever a container calls a card."""
    machine.run(Process(7, opens=("/dev/null",)))
    card = HostDevice(ADDRESS, nodes=(HostNode("/dev/card", 1, 3),))
    other = HostDevice(ADDRESS, nodes=(HostNode("/dev/card", 1, 5),))
    look = Holders(machine.proc, machine.sysfs, machine.pod_logs)
    assert [one.words for one in look.of((card,))] == ["python (pid 7)"]
    assert look.of((other,)) == ()


def test_an_interface_that_is_up_is_in_use(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.plug(PciDevice(ADDRESS, interfaces={"eth0": "a", "eth1": "b"}, up=("eth1",)))
    assert words(machine) == ["network interface eth1, which is up"]


def test_virtual_functions_come_down_first(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.plug(PciDevice(ADDRESS, files={"sriov_numvfs": "4"}))
    assert words(machine) == ["4 virtual functions, which have to be taken down first"]


def test_a_mounted_disk_is_in_use(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.plug(PciDevice(ADDRESS, pci_class="010802", files={"nvme/nvme0/nvme0n1/dev": "259:0"}))
    machine.disk("nvme0n1", "259:0", holders=("dm-0",))
    machine.disk("nvme0n1/nvme0n1p1", "259:1", mounted_at="/data")
    machine.run(Process(1))
    assert words(machine) == [
        "dm-0, which is made of nvme0n1",
        "a file system on nvme0n1p1, mounted at /data",
    ]


@pytest.mark.parametrize("kernel", [False, True])
def test_memory_that_the_kernel_took_for_its_own_is_in_use(tmp_path: Path, *, kernel: bool) -> None:
    machine = Machine(tmp_path)
    machine.region(0, uuid="u", size=1 << 30, kernel=kernel)
    assert words(machine) == (["the kernel, which uses memory of region0 as its own"] if kernel else [])


def test_only_the_first_holders_are_named() -> None:
    holders = tuple(Holder(f"p{number}") for number in range(HOLDERS_MAX + 2))
    assert sentence(holders[:2]) == "p0, p1"
    assert sentence(holders).endswith("p7 and 2 more")

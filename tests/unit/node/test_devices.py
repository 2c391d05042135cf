"""What is read of a machine's devices, in a tree built for it."""

from pathlib import Path

import pytest

from jackfield.model.host import HostDevice, HostNode, Interface
from jackfield.node import cpus, memory, pci
from jackfield.node.cpus import Cpu
from jackfield.node.memory import HugePages
from jackfield.node.pci import Known
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.testing.sysfs import Machine, PciDevice

GIBI = 1 << 30
ADDRESS = "0000:17:00.0"


class Library:
    """A vendor's library that knows one device."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def known(self) -> dict[str, Known]:
        return {ADDRESS: self._known}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "host")


def sysfs(machine: Machine, *libraries: Library) -> Sysfs:
    return Sysfs(Roots(machine.sysfs, machine.proc, machine.dev), libraries)


def the_device(machine: Machine, device: PciDevice, *libraries: Library) -> HostDevice:
    machine.plug(device)
    (found,) = sysfs(machine, *libraries).devices()
    return found


def test_a_card_is_described_by_its_bus(machine: Machine) -> None:
    card = PciDevice(
        ADDRESS,
        root="pci0000:16",
        bridges=("0000:16:00.0", "0000:16:01.0"),
        numa_node=1,
        serial=0x001B21FFFFAABBCC,
        windows=(16 << 20, 80 * GIBI),
    )
    assert the_device(machine, card) == HostDevice(
        ADDRESS,
        "10de",
        "20b0",
        "030200",
        pcie_root="pci0000:16",
        numa_node=1,
        serial="00-1b-21-ff-ff-aa-bb-cc",
        link_width=16,
        memory_bytes=80 * GIBI,
    )


def test_bridges_are_nobodys_devices(machine: Machine) -> None:
    machine.plug(PciDevice(ADDRESS, bridges=("0000:16:00.0",)))
    assert [one.address for one in sysfs(machine).devices()] == [ADDRESS]
    assert sysfs(machine).pci.addresses() == ("0000:16:00.0", ADDRESS)


def test_nvidias_driver_says_uuid_and_device_file(machine: Machine) -> None:
    found = the_device(machine, PciDevice(ADDRESS, driver="nvidia", uuid="GPU-ab12-cd", minor=3))
    assert (found.uuid, found.model, found.driver) == ("GPU-ab12-cd", "NVIDIA", "nvidia")
    assert found.nodes == (
        HostNode("/dev/nvidia-uvm", shared=True),
        HostNode("/dev/nvidia3", 195, 3),
        HostNode("/dev/nvidiactl", shared=True),
    )


def test_a_uuid_that_the_driver_does_not_know_yet_is_none(machine: Machine) -> None:
    hidden = PciDevice(ADDRESS, driver="nvidia", uuid="GPU-????????-????-????-????-????????????")
    assert the_device(machine, hidden).uuid == ""


def test_amds_driver_says_serial_number_and_memory(machine: Machine) -> None:
    card = PciDevice(
        ADDRESS,
        vendor="1002",
        driver="amdgpu",
        files={"unique_id": "78a1b2c3", "product_name": "MI300X", "mem_info_vram_total": str(192 * GIBI)},
        device_files={"drm/renderD128": "dri/renderD128 226:128", "drm/card0": "dri/card0 226:0"},
    )
    found = the_device(machine, card)
    assert (found.uuid, found.serial, found.model) == ("GPU-78a1b2c3", "78a1b2c3", "MI300X")
    assert found.memory_bytes == 192 * GIBI
    assert found.nodes == (
        HostNode("/dev/dri/card0", 226, 0),
        HostNode("/dev/dri/renderD128", 226, 128),
        HostNode("/dev/kfd", shared=True),
    )


def test_a_vendors_library_knows_best(machine: Machine) -> None:
    known = Known("GPU-lib", "1320621012345", "A100", 40 * GIBI, (HostNode("/dev/nvidia7", 195, 7),))
    found = the_device(machine, PciDevice(ADDRESS, serial=5, uuid="GPU-x", windows=(GIBI,)), Library(known))
    assert (found.uuid, found.serial, found.model, found.memory_bytes, found.nodes) == (
        "GPU-lib",
        "1320621012345",
        "A100",
        40 * GIBI,
        known.nodes,
    )


def test_a_network_card_has_interfaces_and_rdma(machine: Machine) -> None:
    card = PciDevice(
        ADDRESS,
        "15b3",
        "101e",
        "020000",
        interfaces={"eth0": "02:00:00:00:00:01"},
        up=("eth0",),
        device_files={"infiniband_verbs/uverbs0": "infiniband/uverbs0 231:192"},
        files={"infiniband/mlx5_0/node_guid": "0"},
        links={"physfn": "../0000:17:00.1"},
    )
    found = the_device(machine, card)
    assert found.interfaces == (
        Interface("eth0", "02:00:00:00:00:01", up=True, speed_megabits=100_000, mtu=1500),
    )
    assert (found.rdma, found.parent) == (("mlx5_0",), "0000:17:00.1")
    assert found.nodes == (
        HostNode("/dev/infiniband/rdma_cm", shared=True),
        HostNode("/dev/infiniband/uverbs0", 231, 192),
    )
    machine.plug(PciDevice("0000:17:00.1"))
    assert sysfs(machine).functions(ADDRESS) == (ADDRESS,)


def test_a_device_for_user_space_has_its_groups_file(machine: Machine) -> None:
    card = PciDevice(ADDRESS, driver="vfio-pci", links={"iommu_group": "../../kernel/iommu_groups/42"})
    assert the_device(machine, card).nodes == (
        HostNode("/dev/vfio/42"),
        HostNode("/dev/vfio/vfio", shared=True),
    )


def test_disks_are_found_behind_their_controller(machine: Machine) -> None:
    card = PciDevice(ADDRESS, pci_class="010802", files={"nvme/nvme0/nvme0n1/dev": "259:0"})
    assert the_device(machine, card).blocks == ("nvme0n1",)


def test_all_functions_of_a_card_belong_together(machine: Machine) -> None:
    for one in (ADDRESS, "0000:17:00.1", "0000:17:01.0"):
        machine.plug(PciDevice(one))
    assert sysfs(machine).functions(ADDRESS) == (ADDRESS, "0000:17:00.1")
    assert sysfs(machine).functions("region0") == ("region0",)


def test_a_device_that_goes_while_it_is_looked_at_is_left_out(machine: Machine) -> None:
    machine.plug(PciDevice(ADDRESS))
    (machine.sysfs / "bus/pci/devices/0000:18:00.0").symlink_to("../nowhere")
    assert [one.address for one in sysfs(machine).devices()] == [ADDRESS]


def test_what_comes_goes_or_gets_a_driver_changes_the_signature(machine: Machine) -> None:
    there = sysfs(machine)
    seen = [there.signature()]
    machine.plug(PciDevice(ADDRESS))
    seen.append(there.signature())
    machine.bind(ADDRESS, "nvidia")
    seen.append(there.signature())
    machine.region(0, uuid="u", size=GIBI)
    seen.append(there.signature())
    assert len(set(seen)) == 4
    assert there.signature() == seen[-1]


def configuration(*capabilities: tuple[int, int, int, bytes]) -> bytes:
    """Return a space with capabilities: place, id, where the next one is, what it holds."""
    space = bytearray(4096)
    for place, number, following, inside in capabilities:
        space[place : place + 4] = (number | 1 << 16 | following << 20).to_bytes(4, "little")
        space[place + 4 : place + 4 + len(inside)] = inside
    return bytes(space)


SPACES = {
    "its number": (configuration((0x100, 3, 0, bytes(range(1, 9)))), "08-07-06-05-04-03-02-01"),
    "behind others": (
        configuration((0x100, 1, 0x150, b""), (0x150, 3, 0, bytes(range(1, 9)))),
        "08-07-06-05-04-03-02-01",
    ),
    "no capability": (bytes(4096), ""),
    "a space that cannot be read whole": (bytes(64), ""),
    "nothing answers": (b"\xff" * 4096, ""),
    "others only": (configuration((0x100, 1, 0, b"")), ""),
    "a list that goes round": (configuration((0x100, 1, 0x150, b""), (0x150, 1, 0x100, b"")), ""),
    "a list that leads out of its room": (
        configuration((0x040, 3, 0, bytes(range(1, 9))), (0x100, 1, 0x040, b"")),
        "",
    ),
    "a blank number": (configuration((0x100, 3, 0, b"\xff" * 8)), ""),
    "a number that is cut off": (configuration((0x100, 3, 0, b"\1\2"))[:0x106], ""),
}


@pytest.mark.parametrize(("space", "number"), SPACES.values(), ids=SPACES)
def test_a_serial_number_is_read_from_the_configuration_space(space: bytes, number: str) -> None:
    assert pci.serial_number(space) == number


WINDOWS = {
    "nothing": ("", 0),
    "nonsense": ("x y z\n1", 0),
    "the largest": ("0x0 0xfff 0x200\n0x10000 0x1ffff 0x200", 0x10000),
    "ports are no memory": ("0x0 0xffff 0x101\n0x0 0xfff 0x200", 0x1000),
    "what is behind the windows is no window": ("0x0 0x0 0x0\n" * 6 + "0x0 0xfffff 0x200", 0),
}


@pytest.mark.parametrize(("resource", "size"), WINDOWS.values(), ids=WINDOWS)
def test_the_largest_window_is_taken_for_the_memory(resource: str, size: int) -> None:
    assert pci.largest_window(resource) == size


def test_memory_behind_cxl_is_a_device(machine: Machine) -> None:
    machine.region(3, uuid="0f-1e", size=256 * GIBI, numa_node=2)
    assert tuple(sysfs(machine).devices()) == (
        HostDevice(
            "region3",
            uuid="0f-1e",
            numa_node=2,
            memory_bytes=256 * GIBI,
            driver="cxl_region",
            pci_class="050210",
            nodes=(HostNode("/dev/dax3.0", 252, 0),),
        ),
    )


def test_huge_pages_are_counted_by_numa_node(machine: Machine) -> None:
    machine.huge_pages(1, 2048, 512, 500)
    machine.huge_pages(0, 1048576, 4, 4)
    assert memory.hugepages(machine.sysfs) == (
        HugePages(0, GIBI, 4, 4),
        HugePages(1, 2 << 20, 512, 500),
    )


def test_a_machine_without_numa_has_huge_pages_too(machine: Machine) -> None:
    folder = machine.sysfs / "kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "nr_hugepages").write_text("8\n")
    (folder.parent / "other").mkdir()
    assert memory.hugepages(machine.sysfs) == (HugePages(0, 2 << 20, 8, 0),)


def test_cpus_know_their_core_socket_and_numa_node(machine: Machine) -> None:
    machine.cpus({0: "0-1", 1: "2"}, "0-1,3")
    machine.cpu(0, core=4, socket=0)
    machine.cpu(1, core=5, socket=0)
    assert cpus.cpus(machine.sysfs) == (Cpu(0, 4, 0, 0), Cpu(1, 5, 0, 0), Cpu(3))


@pytest.mark.parametrize(
    ("words", "numbers"), [("", ()), ("3", (3,)), ("0-2,7", (0, 1, 2, 7)), ("x,1-y,-2,4", (4,)), ("5-3", ())]
)
def test_a_list_of_cpus_is_read(words: str, numbers: tuple[int, ...]) -> None:
    assert cpus.listed(words) == numbers

"""NVIDIA's library and tool, where a node has them: asked when needed, let go before a GPU is pulled; and sharing."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield.cli.clock import WallClock
from jackfield.core.share import Partitions, Sharing
from jackfield.driver.driver import Share
from jackfield.driver.store import PreparedStore
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.host import HostDevice
from jackfield.model.names import Key, PhysicalID, Uid
from jackfield.model.policy import DRIVER, LocalDevices, Policy
from jackfield.node.gpus import Library, Nvml, Specs
from jackfield.node.host import SEEN, Manners, NodeHost
from jackfield.node.local import LocalDriver
from jackfield.node.nvidia import Command, toolkit
from jackfield.node.plugin import Nvidia
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.ports import Refused, Retry
from jackfield.testing import builders as b
from jackfield.testing.nvidia import Daemons, Gpus
from jackfield.testing.sysfs import Machine, PciDevice

A100 = "NVIDIA A100-SXM4-40GB"
OURS = Policy(local_devices=(LocalDevices("gpu", vendor="10de"), LocalDevices("nic", pci_class="02")))


class Opened(Gpus):
    """GPUs whose library can be closed."""

    closed = 0
    closing: Callable[[], None] | None = None

    def close(self) -> None:
        self.closed += 1
        if self.closing is not None:
            self.closing()


class Shelf:
    """Where the library is, or is not; counts how often it was taken."""

    def __init__(self, library: Opened | None) -> None:
        self.library = library
        self.loads = 0

    def __call__(self) -> Library | None:
        self.loads += 1
        return self.library


def opened(count: int = 2) -> Opened:
    return Opened(Gpus.of(A100, count).gpus())


def plugged(machine: Machine, gpus: Opened) -> None:
    for number, one in enumerate(gpus.gpus()):
        machine.plug(PciDevice(one.address, driver="nvidia", uuid=one.uuid, minor=number))


def test_the_library_is_asked_when_gpus_come_or_go_and_closed_again(tmp_path: Path) -> None:
    machine, library = Machine(tmp_path), opened()
    shelf = Shelf(library)
    nvml = Nvml(machine.proc, shelf)
    assert nvml.known() == {}
    assert shelf.loads == 0
    plugged(machine, library)
    known = nvml.known()
    assert [one.uuid for one in known.values()] == [*library.uuids]
    first = known[library.gpus()[0].address]
    assert (first.model, first.memory_bytes) == (A100, library.gpus()[0].memory_mebibytes << 20)
    assert nvml.known() == known
    assert (shelf.loads, library.closed) == (1, 1)


def test_a_node_without_the_library_goes_by_what_the_kernel_says(tmp_path: Path) -> None:
    machine, library = Machine(tmp_path), opened(1)
    plugged(machine, library)
    shelf = Shelf(None)
    (found,) = Sysfs(Roots(machine.sysfs, machine.proc), (Nvml(machine.proc, shelf),)).devices()
    assert found.uuid == library.uuids[0]


def test_only_the_nodes_own_gpus_are_shared_and_the_library_is_let_go(tmp_path: Path) -> None:
    library = opened()
    shelf = Shelf(library)
    nvml = Nvml(tmp_path, shelf)
    assert nvml.gpus() == ()
    nvml.own = lambda: library.uuids[1:]
    assert [one.uuid for one in nvml.gpus()] == [library.uuids[1]]
    nvml.let_go()
    nvml.let_go()
    assert (shelf.loads, library.closed) == (1, 1)
    nvml.set_mig(library.uuids[1], enabled=True)
    assert shelf.loads == 2
    shelf.library = None
    nvml.let_go()
    with pytest.raises(Refused, match=r"libnvidia-ml\.so\.1 is not installed"):
        nvml.gpus()


# --- what NVIDIA's tool writes

GPU = HostDevice("0000:01:00.0", vendor="10de", uuid="GPU-1")
OTHER = HostDevice("0000:02:00.0", vendor="1002", uuid="GPU-2")


class Tool:
    """A tool that describes what it is told, or fails."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.names = list(names)
        self.error = ""
        self.runs = 0

    def __call__(self, command: Command) -> str:
        self.runs += 1
        if self.error:
            raise Retry(self.error)
        assert command.arguments[-1] == f"--output={self.folder / toolkit.FILE}"
        (self.folder / toolkit.FILE).write_text(
            json.dumps({"devices": [{"name": one} for one in self.names]})
        )
        return ""


def test_a_gpu_goes_by_the_name_that_the_tool_gave_it(tmp_path: Path) -> None:
    tool = Tool(tmp_path, "GPU-1", "all")
    specs = Specs(tmp_path, tool, installed=True)
    with pytest.raises(Retry, match=r"has not described GPU-1 yet$"):
        specs.cdi(GPU)
    asyncio.run(specs.follow((GPU, OTHER)))
    asyncio.run(specs.follow((GPU, OTHER)))
    assert tool.runs == 1
    assert specs.cdi(GPU) == ("node.jackfield.dev/nvidia-gpu=GPU-1",)
    assert specs.cdi(OTHER) == ()
    asyncio.run(specs.follow(()))
    assert tool.runs == 2


def test_a_tool_that_fails_is_told_and_tried_again(tmp_path: Path) -> None:
    tool = Tool(tmp_path, "GPU-1")
    specs = Specs(tmp_path, tool, installed=True)
    tool.error = "nvidia-ctk failed: no driver"
    asyncio.run(specs.follow((GPU,)))
    with pytest.raises(Retry, match="GPU-1 yet: nvidia-ctk failed: no driver"):
        specs.cdi(GPU)
    tool.error = ""
    asyncio.run(specs.follow((GPU,)))
    assert (specs.trouble, len(specs.cdi(GPU))) == ("", 1)


def test_without_the_tool_nothing_is_asked_of_it(tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    specs = Specs(tmp_path, tool, installed=False)
    asyncio.run(specs.follow((GPU,)))
    assert (specs.cdi(GPU), tool.runs) == ((), 0)


@pytest.mark.parametrize(
    "text", ["", "rubbish", "[]", '{"devices": [1]}', '{"devices": [{}]}', '{"devices": 7}']
)
def test_a_file_that_is_none_describes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / toolkit.FILE).write_text(text)
    with pytest.raises(Retry):
        Specs(tmp_path, Tool(tmp_path), installed=True).cdi(GPU)


# --- sharing


class Site:
    """A node with two GPUs and a network card of its own."""

    def __init__(self, folder: Path, sharing: Sharing | None, *, installed: bool = False) -> None:
        self.machine = Machine(folder / "host")
        self.library = opened()
        plugged(self.machine, self.library)
        self.machine.plug(PciDevice("0000:20:00.0", "15b3", "101e", "020000", serial=9))
        for one in ("plugins", "cdi"):
            (folder / one).mkdir()
        nvml = Nvml(self.machine.proc, Shelf(self.library))
        self.tool = Tool(folder / "cdi")
        nvidia = Nvidia(nvml, Specs(folder / "cdi", self.tool, installed=installed), Daemons(), sharing)
        store = PreparedStore(DRIVER, folder / "plugins", folder / "cdi")
        roots = Roots(self.machine.sysfs, self.machine.proc, self.machine.dev)
        manners = Manners(self.machine.pod_logs, let_go=nvml.let_go)
        self.host = NodeHost(Sysfs(roots, (nvml,)), store, WallClock(), OURS, manners)
        self.resources: tuple[ComposableResource, ...] = ()
        self.driver = LocalDriver(self.host, OURS, lambda: self.resources, nvidia.shared())

    def published(self) -> list[str]:
        (pool,) = self.driver.pools()
        return [one.name for one in pool.devices]


def share(device: str, uid: str = "u-1", notes: dict[str, str] | None = None) -> Share:
    return Share(
        claim=Key("default", "c"),
        uid=Uid(uid),
        requests=("gpu",),
        pool="n1",
        device=device,
        notes=notes or {},
    )


def test_unshared_gpus_are_devices_like_others(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    assert site.published() == ["gpu-0000-01-00-0", "gpu-0000-02-00-0", "nic-0000-20-00-0"]
    made = asyncio.run(site.driver.prepare(share("gpu-0000-01-00-0")))
    assert made.edits.env["JACKFIELD_DEVICE_GPU_0000_01_00_0"] == site.library.uuids[0]
    assert made.notes == {SEEN: site.library.uuids[0]}
    asyncio.run(site.driver.unprepare(share("gpu-0000-01-00-0")))
    with pytest.raises(Refused, match="is not here any more, or a fabric has lent it"):
        asyncio.run(site.driver.prepare(share("gpu-0000-77-00-0")))


@pytest.mark.parametrize("installed", [False, True])
def test_partitions_of_the_nodes_own_gpus_are_offered_made_and_destroyed(
    tmp_path: Path, *, installed: bool
) -> None:
    site = Site(tmp_path, Sharing(partitions=Partitions.ON_DEMAND), installed=installed)
    site.resources = (b.resource(physical=site.library.uuids[1]),)
    names = site.published()
    assert "nic-0000-20-00-0" in names
    partitions = [one for one in names if "1g-5gb" in one.replace(".", "-")]
    assert len(partitions) >= 7
    assert not any(site.library.uuids[1][4:12] in one for one in names)
    made = asyncio.run(site.driver.prepare(share(partitions[0])))
    (instance,) = site.library.gpus()[0].instances
    assert made.physical == instance.uuid
    assert made.notes[SEEN] == site.library.uuids[0]
    word = "JACKFIELD_DEVICE_" + partitions[0].upper().replace("-", "_")
    assert made.edits.env[word] == instance.uuid
    assert bool(made.cdi) == installed
    assert ("/dev/nvidia0" in [one.path for one in made.edits.device_nodes]) == (not installed)
    asyncio.run(site.driver.restore((share(partitions[0], notes=dict(made.notes)),)))
    assert site.driver.problems == ()
    asyncio.run(site.driver.unprepare(share(partitions[0], notes=dict(made.notes))))
    assert site.library.gpus()[0].instances == ()


def test_the_library_is_closed_before_a_gpu_is_removed(tmp_path: Path) -> None:
    async def scene() -> None:
        site = Site(tmp_path, Sharing(partitions=Partitions.ON_DEMAND))
        site.published()  # for which the library is opened
        folder = site.machine.sysfs / "bus/pci/devices" / site.library.gpus()[1].address
        there: list[bool] = []
        site.library.closing = lambda: there.append(folder.exists())
        async with site.machine:
            await site.host.release(PhysicalID(site.library.uuids[1]), force=False)
        assert there[0]
        assert not folder.exists()

    asyncio.run(scene())


def test_while_an_unnamed_device_may_come_only_what_was_there_is_offered(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    before = site.published()
    site.resources = (b.resource(state=ResourceState.ATTACHING),)
    site.machine.plug(PciDevice("0000:30:00.0", driver="nvidia", uuid="GPU-new-1", minor=7))
    site.host.look()
    assert site.published() == before
    site.resources = (b.resource(state=ResourceState.ATTACHING, physical="block-7", uuid="GPU-else-1"),)
    assert site.published() == [*before, "gpu-0000-30-00-0"]

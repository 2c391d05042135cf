"""One table for every node behind the Host port: a simulated one, and a real machine's files."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from jackfield.cli.clock import WallClock
from jackfield.driver.store import CHECKPOINT, PreparedStore
from jackfield.model.fabric import FabricDevice
from jackfield.model.names import Key, ModelName, NodeName, PhysicalID, Seconds, Uid
from jackfield.model.policy import DRIVER, Policy
from jackfield.node.host import Manners, NodeHost
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.ports import Host, Prepared, Refused
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.host import HostSpec, SimHost
from jackfield.sim.pool import Movement
from jackfield.testing.sysfs import Machine, PciDevice

DEVICES = ("GPU-aaaa-1", "GPU-bbbb-2")


class ListeningHost(Host, Protocol):
    """A host that says when something has changed."""

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]: ...


class Rig(Protocol):
    """A node to be tried."""

    @property
    def host(self) -> ListeningHost: ...
    async def plug(self, device: str) -> None: ...
    def restart(self) -> None: ...
    def damage(self) -> None: ...


class Simulated:
    """A node in memory."""

    def __init__(self, _: Path) -> None:
        spec = HostSpec(hotplug=Fixed(Seconds(0.0)), needs_rescan=True)
        self.host = SimHost(NodeName("n1"), WallClock(), Chance("host"), spec)

    async def plug(self, device: str) -> None:
        there = FabricDevice(PhysicalID(device), ModelName("A100"), serial=device)
        self.host.moved(Movement(WallClock().now(), there, NodeName("n1"), present=True))
        await WallClock().sleep(Seconds(0.01))

    def restart(self) -> None:
        """Find the node as it is: the object is the node."""

    def damage(self) -> None:
        """Lose the checkpoint."""
        self.host.damage()


class Real:
    """A machine's files, and its kernel's answers."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine(folder / "machine")
        self._folder = folder
        for one in ("plugins", "cdi"):
            (folder / one).mkdir()
        self.host = self._host()

    def _host(self, damage: str = "") -> NodeHost:
        store = PreparedStore(DRIVER, self._folder / "plugins", self._folder / "cdi")
        assert damage in "".join(store.open())
        roots = Roots(self.machine.sysfs, self.machine.proc, self.machine.dev)
        return NodeHost(Sysfs(roots), store, WallClock(), Policy(), Manners(self.machine.pod_logs))

    async def plug(self, device: str) -> None:
        number = DEVICES.index(device)
        self.machine.plug_unseen(
            PciDevice(f"0000:{number + 16}:00.0", driver="nvidia", uuid=device, minor=number)
        )

    def restart(self) -> None:
        self.host = self._host()

    def damage(self) -> None:
        (self._folder / "plugins" / DRIVER / CHECKPOINT).unlink()
        self.host = self._host("nothing is known of 1 claims")


def play(kind: type[Simulated | Real], folder: Path, scene: Callable[[Rig], Awaitable[None]]) -> None:
    async def run() -> None:
        rig = kind(folder)
        if isinstance(rig, Real):
            async with rig.machine:
                await scene(rig)
        else:
            await scene(rig)

    asyncio.run(run())


async def present(rig: Rig, *devices: str) -> None:
    for one in devices:
        await rig.plug(one)
    await rig.host.rescan()


def names(rig: Rig) -> list[str]:
    return sorted(one.physical for one in rig.host.seen())


def prepared(device: str, uid: str = "u1") -> Prepared:
    name = f"{DRIVER}/rack-a/{device.lower()}"
    return Prepared(
        Uid(uid), Key("default", f"of-{uid}"), PhysicalID(device), name, PhysicalID(device), ("gpu",)
    )


async def nothing_is_seen_before_it_is_there(rig: Rig) -> None:
    assert rig.host.seen() == ()
    await rig.host.rescan()
    assert rig.host.seen() == ()


async def a_rescan_finds_what_was_plugged_in(rig: Rig) -> None:
    await present(rig, *DEVICES)
    assert names(rig) == [*DEVICES]
    assert len({one.address for one in rig.host.seen()}) == 2


async def whoever_listens_hears_of_it_until_he_stops(rig: Rig) -> None:
    heard: list[int] = []
    stop = rig.host.listen(lambda: heard.append(len(rig.host.seen())))
    await present(rig, DEVICES[0])
    await rig.host.rescan()
    stop()
    await present(rig, DEVICES[1])
    assert heard == [1]


async def a_device_that_is_let_go_is_out_of_sight(rig: Rig) -> None:
    await present(rig, *DEVICES)
    await rig.host.release(PhysicalID(DEVICES[0]), force=False)
    assert names(rig) == [DEVICES[1]]


async def to_let_go_of_what_is_not_there_is_nothing(rig: Rig) -> None:
    await rig.host.release(PhysicalID("GPU-none"), force=False)
    await present(rig, DEVICES[0])
    for _ in range(2):
        await rig.host.release(PhysicalID(DEVICES[0]), force=False)
    assert names(rig) == []


async def a_prepared_device_is_let_go_only_by_force(rig: Rig) -> None:
    await present(rig, *DEVICES)
    await rig.host.write(prepared(DEVICES[0]), Uid("u1"))
    with pytest.raises(Refused, match=f"{DEVICES[0]} is prepared for .*default/of-u1"):
        await rig.host.release(PhysicalID(DEVICES[0]), force=False)
    assert names(rig) == [*DEVICES]
    await rig.host.release(PhysicalID(DEVICES[1]), force=False)
    await rig.host.release(PhysicalID(DEVICES[0]), force=True)
    assert names(rig) == []


async def what_is_prepared_is_told_once(rig: Rig) -> None:
    await present(rig, DEVICES[0])
    heard: list[int] = []
    rig.host.listen(lambda: heard.append(len(rig.host.prepared())))
    for _ in range(2):
        await rig.host.write(prepared(DEVICES[0]), Uid("u1"))
    assert rig.host.prepared() == (prepared(DEVICES[0]),)
    for _ in range(2):
        await rig.host.write(None, Uid("u1"))
    assert rig.host.prepared() == ()
    assert heard == [1, 0]


async def all_of_a_claim_is_removed_and_nothing_else(rig: Rig) -> None:
    await present(rig, *DEVICES)
    await rig.host.write(prepared(DEVICES[0]), Uid("u1"))
    await rig.host.write(prepared(DEVICES[1]), Uid("u1"))
    await rig.host.write(prepared(DEVICES[1], "u2"), Uid("u2"))
    assert len(rig.host.prepared()) == 3
    await rig.host.write(None, Uid("u1"))
    assert rig.host.prepared() == (prepared(DEVICES[1], "u2"),)


async def what_is_prepared_outlives_the_plugin(rig: Rig) -> None:
    await present(rig, DEVICES[0])
    await rig.host.write(prepared(DEVICES[0]), Uid("u1"))
    rig.restart()
    assert rig.host.prepared() == (prepared(DEVICES[0]),)
    assert names(rig) == [DEVICES[0]]


async def what_a_lost_checkpoint_says_nothing_of_may_run_until_it_is_removed(rig: Rig) -> None:
    await present(rig, *DEVICES)
    await rig.host.write(prepared(DEVICES[0]), Uid("u1"))
    assert rig.host.strays() == ()
    rig.damage()
    assert (rig.host.prepared(), rig.host.strays()) == ((), (Uid("u1"),))
    await rig.host.rescan()
    await rig.host.write(prepared(DEVICES[1], "u2"), Uid("u2"))
    assert rig.host.strays() == (Uid("u1"),)
    await rig.host.write(None, Uid("u1"))
    assert rig.host.strays() == ()


PROMISES = (
    nothing_is_seen_before_it_is_there,
    a_rescan_finds_what_was_plugged_in,
    whoever_listens_hears_of_it_until_he_stops,
    a_device_that_is_let_go_is_out_of_sight,
    to_let_go_of_what_is_not_there_is_nothing,
    a_prepared_device_is_let_go_only_by_force,
    what_is_prepared_is_told_once,
    all_of_a_claim_is_removed_and_nothing_else,
    what_is_prepared_outlives_the_plugin,
    what_a_lost_checkpoint_says_nothing_of_may_run_until_it_is_removed,
)


@pytest.mark.parametrize("kind", [Simulated, Real], ids=["simulated", "real"])
@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.__name__)
def test_a_node_keeps_its_promises(
    promise: Callable[[Rig], Awaitable[None]], kind: type[Simulated | Real], tmp_path: Path
) -> None:
    play(kind, tmp_path, promise)

"""Lives that end early, on the real scheduler: each ends where a user would expect, and says why on the object."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

import msgspec

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.names import Key, NodeName, PhysicalID, Seconds, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.ports import Gone, Refused
from jackfield.sim.chance import Fixed
from jackfield.sim.host import HostSpec
from jackfield.sim.manager import Manager
from jackfield.sim.setting import Setting
from jackfield.sim.spec import Refusals
from jackfield.testing.control_plane import ControlPlane
from real.site import FABRIC, Site, setting

HOLD_SECONDS = 4.0
POLICY = Policy(hold_seconds=Seconds(HOLD_SECONDS), inventory_seconds=Seconds(2.0))


def stage(*, nodes: int = 3, devices: int = 4, attach: float = 3.0, policy: Policy = POLICY) -> Setting:
    """A small site, on which an attach takes long enough to come between."""
    made = setting(nodes=nodes, devices=devices, attach=attach, policy=policy)
    return msgspec.structs.replace(made, host=HostSpec(hotplug=Fixed(Seconds(0.2))))


def play(plane: ControlPlane, stage: Setting, folder: Path, scene: Callable[[Site], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        async with Site(plane, stage, folder) as site:
            await site.template()
            await scene(site)

    asyncio.run(main())


def manager(site: Site) -> Manager:
    return site.hardware.managers[FABRIC]


async def attaching(site: Site, count: int) -> list[ComposableResource]:
    """The resources whose order the manager is at, when there are so many."""
    found: list[ComposableResource] = []

    async def there() -> bool:
        with suppress(Refused):  # the definitions may not be there yet
            found[:] = [one for one in await site.resources() if one.state is ResourceState.ATTACHING]
        return len(found) == count

    await site.until(there)
    return found


async def all_back(site: Site, seconds: float = 60) -> None:
    """Wait until nothing is attached, ordered or written down; then every attach has had its detach."""
    await site.until(lambda: not site.attached and not manager(site).busy, seconds)
    await site.until(site.none_left)
    await site.until(lambda: empty(site))


async def empty(site: Site) -> bool:
    return not await site.all(ComposabilityRequest)


async def said(site: Site, name: str) -> list[str]:
    return [f"{one.reason}: {one.message}" for one in await site.events(name)]


async def dump(site: Site) -> None:
    print(site.report())
    for one in await site.all(ResourceClaim):
        print(one.key, one.status, [f"{e.source.component} {e.reason}: {e.message}" for e in await site.events(one.metadata.name)])
    for name, pod in (await site.pods()).items():
        print(name, pod.status.phase, pod.spec.node_name, [f"{e.source.component} {e.reason}: {e.message}" for e in await site.events(name)])
    print(manager(site).counts, site.movements)


def test_deleted(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        await site.claim("kept")
        await site.claim("gone")
        await site.pod("templated", template="gpu")
        await site.pod("named", claim="kept")
        await site.pod("robbed", claim="gone")
        await attaching(site, 3)
        await site.delete(Pod, "templated")
        await site.delete(Pod, "named")
        await site.delete(ResourceClaim, "gone")
        await site.until(lambda: ran(site, "robbed"))
        await dump(site)
        await site.delete(Pod, "robbed")
        await all_back(site)
        await dump(site)

    play(fresh, stage(), tmp_path, scene)


async def ran(site: Site, pod: str) -> bool:
    return await site.phase(pod) == "Running"


def test_node(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        await site.pod("p", template="gpu", seconds=2)
        (one,) = await attaching(site, 1)
        await site.hardware.remove_node(one.node)
        await site.until(lambda: site.phases("Succeeded", 1))
        await dump(site)
        await all_back(site)

    play(fresh, stage(), tmp_path, scene)


def test_vanish(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        await site.claim("mine")
        await site.pod("p", claim="mine")
        (one,) = await attaching(site, 1)
        print("LOSE", one.device, one.status)
        await asyncio.sleep(1)
        manager(site).lose(PhysicalID(one.device.device.rpartition("-")[2]))
        await site.until(lambda: ran(site, "p"))
        await dump(site)
        manager(site).lose(PhysicalID(site.attached[0]))
        await asyncio.sleep(10)
        await dump(site)
        await site.delete(Pod, "p")
        await all_back(site)
        await dump(site)

    play(fresh, stage(devices=3), tmp_path, scene)


def test_refusals(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        manager(site).refusals = Refusals(devices=(PhysicalID("0000"), PhysicalID("0001")))
        await site.claim("mine")
        await site.pod("p", claim="mine")
        await site.until(lambda: ran(site, "p"), 120)
        await dump(site)
        manager(site).refusals = Refusals(attach=1.0)
        await site.claim("never")
        await site.pod("q", claim="never")
        await asyncio.sleep(60)
        await dump(site)

    play(fresh, stage(nodes=4, devices=6, attach=0.3, policy=msgspec.structs.replace(POLICY, claim_attempts_max=3)), tmp_path, scene)

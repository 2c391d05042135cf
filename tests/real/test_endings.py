"""Lives that end early, on the real scheduler: each ends where a user would expect, and says why on the object."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.names import Key, NodeName, PhysicalID, Seconds, named
from jackfield.model.node import FAILURES, Node
from jackfield.model.pod import Pod
from jackfield.model.policy import FAILED, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Gone, Refused
from jackfield.sim.chance import Fixed
from jackfield.sim.host import HostSpec
from jackfield.sim.manager import Manager
from jackfield.sim.pool import Movement
from jackfield.sim.setting import Setting
from jackfield.sim.spec import Refusals
from jackfield.testing.control_plane import ControlPlane
from real import accounts
from real.site import FABRIC, Site, setting

HOLD_SECONDS = 4.0
SLACK_SECONDS = 45.0
"""What may come on top: Kubernetes' garbage collector hears of new kinds only every 30 s, and machines are busy."""
POLICY = Policy(
    hold_seconds=Seconds(HOLD_SECONDS),
    inventory_seconds=Seconds(2.0),
    missing_seconds=Seconds(6.0),
    heartbeat_seconds=Seconds(8.0),
    blame_seconds=Seconds(20.0),
    claim_attempts_max=3,
)
Scene = Callable[[Site], Coroutine[None, None, None]]


def stage(*, nodes: int = 3, devices: int = 4, attach: float = 3.0, policy: Policy = POLICY) -> Setting:
    """Return a small site, on which an attach takes long enough to come between."""
    made = setting(nodes=nodes, devices=devices, attach=attach, policy=policy)
    return replace(made, host=HostSpec(hotplug=Fixed(Seconds(0.2))), heartbeat=Seconds(2.0))


def play(site: Site, scene: Scene) -> None:
    async def main() -> None:
        async with site:
            await site.template()
            await scene(site)

    asyncio.run(main())


def manager(site: Site) -> Manager:
    return site.hardware.managers[FABRIC]


def physical(resource: ComposableResource) -> PhysicalID:
    """The device that an order is for, as its manager calls it."""
    assert resource.device is not None
    return PhysicalID(resource.device.device.removeprefix("a100-"))


async def attaching(site: Site, count: int = 1) -> list[ComposableResource]:
    """Wait until the manager is at so many orders; return their resources."""
    found: list[ComposableResource] = []

    async def there() -> bool:
        with suppress(Refused):  # the definitions may not be there yet
            found[:] = [one for one in await site.resources() if one.state is ResourceState.ATTACHING]
        return len(found) == count and manager(site).busy

    await site.until(there)
    return found


async def run(site: Site, *pods: str, seconds: float = 60) -> None:
    """Wait until these pods run."""

    async def running() -> bool:
        there = await site.pods()
        return all(there[name].status.phase == "Running" for name in pods)

    await site.until(running, seconds)


async def all_back(site: Site, *, lost: int = 0) -> None:
    """Wait until nothing is attached, ordered or in the books; then no attach is without its detach."""
    await site.until(lambda: not site.attached and not manager(site).busy, 90)
    await site.until(site.none_left)

    async def unasked() -> bool:
        return not await site.all(ComposabilityRequest)

    await site.until(unasked)
    assert manager(site).counts.detaches == manager(site).counts.attaches - lost


async def told(site: Site, about: str, reason: str) -> list[str]:
    """What the Events of a reason say about an object."""
    return [one.message for one in await site.events(about) if one.reason == reason]


async def tells(site: Site, about: str, reason: str, words: str) -> None:
    """Wait until an Event of a reason about an object says certain words."""

    async def said() -> bool:
        return any(words in one for one in await told(site, about, reason))

    await site.until(said, 30)


async def exists(site: Site, claim: str) -> bool:
    try:
        await site.cluster.read(ResourceClaim, Key("default", claim))
    except Gone:
        return False
    return True


def stays(site: Site, device: PhysicalID) -> list[float]:
    """How long a device was on a node, each time."""
    moves: list[Movement] = [one for one in site.movements if one.device.id == device]
    return [gone.at - came.at for came, gone in zip(moves[::2], moves[1::2], strict=True)]


async def offered(site: Site) -> list[str]:
    """The names of all devices in our slices."""
    slices = [one for one in await site.all(ResourceSlice) if isinstance(one, ResourceSlice)]
    return sorted(entry.name for one in slices for entry in one.spec.devices)


def in_the_pool(site: Site) -> list[str]:
    return sorted(f"a100-{one.id}" for one in manager(site).inventory().devices)


async def has_room(site: Site, node: NodeName) -> bool:
    return (await site.cluster.read(Node, named(node))).metadata.labels.get("cohdi.io/a100") == "true"


# --- what users take back


def test_what_is_deleted_while_its_device_comes_leaves_nothing_behind(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        await site.claim("kept")
        await site.claim("gone")
        await site.pod("templated", template="gpu")
        await site.pod("named", claim="kept")
        await site.pod("robbed", claim="gone")
        orders = await attaching(site, 3)
        held = await site.cluster.read(ResourceClaim, Key("default", "gone"))
        abandoned = [one for one in orders if one.device not in [result.id for result in held.results]]
        await site.delete(Pod, "templated")
        await site.delete(Pod, "named")
        await site.delete(ResourceClaim, "gone")
        await run(site, "robbed")  # a claim in use outlives its deletion: Kubernetes keeps it for the pod
        assert await exists(site, "gone")
        await site.delete(Pod, "robbed")
        await all_back(site)
        assert manager(site).counts.attaches == 3
        for one in abandoned:
            assert all(stay < HOLD_SECONDS + SLACK_SECONDS for stay in stays(site, physical(one)))
        assert not await exists(site, "gone")
        (kept,) = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
        assert (kept.metadata.name, kept.status.allocation) == ("kept", None)
        await site.pod("later", claim="kept")
        await run(site, "later")

    play(Site(fresh, stage(), tmp_path), scene)


def test_a_device_is_not_pulled_from_a_pod_that_was_deleted_by_force_until_its_node_lets_go(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        await site.claim("mine")
        first = await site.pod("first", claim="mine")
        await run(site, "first")
        node = (await site.pods())["first"].spec.node_name
        live = await site.cluster.read(Pod, first.key)
        await site.cluster.delete(Pod, live.key, live.metadata.resource_version, grace_seconds=0)
        assert await site.phase("first") == "Gone"
        host = site.hardware.hosts[node]

        async def given_up() -> bool:
            return (await site.cluster.read(ResourceClaim, Key("default", "mine"))).status.allocation is None

        await site.until(given_up)
        assert host.prepared(), "its containers should have lived on"
        await site.until(lambda: not host.prepared())
        unprepared = site.clock.now()
        await all_back(site)
        assert not host.pulled_in_use
        assert all(one.at > unprepared - 1 for one in site.movements if not one.present)

    hasty = replace(POLICY, hold_seconds=Seconds(1.0))  # over long before the containers are
    slow = replace(stage(attach=0.3, policy=hasty), pod_stop=Fixed(Seconds(8.0)))
    play(Site(fresh, slow, tmp_path), scene)


# --- what breaks


def test_a_pod_goes_elsewhere_when_its_node_goes_or_the_plugin_there_falls_silent(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        await site.claim("mine")
        await site.pod("p", claim="mine")
        (order,) = await attaching(site)
        await site.hardware.remove_node(order.node)
        await run(site, "p")
        assert (await site.pods())["p"].spec.node_name != order.node
        await tells(site, "mine", RESCHEDULE, f"node {order.node} does not exist")
        await site.delete(Pod, "p")
        await all_back(site)
        silent, talking = (one for one in site.hardware.hosts if one != order.node)
        site.hardware.machines.silence(silent)

        async def closed() -> bool:
            return not await has_room(site, silent)

        await site.until(closed)
        before = len(site.movements)
        await site.pod("there", template="gpu", node=silent)
        for number in range(3):
            await site.pod(f"q{number}", template="gpu")
        await run(site, "q0", "q1", "q2")
        assert {one.node for one in site.movements[before:]} == {talking}
        assert await site.phase("there") == "Pending"
        await site.hardware.machines.restore(silent)
        await run(site, "there")

    play(Site(fresh, stage(), tmp_path), scene)


def test_a_device_that_vanishes_is_explained_and_offered_no_more(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        await site.claim("mine")
        await site.pod("p", claim="mine")
        (order,) = await attaching(site)
        manager(site).lose(physical(order))
        await run(site, "p")
        assert order.device is not None
        await tells(site, "mine", RESCHEDULE, order.device.device)
        (used,) = site.attached
        manager(site).lose(PhysicalID(used))
        await tells(site, "mine", "Lost", f"a100-{used} to be attached to")
        await site.pod("q", template="gpu")
        await run(site, "q")
        await site.delete(Pod, "p")

        async def listed() -> bool:
            return await offered(site) == in_the_pool(site)

        await site.until(listed)
        assert len(in_the_pool(site)) == 1
        await site.delete(Pod, "q")
        await all_back(site, lost=1)

    play(Site(fresh, stage(devices=3), tmp_path), scene)


def test_failures_are_blamed_on_the_pair_and_the_pod_runs_with_another(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        manager(site).refusals = Refusals(devices=(PhysicalID("0000"),), nodes=(NodeName("n-1"),))
        await site.claim("mine")
        await site.pod("p", claim="mine")
        await run(site, "p", seconds=120)
        pod = (await site.pods())["p"]
        failures = {
            (line.partition("=")[0].rpartition("/")[2], one.metadata.name)
            for one in await site.all(Node)
            for line in one.metadata.annotations.get(FAILURES, "").splitlines()
        }
        assert failures, "nothing was tried that had to fail"
        assert all(device == "a100-0000" or node == "n-1" for device, node in failures)
        assert manager(site).counts.attaches_failed == len(failures)  # none was tried twice
        assert pod.spec.node_name != "n-1"
        assert site.attached != ["0000"]
        for device, node in failures:
            await tells(site, "mine", RESCHEDULE, f"{device} could not be attached to {node}")

    patient = replace(POLICY, blame_seconds=Seconds(600.0), claim_attempts_max=9)
    play(Site(fresh, stage(attach=0.3, policy=patient), tmp_path), scene)


@pytest.mark.slow
def test_a_claim_that_fails_again_and_again_stops_and_is_tried_again_much_later(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        manager(site).refusals = Refusals(attach=1.0)
        await site.claim("mine")
        await site.pod("p", claim="mine")
        await tells(site, "mine", FAILED, "3 attaches for this claim failed")
        assert manager(site).counts.attaches_failed == 3
        manager(site).refusals = Refusals()
        await run(site, "p", seconds=120)
        assert (manager(site).counts.attaches_failed, manager(site).counts.attaches) == (3, 1)

    play(Site(fresh, stage(nodes=4, devices=6, attach=0.3), tmp_path), scene)


# --- as somebody who may do little


def test_the_controllers_role_is_enough_for_a_whole_life(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        manager(site).refusals = Refusals(devices=(PhysicalID("0000"),))
        await site.claim("mine")
        await site.pod("p", claim="mine", seconds=2)
        await site.pod("q", template="gpu", seconds=2)
        await site.until(lambda: site.phases("Succeeded", 2), 120)
        await all_back(site)
        assert not [one for one in site.lines if "forbidden" in one.error + one.because]
        assert await site.replicas[0].stop() == 0
        assert site.replicas[0].errors == ""

    with accounts.controllers(fresh, tmp_path) as kubeconfig:
        site = Site(fresh, stage(attach=0.3), tmp_path)
        site.kubeconfig = kubeconfig
        play(site, scene)

"""Claims of every shape on the real scheduler: each ends where its user expects, and says why on the object."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path

import msgspec
import pytest

from jackfield.model.claim import DeviceRequest, ExactDeviceRequest, ResourceClaim
from jackfield.model.meta import Condition
from jackfield.model.names import Key, NodeName, Seconds, seconds
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, Policy
from jackfield.sim.pool import Movement
from jackfield.sim.setting import Class, LocalDevices, Nodes, Setting
from jackfield.testing.control_plane import ControlPlane
from real.site import FABRIC, Site, setting

OTHER = "nic.example.com"
"""Another driver, which has devices of its own on the nodes."""
POLL = 5.0
"""Every so many seconds the scheduler looks at the conditions of what it waits for."""
LONG_HOLD = Policy(hold_seconds=Seconds(600.0), inventory_seconds=Seconds(5.0))


def play(scene: Coroutine[None, None, None]) -> None:
    asyncio.run(scene)


def request(name: str, device_class: str = "gpu", **wishes: object) -> DeviceRequest:
    """Return a request; wishes are fields of ExactDeviceRequest."""
    exactly = msgspec.structs.replace(ExactDeviceRequest(device_class_name=device_class), **wishes)
    return DeviceRequest(name=name, exactly=exactly)


async def bound(site: Site, pod: str) -> Pod:
    """Wait until a pod is on a node; return it."""
    await site.until(lambda: _on_a_node(site, pod))
    return (await site.pods())[pod]


async def _on_a_node(site: Site, pod: str) -> NodeName:
    return (await site.pods())[pod].spec.node_name


async def done(site: Site, *pods: str, within: float = 60) -> None:
    """Wait until pods have run to their end."""
    for pod in pods:
        await site.until(lambda pod=pod: _succeeded(site, pod), within)


async def _succeeded(site: Site, pod: str) -> bool:
    return (await site.pods())[pod].status.phase == "Succeeded"


async def told(site: Site, claim: str, kind: str, words: str, within: float = 60) -> None:
    """Wait until an Event of a claim says it."""

    async def said() -> bool:
        return any(one.reason == kind and words in one.message for one in await site.events(claim))

    await site.until(said, within)


async def conditions(site: Site, claim: str, namespace: str = "default") -> list[Condition]:
    """Return what a claim says of its devices, as `kubectl describe` shows it."""
    found = await site.cluster.read(ResourceClaim, Key(namespace, claim))
    return [condition for one in found.status.devices for condition in one.conditions]


def most_at_once(movements: Sequence[Movement]) -> int:
    """Return how many devices a node had at the most."""
    here: dict[NodeName, int] = {}
    most = 0
    for one in movements:
        here[one.node] = here.get(one.node, 0) + (1 if one.present else -1)
        most = max(most, here[one.node])
    return most


# --- warm devices, and those that move


def test_a_warm_device_serves_where_it_stands_within_one_poll_and_moves_when_wanted_elsewhere(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, setting(nodes=2, devices=2, policy=LONG_HOLD), tmp_path) as site:
            await site.template()
            await site.claim("both", count=2)
            await site.pod("first", "both", node="n-1", seconds=1)
            await done(site, "first")
            assert site.attaches == 2
            await site.until(lambda: _idle(site, 2))

            await site.pod("warm", template="gpu", seconds=8)
            warm = await bound(site, "warm")
            assert warm.spec.node_name == "n-1"
            assert await _waited(site, warm) < 2 * POLL
            assert site.attaches == 2

            await site.pod("far", template="gpu", node="n-2", seconds=1)
            await done(site, "warm", "far")
            assert (await site.pods())["far"].spec.node_name == "n-2"
            assert site.attaches == 3
            assert len(site.attached) == 2

    play(scene())


async def _idle(site: Site, count: int) -> bool:
    """Whether so many devices stand on nodes, and nobody has them."""
    resources = await site.resources()
    claims = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim) and one.results]
    free = [one for one in resources if one.record is None and not one.holder]
    return len(free) == len(resources) == count and not claims


async def _waited(site: Site, pod: Pod) -> float:
    """How long the scheduler waited from the allocation of a pod's claim until the pod was bound."""
    claim = await site.cluster.read(ResourceClaim, Key("default", pod.claim_names[0]))
    assert claim.status.allocation is not None
    scheduled = next(one for one in pod.status.conditions if one.type == "PodScheduled")
    return seconds(scheduled.last_transition_time) - seconds(claim.status.allocation.allocation_timestamp)


# --- limits


async def burst(plane: ControlPlane, folder: Path, pods: int, within: float) -> None:
    """Many pods at once on nodes that can take one device each, and as many devices as nodes."""
    async with Site(plane, setting(nodes=40, devices=40, slots=1, policy=LONG_HOLD), folder) as site:
        await site.template()
        await asyncio.gather(*(site.pod(f"p{one}", template="gpu", seconds=1) for one in range(pods)))
        await site.until(lambda: site.phases("Succeeded", pods), within)
        assert most_at_once(site.movements) == 1
        assert site.attaches <= pods


def test_in_a_burst_of_sixty_pods_no_node_has_more_devices_than_slots(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    play(burst(fresh, tmp_path, 60, 120))


@pytest.mark.slow
def test_in_a_burst_of_two_hundred_pods_no_node_has_more_devices_than_slots(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    play(burst(fresh, tmp_path, 200, 400))


# --- claims that meet the pool by accident


def test_admin_access_needs_no_attaching_and_all_is_explained_instead_of_attaching_the_pool(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, setting(nodes=2, devices=4), tmp_path) as site:
            await _namespace(site, "watchers", {"resource.kubernetes.io/admin-access": "true"})
            every = request("every", allocation_mode="All", count=0, admin_access=True)
            await site.claim("look", every, namespace="watchers")
            await site.pod("monitor", "look", namespace="watchers")
            await bound(site, "monitor")
            said = await conditions(site, "look", "watchers")
            assert [(one.type, one.status) for one in said] == [(READY, "True")] * 4
            assert {one.message for one in said} == {"admin access needs no attaching"}

            await site.claim("greedy", request("every", allocation_mode="All", count=0))
            await site.pod("hoarder", "greedy")
            await told(site, "greedy", FAILED, "allocationMode All would attach the fabric's whole pool")
            assert site.attaches == 0

            await site.template()
            await site.pod("modest", template="gpu", seconds=1)
            await done(site, "modest", within=90)
            assert site.attaches == 1
            assert not (await site.pods())["hoarder"].spec.node_name

    play(scene())


async def _namespace(site: Site, name: str, labels: dict[str, str]) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    await site.cluster.raw("POST", "/api/v1/namespaces", body)


# --- claims of several pods, pods of several claims


def test_shared_claims_several_claims_and_several_devices_cost_one_attach_for_each_device(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, setting(nodes=3, devices=5), tmp_path) as site:
            for name in ("shared", "left", "right"):
                await site.claim(name)
            await site.claim("pair", count=2)
            await site.pod("one", "shared", seconds=3)
            await site.pod("two", "shared", seconds=12)
            await site.pod("many", "left", "right", "pair", seconds=3)
            await done(site, "one", "many")
            assert site.attaches == 5
            assert await _ready(site, "shared"), "the other pod still has it"
            pods = await site.pods()
            assert pods["one"].spec.node_name == pods["two"].spec.node_name
            used = [one.node for one in site.movements]
            assert used.count(pods["many"].spec.node_name) >= 4
            await done(site, "two")
            await site.until(lambda: not site.attached, 90)
            assert site.attaches == 5

    play(scene())


async def _ready(site: Site, claim: str) -> bool:
    said = await conditions(site, claim)
    return bool(said) and all(one.type == READY and one.status == "True" for one in said)

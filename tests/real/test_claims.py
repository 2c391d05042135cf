"""Claims of every shape on the real scheduler: each ends where its user expects, and says why on the object."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from jackfield.model.meta import Condition
from jackfield.model.names import DeviceID, Key, NodeName, Seconds, Version, named, rfc3339, seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Apply, Merge
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

    async def ended() -> bool:
        found = await site.pods()
        return all(found[pod].status.phase == "Succeeded" for pod in pods)

    await site.until(ended, within)


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
        async with Site(fresh, setting(nodes=2, devices=3, policy=LONG_HOLD), tmp_path) as site:
            await site.template()
            await site.claim("both", count=2)
            await site.pod("first", "both", node="n-1", seconds=1)
            await done(site, "first")
            assert site.attaches == 2
            await site.until(lambda: _idle(site, 2))

            await site.claim("warm", _rather_attached())
            await site.pod("warm", "warm", seconds=15)
            warm = await bound(site, "warm")
            assert warm.spec.node_name == "n-1"
            assert await _waited(site, warm) < 2 * POLL
            assert site.attaches == 2

            await site.pod("busy", template="gpu", node="n-2", seconds=15)
            await bound(site, "busy")
            assert site.attaches == 3, "of what is free and what is idle elsewhere the free one is taken"
            await site.pod("far", template="gpu", node="n-2", seconds=1)
            await done(site, "warm", "busy", "far")
            assert [(one.node, one.present) for one in site.movements[3:]] == [("n-1", False), ("n-2", True)]

    play(scene())


def _rather_attached() -> DeviceRequest:
    """A device that needs no attaching if there is one, which is what the scheduler then scores nodes by."""
    attached = DeviceSelector(CELDeviceSelector(f"device.attributes['{DRIVER}'].attached"))
    return DeviceRequest(
        name="gpu",
        first_available=(
            DeviceSubRequest(name="attached", device_class_name="gpu", selectors=(attached,)),
            DeviceSubRequest(name="any", device_class_name="gpu"),
        ),
    )


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
    """Many pods at once, before anything is offered, on nodes with room for one device; four want the same node."""
    async with Site(plane, setting(nodes=40, devices=40, slots=1, policy=LONG_HOLD), folder) as site:
        await site.template()
        wishes = ["n-01"] * 4 + [""] * (pods - 4)
        await asyncio.gather(
            *(site.pod(f"p{one}", template="gpu", node=node, seconds=1) for one, node in enumerate(wishes))
        )
        await site.until(lambda: site.phases("Succeeded", pods), within)
        assert any("n-01 can take 1 devices" in one.because for one in site.lines), "it was too easy"
        _within_limits(site, pods)
        before, there = site.attaches, site.attached
        await site.claim("wide", count=2)
        await site.pod("too-wide", "wide")
        await told(
            site, "wide", RESCHEDULE, "can take 1 devices, and 0 are taken by others; this claim wants 2"
        )
        _within_limits(site, before)
        assert site.attached == there, "what cannot be served takes no warm device away"


def _within_limits(site: Site, attaches: int) -> None:
    """See that no node had two devices, that nobody tried to give it two, and how many attaches there were."""
    assert most_at_once(site.movements) == 1
    assert not [one for one in site.lines if one.what.startswith("Blame")]
    assert site.attaches <= attaches


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
    await site.until(lambda: _has_account(site, name))


async def _has_account(site: Site, namespace: str) -> bool:
    """Whether kube-controller-manager has made the namespace's account, without which pods are refused."""
    return bool((await site.cluster.raw("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts"))["items"])


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


# --- claims left over


def test_a_claim_left_allocated_is_cleared_but_never_while_a_pod_waits(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, _with_others(), tmp_path) as site:
            device, other = await _offered(site, DRIVER), await _offered(site, OTHER)
            for name in ("forgotten", "waited-for"):
                await site.claim(name, request("gpu"), request("nic", "nic"))
            await site.pod("waiting", "waited-for", scheduler="nobody")
            await _allocate(site, "waited-for", {"gpu": device, "nic": other})
            entry = await _say(site, "waited-for", other, "Linked")
            await site.until(lambda: _ready_for(site, "waited-for", device))
            assert await _entry(site, "waited-for", OTHER) == entry

            entry = await _say(site, "waited-for", other, "Carrier")
            await site.clock.sleep(Seconds(3.0))
            assert await _entry(site, "waited-for", OTHER) == entry
            assert await _ready_for(site, "waited-for", device)

            await site.delete(Pod, "waiting")
            await site.until(lambda: _unallocated(site, "waited-for"))
            await told(site, "waited-for", "Cleared", "reserved for nobody")
            assert await _status(site, "waited-for") == {}

            await site.until(lambda: _idle(site, 1))
            await _allocate(site, "forgotten", {"gpu": device, "nic": other})
            await site.until(lambda: _unallocated(site, "forgotten"))
            await told(site, "forgotten", "Cleared", "no pod waits for it")

            await site.pod("late", "forgotten", node="n-1", seconds=1)
            await done(site, "late")
            assert site.attaches == 1

    play(scene())


def _with_others(*classes: Class) -> Setting:
    """Nodes of the fabric, each with a device of another driver's."""
    stage = setting(attach=2.0, policy=LONG_HOLD)
    local = (LocalDevices(OTHER, 1, {"kind": "fast"}),)
    mine = (Class("nic", f"device.driver == '{OTHER}'"), *classes)
    return msgspec.structs.replace(
        stage,
        nodes=(Nodes("n", 2, fabric=FABRIC, slots=4, local=local),),
        classes=(Class("gpu", f"device.driver == '{DRIVER}'"), *mine),
    )


async def _offered(site: Site, driver: str) -> DeviceID:
    """Wait until a driver offers a device; return its name."""
    found: list[DeviceID] = []

    async def looked() -> bool:
        for one in await site.all(ResourceSlice):
            if isinstance(one, ResourceSlice) and one.spec.driver == driver:
                found.extend(DeviceID(driver, one.spec.pool.name, entry.name) for entry in one.spec.devices)
        return bool(found)

    await site.until(looked)
    return min(found)


async def _allocate(site: Site, claim: str, devices: Mapping[str, DeviceID]) -> None:
    """Do what a scheduler does that dies before it reserves anything: allocate devices on the first node."""
    conditions = {"bindingConditions": [READY], "bindingFailureConditions": [RESCHEDULE, FAILED]}
    results = [
        {
            "request": name,
            "driver": one.driver,
            "pool": one.pool,
            "device": one.device,
            **(conditions if one.driver == DRIVER else {}),
        }
        for name, one in devices.items()
    ]
    here = {"key": "metadata.name", "operator": "In", "values": ["n-1"]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        "allocationTimestamp": rfc3339(site.clock.now()),
    }
    body = {"status": {"allocation": allocation}}
    key = Key("default", claim)
    await site.cluster.write(Merge(ResourceClaim, key, Version(""), body, status=True))


async def _say(site: Site, claim: str, device: DeviceID, word: str) -> Raw:
    """Let another driver say something of its device; return the entry as the server keeps it."""
    now = rfc3339(site.clock.now())
    condition = Condition("NetworkReady", status="True", reason=word, message="up", last_transition_time=now)
    entry = {
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "conditions": [msgspec.to_builtins(condition)],
        "data": {"vlan": 12},
        "networkData": {"interfaceName": "eth1", "ips": ["10.0.0.7/24"]},
    }
    body = {"status": {"devices": [entry]}}
    key = Key("default", claim)
    await site.cluster.write(Apply(ResourceClaim, key, Version(""), body, manager="nic-driver", status=True))
    return await _entry(site, claim, device.driver)


async def _status(site: Site, claim: str) -> Raw:
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{claim}"
    return dict((await site.cluster.raw("GET", path)).get("status") or {})


async def _entry(site: Site, claim: str, driver: str) -> Raw:
    """Return what a claim says of a driver's device, field for field."""
    entries = (await _status(site, claim)).get("devices") or []
    return next((one for one in entries if one["driver"] == driver), {})


async def _ready_for(site: Site, claim: str, device: DeviceID) -> bool:
    entry = await _entry(site, claim, device.driver)
    return any(one["type"] == READY and one["status"] == "True" for one in entry.get("conditions", ()))


async def _unallocated(site: Site, claim: str) -> bool:
    return "allocation" not in await _status(site, claim)


# --- others' classes


def test_other_peoples_classes_fare_with_our_devices_as_with_any_other_drivers(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    """A selector that has no answer for a device ends a pod's round: the scheduler's rule, whoever's device it is."""
    stage = _with_others(
        Class("anything", "true"), Class("unguarded", f"device.attributes['{OTHER}'].kind == 'fast'")
    )
    bare = Nodes("bare", fabric=FABRIC, slots=4)  # has nothing but what we offer
    odd = Nodes("odd", local=(LocalDevices("fpga.example.com", 1, {"size": "big"}),))  # has nothing of ours

    async def scene() -> None:
        nodes = (*stage.nodes, bare, odd)
        async with Site(fresh, msgspec.structs.replace(stage, nodes=nodes), tmp_path) as site:
            await _offered(site, DRIVER)
            await site.until(lambda: _has_room(site, "bare"))
            for name in ("here", "ours", "theirs"):
                await site.claim(name, request("any", "unguarded"))
            await site.pod("undisturbed", "here", node="n-1", seconds=1)
            await site.pod("beside-ours", "ours", node="bare")
            await site.pod("beside-theirs", "theirs", node="odd")
            await done(site, "undisturbed")
            assert await _why(site, "beside-ours") == await _why(site, "beside-theirs")
            assert "CEL runtime error: no such key: kind" in await _why(site, "beside-ours")
            assert site.attaches == 0

            await site.claim("any", request("any", "anything"))
            await site.claim("any-too", request("any", "anything"))
            await site.pod("served-by-them", "any", node="n-2", seconds=30)
            assert (await bound(site, "served-by-them")).spec.node_name == "n-2"
            assert site.attaches == 0, "what needs no attaching comes first"
            await site.pod("served-by-us", "any-too", node="n-2", seconds=1)
            await done(site, "served-by-us")
            assert site.attaches == 1

            await site.claim("guarded", request("gpu"), request("nic", "nic"))
            await site.pod("both", "guarded", seconds=1)
            await done(site, "both")
            assert site.attaches <= 2

    play(scene())


async def _has_room(site: Site, node: str) -> bool:
    found = await site.cluster.read(Node, named(node))
    return found.metadata.labels.get("cohdi.io/a100") == "true"


async def _why(site: Site, pod: str) -> str:
    """Wait until the scheduler has said why it cannot place a pod; return its words."""
    words: list[str] = []

    async def said() -> bool:
        words.extend(one.message for one in await site.events(pod) if one.reason == "FailedScheduling")
        return bool(words)

    await site.until(said)
    return words[0]

"""Every part of the controllers does all it does under its own account, and uses every right that it was given.

The API server's own audit log says which role allowed what. A right that no flow uses is one too many; what no role
allows is refused, and then the log says which right is missing and how to give it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.kube.permissions import ROLES, Account, Part, Role, manifests
from jackfield.model.claim import DeviceRequest, ExactDeviceRequest, ResourceClaim
from jackfield.model.composition import (
    ComposabilityRequest,
    ComposabilityRequestSpec,
    ScalarResource,
)
from jackfield.model.event import Event
from jackfield.model.fabric import Order, Traits
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key, ModelName, NodeName, OrderID, Seconds
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import Container, Pod, PodSpec, ResourceRequirements
from jackfield.model.policy import DRIVER, FAILED, READY, DeviceModel, NodeGroup, Policy
from jackfield.sim.chance import Fixed
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec, Refusals
from jackfield.testing.control_plane import ControlPlane, Settings
from real import accounts
from real.site import FABRIC, Replica, Site
from real.waiting import comes_true

VENDOR = "gpu.example.com"
PARTS = (Part.PUBLISHER, Part.SCALER, Part.OPERATOR, Part.AUTOSCALER)
NOT_LOGGED = {
    ("arbitrary-node:patch", "resourceclaims/driver"),
    ("patch", "resourceclaims/binding"),
    ("create", "customresourcedefinitions"),
}
"""What the API server asks its authorizer beside the request itself: it stands in no audit log, so it is taken away."""
TAKEN: dict[Part, tuple[tuple[str, str], ...]] = {
    Part.PUBLISHER: (("patch", "resourceslices"),),
    Part.SCALER: (("arbitrary-node:patch", "resourceclaims/driver"), ("patch", "resourceclaims/binding")),
    Part.OPERATOR: (("patch", "composabilityrequests/status"),),
    Part.AUTOSCALER: (("create", "nodes"),),
}
"""What is taken away in the end, to see what comes of it."""
OURS = DeviceModel(1, ModelName("A100"), "a100", dra_attributes={"productName": "A100"})
THEIRS = DeviceModel(2, ModelName("V100"), "v100", driver_name=VENDOR, dra_attributes={"productName": "V100"})
SCARCE = DeviceModel(3, ModelName("H100"), "h100")
POLICY = Policy(
    models=(OURS, THEIRS, SCARCE),
    node_groups=(NodeGroup("big", {"cpu": "64", "memory": "256Gi", "pods": "110"}, max_size=2),),
    hold_seconds=Seconds(1.0),
    inventory_seconds=Seconds(1.0),
    taint_seconds=Seconds(1.0),
)
STAGE = Setting(
    nodes=(Nodes("n", 2, fabric=FABRIC), Nodes("bad", 1, fabric=FABRIC)),
    fabrics=(
        FabricSpec(
            FABRIC,
            batches=(Batch(ModelName("A100"), 4), Batch(ModelName("V100"), 2), Batch(ModelName("H100"), 1)),
            traits=Traits(call_timeout=Seconds(5.0)),
            attach=Fixed(Seconds(0.2)),
            detach=Fixed(Seconds(0.2)),
            refusals=Refusals(nodes=(NodeName("bad"),)),
        ),
    ),
    classes=(
        Class("ours", f"device.driver == '{DRIVER}'"),
        Class("theirs", f"device.driver == '{VENDOR}'"),
    ),
    policy=POLICY,
    pod_start=Fixed(Seconds(0.1)),
    pod_stop=Fixed(Seconds(0.1)),
    real_api=True,
)
WITH_RULES = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
    audit=True,
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that serves DeviceTaintRules, with an audit log."""
    with ControlPlane(WITH_RULES) as started:
        yield started


class Company:
    """The four parts as processes of their own, each with its own account; hardware beside them."""

    def __init__(self, plane: ControlPlane, folder: Path, stage: Setting = STAGE) -> None:
        self.plane = plane
        self.site = Site(plane, stage, folder, replicas=0)
        self._folder = folder
        self._ways: dict[Part, Path] = {}
        self._made: dict[Part, tuple[Raw, ...]] = {}

    def employ(self) -> None:
        """Give every part its account and its roles."""
        for part in PARTS:
            self._made[part] = manifests(part, account(part), (DRIVER, VENDOR))
        accounts.put(self.plane, *accounts.SPACES, *(one for made in self._made.values() for one in made))
        for part in PARTS:
            self._ways[part] = accounts.way_in(self.plane, self._folder, account(part))

    async def start(self, part: Part) -> Replica:
        """Start a part once more."""
        words = [
            *("--policy", str(self._folder / "policy.yaml"), "--fabrics", str(self._folder / "fabrics.yaml")),
            *("--kubeconfig", str(self._ways[part]), "--log", "json", "--only", part.value),
        ]
        name = f"{part}-{len(self.site.replicas)}"
        replica = Replica(words, name, self._folder, identity="one")
        self.site.replicas.append(replica)
        await replica.start()
        return replica

    def take(self, part: Part) -> None:
        """Take from a part what is to be taken."""
        for one in self._made[part]:
            if one["kind"] == "ClusterRole":
                rules = [
                    {
                        **rule,
                        "verbs": [
                            verb for verb in rule["verbs"] if (verb, *rule["resources"]) not in TAKEN[part]
                        ],
                    }
                    for rule in one["rules"]
                ]
                accounts.put(self.plane, {**one, "rules": [rule for rule in rules if rule["verbs"]]})

    def restore(self) -> None:
        """Give everybody back what was taken."""
        accounts.put(self.plane, *(one for made in self._made.values() for one in made))

    async def told(self, *words: str) -> None:
        """Wait until a line of a log says all of this about something that went wrong."""
        await self.site.until(
            lambda: any(all(word in line.error for word in words) for line in self.site.lines), 40
        )


def account(part: Part) -> Account:
    return Account("jackfield", part.value)


def asks_for(device_class: str) -> DeviceRequest:
    return DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name=device_class))


# --- the flows


async def serve_and_return(site: Site) -> None:
    """Two devices of our driver and one of a vendor's: attached, used, given back, the vendor's tainted before."""
    for name, device_class in (("first", "ours"), ("second", "ours"), ("third", "theirs")):
        await site.claim(name, asks_for(device_class))
        await site.pod(name, claim=name, node="n-1")
        await site.until(partial(running, site, name), 90)
    for name in ("first", "second", "third"):
        await site.delete(Pod, name)


async def fail(site: Site) -> None:
    """A node on which nothing can be attached is blamed, and the attempt counted on the claim."""
    await site.claim("unlucky", asks_for("ours"))
    await site.pod("unlucky", claim="unlucky", node="bad")

    async def counted() -> bool:
        claim = await site.cluster.read(ResourceClaim, Key("default", "unlucky"))
        return claim.attempts[0] > 0

    await site.until(counted)
    await site.delete(Pod, "unlucky")


async def leave_over(site: Site) -> None:
    """A claim that is allocated, reserved for nobody and waited for by no pod is cleared."""
    await allocate(site, "left")
    await site.until(partial(cleared, site, "left"))


async def cleared(site: Site, name: str) -> bool:
    found = await site.cluster.read(ResourceClaim, Key("default", name))
    return found.status.allocation is None


async def allocate(site: Site, name: str, node: str = "n-2") -> None:
    """Have a claim that is allocated a device of ours, for no pod."""
    await site.claim(name, asks_for("ours"))
    device = {"request": "gpu", "driver": DRIVER, "pool": FABRIC, "device": await a_device(site)}
    result = {**device, "bindingConditions": [READY], "bindingFailureConditions": [FAILED]}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    given = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    path = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}/status"
    allocation = {"status": {"allocation": given}}
    await site.cluster.raw("PATCH", path, allocation, content_type="application/merge-patch+json")


async def a_device(site: Site) -> str:
    """A device of ours that nobody has."""
    (shown,) = site.hardware.managers.values()
    free = [one for one in shown.inventory().devices if one.model == "A100" and not one.node]
    return f"a100-{free[-1].id}"


async def ask_by_hand(site: Site) -> None:
    """Somebody's own request is kept, served, shown and ended; and one that asks for too much waits in words."""
    await ask(site, "mine", "A100", 1)
    await ask(site, "greedy", "H100", 2)

    async def running() -> bool:
        request = await site.cluster.read(ComposabilityRequest, Key("", "mine"))
        return request.status.state.value == "Running"

    await site.until(running)
    await site.delete(ComposabilityRequest, "mine", "")
    await site.until(lambda: explained(site, "greedy"))


async def ask(site: Site, name: str, model: str, size: int, node: str = "n-1") -> None:
    wish = ScalarResource("gpu", ModelName(model), size, target_node=NodeName(node))
    await site.cluster.create(
        ComposabilityRequest(metadata=ObjectMeta(name=name), spec=ComposabilityRequestSpec(wish))
    )


async def explained(site: Site, name: str) -> bool:
    return any(one.reason == "Composing" for one in await site.events(name))


async def go_astray(site: Site) -> None:
    """A device of ours that is in nobody's books is put there."""
    order = Order(OrderID("stray"), FABRIC, NodeName("n-2"), ModelName("V100"))
    (manager,) = site.hardware.managers.values()
    free = next(one for one in manager.inventory().devices if one.model == "V100" and not one.node)
    await site.fabrics[FABRIC].attach(msgspec.structs.replace(order, device=free.id))

    async def adopted() -> bool:
        return any(one.order == "stray" for one in await site.resources())

    await site.until(adopted)


async def need_a_node(site: Site) -> None:
    """A pod that fits no node has one added."""
    await ask_much(site, "large")

    async def added() -> bool:
        nodes = [one for one in await site.all(Node) if isinstance(one, Node)]
        return any(NODE_GROUP in one.metadata.labels for one in nodes)

    await site.until(added)


async def ask_much(site: Site, name: str) -> None:
    needs = ResourceRequirements(requests={"cpu": "40"})
    container = Container(name="main", image="none", resources=needs)
    await site.cluster.create(
        Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(containers=(container,)))
    )


async def say_it_again(company: Company, operator: Replica) -> None:
    """A process that is killed finds its Lease and its Events, and goes on with them."""
    await operator.kill()
    await company.start(Part.OPERATOR)

    async def counted() -> bool:
        found = [one for one in await company.site.all(Event) if isinstance(one, Event)]
        return any(one.involved_object.name == "greedy" and one.count > 1 for one in found)

    await company.site.until(counted, 90)


# --- and what they use


def test_every_part_uses_every_right_of_its_roles_and_a_missing_one_is_named_with_the_remedy(
    plane: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(scene(Company(plane, tmp_path)))
    for part in PARTS:
        assert comes_true(
            partial(uses_all, plane, ROLES[part][1], f"system:serviceaccount:jackfield:{part}")
        ), part
    assert comes_true(partial(uses_all, plane, Role.SHARED)), accounts.unused(plane, Role.SHARED)


def uses_all(plane: ControlPlane, role: Role, user: str = "") -> bool:
    return accounts.unused(plane, role, user) <= NOT_LOGGED


async def scene(company: Company) -> None:
    await company.plane.aside(company.employ)
    async with company.site as site:
        replicas = {part: await company.start(part) for part in PARTS}
        await site.until(lambda: all("leads" in str(one.lines) for one in replicas.values()))
        async with asyncio.TaskGroup() as group:
            for flow in (serve_and_return, fail, leave_over, go_astray, need_a_node):
                group.create_task(flow(site))
            await ask_by_hand(site)
            await say_it_again(company, replicas[Part.OPERATOR])
        await site.delete(ComposabilityRequest, "greedy", "")
        await site.until(lambda: not site.attached, 90)
        await site.until(site.none_left)
        unwanted = [line.error for line in site.lines if line.error.startswith("Refused")]
        assert unwanted == []
        await deprived(company)
        for one in site.replicas:
            with suppress(ProcessLookupError):
                await one.stop()


async def deprived(company: Company) -> None:
    """Take rights away, from each part its own; what needs them fails in words, and works when they are back."""
    site = company.site
    for part in TAKEN:
        await company.plane.aside(partial(company.take, part))
    await site.claim("unanswered", asks_for("ours"))
    await site.pod("unanswered", claim="unanswered", node="n-1")
    await allocate(site, "uncleared")
    # A model that nobody else asks for: a device that a claim was given as well changes no slice.
    await ask(site, "unshown", "H100", 1)
    await ask_much(site, "larger")
    for part, taken in TAKEN.items():
        remedy = (
            f"jackfield rbac --part {part} --namespace jackfield --service-account {part} | kubectl apply"
        )
        for verb, resource in taken:
            await company.told(f'cannot {verb} resource "{resource}"', remedy)
    await company.plane.aside(company.restore)
    await site.until(partial(running, site, "unanswered"), 90)
    await site.until(partial(cleared, site, "uncleared"), 90)


async def running(site: Site, name: str) -> bool:
    return await site.phase(name) == "Running"

"""Builders: small values for tables of tests, one word each, with defaults that fit together.

By default there is one fabric, `rack-a`, with the node `n1` and the model `A100`, whose devices are called `a100-1`,
`a100-2`, …; whatever a row is about is said by keyword. `world` puts values into the real store, which is the View
that decisions look at. Knows the model's fields. Must not know what is decided about them.
"""

from collections.abc import Iterable, Mapping
from typing import Unpack

from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import naming
from jackfield.model.claim import (
    ATTEMPTS,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from jackfield.model.composition import (
    CLAIM,
    DEVICE,
    DEVICES,
    FOREIGN,
    HOLDER,
    LAST_USED,
    MANAGED_BY,
    ORDER,
    SCALER,
    SENT,
    AllocationPolicy,
    ComposabilityRequest,
    ComposabilityRequestSpec,
    ComposabilityRequestStatus,
    ComposableResource,
    ComposableResourceSpec,
    ComposableResourceStatus,
    Record,
    ResourceState,
    ScalarResource,
    Wanted,
    device_id,
    spelt,
)
from jackfield.model.device import Device, DeviceAttribute
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.host import Facts
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import (
    Condition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Object,
)
from jackfield.model.names import (
    NEVER,
    DeviceID,
    FabricName,
    Key,
    ModelName,
    NodeName,
    PhysicalID,
    Seconds,
    Uid,
    Version,
    rfc3339,
)
from jackfield.model.node import FAILURES, HEARTBEATS, Node, NodeCondition, NodeSpec, NodeStatus
from jackfield.model.pod import (
    Container,
    Pod,
    PodCondition,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, DeviceModel, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.testing.overrides import NOW as NOW  # noqa: PLC0414 - part of the words of a table
from jackfield.testing.overrides import (
    ClaimMeta,
    Meta,
    NodeMeta,
    PodMeta,
    RequestMeta,
    ResourceMeta,
    metadata,
    point,
)

FABRIC = FabricName("rack-a")
MODEL = ModelName("A100")
NODE = NodeName("n1")
NAMESPACE = "default"


# --- the policy


def model(name: str, index: int = 0, *, driver: str = DRIVER, spares: int = 0) -> DeviceModel:
    """Return a model of device; its devices are called by its name in small letters."""
    return DeviceModel(index, ModelName(name), name.lower(), driver, spares=spares)


def policy(*models: str | DeviceModel, base: Policy = Policy()) -> Policy:
    """Return a policy with these models, numbered in their order; all else is as in `base`."""
    listed = models or (MODEL,)
    return replace(
        base,
        models=tuple(
            model(one, index) if isinstance(one, str) else replace(one, index=index)
            for index, one in enumerate(listed)
        ),
    )


def device(name: str, *, fabric: str = FABRIC, driver: str = DRIVER) -> DeviceID:
    """Return a device's DRA name: one of ours by its last part, any by `driver/pool/device`."""
    return device_id(name) or DeviceID(driver, fabric, name)


# --- Kubernetes' objects


def node(
    name: str = NODE,
    *,
    fabric: str = "",
    room: Iterable[str] = (),
    cordoned: bool = False,
    **meta: Unpack[NodeMeta],
) -> Node:
    """Return a node that is ready, with the labels that say its fabric and for which models it has room."""
    labels = {f"cohdi.io/{one.lower()}": "true" for one in room}
    labels |= {"cohdi.io/fabric": fabric} if fabric else {}
    said = meta.get("ready", "True")
    failed = "\n".join(
        f"{device(one)}={rfc3339(Seconds(at))}" for one, at in meta.get("failures", {}).items()
    )
    return Node(
        metadata=metadata(name, meta, labels=labels, annotations={FAILURES: failed}),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(
            allocatable=meta.get("has", {}),
            conditions=(NodeCondition("Ready", said),) if said else (),
        ),
    )


def heartbeat(on: str = NODE, at: float = NOW, **meta: Unpack[Meta]) -> Lease:
    """Return the last sign of life of a node's plugin."""
    return Lease(
        metadata=metadata(on, meta, HEARTBEATS), spec=LeaseSpec(holder_identity=on, renew_time=point(at))
    )


def pod(name: str, *claims: str, on: str = "", phase: str = "Pending", **meta: Unpack[PodMeta]) -> Pod:
    """Return a pod that uses claims by name."""
    uses = tuple(PodResourceClaim(one, resource_claim_name=one) for one in claims)
    return Pod(
        metadata=metadata(name, meta, NAMESPACE),
        spec=PodSpec(
            node_name=NodeName(on),
            containers=(Container("main", "app", ResourceRequirements(meta.get("needs", {}))),),
            resource_claims=uses,
        ),
        status=PodStatus(
            phase=phase,
            conditions=(PodCondition("PodScheduled", "False", "Unschedulable"),)
            * meta.get("homeless", False),
        ),
    )


def claim(
    name: str,
    *,
    devices: Iterable[str | DeviceID] = ("a100-1",),
    on: str = NODE,
    ready: bool = False,
    **meta: Unpack[ClaimMeta],
) -> ResourceClaim:
    """Return a claim with these devices on this node; without devices it is not allocated."""
    given = tuple(device(one) if isinstance(one, str) else one for one in devices)
    told = READY if ready else meta.get("told", "")
    attempts = {ATTEMPTS: meta["attempts"]} if "attempts" in meta else {}
    mode = meta.get("mode", "ExactCount")
    asked = DeviceRequest("gpu", ExactDeviceRequest("gpu", allocation_mode=mode, count=max(1, len(given))))
    return ResourceClaim(
        metadata=metadata(name, meta, NAMESPACE, annotations=attempts),
        spec=ResourceClaimSpec(DeviceClaim((asked,))),
        status=ResourceClaimStatus(
            allocation=_allocation(given, on, meta) if given else None,
            reserved_for=tuple(
                ResourceClaimConsumerReference("pods", one, Uid(f"pods-{one}"))
                for one in meta.get("reserved", ())
            ),
            devices=tuple(_told(one, told) for one in given) if told else (),
        ),
    )


# --- CoHDI's objects


def resource(
    name: str | DeviceID = "a100-1",
    *,
    on: str = NODE,
    state: ResourceState = ResourceState.ONLINE,
    record: ResourceClaim | Record | None = None,
    **meta: Unpack[ResourceMeta],
) -> ComposableResource:
    """Return the resource of a device, named as ours are; a claim given as `record` is recorded as it is."""
    of = device(name) if isinstance(name, str) else name
    kind = model(meta.get("model", MODEL))
    ours = naming.fabric_of(of, policy(replace(kind, driver_name=of.driver))) or FABRIC
    record = _record(record) if isinstance(record, ResourceClaim) else record
    notes = {
        DEVICE: str(of),
        CLAIM: str(record or ""),
        HOLDER: meta.get("holder", ""),
        LAST_USED: point(meta["used"]) if "used" in meta else "",
        SENT: meta.get("sent", ""),
        FOREIGN: meta.get("foreign", ""),
        ORDER: meta.get("order", ""),
    }
    owner = meta.get("request", naming.request(NodeName(on), kind))
    return ComposableResource(
        metadata=metadata(naming.resource(ours, of), meta, labels={MANAGED_BY: owner}, annotations=notes),
        spec=ComposableResourceSpec("gpu", kind.cdi_model_name, NodeName(on), meta.get("force", False)),
        status=ComposableResourceStatus(
            state,
            error=meta.get("error", ""),
            device_id=meta.get("uuid", ""),
            cdi_device_id=PhysicalID(meta.get("physical", "")),
            conditions=meta.get("conditions", ()),
        ),
    )


def request(
    wanted: Mapping[str, str] | int,
    *,
    on: str = NODE,
    of: str = MODEL,
    name: str = "",
    **meta: Unpack[RequestMeta],
) -> ComposabilityRequest:
    """Return the scaler's request for devices, each with its claim; or, given a number, a user's for so many."""
    size = wanted if isinstance(wanted, int) else len(wanted)
    wish = ScalarResource(
        type=meta.get("type", "gpu"),
        model=ModelName(of),
        size=size,
        force_detach=meta.get("force", False),
        allocation_policy=meta.get("by", AllocationPolicy.SAMENODE),
        target_node=NodeName(on),
        other_spec=meta.get("other"),
    )
    labels, notes = {}, {}
    if not isinstance(wanted, int):
        listed = (Wanted(device(one), Key(NAMESPACE if by else "", by)) for one, by in wanted.items())
        labels, notes = {SCALER: "true"}, {DEVICES: spelt(tuple(sorted(listed)))}
    name = name or (naming.request(NodeName(on), model(of)) if labels else "by-hand")
    return ComposabilityRequest(
        metadata=metadata(name, meta, labels=labels, annotations=notes),
        spec=ComposabilityRequestSpec(wish),
        status=meta.get("status", ComposabilityRequestStatus()),
    )


# --- slices


def vendor_slice(
    uuid: str, *, on: str = NODE, name: str = "gpu-0", driver: str = "gpu.example.com", **meta: Unpack[Meta]
) -> ResourceSlice:
    """Return the slice in which another driver publishes a device of its node, whose name is DRIVER/NODE/NAME."""
    entry = Device(name, attributes={"uuid": DeviceAttribute(string=uuid)} if uuid else {})
    spec = ResourceSliceSpec(driver, ResourcePool(on, 1), node_name=NodeName(on), devices=(entry,))
    return ResourceSlice(metadata=metadata(f"{on}-{driver}-{name}", meta), spec=spec)


# --- the fabric


def inventory(
    fabric: str = FABRIC,
    *,
    models: Mapping[str, int] = {MODEL: 2},
    machines: Iterable[str | Machine] = (NODE,),
    traits: Traits = Traits(),
    attached: Mapping[str, str] = {},
) -> Inventory:
    """Return what a manager shows: devices 1, 2, … over all models, some attached (id to node), or free counts.

    Where the manager chooses, `models` counts what is free, and what is attached is besides, of the first model.
    """
    nodes = tuple(Machine(NodeName(one)) if isinstance(one, str) else one for one in machines)
    kinds = [name for name, count in models.items() for _ in range(count)]
    numbered = {str(place): name for place, name in enumerate(kinds, start=1)}
    if traits.chooses_device:
        numbered = dict.fromkeys(attached, next(iter(models), MODEL))
    shown = tuple(
        FabricDevice(PhysicalID(one), ModelName(of), node=NodeName(attached.get(one, "")))
        for one, of in numbered.items()
    )
    free = {ModelName(name): count for name, count in models.items()} if traits.chooses_device else {}
    return Inventory(FabricName(fabric), traits, nodes, shown, free)


def showing(inventory: Inventory, *devices: FabricDevice) -> Inventory:
    """Return the inventory with these devices in place of those of the same id, or besides."""
    given = {one.id: one for one in devices}
    old = {one.id: one for one in inventory.devices}
    return replace(inventory, devices=tuple((old | given).values()))


# --- the view


def world(
    *objects: Object,
    inventories: Iterable[Inventory] = (),
    policy: Policy = policy(),
    facts: Mapping[str, Facts] = {},
    looked: float = NEVER,
) -> Store:
    """Return the view of a world with these things in it, told in this order.

    An object without a uid or a resourceVersion is given one, versions rising in the order of the objects. Where it
    is said when somebody `looked`, the managers were asked once more then, and showed the same.
    """
    store = Store(policy)
    for one in inventories:
        store.ask(one.fabric, NOW)
        store.see(one)
    for count, each in enumerate(objects, start=1):
        store.put(_numbered(each, count))
    for name, seen in facts.items():
        store.sense(NodeName(name), seen)
    for one in inventories if looked != NEVER else ():
        store.ask(one.fabric, Seconds(looked))
        store.see(one, at=Seconds(looked))
    return store


# --- inside


def _allocation(given: tuple[DeviceID, ...], on: str, meta: ClaimMeta) -> AllocationResult:
    results = tuple(
        DeviceRequestAllocationResult(
            "gpu",
            *(one.driver, one.pool, one.device),
            admin_access=meta.get("admin", False),
            binding_conditions=meta.get("waits", (READY,)),
            binding_failure_conditions=(RESCHEDULE, FAILED) if meta.get("waits", (READY,)) else (),
        )
        for one in given
    )
    term = NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", (on,)),))
    return AllocationResult(
        DeviceAllocationResult(results),
        node_selector=NodeSelector((term,)) if on else None,
        allocation_timestamp=point(meta.get("allocated", NOW - 10)),
    )


def _told(of: DeviceID, kind: str) -> AllocatedDeviceStatus:
    return AllocatedDeviceStatus(
        of.driver, of.pool, of.device, conditions=(Condition(kind, "True", kind, "", point(NOW)),)
    )


def _record(claim: ResourceClaim) -> Record:
    return Record(claim.key, claim.uid, claim.metadata.resource_version)


def _numbered(one: Object, count: int) -> Object:
    meta = one.metadata
    meta = replace(
        meta,
        uid=meta.uid or Uid(f"uid-{count}"),
        resource_version=meta.resource_version or Version(str(count)),
    )
    return replace(one, metadata=meta)

"""What the tables of a resource's next step are made of."""

from typing import NamedTuple

from jackfield.controllers.store import Store
from jackfield.core import attach
from jackfield.model.composition import (
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.device import DeviceTaint
from jackfield.model.fabric import FabricDevice, Machine
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import (
    NEVER,
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    rfc3339,
)
from jackfield.model.policy import Policy
from jackfield.model.taint import DeviceTaintRule, DeviceTaintRuleSpec
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

CR = "a100-1.rack-a"
SEEN = (Condition(VISIBLE, "True"),)
LET_GO = (Condition(RELEASED, "True"),)
VENDOR = "gpu.example.com"
HANDED = b.device(f"{VENDOR}/a100-fabricrack-a/a100-1")
DEADLINE = Seconds(b.NOW + 200)
"""100 s ago the resource was created, and 300 s are allowed."""
POLICY = b.policy()
OLD = b.NOW - 300
GONE = b.NOW - POLICY.missing_seconds
"""Whoever asked then, and was not shown a device, takes it to be gone now."""


def vendors() -> Policy:
    return b.policy(b.model("A100", driver=VENDOR))


def attaching(**meta: object) -> ComposableResource:
    return b.resource(state=ResourceState.ATTACHING, **meta)  # type: ignore[arg-type] # passed on


def detaching(**meta: object) -> ComposableResource:
    return b.resource(state=ResourceState.DETACHING, physical="1", **meta)  # type: ignore[arg-type] # passed on


class Row(NamedTuple):
    """What there is, and what is to come of it."""

    there: tuple[Object, ...]
    do: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()
    says: str = ""
    again_at: Seconds = NEVER
    policy: Policy = POLICY
    shown: tuple[str, ...] = ("1", "2")
    """The devices in the inventory; none if the manager is silent."""
    attached: tuple[FabricDevice, ...] = ()
    slots: int = 8
    now: Seconds = b.NOW
    looked: float = NEVER
    """When the manager was asked once more, and showed the same."""


NODE = b.node()


def tainted(ago: float, name: str = "a100-1.rack-a-taint", *, ours: float | None = None) -> DeviceTaintRule:
    """The rule that keeps the vendor's device from being given away, so old by the API's clock and by ours."""
    written = {"jackfield.dev/tainted": rfc3339(Seconds(b.NOW - (ago if ours is None else ours)))}
    at = rfc3339(Seconds(b.NOW - ago))
    meta = ObjectMeta(name=name, creation_timestamp=at, annotations=written)
    return DeviceTaintRule(
        metadata=meta, spec=DeviceTaintRuleSpec(DeviceTaint("k8s.io/device-uuid", "GPU-7", "NoSchedule"))
    )


TAINTED, FRESH = tainted(10), tainted(9)
AGAIN = Seconds(b.NOW + 1)


STAYS = Row((), wait=("Released",), says="claim default/c to give it up", policy=vendors())
"""A vendor's device that may be in use."""
LEAVES = Row(
    (),
    do=("Detach 1 at n1 resource/a100-1.rack-a",),
    wait=("Detaching",),
    again_at=AGAIN,
    policy=vendors(),
)
"""One that is not."""


def fabric_device(number: str, *, order: str = "", model: str = "A100", ours: bool = True) -> FabricDevice:
    return FabricDevice(
        PhysicalID(number), ModelName(model), node=NodeName("n1"), order=OrderID(order), ours=ours
    )


def view(row: Row) -> Store:
    devices = tuple(FabricDevice(PhysicalID(one), ModelName("A100")) for one in row.shown)
    shown = b.inventory(models={}, machines=(Machine(NodeName("n1"), row.slots),))
    shown = b.showing(shown, *devices, *row.attached)
    return b.world(
        *row.there, inventories=(shown,) if row.shown else (), policy=row.policy, looked=row.looked
    )


def check(row: Row) -> None:
    """See that the row comes out as it says."""
    plan = attach.decide(view(row), CR, row.policy, row.now)
    assert steps(plan) == row.do
    assert reasons(plan) == row.wait
    assert row.says in words(plan)
    assert plan.again_at == row.again_at

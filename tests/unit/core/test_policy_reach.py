"""What an operator may choose makes a difference beyond the claims of a node too; and no setting is left out here.

The choices that one claim or one idle device feels are in `test_policy_settings.py`, the runner's own pace is in
`unit/controllers/test_policy_pace.py`.
"""

import pytest
from msgspec.structs import replace

from jackfield.core import attach, autoscale, evict, hotplug, local, quota, room
from jackfield.core.sight import sights
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import FabricDevice
from jackfield.model.host import Facts, HostDevice, Identity, Seen
from jackfield.model.names import ModelName, PhysicalID, Seconds
from jackfield.model.policy import Foreign, LocalDevices, NamespaceRule, NodeGroup, Policy
from jackfield.testing import builders as b
from unit.controllers.test_policy_pace import PACE
from unit.core.attaching import CR, HANDED, tainted, vendors
from unit.core.plans import reasons, steps
from unit.core.test_policy_settings import SETTINGS, Question

CARD = HostDevice("0000:17:00.0", "10de", "20b0", "030200", uuid="GPU-1111-2", serial="77777-1")


def labels(chosen: Policy) -> tuple[str, ...]:
    """Which labels a node gets."""
    view = b.world(b.node(), b.heartbeat(), inventories=[b.inventory()], policy=chosen)
    (label,) = room.decide(view, b.NODE, chosen, b.NOW).actions
    return tuple(sorted(label.labels))  # type: ignore[union-attr] # there is no other action


def looks_for_a_manager(chosen: Policy) -> float:
    """In how many seconds a node is looked at again whose manager has shown nothing yet."""
    view = b.world(b.node(labels={chosen.fabric_label(): b.FABRIC}), policy=chosen)
    return room.decide(view, b.NODE, chosen, b.NOW).again_at - b.NOW


def leaves(ago: float | None) -> Question:
    """What a vendor's device that is detached waits for; it was tainted so long ago, or never."""

    def asked(chosen: Policy) -> tuple[str, ...]:
        theirs = replace(chosen, models=vendors().models)
        there = b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")
        rules = () if ago is None else (tainted(ago),)
        view = b.world(
            b.node(), b.vendor_slice("GPU-7"), *rules, there, inventories=[b.inventory()], policy=theirs
        )
        plan = attach.decide(view, CR, theirs, b.NOW)
        return (*(one.partition(" ")[0] for one in steps(plan)), *reasons(plan))

    return asked


def recognised(chosen: Policy) -> tuple[str, ...]:
    """What a node does that sees a device by the serial number that the manager says."""
    there = b.resource(state=ResourceState.ATTACHING, physical="block-7", uuid="77777-1")
    seen = Seen(PhysicalID("GPU-3"), "GPU-3", "0000:11:00.0", "GPU-3", "77777-1")
    view = b.world(b.node(), there, facts={b.NODE: Facts((seen,))}, policy=chosen)
    return tuple(one.partition(" ")[0] for one in steps(hotplug.decide(view, CR, chosen, b.NOW)))


def published(chosen: Policy) -> tuple[str, ...]:
    """Which of its own devices a node publishes."""
    return tuple(local.offered(zip(sights((CARD,)), (CARD,), strict=True), (), chosen))


def stranger(chosen: Policy) -> bool:
    """Whether a device may go that somebody else attached."""
    theirs = FabricDevice(PhysicalID("9"), b.MODEL, node=b.NODE, ours=False)
    view = b.world(b.node(), inventories=[b.showing(b.inventory(), theirs)], policy=chosen)
    return evict.named(view, b.FABRIC, theirs, chosen)


def grows(chosen: Policy) -> tuple[str, ...]:
    """What is done for a pod that fits no node."""
    view = b.world(b.pod("p", homeless=True, needs={"cpu": "2"}), policy=chosen)
    return steps(autoscale.decide(view, "big", chosen, b.NOW))


def first(chosen: Policy) -> str:
    """Which of two claims comes first: the older one, or the more important one."""
    old, new = b.claim("old", allocated=b.NOW - 9), b.claim("new", allocated=b.NOW)
    new = replace(new, metadata=replace(new.metadata, namespace="important"))
    return min((old, new), key=lambda one: quota.rank(one, chosen)).metadata.name


GROUP = NodeGroup("big", {"cpu": "4", "memory": "8Gi", "pods": "10"})
REACH: dict[str, tuple[Policy, Question, object, object]] = {
    "labelPrefix": (
        Policy(label_prefix="example.com"),
        labels,
        ("cohdi.io/a100", "cohdi.io/fabric"),
        ("example.com/a100", "example.com/fabric"),
    ),
    "inventorySeconds": (Policy(inventory_seconds=Seconds(7.0)), looks_for_a_manager, 30.0, 7.0),
    "taintSeconds": (Policy(taint_seconds=Seconds(60.0)), leaves(30), ("Detach", "Detaching"), ("Tainted",)),
    "taintRules": (Policy(taint_rules=False), leaves(None), ("PutTaint",), ("Detach", "Detaching")),
    "identities": (Policy(identities=(Identity.ADDRESS,)), recognised, ("MarkVisible",), ("Rescan",)),
    "localDevices": (
        Policy(local_devices=(LocalDevices("gpu", vendor="10de"),)),
        published,
        (),
        ("gpu-0000-17-00-0",),
    ),
    "detachForeign": (Policy(detach_foreign=(Foreign(PhysicalID("9")),)), stranger, False, True),
    "nodeGroups": (Policy(node_groups=(GROUP,)), grows, (), ("AddNode node/big-1",)),
    "namespaces: a priority": (
        Policy(namespaces=(NamespaceRule("important", priority=1),)),
        first,
        "old",
        "new",
    ),
}


@pytest.mark.parametrize(("chosen", "ask", "before", "after"), REACH.values(), ids=REACH)
def test_a_setting_reaches_far(chosen: Policy, ask: Question, before: object, after: object) -> None:
    assert (ask(b.policy()), ask(b.policy(base=chosen))) == (before, after)


def test_a_model_that_is_not_listed_is_left_alone() -> None:
    shown = b.inventory(models={"A100": 1, "H100": 1})
    for listed, offered in ((("A100",), False), (("A100", "H100"), True)):
        chosen = b.policy(*listed)
        view = b.world(b.node(), b.heartbeat(), inventories=[shown], policy=chosen)
        assert (chosen.model(ModelName("H100")) is not None) is offered
        (label,) = room.decide(view, b.NODE, chosen, b.NOW).actions
        assert ("cohdi.io/h100" in label.labels) is offered  # type: ignore[union-attr] # there is no other action


def test_every_setting_was_seen_to_make_a_difference() -> None:
    seen = {name.partition(":")[0] for name in (*SETTINGS, *REACH, *PACE)}
    assert set(Policy.__struct_encode_fields__) - seen == {"models"}, (
        "which the tests beside the tables are about"
    )
    assert seen <= set(Policy.__struct_encode_fields__)

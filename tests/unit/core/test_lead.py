"""Who leads which fabric, and which fabric a key belongs to."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.core import lead
from jackfield.core.lead import NO_FABRIC, Replica
from jackfield.model.composition import ComposableResource
from jackfield.model.fabric import FabricDevice
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import FabricName, Key, ModelName, NodeName, PhysicalID, Seconds
from jackfield.model.plan import SliceKey
from jackfield.model.policy import DRIVER
from jackfield.testing import builders as b

NAMES = ("one", "three", "two")
FABRICS = tuple(FabricName(f"rack-{number}") for number in range(60))


# --- who lives


@pytest.mark.parametrize(
    ("untils", "living"),
    [
        ({}, ()),
        ({"one": 11.0}, ("one",)),
        ({"one": 10.0}, ()),
        ({"two": 11.0, "one": 12.0}, ("one", "two")),
        ({"two": 11.0, "one": 9.0}, ("two",)),
    ],
)
def test_those_live_whose_lease_has_not_run_out_and_are_named_in_order(
    untils: dict[str, float], living: tuple[str, ...]
) -> None:
    replicas = tuple(Replica(name, Seconds(until)) for name, until in untils.items())
    assert lead.living(replicas, Seconds(10.0)) == living


# --- who leads


def test_among_nobody_nobody_leads() -> None:
    assert lead.leader(FABRICS[0], ()) == ""


def test_whoever_is_alone_leads_everything() -> None:
    assert {lead.leader(fabric, ("one",)) for fabric in (NO_FABRIC, *FABRICS)} == {"one"}


def test_every_replica_gets_a_share() -> None:
    shares = [sum(lead.leader(fabric, NAMES) == name for fabric in FABRICS) for name in NAMES]
    assert sum(shares) == len(FABRICS)
    assert min(shares) >= len(FABRICS) // 6


replicas = st.lists(st.text("abc-", min_size=1, max_size=4), min_size=2, max_size=6, unique=True)


@given(replicas, st.data())
def test_one_who_leaves_moves_only_what_it_led(names: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(names))
    left = tuple(sorted(name for name in names if name != gone))
    for fabric in FABRICS[:10]:
        before, after = lead.leader(fabric, tuple(sorted(names))), lead.leader(fabric, left)
        assert before in {after, gone}


@given(replicas)
def test_the_order_in_which_replicas_are_named_does_not_matter(names: list[str]) -> None:
    for fabric in FABRICS[:10]:
        assert lead.leader(fabric, tuple(names)) == lead.leader(fabric, tuple(reversed(names)))


# --- whose fabric a key is


POLICY = b.policy(b.model("A100"), b.model("H100", 1, driver="gpu.example.com"))
OURS = b.device("a100-1")
VENDORS = b.device("h100-1", fabric="h100-fabricrack-b", driver="gpu.example.com")
FOREIGN = b.device("gpu-0", fabric="n1", driver="gpu.example.com")
UNNAMED = ComposableResource(metadata=ObjectMeta(name="x"))

ROWS: dict[str, tuple[Callable[..., FabricName], object, tuple[Object, ...], str]] = {
    "a slice says it itself": (
        lead.of_slice,
        SliceKey(FabricName("rack-a"), DRIVER, "rack-a", 0),
        (),
        "rack-a",
    ),
    "a machine of a fabric": (lead.of_node, b.NODE, (), "rack-a"),
    "a node of no fabric": (lead.of_node, NodeName("elsewhere"), (), ""),
    "a node that says nothing of a fabric": (lead.of_node, NodeName("new"), (b.node("new"),), ""),
    "a node that another replica was shown before us": (
        lead.of_node,
        NodeName("new"),
        (b.node("new", fabric="rack-b"),),
        "rack-b",
    ),
    "what its manager shows counts before what a node says": (
        lead.of_node,
        b.NODE,
        (b.node(fabric="rack-b"),),
        "rack-a",
    ),
    "a node that is gone, and on which a device stood": (
        lead.of_node,
        NodeName("gone"),
        (b.resource(on="gone"),),
        "rack-a",
    ),
    "a node that is gone, and on which a claim was given a device": (
        lead.of_node,
        NodeName("gone"),
        (b.claim("c", on="gone"),),
        "rack-a",
    ),
    "a node that is gone, and for which a device is wanted": (
        lead.of_node,
        NodeName("gone"),
        (b.request({"a100-1": "c"}, on="gone"),),
        "rack-a",
    ),
    "a machine that is shown no more, but a device on it": (lead.of_node, NodeName("lost"), (), "rack-a"),
    "a node that is gone, with what is nobody's": (
        lead.of_node,
        NodeName("gone"),
        (b.resource(FOREIGN, on="gone"),),
        "",
    ),
    "a claim with a device of ours": (lead.of_claim, Key("default", "c"), (b.claim("c"),), "rack-a"),
    "a claim with a vendor's device from a fabric": (
        lead.of_claim,
        Key("default", "c"),
        (b.claim("c", devices=(str(VENDORS),)),),
        "rack-b",
    ),
    "the first device that has a fabric counts": (
        lead.of_claim,
        Key("default", "c"),
        (b.claim("c", devices=(str(FOREIGN), str(VENDORS), str(OURS))),),
        "rack-b",
    ),
    "a claim with somebody else's device": (
        lead.of_claim,
        Key("default", "c"),
        (b.claim("c", devices=(str(FOREIGN),)),),
        "",
    ),
    "a claim without devices": (lead.of_claim, Key("default", "c"), (b.claim("c", devices=()),), ""),
    "no claim": (lead.of_claim, Key("default", "c"), (), ""),
    "a request for a node": (lead.of_request, "r", (b.request(1, name="r"),), "rack-a"),
    "a request that names no node": (lead.of_request, "r", (b.request(1, name="r", on=""),), ""),
    "what a request left on a node": (lead.of_request, "r", (b.resource(request="r"),), "rack-a"),
    "a request that left nothing": (lead.of_request, "r", (), ""),
    "a resource of ours": (lead.of_resource, "a100-1.rack-a", (b.resource(),), "rack-a"),
    "somebody else's resource": (lead.of_resource, "x", (UNNAMED,), ""),
    "a resource of a foreign driver": (lead.of_resource, "gpu-0.rack-a", (b.resource(FOREIGN),), ""),
    "no resource": (lead.of_resource, "a100-1.rack-a", (), ""),
    "what concerns the whole cluster": (lead.of_none, "anything", (b.claim("c"),), ""),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_key_belongs_to_one_fabric(row: str) -> None:
    of, key, objects, fabric = ROWS[row]
    stage = b.showing(b.inventory(), FabricDevice(PhysicalID("9"), ModelName("A100"), node=NodeName("lost")))
    assert of(b.world(*objects, inventories=(stage,), policy=POLICY), POLICY, key) == fabric

"""Where the devices of a request go that names none, which go first, and what is said when there is no place."""

from typing import NamedTuple

import pytest

from jackfield.core import placement
from jackfield.model.composition import (
    DELETE_DEVICE,
    AllocationPolicy,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    OtherSpec,
    Record,
    RequestState,
    ResourceState,
)
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, ModelName, NodeName, PhysicalID, Seconds, Uid, Version
from jackfield.model.node import OPT_OUT, Node
from jackfield.model.policy import DeviceModel, Policy
from jackfield.testing import builders as b

SAME, DIFFERENT, ROUND = (
    AllocationPolicy.SAMENODE,
    AllocationPolicy.DIFFERENTNODE,
    AllocationPolicy.ROUNDROBIN,
)
NODES = ("n1", "n2", "n3")
A100 = b.policy("A100")
SLOTS = Traits(chooses_device=True)


def nodes(*names: str) -> tuple[Object, ...]:
    return tuple(made for name in names for made in (b.node(name), b.heartbeat(name)))


def machines(**slots: int) -> tuple[Machine, ...]:
    return tuple(Machine(NodeName(node), count) for node, count in slots.items())


def wish(size: int = 1, on: str = "", **meta: object) -> ComposabilityRequest:
    return b.request(size, on=on, name="wish", **meta)  # type: ignore[arg-type] # passed on


def child(number: int, on: str, **meta: object) -> ComposableResource:
    return b.resource(f"a100-{number}", on=on, request="wish", **meta)  # type: ignore[arg-type] # passed on


def other(name: str, on: str, **meta: object) -> ComposableResource:
    return b.resource(name, on=on, request="another", **meta)  # type: ignore[arg-type] # passed on


class Row(NamedTuple):
    """A request and its surroundings, and where its next devices go."""

    request: ComposabilityRequest
    places: tuple[str, ...]
    more: int = 1
    there: tuple[Object, ...] = nodes(*NODES)
    children: tuple[ComposableResource, ...] = ()
    inventories: tuple[Inventory, ...] = (b.inventory(models={"A100": 9}, machines=NODES),)
    says: str = ""
    policy: Policy = A100


def with_foreign(node: str, count: int) -> Inventory:
    foreign = (
        FabricDevice(PhysicalID(f"f{number}"), b.MODEL, node=NodeName(node), ours=False)
        for number in range(count)
    )
    return b.showing(b.inventory(models={"A100": 9}, machines=machines(n1=2, n2=2)), *foreign)


RACKS = (
    b.inventory(models={"A100": 1}, machines=("n1",)),
    b.inventory("rack-b", models={"A100": 1}, machines=("n2",)),
)
MANY = b.policy("A100", DeviceModel(1, ModelName("T4"), "t4", cannot_coexist_with=(0,)))
FEW = b.policy(base=Policy(per_node_max=1))

PLACES = {
    # --- samenode
    "one node for all": Row(wish(), ("a100-1@n1", "a100-2@n1", "a100-3@n1"), 3),
    "the node of those that are there": Row(wish(), ("a100-2@n2",), children=(child(1, "n2"),)),
    "the emptiest node": Row(wish(), ("a100-2@n2",), there=(*nodes(*NODES), other("a100-1", "n1"))),
    "a node that takes all of them before an emptier one": Row(
        wish(),
        ("a100-2@n2", "a100-3@n2"),
        2,
        (*nodes("n1", "n2"), other("a100-1", "n2")),
        inventories=(b.inventory(models={"A100": 9}, machines=machines(n1=1, n2=3)),),
    ),
    "the node that takes the most of them": Row(
        wish(),
        ("a100-1@n2", "a100-2@n2"),
        3,
        inventories=(b.inventory(models={"A100": 9}, machines=machines(n1=1, n2=2)),),
        says="1 more of A100 to be free, on a node with room",
    ),
    "the fabric that has all of them": Row(
        wish(),
        ("a100-1@n2", "a100-2@n2"),
        2,
        inventories=(RACKS[0], b.inventory("rack-b", models={"A100": 2}, machines=("n2",))),
    ),
    "some of eight": Row(
        wish(),
        ("a100-1@n1", "a100-2@n1"),
        8,
        inventories=(b.inventory(models={"A100": 2}, machines=NODES),),
        says="6 more of A100 to be free",
    ),
    # --- differentnode
    "one for each": Row(wish(by=DIFFERENT), ("a100-1@n1", "a100-2@n2", "a100-3@n3"), 3),
    "one for each of the others": Row(
        wish(by=DIFFERENT), ("a100-2@n1", "a100-3@n3"), 2, children=(child(1, "n2"),)
    ),
    "no more than there are nodes": Row(
        wish(by=DIFFERENT), ("a100-1@n1", "a100-2@n2", "a100-3@n3"), 5, says="2 more of A100"
    ),
    "one from each fabric": Row(wish(by=DIFFERENT), ("a100-1@n1", "a100-1@n2"), 2, inventories=RACKS),
    # --- roundrobin
    "round and round": Row(wish(by=ROUND), ("a100-1@n1", "a100-2@n2", "a100-3@n3", "a100-4@n1"), 4),
    "round, beginning where there are fewest": Row(
        wish(by=ROUND), ("a100-3@n3", "a100-4@n1"), 2, children=(child(1, "n1"), child(2, "n2"))
    ),
    "round to a node that was asked for": Row(wish(on="n2", by=ROUND), ("a100-1@n2", "a100-2@n2"), 2),
    # --- the node that was asked for
    "there and nowhere else": Row(wish(on="n3"), ("a100-1@n3",)),
    "a node that does not exist": Row(wish(on="n9"), (), says="node n9 does not exist"),
    "a node that is cordoned": Row(
        wish(on="n1"), (), there=(b.node(cordoned=True), b.heartbeat()), says="node n1 to be uncordoned"
    ),
    "a node that is not ready": Row(
        wish(on="n1"), (), there=(b.node(ready="Unknown"), b.heartbeat()), says="node n1 to be ready"
    ),
    "a node that has opted out": Row(
        wish(on="n1"), (), there=(b.node(labels={OPT_OUT: "true"}), b.heartbeat()), says="opted out"
    ),
    "a node whose plugin is silent": Row(wish(on="n1"), (), there=(b.node(),), says="the plugin on n1"),
    "a node of no fabric": Row(wish(on="n4"), (), there=nodes("n4"), says="not a machine of any fabric"),
    "a node that has too little": Row(
        wish(on="n1", other=OtherSpec(milli_cpu=1)), (), says="n1 to have what other_spec asks for"
    ),
    "a node with a device that it cannot share": Row(
        wish(on="n1"),
        (),
        there=(*nodes("n1"), other("t4-5", "n1", model="T4")),
        policy=MANY,
        says="T4 to leave n1, which it cannot share with A100",
    ),
    "a node that is full": Row(
        wish(on="n1"),
        (),
        there=(*nodes("n1"), other("a100-1", "n1")),
        inventories=(b.inventory(models={"A100": 9}, machines=machines(n1=1)),),
        says="1 more of A100 to be free, on a node with room",
    ),
    # --- nodes that are passed over
    "not ready, cordoned, silent": Row(
        wish(),
        ("a100-1@n4",),
        there=(
            *(b.node("n1", ready="False"), b.heartbeat("n1")),
            *(b.node("n2", cordoned=True), b.heartbeat("n2")),
            b.node("n3"),
            *nodes("n4"),
        ),
        inventories=(b.inventory(models={"A100": 9}, machines=(*NODES, "n4")),),
    ),
    "no node at all": Row(
        wish(), (), there=(), says="a node that can take A100 and has what other_spec asks for"
    ),
    "full nodes": Row(
        wish(),
        ("a100-3@n2",),
        there=(*nodes("n1", "n2"), other("a100-1", "n1"), other("a100-2", "n2")),
        inventories=(b.inventory(models={"A100": 9}, machines=machines(n1=1, n2=2)),),
    ),
    "what is on its way out leaves room": Row(
        wish(),
        ("a100-2@n1",),
        there=(*nodes("n1"), other("a100-1", "n1", state=ResourceState.DETACHING)),
        inventories=(b.inventory(models={"A100": 9}, machines=machines(n1=1)),),
    ),
    "what others attached takes room": Row(
        wish(), ("a100-1@n2",), there=nodes("n1", "n2"), inventories=(with_foreign("n1", 2),)
    ),
    "as many of a model as the policy allows": Row(
        wish(by=ROUND),
        ("a100-3@n3",),
        2,
        there=(*nodes(*NODES), other("a100-1", "n1"), other("a100-2", "n2")),
        policy=FEW,
        says="1 more of A100",
    ),
    "one's own count against the limit": Row(
        wish(), (), there=nodes("n1"), children=(child(1, "n1"),), policy=FEW, says="1 more of A100"
    ),
    "others of another model do not": Row(
        wish(),
        ("a100-1@n1",),
        there=(*nodes("n1"), other("t4-5", "n1", model="T4")),
        policy=b.policy("A100", "T4", base=Policy(per_node_max=1)),
    ),
    # --- devices that are passed over
    "a device that somebody has": Row(
        wish(),
        ("a100-3@n1",),
        there=(*nodes("n1"), other("a100-1", "n2"), b.claim("c", devices=("a100-2",), on="n2")),
    ),
    "a device that failed on the node": Row(
        wish(on="n1"), ("a100-2@n1",), there=(b.node(failures={"a100-1": b.NOW - 5}), b.heartbeat())
    ),
    "a device that failed there long ago": Row(
        wish(on="n1"), ("a100-1@n1",), there=(b.node(failures={"a100-1": b.NOW - 1800}), b.heartbeat())
    ),
    "a device that failed on another node": Row(
        wish(on="n1"), ("a100-1@n1",), there=(*nodes("n1"), b.node("n2", failures={"a100-1": b.NOW - 5}))
    ),
    "a device that failed on two other nodes": Row(
        wish(on="n1"),
        ("a100-2@n1",),
        there=(
            *nodes("n1"),
            b.node("n2", failures={"a100-1": b.NOW - 5}),
            b.node("n3", failures={"a100-1": b.NOW - 5}),
        ),
    ),
    "a node where two failed": Row(
        wish(),
        ("a100-1@n2",),
        there=(b.node(failures={"a100-8": b.NOW, "a100-9": b.NOW}), b.heartbeat(), *nodes("n2")),
    ),
    # --- managers that choose
    "slots": Row(
        wish(),
        ("a100-1@n1", "a100-3@n1"),
        2,
        there=(*nodes("n1"), other("a100-0", "n2"), b.claim("c", devices=("a100-2",), on="n2")),
        inventories=(b.inventory(models={"A100": 4}, machines=NODES, traits=SLOTS),),
    ),
    "as many slots as there are free devices": Row(
        wish(),
        ("a100-0@n1", "a100-1@n1"),
        3,
        inventories=(b.inventory(models={"A100": 2}, machines=NODES, traits=SLOTS),),
        says="1 more of A100",
    ),
    "slots from each fabric": Row(
        wish(by=DIFFERENT),
        ("a100-0@n1", "a100-0@n2"),
        2,
        inventories=(
            b.inventory(models={"A100": 1}, machines=("n1",), traits=SLOTS),
            b.inventory("rack-b", models={"A100": 1}, machines=("n2",), traits=SLOTS),
        ),
    ),
}


def site(row: Row) -> placement.Site:
    there = b.world(*row.there, *row.children, row.request, inventories=row.inventories, policy=row.policy)
    return placement.Site(there, row.request, row.policy, b.NOW)


@pytest.mark.parametrize("row", PLACES.values(), ids=PLACES)
def test_where_the_next_devices_go(row: Row) -> None:
    places, error = placement.places(site(row), row.children, row.more)
    assert tuple(f"{device.device}@{node}" for device, node in places) == row.places
    assert row.says in error
    assert bool(error) == bool(row.says)


def test_devices_are_taken_from_the_fabric_of_their_node() -> None:
    places, _ = placement.places(site(Row(wish(by=DIFFERENT), (), inventories=RACKS)), (), 2)
    assert [device.pool for device, _ in places] == ["rack-a", "rack-b"]


def elder(size: int, **meta: object) -> ComposabilityRequest:
    return b.request(size, name="elder", created=Seconds(b.NOW - 60), **meta)  # type: ignore[arg-type] # passed on


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ((), "a100-1"),
        ((elder(3),), "a100-4"),
        ((elder(3), b.resource("a100-9", request="elder")), "a100-3"),
        ((elder(1), b.resource("a100-9", request="elder"), b.resource("a100-8", request="elder")), "a100-1"),
        ((elder(2), b.resource("a100-9", request="elder", state=ResourceState.DETACHING)), "a100-3"),
        ((elder(10),), "a100-2"),
        ((elder(3, status=ComposabilityRequestStatus(state=RequestState.RUNNING)),), "a100-1"),
        ((elder(3, deleted=b.NOW),), "a100-1"),
        ((b.request({"a100-1": "c"}, name="scalers", created=Seconds(b.NOW - 60)),), "a100-1"),
        ((b.request(3, name="younger", created=Seconds(b.NOW + 60)),), "a100-1"),
    ],
)
@pytest.mark.parametrize("traits", [Traits(), SLOTS])
def test_what_older_requests_may_want_is_tried_last(
    others: tuple[Object, ...], first: str, traits: Traits
) -> None:
    inventory = b.inventory(models={"A100": 9}, machines=NODES, traits=traits)
    given = Row(wish(created=b.NOW), (), there=(*nodes(*NODES), *others), inventories=(inventory,))
    places, _ = placement.places(site(given), (), 1)
    count = 1 if traits.chooses_device else 0  # slots are counted from 0
    assert [device.device for device, _ in places] == [f"a100-{int(first[5:]) - count}"]


# --- other_spec


HAS = {"cpu": "2500m", "memory": "1Ki", "ephemeral-storage": "2k", "pods": "3"}


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (OtherSpec(), True),
        (OtherSpec(2500, 1024, 2000, 3), True),
        (OtherSpec(milli_cpu=2501), False),
        (OtherSpec(memory=1025), False),
        (OtherSpec(ephemeral_storage=2001), False),
        (OtherSpec(allowed_pod_number=4), False),
    ],
)
@pytest.mark.parametrize("has", [HAS, {}])
def test_other_spec_is_compared_with_what_is_allocatable_in_its_own_units(
    asked: OtherSpec, has: dict[str, str], *, fits: bool
) -> None:
    fits = fits and (bool(has) or asked == OtherSpec())
    row = Row(wish(other=asked), (), there=(b.node(has=has), b.heartbeat()))
    places, _ = placement.places(site(row), (), 1)
    assert bool(places) == fits


# --- what is kept


def placed(where: str) -> tuple[ComposableResource, ...]:
    """Children on these nodes, oldest first, their names in the opposite order."""
    return tuple(
        child(9 - place, node, created=b.NOW - 100 + place) for place, node in enumerate(where.split())
    )


@pytest.mark.parametrize(
    ("request_", "where", "kept"),
    [
        (wish(), "n1 n1", (9, 8)),
        (wish(), "n2 n1 n2", (9, 7)),
        (wish(by=DIFFERENT), "n1 n2 n1", (9, 8)),
        (wish(by=ROUND), "n1 n2 n1", (9, 8, 7)),
        (wish(on="n2", by=ROUND), "n1 n2 n1", (8,)),
        (wish(by=ROUND), "n1 gone", (9,)),
        (wish(type="cxlmemory"), "n1", ()),
        (wish(of="T4"), "n1", ()),
        (wish(by=ROUND, other=OtherSpec(milli_cpu=1)), "n1 rich", (8,)),
        (wish(force=True), "n1", (9,)),
    ],
)
def test_what_fits_the_words_of_a_request_is_kept_oldest_first(
    request_: ComposabilityRequest, where: str, kept: tuple[int, ...]
) -> None:
    rich: Node = b.node("rich", has={"cpu": "1"})
    row = Row(request_, (), there=(*nodes(*NODES), rich), children=placed(where))
    found = placement.kept(site(row), row.children)
    assert [one.metadata.name for one in found] == [f"a100-{number}.rack-a" for number in kept]


# --- who goes first


RECORD = Record(Key("default", "c"), Uid("u"), Version("1"))


def attached(number: int, **meta: object) -> ComposableResource:
    return child(number, "n1", physical=str(number), **meta)


IN_ORDER = (
    child(9, "n1", state=ResourceState.ATTACHING),
    attached(8, annotations={DELETE_DEVICE: "true"}),
    attached(7, state=ResourceState.ATTACHING, used=b.NOW - 10),
    attached(6, used=b.NOW - 90),
    attached(5, used=b.NOW - 50),
    attached(4, used=b.NOW - 40, created=b.NOW - 500),
    attached(3, used=b.NOW - 800, holder="u"),
    attached(2, used=b.NOW - 700, record=RECORD, annotations={DELETE_DEVICE: "true"}),
    attached(1, used=b.NOW - 600),
)
"""Never attached, marked, attaching, least recently used; held, recorded and claimed ones last."""


@pytest.mark.parametrize("count", range(len(IN_ORDER) + 1))
def test_what_is_least_in_use_goes_first(count: int) -> None:
    there = b.world(*reversed(IN_ORDER), b.claim("c", devices=("a100-1",), on="n1"))
    first = placement.victims(there, tuple(reversed(IN_ORDER)), count)
    assert [one.metadata.name for one in first] == [one.metadata.name for one in IN_ORDER[:count]]


def test_of_equals_the_first_by_name_goes_first() -> None:
    two = attached(2), attached(1)
    assert placement.victims(b.world(*two), two, 1) == (two[1],)


# --- what is wrong with a request


@pytest.mark.parametrize(
    ("request_", "others", "says"),
    [
        (wish(), (), ""),
        (wish(of="H200"), (), "the policy has no model 'H200'; add it to the policy's models"),
        (wish(type="cxlmemory"), (), "A100 is of type 'gpu', not 'cxlmemory'"),
        (wish(of="CXL", type="cxlmemory"), (), ""),
        (wish(of="NIC", type="smartnic"), (), ""),
        (wish(on="n1", by=DIFFERENT), (), "differentnode and target_node contradict each other"),
        (wish(on="n1", by=ROUND), (), ""),
        (wish(by=DIFFERENT), (), ""),
        (
            wish(),
            (b.request(5, on="", name="older", created=b.NOW - 900),),
            "older is older and asks for the same",
        ),
        (wish(), (b.request(5, on="", name="younger", created=b.NOW),), ""),
        (wish(), (b.request(5, on="n1", name="older", created=b.NOW - 900),), ""),
        (wish(), (b.request(5, on="", name="older", by=ROUND, created=b.NOW - 900),), ""),
        (wish(), (b.request(5, on="", name="older", type="x", created=b.NOW - 900),), ""),
        (wish(), (b.request(5, on="", of="CXL", name="older", created=b.NOW - 900),), ""),
        (wish(on="n1"), (b.request({"a100-1": "c"}, created=b.NOW - 900),), ""),
    ],
)
def test_a_request_that_cannot_be_met_as_it_stands_is_told_so(
    request_: ComposabilityRequest, others: tuple[ComposabilityRequest, ...], says: str
) -> None:
    policy = b.policy(
        "A100",
        DeviceModel(1, ModelName("CXL"), "cxl", type="cxlmemory"),
        DeviceModel(2, ModelName("NIC"), "nic", type="smartnic"),
    )
    there = b.world(request_, *others, policy=policy)
    error = placement.invalid(placement.Site(there, request_, policy, b.NOW))
    assert says in error
    assert bool(error) == bool(says)


@pytest.mark.parametrize(
    ("failures", "at"),
    [
        ({}, NEVER),
        ({"a100-1": b.NOW - 100, "a100-2": b.NOW - 200}, Seconds(b.NOW + 1600)),
        ({"a100-1": b.NOW - 100, "a100-2": b.NOW - 1800}, Seconds(b.NOW + 1700)),
    ],
)
def test_blame_that_runs_out_is_a_time_to_look_again(failures: dict[str, float], at: Seconds) -> None:
    row = Row(wish(), (), there=(b.node(failures=failures), b.heartbeat()))
    assert placement.again_at(site(row)) == at

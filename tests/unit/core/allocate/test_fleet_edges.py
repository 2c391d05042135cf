"""A fleet at the edges: pools that several nodes have a part in, what cannot be read, and what is forgotten."""

from itertools import product

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.core.allocate.gathering import Pools
from jackfield.core.allocate.ledger import Ledger
from jackfield.core.allocate.looks import LOOKS_MAX, Lens, Looks
from jackfield.core.allocate.offers import PLACES_MAX, WISHES_MAX, Places
from jackfield.core.allocate.requests import Reader, Wish
from jackfield.core.allocate.selectors import Selectors
from jackfield.core.allocate.sights import Common, Own, Sight, Sights
from jackfield.model.device import Device
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_fleet import DEFAULT, GOOD, fleet, given, held_at, names, own, row
from unit.core.allocate.small_world import (
    CLASSES,
    World,
    claim,
    consumes,
    counters,
    device,
    devices,
    node,
    request,
    same,
    slice_,
    wants,
    where,
)

SHAREABLE = replace(GOOD, allow_multiple_allocations=True)
NO_SHARES = allocate.Features(consumable_capacity=False)
UNREADABLE = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Near", ("z",)),)),))


def single(one: Device, features: allocate.Features, *, share: dict[str, str] | None) -> allocate.Fleet:
    """Return one node with this device, of which a share is in use from the beginning if one is named."""
    held = () if share is None else (held_at("a", "d", name="early", share_id="s", consumed_capacity=share),)
    return allocate.Fleet(World([own("a", (one,))], held, features).allocator(), [node("a")])


# --- shares

SHARES = [
    pytest.param(GOOD, DEFAULT, {"memory": "1Gi"}, [], id="a share of a device that is not for sharing"),
    pytest.param(GOOD, DEFAULT, {}, ["a"], id="a share that uses nothing of it"),
    pytest.param(SHAREABLE, DEFAULT, {"memory": "4Gi"}, [], id="a share that uses all"),
    pytest.param(SHAREABLE, DEFAULT, {}, ["a"], id="a share that uses nothing"),
    pytest.param(GOOD, NO_SHARES, {"memory": "1Gi"}, [], id="a share, to a scheduler that knows none"),
    pytest.param(GOOD, NO_SHARES, {}, [], id="a share of nothing, to a scheduler that knows none"),
]


@pytest.mark.parametrize(("one", "features", "share", "fitting"), SHARES)
def test_a_share_leaves_what_it_does_not_use_and_gives_all_back(
    one: Device, features: allocate.Features, share: dict[str, str], fitting: list[str]
) -> None:
    nodes = single(one, features, share=None)
    holder = held_at("a", "d", share_id="s", consumed_capacity=share)

    nodes.hold(holder)
    assert list(nodes.fitting([claim(request())])) == fitting

    nodes.release(holder.key)
    assert list(nodes.fitting([claim(request())])) == ["a"]


@pytest.mark.parametrize(("one", "features", "share", "fitting"), SHARES)
def test_a_share_that_was_in_use_at_the_beginning_stays_in_use(
    one: Device, features: allocate.Features, share: dict[str, str], fitting: list[str]
) -> None:
    nodes = single(one, features, share=share)
    late = held_at("a", "d", name="late", share_id="t", consumed_capacity=share)
    assert list(nodes.fitting([claim(request())])) == fitting

    nodes.hold(late)
    nodes.release(late.key)

    assert list(nodes.fitting([claim(request())])) == fitting


@pytest.mark.parametrize(
    ("share", "fitting", "given_there"),
    [
        pytest.param({"memory": "1Gi"}, ["a"], ["r=d"], id="a share that says how much it uses"),
        pytest.param({}, [], str(allocate.Reason.DEVICES), id="a share that does not"),
    ],
)
def test_only_a_share_that_says_how_much_it_uses_has_paid_for_the_counters_of_the_next(
    share: dict[str, str], fitting: list[str], given_there: list[str] | str
) -> None:
    slices = [
        slice_((replace(SHAREABLE, consumes_counters=consumes("2Gi")),), "of-a", "a", 2, node_name="a"),
        slice_((), "counters", "a", 2, node_name="a", shared_counters=counters("2Gi")),
    ]
    wanted = claim(request(capacity=wants("1Gi")))
    holder = held_at("a", "d", share_id="s", consumed_capacity=share)
    nodes = fleet(slices, [node("a")])

    nodes.hold(holder)
    assert list(nodes.fitting([wanted])) == fitting
    assert World(slices, (holder,)).gives(wanted, at=node("a")) == given_there

    nodes.release(holder.key)
    assert list(nodes.fitting([wanted])) == ["a"]


# --- pools that several nodes have a part in


def unusable(name: str) -> ResourceSlice:
    """Return a slice of a node's own that the node cannot use, in a pool of three."""
    listed = (replace(GOOD, name=f"of-{name}", node_selector=where(zone="nowhere")),)
    return slice_(listed, name, "joint", 3, node_name=name, per_device_node_selection=True)


def test_a_pool_that_two_nodes_own_is_followed_until_both_are_gone() -> None:
    slices = [slice_((GOOD,), "fabric", "joint", 3), unusable("a"), unusable("b")]
    nodes = fleet(slices, [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]

    nodes.drop_node(NodeName("a"))
    nodes.hold(held_at("joint", "d"))
    assert list(nodes.fitting([claim(request())])) == []

    nodes.drop_node(NodeName("b"))
    nodes.release(held_at("joint", "d").key)
    nodes.put_node(node("a"))
    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_a_node_that_sees_pools_of_others_alone_can_go() -> None:
    nodes = fleet([slice_(devices("f"))], [node(one) for one in "ab"])

    nodes.drop_node(NodeName("a"))

    assert list(nodes.fitting([claim(request())])) == ["b"]


def test_a_device_on_another_node_takes_of_the_counters_of_the_pool() -> None:
    taking = {one: replace(GOOD, name=f"of-{one}", consumes_counters=consumes("2Gi")) for one in "ab"}
    slices = [slice_((taking[one],), one, "joint", 3, node_name=one) for one in "ab"]
    slices.append(slice_((), "counters", "joint", 3, shared_counters=counters("3Gi")))
    nodes = fleet(slices, [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]

    nodes.hold(held_at("joint", "of-b"))
    assert list(nodes.fitting([claim(request())])) == []

    nodes.release(held_at("joint", "of-b").key)
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]


def test_a_device_that_is_no_longer_on_offer_can_be_held_and_released() -> None:
    nodes = row("a")

    nodes.hold(held_at("a", "gone"))
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.release(held_at("a", "gone").key)
    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_counters_of_a_node_can_be_replaced_by_more() -> None:
    listed = slice_((replace(GOOD, consumes_counters=consumes("2Gi")),), "devices", "a", 2, node_name="a")
    few, many = (
        slice_((), "counters", "a", 2, node_name="a", shared_counters=counters(amount))
        for amount in ("1Gi", "2Gi")
    )
    nodes = fleet([listed, few], [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(request())])) == []

    nodes.put_slices([listed, many])

    assert list(nodes.fitting([claim(request())])) == ["a"]


# --- what cannot be read


def test_counters_that_cannot_be_read_are_an_error_of_their_node_alone() -> None:
    slices = [
        one
        for name, amount in (("a", "much"), ("b", "2Gi"))
        for one in (
            slice_(
                (replace(GOOD, consumes_counters=consumes("1Gi")),), f"of-{name}", name, 2, node_name=name
            ),
            slice_((), f"counters-{name}", name, 2, node_name=name, shared_counters=counters(amount)),
        )
    ]
    nodes = fleet(slices, [node("b"), node("a")])

    assert given(nodes.first_from([claim(request())], NodeName("b"))) == "b"
    with pytest.raises(allocate.AllocationError, match=r"resource pool gpu\.example\.com/a"):
        nodes.fitting([claim(request())])


def test_counters_that_cannot_be_read_are_no_error_to_a_claim_that_is_served_before() -> None:
    slices = [
        slice_((GOOD,), "sound", "a1", node_name="a"),
        slice_((replace(GOOD, consumes_counters=consumes("1Gi")),), "odd", "a2", 2, node_name="a"),
        slice_((), "counters", "a2", 2, node_name="a", shared_counters=counters("much")),
    ]
    nodes = fleet(slices, [node("a")])
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.hold(held_at("a2", "d"))
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.release(held_at("a2", "d").key)
    nodes.hold(held_at("a1", "d", name="other"))
    with pytest.raises(allocate.AllocationError, match=r"resource pool gpu\.example\.com/a2"):
        nodes.fitting([claim(request())])


@pytest.mark.parametrize("patience", [0, 9])
def test_a_node_of_which_nobody_can_tell_what_it_sees_is_an_error_where_it_is_asked_about(
    patience: int,
) -> None:
    odd = slice_(
        (replace(GOOD, node_selector=UNREADABLE),), "of-a", "a", node_name="a", per_device_node_selection=True
    )
    nodes = fleet([odd, own("b", (GOOD,))], [node("b"), node("a")])
    nodes.patience = patience

    assert given(nodes.first_from([claim(request())], NodeName("b"))) == "b"
    with pytest.raises(allocate.AllocationError, match="'Near' is not a valid operator"):
        nodes.first_from([claim(request(count=2))], NodeName("b"))
    with pytest.raises(allocate.AllocationError, match="'Near' is not a valid operator"):
        nodes.first_from([claim(request())], NodeName("a"))
    with pytest.raises(allocate.AllocationError, match="'Near' is not a valid operator"):
        nodes.allocate([claim(request())], NodeName("a"))

    nodes.put_slices([own("a", (GOOD,)), own("b", (GOOD,))])
    assert list(nodes.fitting([claim(request())])) == ["b", "a"]


def test_a_device_whose_nodes_nobody_can_tell_is_an_error_where_it_is_come_to() -> None:
    listed = (
        replace(GOOD, name="open", all_nodes=True),
        replace(GOOD, name="odd", node_selector=UNREADABLE),
    )
    slices = [slice_(listed, f"of-{one}", one, node_name=one, per_device_node_selection=True) for one in "ab"]
    nodes = fleet(slices, [node(one) for one in "ab"])

    with pytest.raises(allocate.AllocationError, match="'Near' is not a valid operator"):
        nodes.fitting([claim(request(count=2))])


# --- nodes that come and go between questions


def test_a_node_that_came_since_the_last_question_is_in_the_next_answer() -> None:
    nodes = fleet([own(one, devices("d")) for one in "ab"], [node("a")])
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.put_node(node("b"))

    assert list(nodes.fitting([claim(request())])) == ["a", "b"]


def test_going_round_passes_over_nodes_that_are_gone() -> None:
    nodes = row("a", "b", "c", "d")
    nodes.drop_node(NodeName("a"))
    for name in "cd":
        nodes.hold(held_at(name, "d0", name=f"of-{name}"))

    assert given(nodes.first_from([claim(request())], NodeName("c"))) == "b"
    assert given(nodes.first_in([claim(request())], names("c", "d"))) == "nowhere"


# --- what is forgotten


def test_every_node_is_looked_at_anew_once_there_were_too_many_places() -> None:
    crowd = [slice_((), f"of-{number}", f"n{number}", node_name=f"n{number}") for number in range(PLACES_MAX)]
    nodes = fleet([own("a", devices("d")), own("b", devices("d")), *crowd], [node(one) for one in "abc"])
    nodes.hold(held_at("b", "d"))

    nodes.put_slices([own("b", devices("d")), own("c", devices("d"))])
    assert list(nodes.fitting([claim(request())])) == ["c"]

    nodes.release(held_at("b", "d").key)
    assert list(nodes.fitting([claim(request())])) == ["b", "c"]


def scenery(one: ResourceSlice) -> tuple[Looks, Sight]:
    """Return the looks, and what node a sees of a slice."""
    looks, ledger = Looks(DEFAULT), Ledger(allocate.allocated(()), DEFAULT)
    (sight,) = Sights(Pools([one], DEFAULT), looks, ledger).of(node("a"))
    return looks, sight


def test_claims_that_see_alike_have_one_lens_until_there_were_too_many_kinds() -> None:
    looks, reader = Looks(DEFAULT), Reader(CLASSES, DEFAULT, Selectors())

    def comparing(number: int) -> tuple[Wish, ...]:
        return (reader.wish(claim(request(), name=f"c{number}", constraints=[same(f"x{number}")])),)

    lenses = [looks.lens(comparing(number)) for number in range(WISHES_MAX)]
    assert [looks.lens(comparing(number)) for number in range(WISHES_MAX)] == lenses

    looks.lens(comparing(WISHES_MAX))

    assert looks.lens(comparing(0)) is not lenses[0]


def test_devices_of_others_are_picked_once_a_matcher_until_there_were_too_many_kinds() -> None:
    _, sight = scenery(slice_(devices("x", "y")))
    assert isinstance(sight, Common)
    selectors = Selectors()

    def picked(number: int) -> object:
        matcher = selectors.matcher((), (f"{number} >= 0",), lists=False)
        return sight.candidates(matcher, node("a"), Places())

    first = picked(0)
    for number in range(1, WISHES_MAX):
        picked(number)
    assert picked(0) is first

    picked(WISHES_MAX)

    assert picked(0) is not first


def test_looks_are_numbered_anew_once_there_were_too_many_and_no_number_comes_twice() -> None:
    """Every lens compares five attributes out of ten in another order, so each sees the one device differently."""
    attributes = {str(digit): device("d", numa=digit).attributes["numa"] for digit in range(10)}
    looks, sight = scenery(own("a", (replace(GOOD, attributes=attributes),)))
    assert isinstance(sight, Own)
    means_all = (Selectors().matcher((), (), lists=False),)
    orders = product("0123456789", repeat=5)
    lenses = [Lens(means_all, order, plain=True) for order in orders]
    assert len(lenses) == LOOKS_MAX

    seen = [looks.look(sight.condition, lens) for lens in lenses]
    assert looks.look(sight.condition, lenses[0]) is seen[0]

    seen.append(looks.look(sight.condition, Lens(means_all, ("0",), plain=True)))
    again = looks.look(sight.condition, lenses[0])

    assert len({*seen, again}) == LOOKS_MAX + 2
    assert looks.look(sight.condition, Lens(means_all, lenses[0].attributes, plain=True)) == again

"""How the search goes: what it may leave out, and when it gives up."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.core import allocate
from jackfield.core.allocate.search import Outcome, Search
from jackfield.model.claim import (
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ResourceClaim,
)
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    World,
    alternative,
    claim,
    consumes,
    counters,
    device,
    devices,
    different,
    every,
    first_of,
    holding,
    node,
    request,
    same,
    selects,
    slice_,
    wants,
)

NOT_ENOUGH = "not enough usable devices"
TO_THE_END = 10_000_000

FAILING = "device.attributes['gpu.example.com'].model == 'H100'"
EVEN = "device.attributes['gpu.example.com'].?numa.orValue(1) == 0"
TAINT = DeviceTaint("k", effect="NoSchedule")


@st.composite
def listed(draw: st.DrawFn, name: str) -> Device:
    return device(
        name,
        model=draw(st.sampled_from(["H100", "H100", "H100", ""])),
        numa=draw(st.sampled_from([0, 0, 1, None])),
        memory=draw(st.sampled_from(["", "4", "8"])),
        consumes_counters=consumes(draw(st.sampled_from(["2", "3", "5"]))) if draw(st.booleans()) else (),
        allow_multiple_allocations=draw(st.sampled_from([False, False, True])),
        taints=(TAINT,) if draw(st.integers(0, 4)) == 0 else (),
    )


@st.composite
def offers(draw: st.DrawFn) -> list[ResourceSlice]:
    pools = draw(st.integers(1, 2))
    found: list[ResourceSlice] = []
    for pool in range(pools):
        names = [f"{pool}{number}" for number in range(draw(st.integers(1, 5)))]
        found.append(slice_([draw(listed(name)) for name in names], f"s{pool}", f"p{pool}", of=2))
        found.append(slice_(name=f"t{pool}", pool=f"p{pool}", of=2, shared_counters=counters("8")))
    return found


SELECTORS = st.sampled_from([(), (), (), selects(EVEN), selects(FAILING)])
TOLERATIONS = st.sampled_from([(), (DeviceToleration("k", "Exists"),)])
CAPACITIES = st.sampled_from([None, None, wants("3")])


@st.composite
def alternatives(draw: st.DrawFn, name: str) -> DeviceSubRequest:
    return alternative(name, draw(st.integers(1, 3)), selectors=draw(SELECTORS), capacity=draw(CAPACITIES))


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return every(name, selectors=draw(SELECTORS))
    if kind == 1:
        return first_of(draw(alternatives("x")), draw(alternatives("y")), name=name)
    return request(
        name,
        draw(st.integers(1, 4)),
        selectors=draw(SELECTORS),
        tolerations=draw(TOLERATIONS),
        capacity=draw(CAPACITIES),
        admin_access=kind == 2,
    )


CONSTRAINTS = st.sampled_from(
    [same("numa"), different("numa"), same("numa", "r0"), different("model", "r1", "r0")]
)


@st.composite
def claims(draw: st.DrawFn) -> list[ResourceClaim]:
    found: list[ResourceClaim] = []
    for number in range(draw(st.integers(1, 2))):
        asked = [draw(requests(f"r{index}")) for index in range(draw(st.integers(1, 3)))]
        limits: Sequence[DeviceConstraint] = draw(st.lists(CONSTRAINTS, max_size=2))
        found.append(claim(*asked, name=f"c{number}", constraints=limits))
    return found


def ending(search: Search) -> str | list[tuple[int, str, str]]:
    """Return the error, that there is nothing, or the devices chosen."""
    try:
        outcome = search.run(TO_THE_END)
    except allocate.AllocationError as error:
        return str(error)
    assert outcome is not Outcome.GIVEN_UP
    if outcome is not Outcome.FOUND:
        return "nothing"
    return [(one.claim, one.ask.name, str(one.candidate.entry.id)) for one in search.attempt.placed]


@settings(max_examples=400, deadline=None)
@given(offers(), claims(), st.sets(st.sampled_from(["00", "01", "10"])), st.sampled_from(allocate.Profile))
def test_looking_ahead_changes_no_answer(
    slices: list[ResourceSlice], asked: list[ResourceClaim], held: set[str], profile: allocate.Profile
) -> None:
    holders = [holding(name, pool=f"p{name[0]}") for name in sorted(held)]
    allocator = World(slices, holders, allocate.Features(profile=profile)).allocator()
    patient, plain, keen = (allocator.search(asked, node()) for _ in range(3))
    plain.prunes = False
    keen.patience = 0

    expected = ending(plain)

    assert ending(patient) == expected
    assert ending(keen) == expected
    assert keen.steps <= plain.steps


@settings(max_examples=200, deadline=None)
@given(offers(), claims(), st.sets(st.sampled_from(["00", "01", "10"])))
def test_no_device_is_given_twice(
    slices: list[ResourceSlice], asked: list[ResourceClaim], held: set[str]
) -> None:
    holders = [holding(name, pool=f"p{name[0]}") for name in sorted(held)]
    try:
        found = World(slices, holders).allocator().allocate(asked, node())
    except allocate.AllocationError:
        return
    if isinstance(found, allocate.NoFit):
        return
    given_out = [one for each in found for one in each.devices.results if not one.admin_access]
    whole = [str(one.id) for one in given_out if not one.share_id]
    shares = [one.share_id for one in given_out if one.share_id]
    taken = [str(one.id) for holder in holders for one in holder.results]
    assert len(set(whole) | set(taken)) == len(whole) + len(taken)
    assert len(set(shares)) == len(shares)


def numbered(count: int, **fields: object) -> list[ResourceSlice]:
    return [slice_(devices(*(f"d{number:02}" for number in range(count)), **fields))]


def alone(count: int) -> list[ResourceClaim]:
    return [claim(request(), name=f"c{number}") for number in range(count)]


HARD: list[tuple[str, list[ResourceSlice], list[ResourceClaim]]] = [
    ("one device too few", numbered(30), [claim(request(count=31))]),
    (
        "one device too few for as many requests",
        numbered(15),
        [claim(*(request(f"r{n}") for n in range(16)))],
    ),
    ("one device too few for as many claims", numbered(15), alone(16)),
    ("one device too few beside one that is taken", numbered(12), [claim(request("x"), request("y", 12))]),
    (
        "one device too few, whatever follows",
        numbered(15),
        [claim(*(request(f"r{n}") for n in range(16)), first_of(alternative("a"), name="y"), every("z"))],
    ),
    (
        "the last request has none",
        numbered(24),
        [claim(*(request(f"r{n}") for n in range(12)), request("x", selectors=selects("false")))],
    ),
    (
        "two kinds of request share too few devices",
        numbered(15),
        [claim(*(request(f"r{n}", selectors=selects("true") if n % 2 else ()) for n in range(16)))],
    ),
    (
        "no value often enough",
        [slice_([device(f"d{number:02}", numa=number % 3) for number in range(30)])],
        [claim(request(count=11), constraints=[same("numa")])],
    ),
    (
        "the other request has no such value",
        [
            slice_(
                [device(f"g{number:02}", model="G", numa=number % 2) for number in range(24)]
                + [device(f"n{number:02}", model="N", numa=7) for number in range(4)]
            )
        ],
        [
            claim(
                request("g", 8, selectors=selects("device.attributes['gpu.example.com'].model == 'G'")),
                request("n", 4, selectors=selects("device.attributes['gpu.example.com'].model == 'N'")),
                constraints=[same("numa")],
            )
        ],
    ),
    (
        "all but too few are tainted",
        [*numbered(20), slice_(devices(*(f"t{n}" for n in range(20)), taints=(TAINT,)), pool="q")],
        [claim(request(count=21))],
    ),
]


@pytest.mark.parametrize(("slices", "asked"), [case[1:] for case in HARD], ids=[case[0] for case in HARD])
def test_what_cannot_be_had_is_found_out_soon(
    slices: list[ResourceSlice], asked: list[ResourceClaim]
) -> None:
    search = World(slices).allocator().search(asked, node())
    assert search.run() is Outcome.NONE
    assert search.steps < 1_000


@pytest.mark.parametrize("patience", [0, 64])
def test_looking_ahead_does_not_hide_a_selector_that_fails(patience: int) -> None:
    # While x has the bare device nobody asks y's selector about it; once x takes the other, somebody must.
    world = World([slice_([device("bare"), device("a", model="H100")])])
    search = world.allocator().search(
        [claim(request("x"), request("y", 2, selectors=selects(FAILING)))], node()
    )
    search.patience = patience
    with pytest.raises(allocate.AllocationError, match="no such key: model"):
        search.run()


def test_looking_ahead_counts_no_device_for_admin_access() -> None:
    only_a = selects("device.attributes['gpu.example.com'].model == 'A'")
    world = World([slice_([device("a", model="A"), device("b", model="B")])])
    admin = claim(request("admin", selectors=only_a, admin_access=True))
    search = world.allocator().search(
        [claim(request("x"), request("y", selectors=only_a)), admin, admin], node()
    )
    search.patience = 0
    assert search.run() is Outcome.FOUND


def test_a_search_that_takes_too_long_is_given_up() -> None:
    # The ten lightest take 10045 together; that ten do not fit shows only in trying.
    weights = [
        device(f"d{number:02}", consumes_counters=consumes(str(1000 + number))) for number in range(30)
    ]
    for budget, given_out in (("10040", "the search was given up"), ("10045", 10)):
        world = World(
            [slice_(weights, "s1", of=2), slice_(name="s2", of=2, shared_counters=counters(budget))]
        )
        found = world.gives(claim(request(count=10)))
        assert (found if isinstance(found, str) else len(found)) == given_out


def test_a_pod_of_many_large_claims_is_served() -> None:
    many = [claim(*(request(f"r{n}") for n in range(32)), name=f"c{number}") for number in range(12)]
    slices = [slice_(devices(*(f"d{n:03}" for n in range(128))), f"s{part}", f"p{part}") for part in range(3)]
    given_out = World(slices).allocations(*many)
    assert sum(len(one.devices.results) for one in given_out) == 12 * 32

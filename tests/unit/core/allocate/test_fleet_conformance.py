"""The cases that Kubernetes' own allocator was asked, on several nodes at once.

What is right for one node the allocator's own tests say; here the fleet must say the same of each.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import DeviceID, NodeName
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice
from unit.core.allocate.test_allocate_conformance import ALL, DEFAULT_NODE, GATES, Case, held, read

TWIN = NodeName("twin")
STRANGER = NodeName("stranger")


def nodes(case: Case) -> list[Node]:
    """Return the node of the case between one that nothing is for but by accident, and its twin."""
    one = read(Node, [case.node])[0] if case.node else DEFAULT_NODE
    stranger = Node(metadata=replace(one.metadata, name=STRANGER, labels={}))
    return [stranger, one, replace(one, metadata=replace(one.metadata, name=TWIN))]


def doubled(slices: Sequence[ResourceSlice], name: NodeName) -> list[ResourceSlice]:
    """Return the slices, and those of the node once more for its twin, in pools of other names."""
    twins = [
        replace(
            one,
            metadata=replace(one.metadata, name=f"{one.metadata.name}-twin"),
            spec=replace(
                one.spec, node_name=TWIN, pool=replace(one.spec.pool, name=twin(one.spec.pool.name))
            ),
        )
        for one in slices
        if one.spec.node_name == name
    ]
    return [*slices, *twins]


def twin(pool: str) -> str:
    return f"{pool}-twin"


def in_use(state: allocate.Allocated) -> allocate.Allocated:
    """Return the state with the same in use of the twin's pools."""

    def other(one: DeviceID) -> DeviceID:
        return replace(one, pool=twin(one.pool))

    return allocate.Allocated(
        state.devices.union(map(other, state.devices)),
        state.shared.union((other(one), share) for one, share in state.shared),
        {**state.capacity, **{other(one): used for one, used in state.capacity.items()}},
    )


def said(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except allocate.AllocationError as error:
        return f"error: {error}"


def one_by_one(
    allocator: allocate.Allocator, claims: Sequence[ResourceClaim], order: Sequence[Node]
) -> object:
    for one in order:
        found = allocator.allocate(claims, one)
        if not isinstance(found, allocate.NoFit):
            return allocate.Fit(one.name, found)
    return "nowhere"


def first(fleet: allocate.Fleet, claims: Sequence[ResourceClaim], order: Sequence[Node]) -> object:
    found = fleet.first_in(claims, [one.name for one in order])
    return found if isinstance(found, allocate.Fit) else "nowhere"


@pytest.mark.skipif(not ALL, reason="the conformance cases (shared/conformance) are not beside the project")
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_fleet_says_of_each_node_what_the_allocator_says(case: Case) -> None:
    features = msgspec.convert(
        {field: gate in (case.features or ()) for gate, field in GATES.items()}, allocate.Features
    )
    classes = {one.metadata.name: one for one in read(DeviceClass, case.classes)}
    stage, claims = nodes(case), read(ResourceClaim, case.claims)
    slices = doubled(read(ResourceSlice, case.slices), stage[1].name)
    allocator = allocate.Allocator(slices, classes, in_use(held(case)), features)
    fleet = allocate.Fleet(allocator, stage)

    for one in stage:
        expected = said(partial(allocator.allocate, claims, one))
        assert said(partial(fleet.allocate, claims, one.name)) == expected
    for order in (stage, stage[::-1], stage[1:]):
        wanted = said(partial(one_by_one, allocator, claims, order))
        assert said(partial(first, fleet, claims, order)) == wanted
    fitting = said(
        lambda: [one.name for one in stage if not isinstance(allocator.allocate(claims, one), allocate.NoFit)]
    )
    assert said(lambda: list(fleet.fitting(claims))) == fitting

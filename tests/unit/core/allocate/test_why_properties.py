"""Whatever the world: nothing is allocated without a reason, and every device is counted once."""

from collections.abc import Sequence
from itertools import groupby

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.core.allocate.attempt import Obstacle
from jackfield.core.allocate.reasons import GROUPS_MAX, NEAREST_MAX, RequestWhy, Step, Why
from jackfield.core.allocate.trial import NOBODY, Trial
from jackfield.model.claim import ResourceClaim, ResourceClaimStatus
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.fleet_worlds import Stage, claims, stages
from unit.core.allocate.small_world import CLASSES

STEPS = {
    Obstacle.IN_USE: (Step.IN_USE, Step.TAKEN),
    Obstacle.COUNTER: (Step.COUNTER, Step.GATE),
    Obstacle.TAINT: (Step.TAINT,),
    Obstacle.CONSTRAINT: (Step.CONSTRAINT,),
    Obstacle.CAPACITY: (Step.CAPACITY,),
}
EXAMPLES = 60


class Case(msgspec.Struct):
    """A world in which some claims hold devices, and claims that want some."""

    stage: Stage
    held: Sequence[ResourceClaim]
    wanted: Sequence[ResourceClaim]

    @property
    def allocator(self) -> allocate.Allocator:
        return allocate.Allocator(
            self.stage.slices, CLASSES, allocate.allocated(self.held), self.stage.features
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    stage = draw(stages())
    case = Case(stage, [], [draw(claims(at)) for at in range(draw(st.integers(1, 2)))])
    held: list[ResourceClaim] = []
    for at in range(draw(st.integers(0, 3))):
        one = draw(claims(10 + at))
        found = said(Case(stage, held, [one]), draw(st.sampled_from(stage.nodes)))
        if isinstance(found, tuple):
            held.append(replace(one, status=ResourceClaimStatus(allocation=found[0])))
    return replace(case, held=held)


def said(case: Case, node: Node) -> object:
    try:
        return case.allocator.allocate(case.wanted, node)
    except allocate.AllocationError as error:
        return str(error)


def newest(slices: Sequence[ResourceSlice]) -> tuple[int, bool]:
    """Return how many devices the newest slices list, and whether there are older ones."""
    total, older = 0, False
    pools = sorted(slices, key=lambda one: (one.spec.driver, one.spec.pool.name))
    for _, found in groupby(pools, key=lambda one: (one.spec.driver, one.spec.pool.name)):
        listed = list(found)
        last = max(one.spec.pool.generation for one in listed)
        older |= any(one.spec.pool.generation < last for one in listed)
        total += sum(
            len(one.spec.devices)
            for one in listed
            if one.spec.pool.generation == last and not one.spec.shared_counters
        )
    return total, older


def is_sound(one: RequestWhy, slices: Sequence[ResourceSlice]) -> None:
    total, older = newest(slices)
    # A node may not have noticed that others have a newer generation of a pool; then it sees both.
    assert one.devices == total or (older and one.devices > total)
    for removed in one.removed:
        assert removed.devices == sum(each.devices for each in removed.groups) + removed.more > 0
        assert all(each.cause.step is removed.step for each in removed.groups)
        assert 0 < len(removed.groups) <= GROUPS_MAX
    assert [each.step for each in one.removed] == [
        step for step in Step if step in {each.step for each in one.removed}
    ]
    assert len(one.nearest) <= min(one.missing, NEAREST_MAX)
    assert all(each.causes for each in one.nearest)


def is_explained(why: Why) -> None:
    assert why.stuck
    assert any(one.nearest or one.devices == one.had for one in why.stuck)
    assert all(not one.left for one in why.stuck if one.had < one.wanted)
    assert len(allocate.sentences(why)) > len(why.stuck)


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_whatever_is_not_allocated_has_a_reason_and_every_device_is_counted_once(case: Case) -> None:
    known = allocate.holders(case.held)
    for node in case.stage.nodes:
        found = said(case, node)
        why = allocate.why(case.allocator, case.wanted, node, known)
        for one in why.requests:
            is_sound(one, case.stage.slices)
        match found:
            case allocate.NoFit():
                assert (why.verdict, why.aborts) == (found.reason, False)
                is_explained(why)
            case str():
                assert (why.verdict, why.aborts) == (found, True)
                assert allocate.sentences(why)[0].endswith(f"{found}.")
            case _:
                assert why.fits
                assert not why.stuck
                assert allocate.sentences(why) == (f"Node {node.name} fits.",)
        assert why == allocate.why(case.allocator, case.wanted, node, known)


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_over_all_nodes_each_is_counted_once_and_the_nearest_is_one_of_them(case: Case) -> None:
    answers = [said(case, node) for node in case.stage.nodes]
    found = allocate.why_nowhere(case.allocator, case.wanted, case.stage.nodes)
    fitting = sum(isinstance(one, tuple) for one in answers)
    assert (found.nodes, found.fitting) == (len(answers), fitting)
    assert sum(one.nodes for one in found.reasons) == len(answers) - fitting
    errors = {one for one in answers if isinstance(one, str)}
    assert {one.reason for one in found.reasons} - set(Step) == errors
    if fitting:
        assert found.nearest == ()
    else:
        (nearest,) = found.nearest
        assert nearest.node in {one.example for one in found.reasons}
        assert not nearest.aborts or len(errors) == len(found.reasons)
    assert allocate.sentences_everywhere(found)


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_there_is_a_cause_exactly_where_there_is_an_obstacle(case: Case) -> None:
    allocator, node = case.allocator, case.stage.nodes[0]
    try:
        search = allocator.search(case.wanted, node)
        search.run()
    except allocate.AllocationError:
        return
    wishes = allocator.wishes(case.wanted)
    trial = Trial(wishes, allocator.usage, allocator.features, NOBODY)
    for one in search.furthest:
        trial.place(one.claim, one.ask, one.candidate)
    for number, wish in enumerate(wishes):
        for ask in (ask for request in wish.requests for ask in request.asks):
            try:
                candidates = search.seen.candidates(ask.matcher)
            except allocate.AllocationError:
                return  # the search had ended before it came to that slice
            for candidate in candidates:
                obstacle = trial.obstacle(number, ask, candidate)
                causes = [cause.step for cause in trial.causes(number, ask, candidate)]
                assert (causes[0] in STEPS[obstacle]) if obstacle else not causes

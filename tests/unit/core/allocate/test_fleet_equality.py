"""A fleet says of every node what an allocator made for the moment says of it."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import AllocationResult, ResourceClaim, ResourceClaimStatus
from jackfield.model.node import Node
from unit.core.allocate.fleet_worlds import Stage, claims, nodes, offers, stages
from unit.core.allocate.small_world import CLASSES

Answer: TypeAlias = tuple[AllocationResult, ...] | allocate.NoFit
Found: TypeAlias = object


class Pair:
    """A fleet that is kept current, and what it takes to make an allocator for any moment."""

    def __init__(self, stage: Stage, patience: int) -> None:
        self.features = stage.features
        self.nodes = {one.name: one for one in stage.nodes}
        self.slices = list(stage.slices)
        self.held: dict[str, ResourceClaim] = {}
        self.fleet = allocate.Fleet(self.allocator(), stage.nodes)
        self.fleet.patience = patience

    def allocator(self) -> allocate.Allocator:
        held = allocate.allocated(self.held.values())
        return allocate.Allocator(self.slices, CLASSES, held, self.features)

    # --- questions, answered one node after the other

    def first(self, wanted: Sequence[ResourceClaim], order: Iterable[Node]) -> Found:
        allocator, reasons = self.allocator(), list[allocate.Reason]()
        for one in order:
            answer = allocator.allocate(wanted, one)
            if not isinstance(answer, allocate.NoFit):
                return allocate.Fit(one.name, answer)
            reasons.append(answer.reason)
        return allocate.Nowhere(tuple((one, reasons.count(one)) for one in sorted(set(reasons))))

    def fitting(self, wanted: Sequence[ResourceClaim]) -> Found:
        allocator = self.allocator()
        answers = [(one.name, allocator.allocate(wanted, one)) for one in self.nodes.values()]
        return [name for name, answer in answers if not isinstance(answer, allocate.NoFit)]

    def agrees(self, wanted: Sequence[ResourceClaim]) -> None:
        fleet, order = self.fleet, list(self.nodes.values())
        for one in order:
            expected = said(partial(self.allocator().allocate, wanted, one))
            assert said(partial(fleet.allocate, wanted, one.name)) == expected
        assert said(lambda: listed(fleet.fitting(wanted))) == said(partial(self.fitting, wanted))
        backwards = order[::-1]
        names = [one.name for one in backwards]
        assert said(partial(fleet.first_in, wanted, names)) == said(partial(self.first, wanted, backwards))
        for at, one in enumerate(order):
            around = [*order[at:], *order[:at]]
            expected = said(partial(self.first, wanted, around))
            assert said(partial(fleet.first_from, wanted, one.name)) == expected

    # --- changes

    def give(self, one: ResourceClaim, answer: Answer) -> None:
        if not isinstance(answer, allocate.NoFit):
            self.held[one.metadata.name] = replace(one, status=ResourceClaimStatus(allocation=answer[0]))
            self.fleet.hold(self.held[one.metadata.name])

    def take(self, name: str) -> None:
        self.fleet.release(self.held.pop(name).key)

    def put_node(self, one: Node) -> None:
        self.nodes[one.name] = one
        self.fleet.put_node(one)

    def drop_node(self, one: Node) -> None:
        del self.nodes[one.name]
        self.fleet.drop_node(one.name)


def listed(found: allocate.Fitting) -> list[str]:
    names = list(found)
    assert len(found) == len(names)
    assert not names or found.first == names[0]
    return list[str](names)


def said(ask: Callable[[], Found]) -> Found:
    """Return the answer, or the words of the error."""
    try:
        return ask()
    except allocate.AllocationError as error:
        return f"error: {error}"


@settings(max_examples=150, deadline=None)
@given(stages(), st.data())
def test_a_fleet_answers_as_an_allocator_asked_about_one_node_after_the_other(
    stage: Stage, data: st.DataObject
) -> None:
    pair = Pair(stage, data.draw(st.integers(0, 5)))
    for number in range(data.draw(st.integers(1, 6))):
        wanted = data.draw(claims(number))
        pair.agrees([wanted])
        try:
            pair.give(wanted, pair.fleet.allocate([wanted], data.draw(st.sampled_from(stage.nodes)).name))
        except allocate.AllocationError:
            continue


@settings(max_examples=150, deadline=None)
@given(stages(), st.data())
def test_a_fleet_that_was_kept_current_answers_as_one_made_anew(stage: Stage, data: st.DataObject) -> None:
    pair = Pair(stage, data.draw(st.integers(0, 5)))
    # The same questions again and again: what was worked out for the last answer must not spoil the next.
    questions = [[data.draw(claims(100))], [data.draw(claims(101)), data.draw(claims(102))]]
    for number in range(data.draw(st.integers(2, 6))):
        for wanted in questions if pair.nodes else ():
            pair.agrees(wanted)
        change(pair, data, number)
    for wanted in questions if pair.nodes else ():
        pair.agrees(wanted)


def change(pair: Pair, data: st.DataObject, number: int) -> None:
    kind = data.draw(st.sampled_from(("hold",) * 4 + ("release", "release", "node", "drop", "slices")))
    if kind == "hold" and pair.nodes:
        wanted = data.draw(claims(number))
        at = data.draw(st.sampled_from(sorted(pair.nodes)))
        try:
            pair.give(wanted, pair.fleet.allocate([wanted], at))
        except allocate.AllocationError:
            return
    elif kind == "release" and pair.held:
        pair.take(data.draw(st.sampled_from(sorted(pair.held))))
    elif kind == "node":
        pair.put_node(data.draw(nodes())[0])
    elif kind == "drop" and pair.nodes:
        pair.drop_node(pair.nodes[data.draw(st.sampled_from(sorted(pair.nodes)))])
    elif kind == "slices":
        kept = [one for one in pair.slices if data.draw(st.booleans())]
        names = {one.metadata.name for one in kept}
        fresh = [one for one in data.draw(offers()) if one.metadata.name not in names]
        pair.slices = [*kept, *fresh[: data.draw(st.integers(0, 2))]]
        pair.fleet.put_slices(pair.slices)

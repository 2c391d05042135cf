"""One question about many nodes: what claims would get on them at this moment.

Knows what has been answered already, and for which nodes that will do. Must not know the nodes' order.
"""

from collections.abc import Sequence
from typing import assert_never

from jackfield.core.allocate.allocator import outcome, read
from jackfield.core.allocate.looks import Condition, Lens, Look
from jackfield.core.allocate.outcome import AllocationError, NoFit
from jackfield.core.allocate.requests import Reader, Wish
from jackfield.core.allocate.roster import Cell, Mark, Member
from jackfield.core.allocate.search import Search
from jackfield.core.allocate.sights import Common, Sights, View
from jackfield.model.claim import AllocationResult, ResourceClaim

Answer = tuple[AllocationResult, ...] | NoFit


class Question:
    """What some claims would get. Claims are read when the first node is asked about, as an Allocator does."""

    def __init__(self, claims: Sequence[ResourceClaim], reader: Reader, sights: Sights) -> None:
        self._claims = claims
        self._reader = reader
        self._sights = sights
        self._wishes: tuple[Wish, ...] | None = None
        self._lens: Lens | None = None
        self._answers: dict[Look, Answer] = {}

    def answer(self, member: Member) -> Answer:
        """Return what the claims get on this very node."""
        if member.fault:
            raise AllocationError(member.fault)
        wishes, view = self._read(member), self._view(member)
        return outcome(self._search(wishes, view), wishes, view, self._sights.pools.features)

    def fits(self, member: Member) -> Answer:
        """Return what the claims get on this node or on one that looks alike. An error is this node's own.

        The first node of its look is searched itself, so for it the answer is to the letter.
        """
        look = self.look(member.cell, self.lens(member))
        known = self._answers.get(look)
        if known is None:
            # An error is not remembered: whoever comes to such a node goes no further.
            known = self._answers[look] = self.answer(member)
        return known

    def lens(self, member: Member) -> Lens:
        """Return how the claims see devices. What keeps the first node from being asked about is raised."""
        if member.fault:
            raise AllocationError(member.fault)
        if self._lens is None:
            self._lens = self._sights.looks.lens(self._read(member))
        return self._lens

    def look(self, cell: Cell, lens: Lens) -> Look:
        """Return what the claims see of nodes that no claim can tell apart."""
        return tuple([self._sight(mark, lens) for mark in cell.marks])

    def _sight(self, mark: Mark, lens: Lens) -> Look:
        match mark:
            case Condition():
                return self._sights.looks.look(mark, lens)
            case Common():
                return mark.look(lens, self._sights.ledger)
            case str():
                return mark
            case _ as never:
                assert_never(never)

    def _read(self, member: Member) -> tuple[Wish, ...]:
        if self._wishes is None:
            view = self._view(member)
            self._wishes = read(self._claims, self._reader, lambda wishes: self._search(wishes, view))
        return self._wishes

    def _view(self, member: Member) -> View:
        return View(member.node, member.sights, self._sights.pools.places)

    def _search(self, wishes: Sequence[Wish], view: View) -> Search:
        return Search(wishes, view, self._sights.ledger, self._sights.pools.features)

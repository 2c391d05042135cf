"""Nodes in their order, and together with those that look alike.

Knows positions and groups. Must not know what a node sees, only whether another sees the same.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from jackfield.core.allocate.looks import Condition
from jackfield.core.allocate.sights import Common, Own, Sight
from jackfield.model.names import NodeName
from jackfield.model.node import Node

HOLES_MIN: Final = 64
"""So many positions may be empty before nodes move up."""
CHANGES_MIN: Final = 1_024
"""So many changes more than there are nodes are remembered before all are forgotten."""

Mark: TypeAlias = Condition | Common | str
"""One thing that a node sees; a text where nobody can tell what it sees."""


class Cell:
    """Nodes that no claim can tell apart."""

    __slots__ = ("marks", "positions")

    def __init__(self, marks: tuple[Mark, ...]) -> None:
        self.marks = marks
        self.positions: list[int] = []
        """Of its nodes, ascending."""


class Member:
    """One node and what it sees."""

    __slots__ = ("cell", "fault", "node", "position", "sights")

    def __init__(self, node: Node, position: int) -> None:
        self.node = node
        self.position = position
        self.sights: tuple[Sight, ...] = ()
        self.fault = ""
        """Why nobody can tell what it sees."""
        self.cell = Cell(())

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What tells it from other nodes."""
        if self.fault:
            return (self.fault,)
        return tuple([one.condition if isinstance(one, Own) else one for one in self.sights])


class Roster:
    """All nodes, in the order in which they came; one that comes again keeps its place.

    Memory grows with the nodes alone: there are no more cells than nodes, no more than twice as many positions, and not
    many more changes that are remembered.
    """

    def __init__(self) -> None:
        self.members: dict[NodeName, Member] = {}
        self.cells: dict[tuple[Mark, ...], Cell] = {}
        self.names: list[NodeName] = []
        """By position. A position is never given to another node, so answers may keep the list."""
        self._there: list[Member | None] = []
        self._changed: list[int] = []
        self._forgotten = 0

    def put(self, node: Node) -> Member:
        """Return the member for the node, which is in no cell yet if it is new."""
        member = self.members.get(node.name)
        if member is None:
            member = self.members[node.name] = Member(node, len(self.names))
            self.names.append(node.name)
            self._there.append(member)
        member.node = node
        return member

    def settle(self, member: Member) -> None:
        """Put the member where its like are."""
        marks = member.marks
        self._leave(member)
        cell = self.cells.get(marks)
        if cell is None:
            cell = self.cells[marks] = Cell(marks)
        member.cell = cell
        insort(cell.positions, member.position)
        self.touch(member.position)

    def drop(self, name: NodeName) -> None:
        """Forget a node."""
        member = self.members.pop(name)
        self._leave(member)
        self._there[member.position] = None
        self.touch(member.position)
        if len(self.names) > 2 * len(self.members) + HOLES_MIN:
            self._move_up()

    def there(self, position: int) -> Member | None:
        """Return the member at a position; None where it is empty."""
        return self._there[position]

    def walk(self, start: int) -> Iterator[Member]:
        """Go round once, from that position on."""
        there = self._there
        for at in range(start, len(there)):
            member = there[at]
            if member is not None:
                yield member
        for at in range(start):
            member = there[at]
            if member is not None:
                yield member

    # --- changes

    def touch(self, position: int) -> None:
        """Note that claims may see the node there differently now."""
        self._changed.append(position)
        if len(self._changed) > len(self.names) + CHANGES_MIN:
            self._forget_changes()

    @property
    def changes(self) -> int:
        """How many changes there have been."""
        return self._forgotten + len(self._changed)

    def since(self, changes: int) -> Sequence[int] | None:
        """Return the positions of the nodes that changed after so many changes; None where it is too long ago."""
        return None if changes < self._forgotten else self._changed[changes - self._forgotten :]

    def _forget_changes(self) -> None:
        # The last one too, which nobody can have followed yet.
        self._forgotten += len(self._changed)
        self._changed.clear()

    def _leave(self, member: Member) -> None:
        cell = member.cell
        at = bisect_left(cell.positions, member.position)
        if at < len(cell.positions) and cell.positions[at] == member.position:
            del cell.positions[at]
            if not cell.positions:
                del self.cells[cell.marks]

    def _move_up(self) -> None:
        there = [member for member in self._there if member is not None]
        self._there = list(there)
        self.names = [member.node.name for member in there]
        for cell in self.cells.values():
            cell.positions.clear()
        for position, member in enumerate(there):
            member.position = position
            member.cell.positions.append(position)
        self._forget_changes()

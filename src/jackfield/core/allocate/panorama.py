"""All nodes, grouped by what some claims see of them.

Knows how to follow the nodes' changes, so that the next claim of the same kind finds them grouped. Must not know
what a look means, only whether two are equal.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from jackfield.core.allocate.looks import Look
from jackfield.core.allocate.roster import Cell, Roster


class Panorama:
    """Positions of nodes by look. Memory grows with the nodes."""

    def __init__(self) -> None:
        self._groups: dict[Look, list[int]] = {}
        self._looks: dict[int, Look] = {}
        self._seen = -1
        """How many changes have been followed; none of them yet."""

    def follow(self, roster: Roster, look: Callable[[Cell], Look]) -> None:
        """Bring everything up to date: costs what has changed, but no more than a look at each kind of node."""
        changed = roster.since(self._seen)
        if changed is None:
            self._begin(roster, look)
        else:
            for position in dict.fromkeys(changed):
                self._move(position, roster, look)
        self._seen = roster.changes

    def firsts(self, start: int, size: int) -> Sequence[tuple[int, list[int]]]:
        """Return every group with the position that is met first, going round from the start on, in that order."""
        met: list[tuple[int, int, list[int]]] = []
        for positions in self._groups.values():
            at = bisect_left(positions, start)
            position = positions[at] if at < len(positions) else positions[0]
            met.append(((position - start) % size, position, positions))
        met.sort(key=lambda one: one[0])
        return [(position, positions) for _, position, positions in met]

    def _begin(self, roster: Roster, look: Callable[[Cell], Look]) -> None:
        self._groups.clear()
        self._looks.clear()
        for cell in roster.cells.values():
            seen = look(cell)
            self._groups.setdefault(seen, []).extend(cell.positions)
            self._looks.update(dict.fromkeys(cell.positions, seen))
        for positions in self._groups.values():
            positions.sort()

    def _move(self, position: int, roster: Roster, look: Callable[[Cell], Look]) -> None:
        if position in self._looks:
            before = self._looks.pop(position)
            positions = self._groups[before]
            del positions[bisect_left(positions, position)]
            if not positions:
                del self._groups[before]
        member = roster.there(position)
        if member is not None:
            seen = self._looks[position] = look(member.cell)
            insort(self._groups.setdefault(seen, []), position)

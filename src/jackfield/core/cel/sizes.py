"""Ranges of sizes and costs, and how large the parts of a device can be.

Knows Kubernetes' arithmetic and limits. Must not know functions.
"""

import math
from typing import Final, Literal

import msgspec

LIMIT: Final = 2**64 - 1
TRAVERSAL: Final = 0.1
"""Per character of a string."""
PATTERN: Final = 0.25
"""Per character of a regular expression."""


class Range(msgspec.Struct, frozen=True):
    """From the least to the most; never more than 64 bits hold."""

    low: int
    high: int

    def __add__(self, other: "Range") -> "Range":
        return Range(min(self.low + other.low, LIMIT), min(self.high + other.high, LIMIT))

    def __mul__(self, other: "Range") -> "Range":
        return Range(min(self.low * other.low, LIMIT), min(self.high * other.high, LIMIT))

    def times(self, factor: float) -> "Range":
        """Return the product with a factor, rounded up, in floating point as Kubernetes computes it."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Return the least range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def _scaled(number: int, factor: float) -> int:
    return min(math.ceil(float(number) * factor), LIMIT)


def exactly(number: int) -> Range:
    """Return the range of one number."""
    return Range(number, number)


ONE: Final = exactly(1)
UNKNOWN: Final = Range(0, LIMIT)
EMPTY: Final = Range(LIMIT, 0)
"""The union of nothing."""


class Path:
    """The way from a variable to a part of it, kept as Go keeps it.

    Kubernetes appends to such paths without copying them. Where there is room left behind a path, all paths made
    from it share that room, and the last one written is what all of them read. Some costs are what they are by this.
    """

    __slots__ = ("_length", "_room")

    def __init__(self, room: list[str], length: int) -> None:
        self._room = room
        self._length = length

    def append(self, step: str) -> "Path":
        """Return the path with one step more."""
        if self._length < len(self._room):
            self._room[self._length] = step
            return Path(self._room, self._length + 1)
        room = [*self._room, step]
        room += [""] * (max(2 * self._length, 1) - len(room))
        return Path(room, self._length + 1)

    @property
    def steps(self) -> list[str]:
        """The steps as they stand now."""
        return self._room[: self._length]


class Part(msgspec.Struct, frozen=True):
    """A part of a device: how large it can be and what is in it."""

    size: int
    key: "Part | None" = None
    item: "Part | None" = None
    kind: Literal["", "attribute"] = ""


_ATTRIBUTE: Final = Part(64, kind="attribute")
_KEY: Final = Part(32)
_DOMAIN: Final = Part(63)
_FIELDS: Final = {
    "driver": Part(63),
    "allowMultipleAllocations": Part(1),
    "attributes": Part(32, _DOMAIN, Part(32, _KEY, _ATTRIBUTE)),
    "capacity": Part(32, _DOMAIN, Part(32, _KEY, Part(0))),
}


def size_at(path: Path | None) -> Range | None:
    """Return how large the part of a device at a path can be, where that is known."""
    steps = path.steps if path is not None else []
    if not steps or steps[0] != "device":
        return None
    if len(steps) == 1:
        return Range(0, 0)
    part = _FIELDS.get(steps[1])
    for step in steps[2:]:
        if part is None:
            return None
        part = _inside(part, step)
    return Range(0, part.size) if part is not None else None


def _inside(part: Part, step: str) -> Part | None:
    match step:
        case "@items" | "@values":
            return part.item
        case "@keys":
            return part.key
        case _:
            # A name says how large an attribute is, but, by an oversight, not how large a capacity is.
            return part.item if part.item is not None and part.item.kind == "attribute" else None

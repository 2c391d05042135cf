"""Why claims cannot be met, as a value.

Knows what there is to say, and how much of it at most. Must not know how it is found out, nor the sentences.
"""

from enum import StrEnum
from typing import Final

import msgspec

from jackfield.model.names import DeviceID, Key, NodeName

FITS: Final = "fits"
GROUPS_MAX: Final = 5
"""So many causes are told for a step, those of most devices; the devices of all others are counted together."""
NEAREST_MAX: Final = 3
"""So many devices are named that came nearest."""
TEXT_MAX: Final = 300
"""Expressions and values are cut to this length."""


class Step(StrEnum):
    """Where a device drops out, in this order."""

    NODE = "node"
    POOL = "pool"
    GATE = "gate"
    CLASS = "class"
    SELECTOR = "selector"
    FAULT = "fault"
    """A selector has no answer for it, or it cannot be read. The search ends there, should it come to it."""
    IN_USE = "in use"
    TAKEN = "taken"
    """By another request of the claims that are asked about."""
    COUNTER = "counter"
    TAINT = "taint"
    CONSTRAINT = "constraint"
    CAPACITY = "capacity"
    LIMIT = "limit"
    """It could be had, but not as many as are wanted by one claim."""


class Cause(msgspec.Struct, frozen=True):
    """What keeps a device from a request: a rule, what would satisfy it, and what was found instead."""

    step: Step
    rule: str = ""
    """The smallest part that says no: of an expression, of a node selector; a counter, capacity, taint, pool, gate."""
    wanted: str = ""
    seen: str = ""
    source: str = ""
    """Where the rule stands, if in the claim or its class: `selectors[0]`, `class gpu selectors[0]`."""


class Group(msgspec.Struct, frozen=True):
    """So many devices drop out for the same cause."""

    cause: Cause
    devices: int
    example: DeviceID
    """The first of them."""


class Removed(msgspec.Struct, frozen=True):
    """So many devices drop out at a step."""

    step: Step
    devices: int
    groups: tuple[Group, ...]
    more: int = 0
    """So many of them for causes that are not told."""


class Miss(msgspec.Struct, frozen=True):
    """A device that came near, and all that stands in its way: mostly one thing alone."""

    device: DeviceID
    causes: tuple[Cause, ...]


class RequestWhy(msgspec.Struct, frozen=True):
    """What became of all devices for one request, or one alternative of it, given those chosen for requests before.

    Every device is had, left or removed, and counted once.
    """

    claim: Key
    request: str
    """Its name, or `request/alternative`."""
    every: bool
    """Whether it asks for `All`."""
    wanted: int
    """How many devices; for `All` those that selectors mean."""
    had: int
    """So many it got when the search had got furthest."""
    left: int
    """So many others would have done as well."""
    removed: tuple[Removed, ...]
    stuck: bool
    """Whether this is the request that the search got no further than; one of its alternatives, where it has such."""
    nearest: tuple[Miss, ...]
    """The devices that came nearest to what is missing; none where nothing is missing, or where there are no others."""

    @property
    def devices(self) -> int:
        """How many devices were looked at."""
        return self.had + self.left + sum(one.devices for one in self.removed)

    @property
    def missing(self) -> int:
        """How many more are wanted; of `All` there must be one at least."""
        return max(self.wanted - self.had, int(self.stuck))


class Why(msgspec.Struct, frozen=True):
    """Why a node does not fit."""

    node: NodeName
    verdict: str
    """The reason, or the words of the error, or that it fits after all."""
    aborts: bool
    """Whether it is an error, which ends the scheduling cycle, whatever other nodes have to offer."""
    requests: tuple[RequestWhy, ...]

    @property
    def fits(self) -> bool:
        """Whether there is nothing to explain."""
        return self.verdict == FITS

    @property
    def stuck(self) -> tuple[RequestWhy, ...]:
        """The request that the search got no further than, or its alternatives."""
        return tuple(one for one in self.requests if one.stuck)


class NodesWhy(msgspec.Struct, frozen=True):
    """Nodes that do not fit for one main reason: the step at which the devices that came nearest dropped out."""

    reason: str
    nodes: int
    example: NodeName
    """The one of them that came nearest."""


class Everywhere(msgspec.Struct, frozen=True):
    """Why no node fits, or how many do."""

    nodes: int
    fitting: int
    reasons: tuple[NodesWhy, ...]
    """Most nodes first. Those that fit are not among them."""
    nearest: tuple[Why, ...]
    """The node that came nearest, looked at closely; none where there are no nodes, or where one fits."""


def cut(text: str) -> str:
    """Return the text, or its beginning where it is long."""
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"

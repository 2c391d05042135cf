"""How an attempt ends when it does not end well.

Knows the two bad endings: a node that does not fit, which is an answer, and a world nobody can allocate
from, which is an error. Must not know how either comes about.
"""

from enum import StrEnum

import msgspec


class AllocationError(Exception):
    """No node can be judged: a bad selector, an unknown class, a pool in mid-update that all of is wanted of.

    It ends the whole scheduling cycle, as upstream; trying another node would meet it again.
    """


class Reason(StrEnum):
    """Why a node does not fit."""

    DEVICES = "not enough usable devices"
    INVALID_POOLS = "invalid resource pools were encountered"
    SEARCH_LIMIT = "the search was given up"


class NoFit(msgspec.Struct, frozen=True):
    """The node does not fit; another may. `why` counts what is in the way."""

    reason: Reason

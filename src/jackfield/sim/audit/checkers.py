"""What only somebody sees who looks at hardware, at calls and at the API's history: the checkers beside `core.check`.

Knows their names and what each sees. Must not know how anything is found.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Checker(StrEnum):
    """Everything that the audit looks for itself; the rest is `core.check`'s."""

    ON_TWO_NODES = "on-two-nodes"
    PULLED_IN_USE = "pulled-in-use"
    ORDER_TWICE = "order-twice"
    ORDER_OF_NOBODY = "order-of-nobody"
    EFFECT_BEFORE_INTENT = "effect-before-intent"
    ASKED_TOO_SOON = "asked-too-soon"
    GONE_TOO_SOON = "gone-too-soon"
    LEASE_TOO_SHORT = "lease-too-short"
    DETACH_UNRELEASED = "detach-unreleased"
    FOREIGN_TOUCHED = "foreign-touched"
    TWO_WRITERS = "two-writers"
    WRITE_WITHOUT_CHANGE = "write-without-change"
    PREPARED_UNLENT = "prepared-unlent"
    VISIBLE_UNSEEN = "visible-unseen"
    RELEASED_IN_USE = "released-in-use"
    LET_GO_IN_USE = "let-go-in-use"
    REPEATED_BLINDLY = "repeated-blindly"
    FALSE_WAIT = "false-wait"
    WAITS_IN_VAIN = "waits-in-vain"
    POD_WAITS = "pod-waits"
    STORE_DIFFERS = "store-differs"
    KNOWLEDGE_WENT_BACK = "knowledge-went-back"
    BACKLOG = "backlog"
    OVERLOOKED = "overlooked"


MEANINGS: Final[Mapping[Checker, str]] = {
    Checker.ON_TWO_NODES: "A device stands on two nodes.",
    Checker.PULLED_IN_USE: "A device left its node while it was prepared there.",
    Checker.ORDER_TWICE: "An order was carried out a second time, by a manager that knows its id.",
    Checker.ORDER_OF_NOBODY: "An order took effect whose resource went before it was closed.",
    Checker.EFFECT_BEFORE_INTENT: "A manager was asked for what no object says yet.",
    Checker.ASKED_TOO_SOON: "A manager without order ids was asked again before it was quiet.",
    Checker.GONE_TOO_SOON: "A resource went while a call to a manager without ids may take effect.",
    Checker.LEASE_TOO_SHORT: "A manager without ids was asked by one whose lease may run out first.",
    Checker.DETACH_UNRELEASED: "A manager was asked to take a device that its node had not let go.",
    Checker.FOREIGN_TOUCHED: "What somebody else attached, or asked for, was changed.",
    Checker.TWO_WRITERS: "Two replicas took turns in asking one manager within one lease.",
    Checker.WRITE_WITHOUT_CHANGE: "Writes that changed nothing, more than lost answers explain.",
    Checker.PREPARED_UNLENT: "A device was prepared for a claim that the books do not lend it to.",
    Checker.VISIBLE_UNSEEN: "A resource says that its node sees a device, and the node does not.",
    Checker.RELEASED_IN_USE: "A resource says that its node let a device go, and it is prepared there.",
    Checker.LET_GO_IN_USE: "A resource says that nobody holds its device, and it is prepared there.",
    Checker.REPEATED_BLINDLY: "An attach was repeated although what it had brought stands there.",
    Checker.FALSE_WAIT: "Somebody waits, and nothing true is said about why.",
    Checker.WAITS_IN_VAIN: "A claim waits, and nothing has happened to its devices for long.",
    Checker.POD_WAITS: "A pod that could run does not, long after all trouble is over.",
    Checker.STORE_DIFFERS: "What our controllers know is not what the API has, though all was told long ago.",
    Checker.KNOWLEDGE_WENT_BACK: "A controller took an older version of an object for the newer one that it knew.",
    Checker.BACKLOG: "Work is still queued though nothing is left to do.",
    Checker.OVERLOOKED: "There is something to do, and no change woke whoever does it.",
}
"""What each has seen; all of them are here."""

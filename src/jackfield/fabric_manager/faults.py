"""Faults on demand: what shall go wrong, for which calls, how often.

Knows values, and counts what it is asked about; chance is handed in. Must not know how a fault is brought about: the
manager and the door do that. A fault is given a name when it is set and stays until it is cleared.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Literal, get_args

import msgspec

from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds

FAULTS_MAX: Final = 1000
SECONDS_MAX: Final = Seconds(3600.0)
STATUS_MIN, STATUS_MAX = 400, 599
WORD_MAX: Final = 63
NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
NUMBERED: Final = re.compile(r"fault-(\d{1,9})")


class Kind(StrEnum):
    """What goes wrong."""

    FAIL = "fail"
    """The work fails, with a reason."""
    HANG = "hang"
    """The work does not end until the fault is cleared, or for so many seconds."""
    SUSPEND = "suspend"
    """The work stops until the fault is cleared, and nothing new is begun meanwhile."""
    PRETEND = "pretend"
    """The work is reported as done, and nothing was moved."""
    WRONG = "wrong"
    """An attach gets a device of another model than was meant."""
    SWAP = "swap"
    """An attach gets another device than was meant, of the same model."""
    ASTRAY = "astray"
    """An attach ends on another machine than was meant."""
    VANISH = "vanish"
    """The device is gone, wherever it was, until the fault is cleared."""
    ILL = "ill"
    """The device is shown as not healthy and is not given out."""
    CUT = "cut"
    """The machine is cut off: neither it nor what is on it is shown, and work for it waits."""
    STALE = "stale"
    """What is shown is as old as the fault, or so many seconds old."""
    QUOTA = "quota"
    """An attach fails while so many devices are held already."""
    LOST = "lost"
    """The call is carried out, and its answer never comes: the connection breaks."""
    LATE = "late"
    """The call is carried out, and its answer comes so many seconds later."""
    STATUS = "status"
    """The call is not carried out and answered with this status."""
    UNAUTHORIZED = "unauthorized"
    """The call is turned away as if its token were not accepted."""


STANDING: Final = (Kind.VANISH, Kind.ILL, Kind.CUT, Kind.STALE, Kind.QUOTA)
"""States of the fabric; no call is needed for them, and none is counted."""
WORK: Final = (Kind.FAIL, Kind.HANG, Kind.SUSPEND, Kind.PRETEND)
HOLDING: Final = (Kind.HANG, Kind.SUSPEND)
"""These keep the work that they struck."""
CHOICE: Final = (Kind.WRONG, Kind.SWAP, Kind.ASTRAY)
WIRE: Final = (Kind.LOST, Kind.LATE, Kind.STATUS, Kind.UNAUTHORIZED)

Verb = Literal[
    "attach", "detach", "inventory", "token",  # all, or most
    "reserve",  # redfish
    "layout-apply", "jobs", "cancel", "resume", "delete",  # nec; the third is Liqid's too
    "edit", "reprogram",  # liqid
]  # fmt: skip
"""What a call is, by whatever protocol."""
VERBS: Final[tuple[str, ...]] = get_args(Verb)


class Call(msgspec.Struct, frozen=True):
    """What is about to be done, and to what."""

    face: str
    verb: Verb
    device: PhysicalID = PhysicalID("")
    node: NodeName = NodeName("")
    order: OrderID = OrderID("")


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault, the calls it is for (all that agree with what is set), and how often."""

    kind: Kind
    id: str = ""
    """Its name; given to it if it has none. Setting one of the same name anew replaces it."""
    face: str = ""
    verb: str = ""
    device: PhysicalID = PhysicalID("")
    node: NodeName = NodeName("")
    order: OrderID = OrderID("")
    after: int = 0
    """So many calls pass first."""
    times: int = 0
    """So many calls are hit then; 0 is all of them."""
    likely: float = 1.0
    """How likely a call is hit that would be."""
    status: int = 503
    seconds: Seconds = Seconds(0.0)
    """LATE: how late; STATUS: what Retry-After says; HANG: how much longer; STALE: how old."""
    limit: int = 0
    """QUOTA: so many devices may be held."""
    reason: str = ""
    seen: int = 0
    """Calls that agreed so far."""
    since: Seconds = Seconds(0.0)
    """When it was set."""
    holds: tuple[OrderID, ...] = ()
    """The orders whose work it keeps."""


NEEDS: Final[Mapping[Kind, str]] = {
    Kind.VANISH: "device",
    Kind.ILL: "device",
    Kind.CUT: "node",
    Kind.LATE: "seconds",
}


def wrong(fault: Fault) -> str:
    """Return what is wrong with a fault that somebody wants; empty if it can be set."""
    needed = NEEDS.get(fault.kind)
    if needed and not getattr(fault, needed):
        return f"{fault.kind} needs {'seconds' if needed == 'seconds' else f'a {needed}'}"
    if fault.verb and fault.verb not in VERBS:
        return f"there is no verb {fault.verb[:WORD_MAX]!r}; there are {', '.join(VERBS)}"
    if fault.id and not NAME.fullmatch(fault.id):
        return "id must be 1 to 63 lower case letters, digits and hyphens"
    if min(fault.after, fault.times, fault.limit) < 0:
        return "after, times and limit must not be negative"
    if not 0 < fault.likely <= 1:
        return "likely must be more than 0 and at most 1"
    if not STATUS_MIN <= fault.status <= STATUS_MAX:
        return f"status must be {STATUS_MIN} to {STATUS_MAX}"
    if not 0 <= fault.seconds <= SECONDS_MAX:
        return f"seconds must be 0 to {SECONDS_MAX:g}"
    return ""


def concerns(fault: Fault, call: Call) -> bool:
    """Whether a call agrees with all that the fault names."""
    return all(
        not wanted or wanted == found
        for wanted, found in (
            (fault.face, call.face),
            (fault.verb, call.verb),
            (fault.device, call.device),
            (fault.node, call.node),
            (fault.order, call.order),
        )
    )


def strikes(fault: Fault) -> bool:
    """Whether the last call that it saw is hit."""
    return fault.seen > fault.after and (not fault.times or fault.seen <= fault.after + fault.times)


Keep = Callable[[str, Fault | None], None]
"""Remembers a fault, or forgets it, across restarts."""


class Faults:
    """All faults that are set, in the order they came."""

    def __init__(self, known: Mapping[str, Fault], keep: Keep, generator: random.Random) -> None:
        self._faults = dict(known)
        self._keep = keep
        self._generator = generator

    def __iter__(self) -> Iterator[Fault]:
        yield from self._faults.values()

    def __len__(self) -> int:
        return len(self._faults)

    def get(self, name: str) -> Fault | None:
        """Return the fault of that name."""
        return self._faults.get(name)

    def set(self, fault: Fault) -> Fault:
        """Set it; return it with its name, and as one that nothing has met yet."""
        numbers = (NUMBERED.fullmatch(name) for name in self._faults)
        last = max((int(found[1]) for found in numbers if found), default=0)
        named = msgspec.structs.replace(fault, id=fault.id or f"fault-{last + 1}", seen=0, holds=())
        self._put(named)
        return named

    def clear(self, name: str) -> Fault | None:
        """Clear it; return it as it was."""
        known = self._faults.pop(name, None)
        if known is not None:
            self._keep(name, None)
        return known

    def met(self, call: Call, kinds: tuple[Kind, ...]) -> Fault | None:
        """Return what befalls a call, if anything: the first that strikes. Those before it have seen it too."""
        for fault in tuple(self._faults.values()):
            if fault.kind in kinds and concerns(fault, call):
                seen = msgspec.structs.replace(fault, seen=fault.seen + 1)
                self._put(seen)
                if strikes(seen) and self._generator.random() < seen.likely:
                    return seen
        return None

    def on(self, device: PhysicalID, kind: Kind) -> bool:
        """Whether the device is in such a state."""
        return any(fault.device == device and fault.kind is kind for fault in self._faults.values())

    def cut(self, node: NodeName) -> bool:
        """Whether the machine is cut off."""
        return any(fault.node == node and fault.kind is Kind.CUT for fault in self._faults.values())

    def stale(self, face: str) -> tuple[Fault, ...]:
        """Return by what this face is shown something old."""
        return tuple(one for one in self if one.kind is Kind.STALE and one.face in {"", face})

    # --- work that is kept

    def hold(self, name: str, order: OrderID) -> None:
        """Keep the work of an order until the fault is cleared, across restarts too."""
        fault = self._faults[name]
        if order not in fault.holds:
            self._put(msgspec.structs.replace(fault, holds=(*fault.holds, order)))

    def keeper(self, order: OrderID) -> Fault | None:
        """Return the fault that keeps the work of an order."""
        return next((fault for fault in self._faults.values() if order in fault.holds), None)

    @property
    def suspended(self) -> Fault | None:
        """The fault that stopped all work until somebody clears it."""
        return next((one for one in self if one.kind is Kind.SUSPEND and one.holds), None)

    def _put(self, fault: Fault) -> None:
        self._faults[fault.id] = fault
        self._keep(fault.id, fault)

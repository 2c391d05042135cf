"""The kinds of dynamic resource allocation.

Knows their columns and the states of a claim. Must not know how a claim gets from one to the next.
"""

from typing import Final

from jackfield.cluster.tables.ages import age
from jackfield.cluster.tables.column import AGE, NAME, Column, Printer, Shown, as_shown, column
from jackfield.codec.wire import RawValue
from jackfield.model.meta import Wire
from jackfield.model.names import Seconds


class _ClaimStatus(Wire, frozen=True, gc=False):
    allocation: RawValue = None
    reserved_for: list[RawValue] = []


class _Claim(Shown, frozen=True, gc=False):
    status: _ClaimStatus = _ClaimStatus()


class _Pool(Wire, frozen=True, gc=False):
    name: str = ""


class _SliceSpec(Wire, frozen=True, gc=False):
    node_name: str = ""
    driver: str = ""
    pool: _Pool = _Pool()


class _Slice(Shown, frozen=True, gc=False):
    spec: _SliceSpec = _SliceSpec()


class _Taint(Wire, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class _RuleSpec(Wire, frozen=True, gc=False):
    taint: _Taint = _Taint()


class _Rule(Shown, frozen=True, gc=False):
    spec: _RuleSpec = _RuleSpec()


def _state(claim: _Claim) -> str:
    deleted = claim.metadata.deletion_timestamp is not None
    allocated = claim.status.allocation is not None
    states = {
        "deleted": deleted,
        "pending": not allocated and not deleted,
        "allocated": allocated,
        "reserved": allocated and len(claim.status.reserved_for) > 0,
    }
    return ",".join(name for name, holds in states.items() if holds)


def _added(rule: _Rule, now: Seconds) -> str:
    added = rule.spec.taint.time_added
    return age(added, now) if added else ""


RESOURCE_CLAIM: Final = Printer[_Claim](as_shown(_Claim), (NAME, column("State", _state), AGE))
RESOURCE_SLICE: Final = Printer[_Slice](
    as_shown(_Slice),
    (
        NAME,
        column("Node", lambda one: one.spec.node_name),
        column("Driver", lambda one: one.spec.driver),
        column("Pool", lambda one: one.spec.pool.name),
        AGE,
    ),
)
DEVICE_TAINT_RULE: Final = Printer[_Rule](
    as_shown(_Rule),
    (
        NAME,
        column("Key", lambda one: one.spec.taint.key),
        column("Value", lambda one: one.spec.taint.value),
        column("Effect", lambda one: one.spec.taint.effect),
        Column("TimeAdded", _added),
        AGE,
    ),
)

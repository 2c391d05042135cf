"""What is wrong with a Namespace, a Node, an Event or a Lease.

Knows as much of core/v1 as keeps nonsense out. Must not know DRA.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import Change, named, one_of, unique
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.namespace import ACTIVE, TERMINATING, Namespace
from jackfield.model.node import Node, Taint

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MESSAGE_BYTES_MAX: Final = 1024


def namespace(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a namespace: it is what it is until it goes, and then nothing else."""
    new = change.new
    assert isinstance(new, Namespace)
    if change.old is not None and change.status:
        phase = TERMINATING if new.deleting else ACTIVE
        if new.status.phase != phase:
            is_empty = "not empty" if new.deleting else "empty"
            words = f"may only be '{phase}' if `deletionTimestamp` is {is_empty}"
            yield errors.invalid_value("status.Phase", new.status.phase, words)


def node(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a node."""
    new = change.new
    assert isinstance(new, Node)
    if change.wants:
        yield from _taints(new.spec.taints)
        if isinstance(change.old, Node):
            yield from _settled_once(change.old, new)
    if change.status:
        yield from _amounts("status.capacity", new.status.capacity)
        yield from _amounts("status.allocatable", new.status.allocatable)
        yield from unique("status.conditions", [one.type for one in new.status.conditions], ".type")


def _taints(taints: tuple[Taint, ...]) -> Iterator[Cause]:
    """Yield what is wrong with taints, which the API server takes for metadata."""
    seen: dict[tuple[str, str], None] = {}
    for index, one in enumerate(taints):
        at = f"metadata.taints[{index}]"
        yield from named(f"{at}.key", one.key, formats.qualified)
        wrong = ";".join(formats.label_value(one.value))
        if wrong:
            yield errors.invalid_value(f"{at}.value", one.value, wrong)
        if not one.effect:
            yield errors.required(f"{at}.effect")
        else:
            yield from one_of(f"{at}.effect", one.effect, TAINT_EFFECTS)
        if (one.key, one.effect) in seen:
            shown = {
                "Key": one.key,
                "Value": one.value,
                "Effect": one.effect,
                "TimeAdded": one.time_added or None,
            }
            twice = errors.duplicate(at, shown)
            words = f"{twice.message}: taints must be unique by key and effect pair"
            yield Cause(at, words, twice.reason)
        seen[one.key, one.effect] = None


def _settled_once(old: Node, new: Node) -> Iterator[Cause]:
    before, after = old.spec.provider_id, new.spec.provider_id
    if before and before != after:
        words = 'node updates may not change providerID except from "" to valid'
        yield errors.forbidden("spec.providerID", words)


def event(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with an event."""
    new = change.new
    assert isinstance(new, Event)
    namespace = new.involved_object.namespace
    if new.metadata.namespace != (namespace or "default"):
        yield errors.invalid_value(
            "involvedObject.namespace",
            namespace,
            "does not match event.namespace",
        )
    if len(new.message.encode()) > MESSAGE_BYTES_MAX:
        yield errors.too_long("message", MESSAGE_BYTES_MAX)


def lease(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a lease."""
    new = change.new
    assert isinstance(new, Lease)
    written = change.raw.get("spec", {})
    if "leaseDurationSeconds" in written and new.spec.lease_duration_seconds <= 0:
        yield errors.invalid_value(
            "spec.leaseDurationSeconds", new.spec.lease_duration_seconds, "must be greater than 0"
        )
    if new.spec.lease_transitions < 0:
        yield errors.invalid_value(
            "spec.leaseTransitions", new.spec.lease_transitions, "must be greater than or equal to 0"
        )


def _amounts(field: str, amounts: Mapping[str, str]) -> Iterator[Cause]:
    for name, amount in amounts.items():
        yield from named(f"{field}[{name}]", amount, formats.amount)

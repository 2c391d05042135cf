"""What the devices of one claim must have in common, or not.

Knows the two kinds of constraint and how far each has been used up by the devices chosen so far. Must not
know who chooses them.
"""

from typing import Protocol

from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.offers import Entry, Value
from jackfield.model.claim import DeviceConstraint


class Constraint(Protocol):
    """A constraint in the course of a search."""

    monotone: bool
    """Whether a device that is refused stays refused while more are added."""

    @property
    def values(self) -> tuple[Value, ...]:
        """What the next device is compared with."""

    def allows(self, entry: Entry) -> bool:
        """Return whether the device may be added now."""

    def add(self, entry: Entry, request: str) -> None:
        """Count the device, which must be allowed."""

    def remove(self, request: str) -> None:
        """Take back the last device that was added."""


class Match:
    """All devices share a value of an attribute."""

    monotone = True

    def __init__(self, attribute: str, *, lists: bool) -> None:
        self._attribute = attribute
        self._lists = lists
        self._common: list[Value] = []
        """What all devices up to each share; the last one counts."""

    @property
    def values(self) -> tuple[Value, ...]:
        """What all devices share so far."""
        return tuple(self._common[-1:])

    def allows(self, entry: Entry) -> bool:
        """Return whether the device has the value; the first one may have any."""
        value = entry.value(self._attribute, lists=self._lists)
        if value is None or not self._common:
            return value is not None
        common = self._common[-1]
        return value.kind == common.kind and not value.values.isdisjoint(common.values)

    def add(self, entry: Entry, request: str) -> None:  # noqa: ARG002 - the other kind needs the request
        """Keep what the device shares with those before."""
        value = entry.value(self._attribute, lists=self._lists)
        assert value is not None
        if self._common:
            value = Value(value.kind, value.values & self._common[-1].values)
        self._common.append(value)

    def remove(self, request: str) -> None:  # noqa: ARG002 - the other kind needs the request
        """Go back to what was shared before."""
        self._common.pop()


class Distinct:
    """No two devices share a value of an attribute."""

    monotone = True

    def __init__(self, attribute: str, *, lists: bool) -> None:
        self._attribute = attribute
        self._lists = lists
        self._values: list[Value] = []

    @property
    def values(self) -> tuple[Value, ...]:
        """What devices have that were added."""
        return tuple(self._values)

    def allows(self, entry: Entry) -> bool:
        """Return whether nobody has the device's value."""
        value = entry.value(self._attribute, lists=self._lists)
        return value is not None and _differs(value, self._values)

    def add(self, entry: Entry, request: str) -> None:  # noqa: ARG002 - 1.36 needs the request
        """Keep the device's value."""
        value = entry.value(self._attribute, lists=self._lists)
        assert value is not None
        self._values.append(value)

    def remove(self, request: str) -> None:  # noqa: ARG002 - 1.36 needs the request
        """Give up the last value."""
        self._values.pop()


class DistinctByRequest:
    """The same as 1.36 has it: one value a request.

    The second device of a request replaces the value of the first, and going back forgets the request
    altogether, so that equal values can come together. Mirrored, since a claim must get offline what it gets in
    the cluster.
    """

    monotone = False

    def __init__(self, attribute: str, *, lists: bool) -> None:
        self._attribute = attribute
        self._lists = lists
        self._values: dict[str, Value] = {}
        self._devices = 0

    @property
    def values(self) -> tuple[Value, ...]:
        """What is remembered of devices that were added."""
        return tuple(self._values.values())

    def allows(self, entry: Entry) -> bool:
        """Return whether no remembered value equals the device's."""
        value = entry.value(self._attribute, lists=self._lists)
        if value is None or not self._devices:
            return value is not None
        return _differs(value, list(self._values.values()))

    def add(self, entry: Entry, request: str) -> None:
        """Remember the value as the request's only one."""
        value = entry.value(self._attribute, lists=self._lists)
        assert value is not None
        self._values[request] = value
        self._devices += 1

    def remove(self, request: str) -> None:
        """Forget the request's value."""
        self._values.pop(request, None)
        self._devices -= 1


def _differs(value: Value, others: list[Value]) -> bool:
    if others and not value.kind:
        return False
    return all(value.kind != other.kind or value.values.isdisjoint(other.values) for other in others)


def constraint(spec: DeviceConstraint, features: Features) -> Constraint:
    """Return the constraint, unused."""
    lists = features.list_attributes
    if spec.match_attribute:
        return Match(spec.match_attribute, lists=lists)
    if features.profile is Profile.V1_36:
        return DistinctByRequest(spec.distinct_attribute, lists=lists)
    return Distinct(spec.distinct_attribute, lists=lists)

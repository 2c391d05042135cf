"""An attempt that says what exactly stands in the way of a device that selectors mean.

Knows the amounts, taints and values behind each obstacle. Must not know rules of its own: there is a cause exactly
where `obstacle` finds something.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from jackfield.core.allocate import capacity
from jackfield.core.allocate.attempt import EFFECTS, Attempt, tolerates
from jackfield.core.allocate.features import Features
from jackfield.core.allocate.offers import Entry, Value
from jackfield.core.allocate.pools import Candidate
from jackfield.core.allocate.reasons import Cause, Step, cut
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.usage import Usage
from jackfield.model.claim import ResourceClaim
from jackfield.model.device import DeviceTaint
from jackfield.model.names import DeviceID, Key
from jackfield.model.quantity import Format, Quantity, parse

PARTITIONS: Final = "DRAPartitionableDevices"
_BILLIONTHS: Final = -9

Holders: TypeAlias = Mapping[DeviceID, tuple[Key, ...]]
"""Which claims hold a device, whole or in part, as far as that is known."""
NOBODY: Final[Holders] = {}


def holders(claims: Sequence[ResourceClaim]) -> Holders:
    """Return who holds which device. Admin access holds nothing."""
    found: dict[DeviceID, dict[Key, None]] = {}
    for claim in claims:
        for one in claim.results:
            if not one.admin_access:
                found.setdefault(one.id, {})[claim.key] = None
    return {device: tuple(keys) for device, keys in found.items()}


class Trial(Attempt):
    """An attempt, asked for its reasons."""

    def __init__(self, wishes: Sequence[Wish], usage: Usage, features: Features, known: Holders) -> None:
        super().__init__(wishes, usage, features)
        self._known = known

    def causes(self, claim: int, ask: Ask, one: Candidate) -> Iterator[Cause]:
        """Yield all that keeps the device from the request, in the order in which it is looked at."""
        entry = one.entry
        if self.busy(claim, ask, one):
            yield self._holder(claim, ask, one)
        if entry.device.consumes_counters and not self._counters_suffice(one):
            yield from self._shortages(one)
        if self._tainted(ask, entry):
            yield from self._taints(ask, entry)
        if ask.constraints:
            yield from self._refusals(claim, ask, entry)
        if self._features.consumable_capacity and not self.capacity_suffices(ask, entry):
            used = (self._usage.used(entry), *self._shares.get(entry, ()))
            for lack in capacity.shortfalls(entry, ask, *used):
                yield Cause(Step.CAPACITY, lack.name, lack.wanted, lack.had)

    def causes_outside(self, ask: Ask, entry: Entry) -> Iterator[Cause]:
        """Yield what keeps a device from the request that is in no pool of this node."""
        if not ask.admin and entry.id in self._usage.allocated.devices:
            yield self._in_use(entry)
        if self._tainted(ask, entry):
            yield from self._taints(ask, entry)

    def _holder(self, claim: int, ask: Ask, one: Candidate) -> Cause:
        if not ask.admin and one.entry in self._usage.held(one.pool):
            return self._in_use(one.entry)
        placed = [each for each in self.placed if each.candidate.entry is one.entry]
        taken = next(each for each in placed if each.claim == claim or not ask.admin)
        return Cause(Step.TAKEN, seen=f"claim {taken.ask.claim.key}, request {taken.ask.name}")

    def _in_use(self, entry: Entry) -> Cause:
        known = self._known.get(entry.id, ())
        return Cause(Step.IN_USE, seen=cut(f"claim {', '.join(map(str, known))}") if known else "")

    def _shortages(self, one: Candidate) -> Iterator[Cause]:
        if not self._features.partitionable_devices:
            yield Cause(Step.GATE, PARTITIONS, "on", "off")
            return
        remaining = self._usage.remaining(one.pool).counters
        taken = self._counters.get(one.pool, {})
        texts = _amounts(one.entry)
        wanted: dict[tuple[str, str], int] = {}
        for counter, amount in one.entry.consumption:
            wanted[counter] = wanted.get(counter, 0) + amount
        if self._usage.remaining(one.pool).overdrawn:
            # Then no device that counts can be had, whatever it needs itself.
            wanted |= {counter: wanted.get(counter, 0) for counter, left in remaining.items() if left < 0}
        for counter, amount in wanted.items():
            left = remaining[counter] - taken.get(counter, 0)
            if left < amount:
                form = texts.get(counter, Format.BINARY_SI)
                total = _text(one.pool.counters[counter], form)
                yield Cause(
                    Step.COUNTER,
                    "/".join(counter),
                    _text(amount, form),
                    f"{_text(left, form)} left of {total}",
                )

    def _taints(self, ask: Ask, entry: Entry) -> Iterator[Cause]:
        for taint in entry.device.taints:
            if taint.effect in EFFECTS and not any(tolerates(one, taint) for one in ask.tolerations):
                yield Cause(Step.TAINT, _spelt(taint))

    def _refusals(self, claim: int, ask: Ask, entry: Entry) -> Iterator[Cause]:
        for index in ask.constraints:
            constraint = self._constraints[claim][index]
            if not constraint.allows(entry):
                spec = ask.claim.spec.devices.constraints[index]
                attribute = spec.match_attribute or spec.distinct_attribute
                kind = "matchAttribute" if spec.match_attribute else "distinctAttribute"
                value = entry.value(attribute, lists=self._features.list_attributes)
                others = " and ".join(dict.fromkeys(map(_shown, constraint.values)))
                wanted = others if spec.match_attribute or not others else f"other than {others}"
                seen = "absent" if value is None else _shown(value)
                source = f"constraints[{index}]"
                yield Cause(
                    Step.CONSTRAINT, f"{kind} {attribute}", cut(wanted or "any value"), cut(seen), source
                )


def _amounts(entry: Entry) -> dict[tuple[str, str], Format]:
    return {
        (one.counter_set, name): parse(counter.value).format
        for one in entry.device.consumes_counters
        for name, counter in one.counters.items()
    }


def _text(nano: int, form: Format) -> str:
    return str(Quantity(nano, nano, _BILLIONTHS, form))


def _spelt(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _shown(value: Value) -> str:
    found = sorted(f'"{one}"' if isinstance(one, str) else str(one).lower() for one in value.values)
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"

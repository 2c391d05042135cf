"""One attempt to serve claims on one node: the devices chosen so far, and what they leave.

Knows every rule about whether one more device may be chosen. Must not know in which order devices are
tried.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Final

from jackfield.core.allocate import capacity
from jackfield.core.allocate.constraints import Constraint, constraint
from jackfield.core.allocate.features import Features
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.pools import Candidate, Pool
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.usage import Usage
from jackfield.model.claim import DeviceToleration
from jackfield.model.device import DeviceTaint
from jackfield.model.quantity import Quantity

EFFECTS: Final = frozenset(("NoSchedule", "NoExecute"))
"""The effects of taints that keep a device from being given."""


class Obstacle(StrEnum):
    """Why a device that selectors mean cannot be given to a request."""

    IN_USE = "in use"
    COUNTER = "counters used up"
    TAINT = "tainted"
    CONSTRAINT = "constraint"
    CAPACITY = "capacity"


class Placement:
    """A device chosen for a request."""

    __slots__ = ("ask", "candidate", "claim", "consumed", "paid")

    def __init__(self, claim: int, ask: Ask, candidate: Candidate) -> None:
        self.claim = claim
        self.ask = ask
        self.candidate = candidate
        self.consumed: Mapping[str, Quantity] = {}
        self.paid = False
        """Whether this placement took the device's counters."""


class Attempt:
    """Devices chosen so far; the last one can be taken back."""

    def __init__(self, wishes: Sequence[Wish], usage: Usage, features: Features) -> None:
        self.placed: list[Placement] = []
        self.per_claim = [0] * len(wishes)
        self.checks = 0
        """How often a device was looked at: the measure of what a search costs."""
        self._usage = usage
        self._features = features
        self._constraints: list[tuple[Constraint, ...]] = [
            tuple(constraint(one, features) for one in wish.claim.spec.devices.constraints) for wish in wishes
        ]
        self._holders: dict[Entry, list[int]] = {}
        self._counters: dict[Pool, dict[tuple[str, str], int]] = {}
        self._shares: dict[Entry, list[Mapping[str, Quantity]]] = {}

    # --- questions

    def busy(self, claim: int, ask: Ask, candidate: Candidate) -> bool:
        """Return whether this attempt or a claim has the device. Admin access minds only its own claim."""
        holders = self._holders.get(candidate.entry)
        if ask.admin:
            return bool(holders) and claim in (holders or ())
        return bool(holders) or candidate.entry in self._usage.held(candidate.pool)

    def obstacle(self, claim: int, ask: Ask, candidate: Candidate) -> Obstacle | None:
        """Return what keeps the device from the request now; None where nothing does."""
        self.checks += 1
        entry = candidate.entry
        if self.busy(claim, ask, candidate):
            return Obstacle.IN_USE
        if entry.device.consumes_counters and not self._counters_suffice(candidate):
            return Obstacle.COUNTER
        if self._tainted(ask, entry):
            return Obstacle.TAINT
        if ask.constraints and self._refusing(claim, ask, entry) is not None:
            return Obstacle.CONSTRAINT
        if self._features.consumable_capacity and not self.capacity_suffices(ask, entry):
            return Obstacle.CAPACITY
        return None

    def hopeless(self, claim: int, ask: Ask, candidate: Candidate) -> bool:
        """Return whether the device can be given neither now nor after more devices were chosen."""
        found = self.obstacle(claim, ask, candidate)
        if found is not Obstacle.CONSTRAINT:
            return found is not None
        constraints = self._constraints[claim]
        return any(
            constraints[index].monotone and not constraints[index].allows(candidate.entry)
            for index in ask.constraints
        ) or (self._features.consumable_capacity and not self.capacity_suffices(ask, candidate.entry))

    def capacity_suffices(self, ask: Ask, entry: Entry) -> bool:
        """Return whether the device has, and has left, what the request would use."""
        if not ask.capacity_key and not entry.device.capacity:
            return True
        wanted = capacity.demand(entry, ask)
        if wanted is None:
            return False
        return capacity.fits(entry, wanted, self._usage.used(entry), *self._shares.get(entry, ()))

    def _counters_suffice(self, candidate: Candidate) -> bool:
        if not self._features.partitionable_devices:
            return False
        if self._has_paid(candidate.entry):
            return True
        remaining = self._usage.remaining(candidate.pool)
        taken = self._counters.get(candidate.pool, {})
        wanted: dict[tuple[str, str], int] = {}
        for counter, amount in candidate.entry.consumption:
            wanted[counter] = wanted.get(counter, 0) + amount
        return not remaining.overdrawn and all(
            remaining.counters[counter] >= taken.get(counter, 0) + amount
            for counter, amount in wanted.items()
        )

    def _has_paid(self, entry: Entry) -> bool:
        return entry.shareable and (self._usage.shared(entry) or bool(self._shares.get(entry)))

    def _tainted(self, ask: Ask, entry: Entry) -> bool:
        taints = entry.device.taints
        if not taints or not self._features.device_taints:
            return False
        return any(
            taint.effect in EFFECTS and not any(tolerates(one, taint) for one in ask.tolerations)
            for taint in taints
        )

    def _refusing(self, claim: int, ask: Ask, entry: Entry) -> int | None:
        constraints = self._constraints[claim]
        return next((index for index in ask.constraints if not constraints[index].allows(entry)), None)

    # --- moves

    def refuse(self, claim: int, ask: Ask, candidate: Candidate) -> None:
        """Do what 1.36 does to the constraints before the refusing one: add the device and take it back.

        Only its distinctAttribute notices.
        """
        refusing = self._refusing(claim, ask, candidate.entry)
        for index in takewhile(lambda index: index != refusing, ask.constraints):
            one = self._constraints[claim][index]
            if not one.monotone:
                one.add(candidate.entry, ask.request)
                one.remove(ask.request)

    def place(self, claim: int, ask: Ask, candidate: Candidate) -> None:
        """Choose the device, to which there must be no obstacle."""
        entry = candidate.entry
        placement = Placement(claim, ask, candidate)
        if entry.device.consumes_counters and not self._has_paid(entry):
            placement.paid = True
            self._pay(candidate, 1)
        for index in ask.constraints:
            self._constraints[claim][index].add(entry, ask.request)
        if entry.shareable:
            placement.consumed = capacity.demand(entry, ask) or {}
            self._shares.setdefault(entry, []).append(placement.consumed)
        else:
            # Also for admin access: a later request of the same attempt does not get the device any more.
            self._holders.setdefault(entry, []).append(claim)
        self.per_claim[claim] += 1
        self.placed.append(placement)

    def undo(self) -> None:
        """Take back the device chosen last."""
        placement = self.placed.pop()
        claim, ask, candidate = placement.claim, placement.ask, placement.candidate
        self.per_claim[claim] -= 1
        if candidate.entry.shareable:
            self._shares[candidate.entry].pop()
        else:
            self._holders[candidate.entry].pop()
        for index in ask.constraints:
            self._constraints[claim][index].remove(ask.request)
        if placement.paid:
            self._pay(candidate, -1)

    def _pay(self, candidate: Candidate, sign: int) -> None:
        taken = self._counters.setdefault(candidate.pool, {})
        for counter, amount in candidate.entry.consumption:
            taken[counter] = taken.get(counter, 0) + sign * amount


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration is for the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False

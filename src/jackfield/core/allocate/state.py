"""What claims hold already.

Knows what an allocation takes away from others: a device, or a share of one. Must not know what is on
offer.
"""

from collections.abc import Iterable, Mapping

import msgspec

from jackfield.model import quantity
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.names import DeviceID
from jackfield.model.quantity import Quantity


class Allocated(msgspec.Struct, frozen=True):
    """What claims hold: whole devices, shares of devices, and how much the shares use up."""

    devices: frozenset[DeviceID] = frozenset()
    shared: frozenset[tuple[DeviceID, str]] = frozenset()
    capacity: Mapping[DeviceID, Mapping[str, Quantity]] = {}

    def plus(self, claim: ResourceClaim) -> "Allocated":
        """Return the state with one more claim; costs a copy of the sets, not another look at all claims."""
        whole, shares = _parts(claim)
        if not shares:
            return Allocated(self.devices.union(one.id for one in whole), self.shared, self.capacity)
        capacity = {device: dict(used) for device, used in self.capacity.items()}
        for one in shares:
            _consume(capacity, one)
        return Allocated(
            self.devices.union(one.id for one in whole),
            self.shared.union((one.id, one.share_id) for one in shares),
            capacity,
        )

    def minus(self, claim: ResourceClaim) -> "Allocated":
        """Return the state without a claim that `plus` or `allocated` counted."""
        whole, shares = _parts(claim)
        devices = self.devices.difference(one.id for one in whole)
        if not shares:
            return Allocated(devices, self.shared, self.capacity)
        shared = self.shared.difference((one.id, one.share_id) for one in shares)
        capacity = {device: dict(used) for device, used in self.capacity.items()}
        for one in shares:
            _give_back(capacity, one)
        return Allocated(devices, shared, capacity)


def allocated(claims: Iterable[ResourceClaim]) -> Allocated:
    """Return what these claims hold. Admin access holds nothing."""
    devices: list[DeviceID] = []
    shared: list[tuple[DeviceID, str]] = []
    capacity: dict[DeviceID, dict[str, Quantity]] = {}
    for claim in claims:
        whole, shares = _parts(claim)
        devices.extend(one.id for one in whole)
        for one in shares:
            shared.append((one.id, one.share_id))
            _consume(capacity, one)
    return Allocated(frozenset(devices), frozenset(shared), capacity)


def _parts(
    claim: ResourceClaim,
) -> tuple[list[DeviceRequestAllocationResult], list[DeviceRequestAllocationResult]]:
    held = [one for one in claim.results if not one.admin_access]
    return [one for one in held if not one.share_id], [one for one in held if one.share_id]


def _consume(capacity: dict[DeviceID, dict[str, Quantity]], share: DeviceRequestAllocationResult) -> None:
    if not share.consumed_capacity:
        return
    used = capacity.setdefault(share.id, {})
    for name, text in share.consumed_capacity.items():
        used[name] = used.get(name, quantity.ZERO) + quantity.parse(text)


def _give_back(capacity: dict[DeviceID, dict[str, Quantity]], share: DeviceRequestAllocationResult) -> None:
    used = capacity.get(share.id)
    if used is None:
        return
    for name, text in share.consumed_capacity.items():
        used[name] = used.get(name, quantity.ZERO) - quantity.parse(text)
    if not any(amount.sign > 0 for amount in used.values()):
        del capacity[share.id]

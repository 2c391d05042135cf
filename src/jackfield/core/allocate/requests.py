"""What claims ask for, read once and the same for every node.

Knows requests, alternatives and their classes, and what makes a claim impossible to read. Must not know
devices.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from jackfield.core.allocate.features import Features
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.selectors import Fault, Matcher, Selectors
from jackfield.model import quantity
from jackfield.model.claim import (
    CapacityRequirements,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from jackfield.model.names import DeviceID
from jackfield.model.quantity import Quantity
from jackfield.model.slice import DeviceClass

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"


class Ask(msgspec.Struct, frozen=True, eq=False):
    """One request, or one alternative of a request."""

    claim: ResourceClaim
    request: str
    alternative: str
    device_class: DeviceClass
    matcher: Matcher
    all_devices: bool
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    capacity_key: tuple[tuple[str, str], ...]
    constraints: tuple[int, ...]
    """Which of the claim's constraints apply."""

    @property
    def name(self) -> str:
        """The request, or `request/alternative`."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def place(self) -> str:
        """Where errors say they come from; upstream names an alternative without its request."""
        return f"claim {self.claim.key}, request {self.alternative or self.request}"

    def refusal(self, fault: Fault, device: DeviceID) -> AllocationError:
        """Return the error of a selector that gave no answer. It names the device, as 1.37 does."""
        of_class = f"class {self.device_class.metadata.name}"
        owner = of_class if fault.of_class else f"claim {self.claim.key}"
        asked = f" on device {device}" if fault.compiled else ""
        return AllocationError(f"{owner}: selector #{fault.index}{asked}: {fault.words}")


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request: the one thing asked for, or alternatives in order of preference."""

    name: str
    asks: tuple[Ask, ...]
    prioritized: bool


class Wish(msgspec.Struct, frozen=True, eq=False):
    """A claim, read."""

    claim: ResourceClaim
    requests: tuple[Request, ...]


class UnreadableError(AllocationError):
    """A claim that could be read only in part. What was read may hold an error that upstream meets first."""

    def __init__(self, words: str, asks: Iterable[Ask], wish: Wish | None) -> None:
        super().__init__(words)
        self.asks = tuple(asks)
        self.wish = wish
        """The claim, where all its requests could be read."""


class Reader:
    """Reads claims, given the classes and gates of one cycle."""

    def __init__(self, classes: Mapping[str, DeviceClass], features: Features, selectors: Selectors) -> None:
        self._classes = classes
        self._features = features
        self._selectors = selectors
        self._wishes: dict[int, Wish] = {}
        """By the identity of the claim, which the wish keeps alive."""

    def wish(self, claim: ResourceClaim) -> Wish:
        """Return what the claim asks for; raises AllocationError where nobody could tell."""
        known = self._wishes.get(id(claim))
        if known is None:
            known = self._wishes[id(claim)] = self._read(claim)
        return known

    def _read(self, claim: ResourceClaim) -> Wish:
        asks: list[Ask] = []
        wish: Wish | None = None
        try:
            wish = Wish(claim, tuple(self._request(claim, one, asks) for one in claim.spec.devices.requests))
            self._check_constraints(claim)
        except AllocationError as error:
            raise UnreadableError(str(error), asks, wish) from error
        return wish

    def _check_constraints(self, claim: ResourceClaim) -> None:
        for index, one in enumerate(claim.spec.devices.constraints):
            if not one.match_attribute and not one.distinct_attribute:
                raise AllocationError(
                    f"claim {claim.key}, constraint #{index}: empty constraint (unsupported constraint type?)"
                )

    def _request(self, claim: ResourceClaim, request: DeviceRequest, read: list[Ask]) -> Request:
        where = f"claim {claim.key}, request {request.name}"
        if not request.first_available:
            if request.exactly is None:
                raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
            self._check_capacity(where, request.exactly.capacity)
            read.append(self._ask(claim, request.name, request.exactly))
            return Request(request.name, (read[-1],), prioritized=False)
        if not self._features.prioritized_list:
            raise AllocationError(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        for one in request.first_available:
            self._check_capacity(f"claim {claim.key}, subrequest {one.name}", one.capacity)
        for one in request.first_available:
            read.append(self._ask(claim, request.name, one))  # noqa: PERF401 - the next one may raise
        return Request(request.name, tuple(read[-len(request.first_available) :]), prioritized=True)

    def _check_capacity(self, where: str, capacity: CapacityRequirements | None) -> None:
        if capacity is not None and not self._features.consumable_capacity:
            raise AllocationError(
                f"{where}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
            )

    def _ask(self, claim: ResourceClaim, name: str, one: ExactDeviceRequest | DeviceSubRequest) -> Ask:
        alternative = one.name if isinstance(one, DeviceSubRequest) else ""
        where = f"claim {claim.key}, request {alternative or name}"
        expressions = _expressions(where, one.selectors)
        admin = isinstance(one, ExactDeviceRequest) and one.admin_access
        if admin and not self._features.admin_access:
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        device_class = self._class(where, one.device_class_name)
        of_class = _expressions(f"class {one.device_class_name}", device_class.spec.selectors)
        if one.allocation_mode not in {EXACT_COUNT, ALL}:
            raise AllocationError(f"{where}: unsupported count mode {one.allocation_mode}")
        wanted = one.capacity.requests if one.capacity is not None else {}
        return Ask(
            claim=claim,
            request=name,
            alternative=alternative,
            device_class=device_class,
            matcher=self._selectors.matcher(of_class, expressions, lists=self._features.list_attributes),
            all_devices=one.allocation_mode == ALL,
            count=one.count,
            admin=admin,
            tolerations=one.tolerations,
            capacity=_quantities(where, wanted),
            capacity_key=tuple(sorted(wanted.items())),
            constraints=tuple(_applying(claim, name, alternative)),
        )

    def _class(self, where: str, name: str) -> DeviceClass:
        if not name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        found = self._classes.get(name)
        if found is None:
            raise AllocationError(f"{where}: could not retrieve device class {name}: not found")
        return found


def _expressions(where: str, selectors: tuple[DeviceSelector, ...]) -> tuple[str, ...]:
    for index, one in enumerate(selectors):
        if one.cel is None:
            raise AllocationError(
                f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
    return tuple(one.cel.expression for one in selectors if one.cel is not None)


def _quantities(where: str, texts: Mapping[str, str]) -> Mapping[str, Quantity]:
    try:
        return {name: quantity.parse(text) for name, text in texts.items()}
    except quantity.QuantityError as error:
        raise AllocationError(f"{where}: {error}") from error


def _applying(claim: ResourceClaim, request: str, alternative: str) -> Iterable[int]:
    for index, one in enumerate(claim.spec.devices.constraints):
        full = f"{request}/{alternative}" if alternative else request
        if not one.requests or request in one.requests or full in one.requests:
            yield index

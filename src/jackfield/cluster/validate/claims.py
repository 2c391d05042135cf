"""What is wrong with a ResourceClaim, its template, or a DeviceClass.

Knows DRA's limits and rules for what is asked and given. Must not know what is on offer.
"""

from collections.abc import Iterator
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import allocations, expressions, formats
from jackfield.cluster.validate.allocations import amounts, opaque, references, request_names, toleration
from jackfield.cluster.validate.checks import Change, labels, limited, named, one_of, unique
from jackfield.codec import RawValue, dig, objects
from jackfield.model.claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from jackfield.model.slice import DeviceClass

REQUESTS_MAX: Final = 32
ALTERNATIVES_MAX: Final = 8
SELECTORS_MAX: Final = 32
CONSTRAINTS_MAX: Final = 32
CONFIGS_MAX: Final = 32
_IMMUTABLE: Final = "field is immutable"


def device_class(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a class."""
    new, old = change.new, change.old
    assert isinstance(new, DeviceClass)
    if not change.wants:
        return
    known = _expressions(old.spec.selectors) if isinstance(old, DeviceClass) else frozenset()
    yield from _selectors("spec.selectors", new.spec.selectors, known)
    yield from limited("spec.config", new.spec.config, CONFIGS_MAX)
    for index, one in enumerate(new.spec.config):
        yield from opaque(f"spec.config[{index}]", one.opaque)
    name = new.spec.extended_resource_name
    if name and ("/" not in name or formats.qualified(name) or name.split("/")[0].endswith("kubernetes.io")):
        yield errors.invalid_value(
            "spec.extendedResourceName", name, "must be a valid extended resource name"
        )


def claim(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a claim: what it asks for never changes, what it was given only goes."""
    new, old = change.new, change.old
    assert isinstance(new, ResourceClaim)
    if not isinstance(old, ResourceClaim):
        yield from _device_claim("spec.devices", new.spec.devices)
        yield from _counted_all("spec.devices", change.raw.get("spec", {}))
        return
    if change.wants:
        yield errors.invalid_value("spec", "", _IMMUTABLE)
    if change.status:
        yield from allocations.status(old, new, change.raw)


def template(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a template."""
    new = change.new
    assert isinstance(new, ResourceClaimTemplate)
    if change.old is not None:
        if change.wants:
            yield errors.invalid_value("spec", "", _IMMUTABLE)
        return
    written = dig(change.raw, "spec", "metadata") or {}
    for name in written:
        if name not in ("labels", "annotations", "creationTimestamp"):
            yield errors.forbidden(f"spec.metadata.{name}", "only labels and annotations may be set")
    yield from labels("spec.metadata.labels", new.spec.metadata.labels)
    yield from _device_claim("spec.spec.devices", new.spec.spec.devices)
    yield from _counted_all("spec.spec.devices", dig(change.raw, "spec", "spec"))


# --- what is asked for


def _device_claim(field: str, found: DeviceClaim) -> Iterator[Cause]:
    yield from limited(f"{field}.requests", found.requests, REQUESTS_MAX)
    yield from unique(f"{field}.requests", [one.name for one in found.requests])
    for index, one in enumerate(found.requests):
        yield from _request(f"{field}.requests[{index}]", one)
    names = frozenset(request_names(found))
    yield from limited(f"{field}.constraints", found.constraints, CONSTRAINTS_MAX)
    for index, constraint in enumerate(found.constraints):
        at = f"{field}.constraints[{index}]"
        yield from references(at, constraint.requests, names)
        yield from _constraint(at, constraint.match_attribute, constraint.distinct_attribute)
    yield from limited(f"{field}.config", found.config, CONFIGS_MAX)
    for index, config in enumerate(found.config):
        at = f"{field}.config[{index}]"
        yield from references(at, config.requests, names)
        yield from opaque(at, config.opaque)


def _counted_all(field: str, spec: RawValue) -> Iterator[Cause]:
    """Yield a cause for every request that wants all devices and yet says how many."""
    for index, request in enumerate(objects(dig(spec, "devices", "requests"))):
        at = f"{field}.requests[{index}]"
        wishes: dict[str, RawValue] = {
            f"{at}.firstAvailable[{place}]": one
            for place, one in enumerate(request.get("firstAvailable", ()))
        }
        for place, wish in {f"{at}.exactly": request.get("exactly", {}), **wishes}.items():
            if wish.get("allocationMode") == "All" and "count" in wish:
                what = "must not be specified when allocationMode is 'All'"
                yield errors.invalid_value(f"{place}.count", wish["count"], what)


def _constraint(field: str, match: str, distinct: str) -> Iterator[Cause]:
    if bool(match) == bool(distinct):
        yield errors.required(field, "exactly one of `matchAttribute` or `distinctAttribute` is required")
    for name, attribute in (("matchAttribute", match), ("distinctAttribute", distinct)):
        if attribute:
            yield from named(f"{field}.{name}", attribute, formats.full_attribute)


def _request(field: str, found: DeviceRequest) -> Iterator[Cause]:
    yield from named(f"{field}.name", found.name, formats.label)
    if (found.exactly is None) == (not found.first_available):
        yield errors.required(field, "exactly one of `exactly` or `firstAvailable` is required")
    if found.exactly is not None:
        yield from _wish(f"{field}.exactly", found.exactly)
    yield from limited(f"{field}.firstAvailable", found.first_available, ALTERNATIVES_MAX)
    yield from unique(f"{field}.firstAvailable", [one.name for one in found.first_available])
    for index, one in enumerate(found.first_available):
        at = f"{field}.firstAvailable[{index}]"
        yield from named(f"{at}.name", one.name, formats.label)
        yield from _wish(at, one)


def _wish(field: str, found: ExactDeviceRequest | DeviceSubRequest) -> Iterator[Cause]:
    if found.device_class_name:
        yield from named(f"{field}.deviceClassName", found.device_class_name, formats.subdomain)
    else:
        yield errors.required(f"{field}.deviceClassName")
    yield from _selectors(f"{field}.selectors", found.selectors, frozenset())
    yield from one_of(f"{field}.allocationMode", found.allocation_mode, ("All", "ExactCount"))
    if found.allocation_mode == "ExactCount" and found.count <= 0:
        yield errors.invalid_value(f"{field}.count", found.count, "must be greater than zero")
    for index, one in enumerate(found.tolerations):
        yield from toleration(f"{field}.tolerations[{index}]", one)
    yield from amounts(f"{field}.capacity.requests", found.capacity.requests if found.capacity else {})


def _expressions(selectors: tuple[DeviceSelector, ...]) -> frozenset[str]:
    return frozenset(one.cel.expression for one in selectors if one.cel is not None)


def _selectors(field: str, selectors: tuple[DeviceSelector, ...], known: frozenset[str]) -> Iterator[Cause]:
    yield from limited(field, selectors, SELECTORS_MAX)
    for index, one in enumerate(selectors):
        at = f"{field}[{index}].cel"
        if one.cel is None:
            yield errors.required(at)
        elif one.cel.expression not in known:
            # What was compiled once is not refused when the rules of compiling change.
            yield from expressions.expression(f"{at}.expression", one.cel.expression)

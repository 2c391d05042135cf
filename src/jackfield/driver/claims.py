"""An allocated claim, read from the API → the shares that this driver has to prepare on this node, or why none.

Knows who wrote what into a claim, and therefore believes none of it. Must not know what a device is.
"""

from collections.abc import Callable, Container, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from jackfield.driver.cdi import shown
from jackfield.driver.driver import Config, Share
from jackfield.driver.entry import Entry, Held, base
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from jackfield.model.device import Device
from jackfield.model.names import NodeName, Uid
from jackfield.ports import Refused

CONFIG_BYTES_MAX: Final = 10 * 1024
"""What Kubernetes takes of one configuration."""
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
SOURCES: Final = ("FromClass", "FromClaim")
"""In the order in which they override each other."""
ADMIN: Final = "kit:admin-access"
"""A note of the kit's own: the device is held for looking at only."""

Identity = tuple[str, str, str]
"""Pool, device and share."""
Published = Callable[[str, str], Device | None]
"""The device of a pool as it is published now."""


class Place(msgspec.Struct, frozen=True):
    """Who asks, and where."""

    driver: str
    node: NodeName
    published: Published
    published_only: bool = True


def shares(
    claim: ResourceClaim, uid: Uid, place: Place, known: Container[Identity] = ()
) -> tuple[Share, ...]:
    """Return what there is to prepare; nothing if the claim has nothing of this driver. Raises Refused, in words.

    What is `known` is prepared already: that it is not published any more does not take it away.
    """
    if claim.uid != uid:
        raise Refused(
            f"claim {claim.key} is another one now: the pod was bound with uid {shown(uid)}, "
            f"this one has {shown(claim.uid)}; the pod has to be made anew"
        )
    allocation = claim.status.allocation
    if allocation is None:
        raise Refused(f"claim {claim.key} is not allocated (any more); the pod has to be scheduled again")
    if allocation.node not in ("", place.node):
        raise Refused(
            f"claim {claim.key} is allocated to node {shown(allocation.node)}, and this is {place.node}"
        )
    found: dict[Identity, Share] = {}
    for result in allocation.devices.results:
        if result.driver == place.driver:
            one = _share(claim, allocation, result, place)
            if one.published is None and place.published_only and identity(one) not in known:
                raise Refused(
                    f"claim {claim.key} was given device {shown(one.device)} of pool {shown(one.pool)}, "
                    f"which is not on node {place.node} (any more)"
                )
            before = found.get(identity(one))
            # One device for several requests, which only those get that look at it: prepared once, for all of them.
            found[identity(one)] = replace(one, requests=(*before.requests, *one.requests)) if before else one
    return tuple(found.values())


def identity(one: Share | Held) -> Identity:
    """Return what makes two shares of one claim the same."""
    return (one.pool, one.device, one.share_id)


def remembered(entry: Entry, held: Held, published: Published) -> Share:
    """Return a share as the store knows it, when nobody else may know it any more."""
    return Share(
        claim=entry.claim,
        uid=entry.uid,
        requests=held.requests,
        pool=held.pool,
        device=held.device,
        share_id=held.share_id,
        admin_access=ADMIN in held.notes,
        published=published(held.pool, held.device),
        notes={name: text for name, text in held.notes.items() if name != ADMIN},
    )


def in_the_way(one: Share, entry: Entry) -> bool:
    """Return whether a claim holds what this share of another claim needs for itself."""
    if entry.uid == one.uid or one.admin_access:
        return False
    return any(
        (held.pool, held.device) == (one.pool, one.device)
        and ADMIN not in held.notes
        and (not held.share_id or not one.share_id or held.share_id == one.share_id)
        for held in entry.held
    )


def pod_claim_name(claim: ResourceClaim) -> str:
    """Return what the pod calls a claim that was made for it from a template; nothing for any other."""
    return claim.metadata.annotations.get(POD_CLAIM_NAME, "")


def _share(
    claim: ResourceClaim, allocation: AllocationResult, result: DeviceRequestAllocationResult, place: Place
) -> Share:
    return Share(
        claim=claim.key,
        uid=claim.uid,
        requests=(result.request,),
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        consumed_capacity=result.consumed_capacity,
        admin_access=result.admin_access,
        config=tuple(_configs(allocation.devices.config, result, place.driver)),
        published=place.published(result.pool, result.device),
    )


def _configs(
    config: tuple[DeviceAllocationConfiguration, ...], result: DeviceRequestAllocationResult, driver: str
) -> Iterator[Config]:
    for source in SOURCES:
        for one in config:
            opaque = one.opaque
            if one.source != source or opaque is None or opaque.driver != driver:
                continue
            if not one.requests or result.request in one.requests or base(result.request) in one.requests:
                yield _decoded(bytes(opaque.parameters), source)


def _decoded(parameters: bytes, source: str) -> Config:
    whose = "the device class" if source == SOURCES[0] else "the claim"
    if len(parameters) > CONFIG_BYTES_MAX:
        raise Refused(
            f"the configuration in {whose} has {len(parameters)} bytes; at most {CONFIG_BYTES_MAX} are taken"
        )
    try:
        decoded: dict[str, object] = msgspec.json.decode(parameters, type=dict)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"the configuration in {whose} cannot be read as a JSON object: {error}") from error
    return decoded

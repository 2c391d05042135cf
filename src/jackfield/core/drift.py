"""Where the books and the fabric differ: attached but unknown, known but gone.

What differs is told, once, on the object where somebody would look for it: the Node for what stands there and is not
ours, the ComposableResource for a device that left it. Knows both directions, and what a manager that only forgot for
a moment looks like. Must not know what is done about it: `surplus` adopts, `keep` and `attach` give up, `evict` sends
away what the policy names.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from jackfield.core import evict, naming, room, surplus
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import MISSING, ORDER, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice
from jackfield.model.meta import holds
from jackfield.model.names import NEVER, FabricName, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.plan import Finding, MarkMissing, Phase, Plan
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View

NAMED_MAX = 3
"""Devices that a finding names; the rest are counted."""

_STANDING = (ResourceState.NEW, ResourceState.ATTACHING, ResourceState.ONLINE)


class Kind(StrEnum):
    """The ways in which books and fabric differ; each is the reason of an Event."""

    FOREIGN = "ForeignDevice"
    """Attached to a node of ours by somebody else."""
    UNKNOWN = "UnknownDevice"
    """Attached by us, in nobody's books, and cannot be put there."""
    ADOPTED = "DeviceAdopted"
    """Attached by us, found in nobody's books, and put there."""
    UNSHOWN = "DeviceNotShown"
    """Known, and not shown where it should be for a while: it may be the manager's mistake."""
    MISSING = "DeviceMissing"
    """Known, and gone from where it should be for so long that it is believed."""
    ILL = "DeviceUnhealthy"
    """Attached, and called unhealthy by its manager."""


class Site(msgspec.Struct, frozen=True):
    """A node of a fabric at a moment."""

    view: View
    node: NodeName
    fabric: FabricName
    policy: Policy
    now: Seconds


def decide(view: View, node: NodeName, policy: Policy, now: Seconds) -> Plan:
    """Return what differs on a node, and the condition of resources whose device is gone or back."""
    fabric = view.fabric_of(node)
    resources = view.resources_on(node)
    if fabric is None:
        # A manager that does not show the node shows nothing on it either.
        fabric = next(_fabrics(resources, policy), None)
    if fabric is None:
        return Plan()
    site = Site(view, node, fabric, policy, now)
    staying = (one for one in resources if one.state is ResourceState.ONLINE and room.busy(view, one))
    marks = (_mark(site, one) for one in staying)
    times = (*(room.gone_at(view, one, policy) for one in resources), *_told_at(site))
    return Plan(
        tuple(mark for mark in marks if mark is not None),
        again_at=min((one for one in times if one > now), default=NEVER),
        findings=tuple(_findings(site)),
    )


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[NodeName, ...]:
    """Return the nodes that a change is about; most changes of a resource alter nothing here."""
    match delta:
        case InventoryChanged(nodes=nodes):
            return nodes
        case ObjectChanged(old=ComposableResource() as old, new=ComposableResource() as new):
            return _nodes(view, new, policy) if _standing(old) != _standing(new) else ()
        case ObjectChanged(old=ComposableResource() as one) | ObjectChanged(new=ComposableResource() as one):
            return _nodes(view, one, policy)
        case ObjectChanged(old=None, new=Node() as node):
            return (node.name,)
        case ObjectChanged(old=ResourceClaim()) | ObjectChanged(new=ResourceClaim()):
            return tuple(dict.fromkeys((*_missed_by(view, delta.old), *_missed_by(view, delta.new))))
        case _:
            return ()


def _missed_by(view: View, claim: object) -> Iterator[NodeName]:
    """Yield where a device of a claim is missing, or was: that is told only of what somebody has."""
    for result in claim.results if isinstance(claim, ResourceClaim) else ():
        one = view.resource_of(result.id) or view.resource_behind(result.id)
        if one is not None and (holds(one.status.conditions, MISSING) or view.missing_since(one) != NEVER):
            yield one.node


def drift(view: View, fabric: FabricName, policy: Policy, now: Seconds) -> tuple[Finding, ...]:
    """Return all that differs on a fabric, node by node. Costs the fabric: for whoever asks, not for decisions."""
    sites = (Site(view, node, fabric, policy, now) for node in view.nodes_of(fabric))
    return tuple(one for site in sites for one in _findings(site))


def summary(counts: Mapping[str, int]) -> str:
    """Return in a few words how many devices differ, given their number by reason; empty if none does."""
    return ", ".join(f"{counts[kind]} {words}" for kind, words in _WORDS.items() if counts.get(kind))


_WORDS = {
    Kind.FOREIGN: "attached by somebody else",
    Kind.UNKNOWN: "attached by us and in nobody's books",
    Kind.ADOPTED: "found attached and put into the books",
    Kind.UNSHOWN: "not shown where they should be for a moment",
    Kind.MISSING: "gone from where they should be",
    Kind.ILL: "attached and unhealthy",
}


def _fabrics(resources: Iterable[ComposableResource], policy: Policy) -> Iterator[FabricName]:
    found = (naming.fabric_of(one.device, policy) for one in resources if one.device is not None)
    return (one for one in found if one is not None)


def _findings(site: Site) -> Iterator[Finding]:
    yield from _foreign(site)
    yield from _unknown(site)
    yield from _adopted(site)
    yield from _gone(site)
    yield from _ill(site)


def _nodes(view: View, resource: ComposableResource, policy: Policy) -> tuple[NodeName, ...]:
    """The node that a resource is for, and the one its device stands on, should that be another."""
    fabric = next(_fabrics((resource,), policy), None)
    place = view.place_of(fabric, resource.status.cdi_device_id) if fabric is not None else NodeName("")
    return tuple(dict.fromkeys(one for one in (resource.node, place) if one))


def _standing(resource: ComposableResource) -> tuple[object, ...]:
    told = holds(resource.status.conditions, MISSING)  # by another replica, of what it was shown
    return resource.state, resource.uid, resource.status.cdi_device_id, resource.record is None, told


# --- attached but unknown


def _foreign(site: Site) -> Iterator[Finding]:
    """What somebody else attached, on a node of ours; other clusters' nodes are their own business."""
    if site.view.node(site.node) is None:
        return
    attached = site.view.attached(site.node)
    there = [one for one in attached if not one.ours and not room.booked(site.view, site.node, one)]
    going = [one for one in there if _goes(site, one)]
    kept = [one for one in there if one not in going]
    said = [f"{_few(site, kept)} by somebody else; it takes room and is left alone"] if kept else []
    if going:
        said.append(
            f"{_few(site, going)} by somebody else; detachForeign names it, and it goes when nothing uses it"
        )
    if kept:
        said.append("Detach it where it was attached, or let detachForeign of the policy name it")
    if there:
        what = f"{'. '.join(said)}."
        yield Finding(f"node/{site.node}", Kind.FOREIGN, what, site.fabric, len(there))


def _goes(site: Site, device: FabricDevice) -> bool:
    listed = site.policy.model(device.model) is not None
    return listed and evict.named(site.view, site.fabric, device, site.policy)


def _unknown(site: Site) -> Iterator[Finding]:
    """What is ours, in nobody's books, and is not put there although it has stood there long enough."""
    stray = [one for one, at in _strays(site) if site.now >= at]
    if not stray:
        return
    unlisted = dict.fromkeys(one.model for one in stray if site.policy.model(one.model) is None)
    remedy = (
        f"List {', '.join(unlisted)} among the models of the policy, and it is used or returned"
        if unlisted
        else "It is used or returned as soon as attaching is not paused"
    )
    what = f"{_few(site, stray)} by us, and is in nobody's books. {remedy}."
    yield Finding(f"node/{site.node}", Kind.UNKNOWN, what, site.fabric, len(stray))


def _strays(site: Site) -> Iterator[tuple[FabricDevice, Seconds]]:
    """Devices of ours that no resource has, and when `surplus` should have put each into the books."""
    inventory, machine = site.view.inventory(site.fabric), site.view.machine(site.node)
    if inventory is None or machine is None:
        return
    for one in site.view.attached(site.node):
        if one.ours and site.view.resource_with(site.fabric, one.id) is None:
            yield one, Seconds(surplus.settles(inventory, machine, one) + site.policy.inventory_seconds)


def _told_at(site: Site) -> Iterator[Seconds]:
    return (at for _, at in _strays(site))


def _adopted(site: Site) -> Iterator[Finding]:
    """What was found: a request owns what it asked for, and nobody asked for this."""
    for one in site.view.resources_on(site.node):
        ours = one.device is not None and not one.foreign and one.state in _STANDING
        request = site.view.request(one.request)
        asked = one.metadata.owner_references or (request is not None and not request.scalers)
        if not ours or asked or not one.status.cdi_device_id:
            continue
        order = f" by order {one.order}" if ORDER in one.metadata.annotations else ""
        what = (
            f"{one.status.cdi_device_id} was found attached to {site.node}{order} and in nobody's books: an order took "
            "effect after it was given up, or a backup was restored. It serves the next claim, or goes back when idle."
        )
        yield Finding(_name(one), Kind.ADOPTED, what, site.fabric, grave=False)


# --- known but gone


def _gone(site: Site) -> Iterator[Finding]:
    """What should be on the node and is not: told on each resource, once it is believed."""
    lacking = [one for one in site.view.resources_on(site.node) if site.view.missing_since(one) != NEVER]
    gone = [one for one in lacking if site.now >= room.gone_at(site.view, one, site.policy)]
    for one in gone:
        yield Finding(
            _name(one), Kind.MISSING, f"{_whereabouts(site, one)} {_consequence(site, one)}", site.fabric
        )
    unsure = len(lacking) - len(gone)
    if unsure:
        what = (
            f"the manager of {site.fabric} does not show all that {site.node} should have: {unsure} missing, which "
            f"count as gone if that lasts for {site.policy.missing_seconds:.0f} s"
        )
        yield Finding(f"node/{site.node}", Kind.UNSHOWN, what, site.fabric, unsure, grave=False, told=False)


def _whereabouts(site: Site, resource: ComposableResource) -> str:
    """Return what a manager shows of a device that is not where it should be."""
    assert resource.device is not None
    device = resource.status.cdi_device_id
    there = site.view.place_of(site.fabric, device)
    if there:
        place = f"shows it on {there}"
    elif site.view.physical(resource.device) is not None:
        place = "shows it in the pool"
    else:
        place = "does not show it"
    return (
        f"{device or resource.device.device} is not on {resource.node} any more, and no order of ours took it away "
        f"(it came by order {resource.order}): the manager of {site.fabric} {place}."
    )


def _consequence(site: Site, resource: ComposableResource) -> str:
    if not room.busy(site.view, resource):
        return "Nobody uses it, so it is taken out of the books."
    if resource.record is None:
        return (
            f"{resource.request or 'Somebody'} asked for it: delete this ComposableResource to have another attached, "
            "or attach the device again."
        )
    return (
        f"Claim {resource.record.claim} has it, and its pod runs without it: delete the pod to have it scheduled anew, "
        "or attach the device again."
    )


def _ill(site: Site) -> Iterator[Finding]:
    for one in site.view.attached(site.node):
        resource = site.view.resource_with(site.fabric, one.id)
        if not one.healthy and resource is not None and resource.node == site.node:
            what = (
                f"the manager of {site.fabric} calls {one.id} on {site.node} unhealthy. Whoever uses it keeps it; "
                "see what is wrong with it, or delete the pod that uses it."
            )
            yield Finding(_name(resource), Kind.ILL, what, site.fabric)


def _mark(site: Site, resource: ComposableResource) -> MarkMissing | None:
    """Return the change of a resource's condition; whoever has just begun and seen nothing changes nothing."""
    gone = site.now >= room.gone_at(site.view, resource, site.policy)
    back = any(one.id == resource.status.cdi_device_id for one in site.view.attached(site.node))
    known = holds(resource.status.conditions, MISSING)
    if not (gone if not known else back and not gone):  # one that came back for somebody else is still gone
        return None
    because = _whereabouts(site, resource) if gone else f"its manager shows it on {resource.node} again"
    return MarkMissing(
        phase=Phase.ONLINE,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        missing=gone,
        message=because,
        because=because,
    )


# --- words


def _name(resource: ComposableResource) -> str:
    return f"resource/{resource.metadata.name}"


def _few(site: Site, devices: list[FabricDevice]) -> str:
    """Return which devices are attached where, those named that there is room for."""
    named = ", ".join(_said(site, one) for one in devices[:NAMED_MAX])
    more = f" and {len(devices) - NAMED_MAX} more" if len(devices) > NAMED_MAX else ""
    return f"{named}{more} {'is' if len(devices) == 1 else 'are'} attached to {site.node}"


def _said(site: Site, device: FabricDevice) -> str:
    resource = site.view.resource_with(site.fabric, device.id)
    books = f", on {resource.node} by the books" if resource is not None else ""
    order = f", order {device.order}" if device.order else ""
    return f"{device.id} ({device.model}{order}{books})"

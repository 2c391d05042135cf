"""Which devices of a model a node should have: those its claims want, and idle ones for a while.

Knows hold time, spares, minimum per node, and that idle devices make room. Must not know how the wish is written.
"""

import msgspec

from jackfield.core import demand, naming, room
from jackfield.core.demand import Demand, Postpone, Refuse, Serve, Settled, Want
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, Wanted
from jackfield.model.names import NEVER, DeviceID, Key, NodeName, Seconds
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import View

NOBODY = Key("", "")


class Site(msgspec.Struct, frozen=True):
    """A node at a moment, and the demand on it."""

    view: View
    node: NodeName
    policy: Policy
    now: Seconds
    demands: tuple[Demand, ...]


class Kept(msgspec.Struct, frozen=True):
    """The devices a node should have of one model, why the others go, and when to look again."""

    wanted: tuple[Wanted, ...]
    going: tuple[tuple[ComposableResource, str], ...]
    again_at: Seconds = NEVER


def devices(site: Site, model: DeviceModel) -> Kept:
    """Return the devices that the scaler's request for this node and model should name."""
    claimed = _claimed(site, model)
    there = [one for one in _own(site, model) if one.device is not None and one.device not in claimed]
    wanted = {device: Wanted(device, key) for device, key in claimed.items()}
    going: list[tuple[ComposableResource, str]] = []
    again_at = NEVER
    warm, evicted = _warm(site, model, there, len(claimed)), _evicted(site)
    for resource in there:
        assert resource.device is not None
        why, until = _leaves(site, resource, warm, evicted)
        if why:
            going.append((resource, why))
            continue
        again_at = min(again_at, until)
        wanted[resource.device] = Wanted(resource.device, NOBODY)
    missing = max(0, _least(site, model) - len(wanted))
    wanted |= {one: Wanted(one, NOBODY) for one in _picked(site, model, missing)}
    return Kept(tuple(sorted(wanted.values())), tuple(going), again_at)


def _claimed(site: Site, model: DeviceModel) -> dict[DeviceID, Key]:
    """Devices of claims that are being served, and of those that were and still have them.

    A claim that was served and lost its device, by force or with its node, is not served again: its pod would not
    notice.
    """
    claimed: dict[DeviceID, Key] = {}
    for one in site.demands:
        serving = isinstance(one.verdict, Serve)
        served = isinstance(one.verdict, Settled) and one.verdict.ready
        mine = (want for want in one.wants if want.model.index == model.index)
        devices = (want.device for want in mine if serving or (served and want.resource is not None))
        claimed |= {device: one.claim.key for device in devices if device not in claimed}
    return claimed


def _own(site: Site, model: DeviceModel) -> list[ComposableResource]:
    """Resources that the scaler's request for this node and model brought about, and that still stand.

    What belongs to a request that is gone goes with it: to want it again would only have it attached anew.
    """
    name = naming.request(site.node, model)
    request = site.view.request(name)
    return [
        one
        for one in room.present(site.view, site.node)
        if one.request == name and not one.foreign and not one.outlives(request)
    ]


def _leaves(
    site: Site, resource: ComposableResource, warm: tuple[str, ...], evicted: tuple[str, ...]
) -> tuple[str, Seconds]:
    """Return why an unclaimed device goes, or an empty reason and when to ask again."""
    if room.busy(site.view, resource):
        return "", NEVER
    assert resource.device is not None
    rivals = site.view.claims_holding(resource.device)
    if any(not _turned_down(site, one) for one in rivals):
        return "a claim on another node was given it", NEVER
    gone_at = room.gone_at(site.view, resource, site.policy)
    if site.now >= gone_at:
        return f"its fabric does not show it on {site.node} any more", NEVER
    node = site.view.node(site.node)
    if node is None or node.deleting or node.spec.unschedulable:
        return f"node {site.node} takes no more pods", NEVER
    if resource.metadata.name in evicted:
        return "a claim needs its room", NEVER
    # What another node answers may change without news for this one.
    again_at = min(gone_at, Seconds(site.now + site.policy.poll_seconds) if rivals else NEVER)
    if resource.metadata.name in warm:
        return "", again_at
    until = Seconds(resource.last_used + site.policy.hold_seconds)
    if site.now >= until:
        return f"idle for {site.policy.hold_seconds:.0f} s", NEVER
    return "", min(until, again_at)


def _turned_down(site: Site, claim: ResourceClaim) -> bool:
    """Whether a claim on another node is not served there: then nothing needs to come, and a warm device stays."""
    demands = demand.on_node(site.view, claim.node, site.policy, site.now)
    verdict = next((one.verdict for one in demands if one.claim.key == claim.key), None)
    return isinstance(verdict, Refuse | Postpone) or (isinstance(verdict, Settled) and not verdict.ready)


def _warm(site: Site, model: DeviceModel, there: list[ComposableResource], claimed: int) -> tuple[str, ...]:
    """Idle devices that stay however long: the most recently used, as spares or for the node's minimum."""
    fabric = site.view.fabric_of(site.node)
    spares = site.view.idle(fabric, model.cdi_model_name) if fabric is not None and model.spares > 0 else ()
    idle = sorted((one for one in there if not room.busy(site.view, one)), key=_use)
    needed = max(0, _least(site, model) - claimed - len(there) + len(idle))
    kept = (*spares[-model.spares :], *idle[max(0, len(idle) - needed) :])
    return tuple(one.metadata.name for one in kept)


def _use(resource: ComposableResource) -> tuple[Seconds, str]:
    return resource.last_used, resource.metadata.name


def _least(site: Site, model: DeviceModel) -> int:
    least = room.limits(site.view, site.node, model, site.policy).least
    if least and room.refusal(site.view, site.node, model, site.policy, site.now):
        return 0
    return least


def _picked(site: Site, model: DeviceModel, count: int) -> tuple[DeviceID, ...]:
    fabric = site.view.fabric_of(site.node) if count else None
    return site.view.free_devices(fabric, model.cdi_model_name, count) if fabric is not None else ()


def _evicted(site: Site) -> tuple[str, ...]:
    """Idle devices, least recently used first, that must go so that what the claims want may stand there."""
    coming = tuple(
        want
        for one in site.demands
        if isinstance(one.verdict, Serve)
        for want in one.wants
        if want.resource is None or want.resource.node != site.node
    )
    staying = list(room.present(site.view, site.node)) if coming else []
    gone: list[str] = []
    for one in sorted((one for one in staying if not room.busy(site.view, one)), key=_use):
        if _in_the_way(site, one, coming, staying):
            staying.remove(one)
            gone.append(one.metadata.name)
    return tuple(gone)


def _in_the_way(
    site: Site, one: ComposableResource, coming: tuple[Want, ...], staying: list[ComposableResource]
) -> bool:
    """Whether a node with all that stays and comes would have too many devices, or two that cannot coexist."""
    machine, model = site.view.machine(site.node), site.policy.model(one.spec.model)
    assert machine is not None  # else nobody would be served here with what is yet to come
    if len(staying) + len(coming) + room.strangers(site.view, site.node) > machine.slots:
        return True
    if model is None:
        return False
    if room.coexistence(model, tuple(want.model.cdi_model_name for want in coming), site.policy):
        return True
    alike = sum(other.spec.model == one.spec.model for other in staying)
    arriving = sum(want.model.index == model.index for want in coming)
    most = room.limits(site.view, site.node, model, site.policy).most
    return arriving > 0 and alike + arriving > most

"""Namespaces: what each may have of the pool at once, and whose claims come first.

A claim of a namespace with a quota is admitted before anything is ordered for it: one namespace at a time, so that no
two admissions are decided on the same free place, and in writing, so that a restart changes nothing. Knows what
counts against a quota. Must not know what becomes of a claim that is not admitted.
"""

from collections.abc import Iterable

import msgspec

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.meta import holds
from jackfield.model.names import DeviceID, Key, ModelName, Seconds
from jackfield.model.plan import Phase, Plan, SetCondition
from jackfield.model.policy import ADMITTED, FAILED, READY, RESCHEDULE, NamespaceRule, Policy
from jackfield.model.view import Delta, ObjectChanged, View

ALL_MODELS = "*"
"""In a quota: all models together."""

Devices = dict[DeviceID, ModelName]


class Beyond(msgspec.Struct, frozen=True):
    """Why a claim is not within its namespace's quota."""

    words: str
    ever: bool
    """Whether the claim alone is more than the namespace may have: waiting does not help."""


# --- who comes first


def age(claim: ResourceClaim) -> tuple[str, str, Key]:
    """Return by what claims are ordered: oldest allocation first."""
    allocation = claim.status.allocation
    return (
        allocation.allocation_timestamp if allocation else "",
        claim.metadata.creation_timestamp,
        claim.key,
    )


def rank(claim: ResourceClaim, policy: Policy) -> tuple[int, tuple[str, str, Key]]:
    """Return by what claims are ordered where not all can be served: by their namespace's priority, then by age."""
    return -policy.namespace(claim.metadata.namespace).priority, age(claim)


# --- who is admitted


def decide(view: View, namespace: str, policy: Policy, now: Seconds) -> Plan:
    """Return the admission of the claims that fit into what is left of a namespace's quota, oldest claim first.

    By the age of the claim, not of its allocation: who was sent round does not lose its place. A small claim may
    pass a large one that does not fit yet.
    """
    del now
    rule = policy.namespace(namespace)
    if not rule.quota:
        return Plan()
    taken, admissions = _taken(view, namespace, policy), []
    for claim in sorted(view.claims_in(namespace), key=_birth):
        wanted = _wanted(claim, policy)
        with_it = {**taken, **wanted}
        if admitted(claim, policy) or _refused(claim, wanted) or _exceeded(rule, with_it, wanted.values()):
            continue
        taken = with_it
        first = next(one for one in (*wanted.values(), ALL_MODELS) if one in rule.quota)
        admissions.append(_admission(claim, tuple(wanted), _standing(rule, namespace, taken, first)))
    return Plan(tuple(admissions))


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the namespaces whose quota a change bears on."""
    del view
    if not policy.namespaces or not isinstance(delta, ObjectChanged):
        return ()
    names = dict.fromkeys(name for one in (delta.old, delta.new) for name in _namespaces(one))
    return tuple(name for name in names if policy.namespace(name).quota)


def admitted(claim: ResourceClaim, policy: Policy) -> bool:
    """Return whether devices may be ordered for a claim as far as its namespace's quota goes."""
    if not policy.namespaces or not policy.namespace(claim.metadata.namespace).quota:
        return True
    return all(_is_counted(claim, device) for device in _wanted(claim, policy))


def beyond(view: View, claim: ResourceClaim, policy: Policy) -> Beyond | None:
    """Return why a claim that is not admitted does not fit its namespace's quota; None if it does by now."""
    namespace = claim.metadata.namespace
    rule, wanted = policy.namespace(namespace), _wanted(claim, policy)
    alone = _exceeded(rule, wanted, wanted.values())
    if alone:
        most = rule.quota[alone]
        words = f"this claim wants {_count(alone, wanted)}, and namespace {namespace} may have {most} at once"
        return Beyond(words, ever=True)
    taken = _taken(view, namespace, policy)
    over = _exceeded(rule, {**taken, **wanted}, wanted.values())
    return Beyond(_standing(rule, namespace, taken, over), ever=False) if over else None


# --- inside


def _birth(claim: ResourceClaim) -> tuple[str, Key]:
    return claim.metadata.creation_timestamp, claim.key


def _wanted(claim: ResourceClaim, policy: Policy) -> Devices:
    """The devices of the pool that were given to a claim and that its quota bears on; looking at one needs no place."""
    ours = (one.id for one in claim.results if READY in one.binding_conditions and not one.admin_access)
    models = ((device, naming.model_of(device, policy)) for device in ours)
    limited = policy.namespace(claim.metadata.namespace).quota
    return {
        device: model.cdi_model_name
        for device, model in models
        if model is not None and (ALL_MODELS in limited or model.cdi_model_name in limited)
    }


def _is_counted(claim: ResourceClaim, device: DeviceID) -> bool:
    """Whether a device counts; one that was answered before there was a quota does as well, and stays."""
    said = claim.conditions(device)
    return holds(said, ADMITTED) or holds(said, READY)


def _refused(claim: ResourceClaim, devices: Iterable[DeviceID]) -> bool:
    """Whether a claim was told to go elsewhere: what it was given is not for it any more."""
    told = [claim.conditions(device) for device in devices]
    return any(holds(one, RESCHEDULE) or holds(one, FAILED) for one in told)


def _taken(view: View, namespace: str, policy: Policy) -> Devices:
    """What the namespace has: devices of admitted claims, of claims on a vendor's name, and what is not let go yet."""
    taken: Devices = {}
    for claim in view.claims_in(namespace):
        wanted = _wanted(claim, policy)
        if not _refused(claim, wanted):
            taken |= {device: model for device, model in wanted.items() if _is_counted(claim, device)}
        behind = (view.resource_behind(one.id) for one in claim.results if not one.admin_access)
        taken |= _of(one for one in behind if one is not None)
    return taken | _of(view.resources_recorded_in(namespace))


def _of(resources: Iterable[ComposableResource]) -> Devices:
    return {one.device: one.spec.model for one in resources if one.device is not None}


def _exceeded(rule: NamespaceRule, devices: Devices, wanted: Iterable[ModelName]) -> str:
    """The limit that so many devices would exceed; empty if none of those that bear on what is wanted."""
    limits = (one for one in dict.fromkeys((*wanted, ALL_MODELS)) if one in rule.quota)
    return next((one for one in limits if _number(one, devices) > rule.quota[one]), "")


def _number(limit: str, devices: Devices) -> int:
    return sum(limit in {ALL_MODELS, model} for model in devices.values())


def _count(limit: str, devices: Devices) -> str:
    number = _number(limit, devices)
    plural = "" if number == 1 else "s"
    return f"{number} device{plural}" if limit == ALL_MODELS else f"{number} device{plural} of {limit}"


def _standing(rule: NamespaceRule, namespace: str, devices: Devices, limit: str) -> str:
    """How much of a limit is used, in words."""
    return f"namespace {namespace} has {_count(limit, devices)}, and may have {rule.quota[limit]} at once"


def _admission(claim: ResourceClaim, devices: tuple[DeviceID, ...], words: str) -> SetCondition:
    return SetCondition(
        phase=Phase.WANTED,
        claim=claim.key,
        uid=claim.uid,
        version=claim.metadata.resource_version,
        devices=devices,
        type=ADMITTED,
        message=words,
        because=words,
    )


def _namespaces(one: object) -> tuple[str, ...]:
    match one:
        case ResourceClaim():
            return (one.metadata.namespace,)
        case ComposableResource() if one.record is not None:
            return (one.record.claim.namespace,)
        case _:
            return ()

"""What follows from what a cluster's Kubernetes can do: findings in words, and a policy that fits.

Knows what each gate is needed for and where it is switched on; also how a scheduler's gates show in what it writes,
since nobody can read them. Must not know how the API server's were found out.
"""

from collections.abc import Iterator

import msgspec

from jackfield.model.claim import ResourceClaim
from jackfield.model.device import Device
from jackfield.model.gates import Component, Gate, Gates
from jackfield.model.names import DeviceID, Key, Seconds
from jackfield.model.plan import Plan, Waiting
from jackfield.model.policy import Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import Delta, ObjectChanged, View

RELEASE = "1.34"
"""The first release of Kubernetes that serves what we need."""

_EVERYWHERE = (Component.API_SERVER, Component.SCHEDULER, Component.CONTROLLER_MANAGER)
_READERS: dict[Gate, tuple[Component, ...]] = {
    Gate.BINDING_CONDITIONS: (Component.API_SERVER, Component.SCHEDULER),
    Gate.DEVICE_STATUS: (Component.API_SERVER, Component.SCHEDULER),
    Gate.PARTITIONABLE_DEVICES: (Component.API_SERVER, Component.SCHEDULER),
    Gate.DEVICE_TAINTS: _EVERYWHERE,
    Gate.TAINT_RULES: _EVERYWHERE,
}


class Finding(msgspec.Struct, frozen=True):
    """Something that a cluster lacks, what that means, and what to do."""

    gates: tuple[Gate, ...]
    """The gates that are off; none where the release is too old."""
    meaning: str
    remedy: str
    grave: bool
    """Whether no device can be handed over as long as this stands."""

    def __str__(self) -> str:
        return f"{self.meaning}; {self.remedy}"


def findings(gates: Gates) -> tuple[Finding, ...]:
    """Return what an API server lacks, the gravest first."""
    return tuple(_findings(gates))


def fitted(policy: Policy, gates: Gates) -> Policy:
    """Return the policy as far as the cluster can carry it out."""
    return msgspec.structs.replace(policy, taint_rules=policy.taint_rules and gates.taint_rules)


def decide(gates: Gates, view: View, key: Key, policy: Policy, now: Seconds) -> Plan:
    """Return what a claim's allocation says about the scheduler that made it, as something waited for."""
    del policy, now
    claim = view.claim(key)
    finding = scheduler(view, claim, gates) if claim is not None else None
    if finding is None:
        return Plan()
    return Plan(waiting=(Waiting(f"claim/{key}", "SchedulerGate", str(finding)),))


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[Key, ...]:
    """Return the claim that was just allocated: an older allocation may be from before a gate was switched on."""
    del view, policy
    match delta:
        case ObjectChanged(old=ResourceClaim() as old, new=ResourceClaim() as new) if (
            new.results and not old.results
        ):
            return (new.key,)
        case _:
            return ()


def scheduler(view: View, claim: ResourceClaim, gates: Gates) -> Finding | None:
    """Return what a claim's allocation shows about its scheduler, or None where it shows nothing amiss.

    With the gate on, a scheduler stamps every allocation with its time, and copies an entry's binding conditions.
    The API server would drop both if its own gate were off, so then nothing is concluded.
    """
    allocation = claim.status.allocation
    if allocation is None or not gates.binding_conditions:
        return None
    for result in claim.results:
        entry = _entry(view.slice_with(result.id), result.id)
        if entry is not None and entry.binding_conditions and not result.binding_conditions:
            return _hasty(claim, result.id)
    return None if allocation.allocation_timestamp else _blind(claim)


def _findings(gates: Gates) -> Iterator[Finding]:
    if not gates.claims:
        release = f" ({gates.kubernetes})" if gates.kubernetes else ""
        yield Finding(
            (),
            f"this Kubernetes{release} does not serve resource.k8s.io/v1, so that no pod can claim a device",
            f"upgrade to Kubernetes {RELEASE} or newer",
            grave=True,
        )
        return
    if not gates.binding_conditions:
        yield _off(
            (Gate.BINDING_CONDITIONS, Gate.DEVICE_STATUS),
            "pods cannot wait for a device to be attached, so that none can be offered from the pool",
            grave=True,
        )
    if not gates.per_device_node_selection:
        yield _off(
            (Gate.PARTITIONABLE_DEVICES,),
            "entries of one slice cannot have nodes of their own, so that none can be offered from the pool",
            grave=True,
        )
    if not gates.taint_rules:
        taints = () if gates.device_taints else (Gate.DEVICE_TAINTS,)
        rules = f"{DeviceTaintRule.group}/{DeviceTaintRule.version}"
        yield Finding(
            (*taints, Gate.TAINT_RULES),
            f"DeviceTaintRules of {rules} are not served: a vendor's device cannot be tainted before it leaves, and "
            "a pod may still be given it; devices of our own driver are not concerned",
            f"{_switched((*taints, Gate.TAINT_RULES))}, and {Component.API_SERVER} with --runtime-config={rules}=true",
            grave=False,
        )


def _off(gates: tuple[Gate, ...], meaning: str, *, grave: bool) -> Finding:
    off = f"{gates[0]} is off" if len(gates) == 1 else f"{' and '.join(gates)} are not both on"
    return Finding(gates, f"{off}: {meaning}", _switched(gates), grave)


def _switched(gates: tuple[Gate, ...]) -> str:
    readers = [one for one in Component if any(one in _READERS[gate] for gate in gates)]
    switches = ",".join(f"{gate}=true" for gate in gates)
    return f"start {', '.join(readers[:-1])} and {readers[-1]} with --feature-gates={switches}"


def _hasty(claim: ResourceClaim, device: DeviceID) -> Finding:
    return Finding(
        (Gate.BINDING_CONDITIONS, Gate.DEVICE_STATUS),
        f"claim {claim.key} was given {device} without its binding conditions: whoever allocated it knows none, "
        "and binds pods before their device is attached",
        f"use a {Component.SCHEDULER} of {RELEASE} or newer with --feature-gates={Gate.BINDING_CONDITIONS}=true",
        grave=True,
    )


def _blind(claim: ResourceClaim) -> Finding:
    return Finding(
        (Gate.BINDING_CONDITIONS, Gate.DEVICE_STATUS),
        f"the allocation of claim {claim.key} bears no time: whoever allocated it has {Gate.BINDING_CONDITIONS} off, "
        "and passes over every device of the pool",
        f"start {Component.SCHEDULER} with --feature-gates={Gate.BINDING_CONDITIONS}=true,{Gate.DEVICE_STATUS}=true",
        grave=True,
    )


def _entry(found: ResourceSlice | None, device: DeviceID) -> Device | None:
    if found is None:
        return None
    return next((one for one in found.spec.devices if one.name == device.device), None)

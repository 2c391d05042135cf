"""Replicas and their leases → who leads which fabric.

Knows rendezvous hashing and to which fabric each key belongs. Must not know how a lease is kept.
"""

import hashlib
from functools import lru_cache

import msgspec

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import FabricName, Key, NodeName, Seconds
from jackfield.model.plan import SliceKey
from jackfield.model.policy import Policy
from jackfield.model.view import View

NO_FABRIC = FabricName("")
"""What belongs to no fabric is led like one more."""


class Replica(msgspec.Struct, frozen=True):
    """A process that runs controllers, and how long it is taken to be alive."""

    name: str
    until: Seconds


def living(replicas: tuple[Replica, ...], now: Seconds) -> tuple[str, ...]:
    """Return the names of those whose lease has not run out, in order."""
    return tuple(sorted(one.name for one in replicas if now < one.until))


@lru_cache(maxsize=4096)  # asked for every key that is looked at, of few fabrics and replicas
def leader(fabric: FabricName, names: tuple[str, ...]) -> str:
    """Return who leads a fabric: the highest score wins, so that one who leaves moves only what it led."""
    return max(names, key=lambda name: (_score(fabric, name), name), default="")


def _score(fabric: FabricName, name: str) -> bytes:
    return hashlib.sha256(f"{fabric}\n{name}".encode()).digest()


# --- whose fabric a key is


def of_slice(view: View, policy: Policy, key: SliceKey) -> FabricName:
    """Return the fabric whose devices a slice lists."""
    del view, policy
    return key.fabric


def of_node(view: View, policy: Policy, node: NodeName) -> FabricName:
    """Return the fabric that a node is a machine of; if its manager does not show it to us, what the API says of it.

    Another replica may have been shown it before us, or have been shown last that it is gone: were it nobody's for one
    of us, we would both lead it. Its label says whose it is, and when the node is gone what was lent to it does.
    """
    shown = home(view, node)
    if shown is not None:
        return shown
    found = view.node(node)
    label = found.metadata.labels.get(policy.fabric_label()) if found is not None else None
    return FabricName(label) if label else _lent(view, policy, node)


def home(view: View, node: NodeName) -> FabricName | None:
    """Return the fabric that a node is a machine of, or, if no manager shows it any more, whose device stands there."""
    shown = view.fabric_of(node)
    if shown is not None:
        return shown
    left = view.attached(node)
    return next((one for one in view.fabrics() for had in left if view.place_of(one, had.id) == node), None)


def _lent(view: View, policy: Policy, node: NodeName) -> FabricName:
    """Return the fabric of a device that stands on a node, that a claim was given there, or that is wanted there."""
    standing = (one.device for one in view.resources_on(node))
    given = (result.id for claim in view.claims_on(node) for result in claim.results)
    wanted = (one.device for request in view.requests_on(node) for one in request.wanted)
    found = (naming.fabric_of(one, policy) for one in (*standing, *given, *wanted) if one is not None)
    return next((one for one in found if one is not None), NO_FABRIC)


def of_claim(view: View, policy: Policy, key: Key) -> FabricName:
    """Return the fabric of a claim's first device that has one."""
    claim = view.claim(key)
    found = _fabrics(claim, policy) if claim is not None else ()
    return next(iter(found), NO_FABRIC)


def _fabrics(claim: ResourceClaim, policy: Policy) -> tuple[FabricName, ...]:
    found = (naming.fabric_of(result.id, policy) for result in claim.results)
    return tuple(one for one in found if one is not None)


def of_request(view: View, policy: Policy, name: str) -> FabricName:
    """Return the fabric of the node that a request names; one that leaves us the choice belongs to none."""
    request = view.request(name)
    return (
        of_node(view, policy, request.spec.resource.target_node)
        if request is not None
        else _left(view, policy, name)
    )


def _left(view: View, policy: Policy, request: str) -> FabricName:
    """What a request leaves behind belongs where it stands."""
    children = view.resources_of(request)
    return of_node(view, policy, children[0].node) if children else NO_FABRIC


def of_resource(view: View, policy: Policy, name: str) -> FabricName:
    """Return the fabric that a resource's device comes from."""
    resource = view.resource(name)
    device = resource.device if resource is not None else None
    return (naming.fabric_of(device, policy) if device is not None else None) or NO_FABRIC


def of_none(view: View, policy: Policy, key: object) -> FabricName:
    """Return no fabric: what is decided for the cluster as a whole."""
    del view, policy, key
    return NO_FABRIC

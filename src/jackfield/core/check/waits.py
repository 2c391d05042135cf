"""Whether what somebody says he waits for is so.

Knows, for the words that claims and resources give as reasons, what must then be seen. Must not know who decided to
wait: this is a second opinion, from the objects alone.
"""

from collections.abc import Callable, Mapping
from typing import Final

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import RELEASED, VISIBLE, ComposableResource, ResourceState
from jackfield.model.meta import holds
from jackfield.model.names import Key
from jackfield.model.plan import Waiting
from jackfield.model.view import View

ATTACHING = (ResourceState.NEW, ResourceState.ATTACHING)
LEAVING = (ResourceState.DETACHING, ResourceState.DELETING)


def untrue(view: View, waiting: Waiting) -> str:
    """Return what is so instead of what is said to be waited for; empty if it is true, or nothing can be said of it."""
    kind, _, name = waiting.object.partition("/")
    namespace, _, last = name.rpartition("/")
    if kind == "claim":
        claim = view.claim(Key(namespace, last))
        if claim is None:
            return "it does not exist"
        test = _CLAIMS.get(waiting.reason)
        return test(view, claim) if test is not None else ""
    if kind == "resource":
        resource = view.resource(last)
        if resource is None:
            return "it does not exist"
        about = _RESOURCES.get(waiting.reason)
        return about(resource) if about is not None else ""
    return ""


# --- claims


def _composing(view: View, claim: ResourceClaim) -> str:
    there = [one for one in _resources(view, claim) if one is None]
    return "" if there else "all its devices are ordered"


def _attaching(view: View, claim: ResourceClaim) -> str:
    coming = [one for one in _resources(view, claim) if one is not None and one.state in ATTACHING]
    return "" if coming else "none of its devices is being attached"


def _moving(view: View, claim: ResourceClaim) -> str:
    elsewhere = [
        one
        for one in _resources(view, claim)
        if one is not None and (one.node != claim.node or one.state in LEAVING or one.deleting)
    ]
    return "" if elsewhere else f"all its devices stand on {claim.node}"


def _held(view: View, claim: ResourceClaim) -> str:
    held = [one for one in _resources(view, claim) if one is not None and one.holder]
    return "" if held else "none of its devices is held"


def _pod(view: View, claim: ResourceClaim) -> str:
    return "" if view.pods_using(claim.key) else "no pod uses it"


def _recorded(view: View, claim: ResourceClaim) -> str:
    others = [
        one
        for one in _resources(view, claim)
        if one is not None and one.record and one.record.uid != claim.uid
    ]
    given = [result.id for result in claim.results]
    earlier = [one for one in view.resources_recording(claim.key) if one.device not in given]
    return "" if others or earlier else "nothing is recorded that stands in its way"


def _resources(view: View, claim: ResourceClaim) -> tuple[ComposableResource | None, ...]:
    return tuple(view.resource_of(result.id) for result in claim.results)


_CLAIMS: Final[Mapping[str, Callable[[View, ResourceClaim], str]]] = {
    "Composing": _composing,
    "Attaching": _attaching,
    "Moving": _moving,
    "Held": _held,
    "Pod": _pod,
    "Recorded": _recorded,
}

# --- resources


def _visible(resource: ComposableResource) -> str:
    return "its node has seen it" if holds(resource.status.conditions, VISIBLE) else ""


def _released(resource: ComposableResource) -> str:
    return "it is released" if holds(resource.status.conditions, RELEASED) else ""


def _in_use(resource: ComposableResource) -> str:
    return "" if resource.record is not None or resource.holder else "nobody has it"


def _is_attaching(resource: ComposableResource) -> str:
    return "" if resource.state in ATTACHING else f"it is {resource.state}"


def _is_detaching(resource: ComposableResource) -> str:
    return "" if resource.state in LEAVING or resource.deleting else f"it is {resource.state.value or 'new'}"


_RESOURCES: Final[Mapping[str, Callable[[ComposableResource], str]]] = {
    "Visible": _visible,
    "Released": _released,
    "Recorded": _in_use,
    "Attaching": _is_attaching,
    "Detaching": _is_detaching,
}

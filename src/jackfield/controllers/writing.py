"""Writing to the API, and knowing at once what was written, so that no later decision is made on our own stale past.

Knows how conditions, annotations and finalizers are spelt on the wire. Must not know what they mean, nor choose.
"""

from collections.abc import Callable, Mapping

import msgspec

from jackfield.controllers.lead import Lead
from jackfield.controllers.store import Store
from jackfield.model.composition import (
    FINALIZER,
    ComposabilityRequest,
    ComposableResource,
)
from jackfield.model.event import Event
from jackfield.model.host import Facts
from jackfield.model.meta import Condition, Object, with_condition
from jackfield.model.names import (
    NEVER,
    FabricName,
    Key,
    NodeName,
    OrderID,
    PhysicalID,
    Version,
    named,
    rfc3339,
)
from jackfield.model.plan import (
    MarkMissing,
    MarkReleased,
    MarkVisible,
    Release,
)
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Delta
from jackfield.ports import Apply, Gone, Merge, World


class Hands(msgspec.Struct, frozen=True):
    """What an action is carried out with."""

    world: World
    store: Store
    told: Callable[[tuple[Delta, ...]], None]
    """Hears of every change that an answer brought."""
    moved: Callable[[FabricName], None]
    """Hears that a fabric's inventory is not what it was."""
    tell: Callable[[Object, Event], None]
    """Hears what is worth telling a user about an object."""
    lead: Lead
    """Knows whether the fabric may still be asked for anything."""
    decided: float = NEVER
    """How many changes the store had taken when it was decided what is done now; NEVER means that it is decided now."""
    adopting: dict[tuple[FabricName | None, PhysicalID], tuple[str, Version]] = msgspec.field(
        default_factory=dict
    )
    """In whose books each device was last written, and over which version: without an answer it may yet arrive."""
    unclaimed: dict[OrderID, None] = msgspec.field(default_factory=dict)
    """Orders that are being closed, and whose devices no claim had when the API was asked."""


ANY = Version("")
"""Whatever version there is."""


def sense(hands: Hands, node: NodeName) -> None:
    """Take what a node sees and has prepared into the store."""
    host = hands.world.hosts[node]
    hands.told(hands.store.sense(node, Facts(host.seen(), host.prepared())))


def know(hands: Hands, answer: Object) -> None:
    """Take an answer of the API for what is."""
    hands.told(hands.store.put(answer))


async def write(hands: Hands, patch: Merge | Apply) -> Object:
    """Change an object, and know what it is then; that it is gone is news too: a watch may be behind."""
    known = hands.store.get(patch.kind, patch.key)
    try:
        answer = await hands.world.cluster.write(patch)
    except Gone:
        hands.told(hands.store.remove(known) if known is not None else ())
        raise
    know(hands, answer)
    return answer


async def put(hands: Hands, new: ResourceSlice | ComposabilityRequest, body: Mapping[str, object]) -> None:
    """Create what has no version; put the rest in place of the version it carries. What `body` does not name stays."""
    if new.metadata.resource_version:
        await merge(hands, type(new), new.key, new.metadata.resource_version, body)
    else:
        know(hands, await hands.world.cluster.create(new))


async def merge(
    hands: Hands, kind: type[Object], key: Key, version: Version, body: Mapping[str, object]
) -> Object:
    """Change what the patch names, if the version is still that one; return what it is then."""
    return await write(hands, Merge(kind, key, version, body))


async def annotate(hands: Hands, resource: str, version: Version, notes: Mapping[str, str | None]) -> Version:
    """Write annotations of a resource, None to take one away; return its next version."""
    body = {"metadata": {"annotations": dict(notes)}}
    answer = await merge(hands, ComposableResource, named(resource), version, body)
    return answer.metadata.resource_version


async def put_status(hands: Hands, resource: str, version: Version, status: Mapping[str, object]) -> None:
    """Write a resource's status."""
    known = hands.store.resource(resource)
    if known is not None and dict(status) == {"error": known.status.error}:
        return  # what went wrong before has gone wrong again: no news
    patch = Merge(ComposableResource, named(resource), version, {"status": dict(status)}, status=True)
    await write(hands, patch)


async def say(
    hands: Hands,
    action: MarkVisible | MarkMissing | MarkReleased | Release,
    kind: str,
    status: Mapping[str, object],
    *,
    holds: bool = True,
) -> None:
    """Write a condition on the very resource that was decided on; its version guards the others' conditions."""
    known = hands.store.resource(action.resource)
    message = action.message if isinstance(action, MarkVisible | MarkMissing) else action.because
    now = rfc3339(hands.world.clock.now())
    new = Condition(
        kind, status="True" if holds else "False", reason=kind, message=message, last_transition_time=now
    )
    conditions = with_condition(known.status.conditions if known else (), new)
    body = {**status, "conditions": [msgspec.to_builtins(one) for one in conditions]}
    await put_status(hands, action.resource, action.version, body)


async def finalizers(hands: Hands, kind: type[Object], name: str, version: Version, *, ours: bool) -> None:
    """Put our finalizer on an object, or take it off."""
    known = await hands.world.cluster.read(kind, named(name))
    others = [one for one in known.metadata.finalizers if one != FINALIZER]
    body = {"metadata": {"finalizers": [*others, *([FINALIZER] if ours else [])]}}
    answer = await merge(hands, kind, named(name), version, body)
    if answer.deleting and not answer.metadata.finalizers:
        # This one, not the next of its name, which may be known by now.
        hands.told(hands.store.remove(answer))

"""Events: what is worth telling a user about an object, said once and counted when it is said again.

Knows how an Event is named and counted. Must not know what is worth telling.
"""

import hashlib
from contextlib import suppress

from jackfield.model.event import Event, EventSource, ObjectReference
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, Version, rfc3339
from jackfield.ports import Clock, Cluster, Conflict, Merge, PortError

COMPONENT = "jackfield"
DIGEST_LENGTH = 12


async def tell(cluster: Cluster, clock: Clock, about: Object, event: Event) -> None:
    """Tell it; an Event is a courtesy, so what goes wrong with it stops nothing."""
    with suppress(PortError):
        await _tell(cluster, clock, about, event)


async def _tell(cluster: Cluster, clock: Clock, about: Object, event: Event) -> None:
    now = rfc3339(clock.now())
    name = _name(about, event)
    try:
        await cluster.create(
            Event(
                metadata=ObjectMeta(name=name.name, namespace=name.namespace),
                involved_object=_reference(about),
                type=event.type,
                reason=event.reason,
                message=event.message,
                source=EventSource(COMPONENT),
                first_timestamp=now,
                last_timestamp=now,
            )
        )
    except Conflict:
        said = await cluster.read(Event, name)
        body = {"count": said.count + 1, "lastTimestamp": now}
        await cluster.write(Merge(Event, name, Version(""), body))


def _name(about: Object, event: Event) -> Key:
    """The same words about the same object are one Event."""
    words = f"{about.uid}/{event.reason}/{event.message}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:DIGEST_LENGTH]
    return Key(about.metadata.namespace or "default", f"{about.metadata.name}.{digest}")


def _reference(about: Object) -> ObjectReference:
    kind = type(about)
    return ObjectReference(
        api_version=f"{kind.group}/{kind.version}" if kind.group else kind.version,
        kind=kind.__name__,
        namespace=about.metadata.namespace,
        name=about.metadata.name,
        uid=about.uid,
    )

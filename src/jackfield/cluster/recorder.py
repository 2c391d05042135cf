"""Events: what scheduler and kubelet tell the user about a pod.

Knows how an Event is named and addressed. Must not know when there is something to tell.
"""

import contextlib

from jackfield.codec import kinds
from jackfield.model.event import Event, EventSource, ObjectReference
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import rfc3339
from jackfield.ports import Clock, Cluster, Conflict, Gone, Refused, Retry

MESSAGE_BYTES_MAX = 1024
NORMAL = "Normal"
WARNING = "Warning"


class Recorder:
    """Tells, and does not mind not being heard."""

    def __init__(self, cluster: Cluster, clock: Clock, component: str) -> None:
        self._cluster = cluster
        self._clock = clock
        self._component = component

    async def tell(self, about: Object, reason: str, message: str, level: str = NORMAL) -> None:
        """Write an Event about the object."""
        now = self._clock.now()
        meta = about.metadata
        kind = kinds.of(type(about))
        event = Event(
            # The name makes an event told twice in one instant one event.
            metadata=ObjectMeta(
                name=f"{meta.name}.{reason.lower()}.{int(now * 1_000_000):x}",
                namespace=meta.namespace or "default",
            ),
            involved_object=ObjectReference(
                api_version=kind.api_version,
                kind=kind.kind,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
            ),
            type=level,
            reason=reason,
            message=_shortened(message),
            source=EventSource(self._component),
            first_timestamp=rfc3339(now),
            last_timestamp=rfc3339(now),
        )
        # An event that cannot be written is lost, there as here.
        with contextlib.suppress(Conflict, Gone, Refused, Retry):
            await self._cluster.create(event)


def _shortened(message: str) -> str:
    """Return as much of the message as the API takes."""
    return message.encode()[:MESSAGE_BYTES_MAX].decode(errors="ignore")

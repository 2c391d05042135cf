"""Event: something worth telling a user about an object.

Knows the core/v1 fields. Must not know when it is worth telling.
"""

from typing import ClassVar

import msgspec

from jackfield.model.meta import Object, Wire
from jackfield.model.names import NO_TIME, Time, Uid


class ObjectReference(Wire, frozen=True, gc=False):
    """The object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: Uid = Uid("")


class EventSource(Wire, frozen=True, gc=False):
    """Who tells."""

    component: str = ""


class Event(Object, frozen=True, gc=False, kw_only=True):
    """Something worth telling."""

    plural: ClassVar[str] = "events"
    namespaced: ClassVar[bool] = True

    involved_object: ObjectReference = msgspec.field(default=ObjectReference())
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    count: int = 1
    first_timestamp: Time = NO_TIME
    last_timestamp: Time = NO_TIME

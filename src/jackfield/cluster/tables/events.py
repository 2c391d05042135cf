"""Events: what happened to what, how often, first and last.

Knows events as older and as newer clients write them: with two timestamps and a count, or with one time and a series.
Must not know what any of them means.
"""

from typing import Final

import msgspec

from jackfield.cluster.tables.column import NAME, WIDE, Printer, Shown, as_shown, column, since
from jackfield.model.meta import Wire

_BLANKS: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What Go calls white space; Python knows four more."""


class _Reference(Wire, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    field_path: str = ""


class _Source(Wire, frozen=True, gc=False):
    component: str = ""
    host: str = ""


class _Series(Wire, frozen=True, gc=False):
    count: int = 0
    last_observed_time: str | None = None


class _Event(Shown, frozen=True, gc=False):
    involved_object: _Reference = _Reference()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: _Source = _Source()
    reporting_component: str = ""
    reporting_instance: str = ""
    count: int = 0
    series: _Series | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None


def _first(event: _Event) -> str | None:
    return event.first_timestamp or event.event_time


def _last(event: _Event) -> str | None:
    return event.series.last_observed_time if event.series else event.last_timestamp or _first(event)


def _count(event: _Event) -> int:
    return event.series.count if event.series else event.count or 1


def _target(event: _Event) -> str:
    about = event.involved_object
    return f"{about.kind.lower()}/{about.name}" if about.name else about.kind.lower()


def _source(event: _Event) -> str:
    component = event.source.component or event.reporting_component
    instance = event.source.host or event.reporting_instance
    return f"{component}, {instance}" if instance else component


EVENT: Final = Printer[_Event](
    as_shown(_Event),
    (
        since("Last Seen", _last),
        column("Type", lambda one: one.type),
        column("Reason", lambda one: one.reason),
        column("Object", _target),
        column("Subobject", lambda one: one.involved_object.field_path, WIDE),
        column("Source", _source, WIDE),
        column("Message", lambda one: one.message.strip(_BLANKS)),
        since("First Seen", _first, WIDE),
        column("Count", _count, WIDE),
        msgspec.structs.replace(NAME, priority=WIDE),
    ),
)

"""Custom resources: columns as their definition describes them.

Knows `additionalPrinterColumns` and the simple paths they may use. Must not know any definition.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from jackfield.cluster.tables.ages import age
from jackfield.cluster.tables.column import Column, Printer
from jackfield.codec.wire import Raw, RawValue
from jackfield.model.names import Seconds

_STEP: Final = re.compile(r"\.((?:\\.|[^.\[\\])+)|\['([^']*)'\]|\[(-?\d+)\]", re.ASCII)
"""A step into an object, by a name in which dots are escaped or which is quoted; or into a list, by a number."""


def printer(additional: Sequence[Raw]) -> Printer[Raw]:
    """Return the columns of a custom resource."""
    return Printer(_whole, (_NAME, *(_column(one) for one in additional or _DEFAULT)))


def _whole(row: Raw) -> Raw:
    """Return all of an object: its definition may show any part of it."""
    return row


def _column(described: Raw) -> Column[Raw]:
    steps = path(described["jsonPath"])
    printed = _PRINTED[described["type"]]

    def cell(row: Raw, now: Seconds) -> RawValue:
        found = _found(row, steps)
        return None if found is _NOTHING else printed(found, now)

    return Column(
        name=described["name"],
        cell=cell,
        priority=described.get("priority", 0),
        type=described["type"],
        format=described.get("format", ""),
    )


def path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a simple path. Raises ValueError for one that is not."""
    found = list(_STEP.finditer(text))
    if "".join(one[0] for one in found) != text or not found:
        raise ValueError(f"{text!r} is no simple path")
    return tuple(int(one[3]) if one[3] else re.sub(r"\\(.)", r"\1", one[1] or one[2]) for one in found)


_NOTHING: Final = object()


def _found(value: RawValue, steps: tuple[str | int, ...]) -> RawValue:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, _NOTHING) if type(value) is dict else _NOTHING
        elif type(value) is list and -len(value) <= step < len(value):
            value = value[step]
        else:
            return _NOTHING
    return value


# --- cells by the type of their column


def _text(value: RawValue, _: Seconds) -> str:
    if isinstance(value, str):
        return value
    return "<no value>" if value is None else msgspec.json.encode(value, order="deterministic").decode()


def _integer(value: RawValue, _: Seconds) -> int | None:
    return int(value) if type(value) in {int, float} else None


def _number(value: RawValue, _: Seconds) -> float | None:
    return value if type(value) in {int, float} else None


def _boolean(value: RawValue, _: Seconds) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: RawValue, now: Seconds) -> str | None:
    return age(value, now) if isinstance(value, str) else None


_PRINTED: Final[dict[str, Callable[[RawValue, Seconds], RawValue]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
_NAME: Final = _column({"name": "Name", "type": "string", "format": "name", "jsonPath": ".metadata.name"})
_DEFAULT: Final[tuple[Raw, ...]] = (
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)

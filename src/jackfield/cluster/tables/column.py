"""What a table consists of: columns, each with a name, a type, a priority and a small function from row to cell.

Knows how objects are read for a table: only what it shows, once for all its columns. Must not know any kind.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from jackfield.cluster.tables.ages import age
from jackfield.codec.wire import Raw, RawValue, without_nulls
from jackfield.model.meta import Wire
from jackfield.model.names import Seconds

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
S = TypeVar("S", bound="Shown")

NONE: Final = "<none>"
WIDE: Final = 1
"""The priority of columns that only `kubectl get -o wide` shows."""


class Metadata(Wire, frozen=True, gc=False):
    """What is shown of any object's metadata."""

    name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}


class Shown(Wire, frozen=True, gc=False):
    """What a table shows of an object; each kind adds its own."""

    metadata: Metadata = Metadata()


class Column(msgspec.Struct, Generic[T_contra], frozen=True):
    """One column of a table."""

    name: str
    cell: Callable[[T_contra, Seconds], RawValue]
    """From what is read of an object, and the time it is looked at, to what stands in the cell."""
    priority: int = 0
    type: str = "string"
    format: str = ""

    @property
    def definition(self) -> Raw:
        """The column as the head of a table has it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


def _no_conditions(_: object) -> list[Raw]:
    return []


class Printer(msgspec.Struct, Generic[T], frozen=True):
    """How one kind is shown."""

    read: Callable[[Raw], T]
    columns: tuple[Column[T], ...]
    conditions: Callable[[T], list[Raw]] = _no_conditions
    """What is remarkable about an object."""

    @property
    def head(self) -> list[Raw]:
        """The columns as a table has them."""
        return [one.definition for one in self.columns]

    def row(self, one: Raw, now: Seconds) -> Raw:
        """Return the row of an object."""
        shown = self.read(one)
        cells = [column.cell(shown, now) for column in self.columns]
        conditions = self.conditions(shown)
        return {"cells": cells, "conditions": conditions} if conditions else {"cells": cells}


def as_shown(kind: type[S]) -> Callable[[Raw], S]:
    """Return what reads objects as that.

    A null is the same as nothing. An object that cannot be read, which a server should not have, keeps its name.
    """

    def read(row: Raw) -> S:
        try:
            return msgspec.convert(row, kind)
        except msgspec.ValidationError:
            return slowly_read(row)

    def slowly_read(row: Raw) -> S:
        try:
            return msgspec.convert(without_nulls(row), kind)
        except msgspec.ValidationError:
            return msgspec.convert({"metadata": {"name": row["metadata"]["name"]}}, kind)

    return read


def column(name: str, function: Callable[[T], RawValue], priority: int = 0) -> Column[T]:
    """Return a column of what a function makes of each object, whatever the time."""
    return Column(name, lambda one, _: function(one), priority)


def since(name: str, time: Callable[[T], str | None], priority: int = 0) -> Column[T]:
    """Return a column of how long ago something was."""
    return Column(name, lambda one, now: age(time(one), now), priority)


NAME: Final = Column[Shown]("Name", lambda one, _: one.metadata.name, format="name")
AGE: Final = Column[Shown]("Age", lambda one, now: age(one.metadata.creation_timestamp, now))

"""Kinds that say little in a table: namespaces, leases, configuration, accounts, definitions.

Knows their columns. Must not know what they are for.
"""

from typing import Final

from jackfield.cluster.tables.column import AGE, NAME, Column, Printer, Shown, as_shown, column
from jackfield.codec.wire import RawValue
from jackfield.model.meta import Wire

_NEVER: Final = "0001-01-01T00:00:00Z"


class _Phase(Wire, frozen=True, gc=False):
    phase: str = ""


class _Namespace(Shown, frozen=True, gc=False):
    status: _Phase = _Phase()


class _Holder(Wire, frozen=True, gc=False):
    holder_identity: str = ""


class _Lease(Shown, frozen=True, gc=False):
    spec: _Holder = _Holder()


class _Data(Shown, frozen=True, gc=False):
    type: str = ""
    data: dict[str, RawValue] = {}
    binary_data: dict[str, RawValue] = {}


NAMED: Final = Printer(as_shown(Shown), (NAME, AGE))
"""Of these kinds there is nothing to say but their names."""
OTHER: Final = Printer(
    as_shown(Shown),
    (NAME, Column("Created At", lambda one, _: one.metadata.creation_timestamp or _NEVER, type="date")),
)
"""Definitions, and every kind that brings no columns of its own."""
NAMESPACE: Final = Printer[_Namespace](
    as_shown(_Namespace), (NAME, column("Status", lambda one: one.status.phase), AGE)
)
LEASE: Final = Printer[_Lease](
    as_shown(_Lease), (NAME, column("Holder", lambda one: one.spec.holder_identity), AGE)
)
CONFIG_MAP: Final = Printer[_Data](
    as_shown(_Data), (NAME, column("Data", lambda one: len(one.data) + len(one.binary_data)), AGE)
)
SECRET: Final = Printer[_Data](
    as_shown(_Data),
    (NAME, column("Type", lambda one: one.type), column("Data", lambda one: len(one.data)), AGE),
)

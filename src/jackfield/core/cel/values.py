"""CEL's values where Python has none of its own: unsigned integers, versions, optionals, times, types.

Knows what a value is, how it is named and how it compares. Must not know functions or expressions.
Lists are Python's lists, maps its dictionaries; strings, bytes, doubles, booleans and null are themselves.
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Final, ParamSpec, TypeVar

import msgspec

from jackfield.core.cel.faults import CelError, UncertainError
from jackfield.model.quantity import Quantity

P = ParamSpec("P")
R = TypeVar("R")

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned integer; equal to the integer of the same amount."""

    __slots__ = ()


class Sum(Quantity, frozen=True, gc=False, eq=False):
    """A quantity that was computed: Kubernetes cannot compare anything with it by `==`, only it with others."""


class Semver(msgspec.Struct, frozen=True, eq=False):
    """A version; build metadata plays no part in comparisons."""

    major: int
    minor: int
    patch: int
    order: tuple[object, ...]
    """Sorts as versions do: no pre-release last, numbers before words."""
    text: str = ""

    def __eq__(self, other: object) -> bool:
        # Plain comparison is for the fast rendering only; with anything else Kubernetes' answer depends on the side.
        if not isinstance(other, Semver):
            raise UncertainError
        return self.order == other.order

    def __hash__(self) -> int:
        raise UncertainError


class Optional(msgspec.Struct, frozen=True, eq=False):
    """A value that may be absent."""

    present: bool
    value: object = None


NONE: Final = Optional(present=False)


class Duration(msgspec.Struct, frozen=True, order=True):
    """A span of time."""

    nanos: int


class Timestamp(msgspec.Struct, frozen=True, eq=False):
    """A point in time, in nanoseconds since 1970; how far east it was written shows only where it is written again."""

    nanos: int
    east_seconds: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __lt__(self, other: "Timestamp") -> bool:
        return self.nanos < other.nanos

    def __gt__(self, other: "Timestamp") -> bool:
        return self.nanos > other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value."""

    name: str


class IP(msgspec.Struct, frozen=True):
    """An address."""

    address: IPv4Address | IPv6Address


class CIDR(msgspec.Struct, frozen=True):
    """An address with the length of its network's prefix."""

    interface: IPv4Interface | IPv6Interface


class URL(msgspec.Struct, frozen=True):
    """A URL, in parts; `path` and `query` are escaped as they were written."""

    scheme: str
    host: str
    path: str
    query: str
    text: str


class NamedFormat(msgspec.Struct, frozen=True):
    """A format that strings can be checked against."""

    name: str


class Unlike:
    """A key that is equal to none but itself: Kubernetes takes lists and maps for keys, but never finds them again."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def plain(key: object) -> object:
    """Return a key as it was written."""
    return key.value if isinstance(key, Unlike) else key


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
    Sum: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    IP: "net.IP",
    CIDR: "net.CIDR",
    URL: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
}


def type_name(value: object) -> str:
    """Return the name of a value's type, as CEL prints it."""
    for one in type(value).__mro__:
        if one in _NAMES:
            return _NAMES[one]
    return "kubernetes.DRADevice"


_GO_NAMES: Final = {
    "string": "types.String",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


def go_name(value: object) -> str:
    """Return the name of a value's type, as Go prints it."""
    name = type_name(value)
    return f"{'*' if isinstance(value, Sum) else ''}{_GO_NAMES.get(name, name)}"


class Function:
    """A function with overloads, chosen by the classes of its arguments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.overloads: list[tuple[tuple[type, ...], Callable[..., object]]] = []
        self._chosen: dict[tuple[type, ...], Callable[..., object]] = {}

    def __call__(self, *args: object) -> object:
        """Return the answer for these arguments; raises CelError where no overload takes them."""
        classes = tuple(map(type, args))
        chosen = self._chosen.get(classes)
        if chosen is None:
            chosen = self._choose(classes, args)
        return chosen(*args)

    def _choose(self, classes: tuple[type, ...], args: tuple[object, ...]) -> Callable[..., object]:
        for wanted, implementation in self.overloads:
            if len(wanted) == len(classes) and all(map(_fits, classes, wanted)):
                # The classes of values are few, so this stays small.
                self._chosen[classes] = implementation
                return implementation
        names = ", ".join(map(type_name, args))
        raise CelError(f"no such overload: {self.name}({names})")


def _fits(given: type, wanted: type) -> bool:
    return given is int if wanted is int else issubclass(given, wanted)


FUNCTIONS: Final[dict[str, Function]] = {}


def overload(name: str, *classes: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function for arguments of these classes; `object` takes anything."""

    def declare(implementation: Callable[P, R]) -> Callable[P, R]:
        FUNCTIONS.setdefault(name, Function(name)).overloads.append((classes, implementation))
        return implementation

    return declare

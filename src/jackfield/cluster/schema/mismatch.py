"""Values of the wrong type, in the words of Go's decoder.

Knows in which order that decoder reads, what it calls types, and which of several mistakes it tells: the first, unless
a value that reads itself is none, which ends the reading. Must not know strictness: unknown fields are passed over.
"""

from typing import Final

from jackfield.cluster.schema import doubles, readers
from jackfield.cluster.schema.node import ANY, Node
from jackfield.codec import RawValue

Place = tuple[str, tuple[str, ...]]
"""The struct that is being filled, and the fields that lead to where we are."""
NOWHERE: Final[Place] = ("", ())

_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}
_BYTES: Final = "[]uint8"
_BYTE_MAX: Final = 255


class _Stop(Exception):  # noqa: N818 - ends the reading, and is never seen outside
    pass


def first(node: Node, raw: RawValue) -> str:
    """Return what the decoder says to a value of this type; empty if it takes it."""
    reading = _Reading()
    try:
        reading.read(node, raw, NOWHERE)
    except _Stop as stop:
        return str(stop)
    return reading.told


class _Reading:
    """One reading of one body."""

    def __init__(self) -> None:
        self.told = ""

    def read(self, node: Node, value: RawValue, place: Place) -> None:
        """Look at a value and all that is in it."""
        if value is None or node.type == ANY:
            return
        match node.type:
            case "object":
                self._object(node, value, place)
            case "array":
                self._array(node, value, place)
            case "string":
                self._string(node, value, place)
            case _:
                self._scalar(node, value, place)

    def _object(self, node: Node, value: RawValue, place: Place) -> None:
        if not isinstance(value, dict):
            self._tell(_word(value), node.go_type, place)
            return
        struct = node.name.rpartition(".")[2]
        for name, one in doubles.members(value):
            member = node.member(name)
            if member is None:
                continue
            if node.is_map:
                self.read(member, one, place)
            else:
                wrapped = tuple(member.wrapper.split(".")) if member.wrapper else ()
                self.read(member, one, (struct, (*place[1], *wrapped, name)))

    def _array(self, node: Node, value: RawValue, place: Place) -> None:
        if not isinstance(value, list):
            self._tell(_word(value), node.go_type, place)
        elif node.items is not None:
            for one in value:
                self.read(node.items, one, place)

    def _string(self, node: Node, value: RawValue, place: Place) -> None:
        if node.format == "date-time":
            self._time(node, value, place)
        elif node.format == "byte":
            self._bytes(value, place)
        elif not isinstance(value, str):
            self._tell(_word(value), node.go_type, place)

    def _time(self, node: Node, value: RawValue, place: Place) -> None:
        if not isinstance(value, str):
            raise _Stop(_complaint(_word(value), "string", place))
        layout = readers.RFC3339_MICRO if node.name.endswith(".MicroTime") else readers.RFC3339
        wrong = readers.time_error(value, layout)
        if wrong:
            raise _Stop(wrong)

    def _bytes(self, value: RawValue, place: Place) -> None:
        match value:
            case str():
                self.told = self.told or readers.base64_error(value)
            case list():
                for one in value:
                    self._integer(one, "uint8", range(_BYTE_MAX + 1), place)
            case _:
                self._tell(_word(value), _BYTES, place)

    def _scalar(self, node: Node, value: RawValue, place: Place) -> None:
        match node.type:
            case "integer":
                limit = _INTEGERS[node.format or "int64"]
                self._integer(value, node.go_type, range(-limit, limit), place)
            case "quantity":
                self._quantity(value)
            case "int-or-string":
                self._int_or_string(value, place)
            case "boolean" if not isinstance(value, bool):
                self._tell(_word(value), node.go_type, place)
            case "number" if isinstance(value, bool) or not isinstance(value, int | float):
                self._tell(_word(value), node.go_type, place)

    def _integer(self, value: RawValue, go_type: str, allowed: range, place: Place) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._tell(_word(value), go_type, place)
        elif isinstance(value, float) or value not in allowed:
            self._tell(f"number {value}", go_type, place)

    def _quantity(self, value: RawValue) -> None:
        text = (
            value if isinstance(value, str) else "{" if isinstance(value, dict | list | bool) else f"{value}"
        )
        wrong = readers.quantity_error(text)
        if wrong:
            raise _Stop(wrong)

    def _int_or_string(self, value: RawValue, place: Place) -> None:
        if isinstance(value, str):
            return
        inner = _Reading()
        limit = _INTEGERS["int32"]
        inner._integer(value, "int32", range(-limit, limit), place)
        if inner.told:
            raise _Stop(inner.told)

    def _tell(self, found: str, go_type: str, place: Place) -> None:
        self.told = self.told or _complaint(found, go_type, place)


def _complaint(found: str, go_type: str, place: Place) -> str:
    struct, fields = place
    where = f"Go struct field {struct}.{'.'.join(fields)}" if fields else "Go value"
    return f"json: cannot unmarshal {found} into {where} of type {go_type}"


def _word(value: RawValue) -> str:
    """Return what Go calls a kind of JSON value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"

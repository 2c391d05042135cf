"""What Kubernetes says of a strategically merged object that cannot be read into its types.

Knows schemas and the words of that one reader: JSON is read by another, which has its own. Must not know patches.
"""

from jackfield.cluster.schema import Node
from jackfield.codec import RawValue

_KINDS = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map"}
_AMOUNTS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def problem(value: RawValue, node: Node | None) -> str:
    """Return the first thing that cannot be read; nothing if all can, or nobody knows what it should be."""
    if value is None or node is None:
        return ""
    match node.type:
        case "object":
            return _in_object(value, node)
        case "array":
            return _in_list(value, node)
        case "string" | "integer" | "number" | "boolean":
            return _scalar(value, node)
        case "quantity" if isinstance(value, dict | list | bool):
            return _AMOUNTS
        case _:
            return ""


def _in_object(value: RawValue, node: Node) -> str:
    if not isinstance(value, dict):
        kind = _KINDS[type(value)]
        return f"cannot restore map from {kind}" if node.is_map else f"cannot restore struct from: {kind}"
    found = (problem(inner, node.member(name)) for name, inner in value.items())
    return next(filter(None, found), "")


def _in_list(value: RawValue, node: Node) -> str:
    if not isinstance(value, list):
        return f"cannot restore slice from {_KINDS[type(value)]}"
    return next(filter(None, (problem(item, node.items) for item in value)), "")


def _scalar(value: RawValue, node: Node) -> str:
    """Go turns numbers into each other, and would even make a letter of one, were it not kept from that."""
    match node.type, value:
        case ("string", str()) | ("boolean", bool()):
            return ""
        case "string", int() if not isinstance(value, bool):
            return f"cannot convert int64 to {node.go_type}"
        case "integer" | "number", int() | float() if not isinstance(value, bool):
            is_whole = node.type == "number" or isinstance(value, int) or value.is_integer()
            return "" if is_whole else f"cannot convert float64 to {node.go_type}"
        case "string", _:
            return "unrecognized type: string"
        case "boolean", _:
            return "unrecognized type: bool"
        case _:
            return f"unrecognized type: {node.go_type}"

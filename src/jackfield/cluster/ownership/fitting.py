"""Whether an applied configuration fits its schema, and what the server says where it does not.

Knows schemas and the server's words. Must not know what is done with the configuration.
"""

from collections.abc import Iterator

from jackfield.cluster.ownership.fields import Shape, spelt_element
from jackfield.cluster.patches import strategic
from jackfield.cluster.schema import Node
from jackfield.codec import Raw, RawValue
from jackfield.core.cel.quoting import quoted

Problem = tuple[str, str]
"""Where, and what."""


def problems(body: Raw, node: Node) -> str:
    """Return what does not fit, in the server's words; nothing if all does."""
    found = [f"{path}: {words}" if path else words for path, words in _problems(body, node, "")]
    if len(found) > 1:
        return "\n".join(["errors:", *(f"  {one}" for one in found)])
    return found[0] if found else ""


def _problems(value: RawValue, node: Node, path: str) -> Iterator[Problem]:
    if value is None or node.type == "any":
        return
    if node.type == "object":
        yield from _in_object(value, node, path)
    elif node.type == "array":
        yield from _in_list(value, node, path)
    elif words := _wrong_scalar(value, node.type):
        yield path, words


def _in_object(value: RawValue, node: Node, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield path, f"expected map, got &{{{strategic.spelt(value)}}}"
        return
    for name, inner in value.items():
        member = node.member(name)
        if member is not None:
            yield from _problems(inner, member, f"{path}.{name}")
        elif node.members:
            yield f"{path}.{name}", "field not declared in schema"
            # The server looks no further in this object.
            return


def _in_list(value: RawValue, node: Node, path: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield path, f"expected list, got &{{{strategic.spelt(value)}}}"
        return
    shape = Shape(node)
    seen: set[str] = set()
    for index, item in enumerate(value):
        at = f"[{index}]"
        if shape.keys or shape.is_set:
            if words := _keyless(item, shape):
                yield path, f"element {index}: {words}"
                return
            element = (shape.elements([item]) or [""])[0]
            at = spelt_element(element)
            if element in seen:
                yield path, f"duplicate entries for key {at}"
            seen.add(element)
        if node.items is not None:
            yield from _problems(item, node.items, f"{path}{at}")


def _keyless(item: RawValue, shape: Shape) -> str:
    """Return why an item cannot be told apart from the others."""
    if shape.is_set:
        match item:
            case dict():
                return "associative list without keys has an element that's a map type"
            case list():
                return "not supported: associative list with lists as elements"
            case None:
                return "associative list without keys has an element that's an explicit null"
            case _:
                return ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if any(key in item or default is not None for key, default in shape.keys):
        return ""
    names = " ".join(quoted(key) for key, _ in shape.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{names}]"
        " (and doesn't have default values for any key fields)"
    )


def _wrong_scalar(value: RawValue, wanted: str) -> str:
    match wanted:
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
        case "integer" | "number" if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got &{{{strategic.spelt(value)}}}"
        case "quantity" | "int-or-string" if isinstance(value, dict | list):
            return f"expected any scalar, got &{{{strategic.spelt(value)}}}"
        case _:
            return ""


def _go_type(value: RawValue) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _literal(value: RawValue) -> str:
    """Return a value as Go's source would have it."""
    match value:
        case str():
            return quoted(value)
        case dict():
            inner = ", ".join(f"{quoted(name)}:{_literal(one)}" for name, one in sorted(value.items()))
            return f"map[string]interface {{}}{{{inner}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(_literal(one) for one in value)}}}"
        case None:
            return "interface {}(nil)"
        case _:
            return strategic.spelt(value)

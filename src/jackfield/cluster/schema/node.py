"""A place in an object, and what may be there.

Knows fields, lists, maps, how they merge, and what Go calls them. Must not know any value.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final

from jackfield.cluster.schema import library, notation
from jackfield.codec import Raw, RawValue

ANY: Final = "any"
QUANTITY: Final = "quantity"
INT_OR_STRING: Final = "int-or-string"

_API_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_LEAVES: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ANY,
    f"{library.META}.FieldsV1": ANY,
    # These read themselves, and what they do not know does not bother them.
    f"{_API_EXTENSIONS}.JSON": ANY,
    f"{_API_EXTENSIONS}.JSONSchemaPropsOrArray": ANY,
    f"{_API_EXTENSIONS}.JSONSchemaPropsOrBool": ANY,
    f"{_API_EXTENSIONS}.JSONSchemaPropsOrStringArray": ANY,
}


class Node:
    """A place in an object: its type, its parts, and how two writers' versions of it are merged."""

    def __init__(self, schema: Raw, go_type: str = "", wrapper: str = "") -> None:
        self.name = reference(schema)
        """The full name of its type, where that has one."""
        self._schema = library.type_of(self.name).schema if self.name else schema
        self.type = _type(self.name, self._schema)
        """object, array, string, integer, number, boolean, int-or-string, quantity; any where all is welcome."""
        self.format = str(self._schema.get("format", ""))
        self.go_type = go_type or notation.go_type(schema)
        """What Go calls it, as in `[]v1.Container`."""
        self.wrapper = wrapper
        """The struct that Go wraps it in, as `VolumeSource` in a volume; mostly none."""
        self.default: RawValue = schema.get("default")
        self.is_map = self.type == "object" and "additionalProperties" in self._schema
        """Whether it has members of any name, and all of one type."""
        self.patch_strategies = frozenset(_mark(schema, "patch-strategy", "").split(",")) - {""}
        """How a strategic merge patch changes it: merge, replace, retainKeys."""
        self.patch_key: str = _mark(schema, "patch-merge-key", "")
        self.list_type: str = _mark(schema, "list-type", "")
        """How a list is owned: atomic, set or map; says nothing where it is empty."""
        self.list_keys: tuple[str, ...] = tuple(_mark(schema, "list-map-keys", ()))
        self.map_type: str = _mark(schema, "map-type", _mark(self._schema, "map-type", ""))
        """How an object is owned: atomic, granular; says nothing where it is empty."""

    def __repr__(self) -> str:
        return f"Node({self.name or self.go_type})"

    @property
    def required(self) -> tuple[str, ...]:
        """The members that must be there."""
        return tuple(self._schema.get("required", ()))

    def member(self, name: str) -> "Node | None":
        """Return what may be in a member; None if it has no such member."""
        if self.type == ANY:
            return self
        if self.is_map:
            return self._values
        return self.members.get(name)

    @cached_property
    def members(self) -> Mapping[str, "Node"]:
        """What it has by name; nothing in maps, nor where all is welcome."""
        return _members(self.name) if self.name else _nodes(self._schema.get("properties", {}))

    @cached_property
    def items(self) -> "Node | None":
        """What may be in a list; None if it is no list."""
        if self.type == ANY:
            return self
        if self.type != "array":
            return None
        return Node(self._schema.get("items", {}), self._inner("[]"))

    @cached_property
    def _values(self) -> "Node":
        return Node(self._schema["additionalProperties"], self._inner("]"))

    def _inner(self, after: str) -> str:
        """Return what Go calls the parts of a list or map, if its own name tells."""
        return self.go_type.partition(after)[2] if self.go_type.startswith(("[]", "map[")) else ""


def _type(name: str, schema: Raw) -> str:
    if name in _LEAVES:
        return _LEAVES[name]
    if schema.get(f"{notation.PREFIX}preserve-unknown-fields"):
        return ANY
    if schema.get(f"{notation.PREFIX}int-or-string"):
        return INT_OR_STRING
    return str(schema.get("type", ANY))


def _mark(schema: Raw, name: str, otherwise: RawValue) -> RawValue:
    return schema.get(f"{notation.PREFIX}{name}", otherwise)


def reference(schema: Raw) -> str:
    """Return the full name of the type that a schema refers to; empty if it says all itself."""
    match schema:
        case {"$ref": str(ref)} | {"allOf": [{"$ref": str(ref)}]}:
            return ref.removeprefix(notation.REF)
        case _:
            return ""


def _nodes(properties: Raw) -> Mapping[str, Node]:
    return {name: Node(schema) for name, schema in properties.items()}


@cache
def _members(name: str) -> Mapping[str, Node]:
    found = library.type_of(name)
    return {
        field: Node(schema, found.go.get(field, ""), found.wrappers.get(field, ""))
        for field, schema in found.schema.get("properties", {}).items()
    }


@cache
def named(name: str) -> Node:
    """Return the node of one of Kubernetes' types, by its full name."""
    return Node({"$ref": f"{notation.REF}{name}"})

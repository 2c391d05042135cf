"""Which schema belongs to which kind.

Knows that Kubernetes' kinds are in the data, and ours in their definitions. Must not know what is done with a schema.
"""

from collections.abc import Mapping
from functools import cache

from jackfield.cluster.schema import library, notation
from jackfield.cluster.schema import node as nodes
from jackfield.cluster.schema.node import Node
from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.codec.kinds import Kind


def of(kind: Kind) -> Node | None:
    """Return the schema of a kind, or None where we have none."""
    return named(kind.api_version, kind.kind)


@cache
def named(api_version: str, kind: str) -> Node | None:
    """Return the schema of a kind by its names: also of those that are only bodies, as Eviction."""
    name = library.names().get((api_version, kind))
    if name is not None:
        return nodes.named(name)
    custom = custom_schemas().get((api_version, kind))
    return None if custom is None else Node(custom)


def is_custom(kind: Kind) -> bool:
    """Return whether a kind is defined by a CustomResourceDefinition."""
    return (kind.api_version, kind.kind) in custom_schemas()


@cache
def custom_schemas() -> Mapping[tuple[str, str], Raw]:
    """Return the schemas of our definitions, with metadata as all objects have it, by apiVersion and kind."""
    return {
        (f"{spec['group']}/{version['name']}", str(spec["names"]["kind"])): _with_metadata(
            version["schema"]["openAPIV3Schema"]
        )
        for spec in (one["spec"] for one in definitions())
        for version in spec["versions"]
    }


def _with_metadata(schema: Raw) -> Raw:
    metadata = {"allOf": [{"$ref": f"{notation.REF}{library.OBJECT_META}"}]}
    return {**schema, "properties": {**schema["properties"], "metadata": metadata}}

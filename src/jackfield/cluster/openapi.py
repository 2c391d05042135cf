"""What the API says of its objects and calls, as OpenAPI: enough for kubectl to explain, validate, apply and patch.

Knows documents, paths and parameters. Must not know any type: those come from `schema`. Kubernetes' types come without
descriptions, ours with theirs.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from jackfield.cluster import discovery
from jackfield.cluster.discovery import Resource
from jackfield.cluster.schema import kinds, library, notation
from jackfield.codec import Raw, RawValue

VERSION: Final = "3.0.0"
PATCH: Final = f"{library.META}.Patch"
METADATA: Final = "The name, labels, annotations, owners and other things that objects of all kinds have."

_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
_PATCHING: Final = (*_WRITING, "force")
_DELETING: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LISTING: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_TYPES: Final = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_METHODS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    # verb: method, x-kubernetes-action, parameters
    "list": ("get", "list", _LISTING),
    "deletecollection": ("delete", "deletecollection", (*_DELETING, *_LISTING)),
    "create": ("post", "post", _WRITING),
    "get": ("get", "get", ()),
    "update": ("put", "put", _WRITING),
    "patch": ("patch", "patch", _PATCHING),
    "delete": ("delete", "delete", _DELETING),
}
_OF_ALL: Final = ("list", "create", "deletecollection")
_OF_ONE: Final = ("get", "update", "patch", "delete")
_CONNECTIONS: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources of which there is nothing to say: they are no objects."""


# --- documents


def index() -> Raw:
    """Return the document at /openapi/v3: the others, each with a hash of what it says."""
    return {
        "paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={etag(path)}"} for path in _paths()}
    }


def document(path: str) -> Raw | None:
    """Return the document at /openapi/v3/PATH, or None if there is none."""
    encoded = body(path)
    return None if encoded is None else msgspec.json.decode(encoded, type=Raw)


def body(path: str) -> bytes | None:
    """Return the same as it goes over the wire, made once."""
    return _encoded(path) if path in _paths() else None


def etag(path: str) -> str:
    """Return the hash of a document that there is."""
    return hashlib.sha512(_encoded(path)).hexdigest().upper()


@cache
def _paths() -> tuple[str, ...]:
    return tuple(one.removeprefix("/") for one in discovery.prefixes())


@cache
def _encoded(path: str) -> bytes:
    return msgspec.json.encode(_document(path))


def _document(path: str) -> Raw:
    found = [one for one in discovery.resources() if _prefix(one) == f"/{path}"]
    paths = {place: item for one in found for place, item in _items(one)}
    schemas: Raw = {}
    for name in sorted(_references(paths)):
        _add(schemas, name, {_name(one.group_version, one.kind): one for one in found})
    return {"openapi": VERSION, "info": _info(), "paths": paths, "components": {"schemas": schemas}}


def v2() -> Raw:
    """Return the document at /openapi/v2, with all types and no calls, for clients that know no other."""
    types: Raw = {}
    for path in _paths():
        types |= _document(path)["components"]["schemas"]
    encoded = msgspec.json.encode({"swagger": "2.0", "info": _info(), "paths": {}, "definitions": types})
    return msgspec.json.decode(encoded.replace(b"#/components/schemas/", b"#/definitions/"), type=Raw)


def _info() -> Raw:
    return {"title": "Kubernetes", "version": ".".join(library.version().lstrip("v").split(".")[:2])}


# --- types


def _name(group_version: str, kind: str) -> str:
    """Return the full name of a kind's type."""
    group, _, version = group_version.rpartition("/")
    reverse = ".".join(reversed(group.split(".")))
    return library.names().get((group_version, kind)) or f"{reverse}.{version}.{kind}"


def _add(schemas: Raw, name: str, resources: Mapping[str, Resource]) -> None:
    """Add a type and all that it is made of."""
    if name in schemas:
        return
    schemas[name] = _type(name, resources)
    for one in sorted(_references(schemas[name])):
        _add(schemas, one, resources)


def _type(name: str, resources: Mapping[str, Resource]) -> Raw:
    if name == PATCH:
        return {"type": "object"}
    found = resources.get(name)
    if found is not None and found.custom:
        return _custom(found)
    listed = resources.get(name.removesuffix("List")) if name.endswith("List") else None
    if listed is not None:
        return _list(listed)
    return library.type_of(name).schema


def _custom(one: Resource) -> Raw:
    schema = kinds.custom_schemas()[one.group_version, one.kind]
    metadata = {**schema["properties"]["metadata"], "description": METADATA}
    properties = {**schema["properties"], "metadata": metadata}
    return {**schema, "properties": properties, library.GVK: [_gvk(one, one.kind)]}


def _list(one: Resource) -> Raw:
    item = _ref(_name(one.group_version, one.kind))
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": item},
            "kind": {"type": "string"},
            "metadata": {"allOf": [_ref(library.LIST_META)]},
        },
        library.GVK: [_gvk(one, f"{one.kind}List")],
    }


def _references(value: RawValue) -> set[str]:
    """Return the names of all types that are referred to."""
    match value:
        case {"$ref": str(ref), **rest}:
            return {ref.removeprefix(notation.REF), *_references(rest)}
        case dict():
            return {name for one in value.values() for name in _references(one)}
        case list():
            return {name for one in value for name in _references(one)}
        case _:
            return set()


def _ref(name: str) -> Raw:
    return {"$ref": f"{notation.REF}{name}"}


# --- calls


def _prefix(one: Resource) -> str:
    return f"/apis/{one.group_version}" if one.group else f"/api/{one.version}"


def _items(one: Resource) -> Iterator[tuple[str, Raw]]:
    """Tell all paths of a resource and what can be done there."""
    prefix = _prefix(one)
    home = f"{prefix}/namespaces/{{namespace}}" if one.namespaced else prefix
    places = ("namespace",) if one.namespaced else ()
    if one.namespaced and "list" in one.verbs:
        yield f"{prefix}/{one.plural}", _item(one, ("list",), ())
    yield f"{home}/{one.plural}", _item(one, _both(_OF_ALL, one.verbs), places)
    if "get" in one.verbs:
        yield f"{home}/{one.plural}/{{name}}", _item(one, _both(_OF_ONE, one.verbs), (*places, "name"))
    for part in one.parts:
        if part.name not in _CONNECTIONS:
            group_version = f"{part.group}/{part.version}" if part.group else one.group_version
            said = _item(one, part.verbs, (*places, "name"), (group_version, part.kind))
            yield f"{home}/{one.plural}/{{name}}/{part.name}", said


def _both(these: tuple[str, ...], those: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in these if one in those)


def _item(
    one: Resource, verbs: tuple[str, ...], places: tuple[str, ...], body: tuple[str, str] | None = None
) -> Raw:
    group_version, kind = body or (one.group_version, one.kind)
    item: Raw = {_METHODS[verb][0]: _operation(one, verb, group_version, kind) for verb in verbs}
    parameters = [_parameter(name, "path") for name in places]
    return {**item, "parameters": parameters} if parameters else item


def _operation(one: Resource, verb: str, group_version: str, kind: str) -> Raw:
    _, action, parameters = _METHODS[verb]
    name = _name(group_version, kind)
    group, _, version = group_version.rpartition("/")
    answer = {
        "list": f"{name}List",
        "delete": library.STATUS,
        "deletecollection": library.STATUS,
    }.get(verb, name)
    return {
        **({"parameters": [_parameter(one, "query") for one in parameters]} if parameters else {}),
        **_request(one, verb, name),
        "responses": {"200": {"description": "OK", "content": _content((_JSON, _YAML), answer)}},
        "x-kubernetes-action": action,
        library.GVK: {"group": group, "version": version, "kind": kind},
    }


def _request(one: Resource, verb: str, name: str) -> Raw:
    match verb:
        case "create" | "update":
            return {"requestBody": {"content": _content((_JSON, _YAML), name), "required": True}}
        case "patch":
            # Kinds with a definition have no strategic merge: nobody says how their lists merge.
            types = _PATCHES[:-1] if one.custom else _PATCHES
            return {"requestBody": {"content": _content(types, PATCH), "required": True}}
        case "delete" | "deletecollection":
            return {"requestBody": {"content": _content((_JSON, _YAML), library.DELETE_OPTIONS)}}
        case _:
            return {}


def _content(types: tuple[str, ...], name: str) -> Raw:
    return {one: {"schema": _ref(name)} for one in types}


def _parameter(name: str, where: str) -> Raw:
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, **required, "schema": {"type": _TYPES.get(name, "string")}}


def _gvk(one: Resource, kind: str) -> Raw:
    return {"group": one.group, "version": one.version, "kind": kind}

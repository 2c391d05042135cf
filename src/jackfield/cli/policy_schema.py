"""The schema of a policy's file: JSON Schema made from the types that the controllers read, for editors and for Helm.

Knows the types and the bounds that one setting has by itself. Must not know how settings bear on each other: that is
`core.policies`, which `jackfield policy check` asks.
"""

import ast
import inspect
from collections.abc import Mapping
from typing import Final, TypeGuard

import msgspec

from jackfield.core import policies
from jackfield.model.policy import (
    DeviceModel,
    Foreign,
    LocalDevices,
    NamespaceRule,
    NodeGroup,
    Policy,
)

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The one that Helm reads."""

Schema = dict[str, object]

KINDS: Final = (Policy, DeviceModel, NodeGroup, NamespaceRule, LocalDevices, Foreign)

_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

BOUNDS: Final[Mapping[str, Schema]] = {
    "Policy.labelPrefix": {"pattern": _SUBDOMAIN},
    "Policy.bindingTimeoutSeconds": {"exclusiveMinimum": 0},
    "Policy.pollSeconds": {"exclusiveMinimum": 0},
    "Policy.inventorySeconds": {"exclusiveMinimum": 0},
    "Policy.resyncSeconds": {"exclusiveMinimum": 0},
    "Policy.perNodeMax": {"minimum": 0},
    "Policy.perNodeMin": {"minimum": 0},
    "Policy.claimAttemptsMax": {"minimum": 1},
    "Policy.identities": {"minItems": 1},
    "DeviceModel.index": {"minimum": 0, "maximum": policies.INDEX_MAX},
    "DeviceModel.cdi-model-name": {"minLength": 1},
    "DeviceModel.k8s-device-name": {"pattern": _LABEL, "maxLength": policies.NAME_MAX},
    "DeviceModel.driver-name": {"pattern": _SUBDOMAIN, "maxLength": policies.DRIVER_MAX},
    "DeviceModel.dra-attributes": {"maxProperties": policies.ATTRIBUTES_MAX},
    "DeviceModel.type": {"minLength": 1},
    "DeviceModel.spares": {"minimum": 0},
    "NodeGroup.name": {"pattern": _LABEL},
    "NodeGroup.maxSize": {"minimum": 0},
    "NamespaceRule.name": {"pattern": "^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$", "maxLength": policies.DRIVER_MAX},
    "NamespaceRule.quota": {"additionalProperties": {"type": "integer", "minimum": 0}},
    "LocalDevices.name": {"pattern": _LABEL, "maxLength": policies.LOCAL_NAME_MAX},
    "LocalDevices.vendor": {"pattern": "^([0-9a-f]{4})?$"},
    "LocalDevices.device": {"pattern": "^([0-9a-f]{4})?$"},
    "LocalDevices.pciClass": {"pattern": "^(([0-9a-f]{2}){1,3})?$"},
}
"""What a value may be, beyond its type; a duration is 0 or more unless it is said here."""


def schema() -> Schema:
    """Return the schema of a policy, whole in itself: it can stand anywhere in another one."""
    (_, definitions) = msgspec.json.schema_components(KINDS, ref_template="#/{name}")
    words = descriptions()
    for kind in KINDS:
        defined = definitions[kind.__name__]
        del defined["title"]
        if not defined["required"]:
            del defined["required"]
        for name, one in defined["properties"].items():
            one |= {"description": words[kind.__name__, name], **_bounds(kind.__name__, name)}
    whole = _inlined(definitions["Policy"], definitions)
    return msgspec.json.decode(msgspec.json.encode(whole), type=Schema)  # lists and words, as a file has them


def document() -> Schema:
    """Return the schema as a file of its own."""
    return {"$schema": DIALECT, "title": "Jackfield's policy", **schema()}


def _bounds(kind: str, name: str) -> Schema:
    said = BOUNDS.get(f"{kind}.{name}")
    if said is not None:
        return said
    return {"minimum": 0} if name.endswith("Seconds") else {}


def _inlined(one: object, definitions: Mapping[str, object]) -> object:
    """Return a schema with every reference replaced by what it stands for."""
    if isinstance(one, list):
        return [_inlined(each, definitions) for each in one]
    if not _is_schema(one):
        return one
    reference = one.get("$ref")
    if isinstance(reference, str):
        return _inlined(definitions[reference.removeprefix("#/")], definitions)
    return {name: _inlined(each, definitions) for name, each in one.items() if name != "title"}


def _is_schema(one: object) -> TypeGuard[Schema]:
    return isinstance(one, dict)


def descriptions() -> dict[tuple[str, str], str]:
    """Return what stands under every field in the types' own source, by type and setting."""
    found: dict[tuple[str, str], str] = {}
    for kind in KINDS:
        spelt = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        body = ast.parse(inspect.getsource(kind)).body[0]
        assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class
        for field, words in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(words):
                found[kind.__name__, spelt[field.target.id]] = _text(words)
    return found


def _is_text(one: ast.stmt) -> bool:
    return isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)


def _text(one: ast.stmt) -> str:
    assert isinstance(one, ast.Expr)  # noqa: S101 - seen before
    assert isinstance(one.value, ast.Constant)  # noqa: S101 - seen before
    return " ".join(str(one.value.value).split())

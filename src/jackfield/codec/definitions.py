"""CoHDI's two kinds as CustomResourceDefinitions, generated from the model.

Knows the envelope: names, scope, columns, selectable fields, and the mark by which a definition is recognised as ours.
Must not know what a cluster has already.
"""

import hashlib

import msgspec

from jackfield.codec import kinds
from jackfield.codec.schema import rule, schema
from jackfield.codec.wire import Raw, RawValue
from jackfield.codec.words import LABEL_MAX, WORDS
from jackfield.model.composition import CLAIM, ComposabilityRequest, ComposableResource
from jackfield.model.meta import Object

API_VERSION = "apiextensions.k8s.io/v1"
SCHEMA = "jackfield.dev/schema"
"""Annotation of a definition of ours: its revision and a hash of it, `revision.hash`."""
REVISION = 1
"""Counts the definitions that were released; a definition of a higher revision is never replaced."""

CATEGORIES = ("cohdi", "jackfield")
"""What `kubectl get` takes for both kinds at once."""


class _Envelope(msgspec.Struct, frozen=True):
    """What a definition says beside its schema."""

    kind: type[Object]
    short: str
    description: str
    columns: tuple[tuple[str, str, str], ...]
    """Name, type and path; a name in brackets is shown only by `kubectl get -o wide`."""
    selectable: tuple[str, ...]
    rules: tuple[Raw, ...] = ()


_NAME = rule(
    f"oldSelf.hasValue() || size(self.metadata.name) <= {LABEL_MAX}",
    f"a request's name has at most {LABEL_MAX} characters: it becomes a label of its resources",
    optionalOldSelf=True,  # judged at creation alone, so that nothing that exists can get stuck
)

_ENVELOPES = (
    _Envelope(
        ComposabilityRequest,
        short="creq",
        description="A ComposabilityRequest asks for so many devices of one model, on one node or by a policy.",
        columns=(
            ("Type", "string", ".spec.resource.type"),
            ("Model", "string", ".spec.resource.model"),
            ("Size", "integer", ".spec.resource.size"),
            ("Node", "string", ".spec.resource.target_node"),
            ("State", "string", ".status.state"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(Policy)", "string", ".spec.resource.allocation_policy"),
            ("(Error)", "string", ".status.error"),
        ),
        selectable=(".spec.resource.target_node",),
        rules=(_NAME,),
    ),
    _Envelope(
        ComposableResource,
        short="cres",
        description="A ComposableResource is one device on its way to a node, there, or on its way back.",
        columns=(
            ("Type", "string", ".spec.type"),
            ("Model", "string", ".spec.model"),
            ("Node", "string", ".spec.target_node"),
            ("State", "string", ".status.state"),
            ("Device", "string", ".status.cdi_device_id"),
            ("Age", "date", ".metadata.creationTimestamp"),
            ("(UUID)", "string", ".status.device_id"),
            ("(Claim)", "string", f".metadata.annotations.{CLAIM.replace('.', chr(92) + '.')}"),
            ("(Error)", "string", ".status.error"),
        ),
        selectable=(".spec.target_node",),
    ),
)


def definitions() -> tuple[Raw, ...]:
    """Return both definitions, ready for the API."""
    return tuple(_definition(one) for one in _ENVELOPES)


def mark(definition: Raw) -> str:
    """Return what the annotation `jackfield.dev/schema` of a definition of this revision says."""
    spec = msgspec.json.encode(definition["spec"], order="deterministic")
    return f"{REVISION}.{hashlib.sha256(spec).hexdigest()[:16]}"


def _definition(envelope: _Envelope) -> Raw:
    kind = kinds.of(envelope.kind)
    singular = kind.kind.lower()
    new: Raw = {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": singular,
                "shortNames": [envelope.short],
                "categories": list(CATEGORIES),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(envelope, kind)],
        },
    }
    new["metadata"]["annotations"] = {SCHEMA: mark(new)}
    return new


def _version(envelope: _Envelope, kind: kinds.Kind) -> Raw:
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(*one) for one in envelope.columns],
        "selectableFields": [{"jsonPath": path} for path in envelope.selectable],
        "schema": {"openAPIV3Schema": _root(envelope)},
    }


def _column(name: str, kind: str, path: str) -> dict[str, RawValue]:
    wide = {"priority": 1} if name.startswith("(") else {}
    return {"name": name.strip("()"), "type": kind, "jsonPath": path, **wide}


def _root(envelope: _Envelope) -> Raw:
    fields = {one.name: one.type for one in msgspec.structs.fields(envelope.kind)}
    root: Raw = {
        "type": "object",
        "description": envelope.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of this object."},
            "kind": {"type": "string", "description": "The kind of this object."},
            "metadata": {"type": "object"},
            "spec": schema(fields["spec"], WORDS),
            "status": schema(fields["status"], WORDS),
        },
    }
    return {**root, "x-kubernetes-validations": list(envelope.rules)} if envelope.rules else root

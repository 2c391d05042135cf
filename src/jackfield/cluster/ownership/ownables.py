"""What of an object can be owned at all, kind by kind, and what it looks like before anybody wrote anything.

Knows facts about kinds. Must not know managers.
"""

from typing import Final

from jackfield.cluster.ownership.fields import Path
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind

SYSTEM: Final[frozenset[Path]] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        ("f:metadata", "f:name"),
        ("f:metadata", "f:namespace"),
        ("f:metadata", "f:creationTimestamp"),
        ("f:metadata", "f:selfLink"),
        ("f:metadata", "f:uid"),
        ("f:metadata", "f:generation"),
        ("f:metadata", "f:managedFields"),
        ("f:metadata", "f:resourceVersion"),
    }
)
"""What belongs to the server; nobody owns it."""

_METADATA: Final[Path] = ("f:metadata",)
_SPEC: Final[Path] = ("f:spec",)
_STATUS: Final[Path] = ("f:status",)
_PUT_BACK: Final[dict[tuple[str, str], frozenset[Path]]] = {
    ("Namespace", "finalize"): frozenset({_STATUS}),
    ("Namespace", "status"): frozenset({_SPEC}),
    ("Node", "status"): frozenset({_SPEC}),
    ("Pod", "status"): frozenset(
        {_SPEC, (*_METADATA, "f:deletionTimestamp"), (*_METADATA, "f:ownerReferences")}
    ),
}
_ALL_BUT_STATUS: Final = frozenset({_METADATA, _SPEC})
_ONLY_STATUS: Final = frozenset({_STATUS})

_USUAL: Final[Raw] = {"spec": {}, "status": {}}
_CLAIM: Final[Raw] = {"devices": {"requests": None}}
_EMPTY: Final[dict[str, Raw]] = {
    "ConfigMap": {},
    "Event": {
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "Pod": {"spec": {"containers": None}, "status": {}},
    "ResourceSlice": {"spec": {"driver": "", "pool": {"name": "", "generation": 0, "resourceSliceCount": 0}}},
    "ResourceClaim": {"spec": _CLAIM, "status": {}},
    "ResourceClaimTemplate": {"spec": {"metadata": {}, "spec": _CLAIM}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "", "effect": ""}}, "status": {}},
    "ServiceAccount": {},
}


def put_back(kind: Kind, subresource: str) -> frozenset[Path]:
    """Return what a write by a subresource does not change, whatever it says, one or two steps deep."""
    usual = _ALL_BUT_STATUS if subresource else _ONLY_STATUS if kind.has_status else frozenset()
    return _PUT_BACK.get((kind.kind, subresource), usual)


def empty(kind: Kind, *, custom: bool) -> Raw:
    """Return an object of which nothing has been said: what the server's own types have in it nevertheless."""
    return {} if custom else {"metadata": {}, **_EMPTY.get(kind.kind, _USUAL)}

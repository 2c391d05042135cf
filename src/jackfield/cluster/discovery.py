"""What the API says of itself: its groups, their versions, their resources and what can be done with them.

Knows the documents of discovery, in their old and their aggregated form, and the facts of Kubernetes' own resources.
Must not know how any of it is done. All documents are fresh: whoever gets one may change it.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from jackfield.codec import Raw, kinds
from jackfield.codec.definitions import definitions

LISTS: Final = "v1"
"""The version of the documents themselves."""
AGGREGATED: Final = "apidiscovery.k8s.io/v2"

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The same, in the order in which the real server says them of kinds that have a definition."""
_ONE_BY_ONE: Final = frozenset({"Namespace"})
"""Kinds that cannot be deleted all at once."""
_CHANGE: Final = ("get", "patch", "update")
_CONNECT: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")
_SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMap": ("cm",),
    "CustomResourceDefinition": ("crd", "crds"),
    "Event": ("ev",),
    "Namespace": ("ns",),
    "Node": ("no",),
    "Pod": ("po",),
    "ServiceAccount": ("sa",),
}
_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "CustomResourceDefinition": ("api-extensions",),
    "Pod": ("all",),
}
_STORED: Final = {"CustomResourceDefinition": "v1beta1", "DeviceTaintRule": "v1alpha3"}
"""The version that the real server stores, where it is another than the one we speak."""
_ORDER: Final = ("", "authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io")
"""Groups as the real server orders them; those not named follow in the order of the kinds."""


class Part(msgspec.Struct, frozen=True):
    """A subresource."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    """Of the kind, where it is of another group than the resource."""


class Resource(msgspec.Struct, frozen=True):
    """What stands behind a path of the API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ("create",)
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    custom: bool = False
    """Whether it has a definition."""
    stored: bool = False

    @property
    def group_version(self) -> str:
        """Group and version as paths spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version


_POD_PARTS: Final = (
    Part("attach", "PodAttachOptions", _CONNECT),
    Part("binding", "Binding", ("create",)),
    Part("eviction", "Eviction", ("create",), "policy", "v1"),
    Part("exec", "PodExecOptions", _CONNECT),
    Part("log", "Pod", ("get",)),
    Part("portforward", "PodPortForwardOptions", _CONNECT),
    Part("proxy", "PodProxyOptions", _PROXY),
)
_PARTS: Final[Mapping[str, tuple[Part, ...]]] = {
    "Namespace": (Part("finalize", "Namespace", ("update",)),),
    "Pod": _POD_PARTS,
}
_REVIEWS: Final = (
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
    ),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
    ),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False),
)


@cache
def resources() -> tuple[Resource, ...]:
    """Return all resources, by groups, versions and names."""
    found = (*_REVIEWS, *(_of_kind(one) for one in kinds.KINDS))
    order = list(dict.fromkeys((*_ORDER, *(one.group for one in found))))
    return tuple(sorted(found, key=lambda one: (order.index(one.group), precedence(one.version), one.plural)))


def precedence(version: str) -> tuple[int, ...]:
    """Return what versions are sorted by: general before beta before alpha, and the newest first."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    assert found is not None, version
    stability = ("", "beta", "alpha").index(found[2] or "")
    return stability, -int(found[1]), -int(found[3] or 0)


def _of_kind(kind: kinds.Kind) -> Resource:
    names = _defined().get(kind.resource, {})
    verbs = _CUSTOM_VERBS if names else _VERBS
    status = (Part("status", kind.kind, _CHANGE),) if kind.has_status else ()
    return Resource(
        kind.group,
        kind.version,
        kind.plural,
        kind.kind,
        kind.namespaced,
        verbs=tuple(one for one in verbs if one != "deletecollection" or kind.kind not in _ONE_BY_ONE),
        short=tuple(names.get("shortNames", _SHORT.get(kind.kind, ()))),
        categories=tuple(names.get("categories", _CATEGORIES.get(kind.kind, ()))),
        parts=(*_PARTS.get(kind.kind, ()), *status),
        custom=bool(names),
        stored=True,
    )


@cache
def _defined() -> Mapping[str, Raw]:
    return {str(one["metadata"]["name"]): one["spec"]["names"] for one in definitions()}


# --- documents


def document(path: str) -> Raw | None:
    """Return what the server says at /api/v1, /apis/GROUP or /apis/GROUP/VERSION; None if it says nothing there."""
    match path.strip("/").split("/"):
        case ["api", version]:
            return _resource_list("", version)
        case ["apis", group] if group:
            return _group_document(group)
        case ["apis", group, version] if group:
            return _resource_list(group, version)
        case _:
            return None


def core() -> Raw:
    """Return the document at /api."""
    return {"kind": "APIVersions", "versions": list(_versions(""))}


def groups() -> Raw:
    """Return the document at /apis."""
    return {"kind": "APIGroupList", "apiVersion": LISTS, "groups": [_group(one) for one in _groups()]}


def aggregated(path: str) -> Raw:
    """Return all there is below /api or /apis in one document."""
    listed = ("",) if path.strip("/") == "api" else _groups()
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_version_discovery(group, version) for version in _versions(group)],
        }
        for group in listed
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": AGGREGATED, "metadata": {}, "items": items}


def version(text: str) -> Raw:
    """Return the document at /version, for a version such as v1.36.4."""
    major, minor = text.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": f"{int(minor) - 1}",
        "gitVersion": text,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def prefixes() -> tuple[str, ...]:
    """Return the paths below which resources are: /api/v1, /apis/GROUP/VERSION."""
    found = (f"/apis/{one.group_version}" if one.group else f"/api/{one.version}" for one in resources())
    return tuple(dict.fromkeys(found))


def _groups() -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.group for one in resources() if one.group))


def _versions(group: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.version for one in resources() if one.group == group))


def _group(group: str) -> Raw:
    versions = [{"groupVersion": f"{group}/{one}", "version": one} for one in _versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": dict(versions[0])}


def _group_document(group: str) -> Raw | None:
    if group not in _groups():
        return None
    return {"kind": "APIGroup", "apiVersion": LISTS, **_group(group)}


def _resource_list(group: str, version: str) -> Raw | None:
    if version not in _versions(group):
        return None
    found = [one for one in resources() if (one.group, one.version) == (group, version)]
    head: Raw = {"kind": "APIResourceList", **({"apiVersion": LISTS} if group else {})}
    entries = [
        entry for one in found for entry in (_entry(one), *(_part_entry(one, part) for part in one.parts))
    ]
    return {**head, "groupVersion": found[0].group_version, "resources": entries}


def _entry(one: Resource) -> Raw:
    return {
        "name": one.plural,
        "singularName": one.kind.lower(),
        "namespaced": one.namespaced,
        "kind": one.kind,
        "verbs": list(one.verbs),
        **_names(one),
        **({"storageVersionHash": _hash(one)} if one.stored else {}),
    }


def _part_entry(one: Resource, part: Part) -> Raw:
    elsewhere = {"group": part.group, "version": part.version} if part.group else {}
    return {
        "name": f"{one.plural}/{part.name}",
        "singularName": "",
        "namespaced": one.namespaced,
        **elsewhere,
        "kind": part.kind,
        "verbs": list(part.verbs),
    }


def _names(one: Resource) -> Raw:
    return {
        **({"shortNames": list(one.short)} if one.short else {}),
        **({"categories": list(one.categories)} if one.categories else {}),
    }


def _hash(one: Resource) -> str:
    """Return what tells clients that two resources are stored as the same thing."""
    stored = f"{one.group}/{_STORED.get(one.kind, one.version)}/{one.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _version_discovery(group: str, version: str) -> Raw:
    found = [_discovery(one) for one in resources() if (one.group, one.version) == (group, version)]
    return {"version": version, "resources": found, "freshness": "Current"}


def _discovery(one: Resource) -> Raw:
    # Of its own kinds the real server does not say the group, of those with a definition it does.
    home = (one.group, one.version) if one.custom else ("", "")
    parts = [
        {
            "subresource": part.name,
            "responseKind": _response((part.group, part.version) if part.group else home, part.kind),
            "verbs": list(part.verbs),
        }
        for part in one.parts
    ]
    return {
        "resource": one.plural,
        "responseKind": _response(home, one.kind),
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.kind.lower(),
        "verbs": list(one.verbs),
        **_names(one),
        **({"subresources": parts} if parts else {}),
    }


def _response(home: tuple[str, str], kind: str) -> Raw:
    return {"group": home[0], "version": home[1], "kind": kind}

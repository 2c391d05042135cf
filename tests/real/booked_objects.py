"""Objects of a real API server that tests write to, and its books of them."""

from typing import Final

import msgspec

from jackfield import codec
from jackfield.cluster.ownership import managers
from jackfield.cluster.ownership.managers import Manager, Managers
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Time
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice
from real.both_servers import ACCESS, MASK, Real, collection, with_names

APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
NOW: Final = Time("2099-01-01T00:00:00Z")
SOON: Final = Seconds(4e9)
STEPS: Final = 40
CONFLICT: Final = 409
INVALID: Final = 422
"""What the real server says to an object whose applier has let go of what it needs; that is not our subject."""

NEW: Final[dict[type[Object], Raw]] = {
    ComposableResource: {"spec": {"type": "gpu", "model": "A", "target_node": "n"}},
    DeviceClass: {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    Event: {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "type": "Normal",
    },
    Lease: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    Pod: {"spec": {"schedulerName": "none", "containers": [{"name": "a", "image": "i:1"}]}},
    ResourceClaim: {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}]}
        }
    },
    ResourceClaimTemplate: {
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    },
    ResourceSlice: {
        "spec": {
            "driver": "x.dev",
            "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [{"name": "d", "attributes": {"a": {"string": "s"}}}],
        }
    },
}


RESULT: Final[Raw] = {"driver": "x.dev", "pool": "p", "device": "a"}
RESULTS: Final[list[Raw]] = [{**RESULT, "request": "gpu", "device": one} for one in "ab"]
CONDITION: Final[Raw] = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def made(kind: type[Object], name: str) -> Raw:
    """Return a new object to write to."""
    new: Raw = codec.copied(NEW[kind])
    space = {"namespace": "default"} if kinds.of(kind).namespaced else {}
    new["metadata"] = {"name": name, **space, "labels": {"made": "1"}, "finalizers": ["t.dev/f"]}
    return new


def applied(subject: "Subject", body: Raw) -> Raw:
    """Return a body with all that an apply must say."""
    named = {**body.get("metadata", {}), "name": subject.key.name}
    return with_names(subject.kind, {**body, "metadata": named})


class Subject:
    """One object of a real server."""

    def __init__(self, real: Real, kind: type[Object], name: str) -> None:
        self.real = real
        self.kind = kind
        self.names = kinds.of(kind)
        self.key = Key("default" if self.names.namespaced else "", name)
        self.path = f"{collection(kind)}/{name}"
        code, self.live = real.ask(
            "POST", f"{collection(kind)}?fieldManager=creator", with_names(kind, made(kind, name))
        )
        assert code == 201, self.live

    def remove(self) -> None:
        """Delete it for good."""
        self.real.ask("PATCH", self.path, {"metadata": {"finalizers": None}}, MERGE)
        self.real.ask("DELETE", f"{self.path}?gracePeriodSeconds=0")

    @property
    def raw(self) -> Raw:
        """The object without its books."""
        metadata = {name: one for name, one in self.live["metadata"].items() if name != "managedFields"}
        return {**self.live, "metadata": metadata}

    @property
    def known(self) -> Managers:
        """Its books."""
        return managers.managers_of(self.live["metadata"].get("managedFields", []))

    def me(self, name: str, subresource: str = "") -> Manager:
        """Return somebody who writes to it."""
        version = self.names.api_version
        return Manager(name, applies=False, version=version, subresource=subresource, time=NOW)

    def write(self, name: str, body: RawValue, content: str, subresource: str = "") -> tuple[int, Raw]:
        """Write to it on the real server; what it says becomes the object, if that is one."""
        where = f"{self.path}/{subresource}" if subresource else self.path
        method = "PUT" if content == "application/json" else "PATCH"
        code, answer = self.real.ask(method, f"{where}?fieldManager={name}", body, content)
        if code == 200:
            self.live = answer
        return code, answer


def masked(found: Managers) -> list[Raw]:
    """Return the entries in a fixed order, without chance, and of the times only whether there are any."""
    ordered = tuple(sorted(found, key=lambda one: one.identity))
    text = msgspec.json.encode(managers.managed_fields(ordered)).decode()
    entries: list[Raw] = msgspec.json.decode(ACCESS.sub(MASK, text))
    return [{**one, "time": "time" in one} for one in entries]

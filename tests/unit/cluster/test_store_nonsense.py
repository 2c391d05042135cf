"""Whatever is sent, the store takes it or refuses it; it never breaks."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, RawValue, copied
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice
from jackfield.model.taint import DeviceTaintRule

META: Raw = {
    "name": "x",
    "labels": {"a": "b"},
    "finalizers": ["a/b"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
}
LOCAL: Raw = {**META, "namespace": "d"}
TIME = "2026-01-01T00:00:00Z"
WISH: Raw = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "true"}}],
    "tolerations": [{"key": "a"}],
    "capacity": {"requests": {"memory": 1}},
}
ASKED: Raw = {
    "devices": {
        "requests": [
            {"name": "r", "exactly": WISH},
            {"name": "s", "firstAvailable": [{"name": "a", **WISH}]},
        ],
        "constraints": [{"requests": ["r"], "matchAttribute": "x.dev/a"}],
        "config": [{"requests": ["r"], "opaque": {"driver": "x.dev", "parameters": {"a": None}}}],
    }
}
RESULT: Raw = {"request": "r", "driver": "x.dev", "pool": "p", "device": "d"}
CONDITION: Raw = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": TIME}
DEVICE: Raw = {
    "name": "d",
    "attributes": {"a": {"int": 1}, "b": {"strings": ["x"]}},
    "capacity": {
        "m": {"value": "8", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": 1}}}
    },
    "allowMultipleAllocations": True,
    "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": 1}}}],
    "taints": [{"key": "a", "effect": "None"}],
    "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
    "bindingConditions": ["A"],
    "bindingFailureConditions": ["B"],
}
SOUND: dict[type[Object], Raw] = {
    Node: {
        "metadata": META,
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": 1}, "conditions": [CONDITION]},
    },
    Pod: {
        "metadata": LOCAL,
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"cpu": 1}, "claims": [{"name": "g"}]}}
            ],
            "resourceClaims": [{"name": "g", "resourceClaimName": "c"}],
            "tolerations": [{"operator": "Exists"}],
        },
        "status": {
            "conditions": [CONDITION],
            "resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}],
        },
    },
    Event: {
        "metadata": LOCAL,
        "involvedObject": {"namespace": "d", "kind": "Pod", "name": "p"},
        "message": "m",
    },
    Lease: {"metadata": LOCAL, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 1}},
    DeviceClass: {"metadata": META, "spec": {"selectors": WISH["selectors"], "config": []}},
    ResourceSlice: {
        "metadata": META,
        "spec": {
            "driver": "x.dev",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "perDeviceNodeSelection": True,
            "devices": [DEVICE],
        },
    },
    DeviceTaintRule: {
        "metadata": META,
        "spec": {"taint": {"key": "a", "effect": "None"}, "deviceSelector": {"pool": "p"}},
    },
    ResourceClaim: {
        "metadata": LOCAL,
        "spec": ASKED,
        "status": {
            "allocation": {"devices": {"results": [RESULT]}, "nodeSelector": DEVICE["nodeSelector"]},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [
                {
                    "driver": "x.dev",
                    "pool": "p",
                    "device": "d",
                    "conditions": [CONDITION],
                    "data": {},
                    "networkData": {"interfaceName": "e", "ips": ["10.0.0.1/8"]},
                }
            ],
        },
    },
    ResourceClaimTemplate: {"metadata": LOCAL, "spec": {"metadata": {"labels": {"a": "b"}}, "spec": ASKED}},
    ComposabilityRequest: {
        "metadata": META,
        "spec": {"resource": {"type": "gpu", "model": "A", "size": 1, "other_spec": {"memory": 1}}},
        "status": {"state": "", "resources": {"r": {"state": ""}}, "conditions": [CONDITION]},
    },
    ComposableResource: {
        "metadata": META,
        "spec": {"type": "gpu", "model": "A", "target_node": "n"},
        "status": {"state": "Online", "conditions": [CONDITION]},
    },
}

nonsense = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "name", "é/ü"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "type", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: RawValue) -> list[tuple[RawValue, RawValue]]:
    """Return every place in a value that something else could be put into."""
    found: list[tuple[RawValue, RawValue]] = []
    if isinstance(value, dict | list):
        for place in list(value) if isinstance(value, dict) else range(len(value)):
            found += [(value, place), *places(value[place])]
    return found


@given(st.sampled_from(sorted(SOUND, key=lambda one: one.__name__)), st.data())
@settings(max_examples=300, deadline=None)
def test_nonsense_is_refused_and_changes_nothing(kind: type[Object], data: st.DataObject) -> None:
    store = Store(lambda: Seconds(1.7e9), random.Random("nonsense"))  # noqa: S311 - no cryptography
    store.create(kind, SOUND[kind])
    raw = copied(SOUND[kind])
    holder, place = data.draw(st.sampled_from(places(raw)))
    holder[place] = data.draw(nonsense)
    key = Key("d" if kind.namespaced else "", "x")
    status = "status" in kind.__struct_fields__ and data.draw(st.booleans())
    write = Write(manager="me", status=status, force=True)
    ways = [
        lambda: store.create(kind, {**raw, "metadata": {"generateName": "y", "namespace": key.namespace}}),
        lambda: store.update(kind, raw, write),
        lambda: store.patch(kind, key, raw, write),
        lambda: store.apply(kind, key, raw, write),
    ]
    before = store.version
    try:
        data.draw(st.sampled_from(ways))()
    except ApiError as error:
        refused = (error.code, store.version)
    else:
        return
    assert refused in {(400, before), (404, before), (409, before), (422, before)}


def test_what_is_mistreated_is_sound_to_begin_with() -> None:
    store = Store(lambda: Seconds(1.7e9), random.Random("sound"))  # noqa: S311 - no cryptography
    for kind, raw in SOUND.items():
        stored = store.create(kind, raw)
        if "status" in raw:
            store.patch(kind, stored.key, {"status": raw["status"]}, Write(status=True))
            store.apply(
                kind, stored.key, {"status": raw["status"]}, Write(status=True, manager="me", force=True)
            )

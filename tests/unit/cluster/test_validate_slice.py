"""What the API server refuses in a ResourceSlice, and what it takes."""

import random

import pytest

from jackfield import codec
from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.model.names import Seconds, named
from jackfield.model.slice import ResourceSlice

NOWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "never", "operator": "Exists"}]}]}


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("slices"))  # noqa: S311 - no cryptography


def spec(*devices: Raw, **fields: object) -> Raw:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    base: Raw = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n"}
    if devices:
        base["devices"] = list(devices)
    return {name: value for name, value in {**base, **fields}.items() if value is not None}


def device(**fields: object) -> Raw:
    return {"name": "gpu-0", **fields}


def causes(raw: Raw) -> list[str]:
    try:
        new_store().create(ResourceSlice, {"metadata": {"name": "s"}, "spec": raw})
    except ApiError as error:
        return [one.field for one in error.causes] or [error.message]
    return []


def shared(policy: Raw) -> Raw:
    return device(
        allowMultipleAllocations=True, capacity={"memory": {"value": "10", "requestPolicy": policy}}
    )


BINDING: Raw = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed", "Gone"]}
PINNED = device(name="pinned", nodeName="n", bindsToNode=True, **BINDING)
OPEN = device(name="open", nodeSelector=NOWHERE, bindsToNode=True, **BINDING)

SOUND: dict[str, Raw] = {
    "without devices": spec(),
    "on all nodes": spec(device(), nodeName=None, allNodes=True),
    "by selector": spec(device(), nodeName=None, nodeSelector=NOWHERE),
    "per device": spec(PINNED, OPEN, nodeName=None, perDeviceNodeSelection=True),
    "128 devices": spec(*(device(name=f"gpu-{number}") for number in range(128))),
    "64 with taints": spec(
        *(device(name=f"gpu-{number}", taints=[{"key": "a", "effect": "None"}]) for number in range(64))
    ),
    "upper case driver": spec(device(), driver="GPU.example.com"),
    "pool of several parts": spec(pool={"name": "rack-1/fabric.a", "generation": 0, "resourceSliceCount": 3}),
    "32 attributes": spec(device(attributes={f"a{number}": {"int": number} for number in range(32)})),
    "attribute of a domain": spec(device(attributes={"example.com/_model": {"string": "x" * 64}})),
    "versions": spec(device(attributes={"v": {"version": "1.0.0-rc.1+build.5"}})),
    "a list": spec(device(attributes={"v": {"strings": ["a", "b"]}})),
    "capacity as a number": spec(device(capacity={"memory": {"value": 80}})),
    "counters": spec(sharedCounters=[{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]),
    "consumption": spec(device(consumesCounters=[{"counterSet": "s", "counters": {"m": {"value": "1"}}}])),
    "four conditions": spec(
        device(bindingConditions=["A", "B", "C", "D"], bindingFailureConditions=["x.dev/E", "F", "G", "H"])
    ),
    "shared by values": spec(shared({"default": "2", "validValues": ["1", "2", "10"]})),
    "shared by range": spec(shared({"default": "2", "validRange": {"min": "1", "max": "9", "step": "1"}})),
    "shared anyhow": spec(shared({"default": "2"})),
}

UNSOUND: dict[str, tuple[Raw, str]] = {
    "no nodes": (spec(device(), nodeName=None), "spec"),
    "two ways of nodes": (spec(device(), allNodes=True), "spec"),
    "nodes denied": (spec(device(), allNodes=False), "spec.allNodes"),
    "selector of two terms": (
        spec(nodeName=None, nodeSelector={"nodeSelectorTerms": NOWHERE["nodeSelectorTerms"] * 2}),
        "spec.nodeSelector.nodeSelectorTerms",
    ),
    "selector without values": (
        spec(
            nodeName=None,
            nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
        ),
        "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values",
    ),
    "driver too long": (spec(driver="x" * 64), "spec.driver"),
    "driver no subdomain": (spec(driver="gpu_example"), "spec.driver"),
    "pool empty": (spec(pool={"name": "", "generation": 0, "resourceSliceCount": 1}), "spec.pool.name"),
    "pool with empty part": (
        spec(pool={"name": "a//b", "generation": 0, "resourceSliceCount": 1}),
        "spec.pool.name",
    ),
    "no slices in pool": (
        spec(pool={"name": "p", "generation": 0, "resourceSliceCount": 0}),
        "spec.pool.resourceSliceCount",
    ),
    "generation below zero": (
        spec(pool={"name": "p", "generation": -1, "resourceSliceCount": 1}),
        "spec.pool.generation",
    ),
    "129 devices": (spec(*(device(name=f"gpu-{number}") for number in range(129))), "spec.devices"),
    "65 with a taint": (
        spec(
            device(taints=[{"key": "a", "effect": "None"}]),
            *(device(name=f"d{number}") for number in range(64)),
        ),
        "spec.devices",
    ),
    "65 with a list": (
        spec(device(attributes={"a": {"ints": [1]}}), *(device(name=f"d{number}") for number in range(64))),
        "spec.devices",
    ),
    "a name twice": (spec(device(), device()), "spec.devices[1].name"),
    "name no label": (spec(device(name="gpu.0")), "spec.devices[0].name"),
    "devices and counters": (
        spec(device(), sharedCounters=[{"name": "set", "counters": {"memory": {"value": "1"}}}]),
        "spec",
    ),
    "device nodes without the choice": (spec(device(nodeName="n")), "spec.devices[0]"),
    "device without nodes": (spec(device(), nodeName=None, perDeviceNodeSelection=True), "spec.devices[0]"),
    "device with two ways": (
        spec(device(nodeName="n", allNodes=True), nodeName=None, perDeviceNodeSelection=True),
        "spec.devices[0]",
    ),
    "33 attributes and capacities": (
        spec(
            device(
                attributes={f"a{number}": {"int": number} for number in range(32)},
                capacity={"memory": {"value": "1"}},
            )
        ),
        "spec.devices[0]",
    ),
    "49 values": (
        spec(device(attributes={"a": {"ints": list(range(49))}})),
        "spec.devices[0].attributes",
    ),
    "attribute of two values": (
        spec(device(attributes={"a": {"int": 1, "bool": True}})),
        "spec.devices[0].attributes[a]",
    ),
    "attribute of none": (spec(device(attributes={"a": {}})), "spec.devices[0].attributes[a]"),
    "attribute too long": (
        spec(device(attributes={"a": {"string": "ü" * 33}})),
        "spec.devices[0].attributes[a]",
    ),
    "attribute name": (spec(device(attributes={"a-b": {"int": 1}})), "spec.devices[0].attributes"),
    "attribute name too long": (
        spec(device(attributes={"a" * 33: {"int": 1}})),
        "spec.devices[0].attributes",
    ),
    "attribute domain": (spec(device(attributes={"a_b/c": {"int": 1}})), "spec.devices[0].attributes"),
    "two slashes": (spec(device(attributes={"a/b/c": {"int": 1}})), "spec.devices[0].attributes"),
    "no semver": (
        spec(device(attributes={"a": {"version": "1.0"}})),
        "spec.devices[0].attributes[a].version",
    ),
    "leading zero": (
        spec(device(attributes={"a": {"version": "01.0.0"}})),
        "spec.devices[0].attributes[a].version",
    ),
    "capacity no quantity": (
        spec(device(capacity={"memory": {"value": "80GB"}})),
        "spec.devices[0].capacity[memory].value",
    ),
    "taint without effect": (spec(device(taints=[{"key": "a"}])), "spec.devices[0].taints[0].effect"),
    "taint effect": (
        spec(device(taints=[{"key": "a", "effect": "PreferNoSchedule"}])),
        "spec.devices[0].taints[0].effect",
    ),
    "17 taints": (
        spec(device(taints=[{"key": f"a{number}", "effect": "None"} for number in range(17)])),
        "spec.devices[0].taints",
    ),
    "binding without failure": (
        spec(device(bindingConditions=["A"])),
        "spec.devices[0].bindingFailureConditions",
    ),
    "failure without binding": (
        spec(device(bindingFailureConditions=["A"])),
        "spec.devices[0].bindingConditions",
    ),
    "both at once": (
        spec(device(bindingConditions=["A"], bindingFailureConditions=["B", "A"])),
        "spec.devices[0].bindingFailureConditions[1]",
    ),
    "a condition twice": (
        spec(device(bindingConditions=["A", "A"], bindingFailureConditions=["B"])),
        "spec.devices[0].bindingConditions[1]",
    ),
    "five conditions": (
        spec(device(bindingConditions=list("ABCDE"), bindingFailureConditions=["F"])),
        "spec.devices[0].bindingConditions",
    ),
    "condition no label name": (
        spec(device(bindingConditions=["A b"], bindingFailureConditions=["F"])),
        "spec.devices[0].bindingConditions[0]",
    ),
    "nine counter sets": (
        spec(sharedCounters=[{"name": f"s{n}", "counters": {"m": {"value": "1"}}} for n in range(9)]),
        "spec.sharedCounters",
    ),
    "counters missing": (spec(sharedCounters=[{"name": "s"}]), "spec.sharedCounters[0].counters"),
    "three consumptions": (
        spec(
            device(
                consumesCounters=[
                    {"counterSet": f"s{n}", "counters": {"m": {"value": "1"}}} for n in range(3)
                ]
            )
        ),
        "spec.devices[0].consumesCounters",
    ),
    "policy of an unshared device": (
        spec(device(capacity={"memory": {"value": "10", "requestPolicy": {"default": "1"}}})),
        "spec.devices[0].capacity[memory].requestPolicy",
    ),
    "policy of two kinds": (
        spec(shared({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}})),
        "spec.devices[0].capacity[memory].requestPolicy",
    ),
    "values without default": (
        spec(shared({"validValues": ["1"]})),
        "spec.devices[0].capacity[memory].requestPolicy.default",
    ),
    "default not among values": (
        spec(shared({"default": "3", "validValues": ["1", "2"]})),
        "spec.devices[0].capacity[memory].requestPolicy.validValues",
    ),
    "values not ascending": (
        spec(shared({"default": "1", "validValues": ["2", "1"]})),
        "spec.devices[0].capacity[memory].requestPolicy.validValues[1]",
    ),
    "value above capacity": (
        spec(shared({"default": "1", "validValues": ["1", "11"]})),
        "spec.devices[0].capacity[memory].requestPolicy.validValues[1]",
    ),
    "eleven values": (
        spec(shared({"default": "1", "validValues": [f"{n}" for n in range(11)]})),
        "spec.devices[0].capacity[memory].requestPolicy.validValues",
    ),
    "range without min": (
        spec(shared({"default": "1", "validRange": {"max": "2"}})),
        "spec.devices[0].capacity[memory].requestPolicy.validRange.min",
    ),
    "default below range": (
        spec(shared({"default": "1", "validRange": {"min": "2"}})),
        "spec.devices[0].capacity[memory].requestPolicy.validRange.default",
    ),
    "max above capacity": (
        spec(shared({"default": "1", "validRange": {"min": "1", "max": "11"}})),
        "spec.devices[0].capacity[memory].requestPolicy.validRange.max",
    ),
    "default off the step": (
        spec(shared({"default": "2", "validRange": {"min": "1", "step": "3"}})),
        "spec.devices[0].capacity[memory].requestPolicy.validRange.step",
    ),
    "no step": (
        spec(shared({"default": "1", "validRange": {"min": "1", "step": "0"}})),
        "spec.devices[0].capacity[memory].requestPolicy.validRange.step",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_slice_is_taken(name: str) -> None:
    assert causes(SOUND[name]) == []


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_slice_is_refused_at_the_very_field(name: str) -> None:
    raw, field = UNSOUND[name]
    assert causes(raw) == [field]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"driver": "other.example.com"}, "spec.driver"),
        ({"pool": {"name": "other"}}, "spec.pool.name"),
        ({"nodeName": "other"}, "spec.nodeName"),
    ],
)
def test_what_makes_a_slice_whose_it_is_never_changes(change: Raw, field: str) -> None:
    store = new_store()
    store.create(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec(device())})
    with pytest.raises(ApiError) as caught:
        store.patch(ResourceSlice, named("s"), {"spec": change})
    assert [one.field for one in caught.value.causes] == [field]


def test_a_change_of_one_device_is_checked_and_of_the_others_not_again() -> None:
    store = new_store()
    raw = {"metadata": {"name": "s"}, "spec": spec(device(), device(name="gpu-1"))}
    store.create(ResourceSlice, raw)
    changed = codec.copied(raw["spec"]["devices"])
    changed[1]["attributes"] = {"a": {"version": "x"}}
    with pytest.raises(ApiError) as caught:
        store.patch(ResourceSlice, named("s"), {"spec": {"devices": changed}})
    assert [one.field for one in caught.value.causes] == ["spec.devices[1].attributes[a].version"]


def test_the_server_notes_when_a_device_was_tainted() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}]
    stored = new_store().create(
        ResourceSlice, {"metadata": {"name": "s"}, "spec": spec(device(taints=taints))}
    )
    assert stored.raw["spec"]["devices"][0]["taints"][0]["timeAdded"] == "2023-11-14T22:13:20Z"

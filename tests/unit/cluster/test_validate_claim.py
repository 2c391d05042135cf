"""What the API server refuses in claims, templates and classes, and what it takes."""

import random

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.names import Key, Seconds, named
from jackfield.model.slice import DeviceClass

STATUS = Write(status=True)
CLAIM = Key("d", "c")


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("claims"))  # noqa: S311 - no cryptography


def claim(**devices: object) -> Raw:
    return {"metadata": {"name": "c", "namespace": "d"}, "spec": {"devices": devices}}


def request(name: str = "gpu", **exactly: object) -> Raw:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **exactly}}


def choice(*names: str, **wish: object) -> Raw:
    return {
        "name": "any",
        "firstAvailable": [{"name": one, "deviceClassName": "gpu", **wish} for one in names],
    }


def config(**opaque: object) -> Raw:
    return {"opaque": {"driver": "x.dev", "parameters": {"a": 1}, **opaque}}


def causes(raw: Raw) -> list[str]:
    try:
        new_store().create(ResourceClaim, raw)
    except ApiError as error:
        return [one.field for one in error.causes] or [error.message]
    return []


SOUND: dict[str, Raw] = {
    "nothing": claim(),
    "one": claim(requests=[request()]),
    "many": claim(requests=[request(f"r{number}") for number in range(32)]),
    "all": claim(requests=[request(allocationMode="All")]),
    "alternatives": claim(requests=[choice(*"abcdefgh")]),
    "constraint": claim(
        requests=[request(), choice("a", "b")],
        constraints=[
            {"requests": ["gpu", "any/a"], "matchAttribute": "x.dev/model"},
            {"distinctAttribute": "x.dev/slot"},
        ],
    ),
    "config": claim(requests=[request()], config=[{"requests": ["gpu"], **config()}]),
    "capacity": claim(requests=[request(capacity={"requests": {"memory": 10, "x.dev/cores": "2"}})]),
    "tolerations": claim(
        requests=[
            request(tolerations=[{"key": "a", "value": "b"}, {"operator": "Exists", "effect": "NoExecute"}])
        ]
    ),
}

R0 = "spec.devices.requests[0]"
UNSOUND: dict[str, tuple[Raw, str]] = {
    "33 requests": (claim(requests=[request(f"r{number}") for number in range(33)]), "spec.devices.requests"),
    "a name twice": (claim(requests=[request(), request()]), "spec.devices.requests[1]"),
    "no name": (claim(requests=[request("")]), f"{R0}.name"),
    "neither": (claim(requests=[{"name": "a"}]), R0),
    "both": (claim(requests=[{**choice("a"), "exactly": {"deviceClassName": "gpu"}}]), R0),
    "no class": (claim(requests=[{"name": "a", "exactly": {}}]), f"{R0}.exactly.deviceClassName"),
    "class no name": (claim(requests=[request(deviceClassName="A b")]), f"{R0}.exactly.deviceClassName"),
    "mode": (claim(requests=[request(allocationMode="Some")]), f"{R0}.exactly.allocationMode"),
    "none": (claim(requests=[request(count=0)]), f"{R0}.exactly.count"),
    "all of one": (claim(requests=[request(allocationMode="All", count=1)]), f"{R0}.exactly.count"),
    "all of one alternative": (
        claim(requests=[choice("a", allocationMode="All", count=2)]),
        f"{R0}.firstAvailable[0].count",
    ),
    "nine alternatives": (claim(requests=[choice(*"abcdefghi")]), f"{R0}.firstAvailable"),
    "an alternative twice": (claim(requests=[choice("a", "a")]), f"{R0}.firstAvailable[1]"),
    "selector without expression": (
        claim(requests=[request(selectors=[{}])]),
        f"{R0}.exactly.selectors[0].cel",
    ),
    "33 selectors": (
        claim(requests=[request(selectors=[{"cel": {"expression": "true"}}] * 33)]),
        f"{R0}.exactly.selectors",
    ),
    "expression too long": (
        claim(requests=[request(selectors=[{"cel": {"expression": "true" + " " * 10_240}}])]),
        f"{R0}.exactly.selectors[0].cel.expression",
    ),
    "toleration operator": (
        claim(requests=[request(tolerations=[{"operator": "Like"}])]),
        f"{R0}.exactly.tolerations[0].operator",
    ),
    "toleration value": (
        claim(requests=[request(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])]),
        f"{R0}.exactly.tolerations[0].value",
    ),
    "toleration effect": (
        claim(requests=[request(tolerations=[{"key": "a", "effect": "Never"}])]),
        f"{R0}.exactly.tolerations[0].effect",
    ),
    "capacity": (
        claim(requests=[request(capacity={"requests": {"memory": "much"}})]),
        f"{R0}.exactly.capacity.requests[memory]",
    ),
    "constraint of an unknown request": (
        claim(requests=[request()], constraints=[{"requests": ["nic"], "matchAttribute": "x.dev/a"}]),
        "spec.devices.constraints[0].requests[0]",
    ),
    "constraint of an unknown alternative": (
        claim(requests=[choice("a")], constraints=[{"requests": ["any/b"], "matchAttribute": "x.dev/a"}]),
        "spec.devices.constraints[0].requests[0]",
    ),
    "constraint without domain": (
        claim(requests=[request()], constraints=[{"matchAttribute": "model"}]),
        "spec.devices.constraints[0].matchAttribute",
    ),
    "constraint of nothing": (claim(constraints=[{}]), "spec.devices.constraints[0]"),
    "config without driver": (claim(config=[{}]), "spec.devices.config[0].opaque"),
    "config no object": (claim(config=[config(parameters=[1])]), "spec.devices.config[0].opaque.parameters"),
    "config too long": (
        claim(config=[config(parameters={"a": "x" * 10_240})]),
        "spec.devices.config[0].opaque.parameters",
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_claim_is_taken(name: str) -> None:
    assert causes(SOUND[name]) == []


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_claim_is_refused_at_the_very_field(name: str) -> None:
    raw, field = UNSOUND[name]
    assert causes(raw) == [field]


@pytest.mark.parametrize("name", UNSOUND)
def test_a_template_is_held_to_the_same_rules(name: str) -> None:
    raw, field = UNSOUND[name]
    template = {"metadata": {"name": "t", "namespace": "d"}, "spec": {"spec": raw["spec"]}}
    with pytest.raises(ApiError) as caught:
        new_store().create(ResourceClaimTemplate, template)
    assert [one.field for one in caught.value.causes] == [f"spec.{field}"]


def test_a_template_gives_labels_and_annotations_only_and_never_changes() -> None:
    store = new_store()
    named_template: Raw = {
        "metadata": {"name": "t", "namespace": "d"},
        "spec": {"metadata": {"name": "x"}, "spec": {}},
    }
    with pytest.raises(ApiError) as caught:
        store.create(ResourceClaimTemplate, named_template)
    assert [one.field for one in caught.value.causes] == ["spec.metadata.name"]
    named_template["spec"]["metadata"] = {"labels": {"a": "b"}}
    store.create(ResourceClaimTemplate, named_template)
    with pytest.raises(ApiError) as caught:
        store.patch(ResourceClaimTemplate, Key("d", "t"), {"spec": {"metadata": {"labels": {"a": "c"}}}})
    assert [one.field for one in caught.value.causes] == ["spec"]


def test_counts_and_modes_are_filled_in() -> None:
    stored = new_store().create(
        ResourceClaim,
        claim(requests=[request(tolerations=[{"key": "a"}]), request("b", allocationMode="All")]),
    )
    first, second = (one["exactly"] for one in stored.raw["spec"]["devices"]["requests"])
    assert (first["allocationMode"], first["count"]) == ("ExactCount", 1)
    assert first["tolerations"] == [{"key": "a", "operator": "Equal"}]
    assert "count" not in second


# --- expressions


def classified(expression: str) -> Raw:
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


@pytest.mark.parametrize("expression", ["device.driver == 'x.dev' &&", "1 + 1", "nothing.here"])
def test_an_expression_that_does_not_compile_is_refused(expression: str) -> None:
    store = new_store()
    with pytest.raises(ApiError) as caught:
        store.create(DeviceClass, classified(expression))
    assert [one.field for one in caught.value.causes] == ["spec.selectors[0].cel.expression"]
    store.create(DeviceClass, classified("device.driver == 'x.dev'"))
    with pytest.raises(ApiError):
        store.update(DeviceClass, classified(expression))


def test_an_expression_that_may_cost_too_much_is_refused() -> None:
    walk = "device.attributes.all({0}, {1})"
    nested = "true"
    for name in "abcde":
        nested = walk.format(name, nested)
    with pytest.raises(ApiError) as caught:
        new_store().create(DeviceClass, classified(nested))
    assert [(one.field, one.reason) for one in caught.value.causes] == [
        ("spec.selectors[0].cel.expression", "FieldValueForbidden")
    ]


@pytest.mark.parametrize(
    ("name", "sound"),
    [("x.dev/gpu", True), ("gpu", False), ("kubernetes.io/gpu", False), ("x.dev/g u", False), ("", True)],
)
def test_an_extended_resource_has_a_domain_that_is_not_kubernetes_own(name: str, *, sound: bool) -> None:
    raw = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": name}}
    if sound:
        new_store().create(DeviceClass, raw)
        return
    with pytest.raises(ApiError) as caught:
        new_store().create(DeviceClass, raw)
    assert [one.field for one in caught.value.causes] == ["spec.extendedResourceName"]


def test_a_class_changes_and_counts_its_generations() -> None:
    store = new_store()
    store.create(DeviceClass, classified("true"))
    stored = store.patch(DeviceClass, named("gpu"), {"spec": {"selectors": None}})
    assert stored.raw["metadata"]["generation"] == 2


# --- what was given


def result(**fields: object) -> Raw:
    return {"request": "gpu", "driver": "x.dev", "pool": "p", "device": "d0", **fields}


def given(*results: Raw, **allocation: object) -> Raw:
    return {"allocation": {"devices": {"results": list(results)}, **allocation}}


A0 = "status.allocation.devices.results[0]"
SHARE = "0f9ee2a1-5a6b-4b3c-9d7e-0123456789ab"
CONDITION = {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def said(*conditions: Raw, **fields: object) -> Raw:
    return {"driver": "x.dev", "pool": "p", "device": "d0", "conditions": list(conditions), **fields}


STATUSES: dict[str, tuple[Raw, list[str]]] = {
    "one": (given(result()), []),
    "an alternative": (given(result(request="any/a")), []),
    "a share": (given(result(shareID=SHARE, consumedCapacity={"memory": "1Gi"})), []),
    "32": (given(*(result(device=f"d{number}") for number in range(32))), []),
    "33": (
        given(*(result(device=f"d{number}") for number in range(33))),
        ["status.allocation.devices.results"],
    ),
    "unknown request": (given(result(request="nic")), [f"{A0}.request"]),
    "no driver": (given(result(driver="")), [f"{A0}.driver"]),
    "no pool": (given(result(pool="")), [f"{A0}.pool"]),
    "device no label": (given(result(device="d.0")), [f"{A0}.device"]),
    "share no uuid": (given(result(shareID=SHARE.upper())), [f"{A0}.shareID"]),
    "binding alone": (given(result(bindingConditions=["A"])), [f"{A0}.bindingFailureConditions"]),
    "selector of nothing": (
        given(result(), nodeSelector={"nodeSelectorTerms": []}),
        ["status.allocation.nodeSelector.nodeSelectorTerms"],
    ),
    "eight conditions": (
        {**given(result()), "devices": [said(*({**CONDITION, "type": f"C{n}"} for n in range(8)))]},
        [],
    ),
    "nine conditions": (
        {**given(result()), "devices": [said(*({**CONDITION, "type": f"C{n}"} for n in range(9)))]},
        ["status.devices[0].conditions"],
    ),
    "a condition twice": (
        {**given(result()), "devices": [said(CONDITION, CONDITION)]},
        ["status.devices[0].conditions[1].type"],
    ),
    "condition without reason": (
        {**given(result()), "devices": [said({**CONDITION, "reason": ""})]},
        ["status.devices[0].conditions[0].reason"],
    ),
    "condition without time": (
        {**given(result()), "devices": [said({"type": "Ready", "status": "True", "reason": "R"})]},
        ["status.devices[0].conditions[0].lastTransitionTime"],
    ),
    "condition of another status": (
        {**given(result()), "devices": [said({**CONDITION, "status": "Yes"})]},
        ["status.devices[0].conditions[0].status"],
    ),
    "said of another share": (
        {**given(result(shareID=SHARE)), "devices": [said(CONDITION)]},
        ["status.devices[0]"],
    ),
    "said twice": ({**given(result()), "devices": [said(), said()]}, ["status.devices[1]"]),
    "data": (
        {**given(result()), "devices": [said(data={"a": None}, networkData={"ips": ["10.0.0.1/8"]})]},
        [],
    ),
    "data no object": ({**given(result()), "devices": [said(data=[1])]}, ["status.devices[0].data"]),
    "data too long": (
        {**given(result()), "devices": [said(data={"a": "x" * 10_240})]},
        ["status.devices[0].data"],
    ),
    "interface too long": (
        {**given(result()), "devices": [said(networkData={"interfaceName": "x" * 257})]},
        ["status.devices[0].networkData.interfaceName"],
    ),
    "address without prefix": (
        {**given(result()), "devices": [said(networkData={"ips": ["10.0.0.1"]})]},
        ["status.devices[0].networkData.ips[0]"],
    ),
    "reserved for nobody": (
        {**given(result()), "reservedFor": [{"resource": "pods", "name": "", "uid": "u"}]},
        ["status.reservedFor[0].name"],
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_what_a_claim_was_given_is_checked(name: str) -> None:
    status, fields = STATUSES[name]
    store = new_store()
    store.create(ResourceClaim, claim(requests=[request(), choice("a", "b")]))
    try:
        store.patch(ResourceClaim, CLAIM, {"status": status}, STATUS)
    except ApiError as error:
        found = [one.field for one in error.causes] or [error.message]
    else:
        found = []
    assert found == fields

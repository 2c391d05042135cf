"""What comes off the wire is believed or refused; what goes onto it is complete."""

import gc
import json
import time

import pytest

from jackfield import codec
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.composition import (
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestSpec,
    ComposabilityRequestStatus,
    ComposableResource,
    ComposableResourceSpec,
    ComposableResourceStatus,
    RequestState,
    ScalarResource,
)
from jackfield.model.event import Event
from jackfield.model.meta import Condition, Object, ObjectMeta, OwnerReference
from jackfield.model.names import Key, ModelName, NodeName
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec


def slice_raw(name: str, devices: int) -> codec.Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node",
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {f"a{number}": {"string": f"value-{number}"} for number in range(8)},
                    "capacity": {"memory": {"value": "80Gi"}},
                }
                for index in range(devices)
            ],
        },
    }


def test_an_object_is_decoded_from_bytes_and_from_a_dictionary_alike() -> None:
    raw = slice_raw("a", 2)
    from_bytes = codec.decode(ResourceSlice, json.dumps(raw).encode())
    assert from_bytes == codec.decode(ResourceSlice, raw)
    assert from_bytes.spec.devices[1].attributes["a3"].string == "value-3"
    assert from_bytes.key == Key("", "a")


def test_null_means_absent_as_go_writes_it() -> None:
    template = codec.decode(
        ResourceClaimTemplate,
        {
            "metadata": {"name": "t", "namespace": "d", "creationTimestamp": None, "labels": None},
            "spec": {"metadata": {"creationTimestamp": None}, "spec": {"devices": {"requests": None}}},
        },
    )
    assert template.metadata.labels == {}
    assert template.spec.spec.devices.requests == ()


def test_parameters_of_a_driver_keep_their_nulls() -> None:
    config = [{"opaque": {"driver": "d.example.com", "parameters": {"a": None}}}]
    claim = codec.decode(
        ResourceClaim,
        {"metadata": {"name": "c", "labels": None}, "spec": {"devices": {"config": config}}},
    )
    opaque = claim.spec.devices.config[0].opaque
    assert opaque is not None
    assert bytes(opaque.parameters) == b'{"a":null}'
    assert codec.encode(claim)["spec"]["devices"]["config"] == config


@pytest.mark.parametrize(
    ("kind", "raw", "key", "path"),
    [
        (
            ResourceSlice,
            {
                "metadata": {"name": "a"},
                "spec": {
                    "driver": "d",
                    "pool": {"name": "p"},
                    "devices": [{"name": "x"}, {"name": "y"}, {"name": "z"}, {"name": 4}],
                },
            },
            Key("", "a"),
            "spec.devices[3].name",
        ),
        (
            ResourceSlice,
            {
                "metadata": {"name": "a"},
                "spec": {
                    "driver": "d",
                    "pool": {"name": "p"},
                    "devices": [{"name": "x", "attributes": {"a": {"int": "1"}}}],
                },
            },
            Key("", "a"),
            "spec.devices[0].attributes[*].int",
        ),
        (ResourceSlice, {"metadata": {"name": "a"}}, Key("", "a"), ""),
        (Pod, {"metadata": {"name": "p", "namespace": "n"}, "spec": []}, Key("n", "p"), "spec"),
        (Pod, {"metadata": "p"}, Key("", ""), "metadata"),
        (
            ComposableResource,
            {"metadata": {"name": "r"}, "status": {"state": "Flying"}},
            Key("", "r"),
            "status.state",
        ),
    ],
)
def test_a_bad_object_says_which_one_and_where(
    kind: type[Object], raw: codec.Raw, key: Key, path: str
) -> None:
    with pytest.raises(codec.BadObject) as caught:
        codec.decode(kind, raw)
    assert (caught.value.kind, caught.value.key, caught.value.path) == (kind, key, path)
    assert kind.__name__ in str(caught.value)
    assert path in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_object_at_all_is_a_bad_object_too(data: bytes) -> None:
    with pytest.raises(codec.BadObject):
        codec.decode(Pod, data)


def test_one_bad_object_never_stops_the_others() -> None:
    items = [slice_raw("a", 1), {"metadata": {"name": "b"}}, slice_raw("c", 1)]
    good, bad = codec.decode_many(ResourceSlice, items)
    assert [one.metadata.name for one in good] == ["a", "c"]
    assert [one.key.name for one in bad] == ["b"]


def test_the_collector_runs_on_after_a_bulk_decode() -> None:
    assert gc.isenabled()
    codec.decode_many(ResourceSlice, [slice_raw("a", 1), {}])
    assert gc.isenabled()


def test_a_list_tells_its_version_and_its_next_page() -> None:
    data = {
        "kind": "ResourceSliceList",
        "metadata": {"resourceVersion": "99", "continue": "more"},
        "items": [slice_raw("a", 1), {"metadata": {"name": "b"}}],
    }
    listing = codec.decode_list(ResourceSlice, json.dumps(data).encode())
    assert [one.metadata.name for one in listing.objects] == ["a"]
    assert [one.key.name for one in listing.errors] == ["b"]
    assert (listing.version, listing.more) == ("99", "more")
    assert codec.decode_list(ResourceSlice, b'{"metadata":{},"items":null}').objects == ()


def test_forty_thousand_devices_decode_in_the_time_json_takes_for_a_few_times_as_many() -> None:
    items = [json.dumps(slice_raw(f"s{index}", 64)).encode() for index in range(625)]
    begun = time.perf_counter()
    for item in items:
        json.loads(item)
    untyped = time.perf_counter() - begun
    begun = time.perf_counter()
    good, bad = codec.decode_many(ResourceSlice, items)
    typed = time.perf_counter() - begun
    assert sum(len(one.spec.devices) for one in good) == 40_000
    assert not bad
    assert typed < 4 * untyped


REQUEST = ComposabilityRequest(
    metadata=ObjectMeta(name="r"),
    spec=ComposabilityRequestSpec(resource=ScalarResource(type="gpu", model=ModelName("A100"))),
    status=ComposabilityRequestStatus(
        state=RequestState.RUNNING,
        resources={"gpu-1": ChildStatus(node_name=NodeName("n"))},
        scalar_resource=ScalarResource(type="gpu", model=ModelName("A100"), size=1),
    ),
)
RESOURCE = ComposableResource(
    metadata=ObjectMeta(name="r", owner_references=(OwnerReference(kind="Pod", name="p"),)),
    spec=ComposableResourceSpec(type="gpu"),
    status=ComposableResourceStatus(conditions=(Condition(type="Visible"),)),
)


def test_required_fields_are_written_even_where_they_say_nothing() -> None:
    request = codec.encode(REQUEST)
    assert request["spec"]["resource"] == {"type": "gpu", "model": "A100", "size": 0, "target_node": ""}
    assert request["status"]["resources"] == {"gpu-1": {"state": "", "node_name": "n"}}
    assert request["status"]["scalarResource"]["target_node"] == ""
    resource = codec.encode(RESOURCE)
    assert resource["spec"] == {"type": "gpu", "model": "", "target_node": ""}
    assert resource["status"]["state"] == ""
    assert resource["status"]["conditions"] == [
        {"type": "Visible", "status": "Unknown", "reason": "", "message": ""}
    ]
    assert resource["metadata"]["ownerReferences"] == [
        {"apiVersion": "", "kind": "Pod", "name": "p", "uid": ""}
    ]


def test_a_pool_always_says_its_generation_and_count() -> None:
    spec = ResourceSliceSpec(driver="d.example.com", pool=ResourcePool(name="p"))
    raw = codec.encode(ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec))
    assert raw["spec"]["pool"] == {"name": "p", "generation": 0, "resourceSliceCount": 1}


def test_an_event_is_written_as_kubectl_reads_it() -> None:
    raw = codec.encode(Event(metadata=ObjectMeta(name="e", namespace="default"), reason="Attached"))
    assert (raw["type"], raw["count"], raw["involvedObject"]) == ("Normal", 1, {})


def test_what_says_nothing_and_is_not_required_is_left_out() -> None:
    raw = codec.encode(Pod(metadata=ObjectMeta(name="p", namespace="d")))
    assert raw == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}}


@pytest.mark.parametrize("new", [REQUEST, RESOURCE, codec.decode(ResourceSlice, slice_raw("a", 3))])
def test_an_object_comes_back_from_the_wire_as_it_went(new: Object) -> None:
    assert codec.decode(type(new), codec.encode(new)) == new


def test_a_copy_shares_nothing_mutable() -> None:
    original: codec.Raw = {"a": [{"b": 1}], "c": (1, 2)}
    copy = codec.copied(original)
    copy["a"][0]["b"] = 2
    assert original["a"][0]["b"] == 1
    assert copy["c"] == [1, 2]

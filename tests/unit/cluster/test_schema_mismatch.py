"""Values of the wrong type are told in the words of the real API server: each line here is an answer of one."""

import msgspec
import pytest

from jackfield.cluster import schema
from jackfield.cluster.schema import doubles
from jackfield.codec import Raw, kinds
from jackfield.codec.kinds import Kind


def kind(name: str) -> Kind:
    (found,) = (one for one in kinds.KINDS if one.kind == name)
    return found


POD = [
    ('{"spec":{"containers":"x"}}', "string", "PodSpec.spec.containers", "[]v1.Container"),
    ('{"spec":{"containers":{}}}', "object", "PodSpec.spec.containers", "[]v1.Container"),
    ('{"spec":{"containers":[7]}}', "number", "PodSpec.spec.containers", "v1.Container"),
    ('{"spec":{"containers":[{"image":7}]}}', "number", "Container.spec.containers.image", "string"),
    ('{"spec":7}', "number", "Pod.spec", "v1.PodSpec"),
    ('{"metadata":"x"}', "string", "Pod.metadata", "v1.ObjectMeta"),
    ('{"metadata":{"labels":["x"]}}', "array", "ObjectMeta.metadata.labels", "map[string]string"),
    ('{"metadata":{"labels":{"a":true}}}', "bool", "ObjectMeta.metadata.labels", "string"),
    ('{"metadata":{"uid":7}}', "number", "ObjectMeta.metadata.uid", "types.UID"),
    ('{"spec":{"restartPolicy":3}}', "number", "PodSpec.spec.restartPolicy", "v1.RestartPolicy"),
    ('{"spec":{"nodeSelector":{"a":{"b":1}}}}', "object", "PodSpec.spec.nodeSelector", "string"),
    ('{"spec":{"activeDeadlineSeconds":3.5}}', "number 3.5", "PodSpec.spec.activeDeadlineSeconds", "int64"),
    ('{"spec":{"activeDeadlineSeconds":"3"}}', "string", "PodSpec.spec.activeDeadlineSeconds", "int64"),
    ('{"spec":{"priority":2147483648}}', "number 2147483648", "PodSpec.spec.priority", "int32"),
    ('{"spec":{"priority":-2147483649}}', "number -2147483649", "PodSpec.spec.priority", "int32"),
    ('{"spec":{"hostPID":1}}', "number", "PodSpec.spec.hostPID", "bool"),
    (
        '{"spec":{"volumes":[{"hostPath":"x"}]}}',
        "string",
        "Volume.spec.volumes.VolumeSource.hostPath",
        "v1.HostPathVolumeSource",
    ),
    (
        '{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}',
        "bool",
        "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
        "int32",
    ),
    (
        '{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":1.5}}}]}}',
        "number 1.5",
        "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
        "int32",
    ),
    ('{"metadata":{"creationTimestamp":3}}', "number", "ObjectMeta.metadata.creationTimestamp", "string"),
    ('{"spec":{"overhead":7}}', "number", "PodSpec.spec.overhead", "v1.ResourceList"),
]


@pytest.mark.parametrize(("body", "found", "field", "go_type"), POD)
def test_a_value_of_the_wrong_type_is_named_with_its_field(
    body: str, found: str, field: str, go_type: str
) -> None:
    words = f"json: cannot unmarshal {found} into Go struct field {field} of type {go_type}"
    raw: Raw = msgspec.json.decode(body)
    assert schema.strict.mismatch_in(kind("Pod"), raw) == words
    whole = f'Pod in version "v1" cannot be handled as a Pod: {words}'
    assert schema.strict.type_error(kind("Pod"), raw) == whole


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"spec":null,"metadata":null}',
        '{"metadata":{"labels":null,"creationTimestamp":null,"finalizers":[null]}}',
        '{"spec":{"priority":2147483647,"activeDeadlineSeconds":9223372036854775807}}',
        '{"spec":{"priority":-2147483648,"overhead":{"cpu":1,"memory":"1Gi","a":0.5,"b":null}}}',
        '{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":80}}}]}}',
        '{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"http"}}}]}}',
        '{"unknown":7,"spec":{"unknown":[7]}}',
        '{"metadata":{"managedFields":[{"fieldsV1":7}]}}',
    ],
)
def test_what_the_decoder_takes_is_no_mistake(body: str) -> None:
    assert schema.strict.type_error(kind("Pod"), msgspec.json.decode(body)) == ""


ORDER = [
    # The first mistake is told.
    ('{"spec":{"restartPolicy":3,"hostname":4}}', "Go struct field PodSpec.spec.restartPolicy"),
    ('{"spec":{"hostname":4,"restartPolicy":3}}', "Go struct field PodSpec.spec.hostname"),
    # But what reads itself ends the reading, whatever came before.
    ('{"spec":{"hostname":4,"overhead":{"cpu":"x"}}}', "quantities must match the regular expression"),
    ('{"spec":{"hostname":4},"metadata":{"creationTimestamp":"x"}}', 'parsing time "x" as'),
    ('{"spec":{"hostname":4},"metadata":{"creationTimestamp":[]}}', "array into Go struct field ObjectMeta"),
    ('{"metadata":{"creationTimestamp":"x","deletionTimestamp":"y"}}', 'parsing time "x" as'),
    # What is said twice counts twice.
    ('{"spec":{"hostname":4},"spec":{}}', "Go struct field PodSpec.spec.hostname"),
]


@pytest.mark.parametrize(("body", "words"), ORDER)
def test_one_of_several_mistakes_is_told(body: str, words: str) -> None:
    raw: Raw = doubles.parsed(body.encode())
    assert words in schema.strict.type_error(kind("Pod"), raw)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ({}, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ([], "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("1KK", "unable to parse quantity's suffix"),
    ],
)
def test_a_quantity_reads_itself(value: object, words: str) -> None:
    raw: Raw = {"spec": {"overhead": {"cpu": value}}}
    assert schema.strict.mismatch_in(kind("Pod"), raw) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("YWJj", ""),
        ("abc", "illegal base64 data at input byte 0"),
        (3, "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"),
        ([3, 255], ""),
        ([3, "x"], "json: cannot unmarshal string into Go struct field Secret.data of type uint8"),
        ([256], "json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8"),
    ],
)
def test_bytes_are_base64(value: object, words: str) -> None:
    assert schema.strict.mismatch_in(kind("Secret"), {"data": {"k": value}}) == words


def test_a_lease_wants_its_times_with_microseconds() -> None:
    raw: Raw = {"spec": {"renewTime": "2020-01-01T00:00:00Z"}}
    assert 'as ".000000"' in schema.strict.type_error(kind("Lease"), raw)


CUSTOM = [
    ({"metadata": "x"}, "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    (
        {"metadata": {"labels": []}},
        "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
    ),
    (
        {"metadata": {"name": 3}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
    ),
    (
        {"metadata": {"ownerReferences": [{"kind": 1}]}},
        "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.kind of type string",
    ),
    # They were sorted on their way here.
    (
        {"metadata": {"name": 3, "labels": 4}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string",
    ),
    ({"metadata": None}, ""),
    ({}, ""),
    ({"spec": 7, "status": "x"}, ""),
]


@pytest.mark.parametrize(("raw", "words"), CUSTOM)
def test_of_our_own_kinds_only_the_metadata_is_decoded(raw: Raw, words: str) -> None:
    assert schema.strict.mismatch_in(kind("ComposableResource"), raw) == words


def test_bodies_that_are_no_kinds_are_judged_by_their_schemas() -> None:
    node = schema.named("policy/v1", "Eviction")
    assert node is not None
    said = schema.strict.mismatch_in(node, {"deleteOptions": {"gracePeriodSeconds": "x"}})
    assert "DeleteOptions.deleteOptions.gracePeriodSeconds of type int64" in said


def test_of_kinds_without_a_schema_nothing_is_said() -> None:
    nobody = msgspec.structs.replace(kind("Pod"), kind="Nobody")
    assert schema.strict.type_error(nobody, {"spec": 7}) == ""
    assert schema.strict.unknown_fields(nobody, {"a": 7}) == ()
    assert schema.strict.errors(nobody, b'{"a":7,"a":8}') == ()
    assert schema.strict.pruned(nobody, {"a": 7}) == {"a": 7}

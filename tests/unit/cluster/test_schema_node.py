"""The schemas of all kinds say what is in their objects, and how it is merged."""

import json
from importlib import resources

import msgspec
import pytest

from jackfield.cluster import schema
from jackfield.cluster.schema import library
from jackfield.cluster.schema.node import Node
from jackfield.codec import kinds
from jackfield.codec.kinds import KINDS, Kind


def at(api_version: str, kind: str, path: str) -> Node | None:
    """Return the node at a path, in which `*` is an item of a list."""
    node = schema.named(api_version, kind)
    for name in path.split("."):
        assert node is not None, path
        node = node.items if name == "*" else node.member(name)
    return node


def there(api_version: str, kind: str, path: str) -> Node:
    found = at(api_version, kind, path)
    assert found is not None
    return found


TYPES = [
    ("v1", "Pod", "spec", "object", "v1.PodSpec"),
    ("v1", "Pod", "spec.containers", "array", "[]v1.Container"),
    ("v1", "Pod", "spec.containers.*", "object", "v1.Container"),
    ("v1", "Pod", "spec.restartPolicy", "string", "v1.RestartPolicy"),
    ("v1", "Pod", "spec.activeDeadlineSeconds", "integer", "int64"),
    ("v1", "Pod", "spec.hostNetwork", "boolean", "bool"),
    ("v1", "Pod", "spec.nodeSelector", "object", "map[string]string"),
    ("v1", "Pod", "spec.nodeSelector.anything", "string", "string"),
    ("v1", "Pod", "spec.overhead", "object", "v1.ResourceList"),
    ("v1", "Pod", "spec.overhead.cpu", "quantity", "resource.Quantity"),
    ("v1", "Pod", "spec.containers.*.livenessProbe.httpGet.port", "int-or-string", "intstr.IntOrString"),
    ("v1", "Pod", "spec.containers.*.securityContext.capabilities.add.*", "string", "v1.Capability"),
    ("v1", "Pod", "metadata.creationTimestamp", "string", "v1.Time"),
    ("v1", "Pod", "metadata.uid", "string", "types.UID"),
    ("v1", "Pod", "metadata.managedFields.*.fieldsV1", "any", "v1.FieldsV1"),
    ("v1", "Secret", "data.key", "string", "[]uint8"),
    (
        "resource.k8s.io/v1",
        "ResourceClaim",
        "spec.devices.config.*.opaque.parameters",
        "any",
        "runtime.RawExtension",
    ),
    ("resource.k8s.io/v1", "ResourceSlice", "spec.devices.*.attributes.a", "object", "v1.DeviceAttribute"),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", "spec.taint", "object", "v1beta2.DeviceTaint"),
    ("policy/v1", "Eviction", "deleteOptions.preconditions", "object", "v1.Preconditions"),
    ("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", "spec.force_detach", "boolean", "bool"),
    ("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", "metadata.labels.a", "string", "string"),
    ("cro.hpsys.ibm.ie.com/v1alpha1", "ComposabilityRequest", "status.resources.a.state", "string", "string"),
]


@pytest.mark.parametrize(("api_version", "kind", "path", "expected", "go_type"), TYPES)
def test_a_place_has_a_type(api_version: str, kind: str, path: str, expected: str, go_type: str) -> None:
    node = there(api_version, kind, path)
    assert (node.type, node.go_type) == (expected, go_type)


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "Pod", "spex"),
        ("v1", "Pod", "spec.containers.*.imag"),
        ("v1", "Pod", "spec.containers.name"),
        ("v1", "Pod", "metadata.Name"),
        ("v1", "Pod", "metadata.name.*"),
        ("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", "spec.size"),
        ("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", "metadata.nam"),
    ],
)
def test_what_a_kind_does_not_have_is_not_there(api_version: str, kind: str, path: str) -> None:
    assert at(api_version, kind, path) is None


def test_everything_is_welcome_in_what_belongs_to_others() -> None:
    free = there("resource.k8s.io/v1", "ResourceClaim", "spec.devices.config.*.opaque.parameters.a.b.*.c")
    assert free.type == "any"


MERGES = [
    # path, then patch strategies, patch key, list type, list keys, map type
    ("spec.containers", ({"merge"}, "name", "map", ("name",), "")),
    ("spec.containers.*.ports", ({"merge"}, "containerPort", "map", ("containerPort", "protocol"), "")),
    ("spec.volumes", ({"merge", "retainKeys"}, "name", "map", ("name",), "")),
    ("spec.tolerations", (set(), "", "atomic", (), "")),
    ("spec.nodeSelector", (set(), "", "", (), "atomic")),
    (
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        (set(), "", "", (), "atomic"),
    ),
    ("metadata.finalizers", ({"merge"}, "", "set", (), "")),
    ("metadata.labels", (set(), "", "", (), "")),
    ("metadata.ownerReferences", ({"merge"}, "uid", "map", ("uid",), "")),
    ("metadata.ownerReferences.*", (set(), "", "", (), "atomic")),
]


@pytest.mark.parametrize(("path", "expected"), MERGES)
def test_a_place_says_how_it_is_merged(path: str, expected: tuple[object, ...]) -> None:
    node = there("v1", "Pod", path)
    said = (set(node.patch_strategies), node.patch_key, node.list_type, node.list_keys, node.map_type)
    assert said == expected


def test_our_kinds_merge_as_their_definitions_say() -> None:
    node = there("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", "status.conditions")
    assert (node.list_type, node.list_keys) == ("map", ("type",))
    assert not node.patch_strategies


def test_defaults_and_what_is_required_are_known() -> None:
    assert there("v1", "Pod", "spec.containers.*.ports.*.protocol").default == "TCP"
    assert there("v1", "Pod", "spec.containers.*.name").default == ""
    assert there("v1", "Pod", "spec.containers.*.image").default is None
    assert there("v1", "Pod", "spec").required == ("containers",)


def test_go_wraps_some_fields() -> None:
    assert there("v1", "Pod", "spec.volumes.*.hostPath").wrapper == "VolumeSource"
    assert there("v1", "Pod", "spec.volumes.*.name").wrapper == ""


# --- all kinds


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_has_a_schema(kind: Kind) -> None:
    node = schema.of(kind)
    assert node is not None
    assert {"apiVersion", "kind", "metadata"} < set(node.members)
    assert ("status" in node.members) or not kind.has_status


def unknown(info: msgspec.inspect.Type, node: Node | None, path: str) -> list[str]:
    """Return the paths to what a type of the model has and a schema has not."""
    if node is None:
        return [path]
    match info:
        case msgspec.inspect.StructType(cls=struct) if node.type != "any":
            fields = [(one.encode_name, one.type) for one in msgspec.structs.fields(struct)]
            return [
                one
                for name, inner in fields
                for one in unknown(msgspec.inspect.type_info(inner), node.member(name), f"{path}.{name}")
            ]
        case msgspec.inspect.VarTupleType(item_type=item):
            return unknown(item, node.items, f"{path}[]")
        case msgspec.inspect.DictType(value_type=item):
            return unknown(item, node.member("a"), f"{path}{{}}")
        case msgspec.inspect.UnionType(types=types):
            return [
                one
                for each in types
                if not isinstance(each, msgspec.inspect.NoneType)
                for one in unknown(each, node, path)
            ]
        case _:
            return []


WIDER = ["Namespace.status.conditions[].observedGeneration"]
"""The model has one type for the conditions of all kinds."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_the_model_has_no_field_that_kubernetes_does_not_know(kind: Kind) -> None:
    node = schema.of(kind)
    assert node is not None
    found = unknown(msgspec.inspect.type_info(kind.type), node, kind.kind)
    assert found == [one for one in WIDER if one.startswith(f"{kind.kind}.")]


def test_a_kind_that_nobody_knows_has_no_schema() -> None:
    assert schema.named("apps/v1", "Deployment") is None
    pod = kinds.by_kind("v1", "Pod")
    assert pod is not None
    assert schema.of(msgspec.structs.replace(pod, version="v2")) is None


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Binding"),
        ("v1", "DeleteOptions"),
        ("v1", "Status"),
        ("policy/v1", "Eviction"),
        ("authentication.k8s.io/v1", "SelfSubjectReview"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ],
)
def test_bodies_that_are_no_kinds_of_ours_have_schemas_too(api_version: str, kind: str) -> None:
    node = schema.named(api_version, kind)
    assert node is not None
    assert node.member("kind") is not None


# --- the file


def test_the_file_is_small_and_holds_no_sentences() -> None:
    text = resources.files("jackfield.cluster.schema").joinpath(library.FILE).read_text("utf-8")
    assert len(text) < 100_000

    def sentences(value: object) -> list[str]:
        match value:
            case str():
                return [value] if value.count(" ") > 1 else []
            case dict():
                return [one for pair in value.items() for part in pair for one in sentences(part)]
            case list():
                return [one for part in value for one in sentences(part)]
            case _:
                return []

    assert sentences(json.loads(text)) == []
    assert schema.version().startswith("v1.36")

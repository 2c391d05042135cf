"""The definitions say what the model says, take all that CoHDI's take, and keep what must not change."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from jackfield.codec import Raw, encode, kinds
from jackfield.codec.definitions import REVISION, SCHEMA, definitions, mark
from jackfield.codec.encoding import ALWAYS
from jackfield.codec.schema import Field, Words, schema
from jackfield.codec.words import WORDS
from jackfield.model.composition import (
    AllocationPolicy,
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    OtherSpec,
    RequestState,
    ResourceState,
    ScalarResource,
)
from jackfield.model.meta import Condition, Object
from jackfield.model.names import ModelName, NodeName, Time
from jackfield.testing import builders as b
from unit.codec.schemas import KNOWN, faults, inside

ROOT = Path(__file__).resolve().parents[3]
KINDS: tuple[type[Object], ...] = (ComposabilityRequest, ComposableResource)
BY_KIND = dict(zip(KINDS, definitions(), strict=True))

Golden = Callable[[Path, str], None]


def version(kind: type[Object]) -> Raw:
    only = BY_KIND[kind]["spec"]["versions"]
    assert len(only) == 1
    found: Raw = only[0]
    return found


def root(kind: type[Object]) -> Raw:
    found: Raw = version(kind)["schema"]["openAPIV3Schema"]
    return found


def at(kind: type[Object], path: str) -> Raw:
    return dict(inside(root(kind)))[path]


# --- the envelope


@pytest.mark.parametrize("kind", KINDS)
def test_a_definition_names_the_kind_as_the_registry_does(kind: type[Object]) -> None:
    names, definition = kinds.of(kind), BY_KIND[kind]
    assert definition["metadata"]["name"] == names.resource
    assert definition["spec"]["group"] == names.group
    assert definition["spec"]["scope"] == "Cluster"
    assert definition["spec"]["names"]["kind"] == names.kind
    assert definition["spec"]["names"]["plural"] == names.plural
    assert (version(kind)["name"], version(kind)["served"], version(kind)["storage"]) == (
        "v1alpha1",
        True,
        True,
    )
    assert version(kind)["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_and_selected_is_in_the_schema(kind: type[Object]) -> None:
    known = {f".{path}" for path, _ in inside(root(kind))}
    columns = [one["jsonPath"] for one in version(kind)["additionalPrinterColumns"]]
    selected = [one["jsonPath"] for one in version(kind)["selectableFields"]]
    assert [path for path in (*columns, *selected) if path not in known and ".metadata." not in path] == []


def test_a_node_can_select_its_own_resources() -> None:
    assert {"jsonPath": ".spec.target_node"} in version(ComposableResource)["selectableFields"]


def test_the_column_of_claims_escapes_the_dots_of_the_annotation() -> None:
    (claim,) = (
        one for one in version(ComposableResource)["additionalPrinterColumns"] if one["name"] == "Claim"
    )
    assert claim["jsonPath"] == r".metadata.annotations.jackfield\.dev/claim"
    assert claim["priority"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_mark_changes_with_the_definition_and_with_nothing_else(kind: type[Object]) -> None:
    definition = BY_KIND[kind]
    assert definition["metadata"]["annotations"][SCHEMA] == mark(definition)
    assert re.fullmatch(rf"{REVISION}\.[0-9a-f]{{16}}", mark(definition))
    assert mark({"spec": {**definition["spec"], "scope": "Namespaced"}}) != mark(definition)
    assert mark({"spec": dict(reversed(definition["spec"].items()))}) == mark(definition)


def test_the_definitions_that_are_shown_are_those_that_are_applied(golden: Golden) -> None:
    text = yaml.safe_dump_all(definitions(), sort_keys=False, width=110, explicit_start=True)
    golden(ROOT / "docs" / "crds.yaml", text)


# --- the schema


def fields(kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Yield the path of every field of a type and below."""
    for one in msgspec.structs.fields(kind):
        place = f"{path}.{one.encode_name}".lstrip(".")
        yield place
        yield from _below(msgspec.inspect.type_info(one.type), place)


def _below(info: msgspec.inspect.Type, place: str) -> Iterator[str]:
    match info:
        case msgspec.inspect.StructType(cls=struct):
            yield from fields(struct, place)
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _below(one, place)
        case msgspec.inspect.VarTupleType(item_type=inner):
            yield from _below(inner, f"{place}[]")
        case msgspec.inspect.DictType(value_type=inner):
            yield from _below(inner, f"{place}{{}}")
        case _:
            return


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_model_is_in_the_schema(kind: type[Object]) -> None:
    wanted = {path for path in fields(kind, "") if not path.startswith("metadata.")}
    known = {path for path, _ in inside(root(kind)) if path and not path.endswith(("[]", "{}"))}
    assert wanted == known - {"apiVersion", "kind"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described_and_says_nothing_a_definition_may_not(kind: type[Object]) -> None:
    for path, one in inside(root(kind)):
        assert set(one) <= KNOWN, path
        if path != "metadata" and not path.endswith("{}"):
            assert one["description"].endswith("."), path


def test_a_field_without_words_is_no_schema() -> None:
    words = dict(WORDS[OtherSpec].fields)
    del words["memory"]
    with pytest.raises(KeyError, match="memory"):
        schema(OtherSpec, {OtherSpec: Words("Of some kind.", words)})


def test_a_type_that_no_schema_has_is_refused() -> None:
    class Odd(msgspec.Struct):
        number: float

    with pytest.raises(TypeError, match="no schema"):
        schema(Odd, {Odd: Words("Odd.", {"number": Field("A number.")})})


def test_whatever_is_required_is_written_whatever_it_holds() -> None:
    stamped = {(Condition, "last_transition_time")}  # set by whoever writes a condition
    for kind, words in WORDS.items():
        with_default = {one.name for one in msgspec.structs.fields(kind) if not one.required}
        for name, field in words.fields.items():
            if field.required and name in with_default and (kind, name) not in stamped and name != "resource":
                assert name in ALWAYS[kind], f"{kind.__name__}.{name}"


# --- CoHDI's wire: path, type, required there, and what its schema limits

COHDI_REQUEST = {
    "spec.resource.type": ("string", True, ["gpu", "cxlmemory"]),
    "spec.resource.model": ("string", True, ["NVIDIA-A100-PCIE-40GB"]),
    "spec.resource.size": ("integer", True, [0, 8]),
    "spec.resource.force_detach": ("boolean", False, [True, False]),
    "spec.resource.allocation_policy": ("string", False, ["samenode", "differentnode"]),
    "spec.resource.target_node": ("string", False, ["", "node-1"]),
    "spec.resource.other_spec.milli_cpu": ("integer", False, [0, 4000]),
    "spec.resource.other_spec.memory": ("integer", False, [0, 2**40]),
    "spec.resource.other_spec.ephemeral_storage": ("integer", False, [0]),
    "spec.resource.other_spec.allowed_pod_number": ("integer", False, [0, 110]),
    "status.state": ("string", True, ["", "NodeAllocating", "Running", "anything"]),
    "status.error": ("string", False, ["", "no" * 5000]),
    "status.resources{}.state": ("string", True, ["", "Online"]),
    "status.resources{}.device_id": ("string", False, ["GPU-1"]),
    "status.resources{}.cdi_device_id": ("string", False, ["r-1"]),
    "status.resources{}.node_name": ("string", False, ["", "node-1"]),
    "status.resources{}.error": ("string", False, [""]),
    # Go writes the zero value before there is a spec to copy.
    "status.scalarResource.type": ("string", False, ["", "gpu"]),
    "status.scalarResource.model": ("string", False, ["", "A100"]),
    "status.scalarResource.size": ("integer", False, [0]),
    "status.scalarResource.allocation_policy": ("string", False, ["", "samenode"]),
}
COHDI_RESOURCE = {
    "spec.type": ("string", True, ["gpu", "cxlmemory"]),
    "spec.model": ("string", True, ["", "A100"]),
    "spec.target_node": ("string", True, ["", "node-1"]),
    "spec.force_detach": ("boolean", False, [True]),
    "status.state": ("string", True, ["", "Attaching", "Online", "Detaching", "Deleting", "anything"]),
    "status.error": ("string", False, [""]),
    "status.device_id": ("string", False, ["", "GPU-1"]),
    "status.cdi_device_id": ("string", False, ["", "r-1"]),
}
COHDI = [
    pytest.param(kind, path, *rest, id=f"{kind.__name__}-{path}")
    for kind, table in ((ComposabilityRequest, COHDI_REQUEST), (ComposableResource, COHDI_RESOURCE))
    for path, rest in table.items()
]


@pytest.mark.parametrize(("kind", "path", "type_", "required", "values"), COHDI)
def test_all_that_cohdi_writes_is_accepted(
    kind: type[Object], path: str, type_: str, *, required: bool, values: list[object]
) -> None:
    one, (above, _, name) = at(kind, path), path.rpartition(".")
    assert one["type"] == type_
    assert (name in at(kind, above).get("required", ())) == required
    assert [fault for value in values for fault in faults(value, one)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.resource.type", ""),
        ("spec.resource.type", "GPU"),
        ("spec.resource.model", ""),
        ("spec.resource.size", -1),
        ("spec.resource.allocation_policy", "anynode"),
        ("spec.resource.other_spec.memory", -1),
        ("status.conditions[].status", "true"),
        ("status.conditions[].reason", ""),
        ("status.conditions[].reason", "two words"),
        ("status.conditions[].type", "a b"),
    ],
)
def test_what_nobody_can_mean_is_refused(path: str, value: object) -> None:
    assert list(faults(value, at(ComposabilityRequest, path)))


def test_policies_and_types_beyond_cohdis_are_accepted() -> None:
    for policy in AllocationPolicy:
        assert not list(faults(policy.value, at(ComposabilityRequest, "spec.resource.allocation_policy")))
    assert not list(faults("dpu", at(ComposabilityRequest, "spec.resource.type")))
    assert at(ComposabilityRequest, "spec.resource.allocation_policy")["default"] == "samenode"


# --- rules


def rules(kind: type[Object]) -> dict[str, list[str]]:
    found = {path: one.get("x-kubernetes-validations", []) for path, one in inside(root(kind))}
    return {path: [rule["rule"] for rule in some] for path, some in found.items() if some}


def test_node_type_and_model_of_a_resource_never_change_and_its_state_never_goes_back() -> None:
    found = rules(ComposableResource)
    assert list(found) == ["spec.type", "spec.model", "spec.target_node", "status.state"]
    for path in ("spec.type", "spec.model", "spec.target_node"):
        assert found[path] == ["self == oldSelf"]
        assert path.partition(".")[2] in at(ComposableResource, "spec")["required"]


@pytest.mark.parametrize("old", list(ResourceState))
@pytest.mark.parametrize("new", [*ResourceState, "anything"])
def test_the_rule_of_states_lets_through_exactly_what_does_not_go_back(old: ResourceState, new: str) -> None:
    (rule,) = rules(ComposableResource)["status.state"]
    python = rule.replace("||", "or").replace("&&", "and").replace("!(self in", "not (self in")
    order = [*ResourceState, "anything"]
    allowed = bool(eval(python, {"self": str(new), "oldSelf": str(old)}))  # noqa: S307 - our own words
    assert allowed == (order.index(new) >= order.index(old))


def test_only_the_wish_itself_is_judged_and_not_its_copy_in_the_status() -> None:
    assert list(rules(ComposabilityRequest)) == ["", "spec.resource"]


def test_a_name_is_judged_at_creation_alone() -> None:
    (rule,) = root(ComposabilityRequest)["x-kubernetes-validations"]
    assert rule["optionalOldSelf"] is True
    assert rule["rule"].startswith("oldSelf.hasValue() || ")


# --- what we write

WISH = ScalarResource(
    "gpu",
    ModelName("A100"),
    2,
    force_detach=True,
    allocation_policy=AllocationPolicy.ROUNDROBIN,
    target_node=NodeName("n1"),
    other_spec=OtherSpec(1, 2, 3, 4),
)
SEEN = Condition("Visible", "True", "Visible", "", Time("2026-01-01T00:00:00Z"), 3)
WRITTEN = [
    b.request({"a100-1": "c"}, name="one"),
    b.request({}, name="none"),
    ComposabilityRequest(
        spec=msgspec.structs.replace(ComposabilityRequest().spec, resource=WISH),
        status=ComposabilityRequestStatus(
            RequestState.UPDATING,
            "no",
            {"r": ChildStatus(), "s": ChildStatus("Online", "a", "b")},
            WISH,
            (SEEN,),
        ),
    ),
    b.resource("a100-1"),
    *(b.resource("a100-1", state=state, conditions=(SEEN,)) for state in ResourceState),
]


@pytest.mark.parametrize("written", WRITTEN, ids=lambda one: f"{type(one).__name__}-{one.metadata.name}")
def test_every_object_that_we_write_is_valid_and_kept_whole(written: Object) -> None:
    assert list(faults(encode(written), root(type(written)))) == []

"""The embedded cluster refuses of CoHDI's two kinds what their definitions have an API server refuse, in its words."""

import random
from collections.abc import Iterator

import msgspec
import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.cluster.validate import compositions
from jackfield.cluster.validate.checks import Change
from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, named

STATUS = Write(status=True)
LONG = "x" * 64
LONGER = "x" * 254
SPREAD = "allocation_policy differentnode spreads over nodes and cannot have a target_node"
POLICIES = (
    'spec.resource.allocation_policy: Unsupported value: "anywhere": '
    'supported values: "samenode", "differentnode", "roundrobin"'
)
UNCHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)
LABEL = "a request's name has at most 63 characters: it becomes a label of its resources"


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("compositions"))  # noqa: S311 - no cryptography


def request(name: str = "r", **wish: object) -> Raw:
    return {
        "metadata": {"name": name},
        "spec": {"resource": {"type": "gpu", "model": "A100", "size": 1, **wish}},
    }


def resource(name: str = "r", **spec: object) -> Raw:
    return {
        "metadata": {"name": name},
        "spec": {"type": "gpu", "model": "A100", "target_node": "n1", **spec},
    }


def refusals(error: ApiError) -> list[str]:
    return [str(one) for one in error.causes]


NEW: dict[str, tuple[type[Object], Raw, list[str]]] = {
    "a name that does as a label": (ComposabilityRequest, request("x" * 63), []),
    "a name that does not": (ComposabilityRequest, request(LONG), [f"<nil>: Invalid value: {LABEL}"]),
    "a resource's name may be longer": (ComposableResource, resource("x" * 253), []),
    "differentnode": (ComposabilityRequest, request(allocation_policy="differentnode"), []),
    "differentnode, and no node": (
        ComposabilityRequest,
        request(allocation_policy="differentnode", target_node=""),
        [],
    ),
    "differentnode on a node": (
        ComposabilityRequest,
        request(allocation_policy="differentnode", target_node="n1"),
        [f"spec.resource: Invalid value: {SPREAD}"],
    ),
    "samenode on a node": (
        ComposabilityRequest,
        request(allocation_policy="samenode", target_node="n1"),
        [],
    ),
    "roundrobin on a node": (
        ComposabilityRequest,
        request(allocation_policy="roundrobin", target_node="n1"),
        [],
    ),
    "a request of a long type": (
        ComposabilityRequest,
        request(type=LONG),
        ["spec.resource.type: Too long: may not be more than 63 bytes", UNCHECKED],
    ),
    "a request of a long model": (
        ComposabilityRequest,
        request(model=LONGER),
        ["spec.resource.model: Too long: may not be more than 253 bytes", UNCHECKED],
    ),
    "a request for a long node": (
        ComposabilityRequest,
        request(target_node=LONGER),
        ["spec.resource.target_node: Too long: may not be more than 253 bytes", UNCHECKED],
    ),
    "a resource of long words": (
        ComposableResource,
        resource(type=LONG, model=LONGER, target_node=LONGER),
        [
            "spec.type: Too long: may not be more than 63 bytes",
            "spec.model: Too long: may not be more than 253 bytes",
            "spec.target_node: Too long: may not be more than 253 bytes",
            UNCHECKED,
        ],
    ),
    "a resource of an odd type": (
        ComposableResource,
        resource(type="GPU"),
        ["spec.type: Invalid value: \"GPU\": spec.type in body should match '^[a-z][a-z0-9]*$'"],
    ),
    "a resource of a number": (
        ComposableResource,
        resource(type=1),
        [
            'spec.type: Invalid value: "integer": spec.type in body must be of type string: "integer"',
            UNCHECKED,
        ],
    ),
    "a resource of nothing": (
        ComposableResource,
        {"metadata": {"name": "r"}},
        ["spec: Required value", UNCHECKED],
    ),
    "a resource of a list": (
        ComposableResource,
        {"metadata": {"name": "r"}, "spec": []},
        ['spec: Invalid value: "array": spec in body must be of type object: "array"', UNCHECKED],
    ),
    "an unknown policy": (
        ComposabilityRequest,
        request(allocation_policy="anywhere"),
        [POLICIES, UNCHECKED],
    ),
    "a wish for less than nothing, against a rule": (
        ComposabilityRequest,
        request(size=-1, allocation_policy="differentnode", target_node="n1"),
        [
            "spec.resource.size: Invalid value: -1: spec.resource.size in body should be greater than or equal to 0",
            f"spec.resource: Invalid value: {SPREAD}",
        ],
    ),
}


@pytest.mark.parametrize(("kind", "raw", "said"), NEW.values(), ids=NEW)
def test_what_is_new_is_taken_or_refused_with_reasons(kind: type[Object], raw: Raw, said: list[str]) -> None:
    if not said:
        assert new_store().create(kind, raw).version == 1
        return
    with pytest.raises(ApiError) as caught:
        new_store().create(kind, raw)
    assert refusals(caught.value) == said


CHANGED: dict[str, tuple[type[Object], Raw, list[str]]] = {
    "another type": (
        ComposableResource,
        {"type": "dpu"},
        [
            'spec.type: Invalid value: "dpu": the type of a resource never changes: delete it and create another'
        ],
    ),
    "another model": (
        ComposableResource,
        {"model": "H100"},
        [
            'spec.model: Invalid value: "H100": the model of a resource never changes: delete it and create another'
        ],
    ),
    "another node": (
        ComposableResource,
        {"target_node": "n2"},
        [
            'spec.target_node: Invalid value: "n2": the node of a resource never changes: delete it and create another'
        ],
    ),
    "by force": (ComposableResource, {"force_detach": True}, []),
    "a request changes its mind": (
        ComposabilityRequest,
        {"resource": {"type": "dpu", "model": "H100", "target_node": "n2", "size": 7}},
        [],
    ),
    "a request comes to differ": (
        ComposabilityRequest,
        {"resource": {"allocation_policy": "differentnode", "target_node": "n2"}},
        [f"spec.resource: Invalid value: {SPREAD}"],
    ),
}


@pytest.mark.parametrize(("kind", "spec", "said"), CHANGED.values(), ids=CHANGED)
def test_what_was_ordered_never_changes(kind: type[Object], spec: Raw, said: list[str]) -> None:
    store = new_store()
    store.create(kind, request() if kind is ComposabilityRequest else resource())
    if not said:
        assert store.patch(kind, named("r"), {"spec": spec}).version == 2
        return
    with pytest.raises(ApiError) as caught:
        store.patch(kind, named("r"), {"spec": spec})
    assert refusals(caught.value) == said


BACK = "a resource never goes back to an earlier state"
PAIRS = [(before, after) for before in ResourceState for after in ResourceState]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_resource_never_goes_back(before: ResourceState, after: ResourceState) -> None:
    store = new_store()
    store.create(ComposableResource, resource())
    store.patch(ComposableResource, named("r"), {"status": {"state": before.value}}, STATUS)
    states = list(ResourceState)
    body = {"status": {"state": after.value, "error": "x"}}
    if states.index(after) >= states.index(before):
        store.patch(ComposableResource, named("r"), body, STATUS)
        return
    with pytest.raises(ApiError) as caught:
        store.patch(ComposableResource, named("r"), body, STATUS)
    assert refusals(caught.value) == [f'status.state: Invalid value: "{after.value}": {BACK}']


def test_a_request_that_exists_goes_on_under_its_long_name() -> None:
    """It was made under another definition, and must not get stuck."""
    old, new = (msgspec.convert(request(LONG, size=size), ComposabilityRequest) for size in (1, 2))
    change = Change(old, new, request(LONG, size=2), None, wants=True, status=False)
    assert list(compositions.request(change)) == []
    assert [one.field for one in compositions.request(msgspec.structs.replace(change, old=None))] == ["<nil>"]


def test_a_request_may_go_back() -> None:
    store = new_store()
    store.create(ComposabilityRequest, request())
    for state in ("Running", "Updating"):
        store.patch(ComposabilityRequest, named("r"), {"status": {"state": state}}, STATUS)


# --- the same rules


def rules(value: RawValue) -> Iterator[str]:
    """Yield the words of every rule in a schema."""
    match value:
        case dict():
            yield from (str(one["message"]) for one in value.get("x-kubernetes-validations", []))
            for part in value.values():
                yield from rules(part)
        case list():
            for part in value:
                yield from rules(part)
        case _:
            return


def test_every_rule_of_the_definitions_is_one_of_these() -> None:
    tables = [said for table in (NEW, CHANGED) for _, _, said in table.values()]
    tested = [*(one for said in tables for one in said), BACK]
    messages = sorted({*rules(list(definitions()))})
    assert len(messages) == 6
    assert [one for one in messages if not any(said.endswith(one) for said in tested)] == []

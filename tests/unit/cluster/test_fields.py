"""Fields as managedFields count them: what is said, what differs, and what is owned as one, by Kubernetes' schemas."""

import pytest

from jackfield.cluster import schema
from jackfield.cluster.ownership import fields, merging
from jackfield.cluster.ownership.fields import Path, Shape
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.pod import Pod

POD = Shape(schema.of(kinds.of(Pod)))
READ = Shape(schema.of(kinds.of(Pod)), hides=True)
CLAIM = Shape(schema.of(kinds.of(ResourceClaim)))
CUSTOM = Shape(schema.of(kinds.of(ComposableResource)))
READY = 'k:{"type":"Ready"}'


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"spec": {"hostname": "a"}}, {"spec": {"hostname": "a"}}, [], []),
        (
            {"spec": {"hostname": "a"}},
            {"spec": {"hostname": "b", "subdomain": "c"}},
            [("f:spec", "f:hostname"), ("f:spec", "f:subdomain")],
            [],
        ),
        (
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {}},
            [],
            [
                ("f:metadata", "f:labels"),
                ("f:metadata", "f:labels", "f:a"),
                ("f:metadata", "f:labels", "f:b"),
            ],
        ),
        (
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": []}},
            [("f:spec", "f:tolerations")],
            [],
        ),
        ({"spec": {}}, {"spec": {"securityContext": {}}}, [("f:spec", "f:securityContext")], []),
        ({}, {"metadata": {"finalizers": []}}, [("f:metadata",), ("f:metadata", "f:finalizers")], []),
        ({"spec": {"containers": None}}, {"spec": {"containers": []}}, [("f:spec", "f:containers")], []),
        (
            {"spec": {"containers": None}},
            {"spec": {"containers": [{"name": "a"}]}},
            [
                ("f:spec", "f:containers", 'k:{"name":"a"}'),
                ("f:spec", "f:containers", 'k:{"name":"a"}', "f:name"),
            ],
            [],
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": None}},
            [],
            [("f:metadata", "f:labels", "f:a")],
        ),
        (
            {"status": {"conditions": []}},
            {"status": {"conditions": [{"type": "Ready"}]}},
            [("f:status", "f:conditions", READY), ("f:status", "f:conditions", READY, "f:type")],
            [],
        ),
        (
            {"metadata": {"finalizers": ["x", "y"]}},
            {"metadata": {"finalizers": ["y", "z"]}},
            [("f:metadata", "f:finalizers", 'v:"z"')],
            [("f:metadata", "f:finalizers", 'v:"x"')],
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            [("f:status", "f:conditions", READY, "f:status")],
            [],
        ),
        (
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"a": "2"}}},
            [("f:spec", "f:nodeSelector")],
            [],
        ),
    ],
)
def test_a_difference_names_the_fields_that_differ(
    old: Raw, new: Raw, changed: list[Path], removed: list[Path]
) -> None:
    found = fields.compared(old, new, POD)
    assert sorted(found.changed) == changed
    assert sorted(found.removed) == removed


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"a": 1}, {"a": {"b": 1}}, [("f:x", "f:a"), ("f:x", "f:a", "f:b")], []),
        ({"a": {"b": 1}}, {"a": [1]}, [("f:x", "f:a")], [("f:x", "f:a", "f:b")]),
        ({"a": [1]}, {"a": "x"}, [("f:x", "f:a")], []),
    ],
)
def test_what_becomes_something_else_is_changed(
    old: Raw, new: Raw, changed: list[Path], removed: list[Path]
) -> None:
    found = fields.compared({"x": old}, {"x": new}, fields.ANYTHING)
    assert (sorted(found.changed), sorted(found.removed)) == (changed, removed)


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({}, {"labels": {}, "finalizers": []}, [], []),
        (
            {"labels": {"a": "1"}},
            {"labels": {}},
            [],
            [("f:metadata", "f:labels"), ("f:metadata", "f:labels", "f:a")],
        ),
    ],
)
def test_for_gos_own_types_what_is_empty_is_absent(
    old: Raw, new: Raw, changed: list[Path], removed: list[Path]
) -> None:
    found = fields.compared({"metadata": old}, {"metadata": new}, READ)
    assert (sorted(found.changed), sorted(found.removed)) == (changed, removed)


@pytest.mark.parametrize(
    ("shape", "raw", "said"),
    [
        (POD, {"metadata": {"labels": {}, "finalizers": []}}, [("f:metadata", "f:labels")]),
        (
            POD,
            {"spec": {"hostname": None, "containers": None}},
            [("f:spec", "f:containers"), ("f:spec", "f:hostname")],
        ),
        (POD, {"spec": {"nodeSelector": {"a": "1"}}}, [("f:spec", "f:nodeSelector")]),
        (
            CLAIM,
            {"status": {"devices": [{"driver": "d", "pool": "p", "device": "x", "shareID": "s"}]}},
            [
                ("f:status", "f:devices", 'k:{"device":"x","driver":"d","pool":"p","shareID":"s"}', *rest)
                for rest in ((), ("f:device",), ("f:driver",), ("f:pool",), ("f:shareID",))
            ],
        ),
        (CUSTOM, {"spec": {"model": "A"}, "status": {}}, [("f:spec", "f:model"), ("f:status",)]),
    ],
)
def test_who_says_something_owns_its_leaves_and_items(shape: Shape, raw: Raw, said: list[Path]) -> None:
    assert sorted(fields.paths_of(raw, shape)) == sorted(said)


def test_a_key_that_is_no_scalar_is_a_key_all_the_same() -> None:
    items = [{"name": {"a": 1}}, {"name": True}, {"name": 1}, {"other": 1}]
    found = fields.paths_of({"spec": {"containers": items}}, POD)
    elements = {path[2] for path in found if len(path) == 3}
    assert elements == {'k:{"name":{"a":1}}', 'k:{"name":true}', 'k:{"name":1}', 'k:{"name":""}'}


def test_a_list_with_items_of_all_kinds_is_owned_as_one() -> None:
    assert fields.paths_of({"spec": {"containers": [{"name": "a"}, 3]}}, POD) == {("f:spec", "f:containers")}


@pytest.mark.parametrize(
    ("before", "held", "left"),
    [
        ([], [], {"labels": {"a": "1", "b": "2"}, "finalizers": ["x"]}),
        ([("f:labels", "f:a")], [("f:labels", "f:b")], {"labels": {"b": "2"}, "finalizers": ["x"]}),
        ([("f:labels", "f:a")], [], {"finalizers": ["x"]}),
        (
            [("f:labels", "f:a"), ("f:labels", "f:b")],
            [("f:labels",)],
            {"labels": None, "finalizers": ["x"]},
        ),
        (
            [("f:finalizers", 'v:"x"')],
            [("f:finalizers", 'v:"y"')],
            {"labels": {"a": "1", "b": "2"}, "finalizers": None},
        ),
    ],
)
def test_what_nobody_holds_any_more_is_taken_out(before: list[Path], held: list[Path], left: Raw) -> None:
    raw: Raw = {"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x"]}}
    name: Path = ("f:metadata", "f:name")
    pruned = merging.pruned(
        raw,
        POD,
        [("f:metadata", *one) for one in before],
        [name, *(("f:metadata", *one) for one in held)],
    )
    assert pruned == {"metadata": left}


def test_within_an_item_that_others_hold_only_what_was_let_go_is_taken_out() -> None:
    ready: Raw = {"type": "Ready", "status": "True", "reason": "R"}
    raw: Raw = {"status": {"conditions": [ready, {"type": "Other", "status": "True"}]}}
    item: Path = ("f:status", "f:conditions", READY)
    before: list[Path] = [item, (*item, "f:type"), (*item, "f:reason"), (*item, "f:missing")]
    held: list[Path] = [item, (*item, "f:type")]
    assert merging.pruned(raw, POD, before, held)["status"]["conditions"] == [
        {"type": "Ready", "status": "True"},
        {"type": "Other", "status": "True"},
    ]


@pytest.mark.parametrize(
    ("value", "live", "solid"),
    [
        ({"a": None, "b": 1}, {}, {"b": 1}),
        ({"a": None}, {"a": None}, {"a": None}),
        ({"a": [{"b": None}]}, {"a": [{"c": 1}]}, {"a": [{}]}),
        ({"parameters": {"a": None}}, {}, {"parameters": {"a": None}}),
    ],
)
def test_what_has_become_null_is_absent(value: RawValue, live: RawValue, solid: RawValue) -> None:
    assert merging.solid(value, live) == solid

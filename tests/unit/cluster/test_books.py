"""Who owns which field after a plain write, and what a writer may say of that himself."""

import pytest

from jackfield import codec
from jackfield.cluster.ownership import managers
from jackfield.codec import Raw, RawValue
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import Time
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from unit.cluster.book_desk import Desk, names, pod, resource, shown, who

# --- plain writes


def test_whoever_creates_an_object_owns_what_he_said_and_the_server_owns_its_part() -> None:
    new = pod(labels={"a": "1"}, generateName="p-", finalizers=["f/a"], annotations={}, managedFields=None)
    assert shown(Desk(Pod, new).managers) == [
        (
            "creator",
            "Update",
            "",
            {
                "f:metadata": {
                    "f:finalizers": {".": {}, 'v:"f/a"': {}},
                    "f:generateName": {},
                    "f:labels": {".": {}, "f:a": {}},
                },
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
                    },
                    "f:nodeSelector": {},
                    "f:restartPolicy": {},
                    "f:tolerations": {},
                },
            },
        )
    ]


def test_of_our_own_kinds_even_the_outline_is_owned() -> None:
    found = Desk(ComposableResource, resource()).managers
    assert managers.fields_v1(found[0].fields) == {
        "f:spec": {".": {}, "f:model": {}, "f:target_node": {}, "f:type": {}}
    }


def test_a_write_takes_what_it_changes_and_nothing_else() -> None:
    desk = Desk(Pod, pod(labels={"a": "1", "b": "1"}))
    desk.update("editor", pod(labels={"a": "2", "b": "1", "c": "1"}))
    assert [(name, one["f:metadata"]["f:labels"]) for name, _, _, one in shown(desk.managers)] == [
        ("creator", {".": {}, "f:b": {}}),
        ("editor", {"f:a": {}, "f:c": {}}),
    ]


def test_what_is_removed_is_nobodys_and_a_manager_without_fields_is_none() -> None:
    desk = Desk(Pod, pod())
    desk.update("editor", pod(labels={"a": "1"}))
    assert names(desk.managers) == ["creator", "editor"]
    desk.update("cleaner", pod())
    assert names(desk.managers) == ["creator"]


def test_a_write_that_changes_nothing_leaves_the_books_alone() -> None:
    desk = Desk(Pod, pod(labels={"a": "1"}))
    before = desk.managers
    desk.update("editor", pod(labels={"a": "1"}, annotations={}, finalizers=[]))
    assert desk.managers is before


def test_the_same_name_by_another_way_is_another_manager() -> None:
    desk = Desk(Node, {"metadata": {"name": "n", "labels": {"a": "1"}}, "spec": {}, "status": {}})
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    desk.update("creator", {**desk.raw, "status": ready}, status=True)
    desk.update("creator", {**desk.raw, "metadata": {"name": "n", "annotations": {"b": "1"}}}, status=True)
    condition: Raw = {".": {}, "f:status": {}, "f:type": {}}
    assert shown(desk.managers) == [
        (
            "creator",
            "Update",
            "status",
            {
                "f:metadata": {"f:annotations": {".": {}, "f:b": {}}},
                "f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': condition}},
            },
        )
    ]


@pytest.mark.parametrize(("status", "owned"), [(False, ["f:metadata"]), (True, ["f:status"])])
def test_what_a_way_of_writing_does_not_change_is_not_owned_by_it(*, status: bool, owned: list[str]) -> None:
    claim: Raw = {"metadata": {"name": "c", "annotations": {"x": "1"}}, "spec": {}, "status": {}}
    desk = Desk(ResourceClaim, claim)
    new = {
        **claim,
        "metadata": {**claim["metadata"], "labels": {"a": "1"}},
        "status": {"reservedFor": [{"uid": "u"}]},
    }
    desk.update("editor", new, status=status)
    assert [sorted(one) for name, _, _, one in shown(desk.managers) if name == "editor"] == [owned]


def test_items_that_cannot_be_told_apart_are_owned_together() -> None:
    twice = pod()
    twice["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": "1"},
        {"name": "A", "value": "2"},
        {"name": "B"},
    ]
    desk = Desk(Pod, twice)
    env = codec.dig(shown(desk.managers)[0][3], "f:spec", "f:containers", 'k:{"name":"a"}', "f:env")
    assert env == {".": {}, 'k:{"name":"A"}': {}, 'k:{"name":"B"}': {".": {}, "f:name": {}}}
    once = codec.copied(twice)
    del once["spec"]["containers"][0]["env"][1]
    desk.update("editor", once)
    found = codec.dig(shown(desk.managers)[1][3], "f:spec", "f:containers", 'k:{"name":"a"}', "f:env")
    assert found == {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}}


def test_a_port_is_told_apart_by_its_protocol_also_where_it_says_none() -> None:
    new = pod()
    new["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    found = shown(Desk(Pod, new).managers)[0][3]
    ports = codec.dig(found, "f:spec", "f:containers", 'k:{"name":"a"}', "f:ports")
    assert sorted(ports) == [".", 'k:{"containerPort":80,"protocol":"TCP"}']


def test_nobody_who_gives_no_name_is_unknown() -> None:
    desk = Desk(Pod, pod())
    desk.update("", pod(labels={"a": "1"}))
    desk.apply("", {"metadata": {"name": "p", "labels": {"b": "1"}}})
    assert [(one.name, one.operation) for one in desk.managers] == [
        ("unknown", "Apply"),
        ("creator", "Update"),
        ("unknown", "Update"),
    ]


def test_the_oldest_of_too_many_writers_are_taken_together() -> None:
    desk = Desk(Pod, pod())
    for number in range(12):
        labels = {f"l{one}": "1" for one in range(number + 1)}
        me = who(f"w{number:02}", Pod, time=Time(f"2026-01-01T13:00:{number:02}Z"))
        new = pod(labels=labels)
        desk.managers = desk.books.updated(desk.raw, new, me, desk.managers)
        desk.raw = new
    assert names(desk.managers) == ["ancient-changes", *(f"w{number:02}" for number in range(3, 12))]
    ancient = desk.managers[0]
    assert ancient.time == "2026-01-01T13:00:02Z"
    assert sorted(managers.fields_v1(ancient.fields)["f:metadata"]["f:labels"]) == [
        ".",
        "f:l0",
        "f:l1",
        "f:l2",
    ]
    assert "f:spec" in managers.fields_v1(ancient.fields)


# --- what a writer says of managers itself


ENTRY: Raw = {
    "manager": "me",
    "operation": "Update",
    "apiVersion": "v1",
    "time": "2026-01-01T12:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:restartPolicy": {}}},
}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([], []),
        ([{}], []),
        ([ENTRY], ["me"]),
        (None, ["creator"]),
        ([{}, {}], ["creator"]),
        ([{**ENTRY, "operation": "Delete"}], ["creator"]),
        ([{**ENTRY, "fieldsType": "FieldsV2"}], ["creator"]),
        ([{**ENTRY, "apiVersion": ""}], ["creator"]),
        ("nonsense", ["creator"]),
    ],
)
def test_a_writer_may_name_the_managers_or_forget_them(said: RawValue, left: list[str]) -> None:
    desk = Desk(Pod, pod())
    desk.update("editor", pod(managedFields=said))
    assert names(desk.managers) == left


def test_by_a_subresource_nobody_names_managers() -> None:
    desk = Desk(Pod, pod())
    desk.update("editor", pod(managedFields=[]), status=True)
    assert names(desk.managers) == ["creator"]


def test_managers_of_a_version_that_is_not_served_are_forgotten() -> None:
    desk = Desk(Pod, pod())
    desk.update("editor", pod(labels={"a": "1"}, managedFields=[{**ENTRY, "apiVersion": "v0"}, ENTRY]))
    assert names(desk.managers) == ["editor", "me"]


def test_who_creates_an_object_and_says_nothing_of_it_begins_no_books() -> None:
    desk = Desk(Node, {"metadata": {"name": "n"}, "spec": {}, "status": {}})
    desk.update("editor", {**desk.raw, "spec": {"unschedulable": True}})
    assert names(desk.managers) == []


def test_of_an_object_without_books_nobody_keeps_any_until_it_is_applied() -> None:
    desk = Desk(Pod, pod(labels={"a": "1"}), kept=False)
    desk.update("editor", pod(labels={"a": "2"}))
    assert names(desk.managers) == []
    assert desk.labels("me", b="1") == {"a": "2", "b": "1"}
    assert [(one.name, one.operation) for one in desk.managers] == [
        ("me", "Apply"),
        ("before-first-apply", "Update"),
    ]
    assert desk.labels("me") == {"a": "2"}


def test_before_the_first_apply_of_a_status_only_the_status_was_somebodys() -> None:
    claim = {
        "metadata": {"name": "c", "labels": {"a": "1"}},
        "spec": {},
        "status": {"reservedFor": [{"uid": "u"}]},
    }
    desk = Desk(ResourceClaim, claim, kept=False)
    desk.apply("me", {"status": {"reservedFor": [{"uid": "v"}]}}, status=True)
    before = desk.managers[-1]
    assert before.name == "before-first-apply"
    assert before.subresource == "status"
    assert sorted(managers.fields_v1(before.fields)) == ["f:status"]

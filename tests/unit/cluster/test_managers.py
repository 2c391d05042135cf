"""Managers on the wire: how `metadata.managedFields` is written, read, ordered and refused."""

import pytest

from jackfield.cluster.ownership import managers
from jackfield.cluster.ownership.fields import Path, spelt
from jackfield.cluster.ownership.managers import BadManagedFieldsError, Manager
from jackfield.codec import Raw, RawValue
from jackfield.model.names import NO_TIME, Time

TREE: Raw = {
    "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {'v:"x/y"': {}}},
    "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}}},
}
PATHS: frozenset[Path] = frozenset(
    {
        ("f:metadata", "f:labels"),
        ("f:metadata", "f:labels", "f:a"),
        ("f:metadata", "f:finalizers", 'v:"x/y"'),
        ("f:spec", "f:containers", 'k:{"name":"a"}'),
        ("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"),
    }
)
ENTRY: Raw = {
    "manager": "me",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2026-01-01T12:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": TREE,
    "subresource": "status",
}
ME = Manager(
    "me", applies=True, version="v1", subresource="status", time=Time("2026-01-01T12:00:00Z"), fields=PATHS
)


def test_what_is_written_is_read_again() -> None:
    assert managers.managed_fields((ME,)) == [ENTRY]
    assert managers.managers_of([ENTRY]) == (ME,)


def test_no_time_and_no_subresource_are_not_written() -> None:
    plain = Manager("me", applies=False, version="v1", fields=PATHS)
    assert managers.managed_fields((plain,)) == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": TREE,
        }
    ]


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        ({}, []),
        ({"f:a": {}}, [("f:a",)]),
        ({"f:a": {".": {}}}, [("f:a",)]),
        ({"f:a": {"f:b": {}}}, [("f:a", "f:b")]),
        ({"f:a": {"x:b": {}}}, [("f:a",)]),
        ({'k:{"b":1,  "a":"x"}': {}}, [('k:{"a":"x","b":1}',)]),
        ({"v: 1": {}, "v:true": {}}, [("v:1",), ("v:true",)]),
        ({"f:a.b/c": {}, "f:": {}}, [("f:",), ("f:a.b/c",)]),
    ],
)
def test_a_tree_is_read_into_paths(tree: Raw, paths: list[Path]) -> None:
    (found,) = managers.managers_of([{**ENTRY, "fieldsV1": tree}])
    assert sorted(found.fields) == paths


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"operation": "Delete"}, "operation must be `Apply` or `Update`"),
        ({"operation": None}, "operation must be `Apply` or `Update`"),
        ({"apiVersion": ""}, "apiVersion must not be empty"),
        ({"fieldsType": ""}, "missing fieldsType in managed fields entry 0"),
        ({"fieldsType": "FieldsV2"}, 'invalid fieldsType "FieldsV2" in managed fields entry 0'),
        ({"manager": 3}, "an entry is made of words"),
        ({"time": "noon"}, "a time is spelt as RFC 3339 says"),
        ({"fieldsV1": []}, None),
        ({"fieldsV1": {"f:a": 1}}, "fieldsV1 is made of objects"),
        ({"fieldsV1": {"nonsense": {}}}, "missing colon: nonsense"),
        ({"fieldsV1": {"k:[]": {}}}, "parsing key as path element: k:[]"),
        ({"fieldsV1": {"v:{": {}}}, "parsing key as path element: v:{"),
    ],
)
def test_entries_that_no_server_writes_are_bad(change: Raw, words: str | None) -> None:
    entries = [{**ENTRY, **change}]
    if words is None:
        assert managers.managers_of(entries)[0].fields == frozenset()
        return
    with pytest.raises(BadManagedFieldsError) as caught:
        managers.managers_of(entries)
    assert str(caught.value) == words


@pytest.mark.parametrize("entries", ["x", {}, 3, [3], [None]])
def test_what_is_no_list_of_entries_is_bad(entries: RawValue) -> None:
    with pytest.raises(BadManagedFieldsError):
        managers.managers_of(entries)


def test_times_are_written_in_utc_and_to_the_second() -> None:
    (found,) = managers.managers_of([{**ENTRY, "time": "2026-01-01T13:00:00.5+01:00"}])
    assert found.time == "2026-01-01T12:00:00Z"


def test_who_applies_comes_first_and_the_oldest_before_the_rest() -> None:
    def one(name: str, time: str, *, applies: bool = False, where: str = "") -> Manager:
        return Manager(name, applies=applies, version="v1", subresource=where, time=Time(time), fields=PATHS)

    found = [
        one("b", "2026-01-01T12:00:01Z"),
        one("z", "2026-01-01T12:00:00Z"),
        one("a", "2026-01-01T12:00:01Z", where="status"),
        one("a", "2026-01-01T12:00:01Z"),
        one("c", "2026-01-01T12:00:09Z", applies=True),
        one("d", "", applies=True),
    ]
    ordered = managers.ordered(found)
    assert [(one.name, one.subresource) for one in ordered] == [
        ("d", ""),
        ("c", ""),
        ("z", ""),
        ("a", ""),
        ("a", "status"),
        ("b", ""),
    ]


def test_the_same_manager_twice_is_one() -> None:
    again = {**ENTRY, "apiVersion": "v2", "fieldsV1": {"f:a": {}}}
    assert [one.version for one in managers.managers_of([ENTRY, again])] == ["v2"]
    updates = [{**one, "operation": "Update"} for one in (ENTRY, again)]
    assert [one.version for one in managers.managers_of(updates)] == ["v1", "v2"]


def test_managers_that_differ_in_times_only_are_the_old_ones() -> None:
    later = Manager("me", applies=True, version="v1", subresource="status", time=Time("2027"), fields=PATHS)
    other = Manager("me", applies=True, version="v2", subresource="status", time=NO_TIME, fields=PATHS)
    fewer = later.without(frozenset({("f:metadata", "f:labels")}))
    old = (ME,)
    assert managers.settled(old, (later,)) is old
    for new in ((other,), (fewer,), (), (ME, later)):
        assert managers.settled(old, new) is new


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "name"),
    [
        ("me", "kubectl/v1", "me"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "curl", "curl"),
        ("", "", ""),
        ("", "/x", ""),
        ("", "a\x00b\n/1", "ab"),
        ("", "x" * 200, "x" * 128),
        ("", "é" * 100, "é" * 64),
    ],
)
def test_who_does_not_say_who_he_is_is_called_after_his_program(
    field_manager: str, user_agent: str, name: str
) -> None:
    assert managers.manager_name(field_manager, user_agent) == name


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:a.b"), ".spec.a.b"),
        (("f:c", 'k:{"name":"a","port":80}', "f:x"), '.c[name="a",port=80].x'),
        (("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]'),
        ((), "."),
    ],
)
def test_paths_are_spelt_as_messages_spell_them(path: Path, text: str) -> None:
    assert spelt(path) == text

"""JSON patch: what the operations do, in the server's own dialect, and how it refuses those that do not apply."""

import pytest

from jackfield import codec
from jackfield.cluster.errors import ApiError
from jackfield.cluster.patches import json_patch
from jackfield.codec import Raw, RawValue

NODE: Raw = {
    "metadata": {"name": "n", "labels": {"a": "1", "x/y": "2", "m~n": "3"}},
    "spec": {"taints": [{"key": "t"}, {"key": "u"}], "nothing": None},
}


def op(name: str, path: str, **rest: RawValue) -> Raw:
    return {"op": name, "path": path, **rest}


def after(*operations: Raw) -> RawValue:
    before = codec.copied(NODE)
    result = json_patch.patched(NODE, json_patch.operations(list(operations)))
    assert before == NODE, "the original is left alone"
    return result


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("/metadata/labels/b", "2", ("metadata", "labels", "b")),
        ("/metadata/labels/a", "2", ("metadata", "labels", "a")),
        ("/metadata/labels/p~1q", "2", ("metadata", "labels", "p/q")),
        ("/metadata/labels/p~0q", "2", ("metadata", "labels", "p~q")),
        ("/metadata/labels/~01", "2", ("metadata", "labels", "~1")),
        ("/metadata/labels/", "2", ("metadata", "labels", "")),
        ("/status", {"a": {"b": 1}}, ("status",)),
        ("anything/status", 1, ("status",)),
    ],
)
def test_add_puts_a_member_where_the_pointer_says(path: str, value: RawValue, where: tuple[str, ...]) -> None:
    assert codec.dig(after(op("add", path, value=value)), *where) == value


@pytest.mark.parametrize(
    ("operation", "keys"),
    [
        (op("add", "/spec/taints/-", value={"key": "v"}), ["t", "u", "v"]),
        (op("add", "/spec/taints/2", value={"key": "v"}), ["t", "u", "v"]),
        (op("add", "/spec/taints/0", value={"key": "v"}), ["v", "t", "u"]),
        (op("add", "/spec/taints/-1", value={"key": "v"}), ["t", "u", "v"]),
        (op("add", "/spec/taints/-3", value={"key": "v"}), ["v", "t", "u"]),
        (op("remove", "/spec/taints/0"), ["u"]),
        (op("remove", "/spec/taints/-1"), ["t"]),
        (op("replace", "/spec/taints/1", value={"key": "v"}), ["t", "v"]),
        (op("replace", "/spec/taints/+1/key", value="v"), ["t", "v"]),
        (op("move", "/spec/taints/0", **{"from": "/spec/taints/1"}), ["u", "t"]),
        (op("copy", "/spec/taints/-", **{"from": "/spec/taints/0"}), ["t", "u", "t"]),
        (op("test", "/spec/taints/1", value={"key": "u"}), ["t", "u"]),
    ],
)
def test_lists_are_counted_from_either_end(operation: Raw, keys: list[str]) -> None:
    assert [one["key"] for one in after(operation)["spec"]["taints"]] == keys


def test_operations_see_what_those_before_them_did() -> None:
    result = after(
        op("add", "/a", value={"b": []}),
        op("add", "/a/b/-", value=1),
        op("copy", "/c", **{"from": "/a"}),
        op("add", "/a/b/-", value=2),
        op("test", "/c/b", value=[1]),
        op("move", "/d", **{"from": "/a/b"}),
        op("test", "/a", value={}),
    )
    assert (result["a"], result["c"], result["d"]) == ({}, {"b": [1]}, [1, 2])


def test_values_of_the_patch_are_left_alone_too() -> None:
    value: Raw = {"b": {"c": 1}}
    operations = [op("add", "/a", value=value), op("add", "/a/b/d", value=2)]
    assert json_patch.patched(NODE, operations)["a"] == {"b": {"c": 1, "d": 2}}
    assert value == {"b": {"c": 1}}


def test_what_a_patch_does_not_touch_is_shared() -> None:
    result = after(op("add", "/metadata/labels/b", value="2"))
    assert result["spec"] is NODE["spec"]
    assert result["metadata"] is not NODE["metadata"]


@pytest.mark.parametrize(
    ("operation", "where", "value"),
    [
        (op("replace", "/metadata/labels/new", value="1"), ("metadata", "labels", "new"), "1"),
        (op("copy", "/metadata/none", **{"from": "/metadata/missing"}), ("metadata", "none"), None),
        (op("test", "/metadata/missing", value=None), ("metadata", "name"), "n"),
        (op("test", "/metadata/missing"), ("metadata", "name"), "n"),
        (op("replace", "", value={"other": 1}), ("other",), 1),
    ],
)
def test_the_server_is_laxer_than_the_rfc(operation: Raw, where: tuple[str, ...], value: RawValue) -> None:
    assert codec.dig(after(operation), *where) == value


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "", value={}),
        op("add", "status", value=1),
        op("add", "/nothing/here", value=1),
        op("add", "/metadata/name/x", value=1),
        op("add", "/spec/nothing/x", value=1),
        op("add", "/spec/taints/3", value=1),
        op("add", "/spec/taints/-4", value=1),
        op("add", "/spec/taints/x", value=1),
        op("add", "/spec/taints/1_0", value=1),
        op("add", f"/spec/taints/{'9' * 30}", value=1),
        op("remove", "/metadata/labels/missing"),
        op("remove", "/spec/taints/-"),
        op("remove", "/spec/taints/2"),
        op("replace", "/spec/taints/2", value=1),
        op("replace", "/spec/taints/-", value=1),
        op("replace", "/missing/x", value=1),
        op("replace", "", value=3),
        op("replace", ""),
        op("move", "/a", **{"from": "/b"}),
        op("move", "/a"),
        op("copy", "/a"),
        op("copy", "/b/c", **{"from": "/metadata"}),
        op("test", "/metadata/name", value="m"),
        op("test", "/metadata/labels", value={"a": "1"}),
        op("test", "/spec/taints", value=[{"key": "u"}, {"key": "t"}]),
        op("test", "/spec/taints/7", value=None),
        op("test", "/missing/x", value=None),
        op("bogus", "/metadata"),
        {"path": "/metadata"},
        {"op": "add", "value": 1},
        {},
    ],
)
def test_what_does_not_apply_is_invalid_and_nobody_says_why(operation: Raw) -> None:
    with pytest.raises(ApiError) as caught:
        after(op("add", "/metadata/labels/b", value="2"), operation)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("value", "same"), [(1, True), (1.0, False), (True, False), ("1", False), (None, False)]
)
def test_a_test_tells_numbers_truths_and_words_apart(value: RawValue, *, same: bool) -> None:
    operations = [op("add", "/n", value={"deep": [1]}), op("test", "/n", value={"deep": [value]})]
    if same:
        assert after(*operations)["n"] == {"deep": [1]}
    else:
        with pytest.raises(ApiError):
            after(*operations)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"op": "add"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("add", "cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        (True, "cannot unmarshal bool into Go value of type []handlers.jsonPatchOp"),
        ([3], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([[]], "cannot unmarshal array into Go value of type handlers.jsonPatchOp"),
        ([{"op": 3}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([{"path": {}}], "cannot unmarshal object into Go struct field jsonPatchOp.path of type string"),
        ([{"from": 1.5}], "cannot unmarshal number into Go struct field jsonPatchOp.from of type string"),
    ],
)
def test_a_body_that_is_no_list_of_operations_is_a_bad_request(body: RawValue, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch.operations(body)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == f"error decoding patch: json: {words}"


def test_no_operations_change_nothing() -> None:
    assert json_patch.operations(None) == []
    assert after() is NODE


def test_members_that_no_operation_has_are_named() -> None:
    found = json_patch.operations([op("add", "/a", value=1, extra=1), None, {"op": "test", "nope": 2}])
    assert json_patch.unknown_fields(found) == (
        'json patch unknown field "[0].extra"',
        'json patch unknown field "[2].nope"',
    )


def test_a_patch_has_at_most_ten_thousand_operations() -> None:
    operations = [op("test", "/metadata/name", value="n")] * json_patch.OPERATIONS_MAX
    assert after(*operations) is not None
    with pytest.raises(ApiError) as caught:
        after(*operations, *operations[:1])
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")
    words = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert caught.value.message == words


def test_copies_cannot_make_an_endless_object_out_of_a_short_patch() -> None:
    large = "x" * 1_000_000
    doubling = [op("copy", f"/metadata/c{n}", **{"from": "/metadata/big"}) for n in range(4)]
    assert len(after(op("add", "/metadata/big", value=large), *doubling[:3])["metadata"]) == 6
    with pytest.raises(ApiError) as caught:
        after(op("add", "/metadata/big", value=large), *doubling)
    assert caught.value.code == 422

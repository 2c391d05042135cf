"""Strategic merge patch: keys, orders and directives, and the server's words for nonsense. Kubernetes' own schemas."""

import pytest

from jackfield import codec
from jackfield.cluster import schema
from jackfield.cluster.errors import ApiError
from jackfield.cluster.patches import patch, strategic
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.composition import ComposableResource
from jackfield.model.node import Node
from jackfield.model.pod import Pod

POD: Raw = {
    "metadata": {"name": "p", "labels": {"a": "1", "b": "2"}, "finalizers": ["f/a", "f/b", "f/c"]},
    "spec": {
        "activeDeadlineSeconds": 30,
        "hostname": "h",
        "nodeSelector": {"z": "1"},
        "containers": [
            {"name": "a", "image": "i:1", "env": [{"name": "E", "value": "1"}], "command": ["x", "y"]},
            {"name": "b", "image": "j:1", "resources": {"limits": {"cpu": "1"}}},
            {"name": "c", "image": "k:1"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
    },
}


def after(body: Raw | None) -> Raw:
    before = codec.copied(POD)
    given = codec.copied(body)
    result = strategic.patched(POD, body, schema.of(kinds.of(Pod)))
    assert before == POD, "the original is left alone"
    assert given == body, "so is the patch"
    return result


def containers(body: Raw) -> list[tuple[str, str]]:
    return [(one["name"], one.get("image", "")) for one in after({"spec": body})["spec"]["containers"]]


@pytest.mark.parametrize(
    ("labels", "left"),
    [
        ({"a": None}, {"b": "2"}),
        ({"a": "9", "c": "3"}, {"a": "9", "b": "2", "c": "3"}),
        ({"missing": None}, {"a": "1", "b": "2"}),
        ({"$patch": "replace", "n": "1"}, {"n": "1"}),
        ({"$patch": "replace", "n": "1", "m": None}, {"n": "1"}),
        ({"$patch": "delete", "n": "1"}, {}),
        ({"$retainKeys": ["b", "c"], "c": "3"}, {"b": "2", "c": "3"}),
        ({"x": {"$patch": "delete"}}, {"a": "1", "b": "2"}),
    ],
)
def test_objects_are_merged_replaced_or_emptied(labels: Raw, left: Raw) -> None:
    assert after({"metadata": {"labels": labels}})["metadata"]["labels"] == left


def test_null_removes_a_member_and_an_empty_patch_nothing() -> None:
    assert "labels" not in after({"metadata": {"labels": None}})["metadata"]
    assert after({}) == after(None) == POD


def test_what_is_new_comes_without_its_nulls_and_directives() -> None:
    body = {"status": {"phase": None, "reason": "r", "conditions": [{"$patch": "delete", "type": "A"}]}}
    assert after(body)["status"] == {"reason": "r", "conditions": []}
    annotations = {"metadata": {"annotations": {"$patch": "delete", "a": "1"}}}
    assert "annotations" not in after(annotations)["metadata"]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"containers": [{"name": "b", "image": "j:2"}]}, [("a", "i:1"), ("b", "j:2"), ("c", "k:1")]),
        (
            {"containers": [{"name": "d", "image": "l"}]},
            [("d", "l"), ("a", "i:1"), ("b", "j:1"), ("c", "k:1")],
        ),
        (
            {"containers": [{"name": "c"}, {"name": "a", "image": "i:2"}]},
            [("b", "j:1"), ("c", "k:1"), ("a", "i:2")],
        ),
        ({"containers": [{"name": "b", "$patch": "delete"}]}, [("a", "i:1"), ("c", "k:1")]),
        ({"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}, [("z", "z")]),
        ({"containers": [{"name": "z", "image": "z"}, {"$patch": "replace"}]}, [("z", "z")]),
        (
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
            [("c", "k:1"), ("b", "j:1"), ("a", "i:1")],
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}, {"name": "a"}],
                "containers": [{"name": "d", "image": "l"}, {"name": "a", "image": "i:2"}],
            },
            [("d", "l"), ("b", "j:1"), ("c", "k:1"), ("a", "i:2")],
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "c"}],
                "containers": [{"name": "b", "$patch": "delete"}],
            },
            [("a", "i:1"), ("c", "k:1")],
        ),
    ],
)
def test_items_are_merged_by_their_key_and_ordered(body: Raw, left: list[tuple[str, str]]) -> None:
    assert containers(body) == left


def test_merging_goes_on_within_items() -> None:
    env = [{"name": "F", "value": "2"}, {"name": "E", "value": "3"}]
    item = {"name": "a", "env": env, "command": ["z"], "image": None}
    first = after({"spec": {"containers": [item]}})["spec"]["containers"][0]
    assert first == {"name": "a", "command": ["z"], "env": env}


def test_a_new_item_is_taken_as_it_is_but_for_nulls() -> None:
    item = {"name": "n", "image": None, "env": [{"name": "Q", "$patch": "delete"}]}
    first = after({"spec": {"containers": [item]}})["spec"]["containers"][0]
    assert first == {"name": "n", "env": [{"name": "Q", "$patch": "delete"}]}


def test_lists_without_a_strategy_are_replaced() -> None:
    assert after({"spec": {"tolerations": [{"key": "l", "value": None}]}})["spec"]["tolerations"] == [
        {"key": "l"}
    ]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"finalizers": ["f/d"]}, ["f/d", "f/a", "f/b", "f/c"]),
        ({"finalizers": ["f/b", "f/d"]}, ["f/a", "f/b", "f/d", "f/c"]),
        ({"finalizers": ["f/c", "f/c", "f/a"]}, ["f/b", "f/c", "f/a"]),
        ({"$deleteFromPrimitiveList/finalizers": ["f/a", "f/x"]}, ["f/b", "f/c"]),
        ({"$deleteFromPrimitiveList/finalizers": ["f/a"], "finalizers": ["f/z"]}, ["f/z", "f/b", "f/c"]),
        ({"$deleteFromPrimitiveList/finalizers": "x"}, ["f/a", "f/b", "f/c"]),
        ({"$setElementOrder/finalizers": ["f/c", "f/a"]}, ["f/b", "f/c", "f/a"]),
        (
            {"$setElementOrder/finalizers": ["f/n", "f/c"], "finalizers": ["f/n"]},
            ["f/n", "f/a", "f/b", "f/c"],
        ),
        ({"finalizers": []}, ["f/a", "f/b", "f/c"]),
    ],
)
def test_lists_of_words_are_united_ordered_and_taken_from(body: Raw, left: list[str]) -> None:
    assert after({"metadata": body})["metadata"]["finalizers"] == left


def test_items_cannot_be_taken_away_as_words_can() -> None:
    body = {"$deleteFromPrimitiveList/containers": [{"name": "b", "image": "j:2"}]}
    assert containers(body) == [("a", "i:1"), ("b", "j:2"), ("c", "k:1")]


def test_empty_lists_merge_into_empty_lists() -> None:
    node = schema.of(kinds.of(Pod))
    empty: Raw = {"metadata": {"finalizers": []}}
    assert strategic.patched(empty, {"metadata": {"finalizers": []}}, node) == empty
    assert strategic.patched(empty, {"metadata": {"$deleteFromPrimitiveList/finalizers": []}}, node) == empty


def test_taking_from_a_list_that_is_not_there_is_nothing() -> None:
    assert after({"spec": {"$deleteFromPrimitiveList/hostAliases": ["x"]}}) == POD
    assert after({"spec": {"$setElementOrder/hostAliases": [{"ip": "x"}]}}) == POD
    assert "finalizers" not in after({"metadata": {"$deleteFromPrimitiveList/finalizers": None}})["metadata"]


def test_an_order_for_a_new_list_orders_it() -> None:
    orders = [{"name": "b"}, {"name": "a"}]
    body = {
        "$setElementOrder/initContainers": orders,
        "initContainers": [*orders, {"name": "a", "$patch": "delete"}],
    }
    assert after({"spec": body})["spec"]["initContainers"] == orders


def test_kept_keys_leave_one_source_to_a_volume() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}, "emptyDir": None}
    assert after({"spec": {"volumes": [volume]}})["spec"]["volumes"] == [
        {"name": "v", "hostPath": {"path": "/x"}}
    ]
    both = {"name": "v", "hostPath": {"path": "/x"}}
    assert len(after({"spec": {"volumes": [both]}})["spec"]["volumes"][0]) == 3


def test_a_field_with_the_strategy_replace_is_replaced() -> None:
    node: Raw = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": []}}
    body = {
        "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}
    }
    result = strategic.patched(node, body, schema.of(kinds.of(Node)))
    assert [one["status"] for one in result["status"]["conditions"]] == ["False", "True"]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"$patch": "nonsense"}, 500, "unknown patch type: nonsense in map: map[$patch:nonsense]"),
        (
            {"metadata": {"labels": {"$patch": 3, "n": "1"}}},
            500,
            "unknown patch type: %!s(int64=3) in map: map[$patch:3 n:1]",
        ),
        (
            {"metadata": {"$deleteFromPrimitiveList": ["x"]}},
            400,
            "invalid patch format of primitive list",
        ),
        ({"metadata": {"$setElementOrder": ["x"]}}, 400, "invalid patch format of setElementOrder list"),
        (
            {"metadata": {"$setElementOrder/finalizers": "x"}},
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            {"metadata": {"$setElementOrder/finalizers": None}},
            500,
            "expected a []interface {}, but received a %!s(<nil>)",
        ),
        (
            {"metadata": {"$setElementOrder/finalizers": ["f/b"], "finalizers": ["f/c"]}},
            500,
            "The order in patch list:\n[f/c]\n doesn't match $setElementOrder list:\n[f/b]\n",
        ),
        (
            {"metadata": {"finalizers": [3]}},
            500,
            "list element types are not identical: [[f/a f/b f/c] [3]]",
        ),
        (
            {"spec": {"containers": [{"image": "x"}]}},
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"$patch": "delete"}]}},
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"$patch": "merge"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"spec": {"containers": [{"$patch": "other"}]}},
            500,
            "unknown patch type: other in map: map[$patch:other]",
        ),
        ({"spec": {"$setElementOrder/containers": ["b"]}}, 500, "value for key 0 is not a map"),
        (
            {"spec": {"$setElementOrder/containers": [{"nam": "b"}]}},
            500,
            "map: map[nam:b] does not contain declared merge key: name",
        ),
        (
            {"spec": {"$setElementOrder/nope": ["b"]}},
            500,
            'unable to find api field in struct PodSpec for the json field "nope"',
        ),
        (
            {"spec": {"$setElementOrder/hostname": ["b"]}},
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            {"spec": {"$setElementOrder/subdomain": ["b"]}},
            500,
            "expected slice or array type, but got: struct",
        ),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": ["a"]}},
            500,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"spec": {"$setElementOrder/initContainers": [{"name": "a"}], "initContainers": []}},
            500,
            "no elements in any of the given slices",
        ),
        (
            {"spec": {"containers": [{"name": {"a": 1}}]}},
            500,
            "comparing uncomparable type map[string]interface {}",
        ),
        ({"spec": {"volumes": [{"name": "v", "$retainKeys": 3}]}}, 400, "invalid patch format of retainKeys"),
        (
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "hostPath": {}}]}},
            400,
            "invalid patch format of retainKeys",
        ),
    ],
)
def test_nonsense_is_refused_in_the_servers_words(body: Raw, code: int, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        after(body)
    assert (caught.value.code, caught.value.message) == (code, words)


def test_lists_of_lists_are_invalid() -> None:
    with pytest.raises(ApiError) as caught:
        strategic.patched(
            {"metadata": {"finalizers": [["a"]]}},
            {"metadata": {"finalizers": [["b"]]}},
            schema.of(kinds.of(Pod)),
        )
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_kinds_of_ours_have_no_strategies() -> None:
    with pytest.raises(ApiError) as caught:
        strategic.patched({}, {}, None)
    assert (caught.value.code, caught.value.message) == (400, "strategic merge patch format is not supported")
    node = schema.of(kinds.of(ComposableResource))
    assert node is not None


def test_a_long_list_costs_no_more_than_its_length() -> None:
    many = [{"name": f"c{n}"} for n in range(20_000)]
    orders = list(reversed(many))
    result = after({"spec": {"$setElementOrder/containers": orders, "containers": orders}})
    assert len(result["spec"]["containers"]) == 20_003


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, "x", None], "a": {"c": True}}, "map[a:map[c:true] b:[1 x <nil>]]"),
        (1.5, "1.5"),
        (2.0, "2"),
        (False, "false"),
        ([], "[]"),
    ],
)
def test_values_are_shown_as_go_prints_them(value: RawValue, text: str) -> None:
    assert strategic.spelt(value) == text


def test_a_result_that_is_no_object_of_its_kind_is_shown_whole() -> None:
    error = patch.unusable(strategic.spelt({"spec": 3}), "cannot restore struct from: int64")
    words = 'Invalid value: "map[spec:3]": cannot restore struct from: int64'
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == f' "" is invalid: patch: {words}'
    assert [(one.field, one.message) for one in error.causes] == [("patch", words)]

"""Patches of all kinds, good and bad: what a real API server makes of an object, or says, is what we make and say.

A PodTemplate is patched, which the server stores as it is: in its template all of a pod may change at any time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jackfield.cluster import schema
from jackfield.cluster.errors import ApiError
from jackfield.cluster.patches import json_patch, patch, restoring, strategic
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.pod import Pod
from real.both_servers import Real

COLLECTION: Final = "/api/v1/namespaces/default/podtemplates"
PATH: Final = f"{COLLECTION}/patched"
JSON: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
TEMPLATE: Final[Raw] = {
    "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["f/a", "f/b", "f/c"]},
    "spec": {
        "activeDeadlineSeconds": 30,
        "nodeSelector": {"z": "1"},
        "containers": [
            {"name": "a", "image": "i:1", "env": [{"name": "E", "value": "1"}], "command": ["x", "y"]},
            {"name": "b", "image": "j:1", "resources": {"limits": {"cpu": "1"}}},
            {"name": "c", "image": "k:1", "ports": [{"containerPort": 80}, {"containerPort": 81}]},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
    },
}


@pytest.fixture
def server(kubeconfig: Path) -> Iterator[Real]:
    real = Real(kubeconfig)
    body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "patched"}, "template": TEMPLATE}
    assert real.ask("POST", COLLECTION, body)[0] == 201
    yield real
    assert real.ask("DELETE", PATH)[0] == 200


def op(name: str, path: str, **rest: RawValue) -> Raw:
    return {"op": name, "path": f"/template{path}", **rest}


def moved(name: str, source: str, path: str) -> Raw:
    return op(name, path, **{"from": f"/template{source}"})


GOOD_STRATEGIC: Final[tuple[Raw, ...]] = (
    {},
    {"metadata": {"labels": {"a": None, "c": "3"}}},
    {"metadata": {"labels": None}},
    {"metadata": {"labels": {"$patch": "replace", "n": "1"}}},
    {"metadata": {"labels": {"$patch": "delete"}}},
    {"metadata": {"labels": {"$retainKeys": ["b", "c"], "c": "3"}}},
    {"metadata": {"labels": {"x": {"$patch": "delete"}}}},
    {"metadata": {"annotations": {"$patch": "delete", "a": "1"}}},
    {"metadata": {"finalizers": ["f/d"]}},
    {"metadata": {"finalizers": ["f/b", "f/d"]}},
    {"metadata": {"finalizers": ["f/c", "f/a"]}},
    {"metadata": {"finalizers": []}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/a", "f/x"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}},
    {"metadata": {"$setElementOrder/finalizers": ["f/c", "f/a"]}},
    {"metadata": {"$setElementOrder/finalizers": ["f/n", "f/c"], "finalizers": ["f/n"]}},
    {"spec": {"activeDeadlineSeconds": None, "hostname": "h"}},
    {"spec": {"containers": [{"name": "b", "image": "j:2"}]}},
    {"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "i:2"}]}},
    {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}},
    {"spec": {"containers": [{"$patch": "replace"}, {"name": "z", "image": "z"}]}},
    {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}},
    {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "i:2"}, {"name": "b", "$patch": "delete"}],
        }
    },
    {
        "spec": {
            "containers": [{"name": "a", "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "3"}]}]
        }
    },
    {"spec": {"containers": [{"name": "a", "env": [{"name": "E", "$patch": "delete"}], "command": ["z"]}]}},
    {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 81, "name": "p"}]}]}},
    {"spec": {"containers": [{"name": "b", "resources": {"limits": {"memory": "1Gi", "cpu": None}}}]}},
    {"spec": {"tolerations": [{"key": "l", "operator": "Exists"}]}},
    {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}},
    {"spec": {"volumes": [{"name": "w", "emptyDir": {}}]}},
    {"spec": {"nodeSelector": {"y": "1"}}},
    {"spec": {"nodeSelector": {"$patch": "replace", "y": "1"}}},
)
BAD_STRATEGIC: Final[tuple[Raw, ...]] = (
    {"$patch": "nonsense"},
    {"metadata": {"labels": {"$patch": "merge", "n": "1"}}},
    {"metadata": {"labels": {"$patch": 3}}},
    {"metadata": {"$deleteFromPrimitiveList": ["x"]}},
    {"metadata": {"$setElementOrder": ["x"]}},
    {"metadata": {"$setElementOrder/finalizers": "x"}},
    {"metadata": {"$setElementOrder/finalizers": ["f/b"], "finalizers": ["f/c"]}},
    {"metadata": {"finalizers": [3]}},
    {"metadata": {"finalizers": [["x"]]}},
    {"spec": {"containers": [{"image": "x"}]}},
    {"spec": {"containers": [{"$patch": "delete"}]}},
    {"spec": {"containers": [{"$patch": "merge"}, {"name": "a"}]}},
    {"spec": {"containers": [{"$patch": "nonsense"}]}},
    {"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a", "image": "i"}]}},
    {"spec": {"$setElementOrder/containers": [{"nam": "b"}]}},
    {"spec": {"$setElementOrder/containers": ["b"]}},
    {"spec": {"$setElementOrder/nope": ["b"]}},
    {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}}]}},
    {"spec": {"volumes": [{"name": "v", "$retainKeys": 3}]}},
)
GOOD_JSON: Final[tuple[list[Raw], ...]] = (
    [],
    [op("add", "/metadata/labels/p~1q", value="2"), op("add", "/metadata/labels/a", value="9")],
    [op("add", "/metadata/annotations", value={"a~b": "1"}), op("remove", "/metadata/annotations/a~0b")],
    [op("replace", "/metadata/labels/new", value="1")],
    [op("remove", "/metadata/labels/a"), op("test", "/metadata/labels", value={"b": "2"})],
    [op("add", "/spec/tolerations/-", value={"key": "l", "operator": "Exists"})],
    [op("add", "/spec/tolerations/0", value={"key": "l", "operator": "Exists"})],
    [op("add", "/spec/tolerations/-1", value={"key": "l", "operator": "Exists"})],
    [op("add", "/spec/tolerations/-2", value={"key": "l", "operator": "Exists"})],
    [op("remove", "/spec/containers/-1")],
    [op("replace", "/spec/containers/1/image", value="j:2")],
    [moved("move", "/spec/containers/0", "/spec/containers/2")],
    [moved("copy", "/metadata/labels", "/metadata/annotations"), op("add", "/metadata/labels/c", value="3")],
    [moved("move", "/metadata/labels/a", "/metadata/labels/c")],
    [op("test", "/spec/activeDeadlineSeconds", value=30), op("test", "/spec/hostname", value=None)],
    [op("test", "/spec/containers/0/env", value=[{"value": "1", "name": "E"}])],
)
BAD_JSON: Final[tuple[RawValue, ...]] = (
    [op("add", "/metadata/labels/c", value="3"), op("test", "/metadata/labels/a", value="2")],
    [op("test", "/spec/activeDeadlineSeconds", value=30.5)],
    [op("test", "/spec/activeDeadlineSeconds", value="30")],
    [op("remove", "/metadata/labels/zz")],
    [op("replace", "/spec/nothere/x", value="q")],
    [op("add", "/spec/nothere/x", value="q")],
    [op("add", "/spec/tolerations/9", value={})],
    [op("add", "/spec/tolerations/x", value={})],
    [op("remove", "/spec/tolerations/-")],
    [op("replace", "/spec/tolerations/-", value={})],
    [moved("move", "/spec/nothere", "/spec/hostname")],
    [moved("copy", "/spec/nothere/x", "/spec/hostname")],
    [op("add", "/spec/hostname/x", value="q")],
    [op("bogus", "/spec")],
    [{"path": "/template/spec"}],
    [{"op": "remove"}],
    [{"op": "replace", "path": "", "value": 3}],
    [{"op": "add", "path": "", "value": {}}],
    [None],
    {"op": "add"},
    [3],
    [{"op": "add", "path": 3, "value": 1}],
    [{"op": 3, "path": "/a", "value": 1}],
    [op("test", "/metadata/labels/a", value="1")] * 10_001,
)
GOOD_MERGE: Final[tuple[Raw, ...]] = (
    {},
    {"metadata": {"labels": {"a": None, "c": "3"}, "annotations": {"x": None, "y": "1"}}},
    {"metadata": {"labels": None, "finalizers": ["f/z"]}},
    {"spec": {"containers": [{"name": "z", "image": "z", "command": None}], "hostname": "h"}},
    {"spec": {"nodeSelector": {"z": None}, "volumes": None, "tolerations": []}},
)


def template_of(live: Raw) -> Raw:
    found: Raw = live["template"]
    return found


def plain(value: RawValue) -> RawValue:
    """Return a value without what is empty, which Go does not write."""
    if isinstance(value, dict):
        kept = {name: plain(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in ({}, [], None)}
    return [plain(one) for one in value] if isinstance(value, list) else value


def with_defaults(template: Raw) -> Raw:
    """Return a template with the defaults that our patches leave out."""
    for container in template["spec"]["containers"]:
        for name, value in (
            ("imagePullPolicy", "IfNotPresent"),
            ("terminationMessagePath", "/dev/termination-log"),
        ):
            container.setdefault(
                name, "Always" if name == "imagePullPolicy" and ":" not in container["image"] else value
            )
        container.setdefault("terminationMessagePolicy", "File")
    for volume in template["spec"].get("volumes", ()):
        if "hostPath" in volume:
            volume["hostPath"].setdefault("type", "")
    return template


def answered(server: Real, body: RawValue, content: str) -> tuple[int, Raw]:
    return server.ask("PATCH", f"{PATH}?dryRun=All", body, content)


@pytest.mark.parametrize("body", GOOD_STRATEGIC, ids=str)
def test_a_strategic_merge_patch_makes_the_same_object(server: Real, body: Raw) -> None:
    live = template_of(server.ask("GET", PATH)[1])
    code, answer = answered(server, {"template": body}, STRATEGIC)
    assert code == 200, answer
    ours = strategic.patched(live, body, schema.of(kinds.of(Pod)))
    assert plain(with_defaults(ours)) == plain(template_of(answer))


@pytest.mark.parametrize("body", GOOD_JSON, ids=str)
def test_a_json_patch_makes_the_same_object(server: Real, body: list[Raw]) -> None:
    live = server.ask("GET", PATH)[1]
    code, answer = answered(server, body, JSON)
    assert code == 200, answer
    ours = json_patch.patched(live, json_patch.operations(body))
    assert plain(with_defaults(template_of(ours))) == plain(template_of(answer))


@pytest.mark.parametrize("body", GOOD_MERGE, ids=str)
def test_a_merge_patch_makes_the_same_object(server: Real, body: Raw) -> None:
    live = server.ask("GET", PATH)[1]
    code, answer = answered(server, {"template": body}, MERGE)
    assert code == 200, answer
    ours = patch.merged(live, {"template": body})
    assert plain(with_defaults(template_of(ours))) == plain(template_of(answer))


def told(error: ApiError) -> tuple[int, str, str]:
    return error.code, error.reason, error.message


def answer_of(answer: tuple[int, Raw]) -> tuple[int, str, str]:
    code, body = answer
    return code, body.get("reason", ""), body["message"]


@pytest.mark.parametrize("body", BAD_STRATEGIC, ids=str)
def test_a_strategic_merge_patch_is_refused_in_the_same_words(server: Real, body: Raw) -> None:
    live = template_of(server.ask("GET", PATH)[1])
    with pytest.raises(ApiError) as caught:
        strategic.patched(live, body, schema.of(kinds.of(Pod)))
    assert told(caught.value) == answer_of(answered(server, {"template": body}, STRATEGIC))


@pytest.mark.parametrize("body", BAD_JSON, ids=lambda body: str(body)[:60])
def test_a_json_patch_is_refused_in_the_same_words(server: Real, body: RawValue) -> None:
    live = server.ask("GET", PATH)[1]
    with pytest.raises(ApiError) as caught:
        json_patch.patched(live, json_patch.operations(body))
    assert told(caught.value) == answer_of(answered(server, body, JSON))


UNREADABLE: Final[tuple[Raw, ...]] = (
    {"spec": 3},
    {"spec": [1]},
    {"spec": {"containers": "x"}},
    {"spec": {"containers": {"a": 1}}},
    {"spec": {"tolerations": ["x"]}},
    {"spec": {"nodeSelector": ["x"]}},
    {"spec": {"nodeSelector": {"a": 1}}},
    {"metadata": {"labels": {"a": {"b": "1"}}}},
    {"spec": {"hostname": 3}},
    {"spec": {"hostname": 1.5}},
    {"spec": {"activeDeadlineSeconds": "x"}},
    {"spec": {"activeDeadlineSeconds": 1.5}},
    {"spec": {"priority": True}},
    {"spec": {"hostNetwork": 1}},
    {"spec": {"restartPolicy": 3}},
    {"spec": {"containers": [{"name": "a", "imagePullPolicy": 3}]}},
    {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": {}}}}]}},
)


@pytest.mark.parametrize("body", UNREADABLE, ids=str)
def test_a_result_that_is_no_object_is_refused_in_the_same_words(server: Real, body: Raw) -> None:
    node = schema.of(kinds.of(Pod))
    live = template_of(server.ask("GET", PATH)[1])
    why = restoring.problem(strategic.patched(live, body, node), node)
    error = patch.unusable(strategic.spelt({"template": body}), why)
    assert told(error) == answer_of(answered(server, {"template": body}, STRATEGIC))

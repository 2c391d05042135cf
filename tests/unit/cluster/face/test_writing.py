"""Calls that change something, and what they must not change."""

import msgspec
import pytest

from jackfield.cluster.face.calls import Call
from jackfield.codec import Raw
from unit.cluster.face.faces import (
    MAPS,
    NODES,
    PODS,
    RESOURCES,
    Face,
    config_map,
    node,
    pod,
    refusal,
    resource,
    told,
)

MERGE, STRATEGIC, JSON = "merge-patch+json", "strategic-merge-patch+json", "json-patch+json"
APPLY = "apply-patch+yaml"


@pytest.fixture
def face() -> Face:
    face = Face()
    face.post(MAPS, config_map("m", a="1"))
    face.post(PODS, pod("p"))
    face.post(NODES, node("n"))
    face.post(RESOURCES, resource("r"))
    return face


def applied(name: str, **data: str) -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_what_is_created_is_there_and_only_once(face: Face) -> None:
    created = face.post(MAPS, config_map("new"))
    assert created.code == 201
    assert told(created)["metadata"]["namespace"] == "default"
    assert refusal(face.post(MAPS, config_map("new"))) == (409, "AlreadyExists")
    assert refusal(face.post("/api/v1/configmaps", config_map("x"))) == (405, "MethodNotAllowed")


def test_a_body_must_agree_with_its_path(face: Face) -> None:
    elsewhere = {"metadata": {"name": "x", "namespace": "kube-system"}}
    assert refusal(face.post(MAPS, elsewhere)) == (400, "BadRequest")
    assert refusal(face.put(f"{MAPS}/m", config_map("x"))) == (400, "BadRequest")
    assert refusal(face.put(f"{MAPS}/m", {"metadata": {}})) == (400, "BadRequest")
    assert refusal(face.post(MAPS, {"kind": "Pod", "metadata": {"name": "x"}})) == (400, "BadRequest")
    assert refusal(face.post(MAPS, {"apiVersion": "v2", "metadata": {"name": "x"}})) == (400, "BadRequest")
    assert refusal(face.put("/api/v1/namespaces/default/finalize", {"spec": {}})) == (400, "BadRequest")


def test_an_update_of_an_old_version_is_a_conflict(face: Face) -> None:
    old = told(face.get(f"{MAPS}/m"))
    new = told(face.put(f"{MAPS}/m", {**old, "data": {"a": "2"}}))
    assert new["data"] == {"a": "2"}
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    assert refusal(face.put(f"{MAPS}/m", {**old, "data": {"a": "3"}})) == (409, "Conflict")


@pytest.mark.parametrize(
    ("path", "kind", "body", "expected"),
    [
        (f"{MAPS}/m", MERGE, {"data": {"a": None, "b": "2"}}, {"data": {"b": "2"}}),
        (f"{MAPS}/m", STRATEGIC, {"data": {"b": "2"}}, {"data": {"a": "1", "b": "2"}}),
        (f"{MAPS}/m", JSON, [{"op": "add", "path": "/data/c", "value": "3"}], {"data": {"a": "1", "c": "3"}}),
        (f"{RESOURCES}/r/status", MERGE, {"status": {"state": "Online"}}, {"status": {"state": "Online"}}),
    ],
)
def test_each_kind_of_patch_changes_what_it_says(
    face: Face, path: str, kind: str, body: object, expected: Raw
) -> None:
    answer = face.patch(path, kind, body)
    assert answer.code == 200, answer.body
    assert {**told(answer), **expected} == told(answer)


@pytest.mark.parametrize(
    ("path", "kind", "body", "code"),
    [
        (f"{MAPS}/m", JSON, [None], 422),
        (f"{MAPS}/m", JSON, [1], 400),
        (f"{MAPS}/m", JSON, {"op": "add"}, 400),
        (f"{MAPS}/m", JSON, [{"op": "add", "path": "/nowhere/else", "value": 1}], 422),
        (f"{MAPS}/m", JSON, [{"op": "replace", "path": "", "value": []}], 400),
        (f"{MAPS}/m", MERGE, [], 400),
        (f"{MAPS}/m", "apply-patch+cbor", {}, 415),
        (f"{RESOURCES}/r", STRATEGIC, {}, 415),
        (f"{MAPS}/nobody", MERGE, {}, 404),
        (f"{MAPS}/m", MERGE, {"metadata": {"name": "x"}}, 400),
    ],
)
def test_a_patch_that_makes_no_sense_changes_nothing(
    face: Face, path: str, kind: str, body: object, code: int
) -> None:
    version = face.store.version
    assert refusal(face.patch(path, kind, body))[0] == code
    assert face.store.version == version
    assert face.mistakes == []


def test_a_patch_cannot_dig_deeper_than_a_body(face: Face) -> None:
    steps: list[Raw] = [{"op": "add", "path": "/x", "value": {}}]
    for _ in range(1500):
        steps.append({"op": "add", "path": "/y", "value": {}})
        steps.append({"op": "move", "from": "/x", "path": "/y/a"})
        steps.append({"op": "move", "from": "/y", "path": "/x"})
    for last in ({"op": "copy", "from": "/x", "path": "/z"}, {"op": "remove", "path": "/data"}):
        assert refusal(face.patch(f"{MAPS}/m", JSON, [*steps, last])) == (400, "BadRequest")
    assert face.mistakes == []


def test_an_apply_creates_then_owns_then_disputes(face: Face) -> None:
    path = f"{MAPS}/new"
    assert refusal(face.patch(path, APPLY, applied("new", a="1"))) == (422, "Invalid")
    assert face.patch(path, APPLY, applied("new", a="1"), fieldManager="one").code == 201
    assert face.patch(path, APPLY, applied("new", a="1"), fieldManager="one").code == 200
    disputed = face.patch(path, APPLY, applied("new", a="2"), fieldManager="two")
    assert refusal(disputed) == (409, "Conflict")
    forced = face.patch(path, APPLY, applied("new", a="2"), fieldManager="two", force="true")
    assert told(forced)["data"] == {"a": "2"}
    assert refusal(face.patch(path, MERGE, {}, force="true")) == (422, "Invalid")


def test_fields_nobody_knows_are_named_or_dropped(face: Face) -> None:
    body = {"metadata": {"name": "odd"}, "colour": "red"}
    warned = face.post(MAPS, body, dryRun="All")
    assert warned.warnings == ('unknown field "colour"',)
    assert "colour" not in told(warned)
    assert face.post(MAPS, body, dryRun="All", fieldValidation="Ignore").warnings == ()
    strict = face.post(MAPS, body, fieldValidation="Strict")
    assert refusal(strict) == (400, "BadRequest")
    assert 'unknown field "colour"' in told(strict)["message"]
    twice = Call("POST", MAPS, {"dryRun": "All"}, b'{"metadata":{"name":"a"},"data":{},"data":{}}')
    assert face.ask(twice).warnings == ('duplicate field "data"',)


def test_a_dry_run_answers_as_if_and_changes_nothing(face: Face) -> None:
    version = face.store.version
    answers = (
        face.post(MAPS, config_map("dry"), dryRun="All"),
        face.patch(f"{MAPS}/m", MERGE, {"data": {"a": "9"}}, dryRun="All"),
        face.delete(f"{MAPS}/m", dryRun="All"),
        face.delete(f"{PODS}/p", {"dryRun": ["All"]}),
        face.delete(MAPS, dryRun="All"),
        face.post(f"{PODS}/p/binding", {"target": {"name": "n"}}, dryRun="All"),
        face.post(f"{PODS}/p/eviction", {"deleteOptions": {"dryRun": ["All"]}}),
    )
    assert [one.code for one in answers] == [201, 200, 200, 200, 200, 201, 201]
    assert face.store.version == version


def test_an_answer_nobody_takes_leaves_nothing_done(face: Face) -> None:
    version = face.store.version
    body = msgspec.json.encode(config_map("never"))
    call = Call("POST", MAPS, {}, body, "application/json", accept="text/html")
    assert refusal(face.ask(call)) == (406, "NotAcceptable")
    assert refusal(face.post(MAPS, config_map("never"), includeObject="Some")) == (400, "BadRequest")
    assert face.store.version == version


def test_a_deletion_tells_what_went_and_keeps_to_its_conditions(face: Face) -> None:
    uid = told(face.get(f"{MAPS}/m"))["metadata"]["uid"]
    other = {"preconditions": {"uid": "another"}}
    assert refusal(face.delete(f"{MAPS}/m", other)) == (409, "Conflict")
    gone = told(face.delete(f"{MAPS}/m", {"preconditions": {"uid": uid}}))
    assert (gone["status"], gone["details"]["uid"]) == ("Success", uid)
    assert told(face.delete(f"{PODS}/p"))["kind"] == "Pod"
    assert refusal(face.delete(f"{MAPS}/m")) == (404, "NotFound")
    assert refusal(face.delete(f"{NODES}/n", {"propagationPolicy": "Sometimes"}))[0] == 422
    assert refusal(face.delete(f"{NODES}/n", {"gracePeriodSeconds": "soon"})) == (400, "BadRequest")


def test_deleting_all_deletes_those_selected(face: Face) -> None:
    face.post(MAPS, {"metadata": {"name": "x", "labels": {"go": "1"}}})
    told_of = told(face.delete(MAPS, labelSelector="go=1"))
    assert [one["metadata"]["name"] for one in told_of["items"]] == ["x"]
    assert [one["metadata"]["name"] for one in told(face.get(MAPS))["items"]] == ["m"]


def test_a_pod_is_bound_once(face: Face) -> None:
    binding = {"target": {"kind": "Node", "name": "n"}}
    assert refusal(face.post(f"{PODS}/p/binding", {"target": {}})) == (422, "Invalid")
    assert face.post(f"{PODS}/p/binding", binding).code == 201
    assert told(face.get(f"{PODS}/p"))["spec"]["nodeName"] == "n"
    assert refusal(face.post(f"{PODS}/p/binding", binding)) == (409, "Conflict")


def test_managed_fields_that_a_client_sends_are_not_believed(face: Face) -> None:
    entry = {"manager": "liar", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    body = {"metadata": {"name": "x", "managedFields": [{**entry, "fieldsV1": {"f:data": {}}}] * 1000}}
    assert len(face.post(MAPS, body).body) < 2_000

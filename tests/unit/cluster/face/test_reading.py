"""Get and list: versions, selections and forms."""

import pytest
import yaml

from unit.cluster.face.faces import MAPS, PODS, RESOURCES, Face, config_map, pod, refusal, resource, told

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.fixture
def face() -> Face:
    face = Face()
    face.post(MAPS, config_map("a", x="1"))
    face.post(PODS, pod("p", {"app": "x"}))
    face.post(PODS, pod("q"))
    face.post(RESOURCES, resource())
    return face


def test_an_object_says_what_it_is_and_a_list_says_it_once(face: Face) -> None:
    one = told(face.get(f"{MAPS}/a"))
    assert (one["apiVersion"], one["kind"], one["data"]) == ("v1", "ConfigMap", {"x": "1"})
    many = told(face.get(MAPS))
    assert (many["apiVersion"], many["kind"]) == ("v1", "ConfigMapList")
    assert "kind" not in many["items"][0]
    assert told(face.get(RESOURCES))["items"][0]["kind"] == "ComposableResource"
    assert many["metadata"] == {"resourceVersion": str(face.store.version)}


def test_a_list_is_selected_by_labels_and_fields(face: Face) -> None:
    for query, names in (
        ({"labelSelector": "app=x"}, ["p"]),
        ({"labelSelector": "app!=x"}, ["q"]),
        ({"fieldSelector": "metadata.name=q"}, ["q"]),
        ({"labelSelector": "app", "fieldSelector": "metadata.name=q"}, []),
    ):
        assert [one["metadata"]["name"] for one in told(face.get(PODS, **query))["items"]] == names, query
    assert refusal(face.get(PODS, fieldSelector="spec.colour=red")) == (400, "BadRequest")
    assert refusal(face.get(PODS, labelSelector="a in (b")) == (400, "BadRequest")


def test_a_table_has_a_row_for_each_object(face: Face) -> None:
    table = told(face.get(PODS, TABLE))
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [row["cells"][0] for row in table["rows"]] == ["p", "q"]
    assert [row["object"]["kind"] for row in table["rows"]] == ["PartialObjectMetadata"] * 2
    assert "spec" in told(face.get(PODS, TABLE, includeObject="Object"))["rows"][0]["object"]
    assert "object" not in told(face.get(f"{PODS}/p", TABLE, includeObject="None"))["rows"][0]
    assert refusal(face.get(PODS, TABLE, includeObject="Some")) == (400, "BadRequest")


def test_metadata_alone_is_told_without_the_rest(face: Face) -> None:
    one = told(face.get(f"{PODS}/p", METADATA))
    assert sorted(one) == ["apiVersion", "kind", "metadata"]
    many = told(face.get(PODS, METADATA))
    assert many["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in many["items"]] == ["p", "q"]


def test_yaml_says_the_same_as_json(face: Face) -> None:
    answer = face.get(f"{PODS}/p", "application/yaml")
    assert answer.content_type == "application/yaml"
    assert yaml.safe_load(answer.body) == told(face.get(f"{PODS}/p"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"resourceVersion": "0"}, (200, "")),
        ({"resourceVersion": "1"}, (200, "")),
        ({"resourceVersion": "999"}, (504, "Timeout")),
        ({"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"}, (200, "")),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact"}, (410, "Expired")),
        ({"resourceVersionMatch": "Exact"}, (422, "Invalid")),
        ({"resourceVersion": "1", "resourceVersionMatch": "Older"}, (422, "Invalid")),
    ],
)
def test_a_version_that_is_not_to_be_had_is_refused(
    face: Face, query: dict[str, str], expected: tuple[int, str]
) -> None:
    answer = face.get(PODS, **query)
    assert (answer.code, told(answer).get("reason", "")) == expected


def test_what_is_not_there_is_not_found(face: Face) -> None:
    answer = face.get(f"{PODS}/nobody")
    assert refusal(answer) == (404, "NotFound")
    assert told(answer)["message"] == 'pods "nobody" not found'
    assert refusal(face.get(f"{PODS}/p", resourceVersion="999")) == (504, "Timeout")

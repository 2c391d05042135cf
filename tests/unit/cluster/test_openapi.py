"""The documents of OpenAPI are whole, and say to kubectl what it looks for in them."""

import hashlib
from collections.abc import Iterator

import pytest

from jackfield.cluster import discovery, openapi
from jackfield.codec import Raw, RawValue, kinds
from jackfield.codec.kinds import KINDS, Kind

PATHS = sorted(openapi.index()["paths"])
GVK = "x-kubernetes-group-version-kind"
OURS = "cro.hpsys.ibm.ie.com"


def document(path: str) -> Raw:
    found = openapi.document(path)
    assert found is not None
    return found


def home(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def gvk(kind: Kind) -> Raw:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def references(value: RawValue) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from references(one)


def schemas_of(kind: Kind) -> list[Raw]:
    schemas = document(home(kind))["components"]["schemas"].values()
    return [one for one in schemas if gvk(kind) in one.get(GVK, ())]


def test_the_index_names_every_group_version_with_a_hash_of_its_document() -> None:
    assert [f"/{path}" for path in openapi.index()["paths"]] == list(discovery.prefixes())
    for path, said in openapi.index()["paths"].items():
        body = openapi.body(path)
        assert body is not None
        digest = hashlib.sha512(body).hexdigest().upper()
        assert said["serverRelativeURL"] == f"/openapi/v3/{path}?hash={digest}"
        assert openapi.etag(path) == digest


@pytest.mark.parametrize("path", ["", "api", "api/v2", "apis/apps/v1", "/api/v1", "api/v1/", "../api/v1"])
def test_there_is_no_document_for_other_paths(path: str) -> None:
    assert openapi.document(path) is None
    assert openapi.body(path) is None


@pytest.mark.parametrize("path", PATHS)
def test_all_that_a_document_refers_to_is_in_it_and_nothing_else(path: str) -> None:
    found = document(path)
    said = {one.removeprefix("#/components/schemas/") for one in references(found)}
    assert said == set(found["components"]["schemas"])
    assert found["openapi"] == "3.0.0"
    assert found["info"] == {"title": "Kubernetes", "version": "1.36"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kubectl_finds_a_kind_by_its_path_and_its_schema(kind: Kind) -> None:
    paths = document(home(kind))["paths"]
    space = "namespaces/{namespace}/" if kind.namespaced else ""
    place = f"/{home(kind)}/{space}{kind.plural}"
    for method in ("get", "post"):
        assert paths[place][method][GVK] == gvk(kind)
    for method in ("get", "put", "patch", "delete"):
        assert paths[f"{place}/{{name}}"][method][GVK] == gvk(kind)
    (schema,) = schemas_of(kind)
    assert {"apiVersion", "kind", "metadata"} < set(schema["properties"])
    assert (f"{place}/{{name}}/status" in paths) == kind.has_status
    assert f"/{home(kind)}/{kind.plural}" in paths


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_patches_take_the_parameters_that_kubectl_looks_for(kind: Kind) -> None:
    patches = [
        item["patch"]
        for item in document(home(kind))["paths"].values()
        if "patch" in item and item["patch"][GVK] == gvk(kind)
    ]
    assert patches
    for patch in patches:
        query = {one["name"] for one in patch["parameters"] if one["in"] == "query"}
        assert {"dryRun", "fieldManager", "fieldValidation", "force"} == query
        strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
        assert strategic == (kind.group != OURS)


def test_evictions_and_bindings_are_bodies_of_their_own() -> None:
    paths = document("api/v1")["paths"]
    pod = "/api/v1/namespaces/{namespace}/pods/{name}"
    eviction = paths[f"{pod}/eviction"]["post"]
    assert eviction[GVK] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert paths[f"{pod}/binding"]["post"][GVK] == {"group": "", "version": "v1", "kind": "Binding"}
    assert [one["name"] for one in paths[pod]["parameters"]] == ["namespace", "name"]
    assert f"{pod}/log" not in paths


def described(schema: RawValue) -> Iterator[str]:
    """Tell the descriptions in a schema, in which a property may be called so too."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            yield schema["description"]
        schema = [list(one.values()) if name == "properties" else one for name, one in schema.items()]
    for one in schema if isinstance(schema, list) else ():
        yield from described(one)


def undescribed(schema: Raw, path: str) -> list[str]:
    inner = {
        **{f"{path}.{name}": one for name, one in schema.get("properties", {}).items()},
        **({f"{path}[]": schema["items"]} if "items" in schema else {}),
    }
    mine = [] if schema.get("description") or path.endswith("[]") else [path]
    return mine + [one for name, each in inner.items() for one in undescribed(each, name)]


@pytest.mark.parametrize("kind", [one for one in KINDS if one.group == OURS], ids=lambda kind: kind.kind)
def test_every_field_of_our_kinds_is_described(kind: Kind) -> None:
    (schema,) = schemas_of(kind)
    assert undescribed(schema, kind.kind) == []


@pytest.mark.parametrize("path", [one for one in PATHS if OURS not in one])
def test_nothing_of_kubernetes_own_is_described(path: str) -> None:
    schemas = document(path)["components"]["schemas"]
    assert {name: list(described(one)) for name, one in schemas.items() if list(described(one))} == {}


def test_a_list_has_items() -> None:
    schemas = document("api/v1")["components"]["schemas"]
    listed = schemas["io.k8s.api.core.v1.PodList"]
    assert listed["properties"]["items"]["items"]["$ref"].endswith("/io.k8s.api.core.v1.Pod")
    assert listed[GVK] == [{"group": "", "version": "v1", "kind": "PodList"}]


def test_the_second_version_has_all_types() -> None:
    found = openapi.v2()
    names = {
        (one["group"], one["version"], one["kind"])
        for schema in found["definitions"].values()
        for one in schema.get(GVK, ())
    }
    assert found["swagger"] == "2.0"
    assert {(one.group, one.version, one.kind) for one in kinds.KINDS} < names
    said = {one.removeprefix("#/definitions/") for one in references(found)}
    assert said <= set(found["definitions"])

"""The API says what it has as the real one does."""

import pytest

from jackfield.cluster import discovery
from jackfield.codec import Raw, kinds

EVERYTHING = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def entry(path: str, name: str) -> Raw:
    document = discovery.document(path)
    assert document is not None
    (found,) = (one for one in document["resources"] if one["name"] == name)
    return dict(found)


ENTRIES = [
    (
        "/api/v1",
        {
            "name": "pods",
            "singularName": "pod",
            "namespaced": True,
            "kind": "Pod",
            "verbs": EVERYTHING,
            "shortNames": ["po"],
            "categories": ["all"],
            "storageVersionHash": "xPOwRZ+Yhw8=",
        },
    ),
    (
        "/api/v1",
        {
            "name": "pods/eviction",
            "singularName": "",
            "namespaced": True,
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
            "verbs": ["create"],
        },
    ),
    (
        "/api/v1",
        {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
    ),
    (
        "/api/v1",
        {
            "name": "nodes/status",
            "singularName": "",
            "namespaced": False,
            "kind": "Node",
            "verbs": ["get", "patch", "update"],
        },
    ),
    (
        "/api/v1",
        {
            "name": "namespaces",
            "singularName": "namespace",
            "namespaced": False,
            "kind": "Namespace",
            "verbs": [one for one in EVERYTHING if one != "deletecollection"],
            "shortNames": ["ns"],
            "storageVersionHash": "Q3oi5N2YM8M=",
        },
    ),
    (
        "/apis/resource.k8s.io/v1beta2",
        {
            "name": "devicetaintrules",
            "singularName": "devicetaintrule",
            "namespaced": False,
            "kind": "DeviceTaintRule",
            "verbs": EVERYTHING,
            "storageVersionHash": "DJ3UJ0fj8MI=",
        },
    ),
    (
        "/apis/apiextensions.k8s.io/v1",
        {
            "name": "customresourcedefinitions",
            "singularName": "customresourcedefinition",
            "namespaced": False,
            "kind": "CustomResourceDefinition",
            "verbs": EVERYTHING,
            "shortNames": ["crd", "crds"],
            "categories": ["api-extensions"],
            "storageVersionHash": "jfWCUB31mvA=",
        },
    ),
    (
        "/apis/cro.hpsys.ibm.ie.com/v1alpha1",
        {
            "name": "composableresources",
            "singularName": "composableresource",
            "namespaced": False,
            "kind": "ComposableResource",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["cres"],
            "categories": ["cohdi", "jackfield"],
            "storageVersionHash": "biPyxECmdbI=",
        },
    ),
    (
        "/apis/authorization.k8s.io/v1",
        {
            "name": "selfsubjectaccessreviews",
            "singularName": "selfsubjectaccessreview",
            "namespaced": False,
            "kind": "SelfSubjectAccessReview",
            "verbs": ["create"],
        },
    ),
]


@pytest.mark.parametrize(
    ("path", "expected"), ENTRIES, ids=lambda one: one if isinstance(one, str) else one["name"]
)
def test_a_resource_is_listed_as_the_real_server_lists_it(path: str, expected: Raw) -> None:
    assert entry(path, str(expected["name"])) == expected


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)
def test_every_kind_is_listed(kind: kinds.Kind) -> None:
    path = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    assert path in discovery.prefixes()
    assert entry(path, kind.plural)["kind"] == kind.kind
    document = discovery.document(path)
    assert document is not None
    names = [one["name"] for one in document["resources"]]
    assert names == sorted(names)
    assert (f"{kind.plural}/status" in names) == kind.has_status


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/resource.k8s.io/v2",
        "/apis//v1",
        "/apis/",
        "/x",
        "/api/v1/pods",
    ],
)
def test_nothing_is_said_of_what_is_not_there(path: str) -> None:
    assert discovery.document(path) is None


def test_groups_come_in_the_order_of_the_real_server_and_prefer_their_most_stable_version() -> None:
    groups = discovery.groups()["groups"]
    names = [one["name"] for one in groups]
    known = ["authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"]
    expected = [*known, "resource.k8s.io", "cro.hpsys.ibm.ie.com"]
    assert names == [one for one in expected if one in names]
    assert len(names) >= 5
    (resource,) = (one for one in groups if one["name"] == "resource.k8s.io")
    assert [one["version"] for one in resource["versions"]] == ["v1", "v1beta2"]
    assert resource["preferredVersion"] == {"groupVersion": "resource.k8s.io/v1", "version": "v1"}
    group = discovery.document("/apis/resource.k8s.io")
    assert group == {"kind": "APIGroup", "apiVersion": "v1", **resource}


def test_versions_are_ordered_by_stability_and_then_the_newest_first() -> None:
    ordered = ["v10", "v2", "v1", "v2beta1", "v1beta10", "v1beta2", "v3alpha1", "v1alpha2", "v1alpha1"]
    assert sorted(sorted(ordered), key=discovery.precedence) == ordered


def test_the_core_group_comes_first() -> None:
    assert discovery.prefixes()[0] == "/api/v1"


def test_the_core_group_has_one_version() -> None:
    assert discovery.core() == {"kind": "APIVersions", "versions": ["v1"]}
    document = discovery.document("/api/v1")
    assert document is not None
    assert (document["groupVersion"], "apiVersion" in document) == ("v1", False)


@pytest.mark.parametrize(("path", "prefix"), [("/api", "/api"), ("/apis", "/apis")])
def test_the_aggregated_documents_say_the_same_as_the_single_ones(path: str, prefix: str) -> None:
    aggregated = discovery.aggregated(path)
    assert (aggregated["kind"], aggregated["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    for group in aggregated["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            home = "/".join(one for one in (prefix, name, version["version"]) if one)
            single = discovery.document(home)
            assert single is not None
            listed = [
                (
                    one["resource"],
                    one["responseKind"]["kind"],
                    one["verbs"],
                    one.get("shortNames"),
                    one["scope"],
                )
                for one in version["resources"]
            ]
            assert listed == [
                (one["name"], one["kind"], one["verbs"], one.get("shortNames"), _scope(one))
                for one in single["resources"]
                if "/" not in one["name"]
            ]
            parts = [
                (f"{one['resource']}/{part['subresource']}", part["responseKind"]["kind"], part["verbs"])
                for one in version["resources"]
                for part in one.get("subresources", ())
            ]
            assert parts == [
                (one["name"], one["kind"], one["verbs"]) for one in single["resources"] if "/" in one["name"]
            ]


def _scope(one: Raw) -> str:
    return "Namespaced" if one["namespaced"] else "Cluster"


def test_only_kinds_with_a_definition_name_their_group_again() -> None:
    found = {
        one["resource"]: one["responseKind"]["group"]
        for group in (*discovery.aggregated("/api")["items"], *discovery.aggregated("/apis")["items"])
        for version in group["versions"]
        for one in version["resources"]
    }
    assert found["pods"] == found["resourceclaims"] == ""
    assert found["composableresources"] == "cro.hpsys.ibm.ie.com"


def test_the_version_is_told_in_parts() -> None:
    told = discovery.version("v1.36.4")
    assert (told["major"], told["minor"], told["gitVersion"]) == ("1", "36", "v1.36.4")
    assert (told["minCompatibilityMajor"], told["minCompatibilityMinor"]) == ("1", "35")


def test_a_document_belongs_to_who_asked_for_it() -> None:
    first = discovery.document("/api/v1")
    assert first is not None
    first["resources"].clear()
    second = discovery.document("/api/v1")
    assert second is not None
    assert second["resources"]

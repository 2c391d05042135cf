"""What paths name."""

import pytest

from jackfield.cluster.face.target import parse

GROUP = "/apis/cro.hpsys.ibm.ie.com/v1alpha1"


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/api/v1/pods", ("Pod", "", "", "")),
        ("/api/v1/namespaces/a/pods", ("Pod", "a", "", "")),
        ("/api/v1/namespaces/a/pods/p", ("Pod", "a", "p", "")),
        ("/api/v1/namespaces/a/pods/p/status", ("Pod", "a", "p", "status")),
        ("/api/v1/namespaces", ("Namespace", "", "", "")),
        ("/api/v1/namespaces/a", ("Namespace", "", "a", "")),
        ("/api/v1/namespaces/a/status", ("Namespace", "", "a", "status")),
        ("/api/v1/namespaces/a/finalize", ("Namespace", "", "a", "finalize")),
        ("/api/v1/nodes/a%2Eb", ("Node", "", "a.b", "")),
        (f"{GROUP}/composableresources/r/status", ("ComposableResource", "", "r", "status")),
        ("/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c", ("ResourceClaim", "a", "c", "")),
    ],
)
def test_a_path_names_a_kind_and_an_object(path: str, named: tuple[str, str, str, str]) -> None:
    target = parse(path)
    assert target is not None
    assert (target.kind.kind, target.namespace, target.name, target.subresource) == named


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/api",
        "/api/v1",
        "/api/v2/pods",
        "/api/v1/unicorns",
        "/api/v1/pods/p",
        "/api/v1/pods/",
        "/api//v1/pods",
        "/api/v1/namespaces/a/nodes",
        "/api/v1/namespaces/a/pods/p%2Fq",
        "/api/v1/namespaces/a/pods/p/status/more",
        "/apis/apps/v1/deployments",
        "/apis/v1/pods",
        "/api/v1/" + "a/" * 1000,
    ],
)
def test_other_paths_name_nothing(path: str) -> None:
    assert parse(path) is None

"""What the face says of itself, and which calls it does not take."""

import pytest

from jackfield.cluster.face.calls import Call
from jackfield.cluster.face.reading import Watching
from unit.cluster.face.faces import MAPS, NODES, PODS, Face, pod, refusal, told

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/api/v1", "APIResourceList"),
        ("/apis/resource.k8s.io", "APIGroup"),
        ("/apis/resource.k8s.io/v1", "APIResourceList"),
        ("/apis/cro.hpsys.ibm.ie.com/v1alpha1/", "APIResourceList"),
    ],
)
def test_it_says_what_it_serves(path: str, kind: str) -> None:
    answer = Face().get(path)
    assert (answer.code, told(answer)["kind"]) == (200, kind)


def test_discovery_comes_in_one_piece_if_wanted() -> None:
    for path in ("/api", "/apis"):
        answer = Face().get(path, AGGREGATED)
        assert told(answer)["kind"] == "APIGroupDiscoveryList"
        assert "as=APIGroupDiscoveryList" in answer.content_type


def test_health_and_version_are_plain() -> None:
    face = Face()
    assert [face.get(path).body for path in ("/healthz", "/livez", "/readyz/")] == [b"ok"] * 3
    assert told(face.get("/version"))["gitVersion"] == "v1.36.4"
    assert "api/v1" in told(face.get("/openapi/v3"))["paths"]


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/unicorns", (404, "NotFound")),
        ("GET", "/apis/resource.k8s.io/v1/unicorns", (404, "NotFound")),
        ("GET", f"{MAPS}/m/status", (404, "NotFound")),
        ("GET", f"{MAPS}/m/colour", (404, "NotFound")),
        ("PUT", f"{NODES}/n/finalize", (404, "NotFound")),
        ("POST", f"{NODES}/n/binding", (404, "NotFound")),
        ("POST", f"{PODS}/p", (405, "MethodNotAllowed")),
        ("PUT", PODS, (405, "MethodNotAllowed")),
        ("PATCH", PODS, (405, "MethodNotAllowed")),
        ("BREW", PODS, (405, "MethodNotAllowed")),
        ("DELETE", "/api/v1", (405, "MethodNotAllowed")),
        ("POST", "/version", (405, "MethodNotAllowed")),
        ("GET", f"{PODS}/p/log", (400, "BadRequest")),
        ("GET", f"{PODS}/p/exec", (400, "BadRequest")),
        ("GET", f"{PODS}/nobody/log", (404, "NotFound")),
    ],
)
def test_what_it_does_not_do_it_says(method: str, path: str, expected: tuple[int, str]) -> None:
    face = Face()
    face.post(PODS, pod("p"))
    assert refusal(face.ask(Call(method, path))) == expected


def test_a_place_that_is_none_is_not_found_in_plain_words() -> None:
    answer = Face().get("/nowhere")
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


def test_only_a_get_can_become_a_watch() -> None:
    face = Face()
    assert isinstance(face.api.answer(Call("GET", PODS, {"watch": "1"})), Watching)
    assert isinstance(face.api.answer(Call("GET", f"{PODS}/p", {"watch": "true"})), Watching)
    for call in (Call("DELETE", PODS, {"watch": "1"}), Call("GET", PODS, {"watch": "0"})):
        assert not isinstance(face.api.answer(call), Watching)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "allowed"),
        ("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "resourceRules"),
        ("/apis/authentication.k8s.io/v1/selfsubjectreviews", "userInfo"),
    ],
)
def test_reviews_are_answered_with_a_status(path: str, field: str) -> None:
    face = Face()
    answer = face.post(path, {"spec": {"a": 1}})
    assert answer.code == 201
    assert told(answer)["status"][field]
    assert told(answer)["spec"] == {"a": 1}
    assert refusal(face.ask(Call("POST", path, body=b"{"))) == (400, "BadRequest")

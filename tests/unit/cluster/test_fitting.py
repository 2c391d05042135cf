"""Bodies that fit their schema are applied; of all others it is said what does not fit, in the server's words."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.ownership import books
from jackfield.codec import Raw, kinds
from jackfield.model.composition import ComposableResource
from jackfield.model.pod import Pod
from unit.cluster.book_desk import resource


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        ({"bogus": 1}, 500, ".bogus: field not declared in schema"),
        ({"spec": {"bogus": 1}}, 500, ".spec.bogus: field not declared in schema"),
        ({"spec": 3}, 500, ".spec: expected map, got &{3}"),
        ({"spec": {"containers": {}}}, 500, ".spec.containers: expected list, got &{map[]}"),
        (
            {"spec": {"containers": [{"name": "a", "image": 3}]}},
            500,
            '.spec.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:3}',
        ),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}},
            500,
            '.spec.containers: duplicate entries for key [name="a"]',
        ),
        (
            {"spec": {"containers": ["a"]}},
            500,
            ".spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            {"spec": {"containers": [None]}},
            500,
            ".spec.containers: element 0: associative list with keys may not have a null element",
        ),
        (
            {"spec": {"activeDeadlineSeconds": "x"}},
            500,
            ".spec.activeDeadlineSeconds: expected numeric (int or float), got string",
        ),
        ({"spec": {"hostNetwork": "x"}}, 500, ".spec.hostNetwork: expected boolean, got &{x}"),
        (
            {"spec": {"tolerations": [{"bogus": 1}]}},
            500,
            ".spec.tolerations[0].bogus: field not declared in schema",
        ),
        (
            {"metadata": {"finalizers": ["a", "a"]}},
            500,
            '.metadata.finalizers: duplicate entries for key [="a"]',
        ),
        (
            {"metadata": {"finalizers": [{}]}},
            500,
            ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
        ),
        (
            {"metadata": {"finalizers": [[]]}},
            500,
            ".metadata.finalizers: element 0: not supported: associative list with lists as elements",
        ),
        (
            {"metadata": {"finalizers": [None]}},
            500,
            ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            {"spec": {"hostname": {"a": [1, "x", None]}}},
            500,
            (
                ".spec.hostname: expected string, got &value.valueUnstructured{Value:"
                'map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}}}'
            ),
        ),
        (
            {"spec": {"activeDeadlineSeconds": True}},
            500,
            ".spec.activeDeadlineSeconds: expected numeric (int or float), got bool",
        ),
        (
            {"spec": {"activeDeadlineSeconds": [1]}},
            500,
            ".spec.activeDeadlineSeconds: expected numeric (int or float), got []interface {}",
        ),
        (
            {"spec": {"activeDeadlineSeconds": {}}},
            500,
            ".spec.activeDeadlineSeconds: expected numeric (int or float), got map[string]interface {}",
        ),
        (
            {"spec": {"hostNetwork": 1, "hostPID": 2}},
            500,
            "errors:\n  .spec.hostNetwork: expected boolean, got &{1}\n  .spec.hostPID: expected boolean, got &{2}",
        ),
        (
            {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": {}}}}]}},
            500,
            '.spec.containers[name="a"].resources.limits.cpu: expected any scalar, got &{map[]}',
        ),
    ],
)
def test_a_body_that_does_not_fit_is_refused_in_the_servers_words(body: Raw, code: int, words: str) -> None:
    full = {**body, "metadata": {"name": "p", "namespace": "d", **body.get("metadata", {})}}
    with pytest.raises(ApiError) as caught:
        books.of(kinds.of(Pod)).refuse(full)
    beginning = "" if code == 400 else "failed to create typed patch object (d/p; /v1, Kind=Pod): "
    assert (caught.value.code, caught.value.message) == (code, beginning + words)


def test_a_body_that_fits_is_not_refused() -> None:
    spec = {
        "containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "ports": None}],
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "a"}, {"key": "a"}],
    }
    books.of(kinds.of(Pod)).refuse(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    )
    books.of(kinds.of(ComposableResource)).refuse(resource())


def test_an_item_without_any_key_cannot_be_told_apart() -> None:
    body = {"metadata": {"name": "r"}, "status": {"conditions": [{"status": "True"}]}}
    with pytest.raises(ApiError) as caught:
        books.of(kinds.of(ComposableResource)).refuse(body)
    words = "associative list with keys has an element that omits all key fields"
    assert f'.status.conditions: element 0: {words} ["type"]' in caught.value.message

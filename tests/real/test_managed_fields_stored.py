"""The embedded store names the same managers with the same fields as a real API server after the same writes."""

import random
from collections.abc import Iterator
from typing import Final

import pytest

from jackfield.cluster import bootstrap, schema
from jackfield.cluster.ownership import managers
from jackfield.cluster.patches import json_patch, patch, strategic
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.model.account import ServiceAccount
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.pod import Pod
from jackfield.testing.control_plane import ControlPlane
from real.accounts import put
from real.booked_objects import (
    APPLY,
    CONDITION,
    JSON,
    MERGE,
    RESULT,
    RESULTS,
    SOON,
    STRATEGIC,
    Subject,
    applied,
    made,
    masked,
)
from real.both_servers import Real, collection
from real.waiting import comes_true


@pytest.fixture(scope="module")
def real(plane: ControlPlane) -> Real:
    put(plane, *definitions())
    with plane.api() as api:
        assert comes_true(lambda: api.status(collection(ComposableResource))[0] == 200)
    return Real(plane.kubeconfig)


@pytest.fixture
def subject(real: Real, request: pytest.FixtureRequest) -> Iterator[Subject]:
    one = Subject(real, request.param, f"books-{request.param.__name__.lower()}")
    yield one
    one.remove()


IMAGE: Final[Raw] = {"containers": [{"name": "a", "image": "i:3"}]}
WRITES: Final[dict[type[Object], tuple[tuple[str, str, str, RawValue], ...]]] = {
    Pod: (
        ("labeller", MERGE, "", {"metadata": {"labels": {"a": "1", "made": None}}}),
        ("setter", STRATEGIC, "", {"spec": {"containers": [{"name": "a", "image": "i:2"}]}}),
        ("applier", APPLY, "", {"spec": IMAGE}),
        ("kubelet", STRATEGIC, "status", {"status": {"phase": "Running", "hostIP": "1.2.3.4"}}),
        (
            "applier",
            APPLY,
            "",
            {"metadata": {"annotations": {"x": "1"}, "labels": {"a": "2"}}, "spec": IMAGE},
        ),
        ("editor", JSON, "", [{"op": "add", "path": "/metadata/annotations/y", "value": "2"}]),
        ("applier", APPLY, "", {"metadata": {"annotations": {"y": "2"}}, "spec": IMAGE}),
        ("other", APPLY, "", {"metadata": {"annotations": {"y": "2"}}}),
        ("ender", MERGE, "", {"spec": {"activeDeadlineSeconds": 9}}),
        ("reset", MERGE, "", {"metadata": {"managedFields": [{}]}}),
        ("applier", APPLY, "", {"metadata": {"labels": {"a": "3"}}, "spec": IMAGE}),
    ),
    ResourceClaim: (
        ("scheduler", MERGE, "status", {"status": {"allocation": {"devices": {"results": RESULTS}}}}),
        ("one", APPLY, "status", {"status": {"devices": [{**RESULT, "conditions": [CONDITION]}]}}),
        ("two", APPLY, "status", {"status": {"devices": [{**RESULT, "data": {"a": 1}}]}}),
        ("one", APPLY, "status", {"status": {}}),
        ("labeller", STRATEGIC, "", {"metadata": {"labels": {"b": "1"}, "finalizers": ["t.dev/g"]}}),
        ("scheduler", MERGE, "status", {"status": {"allocation": None}}),
    ),
    ComposableResource: (
        ("operator", MERGE, "status", {"status": {"state": "Attaching"}}),
        ("applier", APPLY, "", {"metadata": {"labels": {"a": "1"}}}),
        ("operator", MERGE, "status", {"status": {"state": "Online", "device_id": "d"}}),
        ("editor", JSON, "", [{"op": "remove", "path": "/metadata/labels/a"}]),
        ("applier", APPLY, "status", {"status": {"error": "e"}}),
    ),
    Lease: (
        (
            "holder",
            MERGE,
            "",
            {"spec": {"holderIdentity": "you", "renewTime": "2026-01-01T00:00:00.000000Z"}},
        ),
        ("applier", APPLY, "", {"spec": {"leaseTransitions": 1}}),
    ),
}


def store_with(kind: type[Object], name: str) -> Store:
    """Return a store with books, and in it the object that a subject is."""
    store = Store(lambda: SOON, random.Random("books"), served=True, books=True)  # noqa: S311 - no cryptography
    bootstrap.furnish(store, SOON)
    store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": "default"}})
    store.create(kind, made(kind, name), Write(manager="creator"))
    return store


def written(store: Store, subject: Subject, step: tuple[str, str, str, RawValue]) -> None:
    """Write to our object as to the real one."""
    manager, content, where, body = step
    how = Write(manager=manager, status=where == "status", force=True)
    kind, key = subject.kind, subject.key
    match content:
        case "application/apply-patch+yaml":
            store.apply(kind, key, applied(subject, body), how)
        case "application/merge-patch+json":
            store.rewrite(kind, key, lambda old: patch.merged(old, body), how)
        case "application/json-patch+json":
            store.rewrite(kind, key, lambda old: json_patch.patched(old, body), how)
        case _:
            node = schema.of(subject.names)
            store.rewrite(kind, key, lambda old: strategic.patched(old, body, node), how)


@pytest.mark.parametrize("subject", WRITES, indirect=True, ids=lambda kind: kind.__name__)
def test_after_the_same_writes_the_embedded_store_names_the_same_managers(subject: Subject) -> None:
    store = store_with(subject.kind, subject.key.name)
    assert masked(store.get(subject.kind, subject.key).managers) == masked(subject.known)
    for step in WRITES[subject.kind]:
        manager, content, where, body = step
        force = "&force=true" if content == APPLY else ""
        sent = applied(subject, body) if content == APPLY else body
        code, answer = subject.write(f"{manager}{force}", sent, content, where)
        assert code == 200, answer.get("message")
        written(store, subject, step)
        ours = managers.managers_of(
            store.get(subject.kind, subject.key).wire()["metadata"].get("managedFields", [])
        )
        assert masked(ours) == masked(subject.known), step

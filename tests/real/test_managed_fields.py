"""Managed fields: after the same writes a real API server and we name the same managers with the same fields.

Objects are those of the real server throughout; at every step our books are continued from its own, and compared.
"""

import random
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from jackfield.cluster import schema
from jackfield.cluster.errors import ApiError
from jackfield.cluster.ownership import books, managers
from jackfield.cluster.ownership.managers import Managers
from jackfield.cluster.patches import json_patch, patch, strategic
from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.lease import Lease
from jackfield.model.pod import Pod
from jackfield.testing.control_plane import ControlPlane
from real.accounts import put
from real.booked_objects import (
    APPLY,
    CONFLICT,
    INVALID,
    JSON,
    MERGE,
    NEW,
    NOW,
    RESULTS,
    STEPS,
    STRATEGIC,
    Subject,
    applied,
    masked,
)
from real.both_servers import Real, collection, with_names
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


OF_ALL: Final = pytest.mark.parametrize("subject", NEW, indirect=True, ids=lambda kind: kind.__name__)
OF_PODS: Final = pytest.mark.parametrize("subject", [Pod], indirect=True, ids=["Pod"])


def before_admission(raw: Raw) -> Raw:
    """Return an object without what the server's plugins add to pods."""
    if raw["kind"] != "Pod":
        return raw
    added = ("priority", "preemptionPolicy", "serviceAccount", "serviceAccountName", "tolerations", "volumes")
    spec = {name: one for name, one in raw["spec"].items() if name not in added}
    spec["containers"] = [
        {name: inner for name, inner in one.items() if name != "volumeMounts"} for one in spec["containers"]
    ]
    return {**raw, "spec": spec}


@OF_ALL
def test_whoever_creates_an_object_owns_the_same(subject: Subject) -> None:
    ours = books.of(subject.names).created(before_admission(subject.raw), subject.me("creator"))
    assert masked(ours) == masked(subject.known)


# --- one write after the other, at random


class Walk:
    """Writes to one object, drawn from a generator of its own."""

    def __init__(self, subject: Subject, seed: str) -> None:
        self._subject = subject
        self._books = books.of(subject.names)
        self._dice = random.Random(seed)  # noqa: S311 - no cryptography

    def step(self) -> None:
        """Write once, in any way, and compare."""
        status = self._subject.names.has_status and self._dice.random() < 0.5
        name = self._dice.choice(("m1", "m2", "m3"))
        body = self._body(status=status)
        where = "status" if status else ""
        if self._dice.random() < 0.4:
            self._apply(name, body, where)
        else:
            self._write(name, body, where)

    def _apply(self, name: str, body: Raw, where: str) -> None:
        subject, force = self._subject, self._dice.random() < 0.6
        raw, known = subject.raw, subject.known
        full = applied(subject, body)
        code, answer = subject.write(f"{name}&force={str(force).lower()}", full, APPLY, where)
        if code == INVALID:
            return
        if code == CONFLICT:
            with pytest.raises(ApiError) as caught:
                self._books.applied(raw, full, subject.me(name, where), known, force=force)
            assert (caught.value.reason, caught.value.message) == (answer["reason"], answer["message"])
            told = {(one["field"], one["message"], one["reason"]) for one in answer["details"]["causes"]}
            assert {(one.field, one.message, one.reason) for one in caught.value.causes} == told
            return
        assert code == 200, answer.get("message")
        outcome = self._books.applied(raw, full, subject.me(name, where), known, force=force)
        self._compare(raw, known, outcome.managers)

    def _write(self, name: str, body: Raw, where: str) -> None:
        subject, raw, known = self._subject, self._subject.raw, self._subject.known
        content = self._dice.choice((JSON, MERGE, STRATEGIC, "application/json"))
        if content == STRATEGIC and not subject.names.group.endswith("k8s.io") and subject.names.group:
            content = MERGE
        sent: RawValue = body
        match content:
            case "application/json-patch+json":
                part = "status" if where else "metadata"
                sent = [
                    {"op": "add", "path": f"/{part}/{member}", "value": value}
                    for member, value in body.get(part, {}).items()
                ]
                if where and "status" not in raw:
                    sent = [{"op": "add", "path": "/status", "value": body["status"]}]
                new = json_patch.patched(raw, sent)
            case "application/strategic-merge-patch+json":
                new = strategic.patched(raw, body, schema.of(subject.names))
            case "application/merge-patch+json":
                new = patch.merged(raw, body)
            case _:
                sent = new = patch.merged(raw, body)
        ours = self._books.updated(raw, new, subject.me(name, where), known)
        code, answer = subject.write(name, sent, content, where)
        assert code == 200, answer.get("message")
        self._compare(raw, known, ours)

    def _compare(self, raw: Raw, known: Managers, ours: Managers) -> None:
        if self._subject.raw["metadata"]["resourceVersion"] == raw["metadata"]["resourceVersion"]:
            ours = managers.settled(known, ours)
        assert masked(ours) == masked(self._subject.known)

    def _some(self, letters: str) -> Raw:
        dice = self._dice
        return {one: dice.choice("12") for one in dice.sample(letters, dice.randint(1, len(letters)))}

    def _body(self, *, status: bool) -> Raw:
        dice = self._dice
        metadata: Raw = {}
        if dice.random() < 0.6:
            metadata["labels"] = self._some("abc")
        if dice.random() < 0.4:
            metadata["annotations"] = self._some("xy")
        if dice.random() < 0.4:
            metadata["finalizers"] = [f"t.dev/{one}" for one in dice.sample("fgh", dice.randint(1, 3))]
        body: Raw = {"metadata": metadata}
        if status:
            body["status"] = self._status()
        elif self._subject.kind is ComposableResource:
            body["spec"] = {**NEW[ComposableResource]["spec"], "force_detach": dice.random() < 0.5}
        return body

    def _status(self) -> Raw:
        dice = self._dice
        match self._subject.kind.__name__:
            case "Pod":
                return {"phase": dice.choice(("Pending", "Running")), "reason": dice.choice("AB")}
            case "ComposableResource":
                return {"state": "Online", "error": dice.choice("12")}
            case _:
                devices = dice.sample("ab", dice.randint(1, 2))
                return {"devices": [self._device(one) for one in devices]}

    def _device(self, name: str) -> Raw:
        dice = self._dice
        conditions = [
            {
                "type": one,
                "status": dice.choice(("True", "False")),
                "reason": "R",
                "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for one in dice.sample(("Ready", "Failed"), dice.randint(1, 2))
        ]
        extra = {"data": {"a": dice.randint(1, 2)}} if dice.random() < 0.3 else {}
        return {"driver": "x.dev", "pool": "p", "device": name, "conditions": conditions, **extra}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("subject", [Pod, ComposableResource, ResourceClaim, Lease], indirect=True)
def test_after_any_writes_the_same_managers_own_the_same(subject: Subject, seed: int) -> None:
    if subject.kind is ResourceClaim:
        allocation = {"status": {"allocation": {"devices": {"results": RESULTS}}}}
        assert subject.write("scheduler", allocation, MERGE, "status")[0] == 200
    walk = Walk(subject, f"{subject.kind.__name__}/{seed}")
    for _ in range(STEPS):
        walk.step()


# --- particular writes


@OF_PODS
def test_the_oldest_of_too_many_writers_are_taken_together(subject: Subject) -> None:
    ours = subject.known
    for number in range(12):
        raw, body = subject.raw, {"metadata": {"labels": {f"l{number}": "1"}}}
        code, _ = subject.write(f"w{number:02}", body, MERGE)
        assert code == 200
        when = next((one.time for one in subject.known if one.name == f"w{number:02}"), NOW)
        me = msgspec.structs.replace(subject.me(f"w{number:02}"), time=when)
        ours = books.of(subject.names).updated(raw, patch.merged(raw, body), me, ours)
        assert managers.managed_fields(ours) == managers.managed_fields(subject.known)
    assert "ancient-changes" in [one.name for one in ours]


ENTRY: Final[Raw] = {
    "manager": "somebody",
    "operation": "Update",
    "apiVersion": "v1",
    "time": "2026-01-01T12:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:made": {}}}, "f:spec": {"f:schedulerName": {}}},
}


@OF_PODS
@pytest.mark.parametrize(
    "said",
    [
        [],
        [{}],
        [{}, {}],
        [ENTRY],
        [ENTRY, {**ENTRY, "manager": "applier", "operation": "Apply"}],
        [{**ENTRY, "operation": "Delete"}],
        [{**ENTRY, "apiVersion": ""}],
        [{**ENTRY, "apiVersion": "v0"}, ENTRY],
        [{**ENTRY, "fieldsType": "FieldsV2"}],
        [{**ENTRY, "manager": ""}],
        [{**ENTRY, "fieldsV1": {"f:a": {"nonsense": {}}}}],
        [{**ENTRY, "fieldsV1": {"f:a": {"x:later": {}}}}],
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", [{"made": "1"}, {"made": "2", "new": "1"}], ids=["plain", "changing"])
def test_what_a_writer_says_of_managers_counts_the_same(
    subject: Subject, said: list[Raw], labels: Raw
) -> None:
    raw, known = subject.raw, subject.known
    new = {**raw, "metadata": {**raw["metadata"], "labels": labels, "managedFields": said}}
    ours = books.of(subject.names).updated(raw, new, subject.me("editor"), known)
    code, answer = subject.write("editor", new, "application/json")
    assert code == 200, answer.get("message")
    assert masked(ours) == masked(subject.known)


@OF_PODS
def test_once_forgotten_managers_come_back_with_the_first_apply(subject: Subject) -> None:
    code, answer = subject.write("editor", {"metadata": {"managedFields": [{}]}}, MERGE)
    assert code == 200, answer.get("message")
    assert subject.known == ()
    subject.write("editor", {"metadata": {"labels": {"made": "2"}}}, MERGE)
    assert subject.known == ()
    raw = subject.raw
    body = applied(subject, {"metadata": {"labels": {"made": "2", "new": "1"}}})
    ours = books.of(subject.names).applied(raw, body, subject.me("applier"), (), force=False)
    code, answer = subject.write("applier", body, APPLY)
    assert code == 200, answer.get("message")
    assert masked(ours.managers) == masked(subject.known)


@OF_PODS
@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"managedFields": []}},
        {"spec": {"bogus": 1}},
        {"spec": 3},
        {"spec": {"containers": {"a": 1}}},
        {"spec": {"containers": [{"name": "a", "image": 3}]}},
        {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}},
        {"spec": {"containers": ["a"]}},
        {"spec": {"containers": [None]}},
        {"spec": {"activeDeadlineSeconds": "x"}},
        {"spec": {"activeDeadlineSeconds": []}},
        {"spec": {"hostNetwork": "x"}},
        {"spec": {"hostNetwork": {"a": [1, True]}}},
        {"spec": {"tolerations": [{"bogus": 1}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": {"a": 1}}}}]}},
        {"metadata": {"finalizers": ["a", "a"]}},
        {"metadata": {"finalizers": [{"a": 1}]}},
        {"metadata": {"finalizers": [["a"]]}},
        {"metadata": {"finalizers": [None]}},
        {"metadata": {"labels": {"a": {"b": "c"}}}},
    ],
    ids=str,
)
def test_a_body_that_does_not_fit_is_refused_in_the_same_words(subject: Subject, body: Raw) -> None:
    metadata = {"name": subject.raw["metadata"]["name"], "namespace": "default", **body.get("metadata", {})}
    full = with_names(Pod, {**body, "metadata": metadata})
    with pytest.raises(ApiError) as caught:
        books.of(subject.names).refuse(full)
    code, answer = subject.write("applier", full, APPLY)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (
        code,
        answer.get("reason", ""),
        answer["message"],
    )

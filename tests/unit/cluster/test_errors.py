"""What the store refuses, it refuses with the Status that a real API server sends."""

import pytest

from jackfield.cluster import errors
from jackfield.cluster.errors import ApiError, Cause
from jackfield.codec import Raw, kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import Key, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod

POD, CLAIM, NODE, RESOURCE = (kinds.of(one) for one in (Pod, ResourceClaim, Node, ComposableResource))
KEY = Key("d", "p")
HEAD: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
STORED = "StorageError: invalid object, Code: 4, Key: "
FAILED = "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b"
WRONG = Cause("spec.a", "Invalid value: 1: no"), Cause("spec.b", "Required value", "FieldValueRequired")

ANSWERS: dict[str, tuple[ApiError, Raw]] = {
    "missing": (
        errors.not_found(POD, KEY),
        {
            "message": 'pods "p" not found',
            "reason": "NotFound",
            "details": {"name": "p", "kind": "pods"},
            "code": 404,
        },
    ),
    "missing in a group": (
        errors.not_found(CLAIM, KEY),
        {
            "message": 'resourceclaims.resource.k8s.io "p" not found',
            "reason": "NotFound",
            "details": {"name": "p", "group": "resource.k8s.io", "kind": "resourceclaims"},
            "code": 404,
        },
    ),
    "taken": (
        errors.already_exists(POD, KEY, deleting=True),
        {
            "message": 'object is being deleted: pods "p" already exists',
            "reason": "AlreadyExists",
            "details": {"name": "p", "kind": "pods"},
            "code": 409,
        },
    ),
    "no name left": (
        errors.no_name_left(POD, KEY),
        {
            "message": 'pods "p" already exists, the server was not able to generate a unique name for the object',
            "reason": "AlreadyExists",
            "details": {"name": "p", "kind": "pods", "retryAfterSeconds": 1},
            "code": 409,
        },
    ),
    "another": (
        errors.another(POD, KEY, "a", "b"),
        {
            "message": f'Operation cannot be fulfilled on pods "p": {STORED}/registry/pods/d/p, {FAILED}',
            "reason": "Conflict",
            "details": {"name": "p", "kind": "pods"},
            "code": 409,
        },
    ),
    "a version that never was": (
        errors.modified(POD, KEY, "x"),
        {"message": 'strconv.ParseUint: parsing "x": invalid syntax', "code": 500},
    ),
    "deleted by another version": (
        errors.undeletable(CLAIM, KEY, "why"),
        {
            "message": 'Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "p": why',
            "reason": "Conflict",
            "details": {"name": "p", "group": "resource.k8s.io", "kind": "ResourceClaim"},
            "code": 409,
        },
    ),
    "wrong in one way": (
        errors.invalid(POD, KEY, WRONG[:1]),
        {
            "message": 'Pod "p" is invalid: spec.a: Invalid value: 1: no',
            "reason": "Invalid",
            "details": {
                "name": "p",
                "kind": "Pod",
                "causes": [
                    {"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "spec.a"}
                ],
            },
            "code": 422,
        },
    ),
    "refused": (
        errors.refused(POD, KEY, "why"),
        {
            "message": 'pods "p" is forbidden: why',
            "reason": "Forbidden",
            "details": {"name": "p", "kind": "pods"},
            "code": 403,
        },
    ),
    "nonsense": (errors.bad_request("why"), {"message": "why", "reason": "BadRequest", "code": 400}),
    "our own mistake": (
        errors.internal("why"),
        {
            "message": "Internal error occurred: why",
            "reason": "InternalError",
            "details": {"causes": [{"message": "why"}]},
            "code": 500,
        },
    ),
}


@pytest.mark.parametrize(("error", "status"), ANSWERS.values(), ids=ANSWERS)
def test_an_error_is_told_as_a_status(error: ApiError, status: Raw) -> None:
    assert error.status() == {**HEAD, **status}


def test_a_message_says_everything_wrong_once_and_details_say_it_as_often_as_it_was_found() -> None:
    error = errors.invalid(CLAIM, KEY, (*WRONG, WRONG[0]))
    listed = "[spec.a: Invalid value: 1: no, spec.b: Required value]"
    assert error.message == f'ResourceClaim.resource.k8s.io "p" is invalid: {listed}'
    assert len(error.causes) == 3


@pytest.mark.parametrize(
    ("kind", "path"),
    [(NODE, "/registry/minions/p"), (RESOURCE, "/registry/cro.hpsys.ibm.ie.com/composableresources/p")],
)
def test_a_real_servers_storage_has_places_of_its_own(kind: kinds.Kind, path: str) -> None:
    assert f"Key: {path}," in errors.another(kind, named("p"), "a", "b").message


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", '"a"'),
        ('a"b\\\n\x01\x7f', r'"a\"b\\\n\x01\x7f"'),
        ("ä\u200b\U000e0001", '"ä\\u200b\\U000e0001"'),
        (True, "true"),
        (None, "null"),
        (1, "1"),
        ({"a": ["<b>&"]}, r'{"a":["\u003cb\u003e\u0026"]}'),
    ],
)
def test_a_value_is_shown_as_go_shows_it(value: object, shown: str) -> None:
    assert errors.shown(value) == shown

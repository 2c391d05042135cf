"""Who am I, and what may I do: everything, to whoever has the token.

Knows the reviews that clients ask for. Must not know any rule: there is none.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from jackfield.cluster.face import bodies
from jackfield.cluster.face.calls import Answer, Call, json
from jackfield.codec import Raw
from jackfield.model.names import Time

USER: Final = "admin"
GROUPS: Final = ("system:masters", "system:authenticated")
WHY: Final = "the embedded cluster allows everything to whoever has its token"
_ALL: Final = ["*"]
_AUTHORIZATION: Final = "/apis/authorization.k8s.io/v1"
_AUTHENTICATION: Final = "/apis/authentication.k8s.io/v1"


def answer(call: Call, now: Time) -> Answer | None:
    """Return the answer to a review; None if the path is that of none."""
    found = _REVIEWS.get(call.path)
    if found is None:
        return None
    kind, status = found
    asked = bodies.read(call, kind) if call.body.strip() else {}
    body: Raw = {
        "kind": kind,
        "apiVersion": call.path.removeprefix("/apis/").rpartition("/")[0],
        "metadata": {"creationTimestamp": now} if kind == "SelfSubjectReview" else {},
    }
    if "spec" in asked:
        body["spec"] = asked["spec"]
    return json({**body, "status": status()}, HTTPStatus.CREATED)


def _allowed() -> Raw:
    return {"allowed": True, "reason": WHY}


def _rules() -> Raw:
    return {
        "resourceRules": [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}],
        "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
        "incomplete": False,
    }


def _user() -> Raw:
    return {"userInfo": {"username": USER, "groups": list(GROUPS)}}


_REVIEWS: Final[Mapping[str, tuple[str, Callable[[], Raw]]]] = {
    f"{_AUTHORIZATION}/selfsubjectaccessreviews": ("SelfSubjectAccessReview", _allowed),
    f"{_AUTHORIZATION}/subjectaccessreviews": ("SubjectAccessReview", _allowed),
    f"{_AUTHORIZATION}/selfsubjectrulesreviews": ("SelfSubjectRulesReview", _rules),
    f"{_AUTHENTICATION}/selfsubjectreviews": ("SelfSubjectReview", _user),
}

"""A call → the words that it is counted by: Kubernetes' own verb, and the resource.

Knows paths. Must not know who counts. Whatever is asked for, the answers are few: what is no kind of the model is
`other`.
"""

from typing import Final

from jackfield.codec import kinds
from jackfield.kube.transport import APPLY_PATCH, Call

OTHER: Final = "other"
RESOURCES: Final = frozenset(one.plural for one in kinds.KINDS)
_VERBS: Final = {"POST": "create", "PUT": "update", "DELETE": "delete"}
_NAMESPACED: Final = 3
"""From so many parts on, a path that begins with `namespaces` leads to something in one."""


def spoken(call: Call) -> tuple[str, str]:
    """Return the verb and the resource of a call."""
    parts = call.path.strip("/").split("/")
    inner = parts[2:] if parts[0] == "api" else parts[3:]
    if inner[:1] == ["namespaces"] and len(inner) >= _NAMESPACED:
        inner = inner[2:]
    resource = inner[0] if inner and inner[0] in RESOURCES else OTHER
    return _verb(call, named=len(inner) > 1), resource


def _verb(call: Call, *, named: bool) -> str:
    match call.method:
        case "GET" if call.params.get("watch") == "true":
            return "watch"
        case "GET":
            return "get" if named else "list"
        case "PATCH":
            return "apply" if call.content_type == APPLY_PATCH else "patch"
        case method:
            return _VERBS.get(method, OTHER)

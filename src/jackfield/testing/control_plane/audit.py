"""Who asked the API server what, read from its audit log.

Knows the log's format. Must not know who ought to ask what.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

REASON = "authorization.k8s.io/reason"
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Entry(msgspec.Struct, frozen=True):
    """One request that was answered."""

    verb: str
    user: str
    user_agent: str
    resource: str
    """With its subresource, as in `resourceclaims/status`."""
    namespace: str
    name: str
    code: int
    allowed_by: str = ""
    """The role that allowed it, as the API server says; empty where RBAC was not asked, or said no."""


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Object(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    stage: str
    verb: str
    user: _User = _User()
    user_agent: str = ""
    object_ref: _Object = _Object()
    response_status: _Answer = _Answer()
    annotations: Mapping[str, str] = {}


def entries(log: Path) -> tuple[Entry, ...]:
    """Return what was answered, in the order of the answers."""
    if not log.exists():
        return ()
    return tuple(_entry(line) for line in _lines(log) if line.stage == "ResponseComplete")


def _lines(log: Path) -> Iterator[_Line]:
    """Read the log; a server that is killed leaves half a line, to which the next one adds its first."""
    for line in _whole_lines(log):
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=_Line)


def _whole_lines(log: Path) -> list[bytes]:
    """Return the lines that are written to their end."""
    return log.read_bytes().split(b"\n")[:-1]


def _role(reason: str) -> str:
    """Return the role in the words: RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "s/ns"."""
    _, _, rest = reason.partition('Role "')
    return rest.partition('"')[0]


def _entry(line: _Line) -> Entry:
    what = line.object_ref
    return Entry(
        verb=line.verb,
        user=line.user.username,
        user_agent=line.user_agent,
        resource=f"{what.resource}/{what.subresource}" if what.subresource else what.resource,
        namespace=what.namespace,
        name=what.name,
        code=line.response_status.code,
        allowed_by=_role(line.annotations.get(REASON, "")),
    )

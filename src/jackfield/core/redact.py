"""Objects and texts → the same without what must not leave the cluster.

For a bug report that is sent to strangers. Whole fields are left out where anything may stand (commands, environments,
opaque configuration); elsewhere what looks like a secret is. Knows where secrets hide. Must not know who reads.
"""

import re
from collections.abc import Mapping
from typing import Final

LEFT_OUT: Final = "<left out>"
_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|credential|authorization|cookie|api[-_]?key|private[-_]?key|bearer", re.IGNORECASE
)
_ONLY_NAMED: Final = re.compile(
    r"(file|path|variable|name|ref|namespace|kind|type|seconds|url)$", re.IGNORECASE
)
"""How names end that say where a secret is, and not the secret."""
_USER_IN_URL: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/@\s\"']+@", re.IGNORECASE)
_BEARER: Final = re.compile(r"(?P<word>bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_TICKET: Final = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*")
"""A JSON Web Token, as service accounts have them."""
_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)
_ASSIGNED: Final = re.compile(
    r"(?P<name>[\w-]*(?:token|secret|passw(?:or)?d|api[-_]?key))(?P<sign>[\"']?\s*[=:]\s*[\"']?)"
    r"(?!<left out>)[^\s\"',;&]{4,}",
    re.IGNORECASE,
)
_NOISE: Final = ("managedFields", "selfLink")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The object once more, as somebody wrote it, secrets and all."""

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name", "image", "resources"),
    "initContainers": ("name", "image", "resources"),
}
_DROPPED: Final = ("volumes", "env", "envFrom", "imagePullSecrets", "addresses", "images", "hostAliases")


def text(words: str) -> str:
    """Return a text without what looks like a secret."""
    for pattern, replacement in (
        (_KEY, LEFT_OUT),
        (_USER_IN_URL, rf"\g<scheme>{LEFT_OUT}@"),
        (_BEARER, rf"\g<word> {LEFT_OUT}"),
        (_TICKET, LEFT_OUT),
        (_ASSIGNED, rf"\g<name>\g<sign>{LEFT_OUT}"),
    ):
        words = pattern.sub(replacement, words)
    return words


def value(one: object, name: str = "") -> object:
    """Return a value, as JSON has it, without what must not be seen; `name` is what it is called."""
    match one:
        case str():
            return LEFT_OUT if _hides(name) and one else text(one)
        case Mapping():
            return _mapping(one, name)
        case list() | tuple():
            kept = _KEPT.get(name)
            return [_only(each, kept) if kept else value(each, name) for each in one]
        case _:
            return one


def _mapping(one: Mapping[str, object], name: str) -> object:
    if name == "opaque":
        return {key: LEFT_OUT if key == "parameters" else value(each, key) for key, each in one.items()}
    if name == "annotations":
        one = {key: each for key, each in one.items() if key != _LAST_APPLIED}
    return {
        str(key): value(each, str(key))
        for key, each in one.items()
        if key not in _NOISE and key not in _DROPPED
    }


def _only(one: object, kept: tuple[str, ...]) -> object:
    if not isinstance(one, Mapping):
        return LEFT_OUT
    return {key: value(one[key], key) for key in kept if key in one}


def _hides(name: str) -> bool:
    return bool(_SECRET_NAME.search(name)) and not _ONLY_NAMED.search(name)

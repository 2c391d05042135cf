"""Calls that are wrong in every way a call can be; the same seed, the same calls.

Knows how to spoil a good call: its method, path, query, headers and body. Must not know what becomes of it.
"""

import random
from collections.abc import Mapping
from typing import Final

import msgspec

from hostile import corpus
from jackfield.cluster.face.calls import Call
from jackfield.codec import RawValue
from oracle.mangling import bitten, spoilt

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "", "\udcff")
CONTENT_TYPES: Final = (
    "",
    "application/json",
    "application/yaml",
    corpus.MERGE,
    corpus.STRATEGIC,
    corpus.JSON_PATCH,
    corpus.APPLY,
    "application/apply-patch+cbor",
    "application/vnd.kubernetes.protobuf",
    "text/plain;charset=\ufffd",
    ";;;",
)
ACCEPTS: Final = (
    "",
    "*/*",
    corpus.TABLE,
    corpus.METADATA,
    "application/json;as=Table;v=v9;g=meta.k8s.io",
    "application/json;as=",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    ",".join(["text/html;q=0.1"] * 200),
    ";=;=,;as=Table",
)
PARTS: Final = (
    "..",
    "%2e%2e",
    "%2F",
    "",
    "%00",
    "a%0a",
    "%FF",
    "a" * 300,
    "status",
    "finalize",
    "binding",
    "namespaces",
    "default",
    "pods",
    "v1",
    "log",
    "ä",
    "a.b",
    "-",
    "%",
    "a?b",
    "*",
)
OPTIONS: Final = (
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "includeObject",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "pretty",
)
VALUES: Final = (
    "",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "9" * 30,
    "9" * 5000,
    "9223372036854775808",
    "1e3",
    " 1",
    "٣",
    "²",
    "All",
    "Strict",
    "Warn",
    "Ignore",
    "Object",
    "Metadata",
    "None",
    "Exact",
    "NotOlderThan",
    "Background",
    "Foreground",
    "Orphan",
    "\0",
    "\n",
    "x" * 129,
    "metadata.name=a",
    "spec.nodeName!=",
    "status.phase=Running,spec.nodeName=a",
    "a in (b",
    "a in ()",
    "a>1",
    "a>x",
    "a>" + "9" * 5000,
    "!" * 200,
    "=" * 50,
    "," * 200,
    "a=b," * 100,
    "app",
    "eyJpZCI6MSwic3RhcnQiOjEsInZlcnNpb24iOjF9",
    "eyJpZCI6LTEsInN0YXJ0IjotMSwidmVyc2lvbiI6LTF9",
    "\ufffd\U0010ffff",
)


class Spoilt:
    """Draws one call after the other."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._good = corpus.calls()

    def call(self, number: int) -> Call:
        """Return a call that hardly makes sense; one in ten does."""
        chance = random.Random(f"{self._seed}/call/{number}")  # noqa: S311 - chance in tests is not cryptography
        call = chance.choice(self._good)
        for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 2, 3, 5, 8))):
            call = _spoilt(chance, call)
        return call


def _spoilt(chance: random.Random, call: Call) -> Call:
    way = chance.choice(("body", "body", "body", "body", "bytes", "query", "query", "path", "rest", "verb"))
    match way:
        case "body":
            return msgspec.structs.replace(call, body=_body(chance, call.body))
        case "bytes":
            body = bitten(chance, call.body) if call.body else chance.randbytes(chance.choice((1, 40, 2000)))
            return msgspec.structs.replace(call, body=body)
        case "query":
            return msgspec.structs.replace(call, query=_query(chance, call.query))
        case "path":
            return msgspec.structs.replace(call, path=_path(chance, call.path))
        case "verb":
            return msgspec.structs.replace(call, method=chance.choice(METHODS))
        case _:
            return msgspec.structs.replace(
                call,
                content_type=chance.choice((call.content_type, *CONTENT_TYPES)),
                accept=chance.choice((call.accept, *ACCEPTS)),
                agent=chance.choice((call.agent, "", "\ufffd\0", "x" * 5000, "/")),
            )


def _body(chance: random.Random, body: bytes) -> bytes:
    try:
        value: RawValue = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    if isinstance(value, dict):
        return msgspec.json.encode(spoilt(chance, value))
    if isinstance(value, list) and value:
        return msgspec.json.encode(spoilt(chance, {"operations": value}).get("operations"))
    return body


def _query(chance: random.Random, query: Mapping[str, str]) -> dict[str, str]:
    changed = dict(query)
    if changed and chance.random() < 0.2:
        del changed[chance.choice(sorted(changed))]
    else:
        changed[chance.choice(OPTIONS)] = chance.choice(VALUES)
    return changed


def _path(chance: random.Random, path: str) -> str:
    parts = path.split("/")
    index = chance.randrange(len(parts) + 1)
    match chance.choice(("replace", "replace", "insert", "drop", "append", "bite")):
        case "insert":
            parts.insert(index, chance.choice(PARTS))
        case "drop":
            del parts[index : index + 1]
        case "append":
            parts.append(chance.choice(PARTS))
        case "bite":
            return bitten(chance, path.encode()).decode(errors="replace")
        case _:
            parts[index : index + 1] = [chance.choice(PARTS)]
    return "/".join(parts)

"""What Go clients send in protobuf is read as if they had sent JSON; what is no protobuf is refused, whatever it is."""

import random
from collections.abc import Iterator

import pytest

from jackfield.cluster.face import protobuf
from jackfield.cluster.face.bodies import PROTOBUF
from jackfield.cluster.face.calls import Call
from jackfield.codec import Raw
from unit.cluster.face.faces import MAPS, RESOURCES, Face, told

Said = int | str | bytes | list[tuple[int, "Said"]]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def message(fields: list[tuple[int, Said]]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Said) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = message(value) if isinstance(value, list) else value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(version: str, kind: str, fields: list[tuple[int, Said]]) -> bytes:
    return protobuf.MAGIC + message([(1, [(1, version), (2, kind)]), (2, message(fields)), (3, ""), (4, "")])


NAMED: tuple[int, Said] = (1, [(1, "a"), (2, ""), (3, "default"), (7, 0), (8, [])])
META: Raw = {"name": "a", "namespace": "default"}
READ: dict[str, tuple[str, str, list[tuple[int, Said]], Raw]] = {
    "text": ("v1", "ConfigMap", [NAMED, (2, [(1, "x"), (2, "1")])], {"metadata": META, "data": {"x": "1"}}),
    "an empty text of a map": ("v1", "ConfigMap", [(2, [(1, "x")])], {"data": {"x": ""}}),
    "bytes": (
        "v1",
        "Secret",
        [(2, [(1, "x"), (2, b"me")]), (3, "Opaque")],
        {"data": {"x": "bWU="}, "type": "Opaque"},
    ),
    "a pointer to nothing is said": ("v1", "Secret", [(3, ""), (5, 0)], {"immutable": False}),
    "a time, and no time": (
        "v1",
        "Namespace",
        [(1, [(1, "a"), (8, [(1, 1767225600), (2, 0)]), (9, [])])],
        {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}},
    ),
    "a small time": (
        "coordination.k8s.io/v1",
        "Lease",
        [(2, [(1, "me"), (2, 15), (4, [(1, 1767225600), (2, 120_000_000)])])],
        {
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-01T00:00:00.120000Z",
            }
        },
    ),
    "a number below zero": (
        "v1",
        "DeleteOptions",
        [(1, -1), (4, "Orphan")],
        {"gracePeriodSeconds": -1, "propagationPolicy": "Orphan"},
    ),
    "what is inlined, a quantity, a port by name and by number": (
        "v1",
        "Pod",
        [
            (
                2,
                [
                    (1, [(1, "v"), (2, [(2, [(1, "")])])]),
                    (
                        2,
                        [
                            (1, "c"),
                            (8, [(1, [(1, "cpu"), (2, [(1, "100m")])])]),
                            (10, [(1, [(2, [(1, "/"), (2, [(1, 1), (2, 0), (3, "http")])])]), (2, 0)]),
                            (11, [(1, [(2, [(2, [(1, 0), (2, 80), (3, "")])])])]),
                        ],
                    ),
                ],
            )
        ],
        {
            "spec": {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "c",
                        "resources": {"limits": {"cpu": "100m"}},
                        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
                        "readinessProbe": {"httpGet": {"port": 80}},
                    }
                ],
            }
        },
    ),
    "JSON within": (
        "v1",
        "ConfigMap",
        [(1, [(17, [(1, "me"), (2, "Update"), (7, [(1, b'{"f:data":{}}')])])])],
        {
            "metadata": {
                "managedFields": [{"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {}}}]
            }
        },
    ),
    "lists with a name of their own": (
        "authentication.k8s.io/v1",
        "SelfSubjectReview",
        [(2, [(1, [(1, "me"), (4, [(1, "k"), (2, [(1, "a"), (1, "b")])])])])],
        {"status": {"userInfo": {"username": "me", "extra": {"k": ["a", "b"]}}}},
    ),
    "what nobody knows": ("v1", "ConfigMap", [(99, "?"), (1, [(1, "a")])], {"metadata": {"name": "a"}}),
}


@pytest.mark.parametrize(("version", "kind", "fields", "said"), READ.values(), ids=READ)
def test_protobuf_says_what_json_would_say(
    version: str, kind: str, fields: list[tuple[int, Said]], said: Raw
) -> None:
    assert protobuf.object_of(body(version, kind, fields)) == {"apiVersion": version, "kind": kind, **said}


GOOD = body("v1", "ConfigMap", [NAMED, (2, [(1, "x"), (2, "1")])])
BAD = {
    "nothing": b"",
    "JSON": b'{"kind": "ConfigMap"}',
    "a kind that is not known": body("v1", "Spoon", []),
    "a custom kind": body("cro.hpsys.ibm.ie.com/v1alpha1", "ComposableResource", []),
    "no UTF-8": body("v1", "ConfigMap", [(1, [(1, b"\xff")])]),
    "a number for a text": body("v1", "ConfigMap", [(1, 3)]),
    "a text for a number": body("v1", "Secret", [(5, "yes")]),
    "a length beyond its end": protobuf.MAGIC + b"\x0a\x7f",
    "a number without end": protobuf.MAGIC + b"\xff" * 20,
    "an unknown wire type": protobuf.MAGIC + b"\x0b",
    "a time out of reach": body("v1", "Namespace", [(1, [(8, [(1, 2**62)])])]),
    "bad JSON within": body("v1", "ConfigMap", [(1, [(17, [(7, [(1, b"{")])])])]),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_no_protobuf_of_ours_is_refused(text: bytes) -> None:
    with pytest.raises(protobuf.UnreadableError):
        protobuf.object_of(text)


def mangled(count: int) -> Iterator[bytes]:
    chance = random.Random("protobuf")  # noqa: S311 - a test's chance
    for _ in range(count):
        text = bytearray(GOOD)
        for _ in range(chance.randint(1, 4)):
            text[chance.randrange(4, len(text))] = chance.randrange(256)
        yield bytes(text[: chance.randint(4, len(text))])


def test_nothing_but_a_refusal_comes_of_any_bytes() -> None:
    refused = 0
    for text in mangled(5_000):
        try:
            protobuf.object_of(text)
        except protobuf.UnreadableError:
            refused += 1
    assert 0 < refused < 5_000


def test_an_object_in_protobuf_is_created_and_deleted_as_it_says() -> None:
    face = Face()
    made = face.ask(Call("POST", MAPS, {}, GOOD, PROTOBUF))
    assert (made.code, told(made)["data"]) == (201, {"x": "1"})
    dry = body("v1", "DeleteOptions", [(5, "All")])
    assert face.ask(Call("DELETE", f"{MAPS}/a", {}, dry, PROTOBUF)).code == 200
    assert face.get(f"{MAPS}/a").code == 200
    assert face.ask(Call("DELETE", f"{MAPS}/a", {}, body("v1", "DeleteOptions", []), PROTOBUF)).code == 200
    assert face.get(f"{MAPS}/a").code == 404


@pytest.mark.parametrize(
    ("path", "text", "code"), [(MAPS, b"k8s", 400), (RESOURCES, GOOD, 415), (MAPS, b"", 400)]
)
def test_what_cannot_be_read_is_the_callers_mistake(path: str, text: bytes, code: int) -> None:
    face = Face()
    assert face.ask(Call("POST", path, {}, text, PROTOBUF)).code == code
    assert face.mistakes == []

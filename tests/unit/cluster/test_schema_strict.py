"""Unknown fields and fields that stand twice are named as the real API server names them."""

import msgspec
import pytest

from jackfield.cluster import schema
from jackfield.codec import Raw, kinds
from jackfield.codec.kinds import Kind


def kind(name: str) -> Kind:
    (found,) = (one for one in kinds.KINDS if one.kind == name)
    return found


POD = [
    ("{}", ()),
    ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a"}]}}', ()),
    ('{"spec":{"containers":[{"imag":"x"}]}}', ('unknown field "spec.containers[0].imag"',)),
    ('{"spec":{"Containers":[]}}', ('unknown field "spec.Containers"',)),
    ('{"spec":{"zz":1,"aa":2}}', ('unknown field "spec.zz"', 'unknown field "spec.aa"')),
    ('{"spec":{"nodeSelector":{"x":"1","x":"2"}}}', ('duplicate field "spec.nodeSelector.x"',)),
    ('{"metadata":{},"metadata":{}}', ('duplicate field "metadata"',)),
    ('{"metadata":{"labels":{"a":"b"},"labels":{"c":"d"}}}', ('duplicate field "metadata.labels"',)),
    # What is unknown is told once, and what is in it not at all.
    ('{"spec":{"zz":{"a":1,"a":2},"zz":3}}', ('unknown field "spec.zz"',)),
    # What is said for the third time is not told again.
    ('{"kind":"Pod","kind":"Pod","kind":"Pod"}', ('duplicate field "kind"',)),
    # In what belongs to others nothing is unknown.
    ('{"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}', ()),
    (
        '{"spec":{"containers":[{"imag":"x","imag":"y","image":"q","image":"q","foo":{"a":1,"a":2}}],"zz":1,"aa":2}}',
        (
            'unknown field "spec.containers[0].imag"',
            'duplicate field "spec.containers[0].image"',
            'unknown field "spec.containers[0].foo"',
            'unknown field "spec.zz"',
            'unknown field "spec.aa"',
        ),
    ),
]
ESCAPED = [
    (
        r'{"q\"x":1,"ü":2,"\n":3,"\u0001":4,"\u200b":5}',
        (
            r'unknown field "q\"x"',
            'unknown field "ü"',
            r'unknown field "\n"',
            r'unknown field "\x01"',
            r'unknown field "\u200b"',
        ),
    ),
]


@pytest.mark.parametrize(("body", "expected"), [*POD, *ESCAPED])
def test_strict_decoding_tells_in_the_order_of_the_body(body: str, expected: tuple[str, ...]) -> None:
    assert schema.strict.errors(kind("Pod"), body.encode()) == expected


@pytest.mark.parametrize(("body", "expected"), POD)
def test_unknown_fields_are_found_in_objects_too(body: str, expected: tuple[str, ...]) -> None:
    unknown = tuple(one[len('unknown field "') : -1] for one in expected if one.startswith("unknown"))
    assert schema.strict.unknown_fields(kind("Pod"), msgspec.json.decode(body)) == unknown


RESOURCE = [
    ("{}", ()),
    ('{"metadata":{"name":"a"},"spec":{"type":"gpu"},"status":{"state":""}}', ()),
    (
        '{"zoo":{"b":1,"b":2},"foo":1,"metadata":{"name":"a","nam":2,"abc":3,"name":"a"},"spec":{"z":1,"b":2}}',
        (
            'duplicate field "zoo.b"',
            'duplicate field "metadata.name"',
            'unknown field "metadata.abc"',
            'unknown field "metadata.nam"',
            'unknown field "foo"',
            'unknown field "spec.b"',
            'unknown field "spec.z"',
            'unknown field "zoo"',
        ),
    ),
    (
        '{"status":{"conditions":[{"x":1,"a":2}]}}',
        ('unknown field "status.conditions[0].a"', 'unknown field "status.conditions[0].x"'),
    ),
    # Paths are sorted as texts.
    (
        f'{{"status":{{"conditions":[{",".join(["{}"] * 2)},{{"x":1}},{",".join(["{}"] * 7)},{{"x":1}}]}}}}',
        ('unknown field "status.conditions[10].x"', 'unknown field "status.conditions[2].x"'),
    ),
    # What was taken back is not judged.
    ('{"spec":{"a":1},"spec":{"type":"gpu"}}', ('duplicate field "spec"',)),
    # Where there should be a text, all that is in an object is unknown.
    ('{"spec":{"type":{"a":1}}}', ('unknown field "spec.type.a"',)),
    ('{"spec":{"type":[{"a":1}]}}', ('unknown field "spec.type[0].a"',)),
    ('{"spec":[{"type":"gpu"}]}', ('unknown field "spec[0].type"',)),
    # Paths are not quoted.
    (r'{"q\"x":1}', ('unknown field "q"x"',)),
]


@pytest.mark.parametrize(("body", "expected"), RESOURCE)
def test_our_own_kinds_are_judged_by_their_definitions(body: str, expected: tuple[str, ...]) -> None:
    assert schema.strict.errors(kind("ComposableResource"), body.encode()) == expected


def test_no_more_than_a_hundred_are_told() -> None:
    body = msgspec.json.encode({f"a{number}": number for number in range(500)})
    assert len(schema.strict.errors(kind("Pod"), body)) == 100
    assert len(schema.strict.unknown_fields(kind("Pod"), msgspec.json.decode(body))) == 100
    assert len(schema.strict.errors(kind("ComposableResource"), body)) == 500


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"x"', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_object_has_no_fields(body: bytes) -> None:
    assert schema.strict.errors(kind("Pod"), body) == ()
    assert schema.strict.duplicate_fields(body) == ()


def test_fields_that_stand_twice_are_found_whatever_the_body_is() -> None:
    body = b'{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":2}],"a":1}'
    assert schema.strict.duplicate_fields(body) == ("a.b", "c[1].d", "a")


# --- YAML


YAML = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  zoo: 1
  name: b
spec:
  zz: 1
  aa: 2
  containers:
  - name: a
    image: b
    image: c
    aa: 1
    aa: 2
"""


def test_yaml_tells_the_lines_of_what_stands_twice_and_sorts_what_is_unknown() -> None:
    raw: Raw = {
        "metadata": {"name": "b", "zoo": 1},
        "spec": {"zz": 1, "aa": 2, "containers": [{"name": "a", "image": "c", "aa": 2}]},
    }
    found = schema.strict.yaml_errors(kind("Pod"), YAML.encode(), raw)
    lines = ('line 6: key "name"', 'line 13: key "image"', 'line 15: key "aa"')
    assert found == (
        "\n  ".join(("yaml: unmarshal errors:", *(f"{one} already set in map" for one in lines))),
        'unknown field "metadata.zoo"',
        'unknown field "spec.aa"',
        'unknown field "spec.containers[0].aa"',
        'unknown field "spec.zz"',
    )
    assert schema.strict.warnings(found) == (
        *(f"{one} already set in map" for one in lines),
        *found[1:],
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"a: 1\nb: 2\n", ()),
        (b"a:\n  b: 1\n  b: 2\na: 3\n", ('line 3: key "b"', 'line 4: key "a"')),
        (b"0: 1\n0: 2\n", ("line 2: key 0",)),
        (b"a: &x {b: 1, b: 2}\nc: *x\nd: *x\n", ('line 1: key "b"',)),
        (b"? [a]\n: 1\n? [a]\n: 2\n", ()),
        (b"", ()),
        (b"{", ()),
    ],
)
def test_keys_that_stand_twice_in_yaml_are_told_by_their_lines(
    body: bytes, expected: tuple[str, ...]
) -> None:
    found = schema.strict.yaml_errors(kind("Pod"), body, {})
    told = tuple(f"{one} already set in map" for one in expected)
    assert schema.strict.warnings(found) == told


# --- pruning


@pytest.mark.parametrize(
    ("name", "raw", "kept"),
    [
        ("Pod", {"spec": {"a": 1, "hostname": "h"}, "b": 2}, {"spec": {"hostname": "h"}}),
        ("Pod", {"spec": {"containers": [{"a": 1}]}}, {"spec": {"containers": [{}]}}),
        ("ComposableResource", {"spec": {"a": 1}, "metadata": {"b": 2}}, {"spec": {}, "metadata": {}}),
        ("ComposableResource", {"status": {"conditions": [{"a": 1}]}}, {"status": {"conditions": [{}]}}),
    ],
)
def test_unknown_fields_are_dropped(name: str, raw: Raw, kept: Raw) -> None:
    before = msgspec.json.encode(raw)
    assert schema.strict.pruned(kind(name), raw) == kept
    assert msgspec.json.encode(raw) == before


def test_what_has_no_unknown_fields_stays_the_same() -> None:
    raw: Raw = {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "b"}], "nodeSelector": {"c": "d"}},
    }
    kept = schema.strict.pruned(kind("Pod"), raw)
    assert kept is raw
    changed = schema.strict.pruned(kind("Pod"), {**raw, "a": 1})
    assert changed["spec"] is raw["spec"]

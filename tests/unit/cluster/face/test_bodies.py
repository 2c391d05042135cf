"""What bodies say, and which say nothing."""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.face import bodies
from jackfield.cluster.face.calls import Call

YAML = "application/yaml"


def read(body: bytes, content_type: str = "") -> object:
    return bodies.read(Call("POST", "/", body=body, content_type=content_type), "Pod")


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (b'{"a":[1,null,"x"]}', "", {"a": [1, None, "x"]}),
        (b'{"a":1}', "Application/JSON; charset=utf-8", {"a": 1}),
        (b"a:\n- 1\n- x: 2001-01-01\n", YAML, {"a": [1, {"x": "2001-01-01"}]}),
        (b"{a: 1, b: 1.5, c: yes}", YAML, {"a": 1, "b": 1.5, "c": True}),
    ],
)
def test_json_and_yaml_are_read(body: bytes, content_type: str, said: object) -> None:
    assert read(body, content_type) == said


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"", "", 400),
        (b"{", "", 400),
        (b"[]", "", 400),
        (b"null", "", 400),
        (b'{"a":"\xff"}', "", 400),
        (b'{"a":' + b"9" * 10_000 + b"}", "", 400),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "", 400),
        (b'{"a":' * 10_000, "", 400),
        (b"[" * 100_000, YAML, 400),
        (b"- " * 100_000, YAML, 400),
        (b"a: " + b"[" * 20_000 + b"]" * 20_000, YAML, 400),
        (b"a: &x 1\nb: *x\n", YAML, 400),
        (b"a: 1" + b":1" * 300, YAML, 400),
        (b"a: " + b"9" * 500, YAML, 400),
        (b"a: [" + b"1," * 100_000 + b"]", YAML, 400),
        (b"a: !!python/object:os.system {}", YAML, 400),
        (b"a: [", YAML, 400),
        (b"? [a]\n: b\n", YAML, 400),
        (b"{}", "text/html", 415),
        (b" " * (3 * 1024 * 1024 + 1), "", 413),
        (b" " * (3 * 1024 * 1024 + 1), YAML, 413),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, content_type: str, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        read(body, content_type)
    assert refused.value.code == code


def test_depth_is_counted_in_objects_and_lists() -> None:
    assert bodies.shallow({"a": [{"b": 1}]}, 3)
    assert not bodies.shallow({"a": [{"b": 1}]}, 2)
    assert bodies.shallow("words", 0)

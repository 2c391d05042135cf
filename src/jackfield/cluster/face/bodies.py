"""What a call's body says, believed only as far as it can be read.

Knows JSON, YAML and protobuf, and their limits. Must not know what an object means.
"""

from typing import Final

import msgspec
import yaml

from jackfield.cluster import errors
from jackfield.cluster.face import protobuf, status
from jackfield.cluster.face.calls import JSON, Call
from jackfield.codec import Raw, RawValue
from jackfield.model import composition

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
ACCEPTED: Final = (JSON, YAML, PROTOBUF)
ACCEPTED_OF_CUSTOM: Final = (JSON, YAML)
_CUSTOM: Final = f"/apis/{composition.GROUP}/"
BYTES_MAX: Final = 3 * 1024 * 1024
DEPTH_MAX: Final = 128
"""How deep objects may lie in one another; the deepest of Kubernetes' own kinds needs a fifth of it."""

SHOWN_MAX: Final = 30


YAML_NODES_MAX: Final = 100_000
"""Values in one YAML body: reading them takes a second, in which nobody else is served. JSON has no such limit."""
YAML_DIGITS_MAX: Final = 400


class _UnacceptableError(yaml.YAMLError):
    """YAML that would blow up, or pile up, to any size."""


class _Loader(yaml.CSafeLoader):
    """Reads YAML, but no number that would take minutes to compute."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> RawValue:
        return super().construct_yaml_int(_short(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> RawValue:
        return super().construct_yaml_float(_short(node))


def _short(node: yaml.ScalarNode) -> yaml.ScalarNode:
    if len(node.value) > YAML_DIGITS_MAX:
        raise _UnacceptableError("a number has too many digits")
    return node


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def media_type(header: str) -> str:
    """Return the type that a header names, without its parameters."""
    return header.split(";", 1)[0].strip().lower()


def read(call: Call, what: str) -> Raw:
    """Return the object in the body, which should be of the kind `what`."""
    kind = media_type(call.content_type)
    accepted = ACCEPTED_OF_CUSTOM if call.path.startswith(_CUSTOM) else ACCEPTED
    if kind and kind not in accepted:
        raise status.unsupported_body(accepted)
    if kind == PROTOBUF:
        return _from_protobuf(call.body, what)
    value = parsed(call.body, as_yaml=kind == YAML, what=what)
    if not isinstance(value, dict):
        raise unreadable(what, f"expected an object, found {_named(value)}", call.body)
    return value


def is_text(call: Call) -> bool:
    """Return whether the body is JSON or YAML, in which a field can be said twice."""
    return media_type(call.content_type) != PROTOBUF


def _from_protobuf(body: bytes, what: str) -> Raw:
    if len(body) > BYTES_MAX:
        raise status.too_large_body(BYTES_MAX)
    try:
        return protobuf.object_of(body)
    except protobuf.UnreadableError as error:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {what}): {error}"
        ) from error


def parsed(body: bytes, *, as_yaml: bool, what: str) -> RawValue:
    """Return what a body says."""
    if len(body) > BYTES_MAX:
        raise status.too_large_body(BYTES_MAX)
    try:
        value = _from_yaml(body) if as_yaml else msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise unreadable(what, in_gos_words(error), body) from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise unreadable(what, " ".join(str(error).split()) or "nested too deep", body) from error
    if not shallow(value, DEPTH_MAX):
        raise unreadable(what, "exceeded max depth", body)
    return value


def _from_yaml(body: bytes) -> RawValue:
    depth = 0
    for number, event in enumerate(yaml.parse(body, yaml.CSafeLoader)):
        if number > YAML_NODES_MAX:
            raise _UnacceptableError("too many values for YAML: send JSON")
        if isinstance(event, yaml.AliasEvent):
            raise _UnacceptableError("aliases are not accepted here: write it out, or send JSON")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:  # the loader would look that deep on the machine's own stack, and fall off it
            raise _UnacceptableError("exceeded max depth")
    value = yaml.load(body, _Loader)  # noqa: S506 - it is the safe one
    return msgspec.json.decode(msgspec.json.encode(value))  # dates and others that JSON has no word for


def shallow(value: RawValue, depth: int) -> bool:
    """Return whether nothing lies deeper than that."""
    if not isinstance(value, dict | list):
        return True
    members = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(shallow(one, depth - 1) for one in members if isinstance(one, dict | list))


def unreadable(what: str, why: str, body: bytes) -> errors.ApiError:
    """Return the refusal of a body that is no object."""
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {what}): couldn't get version/kind; "
        f"json parse error: {why} ({_shown(body)})"
    )


def in_gos_words(error: msgspec.DecodeError) -> str:
    """Return what Go would have said of a text that is no JSON."""
    return "unexpected end of JSON input" if "truncated" in str(error) else str(error)


def in_go(value: RawValue) -> str:
    """Return what Go calls a value of this type."""
    return {list: "array", dict: "object", str: "string", bool: "bool"}.get(type(value), "number")


def _shown(body: bytes) -> str:
    """Return the beginning of a body, as the real server shows it."""
    if not body:
        return "<empty>"
    part = body[:SHOWN_MAX]
    text = part.decode(errors="replace") if body.startswith(b"{") else part.hex()
    return text if len(body) <= SHOWN_MAX else f"{text} ..."


def _named(value: RawValue) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )

"""Label and field selectors, as list and watch calls spell them.

Knows the grammar and which fields each kind can be selected by. Must not know where objects are kept.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from jackfield.cluster import errors
from jackfield.codec import Raw, RawValue
from jackfield.codec.kinds import Kind
from jackfield.ports import Selection

_ITEM = re.compile(
    r"\s*(?:"
    r"(?P<absent>!)\s*(?P<no>[^\s,=!<>()]+)"
    r"|(?P<key>[^\s,=!<>()]+)\s*(?:"
    r"(?P<set>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,=!<>()]*)"
    r")?)\s*(?:,|$)"
)
_FIELD = re.compile(r"\s*(?P<key>[^=!,\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^,]*?)\s*(?:,|$)")

FIELDS: Mapping[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "reason",
        "source",
        "type",
    ),
    "ComposabilityRequest": ("spec.resource.target_node",),
    "ComposableResource": ("spec.target_node",),
}
"""The fields each kind can be selected by, beside its name and namespace."""

Test = Callable[[Raw], bool]


class Selector(msgspec.Struct, frozen=True):
    """Which objects a caller wants to see; all of them if nothing is asked."""

    tests: tuple[Test, ...] = ()

    def matches(self, raw: Raw) -> bool:
        """Return whether the object is one of them."""
        return all(test(raw) for test in self.tests)


EVERYTHING = Selector()


def of(kind: Kind, selection: Selection) -> Selector:
    """Return the selector for what the port asks; raises a bad request if the kind cannot be selected so."""
    tests = [_comparison(name, "=", value) for name, value in selection.labels.items()]
    if selection.namespace and kind.namespaced:
        tests.append(_field_test("metadata.namespace", selection.namespace, equal=True))
    for name, value in selection.fields.items():
        _check_field(kind.kind, name)
        tests.append(_field_test(name, value, equal=True))
    return Selector(tuple(tests)) if tests else EVERYTHING


def selector(kind: str, labels: str = "", fields: str = "") -> Selector:
    """Return the selector for two texts; raises a bad request if one cannot be read."""
    return Selector((*_label_tests(labels), *_field_tests(kind, fields)))


def _label_tests(text: str) -> list[Test]:
    tests: list[Test] = []
    position = 0
    while text[position:].strip():
        found = _ITEM.match(text, position)
        if found is None:
            raise errors.bad_request(f"unable to parse requirement: {text[position:]!r}")
        tests.append(_label_test(found))
        position = found.end()
    return tests


def _label_test(found: re.Match[str]) -> Test:
    if found["absent"]:
        name = found["no"]
        return lambda raw: name not in _labels(raw)
    key = found["key"]
    if found["set"]:
        values = frozenset(one.strip() for one in found["values"].split(","))
        if found["set"] == "in":
            return lambda raw: _labels(raw).get(key) in values
        return lambda raw: _labels(raw).get(key) not in values
    if not found["operator"]:
        return lambda raw: key in _labels(raw)
    return _comparison(key, found["operator"], found["value"])


def _comparison(key: str, operator: str, value: str) -> Test:
    if operator in "<>" and not _is_number(value):
        raise errors.bad_request(f"for {operator!r} the value must be an integer: {value!r}")
    match operator:
        case "=" | "==":
            return lambda raw: _labels(raw).get(key) == value
        case "!=":
            return lambda raw: _labels(raw).get(key) != value
        case ">":
            return lambda raw: _is_number(found := _labels(raw).get(key, "")) and int(found) > int(value)
        case _:
            return lambda raw: _is_number(found := _labels(raw).get(key, "")) and int(found) < int(value)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _labels(raw: Raw) -> Mapping[str, str]:
    labels: Mapping[str, str] = raw["metadata"].get("labels") or {}
    return labels


def _field_tests(kind: str, text: str) -> list[Test]:
    tests: list[Test] = []
    position = 0
    while text[position:].strip():
        found = _FIELD.match(text, position)
        if found is None:
            raise errors.bad_request(f"invalid field selector: {text[position:]!r}")
        _check_field(kind, found["key"])
        tests.append(_field_test(found["key"], found["value"], equal=found["operator"] != "!="))
        position = found.end()
    return tests


def _check_field(kind: str, name: str) -> None:
    if name not in ("metadata.name", "metadata.namespace", *FIELDS.get(kind, ())):
        raise errors.bad_request(f"field label not supported: {name}")


def _field_test(key: str, value: str, *, equal: bool) -> Test:
    names = tuple(key.split("."))
    return lambda raw: (_field(raw, names) == value) is equal


def _field(raw: Raw, names: tuple[str, ...]) -> str:
    value: RawValue = raw
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    # An unset boolean reads as false, anything else as empty; only two booleans can be asked for.
    if value is None:
        return "false" if names[-1] in ("unschedulable", "hostNetwork") else ""
    return str(value)

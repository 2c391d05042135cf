"""Label and field selectors, as list and watch calls spell them.

Knows what is asked of objects and which fields each kind can be selected by. Must not know where objects are kept.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from jackfield.cluster import errors, label_selectors
from jackfield.cluster.label_selectors import Requirement
from jackfield.codec import Raw, RawValue
from jackfield.codec.kinds import Kind
from jackfield.ports import Selection

_FIELD = re.compile(r"\s*+(?P<key>[^=!,\s]+)\s*+(?P<operator>==|=|!=)\s*+(?P<value>[^,]*?)\s*+(?:,|$)")

_DIGITS_MAX = 20

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
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "ComposabilityRequest": ("spec.resource.target_node",),
    "ComposableResource": ("spec.target_node",),
}
"""The fields each kind can be selected by, beside its name and namespace."""
_WHERE: Mapping[str, tuple[str, ...]] = {"source": ("source", "component")}
"""Fields that lie elsewhere than their name says."""

Test = Callable[[Raw], bool]


class Selector(msgspec.Struct, frozen=True):
    """Which objects a caller wants to see; all of them if nothing is asked."""

    tests: tuple[Test, ...] = ()

    def matches(self, raw: Raw) -> bool:
        """Return whether the object is one of them."""
        # For every change and watcher: a generator would cost as much as the test.
        for test in self.tests:  # noqa: SIM110
            if not test(raw):
                return False
        return True


EVERYTHING = Selector()


def of(kind: Kind, selection: Selection) -> Selector:
    """Return the selector for what the port asks; raises a bad request if the kind cannot be selected so."""
    tests = [_label_test(Requirement(name, "=", (value,))) for name, value in selection.labels.items()]
    if selection.namespace and kind.namespaced:
        tests.append(_namespace_test(selection.namespace))
    for name, value in selection.fields.items():
        _check_field(kind.kind, name)
        tests.append(_field_test(name, value, equal=True))
    return Selector(tuple(tests)) if tests else EVERYTHING


def selector(kind: str, labels: str = "", fields: str = "") -> Selector:
    """Return the selector for two texts; raises a bad request if one cannot be read."""
    tests = (*map(_label_test, label_selectors.parsed(labels)), *_field_tests(kind, fields))
    return Selector(tests) if tests else EVERYTHING


def _label_test(asked: Requirement) -> Test:
    key, values = asked.key, frozenset(asked.values)
    match asked.operator:
        case "exists":
            return lambda raw: key in _labels(raw)
        case "!":
            return lambda raw: key not in _labels(raw)
        case "=" | "in":
            return lambda raw: _labels(raw).get(key) in values
        case "!=" | "notin":
            return lambda raw: _labels(raw).get(key) not in values
        case ">":
            return lambda raw: _is_number(found := _labels(raw).get(key, "")) and int(found) > int(*values)
        case _:
            return lambda raw: _is_number(found := _labels(raw).get(key, "")) and int(found) < int(*values)


def _is_number(text: str) -> bool:
    return len(text) <= _DIGITS_MAX and text.removeprefix("-").isdecimal()


def _labels(raw: Raw) -> Mapping[str, str]:
    labels: Mapping[str, str] = raw["metadata"].get("labels") or {}
    return labels


def _field_tests(kind: str, text: str) -> list[Test]:
    tests: list[Test] = []
    text, position = text.strip(), 0
    while position < len(text):
        found = _FIELD.match(text, position)
        if found is None:
            raise errors.bad_request(f"invalid field selector: {text[position:]!r}")
        _check_field(kind, found["key"])
        tests.append(_field_test(found["key"], found["value"], equal=found["operator"] != "!="))
        position = found.end()
    return tests


def _check_field(kind: str, name: str) -> None:
    known = FIELDS.get(kind)
    if name in ("metadata.name", "metadata.namespace", *(known or ())):
        return
    if known is None:
        words = f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        raise errors.bad_request(words)
    of = " for resource.k8s.io/v1, Kind=ResourceSlice" if kind == "ResourceSlice" else ""
    raise errors.bad_request(f"field label not supported{of}: {name}")


def _namespace_test(namespace: str) -> Test:
    return lambda raw: raw["metadata"].get("namespace") == namespace


def _field_test(key: str, value: str, *, equal: bool) -> Test:
    names = _WHERE.get(key) or tuple(key.split("."))
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

"""The words validation is written in: a change, and the checks that many fields share.

Knows how to look at names, lists and maps. Must not know any kind.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.codec import Raw, RawValue, objects
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, Object

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_NO_OPERATOR = "not a valid selector operator"


class Change(msgspec.Struct, frozen=True, gc=False):
    """A step from one version of an object to the next."""

    old: Object | None
    new: Object
    raw: Raw
    """The new version as it is written, where it matters whether something was said at all."""
    before: Raw | None
    """The old version as it is written."""
    wants: bool
    """Whether anything beside metadata and status changes."""
    status: bool
    """Whether the status changes."""


def named(field: str, value: str, rule: Callable[[str], formats.Wrong]) -> Iterator[Cause]:
    """Yield all that a format finds wrong."""
    for wrong in rule(value):
        yield errors.invalid_value(field, value, wrong)


def labels(field: str, found: Mapping[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with labels."""
    for name, value in found.items():
        yield from named(field, name, formats.qualified)
        yield from named(field, value, formats.label_value)


def items(field: str, part: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the objects of a list, each with its place; the field's last word says which list."""
    for index, one in enumerate(objects(part.get(field.rpartition(".")[2]))):
        yield f"{field}[{index}]", one


def text(value: RawValue) -> str:
    """Return a text, or none where there is something else."""
    return value if isinstance(value, str) else ""


def limited(field: str, values: Sequence[object] | Mapping[str, object], most: int) -> Iterator[Cause]:
    """Yield a cause if there are too many."""
    if len(values) > most:
        yield errors.too_many(field, len(values), most)


def unique(field: str, values: Sequence[str], part: str = "") -> Iterator[Cause]:
    """Yield a cause for every value that was there before, at its place in the list."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield errors.duplicate(f"{field}[{index}]{part}", value)
        seen.add(value)


def one_of(field: str, value: str, allowed: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a cause for a value that is not known."""
    if value not in allowed:
        yield errors.unsupported(field, value, allowed)


def node_selector(field: str, selector: NodeSelector) -> Iterator[Cause]:
    """Yield what is wrong with a selector over nodes."""
    if not selector.node_selector_terms:
        yield errors.required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        at = f"{field}.nodeSelectorTerms[{index}]"
        for place, one in enumerate(term.match_expressions):
            yield from _expression(f"{at}.matchExpressions[{place}]", one)
        for place, one in enumerate(term.match_fields):
            yield from _field_expression(f"{at}.matchFields[{place}]", one)


def _expression(field: str, one: NodeSelectorRequirement) -> Iterator[Cause]:
    match one.operator:
        case "In" | "NotIn" if not one.values:
            yield errors.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist" if one.values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield errors.forbidden(f"{field}.values", words)
        case "Gt" | "Lt" if len(one.values) != 1:
            words = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield errors.required(f"{field}.values", words)
        case other if other not in _OPERATORS:
            yield errors.invalid_value(f"{field}.operator", other, _NO_OPERATOR)
        case _:
            pass
    yield from named(f"{field}.key", one.key, formats.qualified)
    for index, value in enumerate(one.values):
        yield from named(f"{field}.values[{index}]", value, formats.label_value)


def _field_expression(field: str, one: NodeSelectorRequirement) -> Iterator[Cause]:
    if one.operator not in ("In", "NotIn"):
        yield errors.invalid_value(f"{field}.operator", one.operator, _NO_OPERATOR)
    elif len(one.values) != 1:
        words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield errors.required(f"{field}.values", words)
    if one.key != "metadata.name":
        yield errors.invalid_value(f"{field}.key", one.key, "not a valid field selector key")

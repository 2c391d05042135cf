"""The words validation is written in: a change, and the checks that many fields share.

Knows how to look at names, lists and maps. Must not know any kind.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.codec import Raw
from jackfield.model.meta import NodeSelector, Object

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_ONE_VALUE = ("Gt", "Lt")


class Change(msgspec.Struct, frozen=True):
    """A step from one version of an object to the next."""

    old: Object | None
    new: Object
    raw: Raw
    """The new version as it is written, where it matters whether something was said at all."""
    wants: bool
    """Whether anything beside metadata and status changes."""
    status: bool
    """Whether the status changes."""


def named(field: str, value: str, rule: Callable[[str], str]) -> Iterator[Cause]:
    """Yield what a format finds wrong."""
    wrong = rule(value)
    if wrong:
        yield errors.invalid_value(field, value, wrong)


def labels(field: str, found: Mapping[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with labels."""
    for name, value in found.items():
        yield from named(field, name, formats.qualified)
        yield from named(field, value, formats.label_value)


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
        for name, found in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
            for place, one in enumerate(found):
                at = f"{field}.nodeSelectorTerms[{index}].{name}[{place}]"
                yield from one_of(f"{at}.operator", one.operator, _OPERATORS)
                if one.operator in ("In", "NotIn") and not one.values:
                    yield errors.required(
                        f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                    )
                if one.operator in _WITHOUT_VALUES and one.values:
                    yield errors.forbidden(
                        f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    )
                if one.operator in _ONE_VALUE and len(one.values) != 1:
                    yield errors.required(
                        f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    )

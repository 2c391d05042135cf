"""Which nodes a selector means.

Knows core/v1's node selectors: terms, label expressions, the one field there is. Must not know devices.
"""

import re
from typing import Final

from jackfield.core.allocate.outcome import AllocationError
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.node import Node

NAME_FIELD: Final = "metadata.name"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_VALUES: Final = {
    "In": (1, None),
    "NotIn": (1, None),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""How many values an operator takes, at least and at most."""


def node_matches(selector: NodeSelector | None, node: Node) -> bool:
    """Return whether a selector means the node; no selector means every node.

    Raises AllocationError where any term cannot be read, as upstream does, even if another term would match.
    """
    if selector is None:
        return True
    for term in selector.node_selector_terms:
        _check(term)
    return any(_term_matches(term, node) for term in selector.node_selector_terms)


def mismatch(selector: NodeSelector, node: Node) -> tuple[str, str]:
    """Return what a node misses that the selector does not mean, one requirement a term, and what it has instead."""
    missed = [_missed(term, node) for term in selector.node_selector_terms]
    if not missed:
        return "no node", ""
    return " or ".join(one for one, _ in missed), " and ".join(
        dict.fromkeys(seen for _, seen in missed if seen)
    )


def _missed(term: NodeSelectorTerm, node: Node) -> tuple[str, str]:
    labels = node.metadata.labels
    for one in term.match_expressions:
        label = labels.get(one.key)
        if not _label_matches(one, label):
            return _spelt(one), f"{one.key} is {'absent' if label is None else label}"
    for one in term.match_fields:
        if not _field_matches(one, node):
            return _spelt(one), f"{one.key} is {node.name}"
    return "an empty term", ""


def _spelt(one: NodeSelectorRequirement) -> str:
    return (
        f"{one.key} {one.operator} ({', '.join(one.values)})" if one.values else f"{one.key} {one.operator}"
    )


def _check(term: NodeSelectorTerm) -> None:
    for one in term.match_expressions:
        least, most = _VALUES.get(one.operator, (None, None))
        if least is None:
            raise AllocationError(f"node selector: {one.operator!r} is not a valid operator for {one.key}")
        if len(one.values) < least or (most is not None and len(one.values) > most):
            raise AllocationError(
                f"node selector: {len(one.values)} values do not suit {one.key} {one.operator}"
            )
        if one.operator in {"Gt", "Lt"} and _integer(one.values[0]) is None:
            raise AllocationError(
                f"node selector: {one.values[0]!r} is no integer for {one.key} {one.operator}"
            )
    for one in term.match_fields:
        if one.operator not in {"In", "NotIn"} or len(one.values) != 1:
            raise AllocationError(f"node selector: field {one.key} takes In or NotIn with exactly one value")


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_label_matches(one, labels.get(one.key)) for one in term.match_expressions) and all(
        _field_matches(one, node) for one in term.match_fields
    )


def _label_matches(one: NodeSelectorRequirement, label: str | None) -> bool:
    match one.operator:
        case "In":
            return label is not None and label in one.values
        case "NotIn":
            return label is None or label not in one.values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
        case _:
            return _compares(one, label)


def _compares(one: NodeSelectorRequirement, label: str | None) -> bool:
    number, bound = _integer(label), _integer(one.values[0])
    if number is None or bound is None:
        return False
    return number > bound if one.operator == "Gt" else number < bound


def _field_matches(one: NodeSelectorRequirement, node: Node) -> bool:
    actual = node.metadata.name if one.key == NAME_FIELD else ""
    return (actual == one.values[0]) is (one.operator == "In")


def _integer(text: str | None) -> int | None:
    """Read an integer as Go's ParseInt does: ASCII digits and a sign, 64 bits, no blanks, no underscores."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None

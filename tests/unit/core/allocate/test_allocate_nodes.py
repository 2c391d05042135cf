"""Which nodes a selector means."""

import pytest

from jackfield.core.allocate import AllocationError, node_matches
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from unit.core.allocate.small_world import node

NODE = node("n1", zone="a", size="10", odd="ten")


def label(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))


def field(operator: str, *values: str, key: str = "metadata.name") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key, operator, values),))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (label("zone", "In", "b", "a"), True),
        (label("zone", "In", "b"), False),
        (label("none", "In", "a"), False),
        (label("zone", "NotIn", "b"), True),
        (label("zone", "NotIn", "a"), False),
        (label("none", "NotIn", "a"), True),
        (label("zone", "Exists"), True),
        (label("none", "Exists"), False),
        (label("zone", "DoesNotExist"), False),
        (label("none", "DoesNotExist"), True),
        (label("size", "Gt", "9"), True),
        (label("size", "Gt", "10"), False),
        (label("size", "Lt", "11"), True),
        (label("size", "Lt", "10"), False),
        (label("size", "Gt", "-1"), True),
        (label("size", "Lt", "+11"), True),
        (label("odd", "Gt", "1"), False),
        (label("none", "Lt", "1"), False),
        (field("In", "n1"), True),
        (field("In", "n2"), False),
        (field("NotIn", "n2"), True),
        (field("NotIn", "n1"), False),
        (field("In", "n1", key="metadata.other"), False),
        (NodeSelectorTerm(), False),
    ],
    ids=str,
)
def test_a_term_means(term: NodeSelectorTerm, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert node_matches(NodeSelector((term,)), NODE) is expected


def test_one_term_is_enough_and_none_is_nothing() -> None:
    assert node_matches(NodeSelector((label("zone", "In", "b"), label("zone", "In", "a"))), NODE)
    assert not node_matches(NodeSelector(), NODE)


def test_all_requirements_of_a_term_must_hold() -> None:
    zone = NodeSelectorRequirement("zone", "In", ("a",))
    name = NodeSelectorRequirement("metadata.name", "In", ("n2",))
    assert node_matches(NodeSelector((NodeSelectorTerm((zone,)),)), NODE)
    assert not node_matches(NodeSelector((NodeSelectorTerm((zone,), (name,)),)), NODE)


def test_no_selector_means_every_node() -> None:
    assert node_matches(None, NODE)


@pytest.mark.parametrize(
    "term",
    [
        label("zone", "Near", "a"),
        label("zone", "In"),
        label("zone", "NotIn"),
        label("zone", "Exists", "a"),
        label("zone", "DoesNotExist", "a"),
        label("size", "Gt", "1", "2"),
        label("size", "Gt"),
        label("size", "Lt", "1_0"),
        label("size", "Lt", "-+1"),
        label("size", "Lt", " 1"),
        label("size", "Gt", "9223372036854775808"),
        field("In", "n1", "n2"),
        field("Exists"),
    ],
    ids=str,
)
def test_an_unreadable_term_is_an_error_even_beside_one_that_matches(term: NodeSelectorTerm) -> None:
    with pytest.raises(AllocationError, match="node selector"):
        node_matches(NodeSelector((label("zone", "In", "a"), term)), NODE)

"""Every right of every role is taken away once in tests/real, and whoever lacks one lacks no other."""

from collections.abc import Iterable, Iterator

import pytest

from jackfield.codec import Raw
from jackfield.kube.permissions import Account, Part, Role, manifests
from real import (
    test_rights_at_the_start,
    test_rights_of_a_migration,
    test_rights_of_a_node,
    test_rights_of_flows,
)
from real.deprived import DRIVERS, Single, is_its_role, singles, without
from real.test_rights_of_flows import FLOWS, flow_of

TAKEN = (
    *test_rights_at_the_start.ALL,
    *test_rights_of_flows.ALL,
    *test_rights_of_a_node.ALL,
    *test_rights_of_a_migration.ALL,
)
"""What is taken away in tests/real, each once."""
ACCOUNT = Account("jackfield", "somebody")
PARTS = {Role.NODE: Part.NODE}


def roles(one: Single) -> tuple[Raw, ...]:
    """The roles of whoever has the right."""
    part = PARTS.get(one.role, Part.CONTROLLERS)
    return manifests(part, ACCOUNT, DRIVERS, cohdi=part is not Part.NODE)


def held(made: Iterable[Raw]) -> Iterator[Single]:
    """Return all that roles hold, one by one."""
    for each in made:
        meta = each["metadata"]
        for rule in each.get("rules", ()):
            role = Role(meta["name"].removeprefix("jackfield-"))
            (group,), (resource,) = rule["apiGroups"], rule["resources"]
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", ("",)):
                    yield Single(role, verb, group, resource, name, meta.get("namespace", ""))


def test_every_right_of_every_role_is_taken_away_once() -> None:
    assert sorted(TAKEN) == sorted(one for role in Role for one in singles(role))
    assert len(set(TAKEN)) == len(TAKEN)


def test_nothing_is_done_for_a_right_that_nobody_has() -> None:
    assert len({id(flow_of(one)) for one in test_rights_of_flows.ALL}) <= len(FLOWS)
    used = {(one.role, one.verb, f"{one.resource} {one.name}".strip()) for one in test_rights_of_flows.ALL}
    assert used == set(FLOWS)


@pytest.mark.parametrize("one", TAKEN, ids=str)
def test_whoever_lacks_one_right_lacks_no_other(one: Single) -> None:
    before = roles(one)
    assert sum(is_its_role(made, one) for made in before) == 1
    assert set(held(before)) - set(held(without(before, one))) == {one}
    assert set(held(without(before, one))) <= set(held(before))

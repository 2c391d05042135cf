"""What belongs to nobody any more goes; what still belongs to somebody stays."""

import pytest

from jackfield.cluster.collector import remaining
from jackfield.model.meta import ObjectMeta, OwnerReference
from jackfield.model.names import Time, Uid
from jackfield.model.pod import Pod


def owner(uid: str) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Pod", name=uid, uid=Uid(uid))


@pytest.mark.parametrize(
    ("owners", "gone", "deleting", "expected"),
    [
        ((), (), False, None),
        (("a",), (), False, None),
        (("a",), ("a",), False, ()),
        (("a", "b"), ("a",), False, ("b",)),
        (("a", "b"), ("a", "b"), False, ()),
        (("a",), ("a",), True, None),
    ],
)
def test_the_owners_that_remain(
    owners: tuple[str, ...], gone: tuple[str, ...], expected: tuple[str, ...] | None, *, deleting: bool
) -> None:
    dependent = Pod(
        metadata=ObjectMeta(
            name="p",
            owner_references=tuple(owner(one) for one in owners),
            deletion_timestamp=Time("2026-01-01T00:00:00Z") if deleting else Time(""),
        )
    )
    found = remaining(dependent, lambda one: one.uid in gone)
    assert (None if found is None else tuple(one.uid for one in found)) == expected

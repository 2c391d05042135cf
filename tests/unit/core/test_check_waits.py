"""What somebody says he waits for is held against the objects."""

from typing import NamedTuple

import pytest

from jackfield.core import check
from jackfield.model.composition import RELEASED, VISIBLE, ResourceState
from jackfield.model.meta import Condition, Object
from jackfield.model.plan import Waiting
from jackfield.testing import builders as b

NEW, ATTACHING, ONLINE, DETACHING, DELETING = ResourceState
CLAIM = b.claim("c")


class Row(NamedTuple):
    """Who waits for what, the world, and what is so instead."""

    about: str
    reason: str
    beside: tuple[Object, ...]
    instead: str = ""


def claims(reason: str, *beside: Object, instead: str = "") -> Row:
    return Row("claim/default/c", reason, (CLAIM, *beside), instead)


def resources(reason: str, resource: Object, instead: str = "") -> Row:
    return Row("resource/a100-1.rack-a", reason, (resource,), instead)


ROWS = (
    Row("claim/default/c", "Attaching", (), "it does not exist"),
    Row("resource/a100-1.rack-a", "Visible", (), "it does not exist"),
    Row("fabric/rack-a", "Silent", ()),
    claims("Publishing"),
    claims("Composing"),
    claims("Composing", b.resource(state=NEW), instead="all its devices are ordered"),
    claims("Attaching", b.resource(state=NEW)),
    claims("Attaching", b.resource(state=ATTACHING)),
    claims("Attaching", b.resource(), instead="none of its devices is being attached"),
    claims("Attaching", instead="none of its devices is being attached"),
    claims("Moving", b.resource(on="n2")),
    claims("Moving", b.resource(state=DETACHING)),
    claims("Moving", b.resource(deleted=b.NOW)),
    claims("Moving", b.resource(), instead="all its devices stand on n1"),
    claims("Held", b.resource(holder="u")),
    claims("Held", b.resource(), instead="none of its devices is held"),
    claims("Pod", b.pod("p", "c")),
    claims("Pod", instead="no pod uses it"),
    claims("Recorded", b.resource(record=b.claim("d"))),
    claims("Recorded", b.resource(), b.resource("a100-2", record=CLAIM)),
    claims("Recorded", b.resource(record=CLAIM), instead="nothing is recorded that stands in its way"),
    claims("Recorded", instead="nothing is recorded that stands in its way"),
    resources("Quiet", b.resource()),
    resources("Visible", b.resource(state=ATTACHING)),
    resources("Visible", b.resource(conditions=(Condition(VISIBLE, "True"),)), "its node has seen it"),
    resources("Released", b.resource(state=DETACHING)),
    resources("Released", b.resource(conditions=(Condition(RELEASED, "True"),)), "it is released"),
    resources("Recorded", b.resource(record=CLAIM)),
    resources("Recorded", b.resource(holder="u")),
    resources("Recorded", b.resource(), "nobody has it"),
    resources("Attaching", b.resource(state=ATTACHING)),
    resources("Attaching", b.resource(), "it is Online"),
    resources("Detaching", b.resource(state=DETACHING)),
    resources("Detaching", b.resource(deleted=b.NOW)),
    resources("Detaching", b.resource(state=NEW), "it is new"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.about} {row.reason} {row.instead}")
def test_what_is_waited_for_is_so_or_it_is_told(row: Row) -> None:
    waiting = Waiting(row.about, row.reason, "something")
    assert check.untrue(b.world(*row.beside), waiting) == row.instead

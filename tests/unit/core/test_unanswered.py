"""An order that was never answered and whose device a vendor's driver may offer all the same, and nobody knows which.

A manager may carry an order out, say nothing, and show nothing of it for a while. The driver on the node asks nobody.
"""

import pytest
from msgspec.structs import replace

from jackfield.core import attach
from jackfield.model.composition import ResourceState
from jackfield.model.plan import PutTaint
from jackfield.model.taint import DeviceTaintSelector
from jackfield.testing import builders as b
from unit.core.attaching import (
    CR,
    HANDED,
    LEAVES,
    NODE,
    STAYS,
    TAINTED,
    VENDOR,
    Row,
    check,
    vendors,
    view,
)

UNANSWERED = b.resource(HANDED, state=ResourceState.DETACHING)
OFFERS = b.vendor_slice("GPU-9")
SINCE = b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=())
BEFORE = b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=(), allocated=b.NOW - 300)
GUARDED = Row((), do=("PutTaint taint/a100-1.rack-a-taint",), policy=vendors())
OTHERS = b.resource(b.device(f"{VENDOR}/a100-fabricrack-a/a100-2"), uuid="GPU-9", physical="2")
CAME_FROM = b.resource(
    b.device(f"{VENDOR}/a100-fabricrack-a/a100-2"),
    uuid="GPU-9",
    physical="2",
    on="n2",
    state=ResourceState.DELETING,
)
WIDELY = replace(TAINTED, spec=replace(TAINTED.spec, device_selector=DeviceTaintSelector(VENDOR, b.NODE)))
ROWS = {
    "the driver offers something: all of it is kept first": GUARDED._replace(
        there=(NODE, OFFERS, UNANSWERED)
    ),
    "a claim has had it since before the order": GUARDED._replace(there=(NODE, OFFERS, BEFORE, UNANSWERED)),
    "a claim was given it since": STAYS._replace(there=(NODE, OFFERS, SINCE, UNANSWERED)),
    "what it was given is another's": GUARDED._replace(there=(NODE, OFFERS, OTHERS, SINCE, UNANSWERED)),
    "what it was given has come from another node, whose resource has not ended yet": STAYS._replace(
        there=(NODE, OFFERS, CAME_FROM, SINCE, UNANSWERED)
    ),
    "kept for long enough": LEAVES._replace(there=(NODE, OFFERS, WIDELY, UNANSWERED)),
    "kept, and a claim was given it all the same": STAYS._replace(
        there=(NODE, OFFERS, WIDELY, SINCE, UNANSWERED)
    ),
    "the driver offers nothing there yet": GUARDED._replace(
        there=(NODE, b.vendor_slice("GPU-9", on="n2"), UNANSWERED)
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_an_unanswered_order_may_have_brought_is_not_pulled_from_a_pod(row: Row) -> None:
    check(row)


def test_all_that_the_driver_offers_there_is_kept_for_the_moment() -> None:
    there = view(GUARDED._replace(there=(NODE, OFFERS, UNANSWERED)))
    (put,) = attach.decide(there, CR, vendors(), b.NOW).actions
    assert isinstance(put, PutTaint)
    assert put.rule.spec.device_selector == DeviceTaintSelector(VENDOR, b.NODE)
    assert put.because == "gpu.example.com/n1/* must not be given away while it is detached"

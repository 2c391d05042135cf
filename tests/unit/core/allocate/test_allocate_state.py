"""What claims hold."""

from jackfield.core.allocate import Allocated, allocated
from jackfield.model import quantity
from jackfield.model.names import DeviceID
from unit.core.allocate.small_world import DRIVER, claim, holding, request

A, B = DeviceID(DRIVER, "p", "a"), DeviceID(DRIVER, "p", "b")
HALF = {"memory": "512Mi"}


def test_claims_hold_devices_and_shares() -> None:
    found = allocated(
        [
            claim(request()),
            holding("a"),
            holding("b", share_id="1", consumed_capacity=HALF),
            holding("b", share_id="2", consumed_capacity=HALF),
            holding("c", admin_access=True),
            holding("d", share_id="3"),
        ]
    )
    assert found.devices == {A}
    assert found.shared == {(B, "1"), (B, "2"), (DeviceID(DRIVER, "p", "d"), "3")}
    assert found.capacity == {B: {"memory": quantity.parse("1Gi")}}


def test_claims_come_and_go_one_by_one() -> None:
    whole, first, second = (
        holding("a"),
        holding("b", share_id="1", consumed_capacity=HALF),
        holding("b", share_id="2", consumed_capacity=HALF),
    )
    state = Allocated().plus(whole).plus(first).plus(second)
    assert state == allocated([whole, first, second])
    assert state.minus(second) == allocated([whole, first])
    assert state.minus(second).minus(first) == allocated([whole])
    assert state.minus(whole) == allocated([first, second])
    free = holding("d", share_id="3")
    assert state.plus(free).minus(free) == state

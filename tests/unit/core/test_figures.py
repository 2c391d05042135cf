"""What is counted is called by one of a few words, whatever the cluster holds."""

import pytest

from jackfield.core import figures
from jackfield.core.figures import Failure, Sort
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import DEVICE, ComposableResource, ResourceState
from jackfield.model.names import DeviceID
from jackfield.testing import builders as b

ATTACHING = ResourceState.ATTACHING
SORTS = {
    ResourceState.NEW: Sort.ATTACHING,
    ResourceState.ATTACHING: Sort.ATTACHING,
    ResourceState.ONLINE: Sort.ONLINE,
    ResourceState.DETACHING: Sort.DETACHING,
    ResourceState.DELETING: Sort.DETACHING,
}


@pytest.mark.parametrize("state", ResourceState)
def test_a_resource_is_sorted_by_its_state(state: ResourceState) -> None:
    assert figures.sort(b.resource(state=state)) is SORTS[state]


PLACES = {
    "a device of ours": (b.device("a100-1"), (b.FABRIC, b.MODEL)),
    "of no model that is listed": (b.device("h100-1"), None),
    "another driver's": (DeviceID("gpu.example.com", "n1", "gpu-0"), None),
    "none": (None, None),
}


@pytest.mark.parametrize(("device", "place"), PLACES.values(), ids=PLACES)
def test_a_device_is_counted_by_fabric_and_model(
    device: DeviceID | None, place: figures.Place | None
) -> None:
    assert figures.place(device, b.policy()) == place


def given_up(physical: str = "", error: str = "", deleted: float | None = None) -> ComposableResource:
    if deleted is not None:
        return b.resource(state=ATTACHING, physical=physical, error=error, deleted=deleted)
    return b.resource(state=ATTACHING, physical=physical, error=error)


FAILURES = {
    "the manager said so": (given_up(error="no link"), Failure.ERROR),
    "it said so, and nobody wants it": (given_up(error="no link", deleted=b.NOW), Failure.ERROR),
    "nobody wants it": (given_up(deleted=b.NOW), Failure.UNWANTED),
    "another device came": (given_up(physical="2"), Failure.WRONG),
    "it came, and was not seen": (given_up(physical="1"), Failure.UNSEEN),
    "it did not come": (given_up(), Failure.LATE),
    "somebody else's came": (
        b.resource(state=ATTACHING, physical="9", annotations={DEVICE: ""}),
        Failure.UNSEEN,
    ),
    "one came that is not in the inventory": (
        b.resource("a100-7", state=ATTACHING, physical="7"),
        Failure.UNSEEN,
    ),
}


@pytest.mark.parametrize(("resource", "failure"), FAILURES.values(), ids=FAILURES)
def test_an_attach_fails_for_one_reason(resource: ComposableResource, failure: Failure) -> None:
    there = b.world(b.node(), resource, inventories=(b.inventory(),))
    assert figures.failure(there, resource) is failure


def test_nothing_can_be_attached_to_a_node_that_is_gone() -> None:
    resource = given_up(deleted=b.NOW)
    assert figures.failure(b.world(resource), resource) is Failure.NODE


CLAIMS = {
    "allocated": (b.claim("c"), 1, False),
    "two of them": (b.claim("c", devices=("a100-1", "a100-2")), 2, False),
    "ready": (b.claim("c", ready=True), 1, True),
    "told that it failed": (b.claim("c", told="FabricDeviceFailed"), 1, False),
    "not allocated": (b.claim("c", devices=()), 0, True),
    "admin access": (b.claim("c", admin=True), 0, True),
    "nothing to wait for": (b.claim("c", waits=()), 0, True),
}


@pytest.mark.parametrize(("claim", "devices", "ready"), CLAIMS.values(), ids=CLAIMS)
def test_a_claim_waits_for_devices_with_our_condition(
    claim: ResourceClaim, devices: int, *, ready: bool
) -> None:
    assert len(figures.devices(claim)) == devices
    assert figures.ready(claim) is ready

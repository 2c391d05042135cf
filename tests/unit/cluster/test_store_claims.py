"""What the store promises about claims: what was asked stays, what was given goes as a whole."""

import random
from collections.abc import Callable

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, Seconds

STATUS = Write(status=True)
CLAIM = Key("d", "c")


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("claims"))  # noqa: S311 - no cryptography


def refusal(call: Callable[[], object]) -> tuple[int, str, tuple[str, ...]]:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code, caught.value.reason, tuple(one.field for one in caught.value.causes)


def claim_raw(name: str = "c") -> Raw:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {"metadata": {"name": name, "namespace": "d"}, "spec": {"devices": {"requests": [request]}}}


RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": "gpu-0"}
SAID = {
    "driver": "gpu.example.com",
    "pool": "pool",
    "device": "gpu-0",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Attached",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def allocated_store(*more: Raw) -> Store:
    store = new_store()
    store.create(ResourceClaim, claim_raw())
    status = {"allocation": {"devices": {"results": [RESULT, *more]}}}
    store.patch(ResourceClaim, CLAIM, {"status": status}, STATUS)
    return store


def claim_refusal(store: Store, status: Raw) -> tuple[int, str, tuple[str, ...]]:
    return refusal(lambda: store.patch(ResourceClaim, CLAIM, {"status": status}, STATUS))


def test_what_a_claim_asks_for_never_changes() -> None:
    store = allocated_store()
    body: Raw = {"spec": {"devices": {"requests": []}}}
    assert refusal(lambda: store.patch(ResourceClaim, CLAIM, body)) == (422, "Invalid", ("spec",))
    labelled = store.patch(ResourceClaim, CLAIM, {"metadata": {"labels": {"a": "b"}}})
    assert labelled.object.metadata.labels == {"a": "b"}


def test_an_allocation_is_written_once_and_goes_as_a_whole() -> None:
    store = allocated_store()
    other = {"allocation": {"devices": {"results": [{**RESULT, "device": "gpu-1"}]}}}
    assert claim_refusal(store, other) == (422, "Invalid", ("status.allocation",))
    store.patch(ResourceClaim, CLAIM, {"status": {"allocation": None}}, STATUS)
    again = store.patch(ResourceClaim, CLAIM, {"status": other}, STATUS)
    assert isinstance(again.object, ResourceClaim)
    assert again.object.results[0].device == "gpu-1"


def test_drivers_speak_only_of_allocated_devices() -> None:
    store = allocated_store()
    other = {**SAID, "device": "gpu-7"}
    assert claim_refusal(store, {"devices": [other]}) == (422, "Invalid", ("status.devices[0]",))
    store.patch(ResourceClaim, CLAIM, {"status": {"devices": [SAID]}}, STATUS)
    unallocated = new_store()
    unallocated.create(ResourceClaim, claim_raw())
    assert claim_refusal(unallocated, {"devices": [SAID]})[2] == ("status.devices[0]",)


def test_what_was_said_of_a_device_goes_with_its_allocation() -> None:
    store = allocated_store()
    store.patch(ResourceClaim, CLAIM, {"status": {"devices": [SAID]}}, STATUS)
    freed = store.patch(ResourceClaim, CLAIM, {"status": {"allocation": None}}, STATUS)
    assert freed.raw["status"] == {}


def test_a_claim_is_reserved_only_while_allocated_and_not_while_it_goes() -> None:
    pod = {"resource": "pods", "name": "p", "uid": "u"}
    fresh = new_store()
    fresh.create(ResourceClaim, claim_raw())
    assert claim_refusal(fresh, {"reservedFor": [pod]}) == (422, "Invalid", ("status.reservedFor",))
    store = allocated_store()
    many = [{**pod, "uid": f"u{number}"} for number in range(257)]
    assert claim_refusal(store, {"reservedFor": many})[2] == ("status.reservedFor",)
    assert claim_refusal(store, {"reservedFor": [pod, pod]})[2] == ("status.reservedFor[1].uid",)
    store.patch(ResourceClaim, CLAIM, {"status": {"reservedFor": many[:256]}}, STATUS)
    assert claim_refusal(store, {"allocation": None})[2] == ("status.reservedFor",)
    store.patch(ResourceClaim, CLAIM, {"metadata": {"finalizers": ["a/b"]}})
    store.delete(ResourceClaim, CLAIM)
    assert claim_refusal(store, {"reservedFor": [pod]})[2] == ("status.reservedFor",)
    store.patch(ResourceClaim, CLAIM, {"status": {"reservedFor": many[:1]}}, STATUS)

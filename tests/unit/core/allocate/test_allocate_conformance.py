"""The allocator against what Kubernetes' own made of the same input.

The cases are not part of the project; where they are absent there is nothing to compare with.
"""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pytest

from jackfield.core import allocate
from jackfield.model import quantity
from jackfield.model.claim import AllocationResult, ResourceClaim
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice

DATA: Final = Path(__file__).resolve().parents[5] / "shared" / "conformance"
FILES: Final = ("allocator-upstream-1.36.4.jsonl.gz", "allocator-random.jsonl.gz")

GATES: Final = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRADeviceTaints": "device_taints",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus": "binding_conditions",
    "DRAConsumableCapacity": "consumable_capacity",
}
ERRORS: Final = (
    "no such key",
    "unsupported attribute value",
    "undeclared reference",
    "is currently being updated",
    "is currently invalid",
    "because a claim constraint would not be satisfied",
    "exceeds the claim limit",
    "could not retrieve device class",
    "missing device class name",
    "CEL expression empty",
    "empty constraint",
    "unsupported count mode",
    "feature is disabled",
)
DEFAULT_NODE: Final = Node(
    metadata=ObjectMeta(name="node-1", labels={"region": "region-1", "planet": "earth"})
)


class Case(msgspec.Struct):
    """A case, its objects still as they are on the wire."""

    name: str
    features: list[str] | None
    classes: list[Any] | None
    claims: list[Any] | None
    slices: list[Any] | None
    node: Any
    allocated_devices: list[str] | None = msgspec.field(name="allocatedDevices")
    shared: list[str] | None = msgspec.field(name="allocatedSharedDeviceIDs")
    capacity: dict[str, dict[str, str]] | None = msgspec.field(name="aggregatedCapacity")
    results: list[Any] | None
    error: str


def cases(name: str) -> list[Case]:
    path = DATA / name
    if not path.exists():
        return []
    decoder = msgspec.json.Decoder(Case)
    return [decoder.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


T = TypeVar("T")


def read(kind: type[T], values: Iterable[Any] | None) -> list[T]:
    return [
        msgspec.json.decode(msgspec.json.encode(without_nulls(value)), type=kind) for value in values or ()
    ]


def without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def device(text: str) -> DeviceID:
    driver, pool, name = text.split("/")
    return DeviceID(driver, pool, name)


def share(text: str) -> tuple[DeviceID, str]:
    whole, _, share_id = text.rpartition("/")
    return device(whole), share_id


def held(case: Case) -> allocate.Allocated:
    used: Mapping[str, Mapping[str, str]] = case.capacity or {}
    return allocate.Allocated(
        frozenset(map(device, case.allocated_devices or ())),
        frozenset(map(share, case.shared or ())),
        {
            device(one): {name: quantity.parse(text) for name, text in amounts.items()}
            for one, amounts in used.items()
        },
    )


def outcome(case: Case) -> tuple[list[Any] | None, str]:
    """Return results and error as the cases spell them."""
    gates = {field: gate in (case.features or ()) for gate, field in GATES.items()}
    features = msgspec.convert(gates, allocate.Features)
    classes = {one.metadata.name: one for one in read(DeviceClass, case.classes)}
    allocator = allocate.Allocator(read(ResourceSlice, case.slices), classes, held(case), features)
    node = read(Node, [case.node])[0] if case.node else DEFAULT_NODE
    try:
        found = allocator.allocate(read(ResourceClaim, case.claims), node)
    except allocate.AllocationError as error:
        return None, str(error)
    if isinstance(found, allocate.NoFit):
        return None, str(found.reason) if found.reason is allocate.Reason.INVALID_POOLS else ""
    return [comparable(one) for one in found], ""


def comparable(result: AllocationResult) -> dict[str, Any]:
    """Return the allocation without what may differ: share ids, and the order of devices and configuration."""
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    for one in value.get("devices", {}).get("results", ()):
        if "shareID" in one:
            one["shareID"] = "some"
        for toleration in one.get("tolerations", ()):
            if toleration.get("operator") == "Equal":
                del toleration["operator"]
    for kind in ("results", "config"):
        if kind in value.get("devices", {}):
            value["devices"][kind].sort(key=lambda one: msgspec.json.encode(one, order="sorted"))
    return value


def same_kind(actual: str, expected: str) -> bool:
    if not actual or not expected:
        return actual == expected
    kinds = [kind for kind in (*ERRORS, str(allocate.Reason.INVALID_POOLS)) if kind in expected]
    assert kinds, f"an error of a kind that this test does not know: {expected}"
    return all(kind in actual for kind in kinds)


ALL: Final = [case for name in FILES for case in cases(name)]


@pytest.mark.skipif(not ALL, reason="the conformance cases (shared/conformance) are not beside the project")
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_the_answer_is_that_of_kubernetes(case: Case) -> None:
    results, error = outcome(case)

    assert same_kind(error, case.error), (error, case.error)
    wanted = None if case.results is None else read(AllocationResult, case.results)
    assert results == (None if wanted is None else [comparable(one) for one in wanted])

"""A policy that takes another's place: what it may not take away, and what becomes of what it leaves behind."""

import pytest
from msgspec.structs import replace

from jackfield.core import naming, policies, publish
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, ModelName, Seconds
from jackfield.model.plan import PutSlice, SliceKey
from jackfield.model.policy import NamespaceRule, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import ObjectChanged
from jackfield.testing.builders import (
    NOW,
    claim,
    inventory,
    model,
    node,
    policy,
    resource,
    vendor_slice,
    world,
)
from unit.core.slices import FIRST, POOL, SHARED_POOL, settled

OLD = policy("A100", "L40")
WITHOUT = policy("L40")


def obstacles(new: Policy, *objects: Object) -> tuple[str, ...]:
    return policies.obstacles(OLD, new, objects)


ATTACHED = resource("a100-1")
CLAIMED = claim("a", devices=["a100-1"])


@pytest.mark.parametrize("there", [(ATTACHED,), (CLAIMED,), (ATTACHED, CLAIMED, node())])
@pytest.mark.parametrize(
    "new",
    [
        WITHOUT,
        Policy(),
        replace(OLD, models=(replace(OLD.models[0], driver_name="gpu.example.com"), OLD.models[1])),
        replace(OLD, models=(replace(OLD.models[0], k8s_device_name="gpu"), OLD.models[1])),
        replace(OLD, models=(replace(OLD.models[0], cdi_model_name=ModelName("A100 80G")), OLD.models[1])),
    ],
)
def test_a_model_does_not_leave_while_its_devices_are_attached_or_claimed(
    new: Policy, there: tuple[Object, ...]
) -> None:
    (found,) = obstacles(new, *there)
    assert found.startswith("models: A100 cannot be removed")
    assert "attached or claimed: a100-1;" in found
    assert found.endswith("kubectl label nodes --all cohdi.io/a100-size-max=0")


def test_of_many_devices_a_few_are_named() -> None:
    (found,) = obstacles(WITHOUT, *(resource(f"a100-{number}") for number in range(5)))
    assert "a100-0, a100-1, a100-2 and 2 more" in found


@pytest.mark.parametrize(
    ("new", "there"),
    [
        (WITHOUT, ()),
        (WITHOUT, (resource("l40-1", model="L40"), claim("a", devices=["l40-1"]))),
        (WITHOUT, (claim("a", devices=["gpu.example.com/n1/gpu-0"]), claim("b", devices=[]), node())),
        (WITHOUT, (replace(ATTACHED, metadata=replace(ATTACHED.metadata, annotations={})),)),
        (policy("L40", "A100", "T4"), (ATTACHED,)),
        (replace(OLD, label_prefix="example.com", per_node_max=0, paused=True), (ATTACHED, CLAIMED)),
        (replace(OLD, namespaces=(NamespaceRule("*", {"*": 0}),), hold_seconds=Seconds(0.0)), (ATTACHED,)),
        (replace(OLD, models=(replace(OLD.models[0], spares=7), OLD.models[1])), (ATTACHED,)),
    ],
)
def test_everything_else_may_change_at_any_time(new: Policy, there: tuple[Object, ...]) -> None:
    assert obstacles(new, *there) == ()


# --- slices of models that have left


@pytest.mark.parametrize(
    ("chosen", "key"),
    [
        (policy("A100"), POOL),
        (policy(model("A100", driver="gpu.example.com")), SHARED_POOL),
    ],
)
def test_the_entries_of_models_that_left_are_withdrawn_with_the_last_of_them(
    chosen: Policy, key: SliceKey
) -> None:
    view = world(inventories=[inventory(models={"A100": 2})], policy=chosen)
    (listed,) = settled(view, chosen, key)
    view.follow(Policy())
    woken = publish.wakes(view, Policy(), ObjectChanged(None, listed))
    assert woken == (key, replace(key, index=0))
    (put,) = publish.decide(view, key, Policy(), Seconds(NOW)).actions
    assert isinstance(put, PutSlice)
    assert put.slice.spec.devices == ()
    empty = replace(listed, spec=put.slice.spec)
    assert publish.wakes(view, Policy(), ObjectChanged(None, empty)) == ()


def test_an_entry_that_somebody_holds_stays_closed() -> None:
    view = world(claim("a"), inventories=[inventory(models={"A100": 2})], policy=OLD)
    settled(view, OLD)
    view.follow(Policy())
    for key in (POOL, FIRST):
        (put,) = publish.decide(view, key, Policy(), Seconds(NOW)).actions
        assert isinstance(put, PutSlice)
        assert {one.node_selector for one in put.slice.spec.devices} == {publish.CLOSED}
    (put,) = publish.decide(view, POOL, Policy(), Seconds(NOW)).actions
    assert isinstance(put, PutSlice)
    assert [one.name for one in put.slice.spec.devices] == ["a100-1"]


def renamed(one: ResourceSlice) -> ResourceSlice:
    return replace(one, metadata=replace(one.metadata, name="somebody-elses"))


def test_slices_of_others_are_left_alone() -> None:
    view = world(inventories=[inventory(models={"A100": 2})], policy=OLD)
    (ours,) = settled(view, OLD)
    assert naming.forsaken(ours) == FabricName("rack-a")
    assert naming.forsaken(renamed(ours)) is None
    assert naming.forsaken(vendor_slice("GPU-1")) is None

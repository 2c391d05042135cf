"""What CoHDI's operator began is taken over with all that it has, and nothing else is."""

import pytest
from msgspec.structs import replace

from jackfield.core import attach, drift, naming, publish, scale
from jackfield.model.composition import DEVICE, FINALIZER, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Traits
from jackfield.model.names import DeviceID, PhysicalID, Seconds, Version
from jackfield.model.plan import PutSlice, SliceKey, TakeOver
from jackfield.model.policy import Policy
from jackfield.model.slice import ResourcePool
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    inventory,
    model,
    node,
    policy,
    request,
    resource,
    showing,
    vendor_slice,
    world,
)
from unit.core.plans import reasons

VENDOR = "gpu.example.com"
POLICY = policy(model("A100", 1, driver=VENDOR), base=Policy(hold_seconds=Seconds(0.0)))
UUID = "0b4a5c2e-0000-4000-8000-000000000021"
THERE = FabricDevice(PhysicalID(UUID), MODEL, serial="GPU-1", node=NODE, ours=True)
STAGE = showing(
    inventory(traits=Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(0.0))), THERE
)
NAME = "gpu-6f0a4b0c"


def theirs(
    state: ResourceState = ResourceState.ONLINE, *, physical: str = UUID, label: str = "", **changes: object
) -> ComposableResource:
    """A resource as CoHDI's operator writes it: its own name, its finalizer, no annotation of ours."""
    made = resource(
        state=state, physical=physical, uuid="GPU-1" if physical else "", request="composability-x"
    )
    labels = {**made.metadata.labels, **({label: "GPU-1"} if label else {})}
    meta = replace(
        made.metadata,
        **{"name": NAME, "annotations": {}, "finalizers": (FINALIZER,), "labels": labels, **changes},
    )
    return replace(made, metadata=meta)


@pytest.mark.parametrize("state", list(ResourceState))
def test_what_cohdi_attached_gets_the_name_of_its_device_in_whatever_state_it_is(
    state: ResourceState,
) -> None:
    view = world(node(), theirs(state, resource_version=Version("7")), inventories=(STAGE,), policy=POLICY)
    (take,) = attach.decide(view, NAME, POLICY, NOW).actions
    assert isinstance(take, TakeOver)
    assert (take.resource, take.version, take.sent) == (NAME, "7", "")
    assert take.device == naming.device(FABRIC, POLICY.models[0], PhysicalID(UUID))
    assert naming.fabric_of(take.device, POLICY) == FABRIC


def test_what_was_being_attached_waits_as_if_it_had_been_asked_for_just_now() -> None:
    view = world(node(), theirs(ResourceState.ATTACHING, physical=""), inventories=(STAGE,), policy=POLICY)
    (take,) = attach.decide(view, NAME, POLICY, NOW).actions
    assert isinstance(take, TakeOver)
    assert take.sent.startswith("attach ")
    taken = replace(
        theirs(ResourceState.ATTACHING, physical=""),
        metadata=replace(theirs().metadata, annotations={DEVICE: str(take.device)}),
    )
    assert taken.device == take.device


LEFT_ALONE = {
    "made by hand, begun by nobody": theirs(finalizers=()),
    "made to detach what others attached": theirs(label="cohdi.io/ready-to-detach-device-id"),
}


@pytest.mark.parametrize("left", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_no_operator_began_and_what_takes_from_others_is_left_alone(left: ComposableResource) -> None:
    view = world(node(), left, inventories=(STAGE,), policy=POLICY)
    plan = attach.decide(view, NAME, POLICY, NOW)
    assert (plan.actions, plan.waiting) == ((), ())


def test_a_model_that_the_policy_does_not_list_is_waited_for_in_words() -> None:
    view = world(node(), theirs(), inventories=(STAGE,), policy=policy("H100"))
    plan = attach.decide(view, NAME, policy("H100"), NOW)
    assert (plan.actions, reasons(plan)) == ((), ("TakeOver",))
    assert "list 'A100'" in plan.waiting[0].what


def test_a_node_that_no_manager_shows_is_waited_for_in_words() -> None:
    view = world(node(), theirs(), policy=POLICY)
    plan = attach.decide(view, NAME, POLICY, NOW)
    assert (plan.actions, reasons(plan)) == ((), ("TakeOver",))
    assert NODE in plan.waiting[0].what


def test_a_device_in_cohdis_books_is_neither_put_into_ours_as_a_stray_nor_told_as_drift() -> None:
    view = world(node(), request(1, name="composability-x"), theirs(), inventories=(STAGE,), policy=POLICY)
    assert scale.decide(view, NODE, POLICY, NOW).actions == ()
    assert drift.decide(view, NODE, POLICY, NOW).findings == ()


def test_a_device_of_the_same_id_on_another_fabrics_node_is_another_device() -> None:
    elsewhere = replace(theirs(), spec=replace(theirs().spec, target_node="n9"))
    view = world(node(), elsewhere, inventories=(STAGE,), policy=POLICY)
    assert view.resource_with(FABRIC, PhysicalID(UUID)) is None


def test_once_taken_over_it_stays_for_whoever_asked_for_it() -> None:
    name = naming.device(FABRIC, POLICY.models[0], PhysicalID(UUID))
    taken = replace(theirs(), metadata=replace(theirs().metadata, annotations={DEVICE: str(name)}))
    view = world(node(), request(1, name="composability-x"), taken, inventories=(STAGE,), policy=POLICY)
    assert attach.decide(view, NAME, POLICY, NOW).actions == ()
    assert scale.decide(view, NODE, POLICY, NOW).actions == ()
    assert drift.decide(view, NODE, POLICY, NOW).findings == ()


def test_cohdis_slices_of_a_pool_are_outlived_by_a_newer_generation() -> None:
    stage = replace(STAGE, free={MODEL: 2})
    pool = naming.pool(FABRIC, POLICY.models[0])
    old = vendor_slice("", name="a100-0", driver=VENDOR)
    old = replace(old, spec=replace(old.spec, pool=ResourcePool(pool, 7, 1), node_name=""))
    view = world(node(), old, inventories=(stage,), policy=POLICY)
    key = SliceKey(FABRIC, VENDOR, pool, publish.WHOLE_POOL)
    (put,) = publish.decide(view, key, POLICY, NOW).actions
    assert isinstance(put, PutSlice)
    assert put.slice.metadata.name == naming.slice_name(VENDOR, pool, 0)
    assert put.slice.spec.pool == ResourcePool(pool, 8, 1)
    ours = replace(put.slice, metadata=replace(put.slice.metadata, resource_version=Version("9")))
    assert (
        publish.decide(
            world(node(), old, ours, inventories=(stage,), policy=POLICY), key, POLICY, NOW
        ).actions
        == ()
    )
    assert DeviceID(VENDOR, pool, "a100-0").device in [one.name for one in ours.spec.devices]

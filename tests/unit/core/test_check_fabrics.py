"""Where books, inventory and slices disagree is seen, and what is under way is not taken for that."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import check
from jackfield.model.composition import DEVICE, MISSING, ResourceState
from jackfield.model.device import Device
from jackfield.model.fabric import FabricDevice, Inventory, Traits
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import ModelName, NodeName, PhysicalID
from jackfield.model.policy import DRIVER, READY
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.testing import builders as b

NEW, ATTACHING, ONLINE, DETACHING, DELETING = ResourceState
ONE = b.inventory(models={"A100": 1}, attached={"1": "n1"})
POOL = b.inventory(models={"A100": 1})
SLOTS = Traits(chooses_device=True)


def listed(*entries: Device, name: str = "s1") -> ResourceSlice:
    spec = ResourceSliceSpec(DRIVER, ResourcePool("rack-a", 1), devices=entries)
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def entry(name: str = "a100-1", on: str = "") -> Device:
    return Device(name, node_name=NodeName(on), binding_conditions=(READY,))


OFFER = listed(entry())
HERE = b.resource(physical="1")


class Row(NamedTuple):
    """What a manager shows, what the books and slices say, and what is wrong with that."""

    shown: Inventory
    beside: tuple[Object, ...]
    faults: tuple[str, ...] = ()


def device(one: Inventory, **changes: object) -> Inventory:
    return b.showing(one, replace(one.devices[0], **changes))


SURPLUS = "device/rack-a/1: was attached to n1 by us, and no resource has it"
ROWS = {
    "all in the pool": Row(POOL, (OFFER,)),
    "one attached and in the books": Row(ONE, (HERE, listed(entry(on="n1")))),
    "one attached, open to all": Row(ONE, (HERE, OFFER)),
    "one attached that nobody knows": Row(ONE, (OFFER,), (SURPLUS,)),
    "one attached that an order may be about to have": Row(
        ONE, (OFFER, b.resource("a100-9", state=ATTACHING))
    ),
    "one attached, and an order of another model": Row(
        ONE, (OFFER, b.resource("h100-9", state=ATTACHING, model="H100")), (SURPLUS,)
    ),
    "one attached by somebody else": Row(device(ONE, ours=False), (OFFER,)),
    "one attached of a model that nobody lists": Row(device(ONE, model=ModelName("X")), ()),
    "one attached to what is no machine": Row(device(ONE, node=NodeName("n9")), (OFFER,)),
    "one attached elsewhere than by the books": Row(
        b.inventory(models={"A100": 1}, machines=("n1", "n2"), attached={"1": "n2"}),
        (HERE, OFFER),
        (
            "device/rack-a/1: stands on n2; by the books it is on n1",
            "resource/a100-1.rack-a: has 1, which its manager does not show on n1",
        ),
    ),
    "one attached elsewhere, and the books are about to say so": Row(
        b.inventory(models={"A100": 1}, machines=("n1", "n2"), attached={"1": "n2"}),
        (b.resource(physical="1", state=DETACHING), OFFER),
    ),
    "known and not there": Row(
        POOL,
        (HERE, OFFER),
        ("resource/a100-1.rack-a: has 1, which its manager does not show on n1",),
    ),
    "known, and without a device": Row(
        POOL,
        (b.resource(), OFFER),
        ("resource/a100-1.rack-a: has no device, which its manager does not show on n1",),
    ),
    "known and not there, and it says so": Row(
        POOL, (b.resource(physical="1", conditions=(Condition(MISSING, "True"),)), OFFER)
    ),
    "known and not there, going": Row(POOL, (b.resource(physical="1", deleted=b.NOW), OFFER)),
    "known and not there, somebody else's": Row(POOL, (b.resource(annotations={DEVICE: ""}), OFFER)),
    "listed on another node": Row(
        ONE, (HERE, listed(entry(on="n2"))), ("slice/s1: lists a100-1 on n2; it is on n1",)
    ),
    "listed on another node while it moves": Row(POOL, (b.resource(state=ATTACHING), listed(entry(on="n2")))),
    "listed on a node and not attached": Row(
        POOL, (listed(entry(on="n2")),), ("slice/s1: lists a100-1 on n2, and nothing attached it",)
    ),
    "listed though it vanished": Row(
        POOL,
        (listed(entry(), entry("a100-7")),),
        ("slice/s1: lists a100-7 which its manager does not show",),
    ),
    "listed though it vanished, since a claim has it": Row(
        POOL, (listed(entry(), entry("a100-7")), b.claim("c", devices=("a100-7",)))
    ),
    "listed, of another model's": Row(POOL, (listed(entry(), entry("h100-7")),)),
    "not listed": Row(POOL, (), (f"device/rack-a/1: is {DRIVER}/rack-a/a100-1, and no slice lists it",)),
    "not listed, of another model": Row(device(POOL, model=ModelName("X")), ()),
    "slots, listed as many as one likes": Row(
        b.inventory(traits=SLOTS, models={"A100": 2}), (listed(entry("a100-0"), entry("a100-5")),)
    ),
    "slots, not listed": Row(b.inventory(traits=SLOTS, models={"A100": 2}), ()),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_books_inventory_and_slices_agree_or_it_is_told(row: Row) -> None:
    view = b.world(*row.beside, inventories=(row.shown,))
    assert tuple(str(one) for one in check.of_fabric(view, b.FABRIC, b.policy())) == row.faults


def test_nothing_is_said_of_a_manager_that_has_shown_nothing() -> None:
    assert check.of_fabric(b.world(HERE), b.FABRIC, b.policy()) == ()


def test_a_device_without_a_model_has_no_name() -> None:
    odd = FabricDevice(PhysicalID("9"), ModelName("X"))
    view = b.world(OFFER, inventories=(b.showing(POOL, odd),))
    assert check.of_fabric(view, b.FABRIC, b.policy()) == ()

"""A vendor's device stays with its pod though its driver's slices are gone: kubelets delete them, pods go on.

A kubelet that starts, or that has missed a driver for half a minute, deletes the slices of that driver on its node.
What claims have by the driver's own names is then known by no uuid, and may be any device of that driver there.
"""

import pytest
from msgspec.structs import replace

from jackfield.core import attach, demand, keep
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import Machine
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Key, ModelName, Seconds
from jackfield.model.view import ObjectChanged
from jackfield.testing import builders as b
from unit.core.attaching import HANDED, LEAVES, NODE, STAYS, TAINTED, VENDOR, Row, check, vendors

HAS = b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=())
LEAVING = b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")
ROWS = {
    "a claim has what nobody shows": STAYS._replace(there=(NODE, HAS, LEAVING)),
    "the device is still shown where it came from": STAYS._replace(
        there=(NODE, b.vendor_slice("GPU-7", on="n2"), TAINTED, HAS, LEAVING)
    ),
    "the claim has another device": LEAVES._replace(
        there=(NODE, TAINTED, b.vendor_slice("GPU-8"), HAS, LEAVING)
    ),
    "the claim is on another node": LEAVES._replace(
        there=(NODE, TAINTED, b.claim("c", devices=(f"{VENDOR}/n2/gpu-0",), on="n2", waits=()), LEAVING)
    ),
    "the claim has another driver's device": LEAVES._replace(
        there=(NODE, TAINTED, b.claim("c", devices=("nic.example.com/n1/gpu-0",), waits=()), LEAVING)
    ),
    "the claim only looks": LEAVES._replace(
        there=(NODE, TAINTED, b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=(), admin=True), LEAVING)
    ),
    "it is pulled by force": LEAVES._replace(
        there=(NODE, HAS, b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7", force=True))
    ),
    "it is to be deleted": Row(
        (NODE, HAS, b.resource(HANDED, uuid="GPU-7", physical="1", deleted=b.NOW)),
        wait=("Claimed",),
        says="claim default/c to give it up",
        policy=vendors(),
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_pod_may_have_is_not_detached_though_nobody_shows_it(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("has", "why"), [((HAS,), []), ((), ["idle for 0 s"])], ids=["a claim has it", "nobody has it"]
)
def test_a_device_that_a_pod_may_have_is_not_idle(has: tuple[Object, ...], why: list[str]) -> None:
    policy = replace(vendors(), hold_seconds=Seconds(0))
    stage = b.inventory(models={"A100": 2}, machines=[Machine(b.NODE)], attached={"1": "n1"})
    warm = b.resource(HANDED, uuid="GPU-7", physical="1", used=b.NOW - 100)
    view = b.world(NODE, warm, *has, inventories=[stage], policy=policy)
    site = keep.Site(view, b.NODE, policy, b.NOW, demand.on_node(view, b.NODE, policy, b.NOW))
    assert [words for _, words in keep.devices(site, policy.models[0]).going] == why
    assert len(view.idle(FabricName("rack-a"), ModelName("A100"))) == len(why)


def test_a_device_falls_idle_when_the_claim_that_may_have_it_goes_and_is_in_use_when_one_comes() -> None:
    view = b.world(NODE, b.resource(HANDED, uuid="GPU-7", physical="1"), policy=vendors())
    kind = FabricName("rack-a"), ModelName("A100")
    shown = b.vendor_slice("GPU-7", uid="s", version="9")
    held = b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=(), uid="c", version="10")
    seen = []
    for one in (shown, held):
        view.put(one)
        seen.append(len(view.idle(*kind)))
    for one in (shown, held):
        view.remove(one)
        seen.append(len(view.idle(*kind)))
    assert seen == [1, 0, 0, 1]
    assert view.claim(Key("default", "c")) is None


@pytest.mark.parametrize(
    ("there", "woken"),
    [
        (b.resource(HANDED, uuid="GPU-7", deleted=b.NOW), True),
        (b.resource(HANDED, uuid="GPU-7", state=ResourceState.DETACHING), True),
        (b.resource(HANDED, uuid="GPU-7"), False),
        (b.resource(HANDED, uuid="GPU-7", deleted=b.NOW, on="n2"), False),
        (b.resource("a100-1", deleted=b.NOW), False),
    ],
    ids=["to be deleted", "leaving", "staying", "elsewhere", "ours"],
)
def test_what_is_to_leave_is_looked_at_again_when_a_claim_gives_up_its_drivers_device(
    there: Object, *, woken: bool
) -> None:
    gone = ObjectChanged(HAS, None)
    assert bool(attach.wakes(b.world(NODE, there, policy=vendors()), vendors(), gone)) is woken

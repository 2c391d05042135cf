"""What somebody else attached: left alone by every order but one that says so; and what is moved by hand."""

import pytest
from msgspec.structs import replace

from jackfield.model.fabric import Done, Failed, Order, Working
from jackfield.model.names import NodeName, PhysicalID
from jackfield.ports import Refused
from jackfield.sim.manager import Manager
from jackfield.sim.spec import FabricSpec, Foreign
from unit.sim.small_fabric import A100, N0, N1, SPEC, TOLD, after, attach, detach, on, order, play, shown

POOL = NodeName("")


def off(device: str, node: NodeName = N0) -> Order:
    return replace(order("off", node, device=device), foreign=True)


@pytest.mark.parametrize("spec", [SPEC, TOLD])
def test_an_order_that_says_so_detaches_what_somebody_else_attached(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        assert not shown(manager, "0000").ours
        assert detach(manager, off("0000")) == Working()
        assert detach(manager, off("0000")) == Working()
        await after(15)
        assert isinstance(detach(manager, off("0000")), Done)
        assert (shown(manager, "0000").node, shown(manager, "0000").ours) == (POOL, True)
        assert isinstance(attach(manager, order("next", device="0000")), Working), "it can be had again"

    play(replace(spec, foreign=(Foreign(N0, A100),)), scenario)


@pytest.mark.parametrize("spec", [SPEC, TOLD])
def test_such_an_order_detaches_nothing_else(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("ours", device="0001"))
        await after(15)
        with pytest.raises(Refused, match="another order of yours"):
            detach(manager, off("0001"))
        assert isinstance(detach(manager, off("0002")), Done), "it is in the pool"
        assert isinstance(detach(manager, replace(off("0000", N1))), Done), "it is on another node"
        await after(30)
        assert on(manager, N0) == [PhysicalID("0000"), PhysicalID("0001")]

    play(replace(spec, foreign=(Foreign(N0, A100),)), scenario)


def test_a_device_that_is_moved_by_hand_is_not_ours_any_more() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("ours", device="0001"))
        await after(15)
        manager.move(PhysicalID("0001"), N1)
        moved = shown(manager, "0001")
        assert (moved.node, moved.ours, moved.order) == (N1, False, "")
        assert attach(manager, order("ours", device="0001")) == Failed("device 0001 was pulled by hand")
        assert isinstance(detach(manager, order("ours", device="0001")), Done)
        assert shown(manager, "0001").node == N1
        manager.move(PhysicalID("0001"), POOL)
        assert (shown(manager, "0001").node, shown(manager, "0001").ours) == (POOL, True)

    play(SPEC, scenario)


def test_a_device_that_is_hidden_stays_where_it_is() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("ours", device="0001"))
        await after(15)
        manager.pool.hide(PhysicalID("0001"), PhysicalID("0002"))
        assert len(manager.inventory().devices) == 4
        manager.pool.hide()
        assert shown(manager, "0001").order == "ours"

    play(SPEC, scenario)

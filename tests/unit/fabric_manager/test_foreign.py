"""What another face attached is detached only by an order that says so, and then like anything else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import Done, Failed, Order, Working
from jackfield.ports import Refused
from unit.fabric_manager.lab import attached, detached, lab, on, order, places


def off(device: str = "a-1", node: str = "n-1") -> Order:
    return replace(order("off", device, node), foreign=True)


async def settled(manager: Manager, of: Order) -> Done | Failed:
    """Ask until it is over: the work is for another's order, so nobody is told of it."""
    progress = await detached(manager, of)
    while isinstance(progress, Working):
        progress = await detached(manager, of)
    return progress


def test_an_order_that_says_so_detaches_what_another_attached(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("hand"), "control"), Done)
        assert isinstance(await detached(manager, order("plain")), Done)
        assert await places(manager) == {"a-1": "n-1"}, (
            "an order detaches what it attached, and that is nothing"
        )
        assert isinstance(await settled(manager, off()), Done)
        assert await places(manager) == {}
        assert await attached(manager, order("hand"), "control") == Failed("order hand is closed")
        assert isinstance(await attached(manager, order("next")), Done)
        assert isinstance(await settled(manager, off()), Done), "it is closed, and asks for nothing any more"
        assert await places(manager) == {"a-1": "n-1"}

    on(tmp_path, lab(), play)


def test_it_detaches_nothing_that_is_elsewhere_or_the_askers_own(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("hand", "a-1", "n-2"), "control"), Done)
        assert isinstance(await settled(manager, off()), Done)
        assert await places(manager) == {"a-1": "n-2"}
        assert isinstance(await attached(manager, order("ours", "a-2")), Done)
        with pytest.raises(Refused, match="another order of yours, ours"):
            await manager.detach(replace(off("a-2"), id=order("other").id), "native")

    on(tmp_path, lab(), play)

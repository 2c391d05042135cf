"""What is shown is kept from one question to the next, and made anew only where something moved."""

import asyncio
import random
from pathlib import Path

from jackfield.fabric_manager.books import Books
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.manager import Manager
from jackfield.model.names import NodeName, PhysicalID
from unit.fabric_manager.lab import attached, detached, lab, managing, order

STEPS = 120
OWNERS = ("native", "fsas")


async def step(manager: Manager, chance: random.Random, number: int) -> None:
    """Do anything that may change what is shown."""
    device, node = f"a-{chance.randrange(10) + 1}", f"n-{chance.randrange(2) + 1}"
    holder = manager.books.holder(PhysicalID(device))
    faults = tuple(manager.faults)
    match chance.randrange(6):
        case 0 if faults:
            await manager.clear_fault(chance.choice(faults).id)
        case 0 if len(faults) < 3:
            await manager.set_fault(Fault(chance.choice((Kind.ILL, Kind.VANISH)), device=PhysicalID(device)))
        case 1 if not faults:
            await manager.set_fault(Fault(Kind.CUT, node=NodeName(node)))
        case 2 | 3 if holder is not None and not faults:
            await detached(manager, holder.order, holder.owner)
        case _ if not faults:
            await attached(manager, order(f"o-{number}", device, node), chance.choice(OWNERS))
        case _:
            await manager.clear_fault(faults[0].id)


def test_what_is_shown_is_what_a_manager_would_show_that_was_just_started(tmp_path: Path) -> None:
    async def main() -> None:
        chance = random.Random("shown")  # noqa: S311 - no secret is made of it
        different: set[str] = set()
        async with managing(tmp_path, lab()) as manager:
            for number in range(STEPS):
                await step(manager, chance, number)
                fresh = Books(manager.hardware, manager.store, manager.faults)
                for owner in OWNERS:
                    shown = await manager.inventory(owner)
                    assert shown == fresh.inventory(owner)
                    different.add(str(shown))
                for node in manager.hardware.machines:
                    assert set(manager.books.on(node)) == set(fresh.on(node))
        assert len(different) > STEPS / 2

    asyncio.run(main())


def test_the_same_is_shown_while_nothing_changes(tmp_path: Path) -> None:
    async def main() -> None:
        async with managing(tmp_path, lab()) as manager:
            before = await manager.inventory("native")
            assert await manager.inventory("native") is before
            await attached(manager, order("o-1"))
            after = await manager.inventory("native")
            assert after != before
            same = [new is old for new, old in zip(after.devices, before.devices, strict=True)]
            assert same.count(False) == 1, "one device moved, and one is made anew"

    asyncio.run(main())

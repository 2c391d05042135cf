"""The audit misses what our controllers were not woken for, once they had time to be."""

from contextlib import closing

import pytest

from jackfield.controllers.recorders import Recorders
from jackfield.model.names import Seconds
from jackfield.model.policy import DRIVER
from jackfield.sim.audit.overlooked import LOOK_SECONDS, Overlooked
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.loop import VirtualLoop
from jackfield.sim.setting import Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.sim.world import SimWorld
from jackfield.testing import builders as b

FABRIC = FabricSpec(b.FABRIC, batches=(Batch(b.MODEL, 2),))
STAGE = Setting(nodes=(Nodes("n", 1, fabric=b.FABRIC),), fabrics=(FABRIC,), policy=b.policy())
WHAT = "nobody looks, though the pool changed: a100-0000, a100-0001 joined"


@pytest.mark.parametrize("told", [True, False], ids=["its controllers are told", "nobody is told"])
def test_what_nobody_was_woken_for_is_missed_at_the_second_look(*, told: bool) -> None:
    async def scenario() -> None:
        world = SimWorld(STAGE, running(), Chance(1), Recorders())
        async with world:
            await world.clock.sleep(Seconds(30.0))
            (replica,) = world.replicas
            (listed,) = replica.store.slices(DRIVER, b.FABRIC)
            lost = replica.store.remove(listed)
            if told:
                replica.runner.hear(lost)
                await world.clock.sleep(Seconds(1.0))
            overlooked = Overlooked(world)
            assert list(overlooked.look(world.clock.now())) == [], "it may have been done a moment ago"
            await world.clock.sleep(Seconds(10.0))
            found = [
                words.partition(": ")[2].partition(": ")[2] for _, words in overlooked.look(world.clock.now())
            ]
            assert found == ([] if told else [WHAT])
            later = Seconds(world.clock.now() + LOOK_SECONDS / 2)
            assert list(overlooked.look(later)) == [], "it is told once, and not looked for all the time"

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())

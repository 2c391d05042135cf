"""A simulated world: whoever runs in it runs once."""

from contextlib import closing

from jackfield.controllers.recorders import Recorders
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.loop import VirtualLoop
from jackfield.sim.torture import draw
from jackfield.sim.world import SimWorld


def test_a_replica_that_was_started_meanwhile_is_not_started_once_more() -> None:
    async def scenario() -> None:
        world = SimWorld(draw.draw(1).setting, running(), Chance(1), Recorders())
        async with world:
            first = world.replicas[1]
            world.start_replica(1)
            assert world.replicas[1] is first
            world.kill_replica(1)
            world.start_replica(1)
            second = world.replicas[1]
            assert second is not first
            world.start_replica(1)
            assert world.replicas[1] is second

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())

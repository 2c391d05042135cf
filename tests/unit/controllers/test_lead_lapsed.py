"""A lease that had run out for a moment: whoever noticed let go of his work, and must hear that it is his again."""

import asyncio

import pytest

from jackfield.controllers.lead import Identity, Leases
from jackfield.model.lease import Lease
from jackfield.model.names import Seconds
from jackfield.sim.clock import running
from unit.controllers.replicas import FABRICS, LEASE, THIRD, Stage, Wire, play


class Ahead:
    """A clock that can be put ahead, and back before anybody else looks at it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> Seconds:
        return Seconds(running().now() + self.ahead)

    async def sleep(self, duration: Seconds) -> None:
        await running().sleep(duration)


@pytest.mark.parametrize(("questions", "told_again"), [(0, 0), (1, 1), (3, 1)])
def test_whoever_was_told_that_nobody_leads_is_told_when_somebody_does(
    questions: int, told_again: int
) -> None:
    async def scene(stage: Stage) -> None:
        clock, told = Ahead(), []
        leases = Leases(Wire(stage.cluster), clock, Identity("one", "process 1"), LEASE)
        task = asyncio.get_running_loop().create_task(leases.run(lambda: told.append(clock.now())))
        await stage.wait(0.001)
        assert leases.leads(FABRICS[0])
        clock.ahead = LEASE
        assert not any(leases.leads(FABRICS[0]) for _ in range(questions))
        clock.ahead = 0.0
        await stage.wait(THIRD + 0.1)
        assert leases.leads(FABRICS[0])
        await stage.wait(5 * LEASE)
        assert len(told) == 1 + told_again
        task.cancel()
        await asyncio.wait((task,))

    play(scene)


def test_a_lease_that_is_not_renewed_is_told_once_for_each_reason_and_when_it_is_again() -> None:
    async def scene(stage: Stage) -> None:
        said: list[str] = []
        process = stage.start("one")
        process.leases.heard = said.append
        await stage.wait(2 * LEASE)
        assert said == []
        process.wire.away = True
        await stage.wait(2 * LEASE)
        process.wire.refusing, process.wire.away = True, False
        await stage.wait(2 * LEASE)
        process.wire.refusing = False
        await stage.wait(2 * LEASE)
        told = [one.partition(";")[0] for one in said]
        lease = "our Lease jackfield-controllers/one"
        assert told == [
            f"{lease} is not renewed: nobody answers",
            f"{lease} is not renewed: you may not",
            f"{lease} is renewed again",
        ]
        await process.kill()

    play(scene)


def test_who_ends_without_a_lease_takes_nobody_elses() -> None:
    """Two processes of one name: the one that has the Lease goes on, and the other one's end is not its own."""

    async def scene(stage: Stage) -> None:
        stage.start("one")
        await stage.wait(LEASE)
        other = Leases(Wire(stage.cluster), running(), Identity("one", "process 2"), LEASE)
        await other.release()
        assert (await stage.cluster.read(Lease, other.me.key)).spec.holder_identity == "one"

    play(scene)

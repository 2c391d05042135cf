"""So many calls a second, and a burst more."""

import asyncio

from jackfield.kube.bucket import Bucket
from jackfield.model.names import Seconds
from jackfield.sim import loop
from jackfield.sim.clock import running


def test_a_burst_passes_at_once_and_the_rest_in_turn() -> None:
    async def main() -> list[float]:
        bucket = Bucket(rate=10, burst=5)
        clock = running()
        begun = clock.now()
        passed: list[float] = []

        async def one() -> None:
            await bucket.take()
            passed.append(round(clock.now() - begun, 3))

        await asyncio.gather(*(one() for _ in range(8)))
        return passed

    assert loop.run(main()) == [0.0] * 5 + [0.1, 0.2, 0.3]


def test_a_bucket_fills_again_and_never_beyond_its_size() -> None:
    async def main() -> float:
        bucket = Bucket(rate=10, burst=5)
        clock = running()
        for _ in range(5):
            await bucket.take()
        await clock.sleep(Seconds(100.0))
        begun = clock.now()
        for _ in range(6):
            await bucket.take()
        return round(clock.now() - begun, 3)

    assert loop.run(main()) == 0.1

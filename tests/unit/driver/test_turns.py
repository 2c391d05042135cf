"""Work for one key is done one piece at a time, is bounded, and is not done twice because it was asked for twice."""

import asyncio

from jackfield.driver.turns import Turns
from unit.driver.seat import run


def test_a_question_asked_twice_is_answered_once() -> None:
    async def main() -> None:
        turns, gate = Turns[int](1), asyncio.Event()
        asked = []

        async def work() -> int:
            asked.append(1)
            await gate.wait()
            return 7

        first, second = turns.take("k", "q", work), turns.take("k", "q", work)
        assert first is not None
        assert first is second
        gate.set()
        assert await first.task == 7
        assert asked == [1]

    run(main())


def test_for_a_key_one_question_is_under_way_one_waits_and_one_more_is_too_many() -> None:
    async def main() -> None:
        turns, gate = Turns[str](9), asyncio.Event()
        order = []

        async def work(name: str) -> str:
            order.append(f"begin {name}")
            await gate.wait()
            order.append(f"end {name}")
            return name

        first = turns.take("k", "prepare", lambda: work("first"))
        second = turns.take("k", "unprepare", lambda: work("second"))
        assert turns.take("k", "prepare", lambda: work("third")) is None
        other = turns.take("o", "prepare", lambda: work("other"))
        assert first is not None
        assert second is not None
        assert other is not None
        gate.set()
        assert list(await asyncio.gather(first.task, second.task, other.task)) == ["first", "second", "other"]
        assert order.index("end first") < order.index("begin second")
        after = turns.take("k", "prepare", lambda: work("third"))
        assert after is not None
        assert len(turns) == 1
        assert await after.task == "third"
        assert len(turns) == 0

    run(main())


def test_a_failure_lets_the_next_one_have_its_turn() -> None:
    async def main() -> None:
        turns = Turns[int](1)

        async def fail() -> int:
            raise ValueError

        async def work() -> int:
            return 1

        first, second = turns.take("k", "a", fail), turns.take("k", "b", work)
        assert first is not None
        assert second is not None
        assert await second.task == 1
        assert isinstance(first.task.exception(), ValueError)

    run(main())


def test_the_end_waits_for_work_and_cancels_what_never_ends() -> None:
    async def main() -> None:
        turns = Turns[int](9)

        async def work(span: float) -> int:
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=span)
            return 1

        brief = turns.take("brief", "q", lambda: work(0.01))
        endless = turns.take("endless", "q", lambda: work(3600))
        waiting = turns.take("endless", "other", lambda: work(0))
        assert brief is not None
        assert endless is not None
        assert waiting is not None
        await asyncio.wait([brief.task])
        await turns.close(0.05)
        assert brief.task.result() == 1
        assert endless.task.cancelled()
        assert waiting.task.cancelled()
        await turns.close(3600)

    run(main())

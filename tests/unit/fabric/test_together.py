"""What is asked side by side: all of it, or the first failure, and nothing is left of that on whoever asked."""

import asyncio

import pytest

from jackfield.fabric.together import all_of
from jackfield.ports import Retry


async def said(word: str) -> str:
    return word


async def failing() -> str:
    raise Retry("busy")


def test_what_each_gives_comes_in_the_order_in_which_it_was_asked() -> None:
    assert asyncio.run(all_of([said("a"), said("b")])) == ("a", "b")


def test_the_first_failure_is_told_and_whoever_asked_does_not_count_as_cancelled() -> None:
    async def ask() -> int:
        for _ in range(2):
            with pytest.raises(Retry, match="busy"):
                await all_of([said("a"), failing(), failing()])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.Event().wait()
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert asyncio.run(ask()) == 0


def test_whoever_is_cancelled_ends_what_he_asked() -> None:
    ended: list[str] = []

    async def patient() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("patient")
        return ""

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await all_of([patient(), patient()])

    asyncio.run(ask())
    assert ended == ["patient", "patient"]

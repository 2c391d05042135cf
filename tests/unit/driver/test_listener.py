"""A socket comes into sight when it answers, and never in another's place."""

import asyncio
import itertools
from pathlib import Path

import grpc
import grpc.aio
import pytest

from jackfield.driver.listener import Bounds, Listener
from jackfield.driver.sockets import Misplaced
from unit.driver.seat import DRIVER, run, seat


def listener(path: Path, answer: bytes) -> Listener:
    async def handle(_: bytes, __: object) -> bytes:
        return answer

    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Who": grpc.unary_unary_rpc_method_handler(handle)
    }
    return Listener(path, DRIVER, (grpc.method_handlers_generic_handler("a.B", methods),), Bounds())


async def who(path: Path) -> bytes:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/a.B/Who")
        return await call(b"")


def test_of_two_that_begin_at_once_one_listens_and_the_other_is_told() -> None:
    async def main(folder: Path) -> None:
        path = folder / "a.sock"
        both = {answer: listener(path, answer) for answer in (b"first", b"second")}
        errors = await asyncio.gather(*(one.open() for one in both.values()), return_exceptions=True)
        assert [type(one) for one in errors if one] == [Misplaced]
        answer = await who(path)
        assert not both[answer].lost
        assert entries(folder) == ["a.sock"]
        for one in both.values():
            await one.close()
        assert entries(folder) == []

    with seat() as places:
        run(main(places.plugins.parent))


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_end_of_one_that_never_listened_leaves_the_others_socket_alone() -> None:
    async def main(folder: Path) -> None:
        path = folder / "a.sock"
        first, second = listener(path, b"first"), listener(path, b"second")
        await first.open()
        with pytest.raises(Misplaced, match="another process serves this driver"):
            await second.open()
        await second.close()
        assert await who(path) == b"first"
        await first.close()

    with seat() as places:
        run(main(places.plugins.parent))


def test_a_folder_that_is_not_there_is_told_in_words() -> None:
    with seat() as places, pytest.raises(Misplaced, match=r"cannot make a socket in .*plugins: .* mounted"):
        run(listener(places.plugins / "a.sock", b"").open())


def test_one_that_is_told_to_end_while_it_begins_leaves_nothing() -> None:
    """However far it has come: so many turns of the loop, and one more each time, until it has begun."""

    async def main(folder: Path) -> None:
        begun = False
        for turns in itertools.count():
            one = listener(folder / "a.sock", b"")
            opening = asyncio.create_task(one.open())
            for _ in range(turns):
                await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
            begun = opening.done()
            opening.cancel()
            (outcome,) = await asyncio.gather(opening, return_exceptions=True)
            if begun:
                assert outcome is None
                await one.close()
            else:
                assert isinstance(outcome, asyncio.CancelledError)
            assert [name for name in entries(folder) if not name.startswith(".")] == []
            if begun:
                return

    with seat() as places:
        run(main(places.plugins.parent))

"""Claims written down together."""

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from jackfield.driver.entry import Entry, Held
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Done, Writer
from jackfield.model.names import Key, Uid
from jackfield.ports import Refused
from unit.driver.disk import Deadly, Killed, Patient, Quick

T = TypeVar("T")
CLAIMS = [
    Entry(Uid(f"uid-{number}"), Key("team", f"claim-{number}"), (Held(("gpu",), "node-1", f"gpu-{number}"),))
    for number in range(100)
]


@pytest.fixture
def calls() -> Quick:
    return Quick()


@pytest.fixture
def store(tmp_path: Path, calls: Quick) -> PreparedStore:
    store = PreparedStore("gpu.example.com", tmp_path, tmp_path / "cdi", calls=calls)
    store.open()
    calls.steps.clear()
    return store


async def all_of(*askings: Awaitable[T]) -> list[T | BaseException]:
    return await asyncio.gather(*askings, return_exceptions=True)


def run(play: Coroutine[object, object, None]) -> None:
    """Run it, and give up only where it can never end."""
    asyncio.run(asyncio.wait_for(play, 300))


def test_claims_that_are_put_at_once_are_one_write(store: PreparedStore, calls: Quick) -> None:
    writer = Writer(store)

    async def play() -> None:
        ids = await all_of(*(writer.put(one) for one in CLAIMS))
        assert ids == [store.ids(one) for one in CLAIMS]
        assert calls.steps.count("sync") == 2
        assert store.entries() == tuple(CLAIMS)
        await all_of(*(writer.remove(one.uid) for one in CLAIMS))
        assert calls.steps.count("sync") == 5
        assert store.entries() == ()
        assert await writer.put(CLAIMS[0]) == store.ids(CLAIMS[0])

    run(play())


@pytest.fixture
def disk() -> Patient:
    return Patient()


@pytest.fixture
def slow(tmp_path: Path, disk: Patient) -> Iterator[PreparedStore]:
    """A store on a disk for which one has to wait."""
    store = PreparedStore("gpu.example.com", tmp_path, tmp_path / "cdi", calls=disk)
    store.open()
    store.put(CLAIMS[99])
    disk.steps.clear()
    disk.slow = True
    yield store
    disk.may_go_on.release(10)  # nobody is left waiting, whatever became of the test


async def waits(disk: Patient) -> None:
    """Go on when the writer waits for the disk."""
    await asyncio.get_running_loop().run_in_executor(None, disk.waiting.wait)


def test_whoever_comes_while_the_disk_is_waited_for_shares_the_next_write(
    slow: PreparedStore, disk: Patient
) -> None:
    writer, told = Writer(slow), list[Done]()
    writer.heard = told.append

    async def play() -> None:
        first = asyncio.create_task(writer.put(CLAIMS[0]))
        await waits(disk)
        others = [asyncio.create_task(writer.put(one)) for one in CLAIMS[1:30]]
        others_gone = asyncio.create_task(writer.remove(CLAIMS[99].uid))
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
        disk.slow = False
        disk.may_go_on.release()
        assert await first == slow.ids(CLAIMS[0])
        assert await all_of(*others) == [slow.ids(one) for one in CLAIMS[1:30]]
        await others_gone
        await writer.close()
        assert slow.entries() == tuple(CLAIMS[:30])
        # Of each write the file and its folder; and the folder of CDI files, which must not come back.
        assert disk.steps.count("sync") == 2 + 2 + 1
        assert [one.writes for one in told] == [1, 1]
        assert [len(one.outcomes) for one in told] == [1, 30]

    run(play())


def test_nobody_is_answered_before_it_is_durable_and_who_only_looks_does_not_wait(
    slow: PreparedStore, disk: Patient
) -> None:
    writer = Writer(slow)

    async def play() -> None:
        asked = asyncio.create_task(writer.put(CLAIMS[0]))
        for number in (1, 2):  # the file itself, then its name in the folder
            await waits(disk)
            assert disk.steps.count("sync") == number
            assert slow.get(CLAIMS[0].uid) is None
            assert slow.entries() == (CLAIMS[99],)
            assert slow.strays() == ()
            assert not asked.done()
            disk.waiting.clear()
            disk.slow = number == 1
            disk.may_go_on.release()
        await asked
        assert slow.get(CLAIMS[0].uid) == CLAIMS[0]

    run(play())


def test_what_is_asked_of_one_claim_is_done_one_after_the_other(store: PreparedStore) -> None:
    writer, told = Writer(store), list[Done]()
    writer.heard = told.append
    other = Entry(CLAIMS[0].uid, CLAIMS[0].claim)

    async def play() -> None:
        await all_of(
            *(writer.put(one) for one in (CLAIMS[0], CLAIMS[1], other)),
            writer.remove(CLAIMS[1].uid),
            *(writer.put(one) for one in (CLAIMS[2], CLAIMS[0])),
        )
        assert store.entries() == (CLAIMS[0], CLAIMS[2])
        assert [len(one.outcomes) for one in told] == [2, 3, 1]
        await writer.put(CLAIMS[0])
        assert told[-1].writes == 0  # nothing had changed

    run(play())


def test_a_kill_at_any_step_of_a_write_that_many_share_loses_no_answer_and_gives_nothing_away_unknown() -> (
    None
):
    """Some are put and some removed, in two writes; the process dies before each step that changes the disk."""

    for at in itertools.count():
        with tempfile.TemporaryDirectory() as folder:
            root, calls = Path(folder), Deadly(10_000)
            store = PreparedStore("gpu.example.com", root, root / "cdi", calls=calls)
            store.open()
            asyncio.run(all_of(*(Writer(store).put(one) for one in CLAIMS[:3])))
            calls.kill_at(len(calls.steps) + at)
            answered = asyncio.run(_killed(Writer(store)))
            after = PreparedStore("gpu.example.com", root, root / "cdi", calls=Quick())
            given = {one.name.split("_")[-1].removesuffix(".json") for one in (root / "cdi").glob("*.json")}
            after.open()
            known = {one.uid for one in after.entries()}
            assert given <= known, at
            assert after.strays() == (), at
            put, removed = {one.uid for one in CLAIMS[3:6]}, {one.uid for one in CLAIMS[:2]}
            assert CLAIMS[2].uid in known
            assert answered & put <= known, at
            assert not answered & removed & known, at
            # One write: all of it is there, or nothing.
            assert (put <= known and not removed & known) or (not put & known and removed <= known), at
            if answered == put | removed:
                break
    assert at > 20  # the disk did see all those steps


async def _killed(writer: Writer) -> set[Uid]:
    """Ask for three and have two removed, on a disk that may kill; return who was answered."""
    tasks = {one.uid: asyncio.create_task(writer.put(one)) for one in CLAIMS[3:6]}
    gone = {one.uid: asyncio.create_task(writer.remove(one.uid)) for one in CLAIMS[:2]}
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
    await writer.close()
    answered = {uid for uid, task in (*tasks.items(), *gone.items()) if task.done()}
    writing = writer._writing  # noqa: SLF001 - who dies answers nobody
    assert writing is not None
    assert writing.exception() is None or isinstance(writing.exception(), Killed)
    for task in (*tasks.values(), *gone.values()):
        task.cancel()
    return answered


def test_one_that_is_refused_spoils_no_other(store: PreparedStore) -> None:
    writer = Writer(store)
    bad = Entry(Uid("../x"), Key("team", "a"))

    async def play() -> None:
        first, second, third = await all_of(writer.put(CLAIMS[0]), writer.put(bad), writer.put(CLAIMS[1]))
        assert (first, third) == (store.ids(CLAIMS[0]), store.ids(CLAIMS[1]))
        assert isinstance(second, Refused)
        gone, refused = await all_of(writer.remove(CLAIMS[0].uid), writer.remove(bad.uid))
        assert gone is None
        assert isinstance(refused, Refused)

    run(play())
    assert store.entries() == (CLAIMS[1],)


@pytest.mark.parametrize("second", [CLAIMS[1], Entry(Uid("../x"), Key("team", "a"))])
def test_who_asks_and_goes_keeps_no_other_waiting(second: Entry, store: PreparedStore) -> None:
    writer = Writer(store)

    async def play() -> None:
        gone = [asyncio.create_task(writer.put(one)) for one in (CLAIMS[0], second)]
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
        for one in gone:
            one.cancel()
        assert await writer.put(CLAIMS[2]) == store.ids(CLAIMS[2])
        assert all(isinstance(one, asyncio.CancelledError) for one in await all_of(*gone))

    run(play())

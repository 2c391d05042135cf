"""A minute of real faults on a real control plane, as `make real-long` has ten; docs/torture.md says what is done."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.testing.control_plane import ControlPlane
from real.faults.draw import KINDS, Ordeal, What, drawn
from real.faults.proxy import Line, Way
from real.faults.run import live, say
from storm.managers import KINDS as MANAGERS

SEED = 11
"""Devices of ours behind one manager that knows order ids; others are drawn for the long form."""
SECONDS = 45.0
BINDING_TIMEOUT = 600.0
"""What the scheduler that all tests share waits for."""


def short() -> Ordeal:
    """A minute that the shared control plane can take part in."""
    ordeal = drawn(SEED, SECONDS)
    policy = replace(ordeal.setting.policy, binding_timeout_seconds=BINDING_TIMEOUT)
    return replace(ordeal, setting=replace(ordeal.setting, policy=policy))


@pytest.mark.slow
def test_all_ends_well_after_a_minute_with_every_kind_of_fault(fresh: ControlPlane, tmp_path: Path) -> None:
    """Whatever is wrong at any moment, or when all is quiet again, `live` raises."""
    ordeal = short()
    report = live(fresh, ordeal, tmp_path, say)
    assert set(report.faults) == {*What, *Way} - {Way.OPEN}
    assert report.attaches == report.detaches > 0


def test_the_same_seed_draws_the_same_and_another_one_something_else() -> None:
    assert drawn(1, 600.0) == drawn(1, 600.0)
    assert drawn(1, 600.0) != drawn(2, 600.0)


@pytest.mark.parametrize("seconds", [45.0, 600.0])
def test_nothing_happens_twice_to_a_process_at_a_time_and_all_is_over_soon_after_the_last_user(
    seconds: float,
) -> None:
    for seed in range(30):
        ordeal = drawn(seed, seconds)
        assert all(one.at < seconds for one in ordeal.steps)
        for target in {one.target for one in ordeal.faults}:
            spans = sorted((one.at, one.at + one.seconds) for one in ordeal.faults if one.target == target)
            assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_every_kind_of_manager_is_drawn() -> None:
    assert {kind for kinds in KINDS.values() for kind in kinds} == set(MANAGERS)


# --- the lines that are cut


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while said := await reader.read(100):
        writer.write(said)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def _spoken(way: Way) -> tuple[bool, bool]:
    """Whether an answer comes while a line is in a way, and on the same connection once it is open again."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Line(f"http://127.0.0.1:{port}", delay=0.01) as line:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(line.url.rpartition(":")[2]))
        writer.write(b"before")
        assert await reader.read(100) == b"before"
        await line.turn(way)
        try:
            writer.write(b"meanwhile")
            meanwhile = await _heard(reader, 0.2)
            await line.turn(Way.OPEN)
            return meanwhile, meanwhile or await _heard(reader, 20.0)
        finally:
            writer.transport.abort()


async def _heard(reader: asyncio.StreamReader, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return bool(await reader.read(100))
    except (TimeoutError, ConnectionError):
        return False


@pytest.mark.parametrize(
    ("way", "spoken"),
    [
        (Way.OPEN, (True, True)),
        (Way.CUT, (False, False)),
        (Way.HOLE, (False, True)),
        (Way.DEAF, (False, True)),
    ],
)
def test_what_is_held_up_arrives_later_and_what_is_cut_never(way: Way, spoken: tuple[bool, bool]) -> None:
    assert asyncio.run(_spoken(way)) == spoken

"""Whatever a manager says, an adapter answers with an error of the port or does no harm: here a little of it."""

import asyncio
import contextlib
import random

import pytest

from hostile.fabrics import benches, contents, fuzz, hurried, wires
from hostile.fabrics.benches import SETUPS
from hostile.fabrics.contents import Traps
from hostile.fabrics.front import Front, Heard, Said
from hostile.fabrics.hurried import HurriedClock
from hostile.fabrics.judging import Case, Court, Liar, Verdict
from hostile.fabrics.tape import Player
from jackfield.fabric import TYPES
from jackfield.model.names import Seconds
from jackfield.ports import Retry

LIES = 300
SEED = 11


def test_every_adapter_is_lied_to() -> None:
    """One that is missing needs its settings in `benches.py`, and nothing else."""
    assert {setup.type or name for name, setup in SETUPS.items()} == TYPES.keys()


@pytest.mark.parametrize("kind", SETUPS)
def test_hostile_answers_are_clear_errors_or_do_no_harm(kind: str) -> None:
    outcomes, wrong = fuzz.run(kind, SEED, LIES)
    assert wrong == []
    words = {one.partition(": ")[2] for one in outcomes}
    assert {"Inventory", "Done", "Retry"} <= words, "every layer is reached"


def test_without_lies_a_recorded_conversation_ends_as_it_did() -> None:
    async def main() -> None:
        for kind in SETUPS:
            tape = taped[kind]
            player = Player(tape, 0)
            assert player.answer(tape.turns[0].heard) == tape.turns[0].said
            assert player.answer(Heard("GET", "/nothing/of/the/kind")).status == 404

    taped = {kind: fuzz.taped(kind) for kind in SETUPS}
    hurried.run(main())


class Torn(random.Random):
    """Chance by which every lie is of another time."""

    def random(self) -> float:
        return 0.0


def test_pages_of_two_times_are_not_compared_with_what_another_process_sees() -> None:
    async def main() -> list[bool]:
        liar = Liar(Torn(1), tape, Case(("attach",), 0, "one", "1"), Traps("h:1", ()))
        found = []
        async with Front(liar).up() as url:
            host, _, port = url.removeprefix("http://").partition(":")
            for number, heard in enumerate(asked, 1):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(f"{heard.method} {heard.path} HTTP/1.1\r\n\r\n".encode())
                while liar.answers < number:
                    await HurriedClock().sleep(Seconds(0.01))
                found.append(liar.comparable)
                writer.close()
                with contextlib.suppress(ConnectionError):  # it may have broken off
                    await writer.wait_closed()
        return found

    tape = fuzz.taped("redfish-constrained")
    looks = [one.heard for one in tape.turns if one.heard.method == "GET"]
    change = next(one.heard for one in tape.turns if one.changes)
    asked = (looks[0], looks[1], looks[2], change)
    assert hurried.run(main()) == [True, False, False, True]


def test_the_same_seed_tells_the_same_lies() -> None:
    said = Said(200, (("ETag", "x"),), b'{"a": [{"b": "c"}, 1, null], "d": {"e": true}}')

    def lies() -> list[Said]:
        chance = random.Random("the same")  # noqa: S311 - chance in tests is not cryptography
        return [contents.spoilt(chance, Heard("GET", "/a"), said, Traps("h:1", ("w",))) for _ in range(200)]

    assert lies() == lies()
    assert len({one.wire for one in lies()}) > 100


@pytest.mark.parametrize("way", [*wires.LARGE, None], ids=[*(one.__name__ for one in wires.LARGE), "many"])
def test_what_is_too_large_costs_the_call_and_nothing_else(way: wires.Way | None) -> None:
    async def answers(_: Heard, writer: asyncio.StreamWriter) -> bool:
        if way is not None:
            return await way(chance, plain, writer)
        writer.write(contents.many(chance, plain).wire)
        return True

    async def main() -> None:
        front = Front(answers)
        async with front.up() as url, benches.line("native", url, HurriedClock(), Seconds(60.0)) as fabric:
            with pytest.raises(Retry) as caught:
                await fabric.inventory()
            assert len(str(caught.value)) < 2_000
            if way is wires.bomb:
                assert "larger than 64 MiB" in str(caught.value)
        assert front.heard == 1

    chance = random.Random("large")  # noqa: S311 - chance in tests is not cryptography
    plain = Said(200, (), b'{"fabric": "rack-a", "devices": [{"id": "a", "model": "b"}]}')
    before = fuzz.megabytes()
    hurried.run(main())
    assert fuzz.megabytes() - before < 1_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETUPS)
def test_a_conversation_can_be_had_again(kind: str) -> None:
    async def main() -> list[Verdict]:
        async with Court(kind, tape).sitting() as court:
            return [await court.try_case(SEED, 5) for _ in range(2)]

    tape = fuzz.taped(kind)
    first, again = hurried.run(main())
    assert first.lies == again.lies

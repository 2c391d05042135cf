"""Conversations between an adapter and our own manager, recorded once and played again as often as one likes.

Knows requests and answers in their order. Must not know what they mean.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final, TypeVar

import aiohttp
import msgspec

from hostile.fabrics import benches
from hostile.fabrics.front import Front, Heard, Said
from hostile.fabrics.hurried import HurriedClock
from jackfield.fabric import Line
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces import registry
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.fabric import Done, Order, Progress
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry
from unit.fabric_manager.lab import FABRIC, TOKEN, lab, managing

T = TypeVar("T")

WORK: Final = Seconds(0.6)
"""How long the manager takes: long enough to be asked about in between."""
ASKED_MAX: Final = 30
HOP_BY_HOP: Final = ("content-length", "transfer-encoding", "connection", "date", "server")
NODE: Final = NodeName("n-1")
MODEL: Final = ModelName("A100")


class Turn(msgspec.Struct, frozen=True):
    """A question and its answer."""

    heard: Heard
    said: Said

    @property
    def changes(self) -> bool:
        """Whether something may be different after it."""
        return self.heard.method not in {"GET", "HEAD"}


class Tape(msgspec.Struct, frozen=True):
    """All that was said, where the device was attached, and which one it was."""

    turns: tuple[Turn, ...]
    attached_at: int
    order: Order
    device: PhysicalID

    @property
    def words(self) -> tuple[str, ...]:
        """All texts of all answers: the manager's vocabulary."""
        found: dict[str, None] = {}
        for turn in self.turns:
            try:
                _collect(msgspec.json.decode(turn.said.body), found)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return tuple(found)


def _collect(value: object, found: dict[str, None]) -> None:
    if isinstance(value, str):
        found[value] = None
    for one in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _collect(one, found)


async def recorded(kind: str, folder: Path) -> Tape:
    """Return what an adapter and our manager say to each other while a device is attached and detached."""
    clock = HurriedClock()
    turns: list[Turn] = []
    async with (
        managing(folder, lab(Fixed(WORK)), clock=clock) as manager,
        Server(manager, registry.chosen(()), Gate(TOKEN)) as server,
        aiohttp.ClientSession(server.url, auto_decompress=False) as session,
    ):

        async def answers(heard: Heard, writer: asyncio.StreamWriter) -> bool:
            said = await _honest(session, heard)
            turns.append(Turn(heard, said))
            writer.write(said.wire)
            return True

        async with Front(answers).up() as url, benches.line(kind, url, clock) as fabric:
            return await _played(fabric, turns)


async def _honest(session: aiohttp.ClientSession, heard: Heard) -> Said:
    headers = {name: text for name, text in heard.headers.items() if name not in {"host", *HOP_BY_HOP}}
    async with session.request(
        heard.method, heard.path, headers=headers, data=heard.body or None, allow_redirects=False
    ) as answer:
        kept = tuple((name, text) for name, text in answer.headers.items() if name.lower() not in HOP_BY_HOP)
        return Said(answer.status, kept, await answer.read())


async def _played(fabric: Line, turns: list[Turn]) -> Tape:
    shown = await _answered(fabric.inventory)
    device = PhysicalID("")
    if not shown.traits.chooses_device:
        device = next(one.id for one in shown.devices if one.model == MODEL and not one.node)
    order = Order(OrderID("o-1"), FABRIC, NODE, MODEL, device)
    came = await _ended(lambda: fabric.attach(order))
    await _answered(fabric.inventory)
    attached_at = len(turns)
    await _ended(lambda: fabric.detach(msgspec.structs.replace(order, device=came.device)))
    await _answered(fabric.inventory)
    return Tape(tuple(turns), attached_at, order, came.device)


async def _ended(ask: Callable[[], Coroutine[object, object, Progress]]) -> Done:
    for _ in range(ASKED_MAX):
        answer = await _answered(ask)
        if isinstance(answer, Done):
            return answer
        await HurriedClock().sleep(Seconds(0.2))
    raise AssertionError(f"asked {ASKED_MAX} times, it is not done")


async def _answered(ask: Callable[[], Coroutine[object, object, T]]) -> T:
    """Ask until there is an answer: where time jumps, an honest manager may seem slow on a loaded machine."""
    for _ in range(ASKED_MAX):
        with contextlib.suppress(Retry):
            return await ask()
        await HurriedClock().sleep(Seconds(0.2))
    return await ask()


class Player:
    """Plays a tape from some place: the same question gets the next answer that was given to it."""

    def __init__(self, tape: Tape, start: int) -> None:
        self._turns = tape.turns
        self._names = {turn.heard.path.partition("?")[0].rpartition("/")[2] for turn in tape.turns}
        """What paths end in: one of these is no id that was made up."""
        self._middle = tape.attached_at
        self._at = start
        self.certain = True
        """Whether all that was answered so far could have been said at that time."""
        self._served: dict[tuple[str, str], int] = {}

    def answer(self, heard: Heard) -> Said:
        """Return what an honest manager would have said."""
        here = [at for at, turn in enumerate(self._turns) if turn.heard.key == heard.key]
        self.certain = self.certain and bool(here)
        here = here or self._alike(heard)
        if not here:
            return Said(404, (("Content-Type", "application/json"),), b'{"error": "there is no such thing"}')
        at = self._next(here, heard)
        self._served[heard.key] = at
        if self._turns[at].changes:
            self._at = max(self._at, at + 1)
        return self._turns[at].said

    def travel(self, chance: random.Random) -> None:
        """Go on as an honest manager would at another time: what was done is not done, or the other way round."""
        self._at = chance.choice((0, self._middle, len(self._turns)))
        self._served.clear()

    def _next(self, here: list[int], heard: Heard) -> int:
        if heard.method not in {"GET", "HEAD"}:
            return next((at for at in here if at >= self._at), here[-1])
        end = next(
            (at for at, turn in enumerate(self._turns) if at >= self._at and turn.changes), len(self._turns)
        )
        first = max(self._at, self._served.get(heard.key, -1) + 1)
        before = [at for at in here if at < end]
        self.certain = self.certain and bool(before)
        return next((at for at in before if at >= first), before[-1] if before else here[0])

    def _alike(self, heard: Heard) -> list[int]:
        """Return where nearly the same was asked: with another query, or with an id that was made up."""
        asked = heard.path.partition("?")[0].split("/")
        found: dict[int, list[int]] = {0: [], 1: []}
        for at, turn in enumerate(self._turns):
            recorded = turn.heard.path.partition("?")[0].split("/")
            if turn.heard.method == heard.method and len(recorded) == len(asked):
                differences = sum(one != other for one, other in zip(recorded, asked, strict=True))
                found.get(differences, []).append(at)
        return found[0] or (found[1] if asked[-1] not in self._names else [])

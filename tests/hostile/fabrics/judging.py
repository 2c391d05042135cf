"""One hostile conversation, and what is wrong with how an adapter came through it.

Knows what the port promises whatever a manager says. Must not know any manager. A case is drawn from its number alone.
"""

import asyncio
import contextlib
import logging
import math
import random
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from typing import Final

import msgspec

from hostile.fabrics import benches, contents, wires
from hostile.fabrics.contents import Traps
from hostile.fabrics.front import Front, Heard, Said
from hostile.fabrics.hurried import HurriedClock
from hostile.fabrics.tape import Player, Tape
from jackfield.fabric import Line
from jackfield.model.fabric import Done, Failed, Inventory, Order, Progress, Working
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Retry

CALL_SECONDS_MAX: Final = 120.0
"""Virtual seconds within which any call must end; each request may take one."""
BUSY_SECONDS_MAX: Final = 20.0
"""Seconds of this process's own that one conversation may cost, however large the answers are."""
REQUESTS_MAX: Final = 500
"""Requests that one conversation may cost: a handful of calls, each with a few seconds of looking."""
WORDS_MAX: Final = 3_000
AFTER_MAX: Final = 3_600.0
SECRET_LETTERS: Final = 18
"""So much of a secret is one: what is cut short in the middle of it shows the beginning."""
LARGE_ONE_IN: Final = 2_500
"""One lie in so many is a large one."""
STALE: Final = 0.1
"""So likely a lie is an honest answer of another time, or a spoilt one."""
ON_THE_WIRE: Final = 0.25
"""So likely it is the wire that lies."""
CONVERSATIONS: Final = (
    ("inventory",),
    ("inventory", "inventory"),
    ("attach",),
    ("attach",),
    ("detach",),
    ("detach",),
    ("attach", "detach"),
    ("inventory", "attach", "detach", "inventory"),
)


class Case(msgspec.Struct, frozen=True):
    """What is asked, from which place of the tape, and when it is lied."""

    verbs: tuple[str, ...]
    start: int
    policy: str
    about: str
    """What the policy is about: a number, a path, a likelihood."""


def drawn(chance: random.Random, tape: Tape) -> Case:
    """Return a conversation."""
    verbs = chance.choice(CONVERSATIONS)
    late = verbs[0] == "detach" or (verbs == ("inventory",) and chance.random() < 0.5)
    start = tape.attached_at if late else 0
    policy = chance.choice(("one", "one", "path", "path", "path", "some", "all"))
    paths = sorted({turn.heard.path.partition("?")[0] for turn in tape.turns})
    about = {
        "one": str(chance.randrange(8)),
        "path": chance.choice(paths),
        "some": str(chance.choice((0.1, 0.3, 0.6))),
        "all": "",
    }
    return Case(verbs, start, policy, about[policy])


class Liar:
    """Plays a tape, and lies where the case says so."""

    def __init__(self, chance: random.Random, tape: Tape, case: Case, traps: Traps) -> None:
        self._chance = chance
        self._large = traps.large
        self._player = Player(tape, case.start)
        self._case = case
        self._traps = traps
        self.answers = 0
        self.lies = 0
        self.frozen = False
        self.trace: list[str] = []
        self._shown: dict[tuple[str, str], Said] = {}
        """What it last showed of the world since it was last changed."""
        self._lied_about: set[tuple[str, str]] = set()
        self._torn = False
        """Whether part of what it showed since then is of another time than the rest."""
        self._looked_at: set[tuple[str, str]] = set()

    async def __call__(self, heard: Heard, writer: asyncio.StreamWriter) -> bool:
        if self.frozen:
            self._looked_at.add(heard.key)
            writer.write((self._shown.get(heard.key) or self._player.answer(heard)).wire)
            return True
        lying = self._lies(heard)
        if lying and self._chance.random() < STALE:
            self._player.travel(self._chance)
            self._torn = True
        said = self._player.answer(heard)
        self.answers += 1
        self.lies += lying
        if heard.method != "GET":
            self._torn = False
            self._shown.clear()
            self._lied_about.clear()
        if lying and self._chance.random() < ON_THE_WIRE:
            self._shown.pop(heard.key, None)
            return await self._badly(heard, said, writer)
        if lying:
            said = self._spoilt(heard, said)
        self._note(heard, f"{'lie' if lying else 'truth'} {said.status} {said.headers} {said.body[:2000]!r}")
        if heard.method == "GET":
            self._shown[heard.key] = said
            if lying:
                self._lied_about.add(heard.key)
        writer.write(said.wire)
        return True

    @property
    def comparable(self) -> bool:
        """Whether whoever looked while all stood still was shown the same world: not another page, or another time."""
        return self._player.certain and not self._torn and self._lied_about <= self._looked_at

    def _spoilt(self, heard: Heard, said: Said) -> Said:
        if self._chance.random() < STALE:
            return said  # of another time, perhaps
        if self._chance.randrange(LARGE_ONE_IN) == 0 and self._large:
            return contents.many(self._chance, said)
        return contents.spoilt(self._chance, heard, said, self._traps)

    async def _badly(self, heard: Heard, said: Said, writer: asyncio.StreamWriter) -> bool:
        large = self._chance.randrange(LARGE_ONE_IN // 4) == 0 and self._large
        way = self._chance.choice(wires.LARGE if large else wires.USUAL)
        self._note(heard, f"lie on the wire: {way.__name__} of {said.body[:300]!r}")
        return await way(self._chance, said, writer)

    def _lies(self, heard: Heard) -> bool:
        match self._case.policy:
            case "one":
                return self.answers == int(self._case.about)
            case "path":
                return heard.path.partition("?")[0] == self._case.about
            case "some":
                return self._chance.random() < float(self._case.about)
            case _:
                return True

    def _note(self, heard: Heard, what: str) -> None:
        if len(self.trace) < 100:
            self.trace.append(f"{heard.method} {heard.path[:300]} {heard.body[:300]!r}\n      {what}")


class Overheard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.alarms: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.lines.append(line[:10_000])
        if record.levelno >= logging.ERROR:
            self.alarms.append(line[:2000])


class Verdict(msgspec.Struct):
    """What came of a conversation, and what is wrong with it."""

    outcomes: Counter[str]
    lies: int
    faults: list[str]
    trace: list[str]


class Court:
    """One adapter before a socket that lies, and another socket to which it must never speak."""

    def __init__(self, kind: str, tape: Tape, *, large: bool = True) -> None:
        self.kind = kind
        self._tape = tape
        self._large = large
        self._front = Front(_nobody)
        self._trap = Front(_nobody)
        self._overheard = Overheard()
        tokens = {turn.heard.headers.get(name, "").rpartition(" ")[2]
                  for turn in tape.turns for name in ("authorization", "x-auth-token")}  # fmt: skip
        self._secrets = tuple(one for one in (*benches.SETUPS[kind].secrets, *sorted(tokens)) if one)
        # What this very conversation sends is repeated by the liar; a token of another one is no secret in it.
        self._words = tuple(one for one in tape.words if not any(secret in one for secret in self._secrets))

    @contextlib.asynccontextmanager
    async def sitting(self) -> AsyncIterator["Court"]:
        root = logging.getLogger()
        level = root.level
        root.addHandler(self._overheard)
        root.setLevel(logging.DEBUG)
        async with self._front.up() as self._url, self._trap.up() as elsewhere:
            self._elsewhere = elsewhere.removeprefix("http://")
            try:
                yield self
            finally:
                root.setLevel(level)
                root.removeHandler(self._overheard)

    async def try_case(self, seed: int, number: int) -> Verdict:
        """Have one conversation."""
        chance = random.Random(f"{seed}/{self.kind}/{number}")  # noqa: S311 - chance in tests is not cryptography
        case = drawn(chance, self._tape)
        liar = Liar(chance, self._tape, case, Traps(self._elsewhere, self._words, self._large))
        self._front.answers = liar
        self._overheard.lines.clear()
        self._overheard.alarms.clear()
        verdict = Verdict(Counter(), 0, [], liar.trace)
        heard, began = self._front.heard, time.process_time()
        try:
            async with benches.line(self.kind, self._url, HurriedClock()) as fabric:
                await self._converse(fabric, case, liar, verdict)
        except Exception as error:  # noqa: BLE001 - whatever leaves an adapter is what this looks for
            verdict.faults.append(f"leaving it raises {''.join(traceback.format_exception(error))[-3000:]}")
        await self._front.hang_up()
        took, requests = time.process_time() - began, self._front.heard - heard
        if took > BUSY_SECONDS_MAX:
            verdict.faults.append(f"it kept the process busy for {took:.1f} s")
        if requests > REQUESTS_MAX:
            verdict.faults.append(f"it took {requests} requests")
        if self._trap.heard:
            self._trap.heard = 0
            verdict.faults.append("it spoke to somebody else")
        verdict.faults.extend(f"logged: {one}" for one in self._overheard.alarms)
        self._search("\n".join(self._overheard.lines), "a log line", verdict)
        verdict.lies = liar.lies
        return verdict

    async def _converse(self, fabric: Line, case: Case, liar: Liar, verdict: Verdict) -> None:
        attach = self._tape.order
        detach = msgspec.structs.replace(attach, device=self._tape.device)
        for verb in case.verbs:
            if verb == "inventory":
                await self._ask(verb, fabric.inventory(), verdict)
                continue
            order = attach if verb == "attach" else detach
            for _ in range(6):
                call = fabric.attach(order) if verb == "attach" else fabric.detach(order)
                answer = await self._ask(verb, call, verdict)
                if isinstance(answer, Done) and not benches.SETUPS[self.kind].knows_orders:
                    await self._compare(verb, order, answer, liar, verdict)
                if isinstance(answer, Done | Failed):
                    break
                await HurriedClock().sleep(Seconds(0.5))

    async def _ask(
        self, verb: str, call: Awaitable[Inventory | Progress], verdict: Verdict
    ) -> Inventory | Progress | None:
        answer: Inventory | Progress | None = None
        bound = asyncio.timeout(CALL_SECONDS_MAX)
        try:
            async with bound:
                answer = await call
        except PortError as error:
            verdict.outcomes[f"{verb}: {type(error).__name__}"] += 1
            self._judge_error(error, verdict)
        except TimeoutError:
            hung = bound.expired()
            verdict.faults.append(f"{verb} does not end" if hung else f"{verb} raises TimeoutError")
        except Exception as error:  # noqa: BLE001 - whatever leaves an adapter is what this looks for
            shown = "".join(traceback.format_exception(error))[-4000:]
            verdict.faults.append(f"{verb} raises what no port may raise: {shown}")
        else:
            verdict.outcomes[f"{verb}: {type(answer).__name__}"] += 1
            self._judge_answer(verb, answer, verdict)
        return answer

    def _judge_error(self, error: PortError, verdict: Verdict) -> None:
        words = str(error)
        if not 10 < len(words) < WORDS_MAX:
            verdict.faults.append(f"an error has {len(words)} letters: {words[:200]!r}")
        if not words.isprintable():
            verdict.faults.append(f"an error cannot be printed: {words[:1000]!r}")
        if isinstance(error, Retry) and not (math.isfinite(error.after) and 0 <= error.after <= AFTER_MAX):
            verdict.faults.append(f"asked again after {error.after} s")
        shown = "".join(traceback.format_exception(error))
        self._search(f"{error!r} {vars(error)} {shown}", "an error", verdict)

    def _judge_answer(self, verb: str, answer: Inventory | Progress, verdict: Verdict) -> None:
        wanted = Inventory if verb == "inventory" else Working | Done | Failed
        if not isinstance(answer, wanted):
            verdict.faults.append(f"{verb} answers with {answer!r:.300}")
        if isinstance(answer, Failed):
            if not 10 < len(answer.reason) < WORDS_MAX:
                verdict.faults.append(f"a reason has {len(answer.reason)} letters: {answer.reason[:200]!r}")
            if not answer.reason.isprintable():
                verdict.faults.append(f"a reason cannot be printed: {answer.reason[:1000]!r}")
            self._search(answer.reason, "a reason", verdict)
        if isinstance(answer, Inventory):
            verdict.faults.extend(_unsound(answer))

    def _search(self, text: str, where: str, verdict: Verdict) -> None:
        found = [one[:SECRET_LETTERS] for one in self._secrets if one[:SECRET_LETTERS] in text]
        if found:
            at = text.index(found[0])
            verdict.faults.append(f"a secret is in {where}: {text[max(0, at - 300) : at + 300]!r}")

    async def _compare(self, verb: str, order: Order, done: Done, liar: Liar, verdict: Verdict) -> None:
        """See whether another process would find what was said to be done."""
        liar.frozen = True
        try:
            async with (
                benches.line(self.kind, self._url, HurriedClock()) as other,
                asyncio.timeout(CALL_SECONDS_MAX),
            ):
                shown = await other.inventory()
        except (PortError, TimeoutError):
            return
        finally:
            liar.frozen = False
        if not liar.comparable:
            return
        there = any((one.id, one.node) == (done.device, order.node) for one in shown.devices)
        if there is not (verb == "attach"):
            where = [(one.id, one.node) for one in shown.devices if one.node]
            verdict.faults.append(
                f"{verb} is done with {done.device!r}, but the inventory shows {where!r:.1000}"
            )


def _unsound(shown: Inventory) -> list[str]:
    """Return what in an inventory nobody could work with."""
    found = []
    ids = [one.id for one in shown.devices]
    if len(ids) > len(set(ids)):
        found.append("a device is shown twice")
    if not all(ids):
        found.append("a device has no id")
    nodes = [one.node for one in shown.machines]
    if len(nodes) > len(set(nodes)) or not all(nodes):
        found.append(f"machines are called {nodes!r:.300}")
    if any(count < 0 for count in shown.free.values()) or any(one.slots < 0 for one in shown.machines):
        found.append("there is less than nothing")
    times = [*(one.since for one in shown.devices), *(one.since for one in shown.machines)]
    if not all(math.isfinite(one) for one in times):
        found.append("something is there since no time")
    texts = [text for one in shown.devices for text in (one.id, one.model, one.node, one.serial)]
    bad = [text for text in (*texts, *nodes) if len(text) > 1000 or not text.isprintable()]
    if bad:
        found.append(f"names that cannot be printed: {bad[0]!r:.300}")
    return found


async def _nobody(_: Heard, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    return True

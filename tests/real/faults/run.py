"""An ordeal in real time from beginning to end: `python -m real.faults.run`, or `make real-faults`.

Knows its phases and what is told of it. Must not know how any part of it works.
"""

import argparse
import asyncio
import logging
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from jackfield.model.names import Seconds
from jackfield.ports import Conflict, Retry
from jackfield.sim.users import Use, Users
from jackfield.testing.control_plane import ControlPlane, Settings, binding_timeout
from real.faults.draw import Fault, Ordeal, drawn
from real.faults.site import Site
from real.faults.strike import Strikes
from real.faults.witness import Witness
from storm.managers import KINDS

LOOK: Final = Seconds(1.0)
AGAIN: Final = Seconds(0.5)
CALM_SECONDS_MAX: Final = 900.0
"""Within this time after the last fault everything good must have happened."""
STILL_LOOKS: Final = 3
"""So often in a row nothing may be found that is not as it must be."""
TELL_SECONDS: Final = 15.0
LACKS_SHOWN: Final = 3

Tell = Callable[[str], object]
"""Hears of every fault and of how far it is."""


class Report(msgspec.Struct, frozen=True):
    """What became of it."""

    seed: int
    seconds: float
    """How long things went wrong."""
    calm_seconds: float
    """How long it took afterwards until all was as it must be."""
    pods: int
    faults: dict[str, int]
    attaches: int
    detaches: int
    managers: tuple[str, ...]
    hand_over: str

    def __str__(self) -> str:
        """Say it in a line."""
        faults = ", ".join(f"{count} {what}" for what, count in sorted(self.faults.items()))
        return (
            f"seed {self.seed}: {self.pods} pod lives in {self.seconds:.0f} s by {self.hand_over}, managers "
            f"{', '.join(self.managers)}; {sum(self.faults.values())} faults ({faults}); {self.attaches} attaches, "
            f"{self.detaches} detaches; all as it must be {self.calm_seconds:.0f} s later; 0 violations"
        )


class Run:
    """One ordeal."""

    def __init__(self, site: Site, tell: Tell) -> None:
        self._site = site
        self._tell = tell
        self._ordeal = site.ordeal
        self._users = Users(site.clients["users"])
        self._strikes = Strikes(site)
        self._witness = Witness(site)
        self._done = 0
        self._began = site.clock.now()

    async def live(self) -> Report:
        """Live through it. Raises AssertionError with what is wrong."""
        clock = self._site.clock
        async with self._witness.looking():
            await self._suffer()
            calm_since = clock.now()
            self._say("calm")
            await self._calm(calm_since)
        counts = self._witness.counts
        binds = all(one.binds for one in self._ordeal.setting.policy.models)
        return Report(
            self._ordeal.seed,
            round(calm_since - self._began, 1),
            round(clock.now() - calm_since, 1),
            self._ordeal.pods,
            dict(self._strikes.seen),
            counts["attached"],
            counts["detached"],
            tuple(one.kind for one in self._ordeal.racks),
            "bind" if binds else "reschedule",
        )

    # --- while things go wrong

    async def _suffer(self) -> None:
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look(over))
            try:
                async with asyncio.TaskGroup() as busy:
                    busy.create_task(self._until(self._ordeal.seconds))
                    busy.create_task(self._use())
                    for fault in self._ordeal.faults:
                        busy.create_task(self._strike(fault))
            finally:
                over.set()
            await looking

    async def _until(self, at: float) -> None:
        await self._site.clock.sleep(Seconds(max(0.0, self._began + at - self._site.clock.now())))

    async def _strike(self, fault: Fault) -> None:
        await self._until(fault.at)
        self._say(str(fault))
        await self._strikes.strike(fault)

    async def _use(self) -> None:
        for step in self._ordeal.steps:
            await self._until(step.at)
            await self._insist(step)
            self._done += 1

    async def _insist(self, step: Use) -> None:
        """Do what a user does who tries again while there is no API server; it may have heard the first time."""
        while True:
            try:
                await self._users.do(step)
            except Retry:
                await self._site.clock.sleep(AGAIN)
                continue
            except Conflict:
                pass
            return

    async def _look(self, over: asyncio.Event) -> None:
        told = self._site.clock.now()
        while not over.is_set():
            self._check()
            if self._site.clock.now() > told + TELL_SECONDS:
                told = self._site.clock.now()
                counts, struck = self._witness.counts, sum(self._strikes.seen.values())
                self._say(
                    f"{self._done} of {len(self._ordeal.steps)} deeds of users, {counts['attached']} attaches, "
                    f"{counts['detached']} detaches, {struck} of {len(self._ordeal.faults)} faults"
                )
            await self._site.clock.sleep(LOOK)

    def _check(self) -> None:
        wrong = self._witness.wrong(self._strikes.dead)
        assert not wrong, self._failure(wrong)

    # --- afterwards

    async def _calm(self, since: float) -> None:
        """Wait until everything good has happened, and stays so."""
        still = 0
        told = since
        while still < STILL_LOOKS:
            self._check()
            lacks = await self._witness.lacks()
            still = 0 if lacks else still + 1
            now = self._site.clock.now()
            assert now < since + CALM_SECONDS_MAX, self._failure(lacks)
            if lacks and now > told + TELL_SECONDS:
                told = now
                more = f" and {len(lacks) - LACKS_SHOWN} more" if len(lacks) > LACKS_SHOWN else ""
                self._say(f"not yet: {'; '.join(lacks[:LACKS_SHOWN])}{more}")
            await self._site.clock.sleep(LOOK)

    def _say(self, words: str) -> None:
        self._tell(f"{self._site.clock.now() - self._began:8.1f}  {words}")

    def _failure(self, what: list[str]) -> str:
        again = f"again: make real-faults MINUTES={self._ordeal.seconds / 60:g} SEED={self._ordeal.seed}"
        return "\n".join([f"seed {self._ordeal.seed}:", *what, again, self._site.last_words()])


def settings(ordeal: Ordeal) -> Settings:
    """Return the control plane that an ordeal needs."""
    policy = ordeal.setting.policy
    timeout = binding_timeout(int(policy.binding_timeout_seconds))
    if all(one.binds for one in policy.models):
        return Settings(scheduler=timeout)
    return Settings(
        scheduler=timeout,
        feature_gates=("DRADeviceTaintRules=true",),
        apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
    )


def live(plane: ControlPlane, ordeal: Ordeal, folder: Path, tell: Tell) -> Report:
    """Live through an ordeal on a control plane; return what became of it. Raises AssertionError."""

    async def main() -> Report:
        async with Site(plane, ordeal, folder) as site:
            return await Run(site, tell).live()

    return asyncio.run(main())


def main(arguments: Sequence[str]) -> None:
    """Read what is wanted, live through it, print what became of it."""
    parser = argparse.ArgumentParser(prog="real.faults.run", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="draws cluster, users and faults")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long things go wrong")
    parser.add_argument("--kind", choices=KINDS, default="", help="of every manager; drawn if not said")
    parser.add_argument("--keep", type=Path, help="a new folder, in which logs and databases are kept")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the processes end with us
    if given.keep is not None:
        given.keep.mkdir(parents=True)  # what another ordeal left there would be taken for this one's
    ordeal = drawn(given.seed, given.minutes * 60, given.kind)
    say(
        f"seed {ordeal.seed}: {ordeal.pods} pods, {len(ordeal.faults)} faults, {given.minutes:g} minutes, "
        f"{sum(one.machines for one in ordeal.racks)} nodes, managers {', '.join(one.kind for one in ordeal.racks)}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="jackfield-faults-") as name,
        ControlPlane(settings(ordeal)) as plane,
    ):
        folder = given.keep or Path(name)
        logging.basicConfig(filename=folder / "nodes.log")  # watches of ours break as everybody's do
        try:
            report = live(plane, ordeal, folder, say)
        except* AssertionError as errors:
            say(_first(errors))
            sys.exit(1)
        say(str(report))


def _first(errors: BaseExceptionGroup) -> str:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else str(inner)


def say(words: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

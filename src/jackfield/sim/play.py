"""Plays a scenario: makes happen what it says, when it says, and judges what came of it.

Knows how a step becomes an API call or a broken device. Must not know what the controllers make of it.
"""

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from jackfield.cluster.store import Store as ApiStore
from jackfield.controllers.recorders import Recorders
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Seconds
from jackfield.ports import Clock
from jackfield.sim import loop, scenario, story
from jackfield.sim.audit import Audit, Summary
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.deeds import Deeds
from jackfield.sim.scenario import Scenario
from jackfield.sim.trouble import Restart
from jackfield.sim.witness import Witness
from jackfield.sim.world import Outside, SimWorld

PRELUDE_SECONDS = Seconds(30.0)
"""How long a cluster has to come up before the play begins."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a play."""

    summary: Summary
    lines: tuple[story.Line, ...]
    failures: tuple[str, ...]
    """What was expected and is not so, and what must never be and was."""


Listener = Callable[[story.Line, SimWorld], None]
"""Hears every line as it is told, and may look at the world of that moment."""


class House(msgspec.Struct, frozen=True):
    """Where a play is performed, if not in a simulated hour: in whose time, over which store."""

    clock: Clock
    api: ApiStore
    prelude: Seconds = Seconds(5.0)
    """How long the cluster has to come up before the play begins, and again for what runs already."""


def perform(play: Scenario, seed: int, listener: Listener | None = None) -> Outcome:
    """Play a scenario to its end, in no time. The same scenario and seed give the same story."""

    async def performance() -> Outcome:
        return await Stage(play, Chance(seed), listener).run()

    return loop.run(performance())


class Stage:
    """One performance."""

    def __init__(
        self, play: Scenario, chance: Chance, listener: Listener | None, house: House | None = None
    ) -> None:
        self.clock = house.clock if house is not None else running()
        self.story = story.Story(
            lambda: self.world.store,
            lambda line: listener(line, self.world) if listener is not None else None,
        )
        outside = Outside(house.api) if house is not None else Outside()
        recorders = Recorders(self.story)
        self.world = SimWorld(play.setting, self.clock, chance, recorders, outside)
        self._prelude_seconds = house.prelude if house is not None else PRELUDE_SECONDS
        self.audit = Audit(self.world)
        recorders.add(self.audit)
        self._deeds = Deeds(self.world, self.audit)
        self._play = play
        self._chance = chance

    async def run(self) -> Outcome:
        """Play it."""
        witness = Witness(self.world, self.story)
        async with self.world:
            await self._prelude()
            began = self.clock.now()
            self.story.begin(began)
            watching = asyncio.get_running_loop().create_task(witness.run())
            steps = [*self._steps()]
            for at, step in sorted(steps, key=lambda pair: pair[0]):
                await self.clock.sleep(Seconds(max(0.0, began + at - self.clock.now())))
                await self._deeds.do(step)
            await self._settle(Seconds(began + self._play.until))
            watching.cancel()
            summary = self.audit.summary()
        failures = (*self.audit.violations, *self._judge(summary))
        return Outcome(summary, tuple(self.story.lines), failures)

    async def _prelude(self) -> None:
        """Let the cluster come up, and run what is there before the curtain rises."""
        await self.clock.sleep(self._prelude_seconds)
        for step in self._play.before:
            await self._deeds.do(step)
        if self._play.before:
            await self.clock.sleep(self._prelude_seconds)
        self.audit.begin()

    async def _settle(self, end: Seconds) -> None:
        """Let the play go on to its end, or until nothing happens any more."""
        if not self._play.settle:
            await self.clock.sleep(Seconds(max(0.0, end - self.clock.now())))
            return
        said = -1
        while self.clock.now() < end and said != len(self.story.lines):
            said = len(self.story.lines)
            await self.clock.sleep(Seconds(min(self._play.settle, end - self.clock.now())))

    def _steps(self) -> Iterator[tuple[float, scenario.AnyStep]]:
        for step in self._play.play:
            if isinstance(step, scenario.CreateWorkload):
                yield from self._workload(step)
            elif isinstance(step, Restart):
                for number in range(step.times):
                    yield step.at + number * step.every, step
            else:
                yield step.at, step

    def _workload(self, step: scenario.CreateWorkload) -> Iterator[tuple[float, scenario.AnyStep]]:
        dice = self._chance.branch(f"workload/{step.name}").generator
        at = step.at
        for number in range(1, step.count + 1):
            at += step.every.draw(dice)
            run = max(1.0, step.run.draw(dice))
            yield (
                at,
                scenario.CreatePod(
                    at=at,
                    name=f"{step.name}-{number}",
                    devices=step.devices,
                    device_class=step.device_class,
                    run=run,
                ),
            )

    # --- judging

    def _judge(self, summary: Summary) -> Iterator[str]:
        expect = self._play.expect
        for name, phase in expect.pods.items():
            found = [
                key
                for key in summary.pods
                if key == name or (name.endswith("*") and key.startswith(name[:-1]))
            ]
            wrong = [key for key in found if summary.pods[key] != phase]
            if not found:
                yield f"expected pod {name} to be {phase}; there is none"
            for key in wrong[:5]:
                waiting = self._waits_for(key)
                yield f"expected pod {key} to be {phase}; it is {summary.pods[key]}{waiting}"
        exact = {"attaches": expect.attaches, "detaches": expect.detaches, "nodes_added": expect.nodes_added}
        for field, wanted in exact.items():
            if wanted is not None and getattr(summary, field) != wanted:
                yield f"expected {wanted} {field.replace('_', ' ')}; there were {getattr(summary, field)}"
        if expect.attaches_per_pod_max is not None and summary.attaches_per_pod > expect.attaches_per_pod_max:
            most, seen = expect.attaches_per_pod_max, summary.attaches_per_pod
            yield f"expected at most {most} attaches per pod; there were {seen}"
        if expect.wasted_max is not None and summary.wasted > expect.wasted_max:
            yield f"expected at most {expect.wasted_max} attaches that served nobody; there were {summary.wasted}"
        if expect.pool_full and summary.devices_attached:
            yield f"expected all devices back in the pool; {summary.devices_attached} are attached"
        yield from self._judge_objects()

    def _judge_objects(self) -> Iterator[str]:
        for name, state in self._play.expect.requests.items():
            found = self.world.store.request(name)
            if found is None or found.status.state != state:
                yield f"expected request {name} to be {state}; it is {found.status.state if found else 'gone'}"
        for name, words in self._play.expect.conditions.items():
            said = [line.because for line in self.story.lines if name in line.about]
            said += [one.what for one in self.story.waiting.values() if one.object == name]
            if not any(words in one for one in said):
                yield f"expected {name} to be told {words!r}; it was told {said[-1:] or 'nothing'}"

    def _waits_for(self, pod: str) -> str:
        for claim in self.world.store.all(ResourceClaim):
            waiting = self.story.waiting.get(f"claim/{claim.key}")
            if waiting is not None and claim.metadata.name.startswith(f"{pod}-"):
                return f", waiting for {waiting.what}"
        return ""

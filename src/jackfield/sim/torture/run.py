"""Lives through an ordeal: safety while things go wrong, everything good within a bound when they are over.

Knows the two phases and who looks. Must not know what is looked for, nor what goes wrong.
"""

import gc
from collections.abc import Callable
from contextlib import closing
from typing import Final

import msgspec

from jackfield.controllers.recorders import Recorders
from jackfield.model.names import Seconds
from jackfield.sim.audit import Audit, Summary, ViolationError
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.deeds import Deeds
from jackfield.sim.loop import SpinningError, StalledError, VirtualLoop
from jackfield.sim.story import Line, Story
from jackfield.sim.torture.draw import Ordeal
from jackfield.sim.torture.watchdog import Watchdog
from jackfield.sim.witness import Witness
from jackfield.sim.world import SimWorld

PRELUDE: Final = Seconds(30.0)
PATIENCE: Final = Seconds(7200.0)
"""How long after the last trouble everything good must have happened."""
LOOK: Final = Seconds(60.0)


class Verdict(msgspec.Struct, frozen=True):
    """What came of an ordeal."""

    seed: int
    pods: int
    troubles: int
    seconds: float
    """How long it lasted, in its own time."""
    summary: Summary | None
    violations: tuple[str, ...]
    driver: str = ""


Listener = Callable[[Line], object]
Lived = Callable[[Ordeal], Verdict]
"""A way to live through an ordeal."""


def suffer(ordeal: Ordeal, listener: Listener | None = None) -> Verdict:
    """Live through it."""
    loop = VirtualLoop()
    ordeal_run = _Run(ordeal, listener)
    gc.disable()
    try:
        with closing(loop):
            loop.on_turn = ordeal_run.look
            return loop.run_until_complete(ordeal_run.main())
    except ViolationError:
        return ordeal_run.verdict()
    except BaseExceptionGroup as errors:
        return ordeal_run.verdict(f"crash {_first(errors)}")
    except (StalledError, SpinningError) as error:
        return ordeal_run.verdict(f"crash {_named(error)}")
    finally:
        gc.enable()


def _first(errors: BaseExceptionGroup) -> str:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else _named(inner)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class _Run:
    def __init__(self, ordeal: Ordeal, listener: Listener | None) -> None:
        self._ordeal = ordeal
        self._listener = listener
        self.audit: Audit | None = None

    def look(self) -> None:
        """End at the first violation."""
        if self.audit is not None and self.audit.violations:
            raise ViolationError(self.audit.violations[0])

    def verdict(self, *more: str) -> Verdict:
        """Return what came of it so far."""
        ordeal, audit = self._ordeal, self.audit
        summary = audit.summary() if audit is not None else None
        return Verdict(
            seed=ordeal.seed,
            pods=ordeal.pods,
            troubles=ordeal.troubles,
            seconds=summary.seconds if summary is not None else 0.0,
            summary=summary,
            violations=(*(audit.violations if audit is not None else ()), *more),
            driver=ordeal.setting.policy.models[0].driver_name,
        )

    async def main(self) -> Verdict:
        """Live through it."""
        clock, ordeal = running(), self._ordeal
        story = Story(lambda: world.store, self._listener or _unheard)
        watchdog = Watchdog(clock.now)
        recorders = Recorders(story, watchdog) if self._listener is not None else Recorders(watchdog)
        world = SimWorld(ordeal.setting, clock, Chance(ordeal.seed), recorders)
        audit = self.audit = Audit(world)
        recorders.add(audit)
        deeds = Deeds(world, audit)
        async with world:
            try:
                await clock.sleep(PRELUDE)
                audit.begin()
                began = clock.now()
                if self._listener is not None:
                    story.begin(began)
                    deeds.disasters.spawn(Witness(world, story).run())
                for step in ordeal.steps:
                    await clock.sleep(Seconds(max(0.0, began + step.at - clock.now())))
                    story.happened(clock.now(), told(step))
                    await deeds.do(step)
                await clock.sleep(Seconds(max(0.0, began + ordeal.calm_at - clock.now())))
                await deeds.disasters.calm()
                failures = await self._calm(world, audit)
            finally:
                deeds.disasters.stop()
            return self.verdict(*failures)

    async def _calm(self, world: SimWorld, audit: Audit) -> tuple[str, ...]:
        """Wait until all is as it should be in the end; return what is not when patience is over."""
        deadline = world.clock.now() + PATIENCE
        while True:
            await world.clock.sleep(LOOK)
            left = audit.lacks()
            if not left or world.clock.now() > deadline:
                return left


def told(step: msgspec.Struct) -> Line:
    """Return a step as a line."""
    fields = msgspec.to_builtins(step)
    what = " ".join(f"{key}={value}" for key, value in fields.items() if key not in {"at", "do"} and value)
    name = str(fields.get("do", ""))
    return Line(0.0, f"torture/{name}", "", name, "torture", what, (f"torture/{name}",))


def _unheard(_: Line) -> None:
    """Listen to nobody."""

"""Scenarios: which faults come and go, and when, as a YAML file says.

Knows the file, what is wrong with it, and its times. Must not know how a fault is set: the manager's process does it
one way, a terminal another.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import yaml

from jackfield.fabric_manager.faults import FAULTS_MAX, Fault, Kind, wrong
from jackfield.model.names import Seconds
from jackfield.ports import Clock

AT_MAX: Final = Seconds(366 * 86400.0)


class BadScenario(ValueError):  # noqa: N818 - a finding about a file
    """A file that is no scenario; the message names file and place."""


class Step(Fault, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"lasts": "for"}):
    """A fault, and when it is set and cleared."""

    at: Seconds = Seconds(0.0)
    """So long after the beginning it is set."""
    lasts: Seconds = Seconds(0.0)
    """So long after that it is cleared; 0 is never."""
    every: Seconds = Seconds(0.0)
    """So often it is set again; 0 is once."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    faults: tuple[Step, ...]


def read(path: Path) -> Scenario:
    """Read a file. Raises BadScenario naming file and place."""
    try:
        return parse(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or "it is not text"
        raise BadScenario(f"{path}: cannot be read: {reason}") from error


def parse(text: str, source: str) -> Scenario:
    """Make a scenario of YAML. Raises BadScenario naming source and place."""
    try:
        found = msgspec.convert(yaml.safe_load(text), Scenario)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadScenario(f"{source}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        place = where.rstrip("`").lstrip(".") or "the whole file"
        kinds = f"; there are {', '.join(Kind)}" if place.endswith(".kind") else ""
        raise BadScenario(f"{source}: {place}: {message}{kinds}") from error
    mistakes = tuple(_mistakes(found))
    if mistakes:
        raise BadScenario("\n".join(f"{source}: {one}" for one in mistakes))
    return found


def _mistakes(scenario: Scenario) -> Iterator[str]:
    if len(scenario.faults) > FAULTS_MAX:
        yield f"faults: there are more than {FAULTS_MAX}"
    names = [fault.id for fault, _ in named(scenario)]
    for place, (name, step) in enumerate(zip(names, scenario.faults, strict=True)):
        where = f"faults[{place}]"
        if reason := wrong(step):
            yield f"{where}: {reason}"
        if not all(0 <= span <= AT_MAX for span in (step.at, step.lasts, step.every)):
            yield f"{where}: at, for and every are seconds, 0 to {AT_MAX:g}"
        if step.every and not 0 < step.lasts < step.every:
            yield f"{where}: what comes every so often needs for, shorter than every"
        if name in names[:place]:
            yield f"{where}: two are called {name!r}"


def named(scenario: Scenario) -> tuple[tuple[Fault, Step], ...]:
    """Return each fault under its name, and when it comes and goes."""
    fields = [one for one in Fault.__struct_fields__ if one not in {"id", "seen", "since", "holds"}]
    return tuple(
        (Fault(id=step.id or f"scenario-{number}", **{one: getattr(step, one) for one in fields}), step)
        for number, step in enumerate(scenario.faults, 1)
    )


class Stage(msgspec.Struct, frozen=True):
    """Where a scenario is played."""

    clock: Clock
    set: Callable[[Fault], Awaitable[object]]
    clear: Callable[[str], Awaitable[object]]
    """Clears it; nothing if it is not there."""


async def play(scenario: Scenario, stage: Stage) -> None:
    """Let faults come and go in their time; return when none is to come or go any more.

    What an earlier run of it left behind goes first.
    """
    parts = named(scenario)
    for fault, _ in parts:
        await stage.clear(fault.id)
    async with asyncio.TaskGroup() as group:
        for fault, step in parts:
            group.create_task(_played(fault, step, stage))


async def _played(fault: Fault, step: Step, stage: Stage) -> None:
    await stage.clock.sleep(step.at)
    while True:
        await stage.set(fault)
        if not step.lasts:
            return
        await stage.clock.sleep(step.lasts)
        await stage.clear(fault.id)
        if not step.every:
            return
        await stage.clock.sleep(Seconds(step.every - step.lasts))

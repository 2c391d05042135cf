"""`jackfield demo`: the two demos of the talk, as a live picture in a terminal, as plain lines elsewhere.

Knows how the picture is drawn and how fast it moves. Must not know how the play comes about.
"""

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import click
import msgspec

from jackfield.cli import kubeconfigs, outcomes, output, up
from jackfield.cli.clock import WallClock
from jackfield.cli.story import demo_scenario
from jackfield.sim import picture, play, story
from jackfield.sim.chance import Chance
from jackfield.sim.world import SimWorld

PAUSE_MAX = 2.0
"""Seconds of the viewer's time that nothing may happen."""
STORY_LINES = 10


class Frame(msgspec.Struct, frozen=True):
    """The picture at the moment of a line."""

    line: story.Line
    picture: picture.Picture


def run(seed: int, speed: float, *, as_json: bool, plain: bool) -> int:
    """Play it; return the exit status."""
    frames: list[Frame] = []

    def listen(line: story.Line, world: SimWorld) -> None:
        if not line.bookkeeping:
            frames.append(Frame(line, picture.take(world)))

    scenario = demo_scenario()
    outcome = play.perform(scenario, seed, listen)
    if as_json:
        for frame in frames:
            click.echo(output.as_json(frame.line))
        return outcomes.end(outcome, json=True)
    if plain or not sys.stdout.isatty():
        click.echo(f"{scenario.title}\n\n{story.HEADER}")
        for frame in frames:
            outcomes.tell(frame.line)
        return outcomes.end(outcome, json=False)
    _animate(frames, scenario.title, max(speed, 0.1))
    return outcomes.end(outcome, json=False)


def run_live(seed: int, kubeconfig: Path | None) -> int:
    """Play it in the viewer's own time, with kubectl beside it; return the exit status."""
    if kubeconfig and (reason := kubeconfigs.not_ours(kubeconfig, up.CONTEXT)):
        click.echo(f"jackfield demo: {reason}", err=True)
        return output.UNUSABLE
    outcome = asyncio.run(_live(seed, kubeconfig))
    if outcome is None:
        click.echo("ended before the play did", err=True)
        return output.OK
    return outcomes.end(outcome, json=False)


async def _live(seed: int, kubeconfig: Path | None) -> play.Outcome | None:
    ended = up.endings()
    clock = WallClock()
    store = up.new_store(clock)
    scenario = demo_scenario()
    stage = play.Stage(scenario, Chance(seed), _tell, play.House(clock, store))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(up.serving(store, clock))
        path = stack.enter_context(kubeconfigs.appearing(kubeconfig, up.way_in(server)))
        click.echo(_programme(scenario.title, path, scenario.until))
        loop = asyncio.get_running_loop()
        performance, leaving = loop.create_task(stage.run()), loop.create_task(ended.wait())
        await asyncio.wait((performance, leaving), return_when=asyncio.FIRST_COMPLETED)
        if performance.done():
            leaving.cancel()
            return performance.result()
        performance.cancel()
        await asyncio.wait((performance,))
    return None


def _tell(line: story.Line, _: SimWorld) -> None:
    if not line.bookkeeping:
        outcomes.tell(line)


def _programme(title: str, kubeconfig: Path, seconds: float) -> str:
    return (
        f"{title}\n\nIt takes {seconds / 60:.0f} minutes, in which kubectl can be used in another terminal:\n\n"
        f"  export KUBECONFIG={kubeconfig.absolute()}\n"
        "  kubectl get pods --watch\n\n"
        f"It ends by itself, or with Ctrl-C.\n\n{story.HEADER}"
    )


def _animate(frames: list[Frame], title: str, speed: float) -> None:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    from jackfield.cli import drawing  # noqa: PLC0415

    told: list[story.Line] = []
    at = 0.0
    with Live(console=Console(), refresh_per_second=12, screen=False) as live:
        for frame in frames:
            pause = min(PAUSE_MAX, (frame.line.at - at) / speed)
            time.sleep(max(0.05, pause))  # noqa: TID251 - the viewer's own time
            at = frame.line.at
            told.append(frame.line)
            live.update(drawing.scene(title, frame.picture, told[-STORY_LINES:], at))

"""`jackfield migrate cohdi`: where a migration stands, the next step, and the way back.

Knows how a report is printed and which function carries out which step. Must not know what is to be done when.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import msgspec

from jackfield.cli.output import FAILED, OK, UNUSABLE, as_json
from jackfield.codec.cohdi import BadRelease
from jackfield.core import derive, migrate
from jackfield.core.migrate import Report, Stage, Step
from jackfield.kube import cohdi, connection
from jackfield.kube.client import KubeCluster
from jackfield.model.cohdi import Installation
from jackfield.ports import PortError, Refused


class Given(msgspec.Struct, frozen=True):
    """What the command line said."""

    kubeconfig: Path | None
    context: str | None
    apply: bool
    undo: bool
    as_json: bool


def given(options: Mapping[str, object]) -> Given:
    """Return the options as they were meant."""
    return msgspec.convert(options, Given, dec_hook=lambda _, value: value)


def run(given: Given) -> int:
    """Look, do what was asked for, say what comes next; return the exit status."""
    try:
        way = connection.load(given.kubeconfig, given.context, os.environ)
        return asyncio.run(_run(way, given))
    except (connection.BadConnection, BadRelease) as error:
        click.echo(f"jackfield migrate: {error}", err=True)
        return UNUSABLE
    except PortError as error:
        click.echo(f"jackfield migrate: {error}", err=True)
        return FAILED


async def _run(way: connection.Connection, given: Given) -> int:
    async with KubeCluster(way, "jackfield") as cluster:
        there = await cohdi.installation(cluster)
        report = migrate.report(there)
        done: tuple[str, ...] = ()
        if given.undo and report.no_way_back:
            raise Refused("; ".join(report.no_way_back))
        if given.apply or given.undo:
            done = await (_backward(report) if given.undo else _forward(there, report))(cluster)
            report = migrate.report(await cohdi.installation(cluster))
    if given.as_json:
        click.echo(as_json({"done": done, "next": report.next, "report": report}))
    else:
        click.echo("\n".join(lines(report, done)))
    return FAILED if report.next is not None and report.next.obstacles else OK


Work = Callable[[KubeCluster], Awaitable[tuple[str, ...]]]


async def _nothing(_: KubeCluster) -> tuple[str, ...]:
    return ()


def _forward(there: Installation, report: Report) -> Work:
    """Return the next step, if it is ours to take and nothing is in its way."""
    stage = report.next
    if stage is None or stage.obstacles:
        return _nothing
    environment = derive.environment(there.settings)
    steps: dict[Step, Work] = {
        Step.PROTECT: lambda cluster: cohdi.protect(cluster, environment),
        Step.STOP: cohdi.stop,
    }
    return steps.get(stage.step, _nothing)


def _backward(report: Report) -> Work:
    """Return what undoes the last step."""
    steps: dict[Step, Work] = {Step.PROTECT: cohdi.expose, Step.STOP: cohdi.resume}
    return steps[report.last.step] if report.last is not None else _nothing


# --- words

_TITLES: Final[Mapping[Step, str]] = {
    Step.PROTECT: "1 protect",
    Step.STOP: "2 stop",
    Step.START: "3 start",
    Step.UNINSTALL: "4 uninstall",
    Step.RETURN: "5 return",
}
_OURS: Final = "jackfield migrate cohdi --apply"


def lines(report: Report, done: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield where a migration stands, as it is printed; what was done just now comes first."""
    yield from (f"done: {one}" for one in done)
    yield from ([""] if done else [])
    yield from report.found
    yield from (f"note: {one}" for one in report.notes)
    yield ""
    for stage in report.stages:
        mark = "done" if stage.done else "next" if stage == report.next else "    "
        yield f"{mark}  {_TITLES[stage.step]:<12} {stage.what}"
    yield ""
    yield from _next(report.next)
    if report.last is not None:
        yield f"to undo {_TITLES[report.last.step][2:]}: jackfield migrate cohdi --undo"


def _next(stage: Stage | None) -> Iterator[str]:
    if stage is None:
        yield "all is done: nothing of CoHDI is left but its books, which are Jackfield's now"
        return
    for one in stage.obstacles:
        yield f"in the way: {one}"
    yield f"{'then' if stage.obstacles else 'next'}: {stage.command or _OURS}"

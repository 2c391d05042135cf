"""Torture: live through the disasters that seeds draw, and say which were not survived.

Knows how seeds are shared among processes and what is printed. Must not know what goes wrong in an ordeal.
"""

import multiprocessing
import multiprocessing.connection
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec
import yaml
from rich.console import Console
from rich.progress import Progress

from jackfield import __version__
from jackfield.cli import output
from jackfield.cli.run import Unusable, read_policy
from jackfield.sim import scenario, story
from jackfield.sim.torture import draw, run, shrink
from jackfield.sim.torture.draw import Given, Ordeal
from jackfield.sim.torture.figures import BIND, RESCHEDULE, Figures
from jackfield.sim.torture.run import Verdict

AHEAD = 4
"""Seeds that wait for each worker, so that none is idle."""
SAY_SECONDS = 30.0
"""How often progress is told where there is no terminal to draw on."""


class Options(msgspec.Struct, frozen=True):
    """What was asked for."""

    seeds: int = 100
    first: int = 1
    workers: int = 0
    seed: int | None = None
    story: str = ""
    steps: str = ""
    troubles: int = 0
    policy: Path | None = None
    world: Path | None = None
    ordeal: Path | None = None
    save: Path | None = None
    stop_at_first: bool = False
    shrink: bool = True


def torture(options: Options) -> int:
    """Torture; return the exit status."""
    _refuse_misfits(options)
    try:
        given = _given(options)
        if options.ordeal is not None:
            return _one(read(options.ordeal), options)
    except (Unusable, scenario.BadScenarioError) as error:
        click.echo(str(error), err=True)
        return output.UNUSABLE
    if options.seed is not None:
        ordeal = draw.draw(options.seed, given)
        return _one(_only(ordeal, options.steps) if options.steps else ordeal, options)
    return _many(given, options)


def _refuse_misfits(options: Options) -> None:
    """Refuse what would be passed over in silence: whoever gave it would take the answer for another."""
    if options.seed is not None and options.ordeal is not None:
        raise click.UsageError("--seed draws an ordeal and --ordeal reads one: give one of them")
    if options.steps and options.seed is None:
        raise click.UsageError("--steps are those of one seed: give --seed as well")
    if options.story and options.seed is None and options.ordeal is None:
        raise click.UsageError("--story is told of one ordeal: give --seed or --ordeal as well")


def _given(options: Options) -> Given:
    setting = scenario.read(options.world).setting if options.world is not None else None
    policy = read_policy(options.policy) if options.policy is not None else None
    return Given(setting, policy, options.troubles)


def _only(ordeal: Ordeal, text: str) -> Ordeal:
    """Return the ordeal with those of its steps alone; of none it would be survived, whatever was wrong with it."""
    numbers = _numbers(text)
    if not numbers or not all(1 <= number <= len(ordeal.steps) for number in numbers):
        raise click.UsageError(f"--steps {text}: seed {ordeal.seed} has steps 1 to {len(ordeal.steps)}")
    return shrink.only(ordeal, numbers)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that 1-4,9 names."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise click.UsageError(f"--steps {text}: give numbers such as 1-4,9")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _named(numbers: tuple[int, ...]) -> str:
    """Return numbers as 1-4,9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


# --- one seed, told line by line


def _one(ordeal: Ordeal, options: Options) -> int:
    click.echo(f"seed {ordeal.seed}, {_version()}\n\n{story.HEADER}")

    def listen(line: story.Line) -> None:
        if not options.story or options.story in line.about:
            click.echo(story.rendered(line))

    verdict = run.suffer(ordeal, listen)
    figures = Figures()
    figures.add(verdict)
    click.echo("")
    for violation in verdict.violations:
        click.echo(f"seed {verdict.seed}: {violation}")
    if options.save is not None:
        write(options.save, ordeal)
    click.echo(_sum(figures, 0.0, 1))
    return output.FAILED if verdict.violations else output.OK


def read(path: Path) -> Ordeal:
    """Read an ordeal that was kept. Raises Unusable."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text()), Ordeal)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise Unusable(f"{path}: is no ordeal: {error}; --save writes one") from error


def write(path: Path, ordeal: Ordeal) -> None:
    """Keep an ordeal, so that it can be lived through again whatever seeds draw by then."""
    path.write_text(yaml.safe_dump(msgspec.to_builtins(ordeal), sort_keys=False, width=120))


# --- many seeds, told in figures


def _many(given: Given, options: Options) -> int:
    figures, began = Figures(), time.perf_counter()
    workers = options.workers or os.cpu_count() or 1
    with _progress(options.seeds) as advance:
        for verdict in _verdicts(given, options, workers):
            figures.add(verdict)
            advance(figures)
            if verdict.violations:
                _tell_failure(verdict, given, options)
                if options.stop_at_first:
                    break
    for way in (BIND, RESCHEDULE):
        cost = figures.of(way)
        if cost is not None:
            click.echo(
                f"{way:<10}  {cost.attaches_per_pod:.3f} attaches per pod, {cost.waited_middle:.0f} s to run in the "
                f"middle, {cost.waited_most:.0f} s at the most, {cost.stranded} attaches for nobody "
                f"({cost.pods} pods of {cost.seeds} seeds)"
            )
    click.echo(_sum(figures, time.perf_counter() - began, workers))
    return output.FAILED if figures.failed else output.OK


def _verdicts(given: Given, options: Options, workers: int) -> Iterator[Verdict]:
    """Yield verdicts in the order of their seeds, whoever ends first."""
    seeds = range(options.first, options.first + options.seeds)
    if workers == 1:
        yield from (live(seed, given) for seed in seeds)
        return
    with ProcessPoolExecutor(workers, initializer=_end_with_parent) as pool:
        futures: dict[int, Future[Verdict]] = {}
        left = iter(seeds)
        try:
            for seed in seeds:
                while len(futures) < workers * AHEAD and (following := next(left, None)) is not None:
                    futures[following] = pool.submit(live, following, given)
                wait((futures[seed],), return_when=FIRST_COMPLETED)
                yield futures.pop(seed).result()
        finally:
            for future in futures.values():
                future.cancel()


def _end_with_parent() -> None:
    """End this worker when whoever started it is gone, however he went: nobody would take what it finds."""
    parent = multiprocessing.parent_process()

    def outlive() -> None:
        multiprocessing.connection.wait([parent.sentinel] if parent is not None else [])
        os._exit(output.FAILED)

    threading.Thread(target=outlive, daemon=True).start()


def live(seed: int, given: Given) -> Verdict:
    """Live through the ordeal of a seed."""
    return run.suffer(draw.draw(seed, given))


def _tell_failure(verdict: Verdict, given: Given, options: Options) -> None:
    click.echo(f"seed {verdict.seed}, {_version()}: {verdict.violations[0]}")
    if not options.shrink:
        return
    ordeal = draw.draw(verdict.seed, given)
    found = shrink.shortest(ordeal, verdict)
    click.echo(
        f"  {len(found.kept)} of its {len(ordeal.steps)} steps are enough: {found.verdict.violations[0]}"
    )
    for number in found.kept:
        line = run.told(ordeal.steps[number - 1])
        click.echo(f"  {number:>4}  {ordeal.steps[number - 1].at:9.1f}  {line.action:<8}  {line.because}")
    click.echo(
        f"  again: jackfield torture --seed {verdict.seed} --steps {_named(found.kept)}{_also(options)}"
    )
    if options.save is not None:
        write(options.save, found.ordeal)


def _also(options: Options) -> str:
    given = {"--world": options.world, "--policy": options.policy, "--troubles": options.troubles or None}
    return "".join(f" {name} {value}" for name, value in given.items() if value is not None)


def _sum(figures: Figures, seconds: float, workers: int) -> str:
    rate = f", {figures.lives / seconds / workers:.0f} lives a second and core" if seconds else ""
    return (
        f"{figures.seeds} seeds, {figures.lives} pod lives, {figures.troubles} troubles, "
        f"{figures.hours:.0f} simulated hours, {len(figures.failed)} violations{rate}"
    )


@contextmanager
def _progress(seeds: int) -> Iterator["_Advance"]:
    """Show how far it is: a bar in a terminal, a line now and then elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Advance(seeds)
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("seeds", total=seeds)
        yield _Advance(seeds, lambda: bar.advance(task))


class _Advance:
    """Hears of every seed that is through."""

    def __init__(self, seeds: int, draw_bar: object = None) -> None:
        self._seeds = seeds
        self._bar = draw_bar
        self._said = time.perf_counter()

    def __call__(self, figures: Figures) -> None:
        """Show it."""
        if callable(self._bar):
            self._bar()
        elif time.perf_counter() - self._said > SAY_SECONDS:
            self._said = time.perf_counter()
            click.echo(
                f"{figures.seeds} of {self._seeds} seeds, {len(figures.failed)} violations", file=sys.stderr
            )


def _version() -> str:
    """Return which code this is: the commit, where it is run out of its repository."""
    git, here = shutil.which("git"), Path(__file__).parent
    if git is not None:
        asked = [git, "-C", str(here), "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(  # noqa: S603 - the arguments are ours
            asked, capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            return f"commit {found.stdout.strip()}"
    return f"version {__version__}"

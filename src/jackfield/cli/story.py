"""`jackfield story`: one object's life, a line a step.

Knows how an object is found by its name or the beginning of it. Must not know how the story comes about.
"""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import click
import msgspec

from jackfield.cli import output
from jackfield.sim import play, story
from jackfield.sim import scenario as scenarios

SHOWN_MAX = 20
"""How many names are offered when none was meant."""


def demo_scenario() -> scenarios.Scenario:
    """Return the demo's scenario, which comes with the package."""
    text = resources.files("jackfield.sim").joinpath("demo.yaml").read_text()
    return scenarios.parse(text, "demo.yaml")


def run(name: str, path: Path | None, source: Iterable[str] | None, seed: int, *, as_json: bool) -> int:
    """Print the life; return the exit status."""
    try:
        lines = _told(source) if source is not None else _played(path, seed)
    except scenarios.BadScenarioError as error:
        click.echo(str(error), err=True)
        return output.UNUSABLE
    found = _meant(lines, name)
    if len(found) != 1:
        _offer(lines, name, found)
        return output.FAILED
    life = story.of(lines, found[0])
    if not as_json:
        click.echo(f"{found[0]}\n\n{story.HEADER}")
    for line in life:
        click.echo(output.as_json(line) if as_json else story.rendered(line))
    return output.OK


def _played(path: Path | None, seed: int) -> tuple[story.Line, ...]:
    scenario = scenarios.read(path) if path is not None else demo_scenario()
    return play.perform(scenario, seed).lines


def _told(source: Iterable[str]) -> tuple[story.Line, ...]:
    lines = []
    for number, text in enumerate(source, 1):
        if not text.strip() or text.startswith('{"summary"'):
            continue
        try:
            lines.append(msgspec.json.decode(text, type=story.Line))
        except msgspec.DecodeError as error:
            raise scenarios.BadScenarioError(
                f"line {number} is not one that sim --json prints: {error}"
            ) from error
    return tuple(lines)


def _meant(lines: tuple[story.Line, ...], name: str) -> list[str]:
    names = story.names(lines)
    if name in names:
        return [name]
    return [one for one in names if one.startswith(name)]


def _offer(lines: tuple[story.Line, ...], name: str, found: list[str]) -> None:
    kind = name.partition("/")[0]
    known = (
        found or [one for one in story.names(lines) if one.startswith(f"{kind}/")] or list(story.names(lines))
    )
    what = f"{name} could mean several objects" if found else f"the story knows no {name}"
    click.echo(f"{what}; it knows:", err=True)
    for one in known[:SHOWN_MAX]:
        click.echo(f"  {one}", err=True)
    if len(known) > SHOWN_MAX:
        click.echo(f"  and {len(known) - SHOWN_MAX} more", err=True)

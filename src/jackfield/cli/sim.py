"""`jackfield sim`: play a scenario, print its story.

Knows how the story is printed. Must not know how it comes about.
"""

from pathlib import Path

import click

from jackfield.cli import outcomes, output
from jackfield.cli.run import leaves
from jackfield.ports import Refused
from jackfield.sim import play, story
from jackfield.sim import scenario as scenarios
from jackfield.sim.world import SimWorld


def run(path: Path, seed: int, *, as_json: bool, everything: bool) -> int:
    """Play it; return the exit status."""
    try:
        scenario = scenarios.read(path)
    except scenarios.BadScenarioError as error:
        click.echo(str(error), err=True)
        return output.UNUSABLE

    def listen(line: story.Line, world: SimWorld) -> None:
        del world
        if as_json:
            click.echo(output.as_json(line))
        elif everything or not line.bookkeeping:
            outcomes.tell(line)

    if not as_json:
        click.echo(f"{scenario.title or path.name} (seed {seed})\n\n{story.HEADER}")
    try:
        outcome = play.perform(scenario, seed, listen)
    except BaseExceptionGroup as group:
        refusals = leaves(group)
        if any(not isinstance(one, Refused) for one in refusals):
            raise
        for one in refusals:  # a name, an amount or an expression that no API server would take
            click.echo(f"{path}: {one}", err=True)
        return output.UNUSABLE
    return outcomes.end(outcome, json=as_json)

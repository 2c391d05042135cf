"""The commands that look at a running cluster and touch nothing: `status`, `check` and `gather`.

Knows the words to type. Must not know how anything is done, and imports nothing that does it before it has to.
"""

# ruff: noqa: PLC0415 - help must come up at once: commands import when they run

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

import click

Command = TypeVar("Command", bound=Callable[..., object])

_OPTIONS = (
    click.option(
        "--policy",
        envvar="JACKFIELD_POLICY",
        type=click.Path(dir_okay=False, path_type=Path),
        required=True,
        metavar="FILE",
        help="The policy that the controllers have; in their pods JACKFIELD_POLICY names it.",
    ),
    click.option(
        "--fabrics",
        envvar="JACKFIELD_FABRICS",
        type=click.Path(dir_okay=False, path_type=Path),
        required=True,
        metavar="FILE",
        help="Where the fabric managers are; in the controllers' pods JACKFIELD_FABRICS names it.",
    ),
    click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="How the API server is reached; without it as kubectl would, or as the pod we are in.",
    ),
    click.option("--context", metavar="NAME", help="Take this context of the kubeconfig."),
)


class Where(TypedDict):
    """What the options above give a command."""

    policy: Path
    fabrics: Path
    kubeconfig: Path | None
    context: str | None


def looks(command: Command) -> Command:
    """Give a command the options that say where to look."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(short_help="Show fabrics, nodes, orders under way, who waits and why.")
@looks
@click.option("--all", "everything", is_flag=True, help="Print every line, however many there are.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def status(*, everything: bool, as_json: bool, **where: Unpack[Where]) -> None:
    """Show on one screen how things stand: fabrics, nodes, orders under way, who waits and why, what is not right.

    Everything is read once and nothing is written. What is waited for is what the controllers' own decisions say about
    this very moment, whether or not a controller runs.

    Exit status 0 means that nothing is wrong, 1 that something is (a manager, a plugin or the API server does not
    answer, no controller runs, books and fabric differ), 2 that a file cannot be used.
    """
    from jackfield.cli import live
    from jackfield.cli import status as command

    raise SystemExit(command.run(live.Given(**where), everything=everything, as_json=as_json))


@click.command(short_help="Look for what must not be, and say what to do about it.")
@looks
@click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Look again after so long if anything was found; only what is still so is told.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each thing that is wrong.")
def check(*, wait: float, as_json: bool, **where: Unpack[Where]) -> None:
    """Look for what must not be: books, inventories, slices, claims and pods that contradict each other.

    The checkers are those that run after every event of "jackfield torture". Everything is only read, with lists and
    inventories; nothing is written. Of each thing that is wrong it says why that matters and what to do; docs/check.md
    has them all.

    Exit status 0 means that all is well, 1 that something is wrong, 2 that it could not look: a file cannot be used, or
    the API server does not show what is needed.
    """
    from jackfield.cli import check as command
    from jackfield.cli import live
    from jackfield.model.names import Seconds

    raise SystemExit(command.run(live.Given(**where), wait=Seconds(wait), as_json=as_json))


@click.command(short_help="Pack all that a bug report needs into one file, without secrets.")
@looks
@click.option(
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the bundle there; by default jackfield-TIME.tar.gz in this folder. What exists is not written over.",
)
def gather(*, target: Path | None, **where: Unpack[Where]) -> None:
    """Pack all that a bug report needs into one file: status, books, inventories, policy, Events, logs, metrics.

    Everything is read once and nothing is written to the cluster. Secrets are not read; commands, environments and
    opaque configuration are left out, as is what looks like a secret elsewhere. Names of pods, namespaces and nodes
    stay in it. What could not be read is told, and named in the bundle.

    Exit status 0 means that there is a bundle, 1 that it could not be written, 2 that a file cannot be used.
    """
    from jackfield.cli import gather as command
    from jackfield.cli import live

    raise SystemExit(command.run(live.Given(**where), target))

"""`jackfield torture`: what can be typed.

Knows options. Must not know how anything is done: what it needs is imported when it runs.
"""

from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Let disasters come over simulated clusters, thousands of times.")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="Live through so many ordeals.",
)
@click.option(
    "--from",
    "first",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="FIRST",
    help="Begin with this seed.",
)
@click.option(
    "--workers",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Use so many processes; one for each core by default.",
)
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Live through this one and tell it line by line."
)
@click.option(
    "--story",
    default="",
    metavar="OBJECT",
    help="With --seed: only what concerns this object, such as claim/default/pod-7-gpu-x2k9c or node/na-1.",
)
@click.option(
    "--steps", default="", metavar="LIST", help="With --seed: only these of its steps, as in 1-4,9."
)
@click.option(
    "--troubles",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Let so many things go wrong in each ordeal, besides its plots; ten to sixteen by default.",
)
@click.option("--policy", type=FILE, metavar="FILE", help="Torture this policy instead of a drawn one.")
@click.option(
    "--world",
    type=FILE,
    metavar="FILE",
    help="Torture the nodes, fabrics, durations and policy of this scenario; its play is not played.",
)
@click.option("--save", type=FILE, metavar="FILE", help="Keep an ordeal that failed, made short, in FILE.")
@click.option("--ordeal", type=FILE, metavar="FILE", help="Live through an ordeal that --save kept.")
@click.option("--stop-at-first", is_flag=True, help="End at the first violation.")
@click.option(
    "--shrink/--no-shrink", default=True, show_default=True, help="Look for the shortest ordeal that fails."
)
def torture(**options: object) -> None:
    """Let disasters come over simulated clusters, and see whether anything breaks that must not.

    Each seed draws a cluster, what its users do and what goes wrong: processes killed between two calls, leaders that
    stand still, lost answers, managers that lie, nodes that go. The same controllers that run on a real cluster live
    through hours of it on virtual time. After every change is checked what must never be; when the troubles are over,
    everything good has to happen within two hours of its time. docs/torture.md lists troubles, checks and columns.

    Exit status 0 means that nothing was broken, 1 that something was, 2 that a file cannot be used.
    """
    from jackfield.cli import torturing as command  # noqa: PLC0415 - help must come up at once

    raise SystemExit(command.torture(command.Options(**options)))  # type: ignore[arg-type]  # click has checked them

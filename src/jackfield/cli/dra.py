"""The commands `jackfield dra …`: the DRA engine for other programs, JSON lines in and out.

Knows the words to type. Must not know how anything is done, and imports nothing that does it before it has to.
"""

import click

EXPLAIN = click.option(
    "--explain", is_flag=True, help="Where the answer is no, add why: a value and a sentence."
)


@click.group()
def dra() -> None:
    """Ask the DRA engine: what would kube-scheduler allocate, does a selector match.

    Both commands read JSON lines on standard input and write each line again with the answer filled in, one line
    for each and in order. A line that cannot be read becomes {"error": …, "line": N}, and the next one is read.
    docs/dra.md describes the format.
    """


@dra.command()
@EXPLAIN
@click.option(
    "--profile",
    type=click.Choice(["1.36", "1.37"]),
    default="1.36",
    show_default=True,
    help="The release of Kubernetes whose scheduler is spoken for.",
)
def allocate(profile: str, *, explain: bool) -> None:
    """Allocate devices to claims on a node, as kube-scheduler would.

    A line has claims, slices, classes, node, features (the gates that are on), allocatedDevices,
    allocatedSharedDeviceIDs and aggregatedCapacity. Filled in are results, one allocation for each claim or null
    where the node does not fit, and error, the text of the error that ends the scheduling cycle, or nothing.

    With --explain and no results also why and because: what became of every device, which came nearest, and what
    to do about it. If the line has nodes, everywhere tells the same of all of them.
    """
    from jackfield.cli import lines  # noqa: PLC0415 - help must come up at once

    lines.allocate(profile, explain=explain)


@dra.command()
@EXPLAIN
def cel(*, explain: bool) -> None:
    """Evaluate a device selector, as Kubernetes would.

    A line has expression, driver, attributes, capacity, allowMultipleAllocations, and lists (true: the gate
    DRAListTypeAttributes is on). Filled in are match, maxCost (the API server's estimate, which refuses more than
    1,000,000), and where there are such compileError and matchError.
    """
    from jackfield.cli import lines  # noqa: PLC0415 - help must come up at once

    lines.evaluate(explain=explain)

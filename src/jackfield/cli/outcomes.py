"""What came of a play, for whoever watched it.

Knows the simulator's figures and stories. Must not know how they came about.
"""

import click

from jackfield.cli.output import FAILED, OK, as_json
from jackfield.sim import story
from jackfield.sim.audit import Summary
from jackfield.sim.play import Outcome


def tell(line: story.Line) -> None:
    """Print one line of a story."""
    click.echo(story.rendered(line))


def end(outcome: Outcome, *, json: bool) -> int:
    """Print what came of a play; return the exit status."""
    if json:
        click.echo(as_json({"summary": outcome.summary, "failures": outcome.failures}))
    else:
        click.echo("")
        for row in table(outcome.summary):
            click.echo(row)
    for failure in outcome.failures:
        click.echo(f"not as it should be: {failure}", err=True)
    return FAILED if outcome.failures else OK


def table(summary: Summary) -> list[str]:
    """Return the figures of a play, a line each."""
    ran = sorted(summary.waited.values())
    waited = f"{ran[len(ran) // 2]:.0f} s in the middle, {ran[-1]:.0f} s at the most" if ran else "nobody ran"
    if 0 < len(ran) <= len(("podA", "podB")):
        waited = ", ".join(f"{pod} {seconds:.0f} s" for pod, seconds in summary.waited.items())
    rows = {
        "time waited": waited,
        "pods that ran": f"{len(ran)} of {len(summary.pods)}",
        "attaches": f"{summary.attaches} ({summary.attaches_per_pod:g} per pod, {summary.wasted} for nobody)",
        "devices returned": f"{summary.detaches} ({summary.devices_attached} still attached)",
        "nodes added": str(summary.nodes_added),
    }
    return [f"  {name:<18} {value}" for name, value in rows.items()]

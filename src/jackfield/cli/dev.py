"""The commands `jackfield dev …`: for whoever works on Jackfield, or wants to see it on a real API server.

Knows the words to type. Must not know how anything is done, and imports nothing that does it before it has to.
"""

import re
from pathlib import Path

import click

SECONDS_OF = (86400, 3600, 60, 1)
DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def duration(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Return the seconds of what people write as 45, 90s, 10m, 1h30m."""
    if value is None:
        return None
    found = DURATION.fullmatch(value)
    numbers = found.groups(default="0") if found else ()
    seconds = sum(int(number) * unit for number, unit in zip(numbers, SECONDS_OF, strict=False))
    if not seconds:
        raise click.BadParameter(f"{value!r} is not a time such as 45s, 10m or 1h30m")
    return seconds


@click.group()
def dev() -> None:
    """Work on Jackfield itself: a real Kubernetes to try things on."""


@dev.command()
@click.option(
    "--nodes",
    type=click.IntRange(0, 5000),
    default=3,
    show_default=True,
    metavar="N",
    help="Make so many nodes: Ready, with room for pods, and no machine behind them.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the way in to FILE, as soon as the cluster is ready; it is removed in the end.",
)
@click.option(
    "--for", "seconds", callback=duration, metavar="TIME", help="End by itself after 45s, 10m, 1h30m."
)
@click.option(
    "--programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Take etcd, kube-apiserver and the others from DIR, instead of building them.",
)
@click.option("--keep", is_flag=True, help="Leave logs and data where they are when it ends.")
def cluster(
    nodes: int, kubeconfig: Path | None, seconds: int | None, programs: Path | None, *, keep: bool
) -> None:
    """Run a real Kubernetes control plane on this machine, until Ctrl-C.

    It has etcd, kube-apiserver, kube-controller-manager and kube-scheduler of Kubernetes 1.36, with RBAC, on ports of
    127.0.0.1 that are free, and nodes that nobody runs: pods are bound to them and then stay Pending. It needs Linux
    and no privileges. The first time the programs are built by tools/kube/build of Jackfield's repository, which
    needs Go and takes about ten minutes; after that it is ready in about ten seconds.

    What to type next is printed when it is ready. It ends by Ctrl-C, SIGTERM or --for, and leaves nothing behind. If it
    is killed its programs die with it; its folder in the temporary folder goes when the next one starts.

    Exit status 0 means that it ended as it was told to, 1 that it could not start or that one of its programs died,
    2 that the options cannot be used.
    """
    from jackfield.cli import dev_cluster  # noqa: PLC0415 - help must come up at once

    wanted = dev_cluster.Wanted(nodes, kubeconfig, seconds, programs, keep)
    raise SystemExit(dev_cluster.run(wanted))

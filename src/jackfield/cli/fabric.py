"""The commands `jackfield fabric …`: a fabric manager of our own, and its command line.

Knows the words to type. Must not know how anything is done, and imports nothing that does it before it has to.
"""

# ruff: noqa: PLC0415 - help must come up at once: commands import when they run
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from jackfield.cli.addresses import LISTEN
from jackfield.cli.dev import duration

F = TypeVar("F", bound=Callable[..., object])

STATE = Path("jackfield-fabric")
FAULTS = (
    "fail",
    "hang",
    "suspend",
    "pretend",
    "wrong",
    "swap",
    "astray",
    "vanish",
    "ill",
    "cut",
    "stale",
    "quota",
    "lost",
    "late",
    "status",
    "unauthorized",
)
STATE_OPTION = click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    metavar="DIR",
    help="The manager's folder: its database, its token, and where it listens.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def reached(command: F) -> F:
    """Add the options by which a manager is reached."""
    for option in (
        click.option(
            "--ca-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Who may vouch for the manager's certificate, in PEM.",
        ),
        click.option(
            "--token-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="The manager's token; DIR/token by default.",
        ),
        click.option(
            "--url", default="", metavar="URL", help="Where it listens; as DIR/url says by default."
        ),
        STATE_OPTION,
    ):
        command = option(command)
    return command


@click.group()
def fabric() -> None:
    """Run a fabric manager of our own, and speak to it.

    It is for labs, tests, and whoever has a switch but no manager: it keeps the books of a pool of devices, carries
    orders out by a command of yours or only on paper, and can be made to fail in many ways. docs/fabric-manager.md
    describes it, examples/fabric has an inventory.
    """


@fabric.command(short_help="Run a fabric manager, until Ctrl-C.")
@click.option(
    "--inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What there is: docs/fabric-manager.md. DIR/inventory.yaml by default.",
)
@click.option(
    "--generate",
    metavar="MxD",
    help="If there is no such file, write one with M machines and D devices, as 4x32.",
)
@STATE_OPTION
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen here.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8471,
    show_default=True,
    metavar="P",
    help="Listen on this port; 0 takes one that is free.",
)
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Serve HTTPS with this certificate, in PEM; --key belongs to it.",
)
@click.option(
    "--key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The certificate's key."
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen elsewhere than on loopback without TLS: everybody sees the token.",
)
@click.option(
    "--face",
    "faces",
    multiple=True,
    metavar="NAME",
    help="Serve only this protocol; may be said more than once. All of them are served by default.",
)
@click.option(
    "--scenario",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Let faults come and go as this file says: docs/fabric-manager.md.",
)
@click.option(
    "--for", "seconds", callback=duration, metavar="TIME", help="End by itself after 45s, 10m, 1h30m."
)
@LISTEN
def serve(**options: object) -> None:
    """Run a fabric manager, until Ctrl-C or SIGTERM.

    Orders, books and faults are kept in DIR and survive kill -9: whatever was answered stays true, and orders under way
    are carried on at the next start. The first start makes a token; without it nobody gets an answer.

    Exit status 0 means that it ended as it was told to, 1 that it could not go on, 2 that an option or a file cannot be
    used.
    """
    if (options["certificate"] is None) != (options["key"] is None):
        raise click.UsageError("--certificate and --key belong together: say both, or neither")
    from jackfield.cli import fabric_serve as command

    raise SystemExit(command.run(command.wanted(options)))


@fabric.command(short_help="Show devices, where they are and whose.")
@reached
@JSON
def ls(*, as_json: bool, **way: object) -> None:
    """Show every device, where it is, who attached it, and the faults that are set."""
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.ls(command.way(way), as_json=as_json))


@fabric.command(short_help="Attach a device by hand.")
@click.argument("device")
@click.argument("node")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@reached
def attach(device: str, node: str, *, no_wait: bool, **way: object) -> None:
    """Attach DEVICE to NODE by hand, and wait until it is there.

    Whoever else asks this manager sees the device as somebody else's, and leaves it alone. Exit status 0 means that it
    is attached (or, with --no-wait, ordered), 1 that it will not be.
    """
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.attach(command.way(way), device, node, wait=not no_wait))


@fabric.command(short_help="Detach a device by hand.")
@click.argument("device")
@click.option("--force", is_flag=True, help="Also if somebody else attached it; a pod may be using it.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@reached
def detach(device: str, *, force: bool, no_wait: bool, **way: object) -> None:
    """Detach DEVICE, and wait until it is in the pool again.

    Exit status 0 means that it is (or, with --no-wait, that it was ordered), 1 that it will not be.
    """
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.detach(command.way(way), device, force=force, wait=not no_wait))


@fabric.command(short_help="Print what happens, as it happens.")
@click.option("--from-start", is_flag=True, help="Begin with the oldest event that is remembered.")
@click.option(
    "--for", "seconds", callback=duration, metavar="TIME", help="End by itself after 45s, 10m, 1h30m."
)
@reached
@JSON
def watch(*, from_start: bool, seconds: int | None, as_json: bool, **way: object) -> None:
    """Print a line for every device that comes, goes or fails, until Ctrl-C."""
    from jackfield.cli import fabric_client as command

    looks = command.Looks(from_start=from_start, seconds=seconds, as_json=as_json)
    raise SystemExit(command.watch(command.way(way), looks))


@fabric.group()
def fault() -> None:
    """Make the manager misbehave, and stop it."""


@fault.command("set", short_help="Set a fault; its name is printed.")
@click.argument("kind", type=click.Choice(FAULTS))
@click.option(
    "--face", default="", metavar="NAME", help="Only calls of this protocol; hand is this command line."
)
@click.option(
    "--verb", default="", metavar="VERB", help="Only calls of this kind: attach, detach, inventory."
)
@click.option("--device", default="", metavar="ID", help="Only calls about this device.")
@click.option("--node", default="", metavar="NAME", help="Only calls about this machine.")
@click.option("--order", default="", metavar="ID", help="Only calls about this order.")
@click.option("--after", default=0, metavar="N", help="Let N calls pass first.")
@click.option("--times", default=0, metavar="N", help="Hit N calls; all of them by default.")
@click.option("--likely", default=1.0, show_default=True, metavar="P", help="Hit each of them so likely.")
@click.option("--status", default=503, show_default=True, metavar="N", help="Of kind status: the answer.")
@click.option(
    "--seconds",
    default=0.0,
    metavar="S",
    help="Of late: how late; of status: Retry-After; of hang: how long; of stale: how old.",
)
@click.option("--limit", default=0, metavar="N", help="Of quota: how many devices may be held.")
@click.option("--reason", default="", metavar="TEXT", help="What to say about it.")
@click.option("--name", "id", default="", metavar="NAME", help="Its name; one of the same name is replaced.")
@reached
def fault_set(**options: object) -> None:
    """Set a fault of this KIND; it strikes every call that agrees with all that is said.

    Work: fail (it fails), hang (it does not end until the fault is cleared), suspend (likewise, and nothing new is
    begun), pretend (it is reported as done, and nothing was moved).

    Attaches: wrong (a device of another model), swap (another of the same model), astray (on another machine), quota
    (refused while so many are held).

    What is there: vanish (a device is gone until the fault is cleared), ill (it is not healthy), cut (a machine cannot
    be reached), stale (what is shown is old).

    Calls: lost (carried out, and the connection breaks), late (its answer comes later), status (answered with a status
    and not carried out), unauthorized (its token is not accepted).

    docs/fabric-manager.md says which of them plays which failure of a real manager.
    """
    from jackfield.cli import fabric_client as command

    way = {name: options.pop(name) for name in ("state", "url", "token_file", "ca_file")}
    raise SystemExit(command.set_fault(command.way(way), options))


@fault.command("play", short_help="Let faults come and go as a file says.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@reached
def fault_play(file: Path, **way: object) -> None:
    """Let faults come and go as FILE says, a scenario; print each as it does.

    It ends when none is to come or go any more, or by Ctrl-C, which clears all that it set. docs/fabric-manager.md
    describes the file, examples/fabric has one. Exit status 0 means that it was played, 1 that the manager could not be
    asked, 2 that the file cannot be used.
    """
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.play(command.way(way), file))


@fault.command("ls")
@reached
@JSON
def fault_ls(*, as_json: bool, **way: object) -> None:
    """Show the faults that are set, and how many calls each has seen."""
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.faults(command.way(way), as_json=as_json))


@fault.command("clear")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Clear all of them.")
@reached
def fault_clear(names: tuple[str, ...], *, everything: bool, **way: object) -> None:
    """Clear faults by name: what hung goes on, what vanished is back."""
    if bool(names) == everything:
        raise click.UsageError("name the faults to clear, or say --all")
    from jackfield.cli import fabric_client as command

    raise SystemExit(command.clear_faults(command.way(way), names))

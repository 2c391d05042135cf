"""`jackfield dev cluster`: a real control plane until somebody ends it.

Knows signals, and what to print. Must not know how a control plane is run.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click
import msgspec

from jackfield.cli import kubeconfigs, output
from jackfield.testing.control_plane import CONTEXT, ControlPlane, ControlPlaneError, Settings, fake_node

LOOK_SECONDS = 0.5
NODES_PER_LINE = 250
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Wanted(msgspec.Struct, frozen=True):
    """What was typed."""

    nodes: int
    kubeconfig: Path | None
    seconds: int | None
    programs: Path | None
    keep: bool


class _Ended(BaseException):
    """Somebody wants us to end."""


def run(wanted: Wanted) -> int:
    """Run it to its end; return the exit status."""
    if wanted.kubeconfig and (reason := kubeconfigs.not_ours(wanted.kubeconfig, CONTEXT)):
        click.echo(reason, err=True)
        return output.UNUSABLE
    try:
        with _signals():
            _run(wanted)
    except _Ended as ended:
        _say(f"ended by {ended}")
    except ControlPlaneError as error:
        _say(str(error))
        return output.FAILED
    return output.OK


def _run(wanted: Wanted) -> None:
    began = time.monotonic()
    with ControlPlane(Settings(keep=wanted.keep), programs=wanted.programs, say=_say) as plane:
        _make_nodes(plane, wanted.nodes)
        with _way_in(plane, wanted.kubeconfig) as kubeconfig:
            click.echo(_greeting(plane, wanted, kubeconfig, time.monotonic() - began))
            _stay(plane, wanted.seconds)
    if wanted.keep:
        _say(f"logs and data are in {plane.folder}")


@contextmanager
def _signals() -> Iterator[None]:
    """Let signals end what is done inside, as an exception does."""
    before = {number: signal.signal(number, _end) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> NoReturn:
    # What is begun now takes a moment and is not to be interrupted again.
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    raise _Ended(signal.Signals(number).name)


def _stay(plane: ControlPlane, seconds: int | None) -> None:
    until = time.monotonic() + seconds if seconds else None
    pause = threading.Event()
    while until is None or time.monotonic() < until:
        plane.check()
        pause.wait(LOOK_SECONDS)
    _say(f"ended after {seconds} s, as asked")


def _make_nodes(plane: ControlPlane, count: int) -> None:
    with plane.api() as api:
        for number in range(1, count + 1):
            fake_node(api, f"node-{number}")
            if number == count or number % NODES_PER_LINE == 0:
                _say(f"nodes: {number} of {count}")


@contextmanager
def _way_in(plane: ControlPlane, file: Path | None) -> Iterator[Path]:
    if file is None:
        yield plane.kubeconfig
        return
    with kubeconfigs.appearing(file, plane.kubeconfig.read_bytes()) as path:
        yield path


def _greeting(plane: ControlPlane, wanted: Wanted, kubeconfig: Path, seconds: float) -> str:
    end = f"by itself after {wanted.seconds} s, or with Ctrl-C" if wanted.seconds else "with Ctrl-C"
    return (
        f"\nKubernetes is ready after {seconds:.0f} s, with {wanted.nodes} nodes. In another terminal:\n\n"
        f"  export KUBECONFIG={kubeconfig.absolute()}\n"
        f"  export PATH={plane.kubectl_path.parent}:$PATH\n"
        "  kubectl get nodes\n\n"
        f"Logs are in {plane.logs}. It ends {end}."
    )


def _say(words: str) -> None:
    click.echo(words, err=True)

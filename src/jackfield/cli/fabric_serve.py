"""`jackfield fabric serve`: a fabric manager until somebody ends it.

Knows in which order it comes up and goes down, and what to print. Must not know how any part of it works.
"""

import asyncio
import random
import re
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from ipaddress import ip_address
from pathlib import Path

import click
import msgspec

from jackfield.cli import output
from jackfield.cli.addresses import Place
from jackfield.cli.clock import WallClock
from jackfield.cli.serving import Unheard, answering
from jackfield.fabric_manager import backends, hardware, scenario
from jackfield.fabric_manager.faces import registry
from jackfield.fabric_manager.faults import Fault
from jackfield.fabric_manager.figures import Figures
from jackfield.fabric_manager.folder import BadFolder, Folder, tls
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.server import Gate, Server
from jackfield.fabric_manager.store import BadStore, Memory, Store
from jackfield.metrics.probes import Answers
from jackfield.model.names import FabricName
from jackfield.ports import Refused

GENERATE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")


class Wanted(msgspec.Struct, frozen=True):
    """What was typed."""

    inventory: Path | None
    generate: str | None
    state: Path
    host: str
    port: int
    certificate: Path | None
    key: Path | None
    insecure: bool
    faces: tuple[str, ...]
    scenario: Path | None
    seconds: int | None
    listen: Place | None = None


class Unusable(Exception):  # noqa: N818 - a finding about what was typed
    """Options that make no manager."""


class Stopped(Exception):  # noqa: N818 - what happened
    """It cannot go on."""


def wanted(options: Mapping[str, object]) -> Wanted:
    """Return the options as they were meant."""
    return msgspec.convert(options, Wanted, dec_hook=lambda _, value: value)


def run(wanted: Wanted) -> int:
    """Run it to its end; return the exit status."""
    try:
        _check(wanted)
        folder = Folder(wanted.state)
        folder.make()
        found = _hardware(wanted, folder)
        played = scenario.read(wanted.scenario) if wanted.scenario else scenario.Scenario(())
        asyncio.run(_run(wanted, folder, found, played))
    except (Unusable, Unheard, hardware.BadHardware, scenario.BadScenario, BadFolder, BadStore) as error:
        click.echo(f"jackfield fabric serve: {error}", err=True)
        return output.UNUSABLE
    except Stopped as error:
        click.echo(f"jackfield fabric serve: {error}", err=True)
        return output.FAILED
    except OSError as error:
        click.echo(
            f"jackfield fabric serve: {wanted.host}:{wanted.port}: {error.strerror or error}", err=True
        )
        return output.FAILED
    return output.OK


def _check(wanted: Wanted) -> None:
    unknown = [name for name in wanted.faces if name not in registry.FACES]
    if unknown:
        raise Unusable(f"--face: {unknown[0]!r} is none of {', '.join(registry.FACES)}")
    if wanted.certificate is None and not wanted.insecure and not _loopback(wanted.host):
        raise Unusable(
            f"--host {wanted.host} is not this machine alone: give --certificate and --key, or say --insecure"
        )


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _hardware(wanted: Wanted, folder: Folder) -> hardware.Hardware:
    path = wanted.inventory or folder.inventory
    if wanted.generate is not None and not path.exists():
        found = GENERATE.fullmatch(wanted.generate)
        if found is None:
            raise Unusable(f"--generate: {wanted.generate!r} is not machines x devices, such as 4x32")
        path.write_text(hardware.generated(FabricName("lab"), int(found[1]), int(found[2])))
        click.echo(f"wrote {path}", err=True)
    if not path.exists():
        raise Unusable(f"{path}: there is no such file; --generate 4x32 writes one to begin with")
    return hardware.read(path)


async def _run(wanted: Wanted, folder: Folder, found: hardware.Hardware, played: scenario.Scenario) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    context = tls(wanted.certificate, wanted.key) if wanted.certificate and wanted.key else None
    gate = Gate(folder.secret(), wanted.host, wanted.port, context)
    clock = WallClock()
    backend = backends.of(found.lab.backend, folder.lock, clock)
    async with AsyncExitStack() as stack:
        limits = found.lab.limits
        memory = Memory(limits.remember_seconds, limits.remember_orders)
        store = Store(folder.database, found.name, memory)
        stack.callback(store.close)
        manager = await stack.enter_async_context(
            Manager(found, store, backend, clock, random.SystemRandom())
        )
        stage = _stage(manager, played)
        server = await stack.enter_async_context(Server(manager, registry.chosen(wanted.faces), gate))
        await _answer(wanted, manager, server, stack)
        folder.listens_at(server.url)
        click.echo(_greeting(found, server, folder))
        playing = asyncio.create_task(scenario.play(played, stage))
        try:
            await _stay(manager, ended, wanted.seconds)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)


async def _answer(wanted: Wanted, manager: Manager, server: Server, stack: AsyncExitStack) -> None:
    """Answer whoever looks after the manager, at a place of its own: there no token is asked for."""
    if wanted.listen is None:
        return
    figures = Figures(manager)
    server.heard = figures.answered
    where = await stack.enter_async_context(answering(wanted.listen, Answers(figures.trouble, figures.text)))
    click.echo(f"answers /metrics, /healthz and /readyz at {where}", err=True)


def _stage(manager: Manager, played: scenario.Scenario) -> scenario.Stage:
    """Return where a scenario is played; one that this lab cannot play is refused before anybody is served."""
    for fault, _ in scenario.named(played):
        if reason := manager.objection(fault):
            raise Unusable(f"--scenario: {fault.id}: {reason}")

    async def set_one(fault: Fault) -> None:
        try:
            await manager.set_fault(fault)
        except Refused as error:  # others may have set too many meanwhile
            click.echo(f"jackfield fabric serve: --scenario: {fault.id}: {error}", err=True)

    async def clear_one(name: str) -> None:
        if manager.faults.get(name) is not None:
            await manager.clear_fault(name)

    return scenario.Stage(manager.clock, set_one, clear_one)


async def _stay(manager: Manager, ended: asyncio.Event, seconds: int | None) -> None:
    """Wait for the end: somebody's wish, the time, a disk that cannot be written, or a mistake of ours."""
    told = asyncio.ensure_future(ended.wait())
    broken = asyncio.ensure_future(manager.store.broken.wait())
    done, _ = await asyncio.wait(
        (told, broken, manager.mistake), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
    )
    for one in (told, broken):
        one.cancel()
    if broken in done:
        raise Stopped(manager.store.failure)
    if manager.mistake in done:
        await manager.mistake


def _greeting(found: hardware.Hardware, server: Server, folder: Folder) -> str:
    return (
        f"Fabric {found.name} is served at {server.url}: "
        f"{len(found.devices)} devices, {len(found.machines)} machines.\n"
        "For jackfield run:\n\n"
        "  fabrics:\n"
        f"    - name: {found.name}\n"
        "      type: native\n"
        f"      url: {server.url}\n"
        f"      tokenFile: {folder.token.absolute()}\n\n"
        f"In another terminal: jackfield fabric ls --state {folder.path}"
    )

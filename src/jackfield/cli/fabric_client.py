"""What `jackfield fabric ls|attach|detach|watch|fault` do: calls of a manager's own extras, and what to print.

Knows the manager's extras and a terminal. Must not know how the manager does anything.
"""

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import aiohttp
import click
import msgspec

from jackfield.cli import output
from jackfield.cli.clock import SteadyClock
from jackfield.codec import native
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager import scenario
from jackfield.fabric_manager.faces.control import PREFIX, Attach, Detach, Held, Shown
from jackfield.fabric_manager.faults import STANDING, Fault, Kind
from jackfield.fabric_manager.folder import BadFolder, Folder
from jackfield.fabric_manager.store import Event
from jackfield.line import unreached
from jackfield.model.fabric import Done, FabricDevice, Failed, Progress
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds, rfc3339

T = TypeVar("T")

CALL_SECONDS = 40.0
WAIT = Seconds(20.0)
"""How long one answer is waited for before it is asked for again."""


class Way(msgspec.Struct, frozen=True):
    """How a manager is reached, as it was typed."""

    state: Path
    url: str
    token_file: Path | None
    ca_file: Path | None


class Looks(msgspec.Struct, frozen=True):
    """How events are shown."""

    from_start: bool
    seconds: int | None
    as_json: bool


class Unreachable(Exception):  # noqa: N818 - what happened
    """The manager did not answer, or not what was hoped for; the message says so."""


def way(options: Mapping[str, object]) -> Way:
    """Return the options as they were meant."""
    return msgspec.convert(options, Way, dec_hook=lambda _, value: value)


class Line:
    """A connection to a manager's extras."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base

    async def call(self, method: str, path: str, kind: type[T], body: object = None) -> T:
        """Ask; return the answer. Raises Unreachable."""
        return self._understood(
            lambda answer: msgspec.json.decode(answer, type=kind), await self._ask(method, path, body)
        )

    async def order(self, verb: str, order: Attach | Detach) -> Progress:
        """Order; return how far it is. Raises Unreachable."""
        return self._understood(native.progress, await self._ask("POST", verb, order))

    def _understood(self, decode: Callable[[bytes], T], answer: bytes) -> T:
        try:
            return decode(answer)
        except (msgspec.DecodeError, native.BadMessage) as error:
            raise Unreachable(f"{self._base} is no manager of ours: {error}") from error

    async def _ask(self, method: str, path: str, body: object) -> bytes:
        data = msgspec.json.encode(body) if body is not None else None
        try:
            async with self._session.request(
                method, f"{self._base}{PREFIX}/{path}", data=data, allow_redirects=False
            ) as response:
                answer = await response.read()
                if response.status == 200:  # noqa: PLR2004 - all is well
                    return answer
                raise Unreachable(str(native.error(response.status, answer, "")))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = (
                unreached(error)
                if isinstance(error, aiohttp.ClientConnectorError)
                else str(error) or "no answer in time"
            )
            raise Unreachable(
                f"{self._base}: {why}. Is the manager up (jackfield fabric serve), and is this its address?"
            ) from None


def _spoken(way: Way, talk: Callable[[Line], Awaitable[int]]) -> int:
    """Speak to the manager; return the exit status."""

    async def main() -> int:
        folder = Folder(way.state)
        base, token = _base(way, folder), _token(way, folder)
        context = ssl.create_default_context(cafile=way.ca_file) if way.ca_file else None
        connector = aiohttp.TCPConnector(ssl=context) if context else aiohttp.TCPConnector()
        async with aiohttp.ClientSession(
            connector=connector,
            headers={"Authorization": f"Bearer {token.reveal()}"},
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
        ) as session:
            return await talk(Line(session, base))

    try:
        return asyncio.run(main())
    except Unreachable as error:
        click.echo(f"jackfield fabric: {error}", err=True)
        return output.FAILED
    except (BadFolder, OSError, ssl.SSLError) as error:
        click.echo(f"jackfield fabric: {error}", err=True)
        return output.UNUSABLE


def _base(way: Way, folder: Folder) -> str:
    if way.url:
        return way.url.rstrip("/")
    try:
        return folder.url.read_text().strip()
    except OSError as error:
        raise BadFolder(
            f"{folder.url}: {error.strerror}: no manager was served from here; give --url"
        ) from None


def _token(way: Way, folder: Folder) -> Secret:
    if way.token_file is None:
        return folder.read_secret()
    try:
        return Secret(way.token_file.read_text().strip())
    except (OSError, UnicodeDecodeError) as error:
        raise BadFolder(f"{way.token_file}: cannot be read: {error}") from None


# --- looking


def ls(way: Way, *, as_json: bool) -> int:
    """Show all there is."""

    async def talk(line: Line) -> int:
        shown = await line.call("GET", "state", Shown)
        if as_json:
            click.echo(output.as_json(shown))
            return output.OK
        holders = {one.device: one for one in shown.held}
        rows = [_device_row(one, holders.get(one.id)) for one in shown.inventory.devices]
        _table(("DEVICE", "TYPE", "MODEL", "MACHINE", "STATE", "BY", "ORDER"), rows)
        for fault in shown.faults:
            click.echo(_fault_line(fault))
        return output.OK

    return _spoken(way, talk)


def _device_row(device: FabricDevice, held: Held | None) -> tuple[str, ...]:
    state = held.state if held else "free"
    return (
        device.id,
        device.type,
        device.model,
        held.node if held else "",
        state if device.healthy else f"{state}, ill",
        held.owner if held else "",
        held.order if held else "",
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def watch(way: Way, looks: Looks) -> int:
    """Print what happens."""

    async def talk(line: Line) -> int:
        last = 0 if looks.from_start else (await line.call("GET", "state", Shown)).last_event
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(looks.seconds):
                while True:
                    path = f"events?after={last}&wait={WAIT:g}"
                    for event in await line.call("GET", path, tuple[Event, ...]):
                        click.echo(output.as_json(event) if looks.as_json else _event_line(event))
                        last = event.number
        return output.OK

    try:
        return _spoken(way, talk)
    except KeyboardInterrupt:
        return output.OK


def _event_line(event: Event) -> str:
    where = f" on {event.node}" if event.node else ""
    who = f" by {event.owner} for {event.order}" if event.order else ""
    why = f": {event.reason}" if event.reason else ""
    return f"{rfc3339(event.at)}  {event.device} {event.what}{where}{who}{why}"


# --- moving


def attach(way: Way, device: str, node: str, *, wait: bool) -> int:
    """Attach a device by hand."""
    # The id is made once: whoever asks again because an answer was lost asks for the same order.
    order = Attach(
        OrderID(f"hand/{device}/{secrets.token_hex(6)}"),
        PhysicalID(device),
        NodeName(node),
        WAIT if wait else Seconds(0.0),
    )
    return _spoken(way, lambda line: _ordered(line, "attach", order, wait=wait))


def detach(way: Way, device: str, *, force: bool, wait: bool) -> int:
    """Detach a device by hand."""
    order = Detach(PhysicalID(device), force, WAIT if wait else Seconds(0.0))
    return _spoken(way, lambda line: _ordered(line, "detach", order, wait=wait))


async def _ordered(line: Line, verb: str, order: Attach | Detach, *, wait: bool) -> int:
    while True:
        progress = await line.order(verb, order)
        match progress:
            case Done():
                click.echo(f"{order.device}: {verb}ed")
                return output.OK
            case Failed(reason=reason):
                click.echo(f"{order.device}: {reason}", err=True)
                return output.FAILED
            case _ if not wait:
                click.echo(f"{order.device}: {verb} is under way")
                return output.OK
            case _:
                pass


# --- faults


def set_fault(way: Way, options: Mapping[str, object]) -> int:
    """Set a fault and print its name."""
    wanted = msgspec.convert(options, Fault)

    async def talk(line: Line) -> int:
        click.echo((await line.call("POST", "faults", Fault, wanted)).id)
        return output.OK

    return _spoken(way, talk)


def play(way: Way, file: Path) -> int:
    """Play a scenario."""
    try:
        wanted = scenario.read(file)
    except scenario.BadScenario as error:
        click.echo(f"jackfield fabric fault play: {error}", err=True)
        return output.UNUSABLE

    async def talk(line: Line) -> int:
        try:
            await _played(line, wanted)
        except asyncio.CancelledError:
            for fault, _ in scenario.named(wanted):
                await _cleared(line, fault.id)
            raise
        return output.OK

    try:
        return _spoken(way, talk)
    except KeyboardInterrupt:
        return output.OK


async def _played(line: Line, wanted: scenario.Scenario) -> None:
    """Play it; of what goes wrong in many places at once the first is told."""
    clock = SteadyClock()

    async def set_one(fault: Fault) -> None:
        named = await line.call("POST", "faults", Fault, fault)
        click.echo(f"{rfc3339(clock.now())}  {_fault_line(named)}")

    async def clear_one(name: str) -> None:
        if await _cleared(line, name):
            click.echo(f"{rfc3339(clock.now())}  {name}: cleared")

    try:
        await scenario.play(wanted, scenario.Stage(clock, set_one, clear_one))
    except* Unreachable as group:
        raise group.exceptions[0] from None


async def _cleared(line: Line, name: str) -> bool:
    """Clear a fault; return whether it was there."""
    known = await line.call("GET", "faults", tuple[Fault, ...])
    if all(one.id != name for one in known):
        return False
    await line.call("DELETE", f"faults/{name}", Fault)
    return True


def faults(way: Way, *, as_json: bool) -> int:
    """Show the faults that are set."""

    async def talk(line: Line) -> int:
        for fault in await line.call("GET", "faults", tuple[Fault, ...]):
            click.echo(output.as_json(fault) if as_json else _fault_line(fault))
        return output.OK

    return _spoken(way, talk)


def clear_faults(way: Way, names: tuple[str, ...]) -> int:
    """Clear these faults; all, if none is named."""

    async def talk(line: Line) -> int:
        every = names or tuple(one.id for one in await line.call("GET", "faults", tuple[Fault, ...]))
        for name in every:
            await line.call("DELETE", f"faults/{name}", Fault)
            click.echo(f"{name}: cleared")
        return output.OK

    return _spoken(way, talk)


def _fault_line(fault: Fault) -> str:
    said = {
        "face": fault.face,
        "verb": fault.verb,
        "device": fault.device,
        "node": fault.node,
        "order": fault.order,
        "reason": fault.reason,
    }
    about = " ".join(f"{name}={value}" for name, value in said.items() if value) or "every call"
    if fault.kind in STANDING:
        limit = f", at most {fault.limit} devices" if fault.kind is Kind.QUOTA else ""
        return f"{fault.id}: {fault.kind}, {about}{limit}"
    often = f"{fault.times} calls" if fault.times else "all calls"
    held = f"; it holds {' '.join(fault.holds)}" if fault.holds else ""
    return f"{fault.id}: {fault.kind}, {about}; {often} after {fault.after}; {fault.seen} seen{held}"

"""The manager's own extras, for `jackfield fabric`: orders by hand, what happened, faults.

Knows its paths. Must not know how a terminal looks. docs/fabric-manager.md describes it for everybody else.
"""

import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from jackfield.codec import native
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk, Trouble, bearer
from jackfield.fabric_manager.faces.native import TEXT_MAX, problem
from jackfield.fabric_manager.faces.openapi import Operation, document
from jackfield.fabric_manager.faults import Call, Fault
from jackfield.fabric_manager.store import Event
from jackfield.model.fabric import Inventory, Progress
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Bug, Gone, Refused

T = TypeVar("T")

PREFIX: Final = "/manager/v1"
OWNER: Final = "hand"
EVENTS_WAIT_MAX: Final = Seconds(30.0)


class Attach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An attach by hand."""

    id: OrderID
    """Made up by whoever asks, so that asking twice is one order."""
    device: PhysicalID
    node: NodeName
    wait: Seconds = Seconds(0.0)
    """How long the answer may take."""


class Detach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A detach by hand."""

    device: PhysicalID
    force: bool = False
    """Also what somebody else attached."""
    wait: Seconds = Seconds(0.0)


class Held(msgspec.Struct, frozen=True):
    """A device and who has it."""

    device: PhysicalID
    node: NodeName
    owner: str
    order: OrderID
    state: str


class Shown(msgspec.Struct, frozen=True):
    """All there is to see."""

    inventory: Inventory
    held: tuple[Held, ...]
    faults: tuple[Fault, ...]
    last_event: int


STATE: Final = Operation("GET", "state", "Show all there is.", Shown)
EVENTS: Final = Operation(
    "GET",
    "events",
    "Tell what happened.",
    tuple[Event, ...],
    query={"after": "the number of the last event known", "wait": "seconds to wait for one, 30 at most"},
)
ATTACH: Final = Operation("POST", "attach", "Attach a device by hand.", Progress, Attach)
DETACH: Final = Operation("POST", "detach", "Detach a device by hand.", Progress, Detach)
FAULTS: Final = Operation("GET", "faults", "Show the faults that are set.", tuple[Fault, ...])
SET_FAULT: Final = Operation("POST", "faults", "Set a fault.", Fault, Fault)
CLEAR_FAULT: Final = Operation("DELETE", "faults/{name}", "Clear a fault.", Fault)
OPENAPI: Final = Operation("GET", "openapi.json", "Show this description.", dict[str, Any])
OPERATIONS: Final = (STATE, EVENTS, ATTACH, DETACH, FAULTS, SET_FAULT, CLEAR_FAULT, OPENAPI)

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Control:
    """The extras at /manager/v1."""

    name = OWNER
    prefixes = (PREFIX,)

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return its calls."""
        calls = _Calls(desk)
        answered: tuple[tuple[Operation, Handler], ...] = (
            (STATE, calls.state),
            (EVENTS, calls.events),
            (ATTACH, calls.attach),
            (DETACH, calls.detach),
            (FAULTS, calls.faults),
            (SET_FAULT, calls.set_fault),
            (CLEAR_FAULT, calls.clear_fault),
            (OPENAPI, calls.openapi),
        )
        return tuple(web.route(of.method, f"{PREFIX}/{of.path}", handler) for of, handler in answered)

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it carries the token."""
        return bearer(request, token)

    def error(self, trouble: Trouble) -> web.Response:
        """Return an RFC 9457 problem."""
        return problem(trouble)


class _Calls:
    """The calls, of which none but attach and detach can be hit by a fault: they are the way out of one."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manager = desk.manager

    async def state(self, _: web.Request) -> web.Response:
        manager = self._manager
        inventory = await manager.inventory(OWNER)
        entries = (manager.books.holder(device) for device in manager.hardware.devices)
        held = tuple(Held(one.device, one.node, one.owner, one.order.id, one.state) for one in entries if one)
        return _answer(Shown(inventory, held, tuple(manager.faults), manager.store.last_event()))

    async def events(self, request: web.Request) -> web.Response:
        after, wait = _number(request, "after"), _number(request, "wait")
        found: tuple[Event, ...] = await self._manager.events(int(after), Seconds(min(wait, EVENTS_WAIT_MAX)))
        return _answer(found)

    async def attach(self, request: web.Request) -> web.Response:
        wanted = await self._read(request, Attach)
        if not 0 < len(wanted.id) <= TEXT_MAX:
            raise Bug(f"an id has 1 to {TEXT_MAX} characters")
        await self._desk.meet(request, Call(OWNER, "attach", wanted.device, wanted.node, wanted.id))
        order = self._manager.order(wanted.id, wanted.device, wanted.node)
        return _answer(
            await self._manager.settle(
                lambda: self._manager.attach(order, OWNER), order.id, _bounded(wanted.wait)
            )
        )

    async def detach(self, request: web.Request) -> web.Response:
        wanted = await self._read(request, Detach)
        await self._desk.meet(request, Call(OWNER, "detach", wanted.device))
        holder = self._manager.books.holder(wanted.device)
        if holder is None:
            if wanted.device not in self._manager.hardware.devices:
                raise Gone(f"fabric {self._manager.name} has no device {wanted.device}")
            raise Refused(f"device {wanted.device} is attached to nothing")
        if holder.owner != OWNER and not wanted.force:
            raise Refused(f"device {wanted.device} was attached by {holder.owner}, not by hand; force it")
        order = holder.order
        progress: Progress = await self._manager.settle(
            lambda: self._manager.detach(order, holder.owner), order.id, _bounded(wanted.wait)
        )
        return _answer(progress)

    async def faults(self, _: web.Request) -> web.Response:
        return _answer(tuple(self._manager.faults))

    async def set_fault(self, request: web.Request) -> web.Response:
        return _answer(await self._manager.set_fault(await self._read(request, Fault)))

    async def clear_fault(self, request: web.Request) -> web.Response:
        return _answer(await self._manager.clear_fault(request.match_info["name"]))

    async def openapi(self, _: web.Request) -> web.Response:
        return _answer(document(PREFIX, OPERATIONS))

    async def _read(self, request: web.Request, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(await self._desk.body(request), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Bug(f"the request is not understood: {error}") from error


def _answer(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type=native.JSON)


def _bounded(span: Seconds) -> Seconds:
    return Seconds(min(max(0.0, span), EVENTS_WAIT_MAX)) if math.isfinite(span) else Seconds(0.0)


def _number(request: web.Request, name: str) -> float:
    try:
        value = float(request.query.get(name, "0"))
    except ValueError:
        value = math.nan
    if not 0 <= value < 2**53:
        raise Bug(f"{name} is not a number that can be used")
    return value

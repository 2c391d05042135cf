"""A manager that speaks our own protocol, `codec.native`: the Fabric port over HTTP.

Knows the three calls of the protocol. Must not know what an order is for. Every call ends within its time-out; what
that leaves open is asked about again, which the port allows. An attach is sent once per call: whoever gets no answer
looks again.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from jackfield.codec import native
from jackfield.fabric.http import Answer, Request, Wire
from jackfield.fabric.settings import FabricSettings, Token, options, token
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import Seconds
from jackfield.ports import Clock, Refused, Retry

T = TypeVar("T")

WAITS_MAX: Final = 8
"""Calls whose answer may be held back at a time; the others must not wait for a connection because of them."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


def connect(settings: FabricSettings, environment: Mapping[str, str], _: Clock) -> "NativeFabric":
    """Return the line to the manager. Raises BadFabric."""
    options(settings, Options)
    return NativeFabric(settings, token(settings, environment))


class NativeFabric:
    """One process's line to a manager; opened by the first call, closed by leaving the context."""

    def __init__(self, settings: FabricSettings, token: Token) -> None:
        self._settings = settings
        self._token = token
        self._wire = Wire(settings, f"{native.JSON}, {native.PROBLEM_JSON}")
        self._shown: Inventory | None = None
        self._tag = ""
        self._waits = 0

    def __repr__(self) -> str:
        return f"NativeFabric({self._settings.name!r}, {self._settings.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._wire.close()

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the manager shows; the same object while it says that nothing changed."""
        headers = {"If-None-Match": self._tag} if self._tag and self._shown is not None else {}
        answer = await self._call("GET", "inventory", b"", headers)
        if answer.status == HTTPStatus.NOT_MODIFIED and self._shown is not None:
            return self._shown
        shown = self._understood(native.inventory, answer.body)
        if shown.fabric != self._settings.name:
            another = f"the manager shows fabric {shown.fabric!r} where {self._settings.name!r} was asked for"
            raise self._wire.named(Refused(another))
        self._shown, self._tag = shown, answer.headers.get("etag", "")
        return shown

    async def attach(self, order: Order) -> Progress:
        """Ask the manager to attach, or how far it is."""
        return await self._ask("attach", order)

    async def detach(self, order: Order) -> Progress:
        """Ask the manager to take back, or how far it is."""
        return await self._ask("detach", order)

    # --- the wire

    async def _ask(self, verb: str, order: Order) -> Progress:
        headers = {"Content-Type": native.JSON}
        span = Seconds(min(native.WAIT_SECONDS_MAX, self._settings.call_timeout_seconds / 2))
        if self._waits < WAITS_MAX:
            headers["Prefer"] = native.preference(span)
        self._waits += 1
        try:
            answer = await self._call("POST", verb, native.encode(order), headers)
        finally:
            self._waits -= 1
        return self._understood(native.progress, answer.body)

    async def _call(self, method: str, verb: str, body: bytes, headers: dict[str, str]) -> Answer:
        token = self._token()
        proof = {"Authorization": f"Bearer {token.reveal()}"} if token.reveal() else {}
        path = native.path(self._settings.name, verb)
        answer = await self._wire.call(Request(method, path, body, headers | proof, secrets=(token,)))
        if answer.status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
            return answer
        failure = native.error(answer.status, answer.body, answer.headers.get("retry-after", ""))
        raise self._wire.named(failure, (token,))

    def _understood(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except native.BadMessage as error:
            unclear = Retry(f"the answer is not understood: {error}", native.BUG_AFTER)
        # Raised out here, unchained: what is not understood may repeat the token.
        raise self._wire.named(unclear)

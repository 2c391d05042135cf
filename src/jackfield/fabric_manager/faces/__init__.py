"""Faces: the ways in which the manager can be asked. One file each, and what they have in common here.

A face translates: HTTP in its own words to calls of `Manager`, and back. It has

- `name`: the owner of the orders it places, and what `--face` calls it;
- `prefixes`: the beginnings of the paths that it answers for;
- `routes(desk)`: its paths, as aiohttp's route definitions;
- `admits(request, token)`: whether a request may come in; asked before anything is read. `bearer` and `basic` below
  are enough for most. What it lets in without the token it must judge itself, as a log-in does;
- `error(trouble)`: an error in its own words: `Trouble` has the status, what to say, when to ask again, and the error
  of `ports` behind it, if there is one. Handlers raise `ports.PortError` or `Trouble`; the server does the rest.

A handler reads its body by `desk.body(request)`, which is bounded in size and time, and then says once what the call
is about by `desk.meet(request, Call(…))`: there faults strike. While `manager.faults.suspended` (work is stopped until
an operator clears that fault), `meet` answers 409; a face with words of its own for that asks first. It asks
`desk.manager`, whose answers are on disk before they are given. Order ids are the face's own: one without ids makes
them (`NAME/…`, so that no two faces make the same), and finds them again by `manager.books.holder(device)`; those that
ended are forgotten some day. `manager.settle` waits for an order, for faces that answer when the work is done. What a
face must remember across restarts (tasks, reservations, sessions) it notes by `manager.store.note(name, key, value)`,
and awaits `manager.store.committed()` before it answers.

`registry.py` lists them. Knows HTTP. Must not know any one face.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable
from typing import Final, Protocol

from aiohttp import web

from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faults import Call
from jackfield.fabric_manager.manager import Manager
from jackfield.model.names import Seconds
from jackfield.ports import PortError

USER: Final = "jackfield"
"""The name beside the token, where one must be given."""


class Trouble(Exception):  # noqa: N818 - what it is, for whoever renders it
    """An error on its way out."""

    def __init__(
        self, status: int, words: str, after: Seconds = Seconds(0.0), cause: PortError | None = None
    ) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.after = after
        """When to ask again; 0 where that says nothing."""
        self.cause = cause


class Desk(Protocol):
    """What the server does for a face."""

    @property
    def manager(self) -> Manager:
        """Whom to ask."""

    async def body(self, request: web.Request) -> bytes:
        """Return the whole body, of bounded size and within bounded time. Raises Trouble."""

    async def meet(self, request: web.Request, call: Call) -> None:
        """Let happen to a call what was asked for; called once by each handler. Raises Trouble."""


class Face(Protocol):
    """One way in which the manager can be asked; see above."""

    @property
    def name(self) -> str:
        """The owner of the orders it places."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The beginnings of its paths."""

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return its paths and who answers them."""

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether the request may come in."""

    def error(self, trouble: Trouble) -> web.Response:
        """Return an error in its own words."""


def bearer(request: web.Request, token: Secret) -> bool:
    """Whether the request carries the token as `Authorization: Bearer`."""
    shown = request.headers.get("Authorization", "").encode(errors="replace")
    return hmac.compare_digest(shown, f"Bearer {token.reveal()}".encode())


def basic(request: web.Request, token: Secret) -> bool:
    """Whether the request carries the token as the password of `jackfield`, in `Authorization: Basic`."""
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        pair = base64.b64decode(shown.strip(), validate=True)
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(pair, f"{USER}:{token.reveal()}".encode())

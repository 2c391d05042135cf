"""The Redfish face, the manager's native one towards the world: DSP0266, and composing as DSP2050 has it.

Knows which methods each path takes and who may come in. Must not know how a document looks, or what composing is: that
is in the rooms beside it: `tree` (what can be read), `composing` and `people` (what can be changed), `accounts`,
`sessions`, `tasks`, `reservations` (what is remembered), `protocol` and `queries` (how all of it is said).
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Final

from aiohttp import web

from jackfield.codec.redfish import BLOCKS, ROOT, SESSIONS, SYSTEMS, TASK_MONITORS, TASKS, TYPE
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk, Trouble
from jackfield.fabric_manager.faces.redfish import documents, protocol, queries, reservations, sessions
from jackfield.fabric_manager.faces.redfish.accounts import Privilege
from jackfield.fabric_manager.faces.redfish.composing import ANSWER_SECONDS, Composing
from jackfield.fabric_manager.faces.redfish.documents import ACCOUNTS
from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.faces.redfish.people import People, Reception
from jackfield.fabric_manager.faces.redfish.protocol import HEADERS, Document, answer, missing, refusal
from jackfield.fabric_manager.faces.redfish.tree import Notes, Tree
from jackfield.fabric_manager.faults import Call
from jackfield.model.names import Seconds

VERSIONS: Final = "/redfish"
METADATA: Final = f"{ROOT}/$metadata"
SERVICE_DOCUMENT: Final = f"{ROOT}/odata"
OPEN: Final = (VERSIONS, ROOT, METADATA, SERVICE_DOCUMENT)
"""What anybody may read, as the specification has it."""
METHODS: Final = ("GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS")
READ: Final = ("GET", "HEAD")

Handler = Callable[[web.Request], Awaitable[web.Response]]
Named = Callable[[web.Request, str], Awaitable[web.Response]]


class Redfish:
    """The service at /redfish."""

    name = FACE
    prefixes = (VERSIONS,)

    def __init__(
        self,
        answer_seconds: Seconds = ANSWER_SECONDS,
        session_seconds: Seconds = sessions.LASTS,
        reservation_seconds: Seconds = reservations.LASTS,
    ) -> None:
        self._answer_seconds = answer_seconds
        self._session_seconds = session_seconds
        self._reservation_seconds = reservation_seconds
        self._people: People | None = None

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return one way in for each method; which paths there are, the tree knows."""
        notes = Notes(desk.manager, self._session_seconds, self._reservation_seconds)
        self._people = People(notes.accounts, notes.sessions)
        service = _Service(desk, notes, self._people, self._answer_seconds)
        return tuple(web.route(one, "/redfish{path:(/.*)?}", service.asked) for one in METHODS)

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it is proved who is asking; the way in is open, and a log-in is judged by itself."""
        if self._people is None:
            return False
        self._people.key = token
        path = _plain(request)
        if (request.method in READ and path in OPEN) or (request.method == "POST" and path == SESSIONS):
            return True
        return self._people.who(request) is not None

    def error(self, trouble: Trouble) -> web.Response:
        """Return an error with extended information."""
        return protocol.error(trouble)


class _Service:
    """Who answers what."""

    def __init__(self, desk: Desk, notes: Notes, people: People, answer_seconds: Seconds) -> None:
        self._desk = desk
        self._notes = notes
        self._people = people
        self._tree = Tree(desk.manager, notes)
        composing = Composing(desk, self._tree, notes, people, answer_seconds)
        reception = Reception(desk, people)
        self._composing = composing
        action = f"{SYSTEMS}/([^/]+)/Actions/ComputerSystem"
        self._table: tuple[tuple[re.Pattern[str], str, Named], ...] = (
            (re.compile(f"({SESSIONS})"), "POST", reception.log_in),
            (re.compile(f"{SESSIONS}/([^/]+)"), "DELETE", reception.log_out),
            (re.compile(f"({ACCOUNTS})"), "POST", reception.create),
            (re.compile(f"{ACCOUNTS}/([^/]+)"), "PATCH", reception.change),
            (re.compile(f"{ACCOUNTS}/([^/]+)"), "DELETE", reception.remove),
            (re.compile(f"{BLOCKS}/([^/]+)"), "PATCH", self._composed(composing.reserve)),
            (re.compile(f"{SYSTEMS}/([^/]+)"), "PATCH", self._composed(composing.change)),
            (re.compile(rf"{action}\.AddResourceBlock"), "POST", self._composed(composing.add)),
            (re.compile(rf"{action}\.RemoveResourceBlock"), "POST", self._composed(composing.remove)),
            (re.compile(f"{TASKS}/([^/]+)"), "DELETE", self._composed(self._forget)),
        )

    def _composed(self, named: Named) -> Named:
        """Return what only those may ask for who may compose."""

        async def checked(request: web.Request, name: str) -> web.Response:
            self._people.check(request, Privilege.CONFIGURE_COMPONENTS)
            return await named(request, name)

        return checked

    async def asked(self, request: web.Request) -> web.Response:
        """Answer, once all that is said in the answer is on disk."""
        protocol.check_version(request)
        made = await self._answered(request)
        await self._desk.manager.store.committed()
        return made

    async def _answered(self, request: web.Request) -> web.Response:
        path = _plain(request)
        if request.method in READ:
            return await self._read(request, path)
        changes = {method: (name, named) for method, name, named in self._changes(path)}
        if request.method not in changes:
            raise self._not_allowed(request.method, path)
        name, named = changes[request.method]
        return await named(request, name)

    def _changes(self, path: str) -> Iterator[tuple[str, str, Named]]:
        """Return what can be done at a path beside reading; an action is there if its machine is."""
        if not self._tree.exists(path.partition("/Actions/")[0]):
            return
        for pattern, method, named in self._table:
            found = pattern.fullmatch(path)
            if found is not None:
                yield method, found[1], named

    def _not_allowed(self, method: str, path: str) -> Trouble:
        monitor = path.startswith(f"{TASK_MONITORS}/")
        readable = READ if path in OPEN or monitor or self._tree.find(path) is not None else ()
        allowed = (*readable, *(one for one, _, _ in self._changes(path)))
        if not allowed:
            return missing(path)
        message = protocol.Message("OperationNotAllowed", f"{method} is not for {path[:200]}.")
        headers = {"Allow": ", ".join(allowed)}
        return protocol.Refusal(HTTPStatus.METHOD_NOT_ALLOWED, message, headers=headers)

    # --- reading

    async def _read(self, request: web.Request, path: str) -> web.Response:
        asked = queries.query(request)
        if path not in OPEN:
            await self._desk.meet(request, Call(FACE, "inventory"))
        if path.startswith(f"{ACCOUNTS}/"):
            self._people.check(request, Privilege.CONFIGURE_USERS, path.removeprefix(f"{ACCOUNTS}/"))
        if path.startswith(f"{TASK_MONITORS}/"):
            return self._composing.monitor(path.removeprefix(f"{TASK_MONITORS}/"))
        plain = _open(path)
        if plain is not None:
            return plain
        document = self._tree.find(path)
        if document is None:
            raise self._not_allowed(request.method, path)
        allowed = (*READ, *(method for method, _, _ in self._changes(path)))
        headers = {"Allow": ", ".join(allowed), "Link": _described(document)}
        if not request.query and protocol.tag(document) in protocol.tags(
            request.headers.get("If-None-Match", "")
        ):
            headers |= HEADERS | {"ETag": protocol.tag(document)}
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return answer(queries.shown(document, asked, self._find(request)), headers=headers)

    def _find(self, request: web.Request) -> queries.Find:
        """Return how documents are found for whoever asks: others' accounts only by those who may change them."""
        who = self._people.who(request)
        if who is not None and who.account.may(Privilege.CONFIGURE_USERS):
            return self._tree.find
        own = f"{ACCOUNTS}/{who.account.user}" if who is not None else ""

        def found(path: str) -> Document | None:
            hidden = path.startswith(f"{ACCOUNTS}/") and path != own
            return None if hidden else self._tree.find(path)

        return found

    # --- tasks

    async def _forget(self, request: web.Request, name: str) -> web.Response:
        task = self._notes.tasks.get(name)
        if task is None:
            raise missing(request.path)
        if not task.over:
            words = "The task runs; what it composes can be taken back, the task cannot."
            raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", words)
        self._notes.tasks.forget(name)
        return protocol.nothing()


def _plain(request: web.Request) -> str:
    """Return the path without a slash at its end; posting to a collection's members is posting to it."""
    path = request.path.rstrip("/")
    return path.removesuffix("/Members") if request.method == "POST" else path


def _open(path: str) -> web.Response | None:
    """Return what is said to anybody and never changes."""
    if path == VERSIONS:
        return answer(documents.versions(), headers={"Allow": ", ".join(READ)})
    if path == SERVICE_DOCUMENT:
        return answer(documents.service_document(), headers={"Allow": ", ".join(READ)})
    if path == METADATA:
        headers = {**HEADERS, "Allow": ", ".join(READ)}
        return web.Response(text=documents.metadata(), content_type="application/xml", headers=headers)
    return None


def _described(document: Document) -> str:
    """Return where the schema of a document is published, as a header has it."""
    kind = str(document[TYPE]).removeprefix("#").partition(".")[0]
    return f"<{documents.PUBLISHED}/{kind}.json>; rel=describedby"

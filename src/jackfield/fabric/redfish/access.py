"""Calls to a Redfish service: how they prove who sends them, and how they end.

Knows users, sessions and statuses. Must not know what a call is for. One log-in at a time, for all who wait; a user or
password that was refused is not shown again for a good while, unless it has changed: services lock accounts.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Broken, Request, Unsent, Wire
from jackfield.fabric.redfish.options import Authentication, Options
from jackfield.fabric.settings import BadFabric, Secret
from jackfield.model.names import Seconds
from jackfield.ports import Clock, Gone, PortError, Refused, Retry

T = TypeVar("T")

FILE_BYTES_MAX: Final = 4096
AGAIN: Final = Seconds(10.0)
"""When credentials are read again that could not be, or a service is asked again that gave no session."""
REFUSED_AGAIN: Final = Seconds(900.0)
"""When a user or password that was refused is shown again, should it have been put right over there."""
REFUSALS_MAX: Final = 2
"""So many refusals in a row without a session are more than a hiccup."""
FRESH: Final = Seconds(5.0)
"""A session that is refused so soon after it was made would be followed by another, and another."""
UNCLEAR_AGAIN: Final = Seconds(30.0)
"""When a service is asked again that does not understand us, or itself."""
POLL: Final = Seconds(0.5)
READERS_MAX: Final = 8
"""So many things are read for an inventory at a time; the other connections are for orders."""
KEPT_MAX: Final = 20_000
"""So many answers are kept, to be asked for only if they have changed."""


# --- who asks


class Credentials(msgspec.Struct, frozen=True):
    """Who asks, and how it is proved."""

    username: Secret
    password: Secret

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What must never be shown: the name too, since one half of a key is a help."""
        return (self.username, self.password, Secret(self.basic))

    @property
    def basic(self) -> str:
        """Both, as HTTP sends them."""
        pair = f"{self.username.reveal()}:{self.password.reveal()}"
        return base64.b64encode(pair.encode()).decode()


Source = Callable[[], Credentials]
"""Gives the credentials as they are now. Raises Retry while they cannot be had."""


def credentials(found: Options, environment: Mapping[str, str]) -> Source:
    """Return where the credentials come from. Raises BadFabric naming the setting."""
    if found.authentication is Authentication.NONE:
        return lambda: Credentials(Secret(""), Secret(""))
    if found.credentials_directory:
        return _from_directory(Path(found.credentials_directory))
    return _from_environment(found.credentials_prefix, environment)


def _from_directory(folder: Path) -> Source:
    def read() -> Credentials:
        return Credentials(_file(folder / "username"), _file(folder / "password"))

    def later() -> Credentials:
        try:
            return read()
        except BadFabric as error:
            raise Retry(f"the credentials cannot be read: {error}", AGAIN) from None

    try:
        read()
    except BadFabric as error:
        raise BadFabric(f"options.credentialsDirectory: {error}") from None
    return later


def _from_environment(prefix: str, environment: Mapping[str, str]) -> Source:
    names = (f"{prefix}USERNAME", f"{prefix}PASSWORD")
    missing = [name for name in names if not environment.get(name, "").strip()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise BadFabric(f"options.credentialsPrefix: {', '.join(missing)} {verb} not set")
    found = Credentials(*(Secret(environment[name].strip()) for name in names))
    return lambda: found


def _file(path: Path) -> Secret:
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1).decode().strip("\r\n")
    except OSError as error:
        raise BadFabric(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        text = ""
    if not text or len(text) > FILE_BYTES_MAX:
        raise BadFabric(f"{path} is empty, too long, or no text")
    return Secret(text)


# --- the door


class Pass(msgspec.Struct, frozen=True):
    """What lets a call in; told from another by being another object."""

    headers: Mapping[str, str] = {}
    secrets: tuple[Secret, ...] = ()
    made_at: Seconds = Seconds(0.0)
    session: str = ""
    """Where the session is that must be ended."""

    def __repr__(self) -> str:
        return "Pass(…)"


class Door:
    """One process's way in."""

    def __init__(self, wire: Wire, how: Authentication, source: Source, clock: Clock) -> None:
        self._wire = wire
        self._how = how
        self._source = source
        self._clock = clock
        self._pass: Pass | None = None
        self.sessions = 0
        """How many were made so far: to some services, what another one reserved is somebody else's."""
        self._opening = asyncio.Lock()
        self.proved = False
        """Whether the credentials have been accepted, and not been refused since."""
        self.proving = asyncio.Lock()
        self._refused: tuple[str, int, Seconds] = ("", 0, Seconds(0.0))
        """The credentials that were refused last, how often in a row, and when."""
        self._not_before = Seconds(0.0)
        """When a service that gave no session is asked for one again."""

    def __repr__(self) -> str:
        return "Door(…)"

    async def open(self, refused: Pass | None = None) -> Pass:
        """Return what lets a call in, and is not what was refused. Raises Retry."""
        async with self._opening:  # whoever waits here finds what the one before was given
            if self._pass is None or self._pass is refused:
                self._pass = await self._another(refused)
            return self._pass

    def turned_away(self, given: Pass) -> None:
        """Take note that what was made anew was refused too: no more of it where it shows a password."""
        if self._how is Authentication.BASIC and self._pass is given:
            self._was_refused(self._source())
            self._pass = None

    async def close(self) -> None:
        """End the session; a service that does not hear of it ends it by itself."""
        ended, self._pass = self._pass, None
        if ended is not None and ended.session:
            try:
                await self._wire.call(
                    Request("DELETE", ended.session, headers=ended.headers, secrets=ended.secrets)
                )
            except PortError:
                return

    async def _another(self, refused: Pass | None) -> Pass:
        credentials = self._source()
        if self._how is Authentication.NONE:
            if refused is not None:
                raise self._wire.named(
                    Retry("the service asks who we are: say options.authentication", AGAIN)
                )
            return Pass()
        self._not_again(credentials)
        if self._how is Authentication.BASIC:
            if refused is not None:
                self._was_refused(credentials)
                self._not_again(credentials)
            proof = {"Authorization": f"Basic {credentials.basic}"}
            return Pass(proof, credentials.secrets, self._clock.now())
        if refused is not None and self._clock.now() < refused.made_at + FRESH:
            raise self._wire.named(Retry("a session was refused as soon as it was made", FRESH))
        wait = Seconds(self._not_before - self._clock.now())
        if wait > 0:
            raise self._wire.named(Retry("the service gives no session", wait))
        return await self._session(credentials)

    def was_let_in(self) -> None:
        """Forget refusals: the credentials are good."""
        self._refused = ("", 0, Seconds(0.0))
        self.proved = True

    def _was_refused(self, credentials: Credentials) -> None:
        known, times, _ = self._refused
        again = times + 1 if known == credentials.basic else 1
        self._refused = (credentials.basic, again, self._clock.now())
        self.proved = False

    def _not_again(self, credentials: Credentials) -> None:
        """Raise if these were refused, and not long ago."""
        known, times, when = self._refused
        most = REFUSALS_MAX if self._how is Authentication.BASIC else 1
        if known != credentials.basic or times < most or self._clock.now() >= when + REFUSED_AGAIN:
            return
        raise self._wire.named(
            Retry(
                "the user or password is not accepted; they are not shown again for "
                f"{REFUSED_AGAIN / 60:g} minutes, or until they change, lest the account be locked",
                AGAIN,
            )
        )

    async def _session(self, credentials: Credentials) -> Pass:
        body = redfish.encode(
            redfish.credentials(credentials.username.reveal(), credentials.password.reveal())
        )
        path = await self._sessions()
        request = Request("POST", path, body, {"Content-Type": redfish.JSON}, secrets=credentials.secrets)
        answer = await self._wire.call(request)
        token = Secret(answer.headers.get(redfish.TOKEN_HEADER.lower(), ""))
        if answer.status in {HTTPStatus.OK, HTTPStatus.CREATED} and token.reveal():
            self.was_let_in()
            self.sessions += 1
            where = redfish.location(answer.headers.get("location", ""))
            proof = {redfish.TOKEN_HEADER: token.reveal()}
            return Pass(proof, (token, *credentials.secrets), self._clock.now(), where)
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.BAD_REQUEST}:
            self._was_refused(credentials)
            self._not_again(credentials)
        again = answer.retry_after or AGAIN
        self._not_before = Seconds(self._clock.now() + again)
        says = f"the service gives no session: it answered {answer.status}"
        raise self._wire.named(Retry(says, again), credentials.secrets)

    async def _sessions(self) -> str:
        """Return where sessions are made; the way in may be read by everybody."""
        answer = await self._wire.call(Request("GET", redfish.SERVICE_ROOT))
        try:
            root = redfish.decoded(_root, answer.body)
        except redfish.BadMessage:
            return redfish.SESSIONS
        return root.links.sessions.uri if root.links and root.links.sessions else redfish.SESSIONS


_root = redfish.decoder(redfish.ServiceRoot)


# --- calls, and how they end


class Shown(msgspec.Struct, frozen=True):
    """A resource as it was sent, and the tag by which to say that it is meant as it was."""

    body: bytes
    etag: str


class Accepted(msgspec.Struct, frozen=True):
    """The service said yes; with a monitor, it has only begun."""

    body: bytes = b""
    monitor: str = ""
    after: Seconds = Seconds(0.0)


class Declined(msgspec.Struct, frozen=True):
    """The service said no, and nothing of it will come about."""

    reason: str
    doubtful: bool = False
    """Whether it may have been said of the question, and not of what was asked about."""


class Stale(msgspec.Struct, frozen=True):
    """It is not as it was when we looked: nothing was done, and it must be looked at again."""

    reason: str


class Unknown(msgspec.Struct, frozen=True):
    """It may have been done, or may yet be: nobody said."""

    reason: str


class Busy(msgspec.Struct, frozen=True):
    """Nothing was done, and it may be asked for again."""

    reason: str
    after: Seconds
    conflict: bool = False
    """Whether something that is there stands in the way, and not only the service's other work."""


Sent = Accepted | Declined | Stale | Unknown | Busy


def excuse(sent: Sent) -> tuple[str, Seconds]:
    """Return why something was not done, and how long the service wants to be left alone."""
    if isinstance(sent, Accepted):
        return "", sent.after
    return sent.reason, sent.after if isinstance(sent, Busy) else Seconds(0.0)


_BUSY: Final = (HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_MANY_REQUESTS)
_PASSING: Final = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""What says nothing of the work that is asked about."""
_STALE: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)
"""The second is what an action says whose ETags are old."""


class Client:
    """Calls to a service, each let in; read again whenever that is safe."""

    def __init__(self, wire: Wire, door: Door, *, plain_errors: bool = False) -> None:
        self.wire = wire
        self.door = door
        self._plain = plain_errors
        self._kept: dict[str, Shown] = {}
        self._reading = asyncio.Semaphore(READERS_MAX)

    async def read(self, path: str, *, kept: bool = False) -> Shown:
        """Return what the service shows; with `kept` it may say that nothing changed. Raises Retry or Gone."""
        known = self._kept.get(path) if kept else None
        headers = {"If-None-Match": known.etag} if known is not None else {}
        # Whoever reads for an order does not stand in line behind a whole inventory.
        async with self._reading if kept else nullcontext():
            answer, secrets = await self._let_in(Request("GET", path, headers=headers))
        if answer.status == HTTPStatus.NOT_MODIFIED and known is not None:
            return known
        if answer.status != HTTPStatus.OK:
            raise self.wire.named(self._failure(answer, path), secrets)
        shown = Shown(answer.body, redfish.tag(answer.headers.get("etag", "")))
        if kept and shown.etag:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[path] = shown
        return shown

    def understood(self, reader: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
        """Return what was sent. Raises Retry saying what is wrong with it."""
        try:
            return redfish.decoded(reader, body)
        except redfish.BadMessage as error:
            unclear = Retry(f"the answer is not understood: {redfish.short(str(error))}", UNCLEAR_AGAIN)
        raise self.wire.named(unclear)

    async def change(self, request: Request) -> Sent:
        """Have something done, and return what became of it as far as the answer says."""
        try:
            answer, secrets = await self._let_in(request)
        except Unsent as error:
            return Busy(str(error), error.after)
        except Retry as error:
            return Unknown(str(error))
        return self._judged(answer, secrets)

    async def watch(self, monitor: str) -> Accepted | Declined | None:
        """Return what became of what takes its time; None while it goes on, or cannot be asked about."""
        try:
            answer, secrets = await self._let_in(Request("GET", monitor))
        except Retry:
            return None
        if answer.status == HTTPStatus.ACCEPTED:
            return Accepted(answer.body, monitor, answer.retry_after)
        if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            return Accepted()  # monitors go when they are done; what came of it can be looked at
        if answer.status in _PASSING:
            return None
        judged = self._judged(answer, secrets)
        if isinstance(judged, Busy | Stale):
            return Declined(judged.reason)  # the end of the work, not of the question
        if isinstance(judged, Unknown):
            return Declined(judged.reason, doubtful=True)
        return self._task(judged, monitor, secrets) if isinstance(judged, Accepted) else judged

    def _task(self, judged: Accepted, monitor: str, secrets: tuple[Secret, ...]) -> Accepted | Declined:
        """Return what a task says that is shown where its monitor was expected."""
        try:
            task = redfish.decoded(_task, judged.body)
        except redfish.BadMessage:
            return Accepted(judged.body)
        if task.task_state in redfish.ENDED_ILL:
            words = redfish.words(task.messages or ()) or f"its task ended as {task.task_state}"
            return Declined(str(self.wire.named(Retry(words), secrets)))
        if task.task_state and task.task_state not in redfish.ENDED:
            return Accepted(judged.body, monitor, judged.after)
        return Accepted(judged.body)

    # --- the wire

    async def _let_in(self, request: Request) -> tuple[Answer, tuple[Secret, ...]]:
        """Send, and alone while nobody knows whether the credentials are right: each wrong one counts."""
        if self.door.proved:
            return await self._tried(request)
        async with self.door.proving:
            return await self._tried(request)

    async def _tried(self, request: Request) -> tuple[Answer, tuple[Secret, ...]]:
        """Send with a pass; once more with another where it is not accepted. Raises Unsent where nothing was sent."""
        try:
            given, answer = await self._sent(request, None)
        except Broken:
            if request.method != "GET":
                raise
            given, answer = await self._sent(
                request, None
            )  # services drop connections that were idle for long
        if answer.status == HTTPStatus.UNAUTHORIZED:
            given, answer = await self._sent(request, given)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            self.door.was_let_in()
            return answer, given.secrets
        self.door.turned_away(given)
        raise self.wire.named(Unsent("the service does not let us in (401)", AGAIN), given.secrets)

    async def _sent(self, request: Request, refused: Pass | None) -> tuple[Pass, Answer]:
        try:
            given = await self.door.open(refused)
        except Retry as error:
            raise Unsent(str(error), error.after) from None
        headers = {**request.headers, **given.headers}
        sent = msgspec.structs.replace(request, headers=headers, secrets=given.secrets)
        return given, await self.wire.call(sent)

    def _words(self, answer: Answer) -> str:
        words = redfish.error(answer.body)
        if not words and self._plain:
            words = redfish.short(answer.body[: redfish.WORDS_MAX * 4].decode(errors="replace"))
        return words

    def _failure(self, answer: Answer, path: str) -> PortError:
        words = self._words(answer)
        says = f"{words} ({answer.status})" if words else f"{path} was answered with status {answer.status}"
        if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            return Gone(says)
        if answer.status == HTTPStatus.FORBIDDEN:
            return Refused(f"{says}: the user may not read {path}")
        busy = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _BUSY
        return Retry(says, answer.retry_after or (POLL if busy else UNCLEAR_AGAIN))

    def _judged(self, answer: Answer, secrets: tuple[Secret, ...]) -> Sent:
        words = self._words(answer)
        plain = f"{words} ({answer.status})" if words else f"it answered with status {answer.status}"
        says = str(self.wire.named(Retry(plain), secrets))
        if answer.status == HTTPStatus.ACCEPTED:
            return Accepted(answer.body, self._monitor(answer), answer.retry_after)
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return Accepted(answer.body)
        if answer.status in _STALE:
            return Stale(says)
        if answer.status in _BUSY:
            return Busy(says, answer.retry_after, conflict=answer.status == HTTPStatus.CONFLICT)
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and answer.retry_after:
            return Busy(says, answer.retry_after)
        # Only the service itself can say no to an order: a proxy's page or a wrong address says nothing about it.
        client_error = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
        if (client_error and words) or redfish.failed(answer.body):
            return Declined(says)
        return Unknown(says)

    def _monitor(self, answer: Answer) -> str:
        """Return where to ask how far the work is; empty if the service does not say."""
        where = redfish.location(answer.headers.get("location", ""))
        if where:
            return where
        try:
            task = redfish.decoded(_task, answer.body)
        except redfish.BadMessage:
            return ""
        return task.task_monitor or task.uri


_task = redfish.decoder(redfish.Task)

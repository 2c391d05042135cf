"""What every adapter needs of HTTP: one session per manager, time-outs, limits, and errors that hold no secret.

Knows HTTP, and what a connection may do to a call. Must not know any manager, or what a call is for. The library
repeats no request that may have an effect twice; redirects are not followed and proxies of the environment not used,
since either would show credentials to somebody else.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import takewhile
from typing import Final

import aiohttp
import msgspec

import jackfield
from jackfield.fabric.settings import FabricSettings, Secret, tls
from jackfield.line import HangsUp, unreached
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Retry

CONNECTIONS_MAX: Final = 16
"""Calls to one manager at a time."""
ANSWER_BYTES_MAX: Final = 64 * 2**20
ANSWER_PARTS_MAX: Final = 1_000_000
"""Objects and lists of an answer: read, the smallest take fifty times as much memory as on the wire."""
WORDS_MAX: Final = 1000
"""So much is passed on of what somebody else said; errors end up in logs, on objects and on screens."""
PROOFS: Final = ("authorization", "x-auth-token", "cookie")
"""Headers that are secrets, also if nobody says so."""
SECRET_LETTERS_MIN: Final = 8
"""What is shorter may be a word of the protocol, and is only struck out of what is shown."""
SECRETS_MAX: Final = 32
"""So many of the secrets that were sent last are struck out wherever they come back."""
QUOTED: Final = re.compile(r"\n|\s*b['\"]")
"""Where the library's words on bad HTTP end, and what was received begins."""
CERTIFICATE_AGAIN: Final = Seconds(10.0)
"""When a manager is asked again that could not be recognised."""
RETRY_AFTER_MAX: Final = Seconds(60.0)
"""A manager that wants to be left alone for longer is asked all the same: it may have been restarted."""
REACH: Final = "see whether the manager runs, whether the fabric's url is right, and what lies between"
RECOGNISE: Final = (
    "see whether the fabric's url is right (https:// or http://), and whether its caFile vouches for it"
)


class Unsent(Retry):
    """Nothing of the call reached the manager: it may be sent again whatever it is."""


class Broken(Retry):
    """The connection broke before the answer came: what changes nothing may be asked again at once."""


class Request(msgspec.Struct, frozen=True):
    """What is sent; the headers may hold a secret, so it is not shown."""

    method: str
    path: str
    """With its query, as it stands on the wire."""
    body: bytes = b""
    headers: Mapping[str, str] = {}
    timeout: Seconds = Seconds(0.0)
    """How long the answer may take; as the settings say where it is 0."""
    secrets: tuple[Secret, ...] = ()
    """What must be in no error, should the other side repeat what it was sent."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path.partition('?')[0]})"


class Answer(msgspec.Struct, frozen=True):
    """What came back, whatever its status; the body may hold a secret, so it is not shown."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    """With names in lower case."""

    def __repr__(self) -> str:
        return f"Answer({self.status})"

    @property
    def retry_after(self) -> Seconds:
        """How long the manager wants to be left alone; 0 if it does not say."""
        text = self.headers.get("retry-after", "")
        named = float(text) if text.isascii() and text.isdigit() and len(text) < len("1000000000") else 0.0
        return min(Seconds(named), RETRY_AFTER_MAX) if math.isfinite(named) else Seconds(0.0)


class Wire:
    """One process's connections to a manager; opened by the first call, closed for a while by `close`."""

    def __init__(self, settings: FabricSettings, accept: str) -> None:
        self.base = settings.url.rstrip("/")
        self._settings = settings
        self._accept = accept
        self._tls = tls(settings)
        self._session: aiohttp.ClientSession | None = None
        self._secrets: dict[str, Secret] = {}

    def __repr__(self) -> str:
        return f"Wire({self.base!r})"

    async def close(self) -> None:
        """Hang up."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, request: Request) -> Answer:
        """Send it once and return the answer. Raises Retry naming the manager; Unsent if it was never sent."""
        self._remember(request)
        patience = request.timeout or self._settings.call_timeout_seconds
        failure: PortError
        try:
            return await self._answer(request, patience)
        except TimeoutError:
            failure = Retry(too_late(patience))
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            failure = Unsent(
                f"the manager cannot be recognised: {unreached(error)}; {RECOGNISE}", CERTIFICATE_AGAIN
            )
        except aiohttp.ClientConnectorError as error:
            failure = Unsent(f"{unreached(error)}; {REACH}")
        except (aiohttp.ServerDisconnectedError, OSError) as error:
            failure = Broken(_reason(error))
        except (aiohttp.ClientError, ValueError) as error:
            failure = Retry(_reason(error))
        # Raised out here, unchained: the library's errors hold the request's headers, and with them the token.
        raise self.named(failure, request.secrets)

    async def _answer(self, request: Request, patience: Seconds) -> Answer:
        async with self._opened().request(
            request.method,
            f"{self.base}{request.path}",
            data=request.body or None,
            headers=request.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=patience),
        ) as response:
            headers = {name.lower(): text for name, text in response.headers.items()}
            body = await self._read(response)
            if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                body = _struck(body, tuple(self._secrets.values()))
            return Answer(response.status, body, headers)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > ANSWER_BYTES_MAX:
                raise self.named(Retry(f"the answer is larger than {ANSWER_BYTES_MAX >> 20} MiB"))
        body = b"".join(chunks)
        if body.count(b"{") + body.count(b"[") > ANSWER_PARTS_MAX:
            raise self.named(Retry(f"the answer has more than {ANSWER_PARTS_MAX:,} parts"))
        return body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = (
                aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
                if self._tls is None
                else aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=self._tls)
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"jackfield/{jackfield.__version__}", "Accept": self._accept},
                response_class=HangsUp,
            )
        return self._session

    def named(self, failure: PortError, secrets: Sequence[Secret] = ()) -> PortError:
        """Return the failure with the manager's address, which is where one looks first, and without secrets."""
        failure.args = (f"{self.base}: {self.words(str(failure), secrets)}",)
        return failure

    def words(self, text: str, secrets: Sequence[Secret] = ()) -> str:
        """Return what somebody else said as it can be shown: without secrets, on one line, of bounded length."""
        return legible(without(text, (*secrets, *self._secrets.values())))

    # --- secrets

    def _remember(self, request: Request) -> None:
        for secret in (*request.secrets, *_proofs(request)):
            self._secrets.pop(secret.reveal(), None)
            self._secrets[secret.reveal()] = secret
        while len(self._secrets) > SECRETS_MAX:
            del self._secrets[next(iter(self._secrets))]


def too_late(patience: Seconds) -> str:
    """Return the words for a manager that does not answer in time."""
    return (
        f"no answer within {patience:g} s; see whether the manager is overloaded or hangs, and what lies between; "
        "if it only needs longer, raise the fabric's callTimeoutSeconds"
    )


def _proofs(request: Request) -> tuple[Secret, ...]:
    """Return what a request proves its right by, without the word before it."""
    shown = (text for name, text in request.headers.items() if name.lower() in PROOFS)
    return tuple(Secret(text.rpartition(" ")[2]) for text in shown)


def _struck(body: bytes, secrets: Sequence[Secret]) -> bytes:
    """Return an error without secrets, before anybody can quote half of one. What is no error is left as it is."""
    for secret in secrets:
        for spelt in _spellings(secret):
            body = body.replace(spelt, b"...")
    return body


def _spellings(secret: Secret) -> Iterator[bytes]:
    """Return a secret as text and as JSON, of which some escape the slash too."""
    if len(secret.reveal()) >= SECRET_LETTERS_MIN:
        yield secret.reveal().encode()
        escaped = json.dumps(secret.reveal())[1:-1]
        yield escaped.encode()
        yield escaped.replace("/", "\\/").encode()


def _reason(error: Exception) -> str:
    """Return what went wrong, without what was received: that may hold a token which nobody has used yet."""
    match error:
        case aiohttp.ClientResponseError():
            words = QUOTED.split(error.message.strip(), 1)[0].rstrip(":")
            return f"the answer is not HTTP: {words}; is the fabric's url that of the manager?"
        case aiohttp.ClientPayloadError():
            return "the answer broke off, or is spelt as no answer is"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed instead of an answer; if it stays so, see the manager's own log"
        case OSError():
            return error.strerror or type(error).__name__
        case _:
            return f"the call failed: {type(error).__name__}"


def without(text: str, secrets: Sequence[Secret]) -> str:
    """Return the text with every secret struck out, also one that was cut off in the middle."""
    for secret in secrets:
        if secret.reveal():
            text = _without_beginnings(text.replace(secret.reveal(), "…"), secret.reveal())
    return text


def _without_beginnings(text: str, secret: str) -> str:
    """Return the text without what begins as the secret does, as far as it goes on like that."""
    head = secret[:SECRET_LETTERS_MIN]
    at = text.find(head) if len(head) == SECRET_LETTERS_MIN else -1
    while at >= 0:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(text[at:], secret, strict=False))
        text = f"{text[:at]}…{text[at + sum(1 for _ in alike) :]}"
        at = text.find(head, at)
    return text


def legible(text: str) -> str:
    """Return the text on one line, without what does something to a terminal, and no longer than it may be."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: WORDS_MAX * 4])
    plain = " ".join(printable.split())
    return plain if len(plain) <= WORDS_MAX else f"{plain[:WORDS_MAX]}…"

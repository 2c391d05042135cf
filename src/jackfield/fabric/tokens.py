"""Tokens of an OpenID Connect server such as Keycloak: asked for when needed, renewed in time, kept in memory only.

Knows credentials, and how long a token is good. Must not know what it opens. Whatever goes wrong is told without the
credentials, the token, and the server's sentences, which may repeat them.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from jackfield.codec import fsas
from jackfield.fabric.http import Request, Wire
from jackfield.fabric.settings import BadFabric, Secret
from jackfield.model.names import Seconds
from jackfield.ports import Clock, Retry

LEEWAY: Final = Seconds(30.0)
"""A token is renewed so long before it ends."""
LIFETIME: Final = Seconds(60.0)
"""How long a token is used whose end nobody names."""
AGAIN: Final = Seconds(10.0)
"""When a server is asked again that does not accept the credentials, or files are read again that could not be."""
FILE_BYTES_MAX: Final = 4096


class GrantType(StrEnum):
    """What a token is asked for with."""

    PASSWORD = "password"  # noqa: S105 - OAuth's word for the way, not a password
    CLIENT_CREDENTIALS = "client_credentials"


FIELDS: Final[Mapping[GrantType, tuple[str, ...]]] = {
    GrantType.PASSWORD: ("realm", "client_id", "client_secret", "username", "password"),
    GrantType.CLIENT_CREDENTIALS: ("realm", "client_id", "client_secret"),
}
"""What each way needs to know: names of files, and in capitals the ends of names of variables."""


class Credentials(msgspec.Struct, frozen=True):
    """Who asks, and how it is proved."""

    grant: GrantType
    fields: Mapping[str, Secret]

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What must never be shown: names too, since one half of a key is a help."""
        return tuple(one for name, one in self.fields.items() if name != "realm")

    def form(self) -> dict[str, str]:
        """Return what is sent."""
        sent = {name: one.reveal() for name, one in self.fields.items() if name != "realm"}
        return {**sent, "scope": "openid", "response_type": "id_token token", "grant_type": self.grant}


Source = Callable[[], Credentials]
"""Gives the credentials as they are now. Raises Retry while they cannot be had."""


def from_directory(directory: str, grant: GrantType) -> Source:
    """Return where the credentials come from: a Secret mounted as files, read anew each time. Raises BadFabric."""

    def read() -> Credentials:
        return Credentials(grant, {name: _file(Path(directory) / name) for name in FIELDS[grant]})

    read()
    return lambda: _later(read)


def from_environment(prefix: str, grant: GrantType, environment: Mapping[str, str]) -> Source:
    """Return where the credentials come from: variables that begin alike. Raises BadFabric."""
    names = {name: f"{prefix}{name.upper()}" for name in FIELDS[grant]}
    missing = [variable for variable in names.values() if not environment.get(variable, "").strip()]
    if missing:
        raise BadFabric(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set")
    found = Credentials(
        grant, {name: Secret(environment[variable].strip()) for name, variable in names.items()}
    )
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


def _later(read: Source) -> Credentials:
    try:
        return read()
    except BadFabric as error:
        raise Retry(f"the credentials cannot be read: {error}", AGAIN) from None


class Token(msgspec.Struct, frozen=True):
    """A token, and until when it is used."""

    secret: Secret
    renew_at: Seconds


class Tokens:
    """One process's tokens for one manager: one at a time, one question for all who wait."""

    def __init__(self, wire: Wire, credentials: Source, clock: Clock) -> None:
        self._wire = wire
        self._credentials = credentials
        self._clock = clock
        self._token: Token | None = None
        self._asking = asyncio.Lock()

    def __repr__(self) -> str:
        return "Tokens(…)"

    async def current(self) -> Secret:
        """Return a token that is good for a while. Raises Retry."""
        return await self._other_than(None)

    async def other_than(self, refused: Secret) -> Secret:
        """Return a token that is not the one which was refused. Raises Retry."""
        return await self._other_than(refused)

    async def _other_than(self, refused: Secret | None) -> Secret:
        async with self._asking:  # whoever waits here finds what the one before was given
            token = self._token
            if token is None or token.secret is refused or self._clock.now() >= token.renew_at:
                token = self._token = await self._asked()
            return token.secret

    async def _asked(self) -> Token:
        now, credentials = self._clock.now(), self._credentials()
        request = Request(
            "POST",
            fsas.token_path(credentials.fields["realm"].reveal()),
            fsas.token_form(credentials.form()),
            {"Content-Type": fsas.FORM},
            secrets=credentials.secrets,
        )
        answer = await self._wire.call(request)
        if answer.status != HTTPStatus.OK:
            word = fsas.grant_error(answer.body) if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR else ""
            says = f"{answer.status}, {word}" if word else str(answer.status)
            failure = Retry(f"id_manager gives no token: it answered {says}", answer.retry_after or AGAIN)
            raise self._wire.named(failure, credentials.secrets)
        try:
            grant = fsas.grant(answer.body)
        except fsas.BadMessage as error:
            raise self._wire.named(Retry(f"id_manager gives no token: {error}", AGAIN)) from None
        return _token(grant, now)


def _token(grant: fsas.Grant, now: Seconds) -> Token:
    """Return the token, renewed early: by the span it was given for, since clocks differ, else by what it says."""
    span = grant.expires_in
    if span is None:
        exp = fsas.expiry(grant.access_token)
        span = exp - now if exp is not None else LIFETIME
    span = min(max(span, 0.0), 30 * 86400.0)
    return Token(Secret(grant.access_token), Seconds(now + span - min(LEEWAY, span / 4.0)))

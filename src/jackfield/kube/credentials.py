"""Who we are to an API server: fixed proofs, files that rotate, and plugins that are asked.

Knows tokens, certificates and the exec protocol (client.authentication.k8s.io). Must not know HTTP, nor show a secret
to anybody: no error and no representation holds one.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

REREAD_SECONDS: Final = 60.0
"""How long a file's content is believed; a service account's token is renewed long before it expires."""
PLUGIN_SECONDS_MAX: Final = 60.0
"""How long a plugin may take; some open a browser, but nobody sits in front of ours."""
EXPIRY_MARGIN_SECONDS: Final = 10.0
"""What is about to expire is not used any more."""
COMPLAINT_CHARACTERS_MAX: Final = 400


class BadCredentials(Exception):  # noqa: N818 - named for what was found
    """There is no way to prove who we are; says why and what to do, and shows no secret."""


class Proof(msgspec.Struct, frozen=True):
    """What is shown to the server; any part may be empty."""

    token: str = ""
    certificate: str = ""
    key: str = ""

    def __repr__(self) -> str:
        """Say which parts there are, and not what is in them."""
        return f"Proof({', '.join(name for name in self.__struct_fields__ if getattr(self, name))})"


class Credentials(Protocol):
    """Where proofs come from."""

    async def proof(self) -> Proof:
        """Return what to show now. Raises BadCredentials."""

    def doubt(self) -> None:
        """Hear that the server did not believe it: the next proof is fetched anew."""


class Fixed:
    """A proof that never changes."""

    def __init__(self, proof: Proof = Proof()) -> None:
        self._proof = proof

    async def proof(self) -> Proof:
        """Return it."""
        return self._proof

    def doubt(self) -> None:
        """There is nothing newer."""


class Files:
    """A proof in files that somebody renews; what is not in a file stays as given."""

    def __init__(self, files: Mapping[str, Path], given: Proof = Proof()) -> None:
        self._files = files
        self._proof = given
        self._until = float("-inf")

    async def proof(self) -> Proof:
        """Return what the files say, or said less than a minute ago."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            read = {part: content(path) for part, path in self._files.items()}
            if "token" in read:
                read["token"] = read["token"].strip()
            self._proof = msgspec.structs.replace(self._proof, **read)
            self._until = now + REREAD_SECONDS
        return self._proof

    def doubt(self) -> None:
        """Read the files again."""
        self._until = float("-inf")


def content(path: Path) -> str:
    """Return a text file of somebody else's; raises BadCredentials."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadCredentials(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadCredentials(f"{path} is no text; certificates and keys must be in PEM format") from None


# --- plugins


class Command(msgspec.Struct, frozen=True):
    """How a plugin is asked."""

    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    info: str
    """What it is told, as JSON: which version is spoken, and perhaps which cluster."""
    hint: str = ""
    """How to install it, in its author's words."""

    def __repr__(self) -> str:
        """Name the program; arguments and environment may hold secrets."""
        return f"Command({self.program!r})"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class Plugin:
    """A program that is asked for a proof when there is none, or none that is still good."""

    def __init__(
        self,
        command: Command,
        now: Callable[[], float] = time.time,  # noqa: TID251 - proofs expire by the time of day, in no simulator
        seconds_max: float = PLUGIN_SECONDS_MAX,
    ) -> None:
        self._command = command
        self._now = now
        self._seconds_max = seconds_max
        self._proof = Proof()
        self._until = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def proof(self) -> Proof:
        """Return what the program answered, until that expires."""
        async with self._one_at_a_time:
            if self._now() >= self._until:
                answer = self._read(await self._ask())
                self._proof = Proof(answer.token, answer.client_certificate_data, answer.client_key_data)
                self._until = self._expiry(answer.expiration_timestamp)
            return self._proof

    def doubt(self) -> None:
        """Ask the program again."""
        self._until = float("-inf")

    async def _ask(self) -> bytes:
        command = self._command
        try:
            process = await asyncio.create_subprocess_exec(
                command.program,
                *command.arguments,
                env={**command.environment, "KUBERNETES_EXEC_INFO": command.info},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise self._bad(f"cannot be run: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._seconds_max):
                said, complaint = await process.communicate()
        except TimeoutError:
            raise self._bad(f"did not answer within {self._seconds_max:g} seconds") from None
        finally:
            await _end(process)
        if process.returncode:
            words = complaint.decode(errors="replace").strip()[-COMPLAINT_CHARACTERS_MAX:]
            raise self._bad(f"failed with exit code {process.returncode}: {words or 'it does not say why'}")
        return said

    def _read(self, said: bytes) -> _Status:
        try:
            answer = msgspec.json.decode(said, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._bad("did not answer with an ExecCredential in JSON") from None
        wanted = self._command.api_version
        if answer.kind != "ExecCredential" or answer.api_version != wanted:
            raise self._bad(f"did not answer with an ExecCredential of {wanted}")
        status = answer.status or _Status()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._bad("answered with a certificate or a key, but not with both")
        if not (status.token or status.client_certificate_data):
            raise self._bad("answered with neither a token nor a certificate")
        return status

    def _expiry(self, text: str) -> float:
        """Without an expiry a proof is good until the server says otherwise."""
        if not text:
            return float("inf")
        try:
            return datetime.fromisoformat(text).timestamp() - EXPIRY_MARGIN_SECONDS
        except ValueError:
            raise self._bad("answered with an expirationTimestamp that is no time") from None

    def _bad(self, what: str) -> BadCredentials:
        hint = f"\n{self._command.hint.strip()}" if self._command.hint.strip() else ""
        return BadCredentials(f"the credential plugin {self._command.program!r} {what}{hint}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End what did not answer, and whatever it started."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()

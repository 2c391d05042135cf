"""The folder in which a manager keeps what must survive it: database, token, inventory, and where it listens.

Knows files and their modes. Must not know what is in the database.
"""

import os
import secrets
import ssl
from pathlib import Path
from typing import Final

from jackfield.fabric.settings import Secret

TOKEN_LENGTH_MIN: Final = 16


class BadFolder(Exception):  # noqa: N818 - a finding about files
    """Files that cannot be used; the message names them and says what to do."""


class Folder:
    """Where each file of a manager is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "manager.db"
        self.token = path / "token"
        self.inventory = path / "inventory.yaml"
        self.url = path / "url"
        self.lock = path / "commands.lock"

    def make(self) -> None:
        """Make it, for nobody else's eyes, unless it is there."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadFolder(f"{self.path}: cannot be made: {error.strerror}") from error

    def secret(self) -> Secret:
        """Return the token; the first time it is made."""
        if not self.token.exists():
            self._write_new(self.token, secrets.token_urlsafe(32))
        return self.read_secret()

    def read_secret(self) -> Secret:
        """Return the token that is there."""
        try:
            text = self.token.read_text().strip()
            mode = self.token.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            what = "the manager makes one when it is first served; --state or --token-file says where it is"
            raise BadFolder(f"{self.token}: there is no token that can be read: {why}; {what}") from None
        if mode & 0o077:
            raise BadFolder(f"{self.token}: others can read it; chmod 600 it")
        if len(text) < TOKEN_LENGTH_MIN or not text.isascii() or not text.isprintable() or " " in text:
            raise BadFolder(
                f"{self.token}: is no token of {TOKEN_LENGTH_MIN} or more characters without blanks"
            )
        return Secret(text)

    def listens_at(self, url: str) -> None:
        """Write down where the manager is, for commands on the same machine."""
        new = self.url.with_suffix(".new")
        new.write_text(f"{url}\n")
        new.replace(self.url)

    def _write_new(self, path: Path, text: str) -> None:
        """Write a file that nobody else ever sees half done, or at all."""
        new = path.with_suffix(f".{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
            self._sync()
        except OSError as error:
            raise BadFolder(f"{path}: cannot be written: {error.strerror}") from error

    def _sync(self) -> None:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return what the server proves itself by. Raises BadFolder."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadFolder(f"{certificate}, {key}: cannot be used: {error}") from error
    return context

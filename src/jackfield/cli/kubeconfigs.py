"""Kubeconfigs that commands of ours write, and take away again.

Knows files. Must not know what runs behind the address.
"""

import base64
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import yaml

from jackfield.codec import Raw

LISTENING_SECONDS: Final = 0.5


def text(context: str, server: str, authority: bytes, token: str) -> str:
    """Return a kubeconfig with one way in."""
    certificate = base64.b64encode(authority).decode()
    whole: Raw = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": context, "cluster": {"server": server, "certificate-authority-data": certificate}}
        ],
        "users": [{"name": context, "user": {"token": token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }
    written: str = yaml.safe_dump(whole, sort_keys=False)
    return written


def not_ours(file: Path, context: str) -> str:
    """Return why a file must not be written; nothing if it may."""
    if not file.parent.is_dir():
        return f"{file.parent} is no folder"
    if file.exists():
        config = _read(file)
        if config.get("current-context") != context:
            return f"{file} exists and is not a kubeconfig of this command; it was left as it is"
        if _is_served(config):
            return f"{file} leads to a cluster that still runs; end that one first, or name another file"
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent):
            return ""
    except OSError as error:
        return f"{file.parent} cannot be written to: {error.strerror}"


def _read(file: Path) -> Raw:
    try:
        return msgspec.yaml.decode(file.read_bytes(), type=dict)
    except (OSError, msgspec.DecodeError):
        return {}


def _is_served(config: Raw) -> bool:
    """Whether somebody listens where a kubeconfig leads to."""
    try:
        place = urlsplit(config["clusters"][0]["cluster"]["server"])
        with socket.create_connection((place.hostname or "", place.port or 443), LISTENING_SECONDS):
            return True
    except (OSError, LookupError, TypeError, ValueError):
        return False


@contextmanager
def appearing(file: Path | None, content: bytes) -> Iterator[Path]:
    """Have the file there as a whole, so that scripts can wait for it, until the end; none means one of our own."""
    with ExitStack() as stack:
        if file is None:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jackfield-"))) / "kubeconfig"
        number, new = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # for our eyes only
        with os.fdopen(number, "wb") as writing:
            writing.write(content)
        Path(new).rename(file)
        try:
            yield file
        finally:
            # Whoever came after us may have written theirs in the same place.
            if file.exists() and file.read_bytes() == content:
                file.unlink()

"""Kubeconfigs that commands of ours write, and take away again.

Knows files. Must not know what runs behind the address.
"""

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import yaml

from jackfield.codec import Raw


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
    if not file.exists():
        return ""
    try:
        config: Raw = msgspec.yaml.decode(file.read_bytes(), type=dict)
    except (OSError, msgspec.DecodeError):
        config = {}
    ours = config.get("current-context") == context
    return "" if ours else f"{file} exists and is not a kubeconfig of this command; it was left as it is"


@contextmanager
def appearing(file: Path | None, content: bytes) -> Iterator[Path]:
    """Have the file there as a whole, so that scripts can wait for it, until the end; none means one of our own."""
    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:
        path = file if file is not None else Path(folder) / "kubeconfig"
        new = path.with_name(f"{path.name}.new")
        with suppress(FileNotFoundError):
            new.unlink()
        new.touch(mode=0o600)
        new.write_bytes(content)
        new.rename(path)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

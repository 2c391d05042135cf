"""Small files as the kernel writes them: one text, one number, one link.

Knows that any of them may be missing, unreadable, or gone while it is read: each then says nothing. Must not know what
stands in them.
"""

import os
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 1 << 20
"""No file that is read whole here is longer."""


def read(path: str | Path, size: int = BYTES_MAX) -> bytes:
    """Return what stands in a file, its first bytes at most; nothing if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        parts = []
        while size > 0 and (part := os.read(descriptor, size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def text(path: str | Path) -> str:
    """Return what stands in a file, without the space around it."""
    return read(path).decode(errors="replace").strip("\x00 \t\r\n")


def number(path: str | Path, default: int) -> int:
    """Return the number that stands in a file, decimal or hexadecimal."""
    return whole(text(path), default)


def whole(words: str, default: int) -> int:
    """Return the number that is written there."""
    try:
        return int(words, 0)
    except ValueError:
        return default


def link(path: str | Path) -> str:
    """Return the name of what a link leads to."""
    try:
        return os.readlink(path).rpartition("/")[2]  # noqa: PTH115 - hundreds are read at a time
    except OSError:
        return ""


def names(path: str | Path) -> tuple[str, ...]:
    """Return what is in a folder, in order."""
    try:
        return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - likewise
    except OSError:
        return ()


def fields(words: str, separator: str) -> dict[str, str]:
    """Return a file of lines such as `NAME=VALUE`."""
    pairs = (line.partition(separator) for line in words.splitlines())
    return {name.strip(): value.strip() for name, found, value in pairs if found}

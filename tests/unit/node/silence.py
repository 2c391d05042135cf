"""A kernel that says nothing, and paper that keeps what is written on it."""

import socket


def nobody_speaks() -> socket.socket:
    raise OSError(1, "Operation not permitted")


class Paper:
    """Keeps every line; a `cli.log.Paper`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str, /) -> None:
        self.lines.append(text)

    def flush(self) -> None: ...

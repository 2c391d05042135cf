"""Raw connections to a victim, and what is left of it afterwards.

Knows bytes on sockets. Must not know what the victim makes of them.
"""

import base64
import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from hostile.victim import TOKEN

TESTS = Path(__file__).parents[1]
PATIENCE_SECONDS = 15.0
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"


class _Up(msgspec.Struct):
    url: str
    authority: str


class Victim:
    """A server in another process."""

    def __init__(self, process: subprocess.Popen[bytes], up: _Up, errors: IO[bytes]) -> None:
        self.process = process
        self.port = int(up.url.rpartition(":")[2])
        self._errors = errors
        self.trust = ssl.create_default_context(cadata=base64.b64decode(up.authority).decode())

    def plain(self) -> socket.socket:
        """Return a connection on which no TLS was spoken yet."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)

    def connect(self) -> ssl.SSLSocket:
        return self.trust.wrap_socket(self.plain(), server_hostname="127.0.0.1")

    def say(self, *parts: bytes) -> bytes:
        """Send something, and return all that is answered until it hangs up or falls silent."""
        with self.connect() as one:
            one.settimeout(5.0)
            with contextlib.suppress(OSError):
                for part in parts:
                    one.sendall(part)
            return heard(one)

    def ask(self, method: str, path: str, body: bytes = b"", headers: str = "") -> tuple[int, bytes]:
        """Call it as a good client would; return the code and the body."""
        answer = self.say(request(method, path, body, f"{AUTHORIZED}{headers}"))
        return code(answer), answer.partition(b"\r\n\r\n")[2]

    def is_well(self) -> bool:
        """Return whether it still does what it is for, at once."""
        began = time.monotonic()
        status, body = self.ask("GET", "/api/v1/namespaces/default")
        return status == 200 and b'"default"' in body and time.monotonic() - began < 5.0

    def megabytes(self) -> int:
        """Return what it holds of the machine's memory now, as the kernel counts it."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) // 1024

    def complaints(self) -> str:
        """Return what it wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")


@contextlib.contextmanager
def victim(folder: Path) -> Iterator[Victim]:
    """Start one; end it, and see that it could still be ended."""
    with (folder / "errors.txt").open("w+b") as errors:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "hostile.victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield Victim(process, msgspec.json.decode(line, type=_Up), errors)
            process.stdin.close()
            assert process.wait(20.0) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with contextlib.suppress(OSError):
                process.stdin.close()


def request(method: str, path: str, body: bytes = b"", headers: str = AUTHORIZED) -> bytes:
    """Return a call as bytes; the connection is closed after it."""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}{headers}\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def heard(one: socket.socket) -> bytes:
    """Return all that comes until the other side hangs up or falls silent."""
    parts = []
    with contextlib.suppress(OSError):
        while part := one.recv(65536):
            parts.append(part)
    return b"".join(parts)


def code(answer: bytes) -> int:
    """Return the status of an answer; 0 if there is none."""
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer)
    return int(found[1]) if found else 0


def seconds_until_hung_up(one: socket.socket, drip: bytes = b"") -> float:
    """Return how long it takes until the other side hangs up, while something drips in."""
    began = time.monotonic()
    one.settimeout(0.1)
    while time.monotonic() - began < PATIENCE_SECONDS:
        try:
            if drip:
                one.sendall(drip)
            if not one.recv(65536):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began

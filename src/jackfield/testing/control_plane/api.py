"""The least that speaks to an HTTPS server on loopback: enough to see whether it is ready, and to make nodes.

Knows requests and answers. Must not know what they are about. The client for everything else is `jackfield.kube`.
"""

import http.client
import ssl
from typing import Self

import msgspec

from jackfield.codec import Raw
from jackfield.testing.control_plane.errors import ControlPlaneError

SECONDS_MAX = 10.0
SUCCESS = range(200, 300)


class Api:
    """One connection, opened when it is needed. Not for two threads at once."""

    def __init__(self, port: int, context: ssl.SSLContext, token: str = "") -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=SECONDS_MAX, context=context
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def status(self, path: str) -> tuple[int, str]:
        """Return the answer's status and text; 0 and why where there is no answer."""
        try:
            return self._ask("GET", path, b"", "application/json")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return 0, str(error) or type(error).__name__

    def text(self, path: str) -> str:
        """Return a page as it is; an answer that is not 2xx is an error."""
        return self._successful("GET", path, b"", "application/json")

    def request(self, method: str, path: str, body: Raw | None = None, kind: str = "application/json") -> Raw:
        """Return the answer's object; an answer that is not 2xx is an error."""
        content = msgspec.json.encode(body) if body else b""
        answer: Raw = msgspec.json.decode(self._successful(method, path, content, kind))
        return answer

    def _successful(self, method: str, path: str, body: bytes, kind: str) -> str:
        status, text = self._ask(method, path, body, kind)
        if status not in SUCCESS:
            raise ControlPlaneError(f"{method} {path}: {status} {text}")
        return text

    def _ask(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, str]:
        self._connection.request(method, path, body or None, {**self._headers, "Content-Type": kind})
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

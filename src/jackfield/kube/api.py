"""The one thing that this package's checks ask of the connection: a call of any path.

Knows the shape of a call. Must not know who answers.
"""

from collections.abc import Mapping
from typing import Protocol

from jackfield.codec import Raw

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MANAGER = "jackfield"
"""The field manager of what we apply as ourselves."""


class Api(Protocol):
    """Who speaks to the API server; raises the ports' errors."""

    async def raw(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, str] = {},
        content_type: str = JSON,
    ) -> Raw:
        """Ask, and return the answer."""

"""What a process answers those who look after it: /metrics, /healthz, /readyz.

Knows what to say when nobody can be answered. Must not know what is answered.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jackfield.cli.addresses import Place
from jackfield.metrics import probes


class Unheard(Exception):  # noqa: N818 - a finding about what was given
    """Nobody can be answered there; the message says why, and what to do."""


@asynccontextmanager
async def answering(place: Place, answers: probes.Answers) -> AsyncIterator[Place]:
    """Answer there while the context is open; yields where, should the port have been 0. Raises Unheard."""
    served = probes.served(place.port, answers, place.host)
    try:
        port = await served.__aenter__()
    except OSError as error:
        why = error.strerror or str(error)
        raise Unheard(
            f"--listen {place}: {why}; choose an address of this machine and a free port"
        ) from error
    try:
        yield Place(place.host, port)
    finally:
        await served.__aexit__(None, None, None)

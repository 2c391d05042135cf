"""All that a client may do to us, and for how long.

Knows numbers. Must not know who keeps to them.
"""

from typing import Final

import msgspec

PIECE_BYTES: Final = 256 * 1024
"""Long answers are handed to the socket piece by piece: what it takes, it copies."""


class Limits(msgspec.Struct, frozen=True):
    """What one server bears of all its clients together, and of each."""

    connections: int = 2_000
    """How many may be connected; fewer where the process may not have so many files."""
    calls: int = 400
    """Calls that are served at a time; the next ones are asked to come again."""
    watches: int = 1_500
    unread_bytes: int = 512 * 1024 * 1024
    """What clients may have asked for and not yet read."""
    handshake_seconds: float = 10.0
    first_word_seconds: float = 15.0
    """How long a client may take to say what it wants."""
    body_seconds: float = 30.0
    """How long it may take to send a body."""
    read_seconds: float = 60.0
    """How long it may take to read an answer, or a few lines of a watch."""
    idle_seconds: float = 75.0
    """How long a connection is kept for another call."""
    watch_seconds: float = 1800.0
    """How long a watch lives if the client does not say."""
    watch_seconds_max: float = 7200.0


USUAL: Final = Limits()

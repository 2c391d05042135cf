"""Sessions: who logged in, and for how long that counts.

Knows proofs of tokens, which outlive a restart; the tokens themselves are known to those alone who were given them.
Must not know HTTP. A session ends when it was not used for as long as it lasts, counted anew from a restart.
"""

import hashlib
import secrets
from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.store import Store
from jackfield.model.names import Seconds
from jackfield.ports import Clock

PREFIX: Final = "session/"
"""Under this name sessions are noted."""
SESSIONS_MAX: Final = 256
LASTS: Final = Seconds(1800.0)


class Session(msgspec.Struct, frozen=True):
    """A session, as it is noted."""

    id: str
    user: str
    proof: str
    """The token's digest."""
    created: Seconds


class Sessions:
    """All that have not ended, oldest first."""

    def __init__(self, store: Store, clock: Clock, lasts: Seconds = LASTS) -> None:
        self._store = store
        self._clock = clock
        self.lasts = lasts
        noted = store.notes(FACE)
        known = [msgspec.json.decode(noted[key], type=Session) for key in noted if key.startswith(PREFIX)]
        self._sessions = {one.id: one for one in sorted(known, key=lambda one: one.created)}
        self._by_proof = {one.proof: one.id for one in known}
        self._used: dict[str, Seconds] = dict.fromkeys(self._sessions, clock.now())

    def __iter__(self) -> Iterator[Session]:
        self._tidy()
        yield from tuple(self._sessions.values())

    @property
    def full(self) -> bool:
        """Whether no more can be opened."""
        self._tidy()
        return len(self._sessions) >= SESSIONS_MAX

    def open(self, user: str) -> tuple[Session, str]:
        """Return a new session and the token that proves it."""
        token = secrets.token_hex(32)
        made = Session(secrets.token_hex(8), user, _proof(token), self._clock.now())
        self._sessions[made.id] = made
        self._by_proof[made.proof] = made.id
        self._used[made.id] = made.created
        self._store.note(FACE, f"{PREFIX}{made.id}", msgspec.json.encode(made))
        return made, token

    def get(self, name: str) -> Session | None:
        """Return the session of that id."""
        self._tidy()
        return self._sessions.get(name)

    def proved(self, token: str) -> Session | None:
        """Return the session that a token proves, which is in use by that."""
        # A digest is looked up, so that the time it takes says nothing of any token.
        name = self._by_proof.get(_proof(token)) if token else None
        if name is None or self._over(name):
            return None
        self._used[name] = self._clock.now()
        return self._sessions[name]

    def close(self, name: str) -> None:
        """End a session."""
        ended = self._sessions.pop(name)
        del self._by_proof[ended.proof], self._used[name]
        self._store.note(FACE, f"{PREFIX}{name}", None)

    def _over(self, name: str) -> bool:
        return self._used[name] + self.lasts < self._clock.now()

    def _tidy(self) -> None:
        for name in [one for one in self._sessions if self._over(one)]:
            self.close(name)


def _proof(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()

"""Reservations: which block somebody keeps for the moment, so that two who look at once do not both take it.

Knows who and until when, across restarts. Must not know HTTP, nor what becomes of a block. A reservation is over when
it was withdrawn, when its time is up, or when the block begins to be composed.
"""

from typing import Final

import msgspec

from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.store import Store
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Clock

PREFIX: Final = "reserved/"
"""Under this name reservations are noted."""
LASTS: Final = Seconds(60.0)


class Reservation(msgspec.Struct, frozen=True):
    """Who keeps a block, and until when."""

    by: str
    until: Seconds


class Reservations:
    """All that are not over."""

    def __init__(self, store: Store, clock: Clock, lasts: Seconds = LASTS) -> None:
        self._store = store
        self._clock = clock
        self.lasts = lasts
        self._kept: dict[PhysicalID, Reservation] = {
            PhysicalID(key.removeprefix(PREFIX)): msgspec.json.decode(text, type=Reservation)
            for key, text in store.notes(FACE).items()
            if key.startswith(PREFIX)
        }

    def by(self, device: PhysicalID) -> str:
        """Return who keeps a device's block; empty if nobody does."""
        kept = self._kept.get(device)
        if kept is None:
            return ""
        if kept.until < self._clock.now():
            self.withdraw(device)
            return ""
        return kept.by

    def make(self, device: PhysicalID, by: str) -> None:
        """Keep it for somebody."""
        kept = Reservation(by, Seconds(self._clock.now() + self.lasts))
        self._kept[device] = kept
        self._store.note(FACE, f"{PREFIX}{device}", msgspec.json.encode(kept))

    def withdraw(self, device: PhysicalID) -> None:
        """Let it go."""
        if self._kept.pop(device, None) is not None:
            self._store.note(FACE, f"{PREFIX}{device}", None)

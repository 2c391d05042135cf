"""What a node's own eyes see of its devices, and what it has prepared.

Knows values only. Must not know how a device is found.
"""

import msgspec

from jackfield.model.names import Key, PhysicalID, Uid


class Seen(msgspec.Struct, frozen=True):
    """A device that is present on the node."""

    physical: PhysicalID
    device: str
    """As the node knows it: a GPU's UUID."""
    address: str = ""
    """Its PCI address."""


class Prepared(msgspec.Struct, frozen=True):
    """What the node's checkpoint says: a device prepared for a claim."""

    uid: Uid
    claim: Key
    physical: PhysicalID
    device: str
    """The DRA name, `driver/pool/device`."""


class Facts(msgspec.Struct, frozen=True):
    """All that a node knows at one moment."""

    seen: tuple[Seen, ...] = ()
    prepared: tuple[Prepared, ...] = ()

"""Which of the devices that a node sees is the one that a manager speaks of.

A manager names a device by its UUID, its serial number or its address, or by a name of its own and says one of these
beside it; each spells them in its own way. Knows how they are spelt. Must not know how a device is found, nor what is
done about it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from jackfield.model.composition import ComposableResource
from jackfield.model.host import Facts, HostDevice, Identity, Seen
from jackfield.model.names import PhysicalID
from jackfield.model.view import View

LETTERS_MIN = 4
"""A shorter serial number tells nothing apart."""

_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_BLANK = ("none", "null", "unknown", "notspecified", "notavailable", "tobefilledbyoem", "defaultstring")


class Blurred(msgspec.Struct, frozen=True):
    """Two devices on the node go by the name that the manager says: neither is taken for the other."""

    what: str
    seen: tuple[Seen, ...]


def of(resource: ComposableResource, facts: Facts, order: tuple[Identity, ...]) -> Seen | Blurred | None:
    """Return the device that a resource means, as the node sees it; None while it is out of sight."""
    physical, device = resource.status.cdi_device_id, resource.status.device_id
    several: tuple[Seen, ...] = ()
    for found in _ways(physical, device, facts.seen, order):
        if len(found) == 1:
            return found[0]
        several = several or found
    if not several:
        return None
    places = " and ".join(one.address or one.device for one in several)
    return Blurred(f"{physical or device} to be one device; {places} go by that name alike", several)


def alike(view: View, resource: ComposableResource) -> tuple[ComposableResource, ...]:
    """Return who else in the books of the node means the same device.

    One of them got it by an order of which the other knows nothing: only a restored backup does that.
    """
    physical, pool = resource.status.cdi_device_id, _pool(resource)
    others = (one for one in view.resources_on(resource.node) if physical and one.uid != resource.uid)
    return tuple(one for one in others if one.status.cdi_device_id == physical and _pool(one) == pool)


def _pool(resource: ComposableResource) -> str:
    return resource.device.pool if resource.device is not None else ""


def _ways(
    physical: PhysicalID, device: str, seen: tuple[Seen, ...], order: tuple[Identity, ...]
) -> Iterator[tuple[Seen, ...]]:
    """Yield who goes by the name in each way, the best first; whoever has found the device asks no further."""
    yield tuple([one for one in seen if one.physical == physical])
    yield tuple([one for one in seen if one.device == device])
    wanted = [spelling(one) for one in (physical, device) if one]
    for identity in order:
        yield tuple([one for one in seen if _goes_by(wanted, identity, one)])


def sights(devices: Iterable[HostDevice]) -> tuple[Seen, ...]:
    """Return devices as a node reports them, each under the best name that no other of them has."""
    there = tuple(devices)
    uuids = [one.uuid if tells(one.uuid) else "" for one in there]
    serials = [one.serial if tells(one.serial) else "" for one in there]
    pairs = zip(map(spelling, uuids), map(spelling, serials), strict=True)
    spelt = [name for pair in pairs for name in dict.fromkeys(pair)]
    seen = []
    for one, uuid, serial in zip(there, uuids, serials, strict=True):
        own = (name for name in (uuid, serial) if name and spelt.count(spelling(name)) == 1)
        best = next(own, one.address)
        seen.append(Seen(PhysicalID(best), best, one.address, uuid, serial))
    return tuple(seen)


@lru_cache(maxsize=65_536)  # every device in sight is asked for its names, for every claim
def spelling(name: str) -> str:
    """Return a name without what differs between those who write the same: case, dashes, an address's domain."""
    plain = name.strip().casefold()
    place = _ADDRESS.fullmatch(plain)
    if place is not None:
        domain, bus, device, function = place.groups()
        return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"
    plain = plain.removeprefix("gpu-").removeprefix("0x")
    return "".join(letter for letter in plain if letter.isalnum())


def tells(name: str) -> bool:
    """Whether a serial number or UUID says anything: some makers leave theirs blank, each in another way."""
    plain = spelling(name)
    return len(plain) >= LETTERS_MIN and plain not in _BLANK and plain.strip(plain[0]) != ""


def _goes_by(wanted: list[str], identity: Identity, seen: Seen) -> bool:
    names = {
        Identity.UUID: seen.uuid,
        Identity.SERIAL: seen.serial,
        Identity.ADDRESS: seen.address,
    }
    name = spelling(names[identity])
    return name != "" and name in wanted

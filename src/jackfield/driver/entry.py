"""What a node remembers of a claim it has prepared.

Knows values, and what none of them may be since it becomes part of a path, of a CDI spec or of a file in a container.
Must not know how it is written down.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jackfield.driver import cdi
from jackfield.driver.cdi import Edits, shown
from jackfield.model.device import DeviceAttribute
from jackfield.model.meta import Wire
from jackfield.model.names import Key, PhysicalID, Uid
from jackfield.ports import Refused

ENTRY_BYTES_MAX: Final = 1 << 20
"""Of one claim, written down; a claim's own configuration is at most 64 times 10 KiB."""
HELD_MAX: Final = 128
"""Devices of one claim; Kubernetes allocates at most 32."""
ATTRIBUTES_MAX: Final = 32
"""Of one device, as the device metadata in a container may have."""

UID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
)
_ATTRIBUTE = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?/)?[A-Za-z_][A-Za-z0-9_]{0,31}")


class Network(Wire, frozen=True):
    """What is known of a network device inside its pod (`networkData`)."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device that is prepared for a claim."""

    requests: tuple[str, ...]
    """Those of the claim that it serves, as the allocation spells them (`gpu`, `gpu/large`); none means all."""
    pool: str
    device: str
    share_id: str = ""
    physical: PhysicalID = PhysicalID("")
    edits: Edits = cdi.NOTHING
    cdi: tuple[str, ...] = ()
    """Devices of specs that others wrote, such as `nvidia.com/gpu=GPU-7c6d...`; ours comes after them."""
    notes: Mapping[str, str] = {}
    """What the driver must remember until the claim is unprepared, such as the id of a partition it made."""
    attributes: Mapping[str, DeviceAttribute] = {}
    """What a container can read of its device."""
    network: Network | None = None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One claim that is prepared here."""

    uid: Uid
    claim: Key
    held: tuple[Held, ...] = ()
    pod_claim_name: str = ""
    """What the pod calls a claim made from a template; empty for one that pods name themselves."""


def check(entry: Entry) -> None:
    """Raise Refused, in words, if there is anything in it that must not become part of a path or a file."""
    for words in _wrong(entry):
        raise Refused(f"claim {shown(str(entry.claim))} cannot be prepared: {words}")
    for held in entry.held:
        cdi.check(held.edits)
        for name in held.cdi:
            cdi.check_qualified(name)


def check_uid(uid: Uid) -> None:
    """Raise Refused unless this may be a claim's uid; every path we make out of it is then a plain file's."""
    if not UID.fullmatch(uid):
        raise Refused(f"{shown(uid)} is no uid: at most 64 letters, digits and hyphens")


def base(request: str) -> str:
    """Return the request itself, of which this may name an alternative (`gpu/large`)."""
    return request.partition("/")[0]


def _wrong(entry: Entry) -> Iterator[str]:
    if not UID.fullmatch(entry.uid):
        yield f"{shown(entry.uid)} is no uid: at most 64 letters, digits and hyphens"
    if not _LABEL.fullmatch(entry.claim.namespace):
        yield f"{shown(entry.claim.namespace)} is no namespace"
    if not _SUBDOMAIN.fullmatch(entry.claim.name):
        yield f"{shown(entry.claim.name)} is no name of a claim"
    if entry.pod_claim_name and not _LABEL.fullmatch(entry.pod_claim_name):
        yield f"{shown(entry.pod_claim_name)} is no name that a pod gives a claim"
    if len(entry.held) > HELD_MAX:
        yield f"it has {len(entry.held)} devices, at most {HELD_MAX} are taken"
    for held in entry.held:
        yield from _wrong_names(held)
        yield from _wrong_attributes(held)


def _wrong_names(held: Held) -> Iterator[str]:
    for request in held.requests:
        parts = request.split("/")
        if len(parts) > 2 or not all(_LABEL.fullmatch(part) for part in parts):  # noqa: PLR2004 - gpu/large
            yield f"{shown(request)} is no name of a request"
    if not all(_SUBDOMAIN.fullmatch(part) for part in held.pool.split("/")):
        yield f"{shown(held.pool)} is no name of a pool"
    if not _LABEL.fullmatch(held.device):
        yield f"{shown(held.device)} is no name of a device"
    if held.share_id and not UID.fullmatch(held.share_id):
        yield f"{shown(held.share_id)} is no id of a share"


def _wrong_attributes(held: Held) -> Iterator[str]:
    if len(held.attributes) > ATTRIBUTES_MAX:
        yield f"device {held.device} has {len(held.attributes)} attributes, at most {ATTRIBUTES_MAX} are taken"
    for name, value in held.attributes.items():
        if not _ATTRIBUTE.fullmatch(name):
            yield f"{shown(name)} is no name of an attribute"
        if sum(one is not None for one in msgspec.structs.astuple(value)) != 1:
            yield f"attribute {name} of device {held.device} has not exactly one value"

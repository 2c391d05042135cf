"""Who moves a device, as a lab's file says it: nobody, a command, the kernel's PCI bus, or QEMU.

Knows what can be written and what is wrong with it. Must not know how anything is moved.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds

TIMEOUT_MAX: Final = Seconds(3600.0)
ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
ID: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
PRINTABLE_MAX: Final = 253
SOCKET_BYTES_MAX: Final = 107
"""No UNIX socket has a longer path on Linux."""


class Part(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Something that an operator writes."""


class Nobody(Part, frozen=True, tag_field="kind", tag="none"):
    """Only the books change."""


class Script(Part, frozen=True, tag_field="kind", tag="script"):
    """A command of the operator's moves the device."""

    command: tuple[str, ...]
    """Program and first arguments; verb, device and machine follow. No shell reads it."""
    timeout_seconds: Seconds = Seconds(60.0)


class Place(Part, frozen=True):
    """Where a device is found on a machine's PCI bus once it is attached to it."""

    device: PhysicalID
    machine: NodeName
    address: str
    """As `lspci -D` shows it."""
    bridge: str = ""
    """The bridge above it, whose own rescan suffices; the whole bus is scanned where none is named."""
    id: str = ""
    """Vendor and device as `lspci -n` shows them; anything will do where none is named."""


class Pci(Part, frozen=True, tag_field="kind", tag="pci"):
    """The kernel of the machine that this runs on looks for devices, and lets go of them."""

    places: tuple[Place, ...]
    sysfs: str = "/sys"
    bound: Literal["unbind", "refuse"] = "unbind"
    """What to do with a device that a driver still has: take it from the driver first, or refuse to detach it."""
    timeout_seconds: Seconds = Seconds(30.0)


class Guest(Part, frozen=True):
    """A machine that is a guest of QEMU."""

    socket: str
    """The UNIX socket of its QMP monitor, which nobody else uses meanwhile."""
    buses: tuple[str, ...] = ()
    """Ids of the ports that take one device each, as pcie-root-port has them; QEMU chooses where none is named."""


class Virtual(Part, frozen=True):
    """What QEMU makes a device of a model of."""

    driver: str
    properties: Mapping[str, bool | int | float | str] = {}
    """`{device}` and `{serial}` in a text are replaced."""


class Qemu(Part, frozen=True, tag_field="kind", tag="qemu"):
    """QEMU plugs a virtual device into a running guest."""

    machines: Mapping[NodeName, Guest]
    models: Mapping[ModelName, Virtual]
    timeout_seconds: Seconds = Seconds(30.0)


Backend = Nobody | Script | Pci | Qemu


class Known(msgspec.Struct, frozen=True):
    """The names that a back end can speak of."""

    devices: AbstractSet[PhysicalID]
    machines: AbstractSet[NodeName]
    models: AbstractSet[ModelName]


def mistakes(backend: Backend, known: Known) -> Iterator[str]:
    """Return what is wrong, each with its place in the file."""
    if isinstance(backend, Nobody):
        return
    if not 0 < backend.timeout_seconds <= TIMEOUT_MAX:
        yield f"backend.timeoutSeconds: must be more than 0 and at most {TIMEOUT_MAX:g}"
    match backend:
        case Script():
            if not backend.command or not backend.command[0]:
                yield "backend.command: names no program"
        case Pci():
            yield from _pci_mistakes(backend, known)
        case Qemu():
            yield from _qemu_mistakes(backend, known)


def _pci_mistakes(backend: Pci, known: Known) -> Iterator[str]:
    if not PurePosixPath(backend.sysfs).is_absolute():
        yield "backend.sysfs: must begin with /"
    seen: set[tuple[str, str]] = set()
    slots: dict[tuple[str, str], str] = {}
    for number, place in enumerate(backend.places):
        where = f"backend.places[{number}]"
        if place.device not in known.devices:
            yield f"{where}.device: there is no device {place.device!r}"
        if place.machine not in known.machines:
            yield f"{where}.machine: there is no machine {place.machine!r}"
        if not ADDRESS.fullmatch(place.address):
            yield f"{where}.address: is no PCI address such as '0000:3b:00.0': {place.address!r}"
        if place.bridge and not ADDRESS.fullmatch(place.bridge):
            yield f"{where}.bridge: is no PCI address such as '0000:3a:00.0': {place.bridge!r}"
        if place.id and not ID.fullmatch(place.id):
            yield f"{where}.id: is no vendor and device such as '10de:20b5': {place.id!r}"
        if (place.device, place.machine) in seen:
            yield f"{where}: {place.device} has a place on {place.machine} already"
        seen.add((place.device, place.machine))
        # Nothing on the bus tells two devices of a model apart, and all functions of a slot go together.
        other = slots.setdefault((place.machine, place.address[:-2]), place.device)
        if other != place.device:
            yield f"{where}.address: is {other}'s on {place.machine} already"


def _qemu_mistakes(backend: Qemu, known: Known) -> Iterator[str]:
    yield from _unequal("backend.machines", backend.machines, known.machines)
    yield from _unequal("backend.models", backend.models, known.models)
    for name, guest in backend.machines.items():
        where = f"backend.machines.{name}"
        if not guest.socket or len(guest.socket.encode()) > SOCKET_BYTES_MAX:
            yield f"{where}.socket: the path of a socket has 1 to {SOCKET_BYTES_MAX} bytes"
        if len(set(guest.buses)) != len(guest.buses):
            yield f"{where}.buses: one is named twice"
    for model, virtual in backend.models.items():
        taken = {"driver", "id", "bus"} & virtual.properties.keys()
        if not virtual.driver:
            yield f"backend.models.{model}.driver: is empty"
        if taken:
            yield f"backend.models.{model}.properties: {', '.join(sorted(taken))} cannot be set here"


def _unequal(where: str, said: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    """Return of what nothing is said, and what is said of things that are not there."""
    yield from (f"{where}: nothing is said of {one!r}" for one in sorted({*known} - {*said}))
    yield from (f"{where}: there is no {one!r} in this lab" for one in sorted({*said} - {*known}))

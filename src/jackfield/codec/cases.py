"""Cases of the machine interface: JSON lines, each a world and a question, become values the engine can be asked.

Knows the format and everything that makes a line unreadable. Must not know the answers.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from jackfield.codec import decoding
from jackfield.codec.wire import without_nulls
from jackfield.core import allocate
from jackfield.model import quantity
from jackfield.model.claim import CapacityRequirements, ResourceClaim
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from jackfield.model.meta import ObjectMeta, Wire
from jackfield.model.names import DeviceID
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""A longer line is not read. Forty thousand devices take a third of it."""
DEFAULT_NODE: Final = Node(
    metadata=ObjectMeta(name="node-1", labels={"region": "region-1", "planet": "earth"})
)
"""The node of a case that names none."""
GATES: Final = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRADeviceTaints": "device_taints",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus": "binding_conditions",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRAListTypeAttributes": "list_attributes",
}
"""What a case may name in `features`, and what the engine calls it."""

_INT64: Final = range(-(2**63), 2**63)
_QUANTITIES: Final[Mapping[type[msgspec.Struct], tuple[str, ...]]] = {
    DeviceCapacity: ("value",),
    Counter: ("value",),
    CapacityRequestPolicy: ("default", "validValues"),
    CapacityRequestPolicyRange: ("min", "max", "step"),
    CapacityRequirements: ("requests",),
}
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_NULL: Final = b"null"


class BadLine(Exception):  # noqa: N818 - named for what was found
    """A line that is no case; it gets an error of its own, and its neighbours are not disturbed."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}" if path else what)
        self.path = path
        self.what = what


class AllocateCase(Wire, frozen=True):
    """Claims that want devices on a node: what is on offer, and what others hold."""

    features: tuple[str, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    node: Node = DEFAULT_NODE
    nodes: tuple[Node, ...] = ()
    """All nodes, for those who want to know why none of them fits."""
    allocated_devices: tuple[str, ...] = ()
    allocated_shared_device_ids: tuple[str, ...] = msgspec.field(default=(), name="allocatedSharedDeviceIDs")
    aggregated_capacity: Mapping[str, Mapping[str, str]] = {}

    def allocated(self, features: allocate.Features) -> allocate.Allocated:
        """What other claims hold; raises BadLine."""
        whole = frozenset(
            _device(f"allocatedDevices[{number}]", text) for number, text in enumerate(self.allocated_devices)
        )
        shares = frozenset(
            _share(f"allocatedSharedDeviceIDs[{number}]", text)
            for number, text in enumerate(self.allocated_shared_device_ids)
        )
        capacity: dict[DeviceID, dict[str, quantity.Quantity]] = {
            _device("aggregatedCapacity", text): {
                name: _quantity(f"aggregatedCapacity[{text}][{name}]", amount)
                for name, amount in used.items()
            }
            for text, used in self.aggregated_capacity.items()
        }
        if features.consumable_capacity:
            return allocate.Allocated(whole, shares, capacity)
        # A scheduler without the gate tells its allocator of no shares, which to it are whole devices. An allocator
        # that is told of them all the same counts their counters, and nothing else.
        for device, _ in shares:
            capacity.setdefault(device, {})
        return allocate.Allocated(whole, frozenset(), capacity)

    def gates(self, profile: allocate.Profile) -> allocate.Features:
        """The gates that are on, in that release; raises BadLine for one that does not exist."""
        for number, name in enumerate(self.features):
            if name not in GATES:
                raise BadLine(f"features[{number}]", f"there is no {name!r}; known are {', '.join(GATES)}")
        switches = {field: gate in self.features for gate, field in GATES.items()}
        return msgspec.convert({**switches, "profile": profile}, allocate.Features)

    def classes_by_name(self) -> Mapping[str, DeviceClass]:
        """The classes; of two with one name the first counts."""
        return {one.metadata.name: one for one in reversed(self.classes)}


class CelCase(Wire, frozen=True):
    """An expression and a device."""

    expression: str
    driver: str = ""
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    allow_multiple_allocations: bool = False
    lists: bool = False

    def device(self) -> Device:
        """The device, as a slice would list it."""
        return Device(
            "device",
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple_allocations=self.allow_multiple_allocations,
        )


T = TypeVar("T", AllocateCase, CelCase)


def read(kind: type[T], line: bytes) -> T:
    """Return the case on a line, or raise BadLine, which names the field."""
    case = _decoded(kind, line)
    for path, what in _faults(case, ""):
        raise BadLine(path, what)
    return case


def members(line: bytes) -> dict[str, msgspec.Raw]:
    """Return what stands on a line, name by name and unread; raises BadLine where it is no JSON object."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadLine("", f"is not UTF-8: {error.reason} at byte {error.start}") from error
    try:
        return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(line, error) from error


def _decoded(kind: type[T], line: bytes) -> T:
    try:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.ValidationError:
            if _NULL not in line:
                raise
            # Go writes null for what is not set.
            return msgspec.json.decode(
                msgspec.json.encode(without_nulls(msgspec.json.decode(line))), type=kind
            )
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(line, error) from error


def _unreadable(line: bytes, error: msgspec.DecodeError | RecursionError) -> BadLine:
    if isinstance(error, RecursionError):
        return BadLine("", "is nested too deeply")
    if isinstance(error, msgspec.ValidationError):
        return BadLine(*decoding.place(error))
    if not line.strip():
        return BadLine("", "is empty")
    if _LONE_SURROGATE.search(line):
        return BadLine("", "has one half of a surrogate pair, which is no character")
    return BadLine("", f"is not JSON: {error}")


def _faults(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield what types alone do not show: numbers beyond 64 bits, and texts that should be quantities."""
    match value:
        case msgspec.Struct():
            quantities = _QUANTITIES.get(type(value), ())
            for field in msgspec.structs.fields(value):
                inner = getattr(value, field.name)
                place = f"{path}.{field.encode_name}" if path else field.encode_name
                if field.encode_name in quantities and inner != field.default:
                    yield from _unquantified(inner, place)
                yield from _faults(inner, place)
        case tuple():
            for number, item in enumerate(value):
                yield from _faults(item, f"{path}[{number}]")
        case dict():
            for name, item in value.items():
                yield from _faults(item, f"{path}[{name}]")
        case int() if value not in _INT64:
            yield path, f"{value} does not fit into 64 bits"
        case _:
            return


def _unquantified(value: object, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            try:
                _quantity(path, value)
            except BadLine as bad:
                yield bad.path, bad.what
        case tuple():
            for number, item in enumerate(value):
                yield from _unquantified(item, f"{path}[{number}]")
        case dict():
            for name, item in value.items():
                yield from _unquantified(item, f"{path}[{name}]")
        case _:
            return


def _quantity(path: str, text: str) -> quantity.Quantity:
    try:
        return quantity.parse(text)
    except quantity.QuantityError as error:
        raise BadLine(path, f"{_shown(text)} is no quantity: {error.reason}") from error
    except ValueError as error:
        # Python reads no number of more than some thousand digits.
        raise BadLine(path, f"{_shown(text)} is no quantity: it has too many digits") from error


def _device(path: str, text: str) -> DeviceID:
    """Read driver/pool/device; only a pool may have slashes in its name."""
    driver, first, rest = text.partition("/")
    pool, second, device = rest.rpartition("/")
    if not first or not second:
        raise BadLine(path, f"{_shown(text)} is not driver/pool/device")
    return DeviceID(driver, pool, device)


def _share(path: str, text: str) -> tuple[DeviceID, str]:
    whole, slash, share = text.rpartition("/")
    if not slash:
        raise BadLine(path, f"{_shown(text)} is not driver/pool/device/share")
    return _device(path, whole), share


def _shown(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else f"{text[:most]}…")

"""What a lab has: switches, machines with slots and host ports, devices in batches. Read from a YAML file.

Knows the file and what is wrong with it. Must not know what is attached, nor any order.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NewType, TypeVar

import msgspec
import yaml

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.durations import Times
from jackfield.fabric_manager.wiring import Part
from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, PhysicalID, Seconds

T = TypeVar("T")

SwitchName = NewType("SwitchName", str)

DEVICES_MAX: Final = 100_000
REMEMBER_MIN: Final = Seconds(3600.0)
"""No call takes effect later than this after it was sent."""
REMEMBER_ORDERS_MIN: Final = 1000
NAME_LENGTH_MAX: Final = 253
LINK_WIDTHS: Final = (1, 2, 4, 8, 12, 16, 32)
SERIALS: Final = uuid.UUID("a1b4c9a2-7f0b-5f6a-8a40-3c2f4a7f1d11")
"""The name space in which a device's serial number is derived from its fabric and name, where none is given."""


class BadHardware(ValueError):  # noqa: N818 - a finding about a file
    """A file that describes no lab; the message names file and place."""


class Switch(Part, frozen=True):
    """A PCIe or CXL switch, or the box around it."""

    name: SwitchName
    power_watts: int = 0
    """What all attached devices behind it may draw together; 0 is no limit."""


class HostPort(Part, frozen=True):
    """Where a machine is plugged into a switch."""

    switch: SwitchName
    link_width: int = 16


class Machine(Part, frozen=True):
    """A machine, or so many of a kind: `count` appends a number to the name."""

    name: NodeName
    count: int = 0
    slots: int = 8
    """Devices that can be attached to it at a time: bus numbers, memory windows, or what was agreed on."""
    ports: tuple[HostPort, ...] = ()
    """The switches it reaches; all of them where none is named."""
    labels: Mapping[str, str] = {}
    """What faces need to know of it, such as another manager's id for it."""


class Batch(Part, frozen=True):
    """So many devices of one model behind one switch; a number is appended to the name."""

    name: str
    model: ModelName
    count: int = 1
    type: str = "gpu"
    """gpu, cxlmemory, nic, fpga, or another word that both sides know."""
    switch: SwitchName = SwitchName("")
    attributes: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    link_width: int = 16
    power_watts: int = 0


class Attached(Part, frozen=True):
    """A device that was on a machine before any order: somebody else's, and never touched."""

    device: PhysicalID
    machine: NodeName


class Limits(Part, frozen=True):
    """What the manager does at a time."""

    jobs: int = 8
    """Orders worked on at a time."""
    call_timeout_seconds: Seconds = Seconds(30.0)
    """How long after it was sent a call may still take effect."""
    remember_seconds: Seconds = Seconds(30 * 86400.0)
    """How long the id of an order that ended stays closed; so long late requests are recognised."""
    remember_orders: int = 1_000_000
    """How many of them are remembered at most; the oldest are forgotten first."""


class Lab(Part, frozen=True):
    """The whole file."""

    fabric: FabricName
    machines: tuple[Machine, ...]
    devices: tuple[Batch, ...]
    switches: tuple[Switch, ...] = ()
    attached: tuple[Attached, ...] = ()
    times: Times = Times()
    limits: Limits = Limits()
    backend: wiring.Backend = wiring.Nobody()


class Device(msgspec.Struct, frozen=True):
    """One device, as it is for life."""

    id: PhysicalID
    serial: str
    batch: Batch


class Hardware:
    """The lab with every machine and device by name, in the file's order."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.switches: Mapping[SwitchName, Switch] = {one.name: one for one in lab.switches}
        self.machines: Mapping[NodeName, Machine] = {
            one.name: one for every in lab.machines for one in _machines(every)
        }
        self.devices: Mapping[PhysicalID, Device] = {
            one.id: one for batch in lab.devices for one in _devices(lab.fabric, batch)
        }

    @property
    def name(self) -> FabricName:
        """The fabric's name."""
        return self.lab.fabric

    def reaches(self, node: NodeName, device: PhysicalID) -> bool:
        """Whether a cable leads from the device's switch to the machine."""
        ports, switch = self.machines[node].ports, self.devices[device].batch.switch
        return not ports or not switch or any(port.switch == switch for port in ports)


def _machines(of: Machine) -> Iterator[Machine]:
    if not of.count:
        yield of
    for number in range(1, of.count + 1):
        yield msgspec.structs.replace(of, name=NodeName(f"{of.name}-{number}"), count=0)


def _devices(fabric: FabricName, batch: Batch) -> Iterator[Device]:
    for number in range(1, batch.count + 1):
        name = f"{batch.name}-{number}"
        prefix = "GPU-" if batch.type == "gpu" else ""
        yield Device(PhysicalID(name), f"{prefix}{uuid.uuid5(SERIALS, f'{fabric}/{name}')}", batch)


# --- reading


def read(path: Path) -> Hardware:
    """Read a file. Raises BadHardware naming file and place."""
    try:
        return parse(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or "it is not text"
        raise BadHardware(f"{path}: cannot be read: {reason}") from error


def parse(text: str, source: str) -> Hardware:
    """Make hardware of YAML. Raises BadHardware naming source and place."""
    try:
        lab = msgspec.convert(yaml.safe_load(text), Lab)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadHardware(f"{source}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        place = where.rstrip("`").lstrip(".") or "the whole file"
        raise BadHardware(f"{source}: {place}: {message}") from error
    wrong = tuple(_faults(lab))
    if wrong:
        raise BadHardware("\n".join(f"{source}: {one}" for one in wrong))
    return Hardware(lab)


def _faults(lab: Lab) -> Iterator[str]:
    yield from _name_faults("fabric", lab.fabric)
    counts = (*_count_faults(lab), *_limit_faults(lab))
    yield from counts
    if counts:
        return  # what follows makes everything by name
    yield from _double("switches", (one.name for one in lab.switches))
    yield from _double("machines", (one.name for every in lab.machines for one in _machines(every)))
    yield from _double("devices", (one.id for every in lab.devices for one in _devices(lab.fabric, every)))
    yield from _machine_faults(lab)
    yield from _device_faults(lab)
    yield from _attached_faults(lab)
    known = Hardware(lab)
    models = {one.model for one in lab.devices}
    yield from wiring.mistakes(lab.backend, wiring.Known(known.devices.keys(), known.machines.keys(), models))


def _count_faults(lab: Lab) -> Iterator[str]:
    if sum(batch.count for batch in lab.devices) > DEVICES_MAX:
        yield f"devices: there are more than {DEVICES_MAX}"
    if sum(one.count for one in lab.machines) > DEVICES_MAX:
        yield f"machines: there are more than {DEVICES_MAX}"
    for place, one in enumerate(lab.machines):
        if one.count < 0:
            yield f"machines[{place}].count: must not be negative"
    for place, batch in enumerate(lab.devices):
        if batch.count < 1:
            yield f"devices[{place}].count: must be at least 1"


def _limit_faults(lab: Lab) -> Iterator[str]:
    if lab.limits.jobs < 1:
        yield "limits.jobs: must be at least 1"
    if not 0 < lab.limits.call_timeout_seconds <= 3600:  # noqa: PLR2004 - an hour
        yield "limits.callTimeoutSeconds: must be more than 0 and at most 3600"
    if not REMEMBER_MIN <= lab.limits.remember_seconds < NEVER:
        yield f"limits.rememberSeconds: must be at least {REMEMBER_MIN:g}, so that no late request is taken for new"
    if lab.limits.remember_orders < REMEMBER_ORDERS_MIN:
        yield f"limits.rememberOrders: must be at least {REMEMBER_ORDERS_MIN}"
    for place, switch in enumerate(lab.switches):
        yield from _name_faults(f"switches[{place}].name", switch.name)
        if switch.power_watts < 0:
            yield f"switches[{place}].powerWatts: must not be negative"


def _machine_faults(lab: Lab) -> Iterator[str]:
    known = {one.name for one in lab.switches}
    for place, one in enumerate(lab.machines):
        yield from _name_faults(f"machines[{place}].name", one.name)
        if one.slots < 0:
            yield f"machines[{place}].slots: must not be negative"
        for number, port in enumerate(one.ports):
            where = f"machines[{place}].ports[{number}]"
            if port.switch not in known:
                yield f"{where}.switch: there is no switch {port.switch!r}"
            yield from _width_faults(f"{where}.linkWidth", port.link_width)


def _device_faults(lab: Lab) -> Iterator[str]:
    known = {one.name for one in lab.switches}
    for place, batch in enumerate(lab.devices):
        where = f"devices[{place}]"
        for field, name in (("name", batch.name), ("model", batch.model), ("type", batch.type)):
            yield from _name_faults(f"{where}.{field}", name)
        if batch.switch and batch.switch not in known:
            yield f"{where}.switch: there is no switch {batch.switch!r}"
        if batch.power_watts < 0:
            yield f"{where}.powerWatts: must not be negative"
        yield from _width_faults(f"{where}.linkWidth", batch.link_width)


def _attached_faults(lab: Lab) -> Iterator[str]:
    known = Hardware(lab)
    yield from _double("attached", (one.device for one in lab.attached))
    for place, one in enumerate(lab.attached):
        if one.device not in known.devices:
            yield f"attached[{place}].device: there is no device {one.device!r}"
        if one.machine not in known.machines:
            yield f"attached[{place}].machine: there is no machine {one.machine!r}"


def _name_faults(where: str, name: str) -> Iterator[str]:
    if not 0 < len(name) <= NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
        yield f"{where}: must be 1 to {NAME_LENGTH_MAX} printable characters, without blanks around them"


def _width_faults(where: str, width: int) -> Iterator[str]:
    if width not in LINK_WIDTHS:
        yield f"{where}: a link has {', '.join(map(str, LINK_WIDTHS))} lanes, not {width}"


def _double(where: str, names: Iterable[str]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    yield from (f"{where}: two are called {name!r}" for name, count in seen.items() if count > 1)


# --- writing one


def generated(fabric: FabricName, machines: int, devices: int) -> str:
    """Return a file for so many machines and devices: three GPUs in four, and some of everything else."""
    others = {"cxl": devices // 8, "nic": devices // 16, "fpga": devices // 16}
    gpus = devices - sum(others.values())
    lab: dict[str, object] = {
        "fabric": str(fabric),
        "switches": [{"name": "switch-1", "powerWatts": 0}],
        "machines": [
            {
                "name": "worker",
                "count": machines,
                "slots": 8,
                "ports": [{"switch": "switch-1", "linkWidth": 16}],
            }
        ],
        "devices": [
            {"name": name, "count": count, "switch": "switch-1", **_SORTS[name]}
            for name, count in {"gpu": gpus, **others}.items()
            if count
        ],
        "times": {
            "attach": {"kind": "lognormal", "median": 20.0, "sigma": 0.5, "max": 120.0},
            "detach": {"kind": "fixed", "seconds": 5.0},
        },
        "limits": {"jobs": 8},
        "backend": {"kind": "none"},
    }
    written: str = yaml.safe_dump(lab, sort_keys=False)
    return written


_SORTS: Final[Mapping[str, Mapping[str, object]]] = {
    "gpu": {
        "model": "NVIDIA-A100-80GB-PCIe",
        "type": "gpu",
        "attributes": {"vendor": "NVIDIA"},
        "capacity": {"memory": "80Gi"},
        "linkWidth": 16,
        "powerWatts": 300,
    },
    "cxl": {
        "model": "CXL-DRAM-256",
        "type": "cxlmemory",
        "capacity": {"memory": "256Gi"},
        "linkWidth": 8,
        "powerWatts": 40,
    },
    "nic": {
        "model": "NIC-200G",
        "type": "nic",
        "capacity": {"bandwidth": "200G"},
        "linkWidth": 16,
        "powerWatts": 25,
    },
    "fpga": {
        "model": "FPGA-VU9P",
        "type": "fpga",
        "capacity": {"memory": "64Gi"},
        "linkWidth": 16,
        "powerWatts": 225,
    },
}

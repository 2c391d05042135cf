"""The tree: which document is at which path, now.

Knows every path that can be read. Must not know HTTP, nor change anything.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from jackfield.codec.redfish import BLOCKS, COMPOSITION, ROOT, SESSIONS, SYSTEMS, TASKS, ZONES
from jackfield.fabric_manager.faces.redfish import documents, parts
from jackfield.fabric_manager.faces.redfish.accounts import Accounts, Role
from jackfield.fabric_manager.faces.redfish.documents import (
    ACCOUNT_SERVICE,
    ACCOUNTS,
    CHASSIS,
    FABRICS,
    ROLES,
    SCHEMAS,
    SESSION_SERVICE,
    TASK_SERVICE,
    collection,
)
from jackfield.fabric_manager.faces.redfish.names import FACE, Box, Names
from jackfield.fabric_manager.faces.redfish.protocol import Document, Message, tagged
from jackfield.fabric_manager.faces.redfish.reservations import Reservations
from jackfield.fabric_manager.faces.redfish.sessions import Sessions
from jackfield.fabric_manager.faces.redfish.tasks import Task, Tasks
from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.names import NodeName, PhysicalID, Seconds

Shown = Callable[..., Document | None]

KINDS: Final[Mapping[str, str]] = {
    "Processors": "Processor",
    "Memory": "Memory",
    "NetworkInterfaces": "NetworkInterface",
}
"""Where devices of a machine stand, and as what."""


class Notes:
    """What the face remembers beside the manager's books."""

    def __init__(self, manager: Manager, session_lasts: Seconds, reservation_lasts: Seconds) -> None:
        self.accounts = Accounts(manager.store)
        self.sessions = Sessions(manager.store, manager.clock, session_lasts)
        self.reservations = Reservations(manager.store, manager.clock, reservation_lasts)
        self.tasks = Tasks(manager.store, manager.books, manager.clock)


class Tree:
    """All that can be read."""

    def __init__(self, manager: Manager, notes: Notes) -> None:
        self._manager = manager
        self._notes = notes
        self.names = Names(manager.hardware)
        self._seen: Inventory | None = None
        self._machines: frozenset[NodeName] = frozenset()
        self._devices: Mapping[PhysicalID, FabricDevice] = {}
        self._on: Mapping[NodeName, list[PhysicalID]] = {}
        self._rows = [(re.compile(path), shown) for path, shown in self._table()]

    def find(self, path: str) -> Document | None:
        """Return the document at a path, with its ETag; nothing if there is none."""
        plain = path.rstrip("/")
        for pattern, shown in self._rows:
            found = pattern.fullmatch(plain)
            if found is not None:
                document = shown(**found.groupdict())
                return None if document is None else tagged(document)
        return None

    def _table(self) -> Iterator[tuple[str, Shown]]:
        notes = self._notes
        fabric = f"{FABRICS}/{re.escape(self.names.fabric)}"
        yield ROOT, lambda: documents.service_root(self.names)
        yield SYSTEMS, self._systems
        yield f"{SYSTEMS}/(?P<name>[^/]+)", self._system
        yield f"{SYSTEMS}/(?P<name>[^/]+)/(?P<member>{'|'.join(KINDS)})", self._system_parts
        yield f"{SYSTEMS}/(?P<name>[^/]+)/(?P<member>{'|'.join(KINDS)})/(?P<device>[^/]+)", self._system_part
        yield COMPOSITION, lambda: parts.composition_service(notes.reservations.lasts)
        yield BLOCKS, self._blocks
        yield f"{BLOCKS}/(?P<name>[^/]+)", self._block
        yield f"{BLOCKS}/(?P<name>[^/]+)/(?P<member>{'|'.join(KINDS)})/(?P<device>[^/]+)", self._block_part
        yield ZONES, lambda: self._boxes(ZONES, "Zone", "Zones")
        yield f"{ZONES}/(?P<name>[^/]+)", self._zone
        yield CHASSIS, lambda: self._boxes(CHASSIS, "Chassis", "Boxes")
        yield f"{CHASSIS}/(?P<name>[^/]+)", self._chassis
        yield f"{CHASSIS}/(?P<name>[^/]+)/NetworkAdapters", self._adapters
        yield f"{CHASSIS}/(?P<name>[^/]+)/NetworkAdapters/(?P<device>[^/]+)", self._adapter
        yield FABRICS, lambda: collection(FABRICS, "Fabric", "Fabrics", [f"{FABRICS}/{self.names.fabric}"])
        yield fabric, lambda: parts.fabric(self.names, self._manager.name)
        yield f"{fabric}/Switches", self._switches
        yield f"{fabric}/Switches/(?P<name>[^/]+)", self._switch
        yield f"{fabric}/Switches/(?P<name>[^/]+)/Ports", self._ports
        yield f"{fabric}/Switches/(?P<name>[^/]+)/Ports/(?P<port>[^/]+)", self._port
        yield ACCOUNT_SERVICE, documents.account_service
        yield ACCOUNTS, self._accounts
        yield f"{ACCOUNTS}/(?P<name>[^/]+)", self._account
        yield ROLES, lambda: collection(ROLES, "Role", "Roles", (f"{ROLES}/{one}" for one in Role))
        yield f"{ROLES}/(?P<name>[^/]+)", lambda name: documents.role(Role(name)) if name in {*Role} else None
        yield SESSION_SERVICE, lambda: documents.session_service(notes.sessions.lasts)
        yield SESSIONS, self._sessions
        yield f"{SESSIONS}/(?P<name>[^/]+)", self._session
        yield TASK_SERVICE, documents.task_service
        yield TASKS, self._tasks
        yield f"{TASKS}/(?P<name>[^/]+)", self._task
        yield SCHEMAS, documents.schemas
        yield f"{SCHEMAS}/(?P<name>[^/]+)", _schema

    # --- looking

    def _look(self) -> Inventory:
        """Index what there is, anew when it changed."""
        shown = self._manager.books.shown(FACE, self._manager.clock.now())
        if shown is not self._seen:
            self._seen = shown
            self._machines = frozenset(one.node for one in shown.machines)
            self._devices = {one.id: one for one in shown.devices}
            on: dict[NodeName, list[PhysicalID]] = {}
            for one in shown.devices:
                on.setdefault(one.node, []).append(one.id)
            self._on = on
        return shown

    def node(self, system: str) -> NodeName | None:
        """Return the machine of a system; nothing if there is no such system, or its machine is not reached."""
        name = self.names.nodes.get(system)
        return None if name is None or self._manager.faults.cut(name) else name

    def device(self, block: str) -> FabricDevice | None:
        """Return the device of a block; nothing if there is no such block, or its device is not to be seen."""
        name = self.names.devices.get(block)
        return self._device(name) if name is not None else None

    def _device(self, name: PhysicalID) -> FabricDevice | None:
        if self._manager.faults.stale(FACE):
            self._look()
            return self._devices.get(name)
        return self._manager.books.device(name, FACE)

    def on(self, node: NodeName) -> list[PhysicalID]:
        """Return the devices on a machine, in the order in which they came."""
        if self._manager.faults.stale(FACE):
            self._look()
            return self._on.get(node, [])
        there = [one.device for one in self._manager.books.on(node) if one.present]
        return [one for one in there if self._device(one) is not None]

    def _in(self, box: Box) -> list[FabricDevice]:
        self._look()
        return [self._devices[one] for one in box.devices if one in self._devices]

    def exists(self, path: str) -> bool:
        """Whether there is anything at a path."""
        place, _, name = path.rpartition("/")
        if place == SYSTEMS:
            return self.node(name) is not None
        return self.find(path) is not None

    # --- machines

    def _systems(self) -> Document:
        paths = [self.names.system_path(one.node) for one in self._look().machines]
        return collection(SYSTEMS, "ComputerSystem", "Machines", paths)

    def _system(self, name: str) -> Document | None:
        node = self.node(name)
        if node is None:
            return None
        blocks = [self.names.compute_path(node), *map(self.names.block_path, self.on(node))]
        return parts.system(self.names, node, blocks)

    def _system_parts(self, name: str, member: str) -> Document | None:
        node = self.node(name)
        if node is None:
            return None
        path = f"{self.names.system_path(node)}/{member}"
        there = (one for one in map(self._device, self.on(node)) if one is not None)
        found = [self.names.blocks[one.id] for one in there if parts.part_member(one.type) == member]
        return collection(path, KINDS[member], f"{member} of {node}", (f"{path}/{one}" for one in found))

    def _system_part(self, name: str, member: str, device: str) -> Document | None:
        shown = self.device(device)
        if shown is None or not shown.node or shown.node != self.node(name):
            return None
        return self._part(f"{self.names.system_path(shown.node)}/{member}", member, shown)

    def _part(self, path: str, member: str, shown: FabricDevice) -> Document | None:
        if parts.part_member(shown.type) != member:
            return None
        known = self._manager.hardware.devices[shown.id]
        return parts.part(f"{path}/{self.names.blocks[shown.id]}", shown, known, self.names)

    # --- blocks and zones

    def _blocks(self) -> Document:
        paths = [self.names.compute_path(one.node) for one in self._look().machines]
        paths += [self.names.block_path(one.id) for one in self._look().devices]
        return collection(BLOCKS, "ResourceBlock", "Resource blocks", paths)

    def _block(self, name: str) -> Document | None:
        own = self.names.compute_nodes.get(name)
        if own is not None:
            return parts.compute_block(self.names, own) if self.node(self.names.systems[own]) else None
        shown = self.device(name)
        if shown is None:
            return None
        holder = self._manager.books.holder(shown.id)
        reserved = bool(self._notes.reservations.by(shown.id))
        return parts.device_block(self.names, shown, holder, reserved=reserved)

    def _block_part(self, name: str, member: str, device: str) -> Document | None:
        shown = self.device(name)
        if shown is None or name != device:
            return None
        return self._part(f"{self.names.block_path(shown.id)}/{member}", member, shown)

    def _boxes(self, path: str, kind: str, name: str) -> Document:
        return collection(path, kind, name, (f"{path}/{box}" for box in self.names.boxes))

    def _zone(self, name: str) -> Document | None:
        box = self.names.boxes.get(name)
        if box is None:
            return None
        devices = self._in(box)
        nodes = [one for one in box.nodes if one in self._machines]
        return parts.zone(self.names, box, nodes, devices)

    # --- boxes and switches

    def _chassis(self, name: str) -> Document | None:
        box = self.names.boxes.get(name)
        return parts.chassis(self.names, box, self._in(box)) if box is not None else None

    def _adapters(self, name: str) -> Document | None:
        box = self.names.boxes.get(name)
        if box is None:
            return None
        path = f"{CHASSIS}/{name}/NetworkAdapters"
        found = [self.names.blocks[one.id] for one in self._in(box) if _network(one)]
        return collection(
            path, "NetworkAdapter", f"Adapters in {box.name}", (f"{path}/{one}" for one in found)
        )

    def _adapter(self, name: str, device: str) -> Document | None:
        shown = self.device(device)
        if shown is None or not _network(shown) or self.names.box_of[shown.id] != name:
            return None
        path = f"{CHASSIS}/{name}/NetworkAdapters/{device}"
        return parts.adapter(path, shown, self._manager.hardware.devices[shown.id])

    def _switches(self) -> Document:
        path = f"{FABRICS}/{self.names.fabric}/Switches"
        found = [f"{path}/{box.id}" for box in self.names.boxes.values() if box.switch]
        return collection(path, "Switch", "Switches", found)

    def _switch(self, name: str) -> Document | None:
        box = self.names.boxes.get(name)
        return parts.switch(self.names, box) if box is not None and box.switch else None

    def _ports(self, name: str) -> Document | None:
        if self._switch(name) is None:
            return None
        path = f"{FABRICS}/{self.names.fabric}/Switches/{name}/Ports"
        paths = (f"{path}/{port}" for port in self._plugged(self.names.boxes[name]))
        return collection(path, "Port", f"Ports of {self.names.boxes[name].name}", paths)

    def _port(self, name: str, port: str) -> Document | None:
        if self._switch(name) is None:
            return None
        path = f"{FABRICS}/{self.names.fabric}/Switches/{name}/Ports/{port}"
        found = self._plugged(self.names.boxes[name]).get(port)
        return parts.port(path, port, *found) if found is not None else None

    def _plugged(self, box: Box) -> dict[str, tuple[str, int]]:
        """Return what is plugged into a switch: its port's name, kind and lanes."""
        hardware = self._manager.hardware
        hosts = {
            f"host-{self.names.systems[node]}": ("UpstreamPort", port.link_width)
            for node in box.nodes
            for port in hardware.machines[node].ports
            if port.switch == box.switch
        }
        devices = {
            f"device-{self.names.blocks[one]}": ("DownstreamPort", hardware.devices[one].batch.link_width)
            for one in box.devices
        }
        return {**hosts, **devices}

    # --- accounts, sessions and tasks

    def _accounts(self) -> Document:
        paths = (f"{ACCOUNTS}/{one.user}" for one in self._notes.accounts)
        return collection(ACCOUNTS, "ManagerAccount", "Accounts", paths)

    def _account(self, name: str) -> Document | None:
        found = self._notes.accounts.get(name)
        return documents.account(found) if found is not None else None

    def _sessions(self) -> Document:
        paths = (f"{SESSIONS}/{one.id}" for one in self._notes.sessions)
        return collection(SESSIONS, "Session", "Sessions", paths)

    def _session(self, name: str) -> Document | None:
        found = self._notes.sessions.get(name)
        return documents.session(found) if found is not None else None

    def _tasks(self) -> Document:
        return collection(TASKS, "Task", "Tasks", (f"{TASKS}/{one.id}" for one in self._notes.tasks))

    def _task(self, name: str) -> Document | None:
        found = self._notes.tasks.get(name)
        return documents.task(found, told(found)) if found is not None else None


def told(task: Task) -> tuple[Message, ...]:
    """Return what there is to say of a task."""
    if not task.over:
        return ()
    if task.failures:
        return tuple(Message("OperationFailed", reason) for reason in task.failures)
    return (Message("Success", f"{task.node} is composed as was asked for.", severity="OK"),)


def _network(device: FabricDevice) -> bool:
    return parts.part_member(device.type) == "NetworkInterfaces"


def _schema(name: str) -> Document | None:
    return documents.schema(name) if name in documents.VERSIONS else None

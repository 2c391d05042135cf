"""The face of NEC's layout-apply and configuration manager (project-cdim): `codec.nec`, as their clients speak it.

Knows their calls, for the open source, which connects devices to CPUs, and for the product, which connects them to
fabric adapters: a machine here has both. Must not know what a job comes to: `nec_jobs` does.
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec import nec
from jackfield.codec.nec import Job, Operation, Procedure, Status
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk, Trouble, basic, bearer
from jackfield.fabric_manager.faces.nec_jobs import FACE, Impossible, Jobs, Moved
from jackfield.fabric_manager.faults import Call, Verb
from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.names import NodeName, PhysicalID

NAMES: Final = uuid.UUID("2a3c9f0e-8a0b-5c39-9f0d-6c1f3f3c2b77")
"""The name space in which CPUs and adapters get their UUIDs."""
NODE_LABEL: Final = "nec-node"
"""The label of a machine in the lab's file that names its node id, where it must be a certain one."""
GROUP: Final = "00000000-0000-7000-8000-000000000000"
"""The resource group that every resource is in."""
PROCEDURES_MAX: Final = 1000
TYPES: Final = {"gpu": "GPU", "fpga": "FPGA", "cxlmemory": "memory", "nic": "networkInterface"}
"""What CDIM calls a type of device; any other keeps its name."""
CODES: Final = {400: "E40001", 404: "E40020", 409: nec.ALREADY_RUNNING, 500: "E40018"}
ALREADY_EXECUTED: Final = "E40022"
CANNOT_DELETE: Final = "E40024"
SELECTABLE: Final = (
    "procedures",
    "applyResult",
    "rollbackProcedures",
    "rollbackResult",
    "resumeProcedures",
    "resumeResult",
)


class Coded(Trouble):
    """An error with a code of its own."""

    def __init__(self, status: int, code: str, words: str) -> None:
        super().__init__(status, words)
        self.code = code


class Nec:
    """The two services at /cdim/api/v1."""

    name = FACE
    prefixes = (nec.PREFIX,)

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return all calls."""
        named = Named(desk.manager)
        applies, configuration = _Applies(desk, named), _Configuration(desk, named)
        job = f"{nec.APPLIES}/{{job}}"
        return (
            web.post(nec.APPLIES, applies.begin),
            web.get(nec.APPLIES, applies.page),
            web.get(job, applies.show),
            web.put(job, applies.act),
            web.delete(job, applies.delete),
            web.get(nec.RESOURCES, configuration.resources),
            web.get(f"{nec.RESOURCES}/available", configuration.available),
            web.get(f"{nec.RESOURCES}/unused", configuration.unused),
            web.get(f"{nec.RESOURCES}/{{resource}}", configuration.resource),
            web.get(nec.NODES, configuration.nodes),
            web.get(f"{nec.NODES}/{{node}}", configuration.node),
        )

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it carries the token; the open source knows no authentication, so either way will do."""
        return bearer(request, token) or basic(request, token)

    def error(self, trouble: Trouble) -> web.Response:
        """Return an error as both services spell it."""
        code = trouble.code if isinstance(trouble, Coded) else CODES.get(trouble.status, "")
        headers = {"Retry-After": str(max(1, round(trouble.after)))} if trouble.after else {}
        return web.Response(
            status=trouble.status,
            body=nec.encode(nec.Error(code, trouble.words)),
            content_type=nec.JSON,
            headers=headers,
        )


class Named:
    """The lab under the names that these services use."""

    def __init__(self, manager: Manager) -> None:
        machines = manager.hardware.machines
        self.cpus: dict[NodeName, str] = {
            node: one.labels.get(NODE_LABEL) or _uuid(manager, "cpu", node) for node, one in machines.items()
        }
        self.sources = {node: _uuid(manager, "source", node) for node in machines}
        self.destinations = {node: _uuid(manager, "destination", node) for node in machines}
        self.resources: dict[PhysicalID, str] = {one: _id(one) for one in manager.hardware.devices}
        self.devices = {resource: device for device, resource in self.resources.items()}
        ways = (self.cpus, self.destinations, self.sources)
        self.ports = {one.lower(): node for way in ways for node, one in way.items()}


def _uuid(manager: Manager, kind: str, node: NodeName) -> str:
    return str(uuid.uuid5(NAMES, f"{manager.name}/{kind}/{node}"))


def _id(device: PhysicalID) -> str:
    """Return the device's own name where it can stand in a path."""
    try:
        return msgspec.convert(str(device), nec.Id)
    except msgspec.ValidationError:
        return str(uuid.uuid5(NAMES, f"device/{device}"))


def _json(value: object, status: int = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=nec.JSON)


def _bad(reason: str) -> Trouble:
    return Trouble(HTTPStatus.BAD_REQUEST, reason)


# --- layout-apply


class _Applies:
    """One job at a time; whoever comes meanwhile is told so."""

    def __init__(self, desk: Desk, named: Named) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = named
        self._jobs = Jobs(desk.manager, named.ports, named.devices)

    async def begin(self, request: web.Request) -> web.Response:
        procedures = _procedures(await self._desk.body(request))
        self._alone()
        await self._desk.meet(request, self._call(procedures))
        self._alone()  # another may have come while this one was held up
        job = self._jobs.begin(procedures)
        await self._manager.store.committed()
        return _json({"applyID": job.apply_id}, HTTPStatus.ACCEPTED)

    def _alone(self) -> None:
        """Raise what is told to those who come too early."""
        running = self._jobs.under_way
        stopped = self._manager.faults.suspended
        if running is not None and not running.suspended:
            words = "Already running. Cannot start multiple instances."
            raise Coded(HTTPStatus.CONFLICT, nec.ALREADY_RUNNING, words)
        if running is not None or stopped is not None:
            which = running.apply_id if running is not None else "none of these: another protocol's work is"
            words = f"Suspended data exist. Please resume layoutapply. applyID: {which}"
            raise Coded(HTTPStatus.CONFLICT, nec.SUSPENDED_EXISTS, words)

    def _call(self, procedures: tuple[Procedure, ...]) -> Call:
        """Return what a job is about: the first thing that it moves."""
        moves = [one for one in procedures if one.operation in {Operation.CONNECT, Operation.DISCONNECT}]
        if not moves:
            return Call(FACE, "layout-apply")
        first = moves[0]
        verb: Verb = "attach" if first.operation == Operation.CONNECT else "detach"
        device = self._named.devices.get(first.device, PhysicalID(""))
        return Call(FACE, verb, device, self._named.ports.get(first.port.lower(), NodeName("")))

    async def page(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "jobs"))
        query = _Query(request)
        found = query.chosen([*self._jobs])
        meant = found[query.offset : query.offset + query.limit]
        shown = [_shown(one, query.fields or ()) for one in meant]
        await self._manager.store.committed()
        return _json({"totalCount": len(found), "count": len(shown), "applyResults": shown})

    async def show(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "jobs"))
        job, query = self._job(request), _Query(request)
        await self._manager.store.committed()
        return _json(_shown(job, SELECTABLE if query.fields is None else query.fields))

    async def act(self, request: web.Request) -> web.Response:
        action = request.query.get("action", "")
        if action not in {"cancel", "resume"}:
            raise _bad(f"Unexpected strings '{action:.100}' is not one of ['cancel', 'resume']")
        rollback = _flag(request, "rollbackOnCancel")
        await self._desk.meet(request, Call(FACE, "cancel" if action == "cancel" else "resume"))
        job = self._job(request)
        try:
            cancel = action == "cancel"
            moved = await (self._jobs.cancel(job, rollback=rollback) if cancel else self._jobs.resume(job))
        except Impossible:
            words = "This layoutapply has already executed."
            raise Coded(HTTPStatus.CONFLICT, ALREADY_EXECUTED, words) from None
        await self._manager.store.committed()
        return _answered(moved)

    async def delete(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "delete"))
        try:
            self._jobs.forget(self._job(request))
        except Impossible:
            words = "Apply ID cannot be deleted because it is currently being running. Try later again."
            raise Coded(HTTPStatus.CONFLICT, CANNOT_DELETE, words) from None
        await self._manager.store.committed()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _job(self, request: web.Request) -> Job:
        name = request.match_info["job"]
        job = self._jobs.find(name)
        if job is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"Specified {name:.100} is not found.")
        return job


def _answered(moved: Moved) -> web.Response:
    told = {"status": moved.job.status}
    if moved.job.rollback_status:
        told["rollbackStatus"] = moved.job.rollback_status
    return _json(told, HTTPStatus.ACCEPTED if moved.accepted else HTTPStatus.OK)


def _procedures(body: bytes) -> tuple[Procedure, ...]:
    """Return what a job is to do. Raises Trouble if that cannot be done in any order."""
    try:
        found = nec.procedures(body)
    except nec.BadMessage as error:
        raise _bad(f"the request is not understood: {error}") from error
    if len(found) > PROCEDURES_MAX:
        raise _bad(f"a job has at most {PROCEDURES_MAX} procedures")
    for one in found:
        if one.operation not in {*Operation}:
            raise _bad(
                f"Unexpected strings '{one.operation:.100}' is not one of {[str(each) for each in Operation]}"
            )
        if not one.device or (not one.port and one.operation in {Operation.CONNECT, Operation.DISCONNECT}):
            raise _bad(f"operation {one.operation_id} does not say what it is about")
    _orderly(found)
    return found


def _orderly(procedures: tuple[Procedure, ...]) -> None:
    """Raise Trouble if the dependencies leave no order in which all can be done."""
    ids = [one.operation_id for one in procedures]
    if len(ids) > len(set(ids)):
        raise _bad("two operations have one operationID")
    if not {*ids}.issuperset(step for one in procedures for step in one.dependencies):
        raise _bad("an operation depends on one that is not there")
    left = list(procedures)
    while left:
        waiting = {one.operation_id for one in left}
        rest = [one for one in left if waiting.intersection(one.dependencies)]
        if len(rest) == len(left):
            raise _bad("the dependencies go round in a circle")
        left = rest


def _shown(job: Job, fields: Iterable[str]) -> dict[str, object]:
    """Return what is told of a job: while it is at work, no more than that."""
    every: dict[str, object] = msgspec.to_builtins(job)
    if job.status == Status.IN_PROGRESS:
        names = ["applyID", "status", "startedAt", "resumedAt"]
    elif job.status == Status.CANCELING:
        names = ["applyID", "status", "startedAt", "canceledAt", "executeRollback", "resumedAt"]
    else:
        names = [one for one in every if one not in SELECTABLE or one in {*fields}]
    return {name: every[name] for name in names if name in every}


class _Query:
    """What is asked of a list of jobs. Raises Trouble."""

    def __init__(self, request: web.Request) -> None:
        self._query = request.query
        self.fields = self._query.getall("fields") if "fields" in self._query else None
        for one in self.fields or ():
            if one not in SELECTABLE:
                raise _bad(f"'{one:.100}' is not one of {[*SELECTABLE]}")
        self.limit = self._number("limit", 20, 1)
        self.offset = self._number("offset", 0, 0)
        self._by = self._word("sortBy", "startedAt", ("startedAt", "endedAt"))
        self._order = self._word("orderBy", "desc", ("asc", "desc"))
        self._status = self._word("status", "", ("", *Status))

    def chosen(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that are meant, in the order that is meant."""
        found = [one for one in jobs if self._status in {"", one.status} and self._in_time(one)]
        if self._by == "endedAt":
            found.sort(key=lambda one: one.ended_at or "")
        return found if self._order == "asc" else found[::-1]

    def _in_time(self, job: Job) -> bool:
        return all(
            self._between(name, time)
            for name, time in (("startedAt", job.started_at), ("endedAt", job.ended_at))
        )

    def _between(self, name: str, time: str | None) -> bool:
        since, until = self._time(f"{name}Since"), self._time(f"{name}Until")
        if since is None and until is None:
            return True
        if not time:
            return False
        at = datetime.fromisoformat(time)
        return (since is None or at >= since) and (until is None or at <= until)

    def _time(self, name: str) -> datetime | None:
        text = self._query.get(name)
        if text is None:
            return None
        try:
            found = datetime.fromisoformat(text.replace(" ", "+"))
        except ValueError:
            raise _bad(f"{name}: '{text:.100}' is not a time") from None
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

    def _number(self, name: str, default: int, least: int) -> int:
        text = self._query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < len("1000000000")) or int(text) < least:
            raise _bad(f"{name}: '{text:.100}' is not a number from {least}")
        return int(text)

    def _word(self, name: str, default: str, words: tuple[str, ...]) -> str:
        text = self._query.get(name, default)
        if text not in words:
            raise _bad(f"{name}: '{text:.100}' is not one of {[str(one) for one in words if one]}")
        return text


def _flag(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "").lower()
    if text not in {"", "true", "false"}:
        raise _bad(f"{name}: '{text:.100}' is neither true nor false")
    return text == "true"


# --- the configuration manager


class _Configuration:
    """Shows what there is: devices, and of each machine a CPU and a pair of fabric adapters."""

    def __init__(self, desk: Desk, named: Named) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = named

    async def resources(self, request: web.Request) -> web.Response:
        detail = _flag(request, "detail")
        return _listed("resources", [_brief(one, detail=detail) for one in await self._all(request)])

    async def available(self, request: web.Request) -> web.Response:
        found = [one for one in await self._all(request) if one.usable and one.detected]
        return _listed("resources", sorted(found, key=_by_type))

    async def unused(self, request: web.Request) -> web.Response:
        found = [
            one for one in await self._all(request) if one.usable and one.detected and not one.device.links
        ]
        return _listed("resources", sorted(found, key=_by_type))

    async def resource(self, request: web.Request) -> web.Response:
        name = request.match_info["resource"]
        found = next((one for one in await self._all(request) if one.device.device_id == name), None)
        if found is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no resource {name:.100}")
        return _json(found)

    async def nodes(self, request: web.Request) -> web.Response:
        detail = _flag(request, "detail")
        return _listed("nodes", self._nodes(await self._all(request), detail=detail))

    async def node(self, request: web.Request) -> web.Response:
        name = request.match_info["node"].lower()
        nodes = self._nodes(await self._all(request), detail=True)
        found = next((one for one in nodes if str(one["id"]).lower() == name), None)
        if found is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no node {name:.100}")
        return _json(found)

    def _nodes(self, every: list[nec.Resource], *, detail: bool) -> list[dict[str, object]]:
        there: dict[str, list[object]] = {one: [] for one in sorted(self._named.cpus.values())}
        for one in every:
            for node in one.node_ids or ():
                there[node].append(_brief(one, detail=detail))
        names = {cpu: node for node, cpu in self._named.cpus.items()}
        return [{"id": cpu, "name": names[cpu], "resources": found} for cpu, found in there.items()]

    async def _all(self, request: web.Request) -> list[nec.Resource]:
        await self._desk.meet(request, Call(FACE, "inventory"))
        inventory = await self._manager.inventory(FACE)
        found = [*self._devices(inventory), *self._machines(inventory)]
        return sorted(found, key=lambda one: one.device.device_id)

    def _devices(self, inventory: Inventory) -> Iterator[nec.Resource]:
        shown = {one.id: one for one in inventory.devices}
        for name, hardware in self._manager.hardware.devices.items():
            one = shown.get(name)
            fit = one is not None and one.healthy
            device = nec.Device(
                device_id=self._named.resources[name],
                type=TYPES.get(hardware.batch.type, hardware.batch.type),
                model=hardware.batch.model,
                manufacturer=hardware.batch.attributes.get("vendor"),
                serial_number=hardware.serial,
                status=nec.State("Enabled" if one is not None else "Absent", "OK" if fit else "Critical"),
                power_state="On",
                device_switch_info=hardware.batch.switch or None,
                links=self._links(one),
                constraints=self._constraints(one),
            )
            yield self._resource(device, one.node if one else NodeName(""), detected=one is not None)

    def _links(self, one: FabricDevice | None) -> tuple[nec.Link, ...]:
        """Return what a device is connected to: the CPU for some clients, the adapter, under two names, for others."""
        if one is None or not one.node:
            return ()
        adapter = self._named.destinations[one.node]
        cpu = nec.Link(self._named.cpus[one.node], "CPU")
        return cpu, nec.Link(adapter, "destinationFabricAdapter"), nec.Link(adapter, "eeio")

    def _constraints(self, one: FabricDevice | None) -> nec.Constraints | None:
        """Return that a device cannot be removed: it was not attached here."""
        if one is None or not one.node or one.ours:
            return None
        return nec.Constraints((nec.Link(self._named.cpus[one.node], "CPU"),))

    def _machines(self, inventory: Inventory) -> Iterator[nec.Resource]:
        shown = {one.node for one in inventory.machines}
        linked: dict[NodeName, list[nec.Link]] = {}
        for one in inventory.devices:
            if one.node:
                link = nec.Link(self._named.resources[one.id], TYPES.get(one.type, one.type))
                linked.setdefault(one.node, []).append(link)
        for node, cpu in self._named.cpus.items():
            source, destination = self._named.sources[node], self._named.destinations[node]
            far = (nec.Link(destination, "destinationFabricAdapter"),)
            near = (nec.Link(source, "sourceFabricAdapter"),)
            parts = (
                _part(cpu, "CPU", (*linked.get(node, ()),), {"hostname": node}),
                _part(source, "sourceFabricAdapter", far, {"deviceSpecificInformation": {"status": "eesv"}}),
                _part(
                    destination,
                    "destinationFabricAdapter",
                    near,
                    {"deviceSpecificInformation": {"status": "eeio"}},
                ),
            )
            for part in parts:
                yield self._resource(part, node, detected=node in shown)

    def _resource(self, device: nec.Device, node: NodeName, *, detected: bool) -> nec.Resource:
        nodes = (self._named.cpus[node],) if node else ()
        return nec.Resource(device, detected, nodes, nec.Annotation(), (GROUP,))


def _part(name: str, kind: str, links: tuple[nec.Link, ...], attribute: object) -> nec.Device:
    status = nec.State("Enabled", "OK")
    return nec.Device(name, kind, status=status, power_state="On", links=links, attribute=attribute)


def _by_type(one: nec.Resource) -> tuple[str, str]:
    return one.device.type or "", one.device.device_id


def _brief(one: nec.Resource, *, detail: bool) -> nec.Resource:
    """Return what represents a resource, or all of it."""
    if detail:
        return one
    device = nec.Device(one.device.device_id, one.device.type, status=one.device.status)
    return msgspec.structs.replace(one, device=device)


def _listed(name: str, found: list[nec.Resource] | list[dict[str, object]]) -> web.Response:
    return _json({"count": len(found), name: found})

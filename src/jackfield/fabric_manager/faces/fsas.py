"""The face of Fsas Fabric Manager, Cluster Manager and id_manager: `codec.fsas`, as software for those speaks it.

Knows their calls: FM answers when the device is there, CM at once and shows what became of it. Must not know what an
order comes to. Neither knows order ids, so each attach is an order of its own; what failed to come stays in CM's list
until it is removed, and is noted, as all else is in the books.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

import msgspec
from aiohttp import web

from jackfield.codec import fsas
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager import past
from jackfield.fabric_manager.faces import Desk, Trouble, bearer
from jackfield.fabric_manager.faults import Call
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.orders import Entry, State
from jackfield.model.fabric import Done, FabricDevice, Failed, Order, Progress
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock

FACE: Final = "fsas"
FABRIC_ID: Final = 1
NAMES: Final = uuid.UUID("6f0a4b0c-3f5e-5a53-9c58-2f6f4f0d7b21")
"""The name space in which machines, specs and node groups get their UUIDs."""
MACHINE_LABEL: Final = "fsas-machine"
"""The label of a machine in the lab's file that names its UUID, where it must be a certain one."""
ANSWER_SECONDS: Final = Seconds(180.0)
"""So long FM's answer is held back; the work goes on."""
LIFETIME: Final = Seconds(300.0)
FIELDS_MAX: Final = 32
LOGIN: Final = "/id_manager/"
LOGIN_PATH: Final = re.compile(r"/id_manager/realms/[^/{}]+/protocol/openid-connect/token")
NODEGROUPS: Final = "/cluster_manager/cluster_autoscaler/v2/tenants/{tenant}/clusters/{cluster}/nodegroups"

_PROGRESS: Final[Mapping[State, str]] = {
    State.QUEUED: "ADD_PROGRESS",
    State.ATTACHING: "ADD_PROGRESS",
    State.ATTACHED: fsas.ADD_COMPLETE,
    State.DETACHING: "REMOVE_PROGRESS",
    State.ENDED: fsas.ADD_FAILED,
}

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Fsas:
    """The three services at /fabric_manager, /cluster_manager and /id_manager."""

    name = FACE
    prefixes = ("/fabric_manager/", "/cluster_manager/", LOGIN)

    def __init__(self, lifetime: Seconds = LIFETIME) -> None:
        self._lifetime = lifetime
        self._clock: Clock | None = None
        self._key = Secret("")
        """What the manager's door opens to; known once somebody knocks."""

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return all calls."""
        self._clock = desk.manager.clock
        fabric, cluster = _FabricManager(desk), _ClusterManager(desk)
        machine, counted = (
            f"{fsas.FM}/{{machine}}",
            f"{fsas.CM}/{{tenant}}/clusters/{{cluster}}/machines/{{machine}}",
        )
        return (
            web.post(f"{LOGIN}realms/{{realm}}/protocol/openid-connect/token", self._log_in(desk)),
            web.get(fsas.FM, fabric.machines),
            web.get(machine, fabric.machine),
            web.get(f"{machine}/available-reserved-resources", fabric.available),
            web.patch(f"{machine}/update", fabric.attach),
            web.delete(f"{machine}/update", fabric.detach),
            web.get(counted, cluster.machine),
            web.post(f"{counted}/actions/resize", cluster.resize),
            web.get(NODEGROUPS, cluster.groups),
            web.get(f"{NODEGROUPS}/{{group}}", cluster.group),
        )

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it carries a token that was given out here, or the manager's own; a log-in is judged by itself."""
        if request.method == "POST" and LOGIN_PATH.fullmatch(request.path):
            self._key = token
            return True
        if bearer(request, token):
            return True
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self._clock is None or not _signed(shown, token):
            return False
        return (fsas.expiry(shown) or 0.0) > self._clock.now()

    def error(self, trouble: Trouble) -> web.Response:
        """Return an error as both managers spell it."""
        cause = type(trouble.cause).__name__ if trouble.cause else str(trouble.status)
        told = fsas.Error(status=trouble.status, detail=fsas.ErrorDetail(code=cause, message=trouble.words))
        headers = {"Retry-After": str(max(1, round(trouble.after)))} if trouble.after else {}
        return web.Response(
            status=trouble.status, body=fsas.encode(told), content_type=fsas.JSON, headers=headers
        )

    def _log_in(self, desk: Desk) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            body = await desk.body(request)
            await desk.meet(request, Call(FACE, "token"))
            form = _form(body)
            proofs = {"password": form.get("password"), "client_credentials": form.get("client_secret")}
            proof = proofs.get(form.get("grant_type", "")) or ""
            token = self._key
            if not hmac.compare_digest(proof.encode(errors="replace"), token.reveal().encode()):
                return _json({"error": "invalid_grant"}, HTTPStatus.UNAUTHORIZED)
            given = _jwt(token, Seconds(desk.manager.clock.now() + self._lifetime))
            return _json({"access_token": given, "expires_in": self._lifetime, "token_type": "Bearer"})

        return handler


# --- tokens


def _form(body: bytes) -> dict[str, str]:
    """Return what a log-in says; nothing if it cannot be understood."""
    try:
        found = parse_qs(body.decode(), max_num_fields=FIELDS_MAX)
    except ValueError:
        return {}
    return {name: texts[0] for name, texts in found.items()}


def _jwt(key: Secret, until: Seconds) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"exp": until, "jti": secrets.token_hex(8)})
    text = ".".join(_coded(msgspec.json.encode(part)) for part in parts)
    return f"{text}.{_signature(text, key)}"


def _signed(shown: str, key: Secret) -> bool:
    text, _, signature = shown.rpartition(".")
    return hmac.compare_digest(signature.encode(errors="replace"), _signature(text, key).encode())


def _signature(text: str, key: Secret) -> str:
    return _coded(hmac.new(key.reveal().encode(), text.encode(errors="replace"), hashlib.sha256).digest())


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# --- the names of things


class Named:
    """The lab under the names that these managers use."""

    def __init__(self, manager: Manager) -> None:
        fabric = manager.name
        self.fabric = str(uuid.uuid5(NAMES, fabric))
        self._faults = manager.faults
        self.uuids: dict[NodeName, str] = {
            node: machine.labels.get(MACHINE_LABEL) or str(uuid.uuid5(NAMES, f"{fabric}/machine/{node}"))
            for node, machine in manager.hardware.machines.items()
        }
        self.nodes = {machine.lower(): node for node, machine in self.uuids.items()}
        self.kinds: dict[ModelName, str] = {
            device.batch.model: device.batch.type for device in manager.hardware.devices.values()
        }
        self.resources: dict[PhysicalID, str] = {one: _id(one) for one in manager.hardware.devices}
        self.devices = {resource: device for device, resource in self.resources.items()}
        self.serials = {one.serial: one.id for one in manager.hardware.devices.values()}

    def node(self, request: web.Request) -> NodeName:
        """Return the node that a path is about. Raises Trouble."""
        found = self.nodes.get(request.match_info["machine"].lower())
        if found is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no machine {request.match_info['machine']}")
        if request.method == "GET" and self._faults.cut(found):
            raise Trouble(HTTPStatus.SERVICE_UNAVAILABLE, f"machine {found} cannot be reached")
        return found


def _id(device: PhysicalID) -> str:
    """Return the device's own name where it can stand in a path."""
    try:
        return msgspec.convert(str(device), fsas.Id)
    except msgspec.ValidationError:
        return str(uuid.uuid5(NAMES, f"device/{device}"))


def _conditions(model: ModelName) -> tuple[fsas.Condition, ...]:
    return (fsas.Condition(fsas.MODEL, fsas.EQUAL, model),)


def _json(value: object, status: int = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=fsas.JSON)


def _bad(reason: str) -> Trouble:
    return Trouble(HTTPStatus.BAD_REQUEST, reason)


async def _placed(manager: Manager, node: NodeName, model: ModelName, kind: str) -> tuple[Order, Progress]:
    """Order one device of a model."""
    order = Order(OrderID(f"{FACE}/{secrets.token_hex(16)}"), manager.name, node, model, type=kind)
    return order, await manager.attach(order, FACE)


# --- the Fabric Manager


class _FabricManager:
    """Attaches and detaches while one waits."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = Named(desk.manager)

    async def machines(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "inventory"))
        tenant = request.query.get("tenant_uuid", "")
        nodes = [one.node for one in (await self._manager.inventory(FACE)).machines]
        shown = tuple(self._machine(node, tenant, ()) for node in nodes)
        return _json(fsas.MachinesAnswer(fsas.Machines(shown)))

    async def machine(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        await self._desk.meet(request, Call(FACE, "inventory", node=node))
        there = [one for one in (await self._manager.inventory(FACE)).devices if one.node == node]
        return self._answer(request, node, there)

    async def available(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        await self._desk.meet(request, Call(FACE, "inventory", node=node))
        try:
            wanted = msgspec.json.decode(request.query.get("condition", "{}"), type=fsas.Condition)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _bad(f"condition: {error}") from error
        kind, model = request.query.get("res_type", ""), fsas.model_in((wanted,))
        devices = (await self._manager.inventory(FACE)).devices
        free = sum((one.type, one.model, one.node, one.healthy) == (kind, model, "", True) for one in devices)
        return _json(fsas.Available(free, FABRIC_ID))

    async def attach(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        asked = await self._asked(request)
        model = fsas.model_in((asked.res_spec.condition or ()) if asked.res_spec else ())
        await self._desk.meet(request, Call(FACE, "attach", node=node))
        order, progress = await _placed(self._manager, node, ModelName(model), asked.res_type)
        progress = await self._manager.settle(
            lambda: self._manager.attach(order, FACE), order.id, ANSWER_SECONDS
        )
        there = [one for one in (await self._manager.inventory(FACE)).devices if one.order == order.id]
        return self._answer(request, node, self._ended(progress, there))

    async def detach(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        asked = await self._asked(request)
        device = self._named.devices.get(asked.res_uuid, PhysicalID(""))
        await self._desk.meet(request, Call(FACE, "detach", device, node))
        holder = self._manager.books.holder(device)
        if holder is None or holder.node != node:
            raise Trouble(HTTPStatus.NOT_FOUND, f"machine {node} has no resource {asked.res_uuid}")
        if holder.owner != FACE:
            raise Trouble(HTTPStatus.FORBIDDEN, f"resource {asked.res_uuid} was attached by {holder.owner}")
        order = holder.order
        progress = await self._manager.settle(
            lambda: self._manager.detach(order, FACE), order.id, ANSWER_SECONDS
        )
        return self._answer(request, node, self._ended(progress, []))

    def _ended(self, progress: Progress, there: list[FabricDevice]) -> list[FabricDevice]:
        if isinstance(progress, Failed):
            raise _bad(progress.reason)
        if not isinstance(progress, Done):
            raise Trouble(HTTPStatus.GATEWAY_TIMEOUT, f"it was not done within {ANSWER_SECONDS:g} s")
        return there

    async def _asked(self, request: web.Request) -> fsas.Asked:
        try:
            update = fsas.update(await self._desk.body(request))
        except fsas.BadMessage as error:
            raise _bad(f"the request is not understood: {error}") from error
        found = [
            (machine.mach_uuid, asked)
            for machine in update.tenants.machines
            for specs in machine.resources
            for asked in specs.res_specs
        ]
        if len(found) != 1 or found[0][1].res_num != 1:
            raise _bad("one resource of one machine is changed at a time")
        if found[0][0].lower() != request.match_info["machine"].lower():
            raise _bad("the machine in the body is not the one in the path")
        return found[0][1]

    def _answer(self, request: web.Request, node: NodeName, there: list[FabricDevice]) -> web.Response:
        resources = tuple(self._resource(one) for one in there)
        machine = self._machine(node, request.query.get("tenant_uuid", ""), resources)
        return _json(fsas.MachinesAnswer(fsas.Machines((machine,))))

    def _machine(self, node: NodeName, tenant: str, resources: tuple[fsas.Resource, ...]) -> fsas.Machine:
        return fsas.Machine(
            mach_uuid=self._named.uuids[node],
            fabric_id=FABRIC_ID,
            fabric_uuid=self._named.fabric,
            mach_name=node,
            tenant_uuid=tenant,
            resources=resources,
        )

    def _resource(self, device: FabricDevice) -> fsas.Resource:
        return fsas.Resource(
            res_uuid=self._named.resources[device.id],
            res_type=device.type,
            res_name=device.id,
            res_op_status="0" if device.healthy else "2",
            res_serial_num=device.serial,
            res_spec=fsas.Spec(_conditions(device.model)),
        )


# --- the Cluster Manager


class _ClusterManager:
    """Keeps as many devices of a spec on a machine as it was last told."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = Named(desk.manager)
        self._writing: dict[NodeName, asyncio.Lock] = {}
        self._specs: dict[tuple[NodeName, ModelName], str] = {}
        self._ordered: dict[OrderID, tuple[NodeName, str]] = {
            OrderID(key): msgspec.json.decode(text, type=tuple[NodeName, str])
            for key, text in self._manager.store.notes(FACE).items()
        }
        """What was asked for and not removed yet, as it is noted in the store."""

    async def groups(self, _: web.Request) -> web.Response:
        return _json({"nodegroups": [{"uuid": self._group, "name": self._manager.name}]})

    async def group(self, request: web.Request) -> web.Response:
        if request.match_info["group"] != self._group:
            raise Trouble(HTTPStatus.NOT_FOUND, "there is no such node group")
        members = [*self._named.uuids.values()]
        return _json({"uuid": self._group, "name": self._manager.name, "mach_ids": members})

    @property
    def _group(self) -> str:
        return str(uuid.uuid5(NAMES, f"{self._manager.name}/group"))

    async def machine(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        await self._desk.meet(request, Call(FACE, "inventory", node=node))
        tenant, cluster = request.match_info["tenant"], request.match_info["cluster"]
        specs = tuple(self._spec(node, model, self._listed(node, model)) for model in self._named.kinds)
        machine = fsas.CmMachine(self._named.uuids[node], node, "ACTIVE", "", specs)
        await self._manager.store.committed()
        return _json(fsas.CmAnswer(fsas.CmTenant(fsas.CmCluster(machine, cluster), tenant)))

    async def resize(self, request: web.Request) -> web.Response:
        node = self._named.node(request)
        try:
            asked = fsas.resize(await self._desk.body(request))
        except fsas.BadMessage as error:
            raise _bad(f"the request is not understood: {error}") from error
        async with self._writing.setdefault(node, asyncio.Lock()):
            match asked:
                case fsas.Resize(increase_resource_count=fsas.Increase() as more, remove_resources=None):
                    await self._desk.meet(request, Call(FACE, "attach", node=node))
                    await self._increase(node, more)
                case fsas.Resize(increase_resource_count=None, remove_resources=fsas.Remove() as fewer):
                    await self._remove(request, node, fewer)
                case _:
                    raise _bad("either increase_resource_count or remove_resources is needed")
            await self._manager.store.committed()
        return _json({"status": "success"})

    async def _increase(self, node: NodeName, asked: fsas.Increase) -> None:
        model = self._model(node, asked.spec_uuid)
        spec = self._spec(node, model)
        if asked.device_count > (spec.max_resspec_count or 0):
            raise _bad(f"{node} may have {spec.max_resspec_count} of {model}")
        for _ in range(asked.device_count - spec.device_count):
            order, progress = await _placed(self._manager, node, model, self._named.kinds[model])
            if isinstance(progress, Failed):
                raise _bad(progress.reason)
            self._note(order.id, (node, model))

    async def _remove(self, request: web.Request, node: NodeName, asked: fsas.Remove) -> None:
        spec = self._spec(node, self._model(node, asked.spec_uuid))
        known = {one.device_id for one in spec.devices or ()}
        if not asked.devices or not known.issuperset(asked.devices):
            raise Trouble(HTTPStatus.NOT_FOUND, "the machine has no such device")
        if asked.device_count != spec.device_count - len(asked.devices):
            raise _bad(f"there are {spec.device_count}; {asked.device_count} is not what is left")
        for serial in asked.devices:
            device = self._named.serials[serial]
            await self._desk.meet(request, Call(FACE, "detach", device, node))
            holder = self._manager.books.holder(device)
            if holder is not None and holder.node == node and holder.owner != FACE:
                raise Trouble(HTTPStatus.FORBIDDEN, f"device {serial} was attached by {holder.owner}")
            for entry in self._entries(node, spec.model):
                if entry.device == device:
                    await self._manager.detach(entry.order, FACE)
                    self._forget(entry.order.id)

    def _model(self, node: NodeName, spec: str) -> ModelName:
        found = next((one for one in self._named.kinds if self._spec_uuid(node, one) == spec), None)
        if found is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"{node} has no spec {spec}")
        return found

    def _spec_uuid(self, node: NodeName, model: ModelName) -> str:
        known = self._specs.get((node, model))
        if known is None:
            known = str(uuid.uuid5(NAMES, f"{self._manager.name}/spec/{node}/{model}"))
            self._specs[node, model] = known
        return known

    def _spec(self, node: NodeName, model: ModelName, listed: tuple[Entry, ...] | None = None) -> fsas.CmSpec:
        entries = listed if listed is not None else self._entries(node, model)
        return fsas.CmSpec(
            spec_uuid=self._spec_uuid(node, model),
            type=self._named.kinds[model],
            selector=fsas.Selector("1.0", fsas.Expression(_conditions(model))),
            max_resspec_count=self._manager.hardware.machines[node].slots,
            device_count=sum(one.state is not State.DETACHING for one in entries),
            devices=tuple(self._device(node, one) for one in entries),
        )

    def _entries(self, node: NodeName, model: str) -> tuple[Entry, ...]:
        """Return what holds a device of a model on a machine, and what failed to and was not removed yet."""
        books, devices = self._manager.books, self._manager.hardware.devices
        live = [one for one in books.on(node) if devices[one.device].batch.model == model]
        noted = (books.find(order) for order, place in self._ordered.items() if place == (node, model))
        failed = [one for one in noted if one and one.state is State.ENDED and not one.closed and one.device]
        return (*live, *failed)

    def _listed(self, node: NodeName, model: ModelName) -> tuple[Entry, ...]:
        """Return the same as it is shown, which may be old."""
        entries = self._entries(node, model)
        if not self._manager.faults.stale(FACE):
            return entries
        shown = self._manager.books.shown(FACE, self._manager.clock.now())
        return past.listed(entries, shown, node, model)

    def _note(self, order: OrderID, place: tuple[NodeName, str]) -> None:
        self._ordered[order] = place
        self._manager.store.note(FACE, order, msgspec.json.encode(place))

    def _forget(self, order: OrderID) -> None:
        if self._ordered.pop(order, None) is not None:
            self._manager.store.note(FACE, order, None)

    def _device(self, node: NodeName, entry: Entry) -> fsas.CmDevice:
        device = self._manager.hardware.devices[entry.device]
        shown = (one for one in self._manager.books.inventory(FACE).devices if one.id == entry.device)
        healthy = any(one.healthy for one in shown)  # what vanished is not
        status = _PROGRESS[entry.state]
        if entry.state is State.ATTACHED and entry.reason:
            status = fsas.REMOVE_FAILED
        return fsas.CmDevice(
            device_id=device.serial,
            status=status,
            status_reason=entry.reason,
            detail=fsas.Detail(
                res_uuid=self._named.resources[entry.device],
                res_type=device.batch.type,
                res_op_status="0" if healthy else "2",
                resspecs=(fsas.Product(model=device.batch.model, removable=entry.owner == FACE),),
                mach_uuid=self._named.uuids[node],
            ),
        )

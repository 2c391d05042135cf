"""What NEC's layout-apply and configuration manager are told and show: settings, calls, what stands where.

Knows two services of one fabric and how calls to them end. Must not know what is done about it: that is the adapter's.
"""

import base64
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

import msgspec

from jackfield.codec import nec
from jackfield.fabric.http import Answer, Request, Unsent, Wire
from jackfield.fabric.settings import BadFabric, FabricSettings, Secret, Token, faults, options, token
from jackfield.model.fabric import FabricDevice, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.ports import PortError, Refused, Retry

T = TypeVar("T")

POLL: Final = Seconds(1.0)
"""How soon a manager is asked again that has trouble of its own."""
UNCLEAR_AGAIN: Final = Seconds(30.0)
"""When a manager is asked again that does not understand us, or itself."""
POST_SECONDS: Final = Seconds(30.0)
"""How long the manager may take to say that a job has begun."""
DELETED: Final = "DELETED"
"""What we call a job that the manager does not know any more."""
SPAN_MAX: Final = Seconds(3600.0)


class Wiring(StrEnum):
    """What a device is connected to."""

    CPU = "cpu"
    """The machine's CPU, as in the open source: `targetCPUID`, `targetDeviceID`."""
    FABRIC_ADAPTER = "fabricAdapter"
    """The fabric adapter behind the machine's own, as in NEC's product: `sourceDeviceID`, `destinationDeviceID`."""


class Model(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A model of device that this fabric offers."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    """What the manager calls it: the `cdi-model-name` of the policy."""
    type: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "gpu"
    """The manager's type of device, in any case."""


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric of NEC."""

    models: Annotated[tuple[Model, ...], msgspec.Meta(min_length=1, max_length=1000)]
    """The models that are offered."""
    configuration_url: str = ""
    """Where the configuration manager listens; where layout-apply does, if nothing is said."""
    wiring: Wiring = Wiring.CPU
    """What a device is connected to."""
    machines: Mapping[str, nec.Id] = {}
    """The manager's node id for every node, which in the open source is its CPU's device id."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """How many devices a machine can have; the manager does not say."""
    groups: tuple[str, ...] = ()
    """The resource groups whose devices are ours; all of them, if nothing is said."""
    foreign: tuple[str, ...] = ()
    """Devices, by id or serial number, that somebody else attached: they are never touched."""
    serials: Mapping[str, str] = {}
    """The serial number or GPU UUID of devices, by id, where the manager does not say it."""
    user: Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[!-9;-~]*$")] = ""
    """With it the token is this user's password (Basic); without, it is sent as it is (Bearer)."""
    effect_seconds: Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)] = Seconds(180.0)
    """A job that has begun is done, and shown to be, within this time; an attach that takes longer is cancelled."""
    queue_seconds: Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)] = Seconds(180.0)
    """How long an order may wait for the jobs before it, ours and others', before it is sent."""

    @property
    def traits(self) -> Traits:
        """How the manager differs from others."""
        return Traits(
            knows_orders=False, call_timeout=Seconds(self.queue_seconds + self.effect_seconds), jobs=1
        )


def read_options(settings: FabricSettings) -> Options:
    """Return the options as they are meant. Raises BadFabric naming the setting."""
    found = options(settings, Options)
    names = [one.name for one in found.models]
    if len(names) > len(set(names)):
        raise BadFabric("options.models: two have one name")
    ids = [one.lower() for one in found.machines.values()]
    if len(ids) > len(set(ids)):
        raise BadFabric("options.machines: two nodes are one machine")
    if found.user and not (settings.token_file or settings.token_variable):
        raise BadFabric("options.user: means nothing without its password, in tokenFile or tokenVariable")
    return found


def site(settings: FabricSettings, environment: Mapping[str, str]) -> "Site":
    """Return the line to the two services. Raises BadFabric naming the setting."""
    found = read_options(settings)
    elsewhere = msgspec.structs.replace(settings, url=found.configuration_url or settings.url)
    wrong = next((one for one in faults(elsewhere) if one.startswith("url: ")), "")
    if wrong:
        raise BadFabric(f"options.configurationUrl{wrong.removeprefix('url')}")
    proof = token(settings, environment)
    applies = Service(Wire(settings, nec.JSON), proof, found.user)
    configuration = Service(Wire(elsewhere, nec.JSON), proof, found.user)
    return Site(settings.name, found, applies, configuration)


# --- calls, and how they end


class Begun(msgspec.Struct, frozen=True):
    """A job of ours has begun."""

    job: str


class Busy(msgspec.Struct, frozen=True):
    """Nothing was done; the manager may be asked again."""

    reason: str
    after: Seconds = Seconds(0.0)


class Halted(msgspec.Struct, frozen=True):
    """Nothing was done: a job is suspended, and an operator must see to it."""

    job: str


class Declined(msgspec.Struct, frozen=True):
    """The manager said no, and nothing of it will come about."""

    reason: str


class Unknown(msgspec.Struct, frozen=True):
    """A job may have begun: nobody said."""

    reason: str


Sent = Begun | Busy | Halted | Declined | Unknown


class Service:
    """Calls to one of the two services, each with the token as it is now."""

    def __init__(self, wire: Wire, proof: Token, user: str) -> None:
        self.wire = wire
        self._proof = proof
        self._user = user

    async def read(self, path: str, decode: Callable[[bytes], T]) -> T:
        """Return what the service shows at a path. Raises Retry, naming the service."""
        answer, secrets = await self.call(Request("GET", path))
        return self._shown(answer, decode, secrets)

    def _shown(self, answer: Answer, decode: Callable[[bytes], T], secrets: tuple[Secret, ...]) -> T:
        if answer.status != HTTPStatus.OK:
            pause = POLL if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR else UNCLEAR_AGAIN
            raise self.named(Retry(_says(answer), answer.retry_after or pause), secrets)
        try:
            return decode(answer.body)
        except nec.BadMessage as error:
            unclear = Retry(f"the answer is not understood: {error}", UNCLEAR_AGAIN)
        raise self.named(unclear, secrets)

    async def newest(self) -> tuple[nec.Job, ...]:
        """Return the newest jobs; none from a manager that has no list of them. Raises Retry."""
        answer, secrets = await self.call(Request("GET", nec.newest_path()))
        if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
            return ()
        return self._shown(answer, nec.jobs, secrets)

    async def job(self, name: str) -> nec.Job:
        """Return a job; one that was deleted has ended, nobody knows how. Raises Retry."""
        answer, secrets = await self.call(Request("GET", nec.apply_path(name)))
        if answer.status == HTTPStatus.NOT_FOUND and nec.error(answer.body)[0]:
            return nec.Job(name, DELETED)
        return self._shown(answer, nec.job, secrets)

    async def begin(self, procedure: nec.Procedure, within: Seconds) -> Sent:
        """Have a job begin, within this time. Raises nothing."""
        body, patience = nec.encode(nec.Procedures((procedure,))), min(POST_SECONDS, within)
        request = Request("POST", nec.APPLIES, body, {"Content-Type": nec.JSON}, timeout=patience)
        try:
            answer, secrets = await self.call(request)
        except Unsent as error:
            return Busy(str(error), error.after)
        except Retry as error:
            return Unknown(str(error))
        return self._judged(answer, str(self.named(Retry(_says(answer)), secrets)))

    def _judged(self, answer: Answer, says: str) -> Sent:
        code, _ = nec.error(answer.body)
        match answer.status:
            case HTTPStatus.OK | HTTPStatus.CREATED | HTTPStatus.ACCEPTED:
                try:
                    return Begun(nec.applied(answer.body))
                except nec.BadMessage as error:
                    return Unknown(f"{self.wire.base}: the answer is not understood: {error}")
            case HTTPStatus.CONFLICT if code == nec.SUSPENDED_EXISTS:
                return Halted("")
            case HTTPStatus.CONFLICT | HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.LOCKED:
                return Busy(says, answer.retry_after)
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                return Busy(says, UNCLEAR_AGAIN)  # turned away at the door
            case HTTPStatus.SERVICE_UNAVAILABLE if answer.retry_after:
                return Busy(says, answer.retry_after)
            # Only the manager itself can say no to an order: a proxy's page or a wrong address says nothing about it.
            case status if code and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return Declined(says)
            case _:
                return Unknown(says)

    async def call(self, request: Request) -> tuple[Answer, tuple[Secret, ...]]:
        """Send it once, with the proof. Raises Retry; Unsent if it was never sent."""
        try:
            proof = self._proof()
        except Retry as error:
            raise Unsent(str(error), error.after) from None
        secrets: tuple[Secret, ...] = (proof,)
        headers = dict(request.headers)
        if self._user:
            pair = base64.b64encode(f"{self._user}:{proof.reveal()}".encode()).decode()
            secrets, headers["Authorization"] = (proof, Secret(pair)), f"Basic {pair}"
        elif proof.reveal():
            headers["Authorization"] = f"Bearer {proof.reveal()}"
        return await self.wire.call(
            msgspec.structs.replace(request, headers=headers, secrets=secrets)
        ), secrets

    def named(self, failure: PortError, secrets: tuple[Secret, ...] = ()) -> PortError:
        """Return the failure with the service's address, and without secrets."""
        return self.wire.named(failure, secrets)


def _says(answer: Answer) -> str:
    _, words = nec.error(answer.body)
    return f"{words} ({answer.status})" if words else f"it answered with status {answer.status}"


# --- what stands where


class Place(msgspec.Struct, frozen=True):
    """A node, and what a device of it is connected to."""

    node: NodeName
    port: str


class Shown(msgspec.Struct, frozen=True):
    """The configuration at one moment."""

    places: tuple[Place, ...]
    devices: Mapping[PhysicalID, FabricDevice]
    """Those of the types that are offered, in the pool or on one of the places."""
    elsewhere: frozenset[str]
    """Those that are connected to something else."""

    def place(self, node: NodeName) -> Place | None:
        """Return a node's place; None if it is none of this fabric."""
        return next((one for one in self.places if one.node == node), None)

    def on(self, node: NodeName) -> frozenset[PhysicalID]:
        """Return what stands on a node."""
        return frozenset(one.id for one in self.devices.values() if one.node == node)


class Site:
    """The two services of one fabric, and what they show."""

    def __init__(self, name: FabricName, found: Options, applies: Service, configuration: Service) -> None:
        self.name = name
        self.options = found
        self.applies = applies
        self.configuration = configuration
        self._types = frozenset(one.type.lower() for one in found.models)
        self._offered = {(one.type.lower(), one.name.lower()): one.name for one in found.models}

    async def look(self) -> Shown:
        """Return what stands where, in one reading; only names may need another. Raises Retry or Refused."""
        resources = await self.configuration.read(f"{nec.RESOURCES}?detail=true", nec.resources)
        there = tuple(one for one in resources if one.detected is not False)
        ports = _cpus(there) if self.options.wiring is Wiring.CPU else _adapters(there)
        places = await self._places(ports, there)
        nodes = {one.port.lower(): one.node for one in places}
        wanted = [one for one in there if (one.device.type or "").lower() in self._types]
        if len({one.device.device_id for one in wanted}) < len(wanted):
            raise self.configuration.named(Retry("a device is shown twice; it may be moving"))
        devices: dict[PhysicalID, FabricDevice] = {}
        elsewhere: set[str] = set()
        for one in wanted:
            taken = dict.fromkeys(link.device.lower() for link in one.device.links or () if self._takes(link))
            known = [port for port in taken if port in nodes]
            if len(known) > 1:
                words = f"device {one.device.device_id} is shown on two machines; it may be moving"
                raise self.configuration.named(Retry(words))
            if taken and not known:
                elsewhere.add(one.device.device_id)
            else:
                device = self._device(one, nodes[known[0]] if known else NodeName(""))
                devices[device.id] = device
        return Shown(places, devices, frozenset(elsewhere))

    def _takes(self, link: nec.Link) -> bool:
        """Whether a device that is linked so is in use."""
        kind = (link.type or "").lower()
        return kind in (
            {"cpu"} if self.options.wiring is Wiring.CPU else {"destinationfabricadapter", "eeio"}
        )

    def _device(self, one: nec.Resource, node: NodeName) -> FabricDevice:
        device, kind = one.device, (one.device.type or "").lower()
        serial = self.options.serials.get(device.device_id) or str(device.serial_number or "")
        model = self._offered.get((kind, (device.model or "").lower()))
        ours = model is not None and not {device.device_id, serial} & {*self.options.foreign}
        if self.options.groups:
            ours = ours and bool({*self.options.groups} & {*(one.groups or ())})
        fixed = any(device.fixed_to(link.device) for link in device.links or ())
        return FabricDevice(
            id=PhysicalID(device.device_id),
            model=ModelName(model or device.model or ""),
            type=kind,
            serial=serial,
            switch=device.device_switch_info or "",
            attributes={"vendor": device.manufacturer} if device.manufacturer else {},
            healthy=one.usable,
            node=node,
            ours=ours and not fixed,
        )

    async def _places(self, ports: Mapping[str, str], there: tuple[nec.Resource, ...]) -> tuple[Place, ...]:
        """Return the nodes by name, or as the table says."""
        if self.options.machines:
            table = [(node, machine.lower()) for node, machine in self.options.machines.items()]
            return tuple(Place(NodeName(node), ports[machine]) for node, machine in table if machine in ports)
        hostnames = {one.device.device_id.lower(): nec.attribute(one.device, "hostname") for one in there}
        names = {machine: hostname for machine, hostname in hostnames.items() if hostname}
        if any(machine not in names for machine in ports):
            shown = await self.configuration.read(f"{nec.NODES}?detail=true", nec.nodes)
            names = {one.id.lower(): one.name for one in shown if one.name} | names
        places = [(names[machine], port) for machine, port in ports.items() if machine in names]
        double, count = next(iter(Counter(node for node, _ in places).most_common(1)), ("", 0))
        if count > 1:
            words = f"two machines are called {double!r}; options.machines is needed"
            raise self.configuration.named(Refused(words))
        return tuple(Place(NodeName(node), port) for node, port in places)


def _cpus(there: tuple[nec.Resource, ...]) -> dict[str, str]:
    """Return what devices of a machine are connected to, by the machine's id in lower case: its CPU is both."""
    cpus = (one.device.device_id for one in there if (one.device.type or "").lower() == "cpu")
    return {one.lower(): one for one in cpus}


def _adapters(there: tuple[nec.Resource, ...]) -> dict[str, str]:
    """Return the same where machines have fabric adapters: it is the far one, on the side of the devices."""
    known = {one.device.device_id: one.device for one in there}
    found: dict[str, str] = {}
    for one in there:
        if _adapter(one.device) != ("sourcefabricadapter", "eesv"):
            continue
        far = (link.device for link in one.device.links or () if link.device in known)
        port = next(
            (far_id for far_id in far if _adapter(known[far_id]) == ("destinationfabricadapter", "eeio")), ""
        )
        for node in (one.node_ids or ()) if port else ():
            found[node.lower()] = port
    return found


def _adapter(device: nec.Device) -> tuple[str, str]:
    status = nec.attribute(device, "deviceSpecificInformation", "status")
    return (device.type or "").lower(), status.lower()

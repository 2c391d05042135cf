"""What Fsas Fabric Manager and Cluster Manager have in common: settings, tokens, machines, free counts, turns.

Knows one tenant's machines and how calls to their managers end. Must not know how either manager moves a device.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

import msgspec

from jackfield.codec import fsas
from jackfield.fabric import tokens
from jackfield.fabric.asking import BACK_OFF_MAX, Asking
from jackfield.fabric.http import Answer, Broken, Request, Unsent, Wire
from jackfield.fabric.settings import BadFabric, FabricSettings, Secret, options
from jackfield.fabric.sights import Sights
from jackfield.fabric.together import all_of
from jackfield.model.fabric import FabricDevice, Failed, Inventory, Machine, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, Seconds
from jackfield.ports import Clock, PortError, Refused, Retry

T = TypeVar("T")
O = TypeVar("O", bound="Options")  # noqa: E741 - options

POLL: Final = Seconds(0.5)
"""How often a machine is looked at while something is to happen on it: at least once while a question is held."""
READ_AGAIN: Final = (Seconds(0.05), Seconds(0.1), Seconds(0.2))
"""After these pauses a question is repeated that was not answered. An inventory is as many as there are machines: were
each asked once, a manager that fails one call in ten would never show it."""
UNCLEAR_AGAIN: Final = Seconds(30.0)
"""When a manager is asked again that does not understand us, or itself."""
PROMPT: Final = Seconds(2.0)
"""A token refused this soon was refused at the door; later, the work may have begun."""
SPAN_MAX: Final = Seconds(3600.0)
BUSY: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.LOCKED})
"""With these a manager says that it did nothing, and may be asked again."""
PLACES_KEPT: Final = Seconds(10.0)
"""For so long it is believed which node is which machine; every inventory reads it anew."""
MACHINES_MAX: Final = 2000
"""More than any fabric has; a list without end must not become questions without end."""


class Model(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A model of device that this fabric offers."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    """What the manager calls it: the `cdi-model-name` of the policy."""
    type: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "gpu"
    """The manager's `res_type`."""


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric of Fsas."""

    tenant: fsas.Id
    """The tenant's UUID."""
    models: Annotated[tuple[Model, ...], msgspec.Meta(min_length=1, max_length=1000)]
    """The models that are offered; the manager does not list them."""
    fabric_id: int | None = None
    """Which of the manager's fabrics this is; may be left out while the tenant's machines are of one fabric."""
    machines: Mapping[str, fsas.Id] = {}
    """The machine's UUID for every node. Left out, a node is the machine of the same name."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """How many devices a machine can have, where the manager does not say."""
    foreign: tuple[str, ...] = ()
    """Devices, by id or serial, that somebody else attached: they are never touched."""
    grant: tokens.GrantType = tokens.GrantType.PASSWORD
    """How tokens are asked for."""
    credentials_directory: str = ""
    """A folder with the files `realm`, `client_id`, `client_secret`, `username`, `password`: a mounted Secret."""
    credentials_prefix: str = ""
    """What the names of variables begin with that hold the same, as `RACK_A_` of `RACK_A_PASSWORD`."""
    effect_seconds: Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)] = Seconds(180.0)
    """A call that the manager was sent takes effect within this time, or never."""
    queue_seconds: Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)] = Seconds(120.0)
    """How long an order may wait for its machine, or for a manager that is busy, before it is sent."""
    jobs: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    """How many machines are changed at a time."""

    @property
    def traits(self) -> Traits:
        """How the manager differs from others."""
        within = Seconds(self.queue_seconds + self.effect_seconds)
        return Traits(chooses_device=True, knows_orders=False, call_timeout=within, jobs=self.jobs)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types of device that count."""
        return tuple(dict.fromkeys(one.type for one in self.models))


def read_options(settings: FabricSettings, kind: type[O]) -> O:
    """Return the options as they are meant. Raises BadFabric naming the setting."""
    found = options(settings, kind)
    if settings.token_file or settings.token_variable:
        raise BadFabric(
            "tokenFile, tokenVariable: tokens come from id_manager; say options.credentialsDirectory"
        )
    if bool(found.credentials_directory) == bool(found.credentials_prefix):
        raise BadFabric("options: exactly one of credentialsDirectory and credentialsPrefix is needed")
    names = [one.name for one in found.models]
    if len(names) > len(set(names)):
        raise BadFabric("options.models: two have one name")
    uuids = [one.lower() for one in found.machines.values()]
    if len(uuids) > len(set(uuids)):
        raise BadFabric("options.machines: two nodes are one machine")
    return found


def credentials(found: Options, environment: Mapping[str, str]) -> tokens.Source:
    """Return where the credentials come from. Raises BadFabric naming the setting."""
    try:
        if found.credentials_directory:
            return tokens.from_directory(found.credentials_directory, found.grant)
        return tokens.from_environment(found.credentials_prefix, found.grant, environment)
    except BadFabric as error:
        setting = "credentialsDirectory" if found.credentials_directory else "credentialsPrefix"
        raise BadFabric(f"options.{setting}: {error}") from None


def site(settings: FabricSettings, found: Options, environment: Mapping[str, str], clock: Clock) -> "Site":
    """Return the line to a manager. Raises BadFabric naming the setting."""
    client = Client(Wire(settings, fsas.JSON), credentials(found, environment), clock)
    return Site(settings.name, found, client, clock)


# --- calls, and how they end


class Accepted(msgspec.Struct, frozen=True):
    """The manager said yes."""

    body: bytes


class Declined(msgspec.Struct, frozen=True):
    """The manager said no, and nothing of it will come about."""

    reason: str


class Unknown(msgspec.Struct, frozen=True):
    """It may have been done, or may yet be: nobody said."""

    reason: str


Sent = Accepted | Declined | Unknown


class Overtaxed(Retry):
    """The manager could not answer a question just now."""


class Busy(Exception):  # noqa: N818 - what happened
    """The manager did nothing and may be asked again."""

    def __init__(self, reason: str, after: Seconds) -> None:
        super().__init__(reason)
        self.after = after


class Client:
    """Calls to a manager, each with a token that is good; read again whenever that is safe."""

    def __init__(self, wire: Wire, credentials: tokens.Source, clock: Clock) -> None:
        self.wire = wire
        self._tokens = tokens.Tokens(wire, credentials, clock)
        self._clock = clock

    async def read(self, path: str, decode: Callable[[bytes], T]) -> T:
        """Return what the manager shows at a path. Raises Retry or Refused, naming the manager."""
        for pause in READ_AGAIN:
            try:
                return await self._read(path, decode)
            except Broken:
                pass
            except Overtaxed as error:
                if error.after > READ_AGAIN[-1]:
                    raise
            await self._clock.sleep(pause)
        return await self._read(path, decode)

    async def _read(self, path: str, decode: Callable[[bytes], T]) -> T:
        answer, token = await self._sent(Request("GET", path))
        if answer.status == HTTPStatus.UNAUTHORIZED:
            answer, token = await self._sent(Request("GET", path), refused=token)
        if answer.status == HTTPStatus.OK:
            return self._understood(decode, answer.body, token)
        words = fsas.error(answer.body)
        says = f"{words} ({answer.status})" if words else f"it answered with status {answer.status}"
        failure: PortError
        if answer.status in BUSY or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            failure = Overtaxed(says, answer.retry_after or READ_AGAIN[0])
        else:
            failure = Retry(says, answer.retry_after or UNCLEAR_AGAIN)
        raise self.wire.named(failure, (token,))

    async def change(self, request: Request) -> Sent:
        """Have something done that must not be done twice. Raises Busy where nothing was done."""
        begun = self._clock.now()
        try:
            answer, token = await self._sent(request)
            if answer.status == HTTPStatus.UNAUTHORIZED and self._clock.now() - begun <= PROMPT:
                answer, token = await self._sent(request, refused=token)
        except Unsent as error:
            raise Busy(str(error), error.after) from None
        except Retry as error:
            return Unknown(str(error))
        return self._judged(answer, token)

    def _judged(self, answer: Answer, token: Secret) -> Sent:
        words = fsas.error(answer.body)
        plain = f"{words} ({answer.status})" if words else f"it answered with status {answer.status}"
        says = str(self.wire.named(Retry(plain), (token,)))
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return Accepted(answer.body)
        if answer.status in BUSY:
            raise Busy(says, answer.retry_after)
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and answer.retry_after:
            raise Busy(says, answer.retry_after)
        # Only the manager itself can say no to an order: a proxy's page or a wrong address says nothing about it.
        client_error = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
        if client_error and words and answer.status != HTTPStatus.UNAUTHORIZED:
            return Declined(says)
        return Unknown(says)

    async def _sent(self, request: Request, refused: Secret | None = None) -> tuple[Answer, Secret]:
        try:
            token = await (self._tokens.other_than(refused) if refused else self._tokens.current())
        except Retry as error:
            raise Unsent(str(error), error.after) from None
        headers = {**request.headers, "Authorization": f"Bearer {token.reveal()}"}
        with_proof = msgspec.structs.replace(request, headers=headers, secrets=(token,))
        return await self.wire.call(with_proof), token

    def _understood(self, decode: Callable[[bytes], T], body: bytes, token: Secret) -> T:
        try:
            return decode(body)
        except fsas.BadMessage as error:
            unclear = Retry(f"the answer is not understood: {error}", UNCLEAR_AGAIN)
        raise self.wire.named(unclear, (token,))


# --- the manager, as far as both are alike


class Place(msgspec.Struct, frozen=True):
    """A node and its machine."""

    node: NodeName
    machine: str


class Found(msgspec.Struct, frozen=True):
    """What stands on a node, and what room it has."""

    place: Place
    slots: int
    devices: tuple[FabricDevice, ...]


class Site:
    """One tenant's machines in one fabric, spoken to by one process."""

    def __init__(self, name: FabricName, found: Options, client: Client, clock: Clock) -> None:
        self.name = name
        self.options = found
        self.clock = clock
        self.client = client
        self.wire = client.wire
        self._machines: dict[str, asyncio.Lock] = {}
        self._jobs = asyncio.Semaphore(found.jobs)
        self._sights = Sights(clock)
        self.asking = Asking(clock, POLL)
        self._places: dict[NodeName, Place] = {}
        self._places_until = Seconds(float("-inf"))

    # --- looking

    async def places(self) -> tuple[Place, ...]:
        """Return the nodes of this fabric. Raises Retry or Refused."""
        shown = await self.client.read(fsas.machines_path(self.options.tenant), fsas.machines)
        ours = [one for one in shown if one.tenant_uuid in {None, "", self.options.tenant}]
        if self.options.fabric_id is not None:
            ours = [one for one in ours if one.fabric_id == self.options.fabric_id]
        known = {uuid.lower(): node for node, uuid in self.options.machines.items()}
        named = [
            (known.get(one.mach_uuid.lower(), "") if known else one.mach_name or "", one) for one in ours
        ]
        chosen = [(NodeName(node), one) for node, one in named if node]
        fabrics = sorted({one.fabric_id for _, one in chosen if one.fabric_id is not None})
        if len(fabrics) > 1:
            raise self.wire.named(
                Refused(f"options.fabricId is needed: the machines are of fabrics {fabrics}")
            )
        if len(chosen) > MACHINES_MAX:  # each is asked about
            raise Retry(f"{self.wire.base}: more than {MACHINES_MAX} machines are shown", UNCLEAR_AGAIN)
        places: dict[NodeName, Place] = {}
        for node, one in chosen:
            if node in places:
                raise self.wire.named(
                    Refused(f"two machines are called {node!r}; options.machines is needed")
                )
            places[node] = Place(node, one.mach_uuid)
        self._places, self._places_until = places, Seconds(self.clock.now() + PLACES_KEPT)
        return tuple(places.values())

    async def place(self, node: NodeName) -> Place | None:
        """Return a node's machine; None if it is none of this fabric. Raises Retry or Refused."""
        if self.clock.now() >= self._places_until or node not in self._places:
            await self.places()
        return self._places.get(node)

    async def inventory(self, look: Callable[[Place], Coroutine[object, object, Found]]) -> Inventory:
        """Return all that is there; the same object while nothing changes. Raises Retry or Refused.

        What is free is counted before and after, and the smaller number believed: a device that moves meanwhile is
        counted once or not at all, never twice.
        """
        places = await self.places()
        before = await self._free(places)
        found = await all_of([look(one) for one in places])
        after = await self._free(places) if found else before
        free = {model: min(count, after[model]) for model, count in before.items()}
        devices = tuple(device for one in found for device in one.devices)
        if len({one.id for one in devices}) < len(devices):
            raise Retry(f"{self.wire.base}: a device is shown twice; it may be moving")
        machines = tuple(Machine(one.place.node, one.slots) for one in found)
        return self._sights.shown(Inventory(self.name, self.options.traits, machines, devices, free))

    async def _free(self, places: tuple[Place, ...]) -> dict[ModelName, int]:
        if not places:
            return {ModelName(one.name): 0 for one in self.options.models}
        counts = await all_of([self._available(places[0], model) for model in self.options.models])
        return {
            ModelName(model.name): count for model, count in zip(self.options.models, counts, strict=True)
        }

    async def _available(self, place: Place, model: Model) -> int:
        path = fsas.available_path(self.options.tenant, place.machine, model.type, model.name)
        return await self.client.read(path, fsas.available)

    def failed(self, reason: str) -> Failed:
        """Return why an order came to nothing, naming the manager, as it can be shown."""
        return Failed(f"{self.wire.base}: {self.wire.words(reason)}")

    def ours(self, model: str, *ids: str) -> bool:
        """Return whether a device may be touched: of a model we offer, and not named as somebody else's."""
        offered = any(one.name == model for one in self.options.models)
        return offered and not any(one in self.options.foreign for one in ids if one)

    # --- changing

    def busy(self, place: Place) -> bool:
        """Whether one would have to wait for one's turn to change a machine."""
        return self._machines.setdefault(place.machine, asyncio.Lock()).locked() or self._jobs.locked()

    @asynccontextmanager
    async def turn(self, place: Place, asked: Seconds) -> AsyncIterator[Seconds]:
        """Be the one who changes a machine; gives until when a call may be sent. Raises Retry if it is too late."""
        until = Seconds(asked + self.options.queue_seconds)
        async with self._machines.setdefault(place.machine, asyncio.Lock()), self._jobs:
            if self.clock.now() > until:
                raise Retry(f"{place.node} was busy for {self.options.queue_seconds:g} s; nothing was sent")
            yield until

    async def insist(self, request: Request, until: Seconds) -> Sent:
        """Send until the manager does not say that it is busy; nothing was done if it always says so (Retry)."""
        pause = POLL
        while True:
            try:
                return await self.client.change(
                    msgspec.structs.replace(request, timeout=self.options.effect_seconds)
                )
            except Busy as busy:
                wait = max(pause, busy.after)
                if self.clock.now() + wait > until:
                    raise Retry(f"nothing was done, the manager is busy: {busy}", wait) from None
                await self.clock.sleep(Seconds(wait))
                pause = min(BACK_OFF_MAX, Seconds(pause * 2))

    def effect_by(self, until: Seconds) -> Seconds:
        """Return until when a call that was sent just now may still take effect; it was sent by `until`."""
        return Seconds(min(self.clock.now(), until) + self.options.effect_seconds)

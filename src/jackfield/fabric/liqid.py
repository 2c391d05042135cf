"""What a Liqid Director is told and shows: settings, the log-in, calls, what stands where.

Knows one group of a Director and how calls to it end. Must not know what is done about it: that is the adapter's.
"""

import asyncio
import base64
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

import msgspec

from jackfield.codec import liqid
from jackfield.fabric.http import Answer, Request, Unsent, Wire
from jackfield.fabric.settings import BadFabric, FabricSettings, Secret, Token, options, token
from jackfield.model.fabric import FabricDevice, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.ports import Clock, PortError, Refused, Retry

T = TypeVar("T")

POLL: Final = Seconds(0.5)
"""How soon a Director is asked again that has trouble of its own."""
UNCLEAR_AGAIN: Final = Seconds(30.0)
"""When a Director is asked again that does not understand us, or itself."""
REFUSED_AGAIN: Final = Seconds(900.0)
"""When a user or password that was refused is shown again, should it have been put right over there."""
FRESH: Final = Seconds(5.0)
"""A key that is refused so soon after it was made would be followed by another, and another."""
SPAN_MAX: Final = Seconds(3600.0)
CONFLICT: Final = (HTTPStatus.CONFLICT, HTTPStatus.LOCKED)
"""With these a Director says that something stands in the way, and that nothing was done."""
BUSY: Final = (*CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)

Span = Annotated[Seconds, msgspec.Meta(gt=0, le=SPAN_MAX)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Identity(StrEnum):
    """What a device is known by."""

    NAME = "name"
    SERIAL = "serial"


class Model(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A model of device that this fabric offers."""

    name: Name
    """What we call it: the `cdi-model-name` of the policy."""
    model: str = ""
    """What the Director calls it; the same where nothing is said."""
    type: Name = "gpu"
    """What kind of device it is, by the words of `liqid.KINDS`."""

    @property
    def shown(self) -> str:
        """What the Director calls it."""
        return self.model or self.name


class Options(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric of Liqid."""

    models: Annotated[tuple[Model, ...], msgspec.Meta(min_length=1, max_length=1000)]
    """The models that are offered."""
    user: Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[!-9;-~]*$")] = ""
    """With it the token is this user's password, and a key is made for it; without, the token is such a key."""
    label: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")] = "jackfield"
    """What the labels of the keys begin with that are made for us."""
    group: str = ""
    """The group by name; may be left out while the machines are of one group."""
    machines: Mapping[str, Annotated[int, msgspec.Meta(ge=1, lt=2**31)]] = {}
    """The machine's number for every node. Left out, a node is the machine of the same name."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """How many devices a machine can have; the Director does not say."""
    identity: Identity = Identity.NAME
    """What a device is known by: its `name`, or its own `serial`."""
    foreign: tuple[str, ...] = ()
    """Devices, by name or serial number, that somebody else attached: they are never touched."""
    unfit_states: tuple[str, ...] = ("failed", "fault", "error", "offline", "missing")
    """With one of these as its state, in any case, a device is not healthy."""
    edit_seconds: Span = Seconds(300.0)
    """An edit that is open for so long and leads to nothing was left behind, and is cancelled."""
    effect_seconds: Span = Seconds(180.0)
    """Reprogramming that was asked for is done within this time; what takes longer is cancelled."""
    queue_seconds: Span = Seconds(120.0)
    """How long an order may wait for its machine, or for another's edit of it, before it is sent."""
    jobs: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    """How many machines are edited at a time."""

    @property
    def traits(self) -> Traits:
        """How the manager differs from others."""
        within = Seconds(self.queue_seconds + self.effect_seconds)
        return Traits(knows_orders=False, call_timeout=within, jobs=self.jobs)


def read_options(settings: FabricSettings) -> Options:
    """Return the options as they are meant. Raises BadFabric naming the setting."""
    found = options(settings, Options)
    names = [one.name for one in found.models]
    shown = [(one.type, one.shown) for one in found.models]
    machines = [*found.machines.values()]
    strange = next((one.type for one in found.models if one.type not in liqid.KINDS), "")
    wrong = (
        "options.models: two have one name" if len(names) > len(set(names)) else "",
        "options.models: two are one model of the Director" if len(shown) > len(set(shown)) else "",
        f"options.models: {strange!r} is none of {', '.join(liqid.KINDS)}" if strange else "",
        "options.machines: two nodes are one machine" if len(machines) > len(set(machines)) else "",
        "options.editSeconds: must be more than effectSeconds, or reprogramming is taken for an edit left behind"
        if found.edit_seconds <= found.effect_seconds
        else "",
        "tokenFile, tokenVariable: one is needed: the password of options.user, or a key"
        if not (settings.token_file or settings.token_variable)
        else "",
    )
    for one in wrong:
        if one:
            raise BadFabric(one)
    return found


# --- the log-in


class Door:
    """The key with which calls are let in: made when needed, deleted at the end, kept in memory only."""

    def __init__(self, wire: Wire, found: Options, proof: Token, clock: Clock) -> None:
        self._wire = wire
        self._user = found.user
        # One for each process: a key of the same label would end another replica's.
        self._label = f"{found.label}-{secrets.token_hex(4)}"
        self._proof = proof
        self._clock = clock
        self._opening = asyncio.Lock()
        self._key: Secret | None = None
        self._made_at = Seconds(float("-inf"))
        self._refused: tuple[str, Seconds] = ("", Seconds(0.0))
        """The password that was refused last, and when."""

    def __repr__(self) -> str:
        return "Door(…)"

    async def key(self, refused: Secret | None = None) -> Secret:
        """Return a key that is not the one that was refused. Raises Retry."""
        if not self._user:
            return self._proof()
        async with self._opening:  # whoever waits here finds what the one before was given
            if self._key is None or self._key is refused:
                if refused is not None and self._clock.now() < self._made_at + FRESH:
                    raise self._wire.named(Retry("a key was refused as soon as it was made", FRESH))
                self._key = await self._made()
                self._made_at = self._clock.now()
            return self._key

    async def close(self) -> None:
        """Have the key deleted; a Director that does not hear of it keeps it until an operator deletes it."""
        ended, self._key = self._key, None
        if ended is not None:
            headers = {liqid.KEY_HEADER: ended.reveal()}
            try:
                await self._wire.call(Request("DELETE", self._path, headers=headers, secrets=(ended,)))
            except PortError:
                return

    async def _made(self) -> Secret:
        password = self._proof()
        known, when = self._refused
        if known == password.reveal() and self._clock.now() < when + REFUSED_AGAIN:
            words = f"are not shown again for {REFUSED_AGAIN / 60:g} minutes, or until they change"
            raise self._wire.named(
                Retry(f"the user or password is not accepted; they {words}", UNCLEAR_AGAIN)
            )
        pair = Secret(base64.b64encode(f"{self._user}:{password.reveal()}".encode()).decode())
        hidden = (password, pair)
        headers = {"Authorization": f"Basic {pair.reveal()}"}
        # What is left of an earlier try, whose answer was lost, would stand in the way.
        await self._wire.call(Request("DELETE", self._path, headers=headers, secrets=hidden))
        answer = await self._wire.call(Request("POST", self._path, headers=headers, secrets=hidden))
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            self._refused = (password.reveal(), self._clock.now())
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES and not liqid.error(answer.body):
            try:
                return Secret(liqid.digest(answer.body))
            except liqid.BadMessage:
                pass  # what it says may be half a key
        # Its words may repeat what it was shown.
        says = f"the Director gives no key: it answered {answer.status}"
        raise self._wire.named(Retry(says, answer.retry_after or UNCLEAR_AGAIN), hidden)

    @property
    def _path(self) -> str:
        return liqid.digest_path(self._label)


# --- calls, and how they end


class Accepted(msgspec.Struct, frozen=True):
    """The Director said yes."""

    body: bytes = b""


class Busy(msgspec.Struct, frozen=True):
    """Nothing was done, and it may be asked for again."""

    reason: str
    after: Seconds = Seconds(0.0)
    conflict: bool = False
    """Whether something stands in the way, and not only the Director's other work."""


class Declined(msgspec.Struct, frozen=True):
    """The Director said no, and nothing of it will come about."""

    reason: str
    status: int = HTTPStatus.BAD_REQUEST


class Unknown(msgspec.Struct, frozen=True):
    """It may have been done: nobody said."""

    reason: str


Sent = Accepted | Busy | Declined | Unknown


class Client:
    """Calls to a Director, each with a key that is good."""

    def __init__(self, wire: Wire, door: Door) -> None:
        self.wire = wire
        self.door = door

    async def close(self) -> None:
        """Log out and hang up."""
        await self.door.close()
        await self.wire.close()

    async def read(self, path: str, decode: Callable[[bytes], T]) -> T:
        """Return what the Director shows at a path. Raises Retry, naming it."""
        answer = await self._let_in(Request("GET", path))
        words = liqid.error(answer.body)
        if answer.status != HTTPStatus.OK or words:
            pause = POLL if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR else UNCLEAR_AGAIN
            raise self.wire.named(Retry(_says(answer, words), answer.retry_after or pause))
        try:
            return decode(answer.body)
        except liqid.BadMessage as error:
            unclear = Retry(f"the answer is not understood: {error}", UNCLEAR_AGAIN)
        raise self.wire.named(unclear)

    async def change(self, method: str, path: str, body: bytes) -> Sent:
        """Have something done. Raises nothing."""
        try:
            answer = await self._let_in(Request(method, path, body, {"Content-Type": liqid.JSON}))
        except Unsent as error:
            return Busy(str(error), error.after)
        except Retry as error:
            return Unknown(str(error))
        words = liqid.error(answer.body)
        says = str(self.wire.named(Retry(_says(answer, words))))
        match answer.status:
            case status if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return Declined(says, status) if words else Accepted(answer.body)
            case HTTPStatus.UNAUTHORIZED:
                return Busy(says, UNCLEAR_AGAIN)  # turned away at the door
            case status if status in BUSY or (
                status == HTTPStatus.SERVICE_UNAVAILABLE and answer.retry_after
            ):
                return Busy(says, answer.retry_after, conflict=status in CONFLICT)
            # Only the Director itself can say no to an order: a proxy's page or a wrong address says nothing about it.
            case status if words and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return Declined(says, status)
            case _:
                return Unknown(says)

    async def _let_in(self, request: Request) -> Answer:
        """Send it with a key; once more with another where it is not accepted. Raises Unsent if it was never sent."""
        key, answer = await self._sent(request, None)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            _, answer = await self._sent(request, key)
        return answer

    async def _sent(self, request: Request, refused: Secret | None) -> tuple[Secret, Answer]:
        try:
            key = await self.door.key(refused)
        except Retry as error:
            raise Unsent(str(error), error.after) from None
        headers = {**request.headers, liqid.KEY_HEADER: key.reveal()}
        return key, await self.wire.call(msgspec.structs.replace(request, headers=headers, secrets=(key,)))


def _says(answer: Answer, words: str) -> str:
    return f"{words} ({answer.status})" if words else f"it answered with status {answer.status}"


# --- what stands where


class Place(msgspec.Struct, frozen=True):
    """A node and its machine, as it was shown."""

    node: NodeName
    machine: int
    group: int
    raw: bytes


class Shown(msgspec.Struct, frozen=True):
    """The group at one moment."""

    places: Mapping[NodeName, Place]
    devices: Mapping[PhysicalID, FabricDevice]
    """Those of the types that are offered, in the group's pool or on one of the places."""
    names: Mapping[PhysicalID, str]
    """What the Director calls each."""
    elsewhere: frozenset[PhysicalID]
    """Those that are on another machine."""

    def on(self, node: NodeName) -> frozenset[PhysicalID]:
        """Return what stands on a node."""
        return frozenset(one.id for one in self.devices.values() if one.node == node)


class Site:
    """One group of a Director, and what it shows."""

    def __init__(self, name: FabricName, found: Options, client: Client) -> None:
        self.name = name
        self.options = found
        self.client = client
        self._types = tuple(dict.fromkeys(one.type for one in found.models))
        self._offered = {(one.type, one.shown): one.name for one in found.models}
        self._unfit = frozenset(one.lower() for one in found.unfit_states)

    async def look(self) -> Shown:
        """Return what stands where; where, in one reading. Raises Retry or Refused."""
        places = await self._places()
        known: dict[str, tuple[str, liqid.Info]] = {}
        for kind in self._types:
            infos = await self.client.read(liqid.KINDS[kind].infos, liqid.infos)
            known.update((one.name, (kind, one)) for one in infos)
        nodes = {one.machine: one.node for one in places.values()}
        groups = {one.group for one in places.values()}
        devices: dict[PhysicalID, FabricDevice] = {}
        names: dict[PhysicalID, str] = {}
        elsewhere: set[PhysicalID] = set()
        for one in await self.client.read(liqid.PREDEVICES, liqid.predevices):
            if one.name not in known or one.group not in groups:
                continue
            device = self._device(*known[one.name], nodes.get(one.machine, NodeName("")))
            if device.id in names:
                raise self.client.wire.named(Retry(f"device {device.id} is shown twice; it may be moving"))
            if not device.id:
                continue
            names[device.id] = one.name
            if one.machine and one.machine not in nodes:
                elsewhere.add(device.id)
            else:
                devices[device.id] = device
        return Shown(places, devices, names, frozenset(elsewhere))

    def _device(self, kind: str, info: liqid.Info, node: NodeName) -> FabricDevice:
        serial = info.serial_num or ""
        model = self._offered.get((kind, info.model or ""))
        return FabricDevice(
            id=PhysicalID(serial if self.options.identity is Identity.SERIAL else info.name),
            model=ModelName(model or info.model or ""),
            type=kind,
            serial=serial,
            attributes={"vendor": info.vendor} if info.vendor else {},
            healthy=(info.device_state or "").lower() not in self._unfit,
            node=node,
            ours=model is not None and not {info.name, serial} & {*self.options.foreign},
        )

    async def _places(self) -> dict[NodeName, Place]:
        """Return the nodes by name, or as the table says. Raises Refused where nobody can tell which are meant."""
        shown = await self.client.read(liqid.MACHINES, liqid.machines)
        if self.options.group:
            groups = await self.client.read(liqid.GROUPS, liqid.groups)
            meant = {one.value.grp_id for one in groups if one.value.group_name == self.options.group}
            shown = tuple(one for one in shown if one.value.grp_id in meant)
        table = {number: node for node, number in self.options.machines.items()}
        found = [
            Place(
                NodeName(table.get(one.value.mach_id, "") if table else one.value.mach_name),
                one.value.mach_id,
                one.value.grp_id,
                one.raw,
            )
            for one in shown
        ]
        found = [one for one in found if one.node]
        double, count = next(iter(Counter(one.node for one in found).most_common(1)), ("", 0))
        if count > 1:
            words = f"two machines are called {double!r:.100}; options.machines is needed"
            raise self.client.wire.named(Refused(words))
        if len({one.group for one in found}) > 1:
            raise self.client.wire.named(
                Refused("options.group is needed: the machines are of several groups")
            )
        return {one.node: one for one in found}

    async def relation(self, shown: Shown, place: Place, device: FabricDevice) -> bytes:
        """Return what says that a device is on a machine, as the Director wants to be told. Raises Retry."""
        path = f"{liqid.KINDS[device.type].statuses}?filter=false"
        statuses = await self.client.read(path, liqid.statuses)
        groups = await self.client.read(liqid.GROUPS, liqid.groups)
        name = shown.names[device.id]
        status = next((one.raw for one in statuses if one.value.name == name), None)
        group = next((one.raw for one in groups if one.value.grp_id == place.group), None)
        if status is None or group is None:
            what = f"device {name}" if status is None else f"group {place.group}"
            raise self.client.wire.named(Retry(f"{what} is shown in one list and not in another"))
        return liqid.related(status, group, place.raw)


def site(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> Site:
    """Return the line to a Director. Raises BadFabric naming the setting."""
    found = read_options(settings)
    wire = Wire(settings, liqid.JSON)
    return Site(settings.name, found, Client(wire, Door(wire, found, token(settings, environment), clock)))

"""The face of a Liqid Director: `codec.liqid`, as software for it speaks it.

Knows its calls: a machine is edited, then reprogrammed, by one at a time; nobody is told whose an edit is. Must not
know what an order comes to. The Director knows no order ids, so each device that an edit adds is an order of its own.
Edits and keys are noted: an edit that was open before a restart is open after it.
"""

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec import liqid
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk, Trouble, basic, bearer
from jackfield.fabric_manager.faults import Call
from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import FabricDevice, Failed
from jackfield.model.names import NodeName, OrderID, PhysicalID

FACE: Final = "liqid"
EDITS: Final = "liqid-edits"
KEYS: Final = "liqid-keys"
NAMES: Final = uuid.UUID("0d1c1a52-6f0e-5e8b-9d3f-7c1b0a4be2f9")
"""The name space in which devices get names whose own cannot be sent."""
GROUP: Final = 1
"""The number of the group that every machine and device is in; its name is the fabric's."""
KEYS_MAX: Final = 1000
LABEL_MAX: Final = 253
NONE: Final = "n/a"
"""The machine of a device that is on none."""


class Edit(msgspec.Struct, frozen=True):
    """A machine that is being edited, or reprogrammed."""

    adding: tuple[PhysicalID, ...] = ()
    removing: tuple[PhysicalID, ...] = ()
    reprogramming: bool = False
    orders: tuple[OrderID, ...] = ()
    """What reprogramming waits for."""

    def concerns(self, device: PhysicalID) -> bool:
        """Return whether the device is added or removed by it."""
        return device in self.adding or device in self.removing


class Liqid:
    """The Director at /liqid/api/v2."""

    name = FACE
    prefixes = (liqid.PREFIX,)

    def __init__(self) -> None:
        self._keys: _Keys | None = None

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return all calls."""
        keys = self._keys = _Keys(desk)
        named = Named(desk.manager)
        shows, edits = _Shows(desk, named), _Edits(desk, named)
        label = f"{liqid.DIGESTS}/{{label}}"
        return (
            web.get(liqid.DIGESTS, keys.labels),
            web.post(label, keys.make),
            web.delete(label, keys.delete),
            web.get(liqid.GROUPS, shows.groups),
            web.get(liqid.MACHINES, shows.machines),
            web.get(liqid.PREDEVICES, shows.predevices),
            web.get(f"{liqid.PREFIX}/device/info/{{kind}}", shows.infos),
            web.get(f"{liqid.PREFIX}/status/{{kind}}", shows.statuses),
            web.post(liqid.EDIT, edits.begin),
            web.post(liqid.EDIT_CANCEL, edits.cancel),
            web.post(f"{liqid.PREFIX}/relate/{{kind}}", edits.add),
            web.delete(f"{liqid.PREFIX}/relate/{{kind}}", edits.remove),
            web.post(liqid.REPROGRAM, edits.reprogram),
            web.post(liqid.REPROGRAM_CANCEL, edits.turn_round),
        )

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it carries a key that was made here, or the manager's own token, as key, password or bearer."""
        shown = request.headers.get(liqid.KEY_HEADER, "")
        if self._keys is not None and self._keys.opens(shown, token):
            return True
        return basic(request, token) or bearer(request, token)

    def error(self, trouble: Trouble) -> web.Response:
        """Return an error as the Director spells it."""
        headers = {"Retry-After": str(max(1, round(trouble.after)))} if trouble.after else {}
        body = liqid.refusal(trouble.status, trouble.words)
        return web.Response(status=trouble.status, body=body, content_type=liqid.JSON, headers=headers)


def _told(*data: object) -> web.Response:
    return web.Response(body=liqid.answer(*data), content_type=liqid.JSON)


def _bad(reason: str) -> Trouble:
    return Trouble(HTTPStatus.BAD_REQUEST, reason)


# --- keys


class _Keys:
    """Keys by label; only what they were made with is noted, which opens nothing without the manager's token."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._store = desk.manager.store
        self._salts = {label: salt.decode() for label, salt in self._store.notes(KEYS).items()}
        self._token = Secret("")
        """What the manager's door opens to; known once somebody knocks."""

    def opens(self, shown: str, token: Secret) -> bool:
        """Return whether this is a key that was made here, or the token."""
        self._token = token
        good = (token.reveal(), *(self._key(label) for label in self._salts))
        return any(hmac.compare_digest(shown.encode(errors="replace"), one.encode()) for one in good)

    def _key(self, label: str) -> str:
        made = hmac.new(
            self._token.reveal().encode(), f"{label}/{self._salts[label]}".encode(), hashlib.sha256
        )
        return made.hexdigest()

    async def labels(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "token"))
        return _told(*self._salts)

    async def make(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "token"))
        label = request.match_info["label"]
        if label in self._salts:
            raise Trouble(HTTPStatus.CONFLICT, f"there is a key with the label {label:.100} already")
        if len(self._salts) >= KEYS_MAX or len(label) > LABEL_MAX:
            raise _bad(f"there are at most {KEYS_MAX} keys, with labels of at most {LABEL_MAX} letters")
        self._salts[label] = secrets.token_hex(16)
        self._store.note(KEYS, label, self._salts[label].encode())
        await self._store.committed()
        return _told(liqid.Digest(self._key(label), label, len(self._salts)))

    async def delete(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "token"))
        label = request.match_info["label"]
        if self._salts.pop(label, None) is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no key with the label {label:.100}")
        self._store.note(KEYS, label, None)
        await self._store.committed()
        return _told(label)


# --- what there is


class Named:
    """The lab under the names that a Director uses."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.numbers = {node: at for at, node in enumerate(manager.hardware.machines, 1)}
        self.nodes = {at: node for node, at in self.numbers.items()}
        self.names: dict[PhysicalID, str] = {one: _id(one) for one in manager.hardware.devices}
        self.devices = {name: device for device, name in self.names.items()}
        self.group = liqid.Group(GROUP, manager.name, GROUP)

    def machine(self, node: NodeName) -> liqid.Machine:
        """Return a machine as it is shown."""
        number = self.numbers[node]
        return liqid.Machine(number, node, GROUP, GROUP, number - 1, node)

    def kind(self, device: PhysicalID) -> liqid.Kind | None:
        """Return what the paths call the device's type."""
        return liqid.KINDS.get(self._manager.hardware.devices[device].batch.type)


def _id(device: PhysicalID) -> str:
    """Return the device's own name where it can be sent."""
    try:
        return msgspec.convert(str(device), liqid.Id)
    except msgspec.ValidationError:
        return str(uuid.uuid5(NAMES, f"device/{device}"))


class _Shows:
    """Shows machines, their one group, and devices in three lists."""

    def __init__(self, desk: Desk, named: Named) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = named

    async def groups(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "inventory"))
        return _told(self._named.group)

    async def machines(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "inventory"))
        shown = [self._named.machine(one.node) for one in (await self._manager.inventory(FACE)).machines]
        return _told(*(one for one in shown if _meant(request, one)))

    async def predevices(self, request: web.Request) -> web.Response:
        await self._desk.meet(request, Call(FACE, "inventory"))
        shown = [self._predevice(one) for one in (await self._manager.inventory(FACE)).devices]
        return _told(*(one for one in shown if _meant(request, one)))

    def _predevice(self, device: FabricDevice) -> liqid.Predevice:
        machine = str(self._named.numbers[device.node]) if device.node else NONE
        kind = self._named.kind(device.id)
        return liqid.Predevice(
            name=self._named.names[device.id],
            grp_id=GROUP,
            mach_id=machine,
            dev_type=kind.info if kind else device.type,
            gname=self._named.group.group_name,
            mname=device.node or NONE,
        )

    async def infos(self, request: web.Request) -> web.Response:
        found = await self._of(request, "info")
        return _told(
            *(
                liqid.Info(
                    name=self._named.names[one.id],
                    model=one.model,
                    vendor=one.attributes.get("vendor"),
                    serial_num=one.serial,
                    device_state=_state(one),
                )
                for one in found
            )
        )

    async def statuses(self, request: web.Request) -> web.Response:
        found = await self._of(request, "status")
        return _told(
            *(
                liqid.Status(self._named.names[one.id], f"{at:#x}", _state(one), one.type)
                for at, one in enumerate(found)
            )
        )

    async def _of(self, request: web.Request, path: str) -> list[FabricDevice]:
        """Return the devices of the kind that the path names."""
        await self._desk.meet(request, Call(FACE, "inventory"))
        word = request.match_info["kind"]
        types = [one for one, kind in liqid.KINDS.items() if getattr(kind, path) == word]
        if not types:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there are no devices of the kind {word:.100}")
        return [one for one in (await self._manager.inventory(FACE)).devices if one.type in types]


def _state(device: FabricDevice) -> str:
    return "active" if device.healthy else "failed"


def _meant(request: web.Request, shown: liqid.Machine | liqid.Predevice) -> bool:
    """Return whether it is what the query asks for; what the query says of members it has not means nothing."""
    return all(str(getattr(shown, name, text)) == text for name, text in request.query.items())


# --- edits


class _Edits:
    """One edit of a machine at a time; whoever comes meanwhile is told so."""

    def __init__(self, desk: Desk, named: Named) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._named = named
        self._open = {
            NodeName(node): msgspec.json.decode(text, type=Edit)
            for node, text in self._manager.store.notes(EDITS).items()
        }
        self._starting: set[NodeName] = set()
        """Whose orders are being placed just now."""

    async def begin(self, request: web.Request) -> web.Response:
        node = await self._machine(request)
        await self._desk.meet(request, Call(FACE, "edit", node=node))
        if self._edit(node) is not None:
            raise Trouble(HTTPStatus.CONFLICT, f"machine {node} is being edited or reprogrammed")
        return await self._put(node, Edit())

    async def cancel(self, request: web.Request) -> web.Response:
        node = await self._machine(request)
        await self._desk.meet(request, Call(FACE, "cancel", node=node))
        self._editable(node)
        return await self._put(node, None)

    async def add(self, request: web.Request) -> web.Response:
        node, device = await self._relation(request)
        await self._desk.meet(request, Call(FACE, "attach", device, node))
        edit = self._editable(node)
        holder = self._manager.books.holder(device)
        if holder is not None and holder.present:
            raise _bad(f"device {self._named.names[device]} is in use by machine {holder.node}")
        under_way = [self._edit(one) for one in tuple(self._open)]
        if holder is not None or any(one is not None and one.concerns(device) for one in under_way):
            raise Trouble(HTTPStatus.CONFLICT, f"device {self._named.names[device]} is being moved")
        await self._put(node, msgspec.structs.replace(edit, adding=(*edit.adding, device)))
        return self._related(device)

    async def remove(self, request: web.Request) -> web.Response:
        node, device = await self._relation(request)
        await self._desk.meet(request, Call(FACE, "detach", device, node))
        edit = self._editable(node)
        holder = self._manager.books.holder(device)
        if holder is None or not holder.present or holder.node != node:
            raise _bad(f"device {self._named.names[device]} is not on machine {node}")
        if holder.owner != FACE:
            words = f"device {self._named.names[device]} was attached by {holder.owner}"
            raise Trouble(HTTPStatus.FORBIDDEN, words)
        if edit.concerns(device):
            raise _bad(f"device {self._named.names[device]} is removed already")
        await self._put(node, msgspec.structs.replace(edit, removing=(*edit.removing, device)))
        return self._related(device)

    async def reprogram(self, request: web.Request) -> web.Response:
        node = await self._machine(request)
        await self._desk.meet(request, Call(FACE, "reprogram", node=node))
        edit = msgspec.structs.replace(self._editable(node), reprogramming=True)
        self._starting.add(node)
        try:
            await self._put(node, edit)
            orders, wrong = await self._ordered(node, edit)
            done = await self._put(node, msgspec.structs.replace(edit, orders=orders))
        finally:
            self._starting.discard(node)
        if wrong:
            raise _bad(wrong)
        return done

    async def _ordered(self, node: NodeName, edit: Edit) -> tuple[tuple[OrderID, ...], str]:
        """Place the orders of an edit; return them, and why one of them came to nothing."""
        placed: list[OrderID] = []
        wrong = ""
        for device in edit.removing:
            holder = self._manager.books.holder(device)
            if holder is not None and holder.owner == FACE:
                await self._manager.detach(holder.order, FACE)
                placed.append(holder.order.id)
        for device in edit.adding:
            order = self._manager.order(OrderID(f"{FACE}/{secrets.token_hex(16)}"), device, node)
            progress = await self._manager.attach(order, FACE)
            wrong = progress.reason if isinstance(progress, Failed) else wrong
            placed.append(order.id)
        return tuple(placed), wrong

    async def turn_round(self, request: web.Request) -> web.Response:
        """Have taken back what reprogramming would bring; what it takes away goes on."""
        node = await self._machine(request)
        await self._desk.meet(request, Call(FACE, "cancel", node=node))
        edit = self._edit(node)
        if edit is None or not edit.reprogramming:
            raise _bad(f"machine {node} is not being reprogrammed")
        for device in edit.adding:
            holder = self._manager.books.holder(device)
            if holder is not None and holder.order.id in edit.orders:
                await self._manager.detach(holder.order, FACE)
        return _told(self._named.machine(node))

    # --- what is open

    def _edit(self, node: NodeName) -> Edit | None:
        """Return the edit of a machine, if it is not over."""
        edit = self._open.get(node)
        if edit is None or not edit.reprogramming or node in self._starting:
            return edit
        known = [self._manager.books.find(one) for one in edit.orders]
        if any(one is not None and one.unfinished for one in known):
            return edit
        del self._open[node]
        self._manager.store.note(EDITS, node, None)
        return None

    def _editable(self, node: NodeName) -> Edit:
        edit = self._edit(node)
        if edit is None:
            raise _bad(f"machine {node} is not being edited")
        if edit.reprogramming:
            raise Trouble(HTTPStatus.CONFLICT, f"machine {node} is being reprogrammed")
        return edit

    async def _put(self, node: NodeName, edit: Edit | None) -> web.Response:
        if edit is None:
            self._open.pop(node, None)
        else:
            self._open[node] = edit
        self._manager.store.note(EDITS, node, msgspec.json.encode(edit) if edit is not None else None)
        await self._manager.store.committed()
        return _told(self._named.machine(node))

    # --- what is asked

    async def _machine(self, request: web.Request) -> NodeName:
        try:
            return self._node(liqid.machine(await self._desk.body(request)))
        except liqid.BadMessage as error:
            raise _bad(f"the request is not understood: {error}") from error

    async def _relation(self, request: web.Request) -> tuple[NodeName, PhysicalID]:
        try:
            asked = liqid.relation(await self._desk.body(request))
        except liqid.BadMessage as error:
            raise _bad(f"the request is not understood: {error}") from error
        name = asked.group_device_relator.device_status.name
        device = self._named.devices.get(name)
        kind = self._named.kind(device) if device is not None else None
        if device is None or kind is None or kind.relate != request.match_info["kind"]:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no device {name} of this kind")
        return self._node(asked.machine), device

    def _node(self, machine: liqid.Machine) -> NodeName:
        node = self._named.nodes.get(machine.mach_id)
        if node is None:
            raise Trouble(HTTPStatus.NOT_FOUND, f"there is no machine {machine.mach_id}")
        return node

    def _related(self, device: PhysicalID) -> web.Response:
        return _told(liqid.GroupRelation(liqid.Status(self._named.names[device]), self._named.group))

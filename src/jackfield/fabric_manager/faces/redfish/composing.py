"""Composing: blocks are reserved, given to machines and taken back.

Knows what may be asked of a block or a machine and what each asking becomes: orders of the manager, placed under ids of
the face's own making, answered at once if they are done soon and by a task if not. Must not know how anything is shown.
"""

import asyncio
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from aiohttp import web

from jackfield.codec.redfish import BLOCKS, EXTENDED_INFO, SYSTEMS, TASK_MONITORS, TASKS
from jackfield.fabric_manager.faces import Desk
from jackfield.fabric_manager.faces.redfish import parts, patches
from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.faces.redfish.patches import Change, More
from jackfield.fabric_manager.faces.redfish.people import People
from jackfield.fabric_manager.faces.redfish.protocol import (
    Document,
    Message,
    Refusal,
    answer,
    check_match,
    error,
    missing,
    nothing,
    read,
    refusal,
    tag,
    tags,
)
from jackfield.fabric_manager.faces.redfish.tasks import Step, Task
from jackfield.fabric_manager.faces.redfish.tree import Notes, Tree, told
from jackfield.fabric_manager.faults import Call, Verb
from jackfield.fabric_manager.hardware import Device
from jackfield.fabric_manager.orders import Entry, State
from jackfield.model.fabric import Failed, Progress
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds

ANSWER_SECONDS: Final = Seconds(1.0)
"""What is done within this time is answered at once; for the rest there is a task."""
ASYNC: Final = "respond-async"


class Composing:
    """All that changes blocks and machines."""

    def __init__(self, desk: Desk, tree: Tree, notes: Notes, people: People, answer_seconds: Seconds) -> None:
        self._desk = desk
        self._manager = desk.manager
        self._books = desk.manager.books
        self._tree = tree
        self._notes = notes
        self._people = people
        self._answer_seconds = answer_seconds

    # --- what clients ask

    async def reserve(self, request: web.Request, name: str) -> web.Response:
        """Change a block: reserve it, or let it go."""
        body = read(request, await self._desk.body(request))
        found = self._tree.device(name)
        await self._desk.meet(request, Call(FACE, "reserve", found.id if found else PhysicalID("")))
        document = self._document(f"{BLOCKS}/{name}")
        check_match(request, document)
        wanted, messages = patches.reserved(body, document)
        device = self._tree.names.devices.get(name)
        if device is None:
            raise refusal(
                HTTPStatus.BAD_REQUEST,
                "PropertyNotWritable",
                "A machine's own block is never free.",
                "Reserved",
            )
        if wanted:
            self._check_free(request, device)
            self._notes.reservations.make(device, self._people.known(request).client)
        else:
            self._notes.reservations.withdraw(device)
        return self._changed(f"{BLOCKS}/{name}", messages)

    async def add(self, request: web.Request, name: str) -> web.Response:
        """Give a block to a machine."""
        node, device = await self._acted(request, name, "attach")
        holder = self._books.holder(device)
        if holder is not None and _given(holder, node) and holder.state is State.ATTACHED:
            return _no_operation("The block is part of this machine.")
        return await self._carried_out(request, node, (device,), ())

    async def remove(self, request: web.Request, name: str) -> web.Response:
        """Take a block back."""
        node, device = await self._acted(request, name, "detach")
        holder = self._books.holder(device)
        if holder is None:
            return _no_operation("The block is part of no machine.")
        return await self._carried_out(request, node, (), (device,))

    async def change(self, request: web.Request, name: str) -> web.Response:
        """Change a machine: by the whole list of its blocks, or by describing what it needs more."""
        body = read(request, await self._desk.body(request))
        node = self._node(name)
        document = self._document(f"{SYSTEMS}/{name}")
        wanted = patches.change(body, document)
        adds, removes = self._difference(request, node, wanted)
        verb: Verb = "attach" if adds or wanted.more else "detach"
        await self._desk.meet(request, Call(FACE, verb, (*adds, *removes, PhysicalID(""))[0], node))
        check_match(request, self._document(f"{SYSTEMS}/{name}"))
        adds, removes = self._difference(
            request, node, wanted
        )  # as it is now, after whatever befell the call
        adds += self._chosen(request, node, wanted.more)
        if not adds and not removes:
            return self._changed(f"{SYSTEMS}/{name}", wanted.messages)
        return await self._carried_out(request, node, adds, removes, wanted.messages)

    def monitor(self, name: str) -> web.Response:
        """Return what the request is answered whose task this is."""
        task = self._notes.tasks.get(name)
        if task is None:
            raise missing(f"{TASK_MONITORS}/{name}")
        return self._ended(task) if task.over else self._accepted(task)

    # --- understanding them

    async def _acted(self, request: web.Request, name: str, verb: Verb) -> tuple[NodeName, PhysicalID]:
        """Return machine and device of an action."""
        asked = patches.action(read(request, await self._desk.body(request)))
        node, device = self._node(name), self._device(asked.block)
        await self._desk.meet(request, Call(FACE, verb, device, node))
        for given, path in ((asked.block_tag, asked.block), (asked.system_tag, f"{SYSTEMS}/{name}")):
            if given and tag(self._document(path)) not in tags(given):
                raise refusal(
                    HTTPStatus.PRECONDITION_REQUIRED,
                    "PreconditionRequired",
                    f"{path} is not any more what it was when this ETag was read.",
                )
        return node, device

    def _node(self, name: str) -> NodeName:
        node = self._tree.node(name)
        if node is None:
            raise missing(f"{SYSTEMS}/{name}")
        return node

    def _device(self, path: str) -> PhysicalID:
        """Return the device of a block that is spoken of."""
        place, _, name = path.rstrip("/").rpartition("/")
        if place == BLOCKS and name in self._tree.names.compute_nodes:
            raise refusal(
                HTTPStatus.CONFLICT, "ResourceInUse", "A machine's own block stays with its machine."
            )
        found = self._tree.device(name) if place == BLOCKS else None
        if found is None:
            raise refusal(
                HTTPStatus.BAD_REQUEST, "ResourceMissingAtURI", f"There is no block {path[:200]}.", path[:200]
            )
        return found.id

    def _document(self, path: str) -> Document:
        found = self._tree.find(path)
        if found is None:
            raise missing(path)
        return found

    def _listed(self, request: web.Request, node: NodeName, blocks: Sequence[str]) -> tuple[PhysicalID, ...]:
        """Return the devices of a whole list, which needs to be what the client read, but for the change."""
        if "If-Match" not in request.headers:
            raise refusal(
                HTTPStatus.PRECONDITION_REQUIRED,
                "PreconditionRequired",
                "A whole list of blocks is taken only with If-Match: somebody else may have changed it.",
            )
        own = self._tree.names.compute_path(node)
        if own not in {block.rstrip("/") for block in blocks}:
            raise refusal(
                HTTPStatus.CONFLICT, "ResourceInUse", f"The machine's own block {own} must be in the list."
            )
        return tuple(dict.fromkeys(self._device(one) for one in blocks if one.rstrip("/") != own))

    def _difference(
        self, request: web.Request, node: NodeName, wanted: Change
    ) -> tuple[tuple[PhysicalID, ...], tuple[PhysicalID, ...]]:
        """Return what a list has that a machine has not, and the other way round."""
        if not wanted.listed:
            return (), ()
        there, listed = self._tree.on(node), self._listed(request, node, wanted.blocks)
        return tuple(one for one in listed if one not in there), tuple(
            one for one in there if one not in listed
        )

    def _chosen(self, request: web.Request, node: NodeName, wanted: Sequence[More]) -> tuple[PhysicalID, ...]:
        """Return devices that agree with what is described: the first that can go there."""
        chosen: list[PhysicalID] = []
        for one in wanted:
            why = "there is none of that kind"
            left = one.count
            for device in self._manager.hardware.devices.values():
                if left and device.id not in chosen and _agrees(device, one):
                    obstacle = self._obstacle(request, node, device.id)
                    why = obstacle.words if obstacle is not None else why
                    if obstacle is None:
                        chosen.append(device.id)
                        left -= 1
            if left:
                words = f"{one.count - left} of {one.count} blocks can be given to {node}: {why}"
                raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", words)
        return tuple(chosen)

    # --- who may have what

    def _check_free(self, request: web.Request, device: PhysicalID) -> None:
        """Refuse a block that is in use, or that somebody else keeps."""
        name = self._tree.names.blocks[device]
        holder, by = self._books.holder(device), self._notes.reservations.by(device)
        if holder is not None:
            words = f"Block {name} is in use by {holder.node}."
            raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", words)
        if by and by != self._people.known(request).client:
            raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", f"Block {name} is reserved by somebody else.")

    def _obstacle(self, request: web.Request, node: NodeName, device: PhysicalID) -> Refusal | None:
        """Return why a block cannot be given to a machine now."""
        try:
            self._check_free(request, device)
        except Refusal as refused:
            return refused
        choice = self._books.choice(self._manager.order(OrderID(""), device, node))
        if isinstance(choice, Failed):
            return refusal(HTTPStatus.CONFLICT, "ResourceInUse", f"{choice.reason}.")
        return None

    def _check_add(self, request: web.Request, node: NodeName, device: PhysicalID) -> None:
        holder = self._books.holder(device)
        if holder is not None and _given(holder, node):
            return  # what is under way already is joined
        obstacle = self._obstacle(request, node, device)
        if obstacle is not None:
            raise obstacle

    def _check_remove(self, node: NodeName, device: PhysicalID) -> None:
        holder = self._books.holder(device)
        name = self._tree.names.blocks[device]
        if holder is None or holder.node != node:
            words = f"Block {name} is not part of {node}."
            raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", words)
        if holder.owner != FACE:
            words = f"Block {name} was given to {node} by {holder.owner}, who alone takes it back."
            raise refusal(HTTPStatus.FORBIDDEN, "InsufficientPrivilege", words)

    # --- carrying it out

    async def _carried_out(
        self,
        request: web.Request,
        node: NodeName,
        adds: Sequence[PhysicalID],
        removes: Sequence[PhysicalID],
        messages: Sequence[Message] = (),
    ) -> web.Response:
        """Place the orders, wait for a moment, and answer."""
        self._notes.tasks.look()  # while what became of earlier orders is remembered
        for device in removes:
            self._check_remove(node, device)
        for device in adds:
            self._check_add(request, node, device)
        # First what can still be refused: there is no way back from the rest.
        steps = await self._attach_all(request, node, adds)
        for device in removes:
            steps += await self._detach(node, device)
        later = ASYNC in request.headers.get("Prefer", "").lower()
        if not later:
            await self._settled(steps)
        task = self._notes.tasks.made(node, request.method, request.path, tuple(steps))
        if later or not task.over:
            self._notes.tasks.keep(task)
            return self._accepted(task)
        return self._ended(task, messages)

    async def _attach_all(
        self, request: web.Request, node: NodeName, devices: Sequence[PhysicalID]
    ) -> list[Step]:
        """Order all of them, or none."""
        steps: list[Step] = []
        try:
            for device in devices:
                steps.append(await self._attach(request, node, device))  # noqa: PERF401 - kept for the undoing
        except Refusal:
            for step in steps:
                await self._detach(node, step.device)
            raise
        return steps

    async def _attach(self, request: web.Request, node: NodeName, device: PhysicalID) -> Step:
        self._check_add(request, node, device)
        holder = self._books.holder(device)
        if holder is not None:
            return Step(holder.order.id, device, attach=True)
        order = self._manager.order(OrderID(f"{FACE}/{secrets.token_hex(16)}"), device, node)
        self._notes.reservations.withdraw(device)  # composing has begun, and shows as much
        progress = await self._manager.attach(order, FACE)
        if isinstance(progress, Failed):
            raise refusal(HTTPStatus.CONFLICT, "ResourceInUse", f"{progress.reason}.")
        return Step(order.id, device, attach=True)

    async def _detach(self, node: NodeName, device: PhysicalID) -> list[Step]:
        """Order it; there is nothing to order if somebody else was faster."""
        holder = self._books.holder(device)
        if holder is None or holder.node != node or holder.owner != FACE:
            return []
        order = holder.order
        self._notes.tasks.look(taken_back=order.id)
        if isinstance(await self._manager.detach(order, FACE), Failed):
            # That was an earlier failure, which its own answer told; now it is tried again.
            await self._manager.detach(order, FACE)
        return [Step(order.id, device, attach=False)]

    async def _settled(self, steps: Sequence[Step]) -> None:
        """Wait until all is done, or it takes too long to be answered at once."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._answer_seconds

        for step in steps:

            async def ask(step: Step = step) -> Progress:
                return self._notes.tasks.progress(step)

            await self._manager.settle(ask, step.order, Seconds(max(0.0, until - clock())))

    # --- answers

    def _accepted(self, task: Task) -> web.Response:
        shown = self._document(f"{TASKS}/{task.id}")
        # Without Retry-After clients look again after a second, which is right; with it, sushy 5.14 fails.
        headers = {"Location": f"{TASK_MONITORS}/{task.id}"}
        return answer(shown, HTTPStatus.ACCEPTED, headers)

    def _ended(self, task: Task, messages: Sequence[Message] = ()) -> web.Response:
        if task.failures:
            return error(Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, *told(task)))
        return self._changed(task.target, messages) if task.method == "PATCH" else nothing()

    def _changed(self, path: str, messages: Sequence[Message]) -> web.Response:
        document = self._document(path)
        info = {EXTENDED_INFO: [one.document() for one in messages]} if messages else {}
        return answer({**document, **info})


def _given(holder: Entry, node: NodeName) -> bool:
    """Whether an order of ours brings its device to this machine, or has."""
    wanted = holder.owner == FACE and not holder.closed and holder.state is not State.DETACHING
    return wanted and node == (holder.node if holder.present else holder.order.node)


def _agrees(device: Device, wanted: More) -> bool:
    """Whether a device is what was described."""
    batch = device.batch
    if parts.part_member(batch.type) != wanted.member or (wanted.model and batch.model != wanted.model):
        return False
    return not wanted.type or parts.PROCESSOR_TYPES.get(batch.type, parts.OTHER) == wanted.type


def _no_operation(words: str) -> web.Response:
    """Return that it is so already: whoever asks again is told so."""
    message = Message("NoOperation", words, severity="OK")
    return answer({EXTENDED_INFO: [message.document()]})

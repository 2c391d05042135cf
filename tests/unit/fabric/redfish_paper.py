"""A Redfish service on paper: documents at paths, and answers given in advance; nothing of it is sent anywhere."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Final, TypeVar

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Request, Wire
from jackfield.fabric.redfish.access import Client, Door, credentials
from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.fabric.redfish.events import Events
from jackfield.fabric.redfish.options import Dialect, Options, read_options
from jackfield.fabric.redfish.site import Site
from jackfield.fabric.settings import FabricSettings
from jackfield.fabric.vendors.redfish import PLAIN
from jackfield.model.fabric import Inventory, Order, Progress, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry
from jackfield.sim import clock, loop
from unit.fabric.redfish_bench import ENVIRONMENT, settings
from unit.fabric_manager.lab import FABRIC

T = TypeVar("T")

URL: Final = "http://127.0.0.1:1"
ORDER: Final = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID("b-1"))
SESSION_TOKEN: Final = "a-session-token-of-this-test"  # noqa: S105 - there is no such session
EXPANDS: Final[dict[str, object]] = {"ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 6}}

Document = dict[str, object]
Told = Answer | Callable[[], Answer]
"""An answer, or what happens as it is asked for."""


def link(path: str) -> Document:
    return {redfish.ID: path}


def block(name: str, state: str = "Unused", more: Mapping[str, object] | None = None) -> dict[str, Document]:
    """Return a block with one GPU: both documents, by path."""
    path = f"{redfish.BLOCKS}/{name}"
    part = f"{path}/Processors/{name}"
    return {
        path: {
            "Id": name,
            "ResourceBlockType": ["Processor"],
            "CompositionStatus": {"CompositionState": state, "Reserved": False},
            "Processors": [link(part)],
            "Links": {"ComputerSystems": [], "Zones": []},
            **(more or {}),
        },
        part: {"Id": name, "ProcessorType": "GPU", "Model": "A100", "SerialNumber": f"GPU-{name}"},
    }


def system(name: str, *blocks: str, **more: object) -> dict[str, Document]:
    path = f"{redfish.SYSTEMS}/{name}"
    listed = [link(f"{redfish.BLOCKS}/{one}") for one in blocks]
    target = f"{path}/Actions/ComputerSystem"
    actions = {
        redfish.ADD_BLOCK: {"target": f"{target}.AddResourceBlock"},
        redfish.REMOVE_BLOCK: {"target": f"{target}.RemoveResourceBlock"},
    }
    shown = {"Id": name, "HostName": name, "Links": {"ResourceBlocks": listed}, "Actions": actions}
    return {path: {**shown, **more}}


class Paper:
    """Answers by its documents, unless it was told otherwise."""

    def __init__(self, *documents: Mapping[str, Document], features: Document | None = None) -> None:
        self.documents: dict[str, Document] = {
            redfish.ROOT: {
                "Id": "Root",
                "Systems": link(redfish.SYSTEMS),
                "CompositionService": link(redfish.COMPOSITION),
                "ProtocolFeaturesSupported": features or {},
                "Links": {"Sessions": link(redfish.SESSIONS)},
            },
            redfish.COMPOSITION: {"Id": "C", "ResourceBlocks": link(redfish.BLOCKS)},
        }
        for those in documents:
            self.documents.update(those)
        self.told: dict[tuple[str, str], list[Told]] = {}
        """What is answered next, by method and path."""
        self.instead: Callable[[Request], Answer | None] = lambda _: None
        """Who else may answer."""
        self.asked: list[Request] = []
        self.versions: dict[str, int] = {}
        self.seconds = 0.0
        """How long a change takes to be answered."""
        self.reading_seconds = 0.001
        self.at_once = 0
        self.at_once_most = 0

    def calls(self, method: str, path: str = "") -> list[Request]:
        return [one for one in self.asked if one.method == method and one.path.startswith(path)]

    def speak(self, request: Request) -> Answer:
        self.asked.append(request)
        told = self.told.get((request.method, request.path), [])
        if told:
            first = told.pop(0)
            return first if isinstance(first, Answer) else first()
        other = self.instead(request)
        if other is not None:
            return other
        if request.method == "POST" and request.path == redfish.SESSIONS:
            where = f"{URL}{redfish.SESSIONS}/1"
            return Answer(201, b"{}", {"x-auth-token": SESSION_TOKEN, "location": where})
        if request.method == "GET":
            return self._shown(request)
        return self._changed(request) if request.path.startswith(redfish.ROOT) else Answer(405, b"")

    def _changed(self, request: Request) -> Answer:
        """Reserve, compose or take back, all at once."""
        path, _, action = request.path.partition("/Actions/")
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.headers.get("If-Match") not in {None, f'"{self.versions.get(path, 0)}"'}:
            return Answer(412, b'{"error": {"code": "Base.1.0.PreconditionFailed", "message": "old"}}')
        if path not in self.documents:
            return Answer(404, b"")
        if action:
            self.move(body["ResourceBlock"][redfish.ID], path if "Add" in action else "")
        elif "CompositionStatus" in body:
            state = self.documents[path]["CompositionStatus"]
            assert isinstance(state, dict)
            self.change(path, CompositionStatus={**state, **body["CompositionStatus"]})
        return Answer(204, b"")

    def move(self, path: str, system: str) -> None:
        """Have a block be part of a system, or of none."""
        for one, shown in tuple(self.documents.items()):
            if one.startswith(f"{redfish.SYSTEMS}/"):
                listed = shown["Links"]["ResourceBlocks"]  # type: ignore[index]  # a document of ours
                left = [each for each in listed if each[redfish.ID] != path]
                left += [link(path)] if one == system else []
                if left != listed:
                    self.change(one, Links={"ResourceBlocks": left})
        state = "Composed" if system else "Unused"
        self.change(
            path,
            CompositionStatus={"CompositionState": state, "Reserved": False},
            Links={"ComputerSystems": [link(system)] if system else [], "Zones": []},
        )

    def _shown(self, request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        document = self._document(path.rstrip("/"), 2 if "levels" in query else int("expand" in query))
        if document is None:
            return Answer(404, b'{"error": {"code": "Base.1.0.ResourceMissingAtURI", "message": "gone"}}')
        tag = f'"{self.versions.get(path.rstrip("/"), 0)}"'
        if request.headers.get("If-None-Match") == tag:
            return Answer(304, b"")
        return Answer(200, msgspec.json.encode(document), {"etag": tag})

    def _document(self, path: str, levels: int) -> Document | None:
        if path in {redfish.SYSTEMS, redfish.BLOCKS, redfish.ZONES}:
            inside = [one for one in self.documents if one.startswith(f"{path}/")]
            members = [one for one in inside if "/" not in one[len(path) + 1 :]]
            shown = [self._document(one, levels - 1) if levels else link(one) for one in members]
            return {redfish.ID: path, "Members": shown}
        if path not in self.documents:
            return None
        found = self.documents[path]
        if levels and "Processors" in found:
            parts = found["Processors"]
            assert isinstance(parts, list)
            found = {**found, "Processors": [self._document(str(one[redfish.ID]), 0) for one in parts]}
        return {redfish.ID: path, **found}

    def change(self, path: str, **properties: object) -> None:
        """Write something, as the service itself does."""
        self.documents[path] = {**self.documents[path], **properties}
        self.versions[path] = self.versions.get(path, 0) + 1


class PaperWire(Wire):
    """A wire at whose end the paper is read."""

    def __init__(self, paper: Paper, given: FabricSettings) -> None:
        super().__init__(given, redfish.JSON)
        self._paper = paper

    async def call(self, request: Request) -> Answer:
        self._paper.at_once += 1
        self._paper.at_once_most = max(self._paper.at_once_most, self._paper.at_once)
        span = self._paper.reading_seconds if request.method == "GET" else max(0.001, self._paper.seconds)
        await asyncio.sleep(span)  # noqa: TID251 - lets others in between, as a real wire does
        self._paper.at_once -= 1
        return self._paper.speak(request)


def over(paper: Paper, given: FabricSettings, found: Options, dialect: Dialect) -> RedfishFabric:
    """Return an adapter that reads a paper."""
    now = clock.running()
    wire = PaperWire(paper, given)
    door = Door(wire, found.authentication, credentials(found, ENVIRONMENT), now)
    client = Client(wire, door, plain_errors=dialect.plain_errors)
    site = Site(FABRIC, found, dialect, client, now)
    return RedfishFabric(given, site, Events(given, door, now))


def adapter(paper: Paper, **more: object) -> RedfishFabric:
    given = settings(URL, **more)
    return over(paper, given, read_options(given, Options), PLAIN)


def play(paper: Paper, scene: Callable[[RedfishFabric], Coroutine[object, object, T]], **more: object) -> T:
    """Play with an adapter that reads this paper, on time of its own."""

    async def main() -> T:
        async with adapter(paper, **more) as fabric:
            return await scene(fabric)

    return loop.run(main())


# --- what many tests do


def small() -> Paper:
    return Paper(system("n-1"), system("n-2"), block("b-1"), block("b-2"))


def error(status: int, *words: str, code: str = "Base.1.0.GeneralError") -> Answer:
    info = [{"MessageId": code, "Message": one} for one in words]
    body = {"error": {"code": code, "message": "See @Message.ExtendedInfo.", redfish.EXTENDED_INFO: info}}
    return Answer(status, msgspec.json.encode(body))


def answer(status: int, body: object = None, **headers: str) -> Answer:
    return Answer(status, msgspec.json.encode(body or {}), headers)


async def settled(fabric: RedfishFabric, order: Order = ORDER, *, detach: bool = False) -> Progress:
    for _ in range(1000):
        try:
            answer = await (fabric.detach(order) if detach else fabric.attach(order))
        except Retry:
            answer = Working()
        if not isinstance(answer, Working):
            return answer
        await clock.running().sleep(Seconds(0.5))
    raise AssertionError("it never ended")


async def shown(fabric: RedfishFabric) -> Inventory:
    for _ in range(100):
        try:
            return await fabric.inventory()
        except Retry as error:
            await clock.running().sleep(error.after)
    raise AssertionError("there never was an inventory")

"""Sunfish on paper: trees of agents merged, changes passed on to the agent that is concerned, answers in plain text.

It does what the reference server does: nothing is tagged, nothing can be posted, a change that does not name its
resource in the body breaks it, and what a change did to other resources shows only if the agent tells.
"""

from typing import Final

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.http import Answer, Request
from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.fabric.redfish.options import read_options
from jackfield.fabric.settings import FabricSettings
from jackfield.fabric.vendors.sunfish import MERGED, SunfishOptions
from jackfield.model.names import Seconds
from unit.fabric.redfish_paper import URL, Document, Paper, block, link, over, system
from unit.fabric_manager.lab import FABRIC

AGENTS: Final = "/redfish/v1/AggregationService/AggregationSources"
BROKEN: Final = Answer(500, b"<!doctype html><title>500 Internal Server Error</title>")


def of(agent: str) -> Document:
    return {"Oem": {"Sunfish_RM": {"ManagingAgent": link(f"{AGENTS}/{agent}")}}}


def a_block(name: str, model: str = "A100", agent: str = "one") -> dict[str, Document]:
    """Return a block and its device, under the name that Sunfish gave it."""
    made = block(f"Sunfish_{agent}_{name}", more=of(agent))
    (part,) = (path for path in made if "Processors" in path)
    made[part] |= {"Model": model, "SerialNumber": name}
    return made


def a_system(name: str, agent: str = "one") -> dict[str, Document]:
    (made,) = system(f"Sunfish_{agent}_{name}", HostName=name, **of(agent)).items()
    path, shown = made
    return {path: {key: one for key, one in shown.items() if key != "Actions"}}


class Sunfish(Paper):
    """The merged tree; `tells` is whether agents send events of what a change did to other resources."""

    def __init__(self, *documents: dict[str, Document], tells: bool = True) -> None:
        super().__init__(*documents)
        self.tells = tells

    def speak(self, request: Request) -> Answer:
        if request.method == "POST":
            self.asked.append(request)
            return Answer(405, b"method not allowed")
        answer = super().speak(request)
        return Answer(answer.status, answer.body)  # nothing is tagged

    def _changed(self, request: Request) -> Answer:
        body = msgspec.json.decode(request.body)
        path = request.path
        if body.get(redfish.ID) != path or body.get("Id") != path.rpartition("/")[2]:
            return BROKEN
        if path not in self.documents:
            return Answer(404, f"Resource {path} not found".encode())
        if "Links" in body:
            return self._composed(path, [one[redfish.ID] for one in body["Links"]["ResourceBlocks"]])
        self.change(path, CompositionStatus=body["CompositionStatus"])
        return Answer(200, msgspec.json.encode(self.documents[path]))

    def _composed(self, path: str, blocks: list[str]) -> Answer:
        others = [one for one in self.documents if one.startswith(f"{redfish.SYSTEMS}/") and one != path]
        taken = {one for other in others for one in self.listed(other)}
        if taken.intersection(blocks):
            return Answer(400, b"the agent says: a block is in use")
        for one in {*blocks}.symmetric_difference(self.listed(path)) if self.tells else ():
            state = "Composed" if one in blocks else "Unused"
            self.change(one, CompositionStatus={"CompositionState": state, "Reserved": False})
        self.change(path, Links={"ResourceBlocks": [link(one) for one in blocks]})
        return Answer(200, msgspec.json.encode(self.documents[path]))

    def listed(self, path: str) -> list[str]:
        links = self.documents[path]["Links"]
        assert isinstance(links, dict)
        return [one[redfish.ID] for one in links["ResourceBlocks"]]


def small(*, tells: bool = True, seconds: float = 0.0) -> Sunfish:
    """Return the lab that the table is tried on."""
    blocks = [a_block(f"a-{number}") for number in range(10)]
    made = Sunfish(a_system("n-1"), a_system("n-2"), *blocks, a_block("h-0", "H100"), tells=tells)
    made.seconds = seconds
    return made


def given(**more: object) -> FabricSettings:
    options: dict[str, object] = {
        "authentication": "none",
        "models": [{"name": "A100"}, {"name": "H100"}],
        "slots": 10,
        "effectSeconds": 15.0,
        "queueSeconds": 35.0,
        "jobs": 3,
        **more,
    }
    return FabricSettings(FABRIC, "sunfish", URL, call_timeout_seconds=Seconds(5.0), options=options)


def adapter(paper: Sunfish, **more: object) -> RedfishFabric:
    settings = given(**more)
    return over(paper, settings, read_options(settings, SunfishOptions), MERGED)

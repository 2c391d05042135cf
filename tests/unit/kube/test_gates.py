"""What the API server supports is found out by what it keeps of a slice that is never created."""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from jackfield.codec import Raw, copied
from jackfield.kube.api import JSON
from jackfield.kube.gates import SLICES, supported
from jackfield.model.gates import Gates
from jackfield.ports import Refused

NOTHING: Mapping[str, str] = {}
BINDING = ("bindsToNode", "bindingConditions", "bindingFailureConditions")
ALL = Gates("v1.36.4")


class Server:
    """An API server that drops the fields of gates that are off, and refuses what is then no slice."""

    def __init__(self, gates: Gates, *, may_create: bool = True) -> None:
        self.gates = gates
        self.may_create = may_create
        self.created = 0

    async def raw(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, str] = NOTHING,
        content_type: str = JSON,
    ) -> Raw:
        assert content_type == JSON
        match method, path:
            case "GET", "/version":
                return {"gitVersion": self.gates.kubernetes} if self.gates.kubernetes else {}
            case "GET", "/apis/resource.k8s.io/v1" if self.gates.claims:
                return {"resources": [{"name": "resourceclaims"}, {"name": "resourceslices"}]}
            case "GET", "/apis/resource.k8s.io/v1beta2" if self.gates.taint_rules:
                return {"resources": [{"name": "devicetaintrules"}]}
            case "POST", one if one == SLICES:
                self.created += params.get("dryRun") != "All"
                return self._created(copied(body))
            case _:
                raise Refused("404 page not found")

    def _created(self, new: Raw) -> Raw:
        if not self.may_create:
            raise Refused("forbidden")
        (entry,) = new["spec"]["devices"]
        dropped = [
            *(BINDING if not self.gates.binding_conditions else ()),
            *(("taints",) if not self.gates.device_taints else ()),
            *(("allNodes",) if not self.gates.per_device_node_selection else ()),
        ]
        for field in dropped:
            entry.pop(field, None)
        if not self.gates.per_device_node_selection:
            new["spec"].pop("perDeviceNodeSelection", None)
        if not {"allNodes", "perDeviceNodeSelection"} & set(new["spec"]):
            raise Refused(
                "exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection is required"
            )
        return new


FOUND = {
    "all": ALL,
    "a release that is not told": replace(ALL, kubernetes=""),
    "no binding conditions": replace(ALL, binding_conditions=False),
    "no selection by entry": replace(ALL, per_device_node_selection=False),
    "no taints": replace(ALL, device_taints=False),
    "no rules": replace(ALL, taint_rules=False),
    "nothing but claims": replace(Gates("v1.34.0", *(False,) * 5), claims=True),
    "nothing": Gates("v1.33.0", *(False,) * 5),
}


@pytest.mark.parametrize("gates", FOUND.values(), ids=FOUND)
def test_what_the_server_supports_is_found_and_nothing_is_created(gates: Gates) -> None:
    server = Server(gates)
    assert asyncio.run(supported(server)) == gates
    assert server.created == 0


def test_who_may_not_create_slices_is_told_so() -> None:
    with pytest.raises(Refused, match="forbidden"):
        asyncio.run(supported(Server(ALL, may_create=False)))

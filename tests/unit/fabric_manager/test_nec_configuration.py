"""The NEC face shows what stands where, to clients that connect CPUs and to those that connect fabric adapters."""

from pathlib import Path

from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.model.names import PhysicalID
from unit.fabric_manager.nec_client import Client, Json, served

# --- the configuration


def test_resources_and_nodes_show_what_stands_where(tmp_path: Path) -> None:
    async def play(client: Client) -> None:
        await client.ended(await client.begin(client.step(1, "connect", "a-1")))
        await client.manager.set_fault(Fault(Kind.ILL, device=PhysicalID("a-2")))
        await client.manager.set_fault(Fault(Kind.VANISH, device=PhysicalID("a-3")))
        shown = (await client.call("GET", "/cdim/api/v1/resources?detail=true"))[1]
        every = {one["device"]["deviceID"]: one for one in shown["resources"]}
        assert [*every] == sorted(every)
        assert (shown["count"], every["a-1"]["device"]["model"]) == (11 + 2 * 3, "A100")
        assert every["a-2"]["device"]["status"] == {"state": "Enabled", "health": "Critical"}
        assert (every["a-3"]["detected"], every["a-4"]["detected"]) == (False, True)
        (node,) = every["a-1"]["nodeIDs"]
        assert every["a-9"]["device"]["constraints"]["nonRemovableDevices"][0]["deviceID"] == node
        brief = (await client.call("GET", "/cdim/api/v1/resources"))[1]["resources"][0]
        assert {*brief["device"]} == {"deviceID", "type", "status"}
        unused = (await client.call("GET", "/cdim/api/v1/resources/unused"))[1]["resources"]
        assert {one["device"]["deviceID"] for one in unused} == {*every} & {
            *["a-4", "a-5", "a-6", "a-7", "a-8", "a-10", "h-1"]
        } | {one for one, found in every.items() if found["device"]["type"] == "CPU" and one != node}
        available = (await client.call("GET", "/cdim/api/v1/resources/available"))[1]["resources"]
        assert {"a-1", "a-9"} <= {one["device"]["deviceID"] for one in available}
        assert (await client.call("GET", "/cdim/api/v1/resources/a-1")) == (200, every["a-1"])
        assert (await client.call("GET", "/cdim/api/v1/resources/z"))[0] == 404
        found = (await client.call("GET", f"/cdim/api/v1/nodes/{node.upper()}"))[1]
        assert (found["name"], len(found["resources"])) == ("n-1", 5)
        assert (await client.call("GET", "/cdim/api/v1/nodes/z"))[0] == 404

    served(tmp_path, play, before="a-9")


def test_a_client_that_connects_fabric_adapters_finds_its_way_to_and_fro(tmp_path: Path) -> None:
    """As CoHDI's client does it: from the node to its adapter, to the far one, to a GPU that nobody has."""

    async def resource(client: Client, name: str) -> Json:
        return dict((await client.call("GET", f"/cdim/api/v1/resources/{name}"))[1]["device"])

    def linked(device: Json, kind: str) -> list[str]:
        return [one["deviceID"] for one in device["links"] if one["type"] == kind]

    async def play(client: Client) -> None:
        nodes = (await client.call("GET", "/cdim/api/v1/nodes?detail=true"))[1]["nodes"]
        (node,) = (one for one in nodes if one["name"] == "n-2")
        parts = [one["device"] for one in node["resources"] if one["detected"]]
        (near,) = (one for one in parts if one["type"] == "sourceFabricAdapter")
        assert near["attribute"]["deviceSpecificInformation"]["status"] == "eesv"
        (far,) = linked(near, "destinationFabricAdapter")
        adapter = await resource(client, far)
        assert (adapter["type"], adapter["attribute"]["deviceSpecificInformation"]["status"]) == (
            "destinationFabricAdapter",
            "eeio",
        )
        step = {"operationID": 1, "sourceDeviceID": far, "destinationDeviceID": "a-1", "dependencies": []}
        assert linked(await resource(client, "a-1"), "eeio") == []
        await client.ended(await client.begin(step | {"operation": "connect"}))
        gpu = await resource(client, "a-1")
        assert (linked(gpu, "eeio"), linked(gpu, "destinationFabricAdapter")) == ([far], [far])
        assert await client.there() == {"a-1": "n-2"}
        await client.ended(await client.begin(step | {"operation": "disconnect"}))
        assert await client.there() == {}

    served(tmp_path, play)

"""DMTF's client and OpenStack's find a block, reserve it, give it to a machine, follow the task, take it back."""

import time

import pytest
import redfish
import sushy
from sushy.auth import BasicAuth, SessionAuth
from sushy.resources.compositionservice.constants import CompositionState
from sushy.resources.compositionservice.resourceblock import ResourceBlockCollection
from sushy.resources.compositionservice.resourcezone import ResourceZoneCollection

from judges.conftest import Service

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/worker-1"
BLOCK = f"{ROOT}/CompositionService/ResourceBlocks/a100-1"
ADD = f"{SYSTEM}/Actions/ComputerSystem.AddResourceBlock"
REMOVE = f"{SYSTEM}/Actions/ComputerSystem.RemoveResourceBlock"
WANTED = {"ResourceBlock": {"@odata.id": BLOCK}}
RESERVED = {"CompositionStatus": {"Reserved": True}}


@pytest.mark.parametrize("way_in", ["session", "basic"])
def test_the_client_of_dmtf_composes_and_decomposes(service: Service, way_in: str) -> None:
    client = redfish.redfish_client(
        base_url=service.url,
        username=service.user,
        password=service.password,
        cafile=str(service.authority),
    )
    client.login(auth=way_in)
    members = client.get(client.root["Systems"]["@odata.id"]).dict["Members"]
    assert {"@odata.id": SYSTEM} in members
    names = {client.get(one["@odata.id"]).dict["HostName"] for one in members}
    assert names == {"worker-1", "worker-2", "worker-3", "storage-1"}
    service_path = client.root["CompositionService"]["@odata.id"]
    blocks = client.get(client.get(service_path).dict["ResourceBlocks"]["@odata.id"]).dict["Members"]
    free = [
        one["@odata.id"]
        for one in blocks
        if client.get(one["@odata.id"]).dict["CompositionStatus"]["CompositionState"] == "Unused"
    ]
    assert BLOCK in free
    tag = client.get(BLOCK).getheader("ETag")
    assert client.patch(BLOCK, body=RESERVED, headers={"If-Match": tag}).status == 200
    assert client.patch(BLOCK, body=RESERVED, headers={"If-Match": tag}).status == 412
    answer = client.post(ADD, body=WANTED)
    assert (answer.status, answer.is_processing) == (202, True)
    assert answer.dict["TaskState"] == "Running"
    while (monitor := answer.monitor(client)).is_processing:
        time.sleep(0.1)  # noqa: TID251 - their clients block
    assert monitor.status == 204
    assert client.get(answer.dict["@odata.id"]).dict["TaskState"] == "Completed"
    parts = client.get(f"{SYSTEM}/Processors").dict["Members"]
    assert [client.get(one["@odata.id"]).dict["ProcessorType"] for one in parts] == ["GPU"]
    removal = client.post(REMOVE, body=WANTED)
    while removal.status == 202:
        time.sleep(0.1)  # noqa: TID251 - likewise
        removal = client.get(removal.task_location)
    assert removal.status == 204
    assert client.get(BLOCK).dict["CompositionStatus"]["CompositionState"] == "Unused"
    client.logout()


@pytest.mark.parametrize("way_in", [SessionAuth, BasicAuth])
def test_sushy_composes_and_decomposes(service: Service, way_in: type[SessionAuth | BasicAuth]) -> None:
    proof = way_in(service.user, service.password)
    root = sushy.Sushy(service.url, auth=proof, verify=str(service.authority))
    systems = {one.hostname: one for one in root.get_system_collection().get_members()}
    assert systems["worker-1"].path == SYSTEM
    assert systems["worker-1"].system_type is sushy.SystemType.COMPOSED
    assert root.get_chassis_collection().get_members()
    assert [one.name for one in root.get_fabric_collection().get_members()] == ["lab"]
    assert root.get_session_service().session_timeout == 1800
    assert root.get_composition_service().allow_overprovisioning is False
    # Its properties `resource_blocks` and `resource_zones` pass on a function instead of calling it, in 5.14.
    place = root.get_composition_service().path
    connector = root._conn  # noqa: SLF001 - it has no other way to send what it has no word for
    zones = ResourceZoneCollection(connector, f"{place}/ResourceZones", root=root).get_members()
    assert [one.identity for one in zones] == ["switch-1", "switch-2"]
    blocks = ResourceBlockCollection(connector, f"{place}/ResourceBlocks", root=root).get_members()
    (block,) = (one for one in blocks if one.path == BLOCK)
    assert block.composition_status.composition_state is CompositionState.UNUSED
    assert not block.composition_status.reserved_state
    tag = block._get_etag()  # noqa: SLF001 - likewise
    connector.patch(BLOCK, data=RESERVED, etag=tag)
    block.refresh(force=True)
    assert block.composition_status.reserved_state
    answer = connector.post(ADD, data=WANTED)
    assert answer.status_code == 202
    monitor = root.get_task_monitor(answer.headers["Location"])
    monitor.wait(60)
    assert monitor.response.status_code == 204
    (task,) = root.get_task_service().tasks.get_members()
    assert (task.task_state, task.percent_complete) == (sushy.TaskState.COMPLETED, 100)
    system = root.get_system(SYSTEM)
    assert [one.processor_type for one in system.processors.get_members()] == [sushy.ProcessorType.GPU]
    with pytest.raises(sushy.exceptions.HTTPError, match=r"409.*in use by worker-1"):
        connector.post(ADD.replace("worker-1", "worker-2"), data=WANTED)
    removal = connector.post(REMOVE, data=WANTED)
    if removal.status_code == 202:
        root.get_task_monitor(removal.headers["Location"]).wait(60)
    block.refresh(force=True)
    assert block.composition_status.composition_state is CompositionState.UNUSED
    proof.close()

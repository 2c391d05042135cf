"""What the API server supports, found out by asking it to create what it would have to cut.

Knows discovery, dry runs, and that a server drops the fields of a gate that is off. Must not know what follows from it.
"""

from contextlib import suppress

from jackfield.codec import Raw, dig, encode, objects
from jackfield.kube.api import Api
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.gates import Gates
from jackfield.model.meta import ObjectMeta
from jackfield.model.policy import DRIVER, FAILED, READY
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import Gone, Refused

PROBE = "jackfield-probe"
SLICES = f"/apis/{ResourceSlice.group}/{ResourceSlice.version}/{ResourceSlice.plural}"


async def supported(api: Api) -> Gates:
    """Return what the API server supports; nothing is created. Raises Refused if slices may not be created."""
    version = str((await api.raw("GET", "/version")).get("gitVersion") or "")
    if ResourceSlice.plural not in await _served(api, ResourceSlice.version):
        return Gates(version, *(False,) * 5)
    device = _kept(await _tried(api, _slice(all_nodes=True)))
    return Gates(
        kubernetes=version,
        binding_conditions=all(
            device.get(field) for field in ("bindsToNode", "bindingConditions", "bindingFailureConditions")
        ),
        per_device_node_selection=await _keeps_nodes(api),
        device_taints=bool(device.get("taints")),
        taint_rules=DeviceTaintRule.plural in await _served(api, DeviceTaintRule.version),
    )


async def _keeps_nodes(api: Api) -> bool:
    """Without the gate the slice is left with no nodes at all, which is refused."""
    with suppress(Refused):
        answer = await _tried(api, _slice(all_nodes=False))
        return bool(dig(answer, "spec", "perDeviceNodeSelection") and _kept(answer).get("allNodes"))
    return False


async def _served(api: Api, version: str) -> tuple[str, ...]:
    """Return what is served of DRA's group in a version."""
    with suppress(Gone, Refused):
        answer = await api.raw("GET", f"/apis/{ResourceSlice.group}/{version}")
        return tuple(str(one.get("name")) for one in objects(answer.get("resources")))
    return ()


async def _tried(api: Api, new: ResourceSlice) -> Raw:
    return await api.raw("POST", SLICES, encode(new), params={"dryRun": "All"})


def _kept(answer: Raw) -> Raw:
    return next(iter(objects(dig(answer, "spec", "devices"))), {})


def _slice(*, all_nodes: bool) -> ResourceSlice:
    """Return a slice that uses every gate; its entry names nodes only where the slice does not."""
    entry = Device(
        PROBE,
        all_nodes=not all_nodes,
        taints=(DeviceTaint("probe", effect="NoSchedule"),),
        binds_to_node=True,
        binding_conditions=(READY,),
        binding_failure_conditions=(FAILED,),
    )
    spec = ResourceSliceSpec(
        driver=DRIVER,
        pool=ResourcePool(PROBE),
        all_nodes=all_nodes,
        per_device_node_selection=not all_nodes,
        devices=(entry,),
    )
    return ResourceSlice(metadata=ObjectMeta(generate_name=f"{PROBE}-"), spec=spec)

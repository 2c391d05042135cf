"""Objects that the tests of `check` look at: claims that were told something, slices that list something."""

from msgspec.structs import replace

from jackfield.model.claim import AllocatedDeviceStatus, ResourceClaim
from jackfield.model.device import Device
from jackfield.model.meta import Condition
from jackfield.model.policy import DRIVER, READY
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.testing import builders as b

NODE, CLAIM = b.node(), b.claim("c")


def told(*kinds: str, claim: ResourceClaim = CLAIM, why: str = "because") -> ResourceClaim:
    """Return the claim with these conditions on each device."""
    conditions = tuple(Condition(kind, "True", kind, why) for kind in kinds)
    devices = tuple(
        AllocatedDeviceStatus(one.driver, one.pool, one.device, conditions=conditions)
        for one in claim.results
    )
    return replace(claim, status=replace(claim.status, devices=devices))


def listing(name: str, *devices: str, binds: int | None = None) -> ResourceSlice:
    """Return a slice of the fabric's pool; only the first `binds` entries wait for us."""
    ours = len(devices) if binds is None else binds
    entries = tuple(
        Device(one, binding_conditions=(READY,) if at < ours else ()) for at, one in enumerate(devices)
    )
    spec = ResourceSliceSpec(DRIVER, ResourcePool("rack-a", 1), devices=entries)
    return ResourceSlice(metadata=replace(NODE.metadata, name=name, uid=name), spec=spec)

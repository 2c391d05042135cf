"""Names derived from other names, so that a repeat meets what the first attempt made.

Knows how fabrics, models and devices are spelt in the API. Must not know their state.
"""

import hashlib
import re

from jackfield.model.names import DeviceID, FabricName, NodeName, PhysicalID
from jackfield.model.policy import DRIVER, READY, DeviceModel, Policy
from jackfield.model.slice import ResourceSlice

_LABEL_MAX = 63
_DIGEST_LENGTH = 12
_DNS_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def pool(fabric: FabricName, model: DeviceModel) -> str:
    """Return the pool a model's devices are published in: the fabric's, or in `reschedule` CoHDI's."""
    return fabric if model.binds else f"{model.k8s_device_name}-fabric{fabric}"


def device(fabric: FabricName, model: DeviceModel, physical: PhysicalID) -> DeviceID:
    """Return the name for life of a device that the manager lets us choose."""
    end = slug(physical, _LABEL_MAX - len(model.k8s_device_name) - 1)
    return DeviceID(model.driver_name, pool(fabric, model), f"{model.k8s_device_name}-{end}")


def slot(fabric: FabricName, model: DeviceModel, number: int) -> DeviceID:
    """Return the name of a slot, where the manager chooses the device itself."""
    return DeviceID(model.driver_name, pool(fabric, model), f"{model.k8s_device_name}-{number}")


def slot_number(name: DeviceID) -> int:
    """Return the number of a slot; -1 for what is none."""
    number = name.device.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def resource(fabric: FabricName, name: DeviceID) -> str:
    """Return the name of the one ComposableResource of a device (rule 1); a device's name has no dot."""
    return f"{name.device}.{fabric}"


def taint(resource_name: str) -> str:
    """Return the name of the rule that taints a resource's device while it is detached, as CoHDI names it."""
    return f"{resource_name}-taint"


def request(node: NodeName, model: DeviceModel) -> str:
    """Return the name of the scaler's request for a node and a model; it is a label's value on its resources."""
    plain = f"jackfield-{model.k8s_device_name}-{node}"
    return plain if len(plain) <= _LABEL_MAX else f"{plain[: _LABEL_MAX - 9]}-{_digest(plain)[:8]}"


def slice_name(driver: str, pool_name: str, index: int) -> str:
    """Return the name of a pool's slice; the scheduler looks at slices in the order of their names."""
    return f"{index:04x}-{driver}-{pool_name.replace('/', '-')}"


def slice_index(name: str) -> int:
    """Return the index in a slice's name; -1 for what is no name of ours."""
    head = name.partition("-")[0]
    return int(head, 16) if head and all(letter in "0123456789abcdef" for letter in head) else -1


def forsaken(one: ResourceSlice) -> FabricName | None:
    """Return the fabric of a slice that we wrote, whatever the policy knows of it now; None for others' slices."""
    driver, pool_name, name = one.spec.driver, one.spec.pool.name, one.metadata.name
    if not one.spec.devices or any(READY not in entry.binding_conditions for entry in one.spec.devices):
        return None
    if name != slice_name(driver, pool_name, slice_index(name)):
        return None
    return FabricName(pool_name if driver == DRIVER else pool_name.rpartition("-fabric")[2])


def fabric_of(name: DeviceID, policy: Policy) -> FabricName | None:
    """Return the fabric a device belongs to, or None for what is not ours."""
    if name.driver == DRIVER:
        return FabricName(name.pool)
    model = model_of(name, policy)
    if model is None:
        return None
    prefix = f"{model.k8s_device_name}-fabric"
    return FabricName(name.pool.removeprefix(prefix)) if name.pool.startswith(prefix) else None


def model_of(name: DeviceID, policy: Policy) -> DeviceModel | None:
    """Return the model of a device, or None for what is not ours."""
    for (
        model
    ) in policy.models:  # no model's name begins with another's and a dash: `policies.faults` sees to it
        if model.driver_name == name.driver and name.device.startswith(f"{model.k8s_device_name}-"):
            return model
    return None


def slug(physical: PhysicalID, length_max: int) -> str:
    """Return the manager's id as the end of a DNS label: itself if it may stand there, else a digest."""
    if len(physical) <= length_max and _DNS_LABEL.fullmatch(physical):
        return physical
    return _digest(physical)[:_DIGEST_LENGTH]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

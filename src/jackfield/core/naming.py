"""Names derived from other names, so that a repeat meets what the first attempt made.

Knows how fabrics, models and devices are spelt in the API. Must not know their state.
"""

import hashlib

from jackfield.model.names import DeviceID, FabricName, NodeName, PhysicalID
from jackfield.model.policy import DRIVER, DeviceModel, Policy

_PLAIN_MAX = 12


def pool(fabric: FabricName, model: DeviceModel) -> str:
    """Return the pool a model's devices are published in: the fabric's, or in `reschedule` CoHDI's."""
    return fabric if model.binds else f"{model.k8s_device_name}-fabric{fabric}"


def device(fabric: FabricName, model: DeviceModel, physical: PhysicalID) -> DeviceID:
    """Return the name for life of a device that the manager lets us choose."""
    return DeviceID(model.driver_name, pool(fabric, model), f"{model.k8s_device_name}-{slug(physical)}")


def slot(fabric: FabricName, model: DeviceModel, number: int) -> DeviceID:
    """Return the name of a slot, where the manager chooses the device itself."""
    return DeviceID(model.driver_name, pool(fabric, model), f"{model.k8s_device_name}-{number}")


def slot_number(name: DeviceID) -> int:
    """Return the number of a slot; -1 for what is none."""
    number = name.device.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def resource(fabric: FabricName, name: DeviceID) -> str:
    """Return the name of the one ComposableResource of a device (rule 1)."""
    return f"{fabric}-{name.device}"


def request(node: NodeName, model: DeviceModel) -> str:
    """Return the name of the scaler's request for a node and a model."""
    plain = f"jackfield-{model.k8s_device_name}-{node}"
    return plain if len(plain) <= _LABEL_MAX else f"{plain[: _LABEL_MAX - 9]}-{_digest(plain)[:8]}"


_LABEL_MAX = 63  # a request's name is a label's value on its resources


def slice_name(driver: str, pool_name: str, index: int) -> str:
    """Return the name of a pool's slice; the scheduler looks at slices in the order of their names."""
    return f"{index:04x}-{driver}-{pool_name.replace('/', '-')}"


def slice_index(name: str) -> int:
    """Return the index in a slice's name; -1 for what is no name of ours."""
    head = name.partition("-")[0]
    return int(head, 16) if head and all(letter in "0123456789abcdef" for letter in head) else -1


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
    model = policy.model_of_device(name.device.rpartition("-")[0])
    return model if model is not None and model.driver_name == name.driver else None


def slug(physical: PhysicalID) -> str:
    """Return the manager's id as part of a DNS label without dashes: itself if short and plain, else a digest."""
    plain = physical.lower()
    if len(plain) <= _PLAIN_MAX and plain.isascii() and plain.isalnum():
        return plain
    return _digest(physical)[:_PLAIN_MAX]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""ResourceSlice and DeviceClass: what is on offer, and under which name it is asked for.

Knows DRA's v1 fields. Must not know who publishes or allocates.
"""

from typing import ClassVar

from jackfield.model.claim import DeviceClassConfiguration, DeviceSelector
from jackfield.model.device import CounterSet, Device
from jackfield.model.meta import NodeSelector, Object, Wire
from jackfield.model.names import NodeName


class ResourcePool(Wire, frozen=True, gc=False, omit_defaults=False):
    """The pool a slice is part of; only the highest generation counts. The API wants every field."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Wire, frozen=True, gc=False):
    """A part of a pool's devices."""

    driver: str
    pool: ResourcePool
    node_name: NodeName = NodeName("")
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True, gc=False, kw_only=True):
    """Devices on offer."""

    group: ClassVar[str] = "resource.k8s.io"
    plural: ClassVar[str] = "resourceslices"

    spec: ResourceSliceSpec


class DeviceClassSpec(Wire, frozen=True, gc=False):
    """Which devices a class means."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Object, frozen=True, gc=False, kw_only=True):
    """A kind of device that claims ask for by name."""

    group: ClassVar[str] = "resource.k8s.io"
    plural: ClassVar[str] = "deviceclasses"

    spec: DeviceClassSpec = DeviceClassSpec()

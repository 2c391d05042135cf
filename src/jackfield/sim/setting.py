"""What a scenario says of the stage before anything happens: nodes, fabrics, classes, policy. Decodable from YAML.

Knows values only. Must not know how they come to life.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from jackfield.core.allocate import Features
from jackfield.model.names import FabricName, Seconds
from jackfield.model.policy import Policy
from jackfield.sim.chance import Distribution, Fixed
from jackfield.sim.host import HostSpec
from jackfield.sim.spec import FabricSpec
from jackfield.sim.weather import CALM

Count = Annotated[int, msgspec.Meta(ge=0)]


class LocalDevices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices that a node has of its own; no fabric knows of them."""

    driver: str
    count: Count = 1
    attributes: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So many alike nodes; one of a count of 1 is called by the name alone."""

    name: str
    count: Count = 1
    cpu: str = "16"
    memory: str = "64Gi"
    pods: str = "110"
    labels: Mapping[str, str] = {}
    fabric: FabricName = FabricName("")
    """The fabric they are machines of; none if empty."""
    slots: Count = 8
    local: tuple[LocalDevices, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the names of the nodes."""
        if self.count == 1:
            return (self.name,)
        width = len(str(self.count))
        return tuple(f"{self.name}-{number:0{width}}" for number in range(1, self.count + 1))


class Class(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A DeviceClass, by one CEL expression."""

    name: str
    expression: str = "true"


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The stage."""

    nodes: tuple[Nodes, ...] = ()
    fabrics: tuple[FabricSpec, ...] = ()
    classes: tuple[Class, ...] = ()
    policy: Policy = Policy()
    host: HostSpec = HostSpec()
    boot: Distribution = Fixed(Seconds(90.0))
    """How long a node that is added takes to be ready."""
    pod_start: Distribution = Fixed(Seconds(1.0))
    pod_stop: Distribution = Fixed(Seconds(1.0))
    scheduler_lag: Distribution = Fixed(Seconds(0.0))
    """How old the scheduler's caches may be."""
    api_latency: Distribution = CALM
    """How long a call to the API is on its way."""
    replicas: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many replicas of our controllers there are; one alone needs no lease."""
    lease_seconds: Seconds = Seconds(15.0)
    features: Features = Features()
    """The scheduler's gates and release."""
    heartbeat: Seconds = Seconds(10.0)
    real_api: bool = False
    """Whether the API is a real one, with a scheduler that reads taints, and may know these nodes already."""

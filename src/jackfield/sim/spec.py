"""What a scenario says of a fabric: its hardware and the manner of its manager. Decodable from YAML.

Knows values only. Must not know how they come to life.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from jackfield.model.fabric import Machine, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.sim.chance import Distribution, Fixed, Lognormal


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So many devices of a model behind one switch."""

    model: ModelName
    count: Annotated[int, msgspec.Meta(ge=0)]
    switch: str = ""
    type: str = "gpu"
    attributes: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}


class Foreign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices that somebody else attached to one of our machines before we came."""

    node: NodeName
    model: ModelName
    count: int = 1


class Refusals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong however often it is tried, and what goes wrong now and then."""

    devices: tuple[PhysicalID, ...] = ()
    """Attaching any of these fails."""
    nodes: tuple[NodeName, ...] = ()
    """Attaching anything to any of these fails."""
    attach: float = 0.0
    """How likely any other attach is to fail."""
    detach: float = 0.0
    """How likely a detach is to fail; the device stays where it is."""


class FabricSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fabric and the manner of its manager."""

    name: FabricName
    machines: tuple[Machine, ...] = ()
    batches: tuple[Batch, ...] = ()
    traits: Traits = Traits()
    attach: Distribution = Lognormal(Seconds(20.0), 0.5, max=Seconds(120.0))
    detach: Distribution = Fixed(Seconds(5.0))
    refusals: Refusals = Refusals()
    foreign: tuple[Foreign, ...] = ()

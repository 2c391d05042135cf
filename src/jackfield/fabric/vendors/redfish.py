"""Redfish: a service with a CompositionService, as DSP0266 and DSP2050 have it; blocks say where they are.

Knows how a plain Redfish service speaks. Must not know any other. `jackfield.fabric.redfish` does the work.
"""

from collections.abc import Mapping
from typing import Final

from jackfield.fabric.redfish.adapter import RedfishFabric, line
from jackfield.fabric.redfish.options import Dialect, Options, read_options
from jackfield.fabric.settings import FabricSettings
from jackfield.ports import Clock

PLAIN: Final = Dialect("Redfish")


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> RedfishFabric:
    """Return the line to the service. Raises BadFabric."""
    return line(settings, read_options(settings, Options), PLAIN, environment, clock)

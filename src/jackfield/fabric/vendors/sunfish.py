"""Sunfish (OFMF): Redfish trees of several agents, merged into one; changes are passed on to the agent concerned.

Knows in what Sunfish differs from a plain Redfish service, as its reference server and library have it:

- No actions: what is composed is the system's list of blocks, patched. A change names its resource in the body too,
  by which Sunfish finds the agent and translates names.
- Names are Sunfish's, and change when agents come in another order: a device is known by its own serial number.
- What an agent answers is stored for the resource that was changed; what else changed by it comes by events of the
  agent, if at all. So a system's list says what is where, and a block's own words may be old.
- Only the agent of the machine hears of a change: machine and block must be of the same.
- No tags, so nobody is kept from reserving at the same moment; and it says no in plain text.

Must not know any other service. `jackfield.fabric.redfish` does the work.
"""

from collections.abc import Mapping
from typing import Final

from jackfield.fabric.redfish.adapter import RedfishFabric, line
from jackfield.fabric.redfish.options import Dialect, Identity, Options, read_options
from jackfield.fabric.settings import FabricSettings
from jackfield.ports import Clock

MERGED: Final = Dialect(
    "Sunfish", actions=False, names_itself=True, plain_errors=True, placed_by_system=True, agents=True
)


class SunfishOptions(Options, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric behind Sunfish."""

    identity: Identity = Identity.SERIAL
    """What a device is known by: its own `serial` or `uuid`, or its resource `block`, whose name may change."""


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> RedfishFabric:
    """Return the line to Sunfish. Raises BadFabric."""
    return line(settings, read_options(settings, SunfishOptions), MERGED, environment, clock)

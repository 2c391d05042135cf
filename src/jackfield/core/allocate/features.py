"""Which scheduler is spoken for: its release and its feature gates.

Knows the names. Must not know what they change; that is said where it changes.
"""

from enum import StrEnum

import msgspec


class Profile(StrEnum):
    """The release whose behaviour is mirrored, faults included."""

    V1_36 = "1.36"
    V1_37 = "1.37"


class Features(msgspec.Struct, frozen=True):
    """The gates of the scheduler, and its release."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    """Stands for DRADeviceBindingConditions and DRAResourceClaimDeviceStatus, which go together."""
    consumable_capacity: bool = True
    list_attributes: bool = False
    profile: Profile = Profile.V1_36

"""Sharing a GPU: partitions, turns, and MPS, from what the driver shows to what a claim's container is told.

Start reading at `offering.py`, which says what is published, and `settle.py`, which says what is asked of the driver
for those who hold it. `holding.py` reads an allocation, `config.py` what a claim asks for; `geometry.py` has the rules
by which a GPU is divided.
"""

from jackfield.core.share.config import GpuConfig, SharingConfig, Strategy, Unreadable, read, winner
from jackfield.core.share.geometry import Engines, Partition, Placement, Profile
from jackfield.core.share.gpu import (
    ComputePolicy,
    CreateInstance,
    Daemon,
    DestroyInstance,
    Gpu,
    Instance,
    Interval,
    Mig,
    SetMig,
    SetPolicy,
    StartDaemon,
    Step,
    StopDaemon,
)
from jackfield.core.share.holding import Exposure, Given, Holding, Mount, Refusal, exposure, given, holding
from jackfield.core.share.models import KNOWN
from jackfield.core.share.offering import (
    Offer,
    Partitions,
    Shares,
    Sharing,
    Source,
    device_name,
    offer,
    partition_named,
    partition_of,
)
from jackfield.core.share.settle import World, settle

__all__ = [
    "KNOWN",
    "ComputePolicy",
    "CreateInstance",
    "Daemon",
    "DestroyInstance",
    "Engines",
    "Exposure",
    "Given",
    "Gpu",
    "GpuConfig",
    "Holding",
    "Instance",
    "Interval",
    "Mig",
    "Mount",
    "Offer",
    "Partition",
    "Partitions",
    "Placement",
    "Profile",
    "Refusal",
    "SetMig",
    "SetPolicy",
    "Shares",
    "Sharing",
    "SharingConfig",
    "Source",
    "StartDaemon",
    "Step",
    "StopDaemon",
    "Strategy",
    "Unreadable",
    "World",
    "device_name",
    "exposure",
    "given",
    "holding",
    "offer",
    "partition_named",
    "partition_of",
    "read",
    "settle",
    "winner",
]

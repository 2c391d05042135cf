"""A GPU as the driver shows it, and what may be asked of the driver.

Knows values only. Must not know how the driver is asked, nor who wants a GPU.
"""

from enum import StrEnum

import msgspec

from jackfield.core.share.geometry import Partition, Placement, Profile


class Mig(StrEnum):
    """Whether a GPU is divided."""

    UNSUPPORTED = "unsupported"
    DISABLED = "disabled"
    ENABLED = "enabled"


class Interval(StrEnum):
    """How long a process may compute before the next has its turn."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"

    @property
    def number(self) -> int:
        """As nvidia-smi counts them."""
        return tuple(Interval).index(self)


class ComputePolicy(msgspec.Struct, frozen=True):
    """How processes get along on one GPU."""

    interval: Interval = Interval.DEFAULT
    exclusive_process: bool = False
    """Only one process may compute: with MPS that one is its server, through which the others go."""


class Instance(msgspec.Struct, frozen=True):
    """A partition that exists."""

    uuid: str
    """Empty while nobody can use it: its maker was cut short before it had a compute instance."""
    profile_number: int
    placement: Placement

    def is_(self, partition: Partition) -> bool:
        """Return whether it is this very partition."""
        return (self.profile_number, self.placement) == (partition.profile.number, partition.placement)


class Gpu(msgspec.Struct, frozen=True):
    """A GPU as its driver shows it at one moment."""

    uuid: str
    address: str
    """Its PCI address, as sysfs spells it: `0000:07:00.0`."""
    product: str
    memory_mebibytes: int
    architecture: str = ""
    compute_capability: str = ""
    driver_version: str = ""
    mig: Mig = Mig.UNSUPPORTED
    mig_pending: Mig = Mig.UNSUPPORTED
    """What it will be after the next reset, where that is something else."""
    profiles: tuple[Profile, ...] = ()
    instances: tuple[Instance, ...] = ()
    policy: ComputePolicy | None = None
    """None while nobody knows: no driver tells a time slice, so it is known only once it was set."""


class Daemon(msgspec.Struct, frozen=True):
    """An MPS control daemon: one for each GPU or partition that processes share by it."""

    device: str
    """The UUID of the GPU or partition; it names the daemon."""
    active_thread_percentage: int = 0
    """For clients that ask for nothing else; 0 means no limit."""
    pinned_memory_mebibytes: int = 0
    """Likewise."""


# --- what may be asked of the driver


class SetMig(msgspec.Struct, frozen=True):
    """Make a GPU one that is divided, or one that is not. The driver resets it for that, if nobody uses it."""

    gpu: str
    enabled: bool


class CreateInstance(msgspec.Struct, frozen=True):
    """Create a partition, with one compute instance that has all of it."""

    gpu: str
    partition: Partition


class DestroyInstance(msgspec.Struct, frozen=True):
    """Destroy a partition and its compute instances."""

    gpu: str
    instance: Instance


class SetPolicy(msgspec.Struct, frozen=True):
    """Say how processes get along on a GPU."""

    gpu: str
    policy: ComputePolicy


class StartDaemon(msgspec.Struct, frozen=True):
    """Start an MPS control daemon."""

    daemon: Daemon


class StopDaemon(msgspec.Struct, frozen=True):
    """Stop the MPS control daemon of a GPU or partition."""

    device: str


Step = SetMig | CreateInstance | DestroyInstance | SetPolicy | StartDaemon | StopDaemon

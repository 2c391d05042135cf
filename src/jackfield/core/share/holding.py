"""What a claim holds of a GPU: read out of its allocation, and told to its containers.

Knows the allocation's words, and what CUDA reads from its environment. Must not know what is asked of the driver.
"""

from collections.abc import Iterator, Mapping

import msgspec

from jackfield.core.share import config
from jackfield.core.share.config import SharingConfig, Strategy
from jackfield.core.share.geometry import Partition
from jackfield.core.share.gpu import Gpu, Instance, Interval
from jackfield.core.share.offering import MEMORY, SHARES, Partitions, Sharing, Source, partition_named
from jackfield.model import quantity
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.names import Uid

WHOLE_PERCENT = 100
_MEBIBYTE = 1 << 20
_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - where CUDA looks for its server, inside the container
_SHM = "/dev/shm"  # noqa: S108 - likewise


class Holding(msgspec.Struct, frozen=True):
    """Something of a GPU that a claim holds: all of it, a share of it, or a partition."""

    claim: Uid
    device: str
    """The DRA name."""
    sharing: SharingConfig | None = None
    """What the claim asks for; None where neither claim nor class said anything."""
    partition: Partition | None = None
    static: bool = False
    """The partition is not ours to make or destroy."""
    share: str = ""
    """The share's id, for a share."""
    memory_mebibytes: int = 0
    """What a share has of the memory."""
    percent: int = 0
    """What a share has of the computing."""

    @property
    def strategy(self) -> Strategy:
        """How its users get along; who shares with others takes turns, unless something else is asked for."""
        if self.sharing is not None:
            return self.sharing.strategy
        return Strategy.TIME_SLICING if self.share else Strategy.EXCLUSIVE

    @property
    def interval(self) -> Interval:
        """How long a turn is."""
        return self.sharing.interval if self.sharing else Interval.DEFAULT

    def instance(self, gpu: Gpu) -> Instance | None:
        """Return the partition as it exists, usable or not; None where it does not, and where none is held."""
        if self.partition is None:
            return None
        return next((one for one in gpu.instances if one.is_(self.partition)), None)


class Refusal(msgspec.Struct, frozen=True):
    """Why a device is not prepared; the kubelet asks again, and the words are what its user sees."""

    what: str


class Given(msgspec.Struct, frozen=True):
    """What the scheduler gave a claim: a device, or a share of one, and how it is to be used."""

    claim: Uid
    device: str
    share: str = ""
    consumed: Mapping[str, str] = {}
    parameters: bytes = b""
    """The configuration that counts; empty where there is none."""


def given(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Given:
    """Return what one result of an allocated claim gives it."""
    allocation = claim.status.allocation
    chosen = config.winner(allocation.devices.config if allocation else (), result.driver, result.request)
    parameters = bytes(chosen.parameters) if chosen else b""
    return Given(claim.uid, result.device, result.share_id, result.consumed_capacity, parameters)


def holding(source: Source, sharing: Sharing, what: Given) -> Holding | Refusal:
    """Return what a claim holds of the GPU that its device was published from."""
    partition = partition_named(source, what.device)
    if partition is None and what.device != source.name:
        return Refusal(f"{what.device}: GPU {source.gpu.uuid} ({source.gpu.product}) has no such device")
    asked = config.read(what.parameters) if what.parameters else None
    if isinstance(asked, config.Unreadable):
        return Refusal(f"{what.device}: its configuration cannot be followed: {asked.what}")
    return Holding(
        what.claim,
        what.device,
        asked,
        partition,
        static=partition is not None and sharing.partitions is Partitions.STATIC,
        share=what.share,
        memory_mebibytes=quantity.as_int(what.consumed.get(MEMORY, "0")) // _MEBIBYTE if what.share else 0,
        percent=_percent(quantity.as_int(what.consumed.get(SHARES, "0")), sharing) if what.share else 0,
    )


def _percent(shares: int, sharing: Sharing) -> int:
    """Return what so many shares are of the whole, rounded down, but never to nothing."""
    count = sharing.shares.count if sharing.shares else 0
    return max(1, WHOLE_PERCENT * shares // count) if 0 < shares < count else WHOLE_PERCENT


# --- what the container is told


class Mount(msgspec.Struct, frozen=True):
    """A folder of the node that the container sees."""

    host: str
    container: str


class Exposure(msgspec.Struct, frozen=True):
    """What a container gets, beyond what the vendor's own CDI specification gives it."""

    device: str
    """The UUID of the GPU or partition: the name of its entry in the vendor's specification."""
    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()


def exposure(gpu: Gpu, held: Holding, mps_folder: str) -> Exposure | Refusal:
    """Return what a container that uses the device is given, once nothing is left to settle."""
    instance = held.instance(gpu)
    if held.partition is not None and (instance is None or not instance.uuid):
        return Refusal(f"{held.device}: the partition {held.partition} is not there yet")
    device = instance.uuid if instance else gpu.uuid
    if held.strategy is not Strategy.MPS:
        return Exposure(device)
    folder = f"{mps_folder}/{device}"
    environment = (("CUDA_MPS_PIPE_DIRECTORY", _PIPE), *_limits(held))
    return Exposure(device, environment, (Mount(f"{folder}/pipe", _PIPE), Mount(f"{folder}/shm", _SHM)))


def _limits(held: Holding) -> Iterator[tuple[str, str]]:
    """Yield the limits of a share; whoever has a device alone is limited by its daemon."""
    if not held.share:
        return
    limits = held.sharing.mps if held.sharing else config.MpsConfig()
    percent = min(one for one in (limits.percentage, held.percent, WHOLE_PERCENT) if one)
    if percent < WHOLE_PERCENT:
        yield "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", str(percent)
    memory = limits.memory_mebibytes or held.memory_mebibytes
    if memory:
        yield "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", f"0={memory}M"

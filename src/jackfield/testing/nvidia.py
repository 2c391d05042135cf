"""NVIDIA GPUs that exist nowhere, for tests of whoever shares them: what the driver allows, and how it says no.

`Gpus` keeps the promises of `jackfield.node.nvidia.Driver`, and refuses what a real driver refuses: a place that is
taken or does not exist, engines that do not suffice, a partition or GPU that somebody uses, a change of mode that only
a reset brings about, a GPU that fell off the bus. `Daemons` does the same for MPS.

    gpus = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB", 8)
    gpus.hold(gpus.uuids[0], "dcgm (pid 4242)")      # somebody else has it open
    gpus.faults[uuid] = nvidia.Fault.LOST

Knows the rules of placement by trying, not by counters: it is what counters are checked against. Must not know who
asks, nor what for.
"""

from collections.abc import Iterator
from enum import StrEnum
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from jackfield.core.share.geometry import Engines, Partition, Placement, Profile
from jackfield.core.share.gpu import ComputePolicy, Daemon, Gpu, Instance, Mig
from jackfield.core.share.models import KNOWN
from jackfield.ports import Gone, Refused, Retry

NO_MIG = "NVIDIA L40S"
MEMORY_OF_OTHERS = 46068
_ARCHITECTURES = {"A": ("Ampere", "8.0"), "H": ("Hopper", "9.0")}
"""By the first letter of the product."""


class Fault(StrEnum):
    """What can be wrong with a GPU."""

    NONE = ""
    LOST = "lost"
    """It fell off the bus: every call about it fails."""
    NEEDS_RESET = "needs reset"
    """Nobody can reset it from here, as in a virtual machine: a change of mode stays pending."""


class Gpus:
    """The driver of some GPUs that are all alike."""

    def __init__(self, gpus: tuple[Gpu, ...]) -> None:
        self.faults: dict[str, Fault] = {}
        self.calls: list[str] = []
        """What was asked of the driver, in order; looking is not counted."""
        self._gpus = {one.uuid: one for one in gpus}
        self._holders: dict[str, list[str]] = {}
        self._made = 0

    @classmethod
    def of(cls, product: str, count: int = 1, mig: Mig = Mig.DISABLED) -> "Gpus":
        """Return so many GPUs of a product; one that is not known cannot be divided."""
        profiles = KNOWN.get(product, ())
        state = mig if profiles else Mig.UNSUPPORTED
        memory = max((one.memory_mebibytes for one in profiles), default=MEMORY_OF_OTHERS)
        return cls(
            tuple(
                Gpu(
                    f"GPU-{uuid5(NAMESPACE_URL, f'{product}/{index}')}",
                    f"0000:{index + 1:02x}:00.0",
                    product,
                    memory,
                    *_ARCHITECTURES.get(product.split()[1][0], ("Ada Lovelace", "8.9")),
                    "570.124.06",
                    state,
                    state,
                    profiles,
                )
                for index in range(count)
            )
        )

    @property
    def uuids(self) -> tuple[str, ...]:
        """The GPUs there are, in the driver's order."""
        return tuple(self._gpus)

    def hold(self, uuid: str, who: str) -> None:
        """Let somebody have a GPU or partition open."""
        self._holders.setdefault(uuid, []).append(who)

    def let_go(self, uuid: str) -> None:
        """Let everybody close it."""
        self._holders.pop(uuid, None)

    def holders(self, uuid: str) -> tuple[str, ...]:
        """Return who has it open."""
        return tuple(self._holders.get(uuid, ()))

    def reset(self, uuid: str) -> None:
        """Do what brings a pending mode about; partitions do not survive it."""
        gpu = self._gpus[uuid]
        self._gpus[uuid] = replace(gpu, mig=gpu.mig_pending, instances=(), policy=None)

    def make(self, uuid: str, partition: Partition) -> Instance:
        """Create a partition behind everybody's back, as an administrator does."""
        return self._create(self._gpus[uuid], partition)

    # --- the promises of Driver

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs there are, but for those that are lost."""
        return tuple(gpu for uuid, gpu in self._gpus.items() if self.faults.get(uuid) is not Fault.LOST)

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """Change the mode, if nobody uses the GPU and nothing is on it."""
        self.calls.append(f"set mig {'on' if enabled else 'off'}")
        gpu, mode = self._gpu(uuid), Mig.ENABLED if enabled else Mig.DISABLED
        if gpu.mig is Mig.UNSUPPORTED:
            raise Refused(f"GPU {uuid} ({gpu.product}) cannot be divided")
        if gpu.mig is mode and gpu.mig_pending is mode:
            return
        if gpu.instances:
            raise Retry(f"GPU {uuid} is in use: partition {gpu.instances[0].uuid} is on it")
        self._unused(uuid)
        if self.faults.get(uuid) is Fault.NEEDS_RESET:
            self._gpus[uuid] = replace(gpu, mig_pending=mode)
            raise Refused(f"GPU {uuid} requires a reset before MIG is {mode}")
        self._gpus[uuid] = replace(gpu, mig=mode, mig_pending=mode, policy=None)

    def create(self, uuid: str, partition: Partition) -> Instance:
        """Create a partition, with a compute instance that has all of it; the same again is the same."""
        self.calls.append(f"create {partition}")
        gpu = self._gpu(uuid)
        there = next((one for one in gpu.instances if one.is_(partition)), None)
        return there or self._create(gpu, partition)

    def destroy(self, uuid: str, instance: Instance) -> None:
        """Destroy a partition; one that is gone is destroyed."""
        self.calls.append(f"destroy {instance.placement}")
        gpu = self._gpu(uuid)
        if instance not in gpu.instances:
            return
        self._unused(instance.uuid)
        self._gpus[uuid] = replace(gpu, instances=tuple(one for one in gpu.instances if one != instance))

    def set_policy(self, uuid: str, policy: ComputePolicy) -> None:
        """Say how processes get along; a divided GPU has no say in that."""
        self.calls.append(f"set policy {policy.interval}{' exclusive' if policy.exclusive_process else ''}")
        gpu = self._gpu(uuid)
        if gpu.mig is Mig.ENABLED:
            raise Refused(f"GPU {uuid} is divided: its compute policy cannot be set")
        self._gpus[uuid] = replace(gpu, policy=policy)

    # --- what is behind them

    def _gpu(self, uuid: str) -> Gpu:
        if uuid not in self._gpus or self.faults.get(uuid) is Fault.LOST:
            raise Gone(f"GPU {uuid} is not there")
        return self._gpus[uuid]

    def _unused(self, uuid: str) -> None:
        holders = self.holders(uuid)
        if holders:
            raise Retry(f"{uuid} is in use by {', '.join(holders)}")

    def _create(self, gpu: Gpu, partition: Partition) -> Instance:
        if gpu.mig is not Mig.ENABLED:
            raise Refused(f"GPU {gpu.uuid} is not divided: MIG is {gpu.mig}")
        profile = next((one for one in gpu.profiles if one.number == partition.profile.number), None)
        if profile is None or partition.placement not in profile.placements:
            raise Refused(f"GPU {gpu.uuid} has no partition {partition}")
        there = [(self._profile(gpu, one), one.placement) for one in gpu.instances]
        problem = next(_collisions(gpu, (profile, partition.placement), there), "")
        if problem:
            raise Refused(f"GPU {gpu.uuid} has no room for {partition}: {problem}")
        self._made += 1
        uuid = f"MIG-{uuid5(NAMESPACE_URL, f'{gpu.uuid}/{self._made}')}"
        made = Instance(uuid, profile.number, partition.placement)
        self._gpus[gpu.uuid] = replace(gpu, instances=(*gpu.instances, made))
        return made

    def _profile(self, gpu: Gpu, instance: Instance) -> Profile:
        return next(one for one in gpu.profiles if one.number == instance.profile_number)


def _collisions(
    gpu: Gpu, new: tuple[Profile, Placement], there: list[tuple[Profile, Placement]]
) -> Iterator[str]:
    """Yield what keeps a new instance from existing together with those there are."""
    profile, placement = new
    for other, taken in there:
        if placement.overlaps(taken):
            yield f"{other.name} lies at {taken}"
    if sum(other == profile for other, _ in there) >= profile.instances_max:
        yield f"there are {profile.instances_max} of {profile.name} already"
    every = [profile, *(other for other, _ in there)]
    if sum(one.compute_slices for one in every) > max(one.compute_slices for one in gpu.profiles):
        yield "too few compute slices are left"
    for name in Engines().amounts():
        has = max(one.engines.amounts()[name] for one in gpu.profiles)
        if sum(one.engines.amounts()[name] for one in every) > has:
            yield f"too few {name} are left"


class Daemons:
    """MPS control daemons that run nowhere."""

    def __init__(self) -> None:
        self.refuses = ""
        """Why none can be started; empty where it can."""
        self._running: dict[str, Daemon] = {}

    def daemons(self) -> tuple[Daemon, ...]:
        """Return those that run."""
        return tuple(self._running.values())

    def start(self, daemon: Daemon) -> None:
        """Start one; one that runs for the device goes on as it is."""
        if self.refuses:
            raise Refused(self.refuses)
        self._running.setdefault(daemon.device, daemon)

    def stop(self, device: str) -> None:
        """Stop one; one that does not run is stopped."""
        self._running.pop(device, None)

    def kill(self) -> None:
        """Let all of them die, as they do when their machine starts anew."""
        self._running.clear()

"""What claims hold of one GPU → what to ask of its driver, until the GPU is as they need it.

The same function serves prepare (with one more holder), unprepare (with one less) and a restart: it compares what is
with what should be. Who follows the steps looks again and asks again, until there are none; so nothing is lost by
being killed in between. Knows what partitions, time slices and MPS need. Must not know how a driver is asked, nor how
files are written.
"""

from collections.abc import Iterator, Sequence

import msgspec

from jackfield.core.share.config import Strategy
from jackfield.core.share.geometry import Partition
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
from jackfield.core.share.holding import Holding, Refusal


class World(msgspec.Struct, frozen=True):
    """One GPU, and who holds what of it."""

    gpu: Gpu
    daemons: tuple[Daemon, ...] = ()
    """The MPS daemons that run on this node."""
    held: tuple[Holding, ...] = ()
    """What claims hold, in the order in which they were prepared."""
    left: tuple[Holding, ...] = ()
    """What is held no longer, and may still be there."""


def settle(world: World, new: Holding | None = None) -> tuple[Step, ...] | Refusal:
    """Return what to do next, in this order; nothing where the GPU is as its holders need it.

    Only a new holder can be refused: those who hold something are not asked whether they may.
    """
    if new is not None:
        refusal = _pending(world.gpu) or _impossible(world, new) or _at_odds(new, world.held)
        if refusal:
            return Refusal(refusal)
    held = world.held if new is None else (*world.held, new)
    steps = (*_ended(world, held), *_divided(world, held))
    # A partition's daemon is named by a UUID that only the partition's making tells: what follows waits for that.
    return steps or (*_whole(world, held), *_on_partitions(world, held))


# --- what stands in the way


def _pending(gpu: Gpu) -> str:
    if gpu.mig_pending is gpu.mig:
        return ""
    return (
        f"GPU {gpu.uuid} requires a reset: MIG will be {gpu.mig_pending} only after that. Drain the node, then run "
        f"`nvidia-smi --gpu-reset -i {gpu.uuid}`, or reboot (in a virtual machine only that helps)"
    )


def _impossible(world: World, new: Holding) -> str:
    """Return why the device cannot be what its configuration asks for; empty where it can."""
    gpu, name, partition = world.gpu, new.device, new.partition
    if new.share and new.strategy is Strategy.EXCLUSIVE:
        return (
            f"{name}: `Exclusive` cannot be had of a share; ask for TimeSlicing or MPS, or for another class"
        )
    if partition is None:
        memory = new.memory_mebibytes or gpu.memory_mebibytes
        wrong = _undivided(world, new)
    else:
        memory = partition.profile.memory_mebibytes
        wrong = _unplaceable(world, new, partition)
    if wrong:
        return wrong
    limit = new.sharing.mps.memory_mebibytes if new.sharing else 0
    if limit > memory:
        return f"{name}: `defaultPinnedDeviceMemoryLimit` is {limit}Mi, but the device has {memory}Mi"
    return ""


def _undivided(world: World, new: Holding) -> str:
    strange = _strange(world, world.gpu.instances)
    if not strange:
        return ""
    return (
        f"{new.device}: the GPU is divided, and partition {strange.uuid} is not ours to destroy; "
        f"`nvidia-smi mig -i {world.gpu.uuid} -dci` and `-dgi` do, if nobody needs it"
    )


def _unplaceable(world: World, new: Holding, partition: Partition) -> str:
    gpu = world.gpu
    if new.interval is not Interval.DEFAULT:
        return f"{new.device}: a partition's time slice cannot be set; remove `timeSlicingConfig.interval`"
    if new.static and not _usable(gpu, new):
        return f"{new.device}: there is no partition {partition} on GPU {gpu.uuid} any more; somebody destroyed it"
    lying_there = [one for one in gpu.instances if one.placement.overlaps(partition.placement)]
    strange = _strange(world, [one for one in lying_there if not one.is_(partition)])
    if strange:
        return (
            f"{new.device}: partition {strange.uuid} lies at {strange.placement}, and is not ours; "
            "whoever made it must destroy it"
        )
    return ""


def _strange(world: World, instances: Sequence[Instance]) -> Instance | None:
    """Return an instance that no claim of ours has or had."""
    known = [one.instance(world.gpu) for one in (*world.held, *world.left)]
    return next((one for one in instances if one not in known), None)


def _at_odds(new: Holding, held: Sequence[Holding]) -> str:
    """Return what holders before the new one leave no room for; empty where all get along."""
    for other in held:
        if (other.partition is None) is not (new.partition is None):
            return f"{new.device}: {other.device} of the same GPU is still prepared for claim {other.claim}"
        if new.partition is not None and other.partition is not None:
            if new.partition.placement.overlaps(other.partition.placement):
                return f"{new.device}: {other.device} lies there, still prepared for claim {other.claim}"
        elif not (new.share and other.share):
            return f"{new.device}: it is still prepared for claim {other.claim}"
        elif _policy([new]) != _policy([other]):
            return (
                f"{new.device}: claim {other.claim} shares it by {_spelt(other)}, this one asks for {_spelt(new)}; "
                "those who share a GPU must agree, so let their class say it"
            )
    return ""


def _spelt(holding: Holding) -> str:
    interval = holding.interval
    return holding.strategy if interval is Interval.DEFAULT else f"{holding.strategy} ({interval})"


# --- partitions


def _ended(world: World, held: Sequence[Holding]) -> Iterator[Step]:
    """Yield how to be rid of partitions that nobody holds any more."""
    kept = [one.instance(world.gpu) for one in held]
    for holding in world.left:
        instance = holding.instance(world.gpu)
        if instance is None or instance in kept:
            continue
        if _daemon(world, instance.uuid) is not None:
            yield StopDaemon(instance.uuid)
        if not holding.static:
            yield DestroyInstance(world.gpu.uuid, instance)


def _divided(world: World, held: Sequence[Holding]) -> Iterator[Step]:
    """Yield how to get what is held: a GPU that is whole, or partitions."""
    gpu = world.gpu
    if any(one.partition is None for one in held):
        if gpu.mig is Mig.ENABLED:
            yield SetMig(gpu.uuid, enabled=False)
        return
    missing = [one.partition for one in held if not one.static and not _usable(gpu, one)]
    if missing and gpu.mig is Mig.DISABLED:
        # A daemon still on the whole GPU would keep the driver from resetting it.
        if _daemon(world, gpu.uuid) is not None:
            yield StopDaemon(gpu.uuid)
        yield SetMig(gpu.uuid, enabled=True)
    yield from (CreateInstance(gpu.uuid, one) for one in missing if one is not None)


def _usable(gpu: Gpu, holding: Holding) -> bool:
    instance = holding.instance(gpu)
    return instance is not None and bool(instance.uuid)


# --- manners


def _whole(world: World, held: Sequence[Holding]) -> Iterator[Step]:
    """Yield how processes are to get along on the GPU itself. Who never held it leaves it as it is."""
    gpu, running = world.gpu, _daemon(world, world.gpu.uuid)
    users = [one for one in held if one.partition is None]
    gone = [one for one in world.left if one.partition is None]
    policy = _policy(users)
    if running is not None and not policy.exclusive_process:
        yield StopDaemon(gpu.uuid)
    # While nobody knows what it is, it is taken for what a GPU has when it comes, or for what we last made of it.
    known = gpu.policy or _policy(gone)
    if (users or gone) and known != policy and gpu.mig is not Mig.ENABLED:
        yield SetPolicy(gpu.uuid, policy)
    if running is None and policy.exclusive_process:
        yield StartDaemon(_wanted(gpu.uuid, users[0]))


def _policy(users: Sequence[Holding]) -> ComputePolicy:
    """Return what those who use a GPU need, who all agree; the default where nobody does."""
    if not users:
        return ComputePolicy()
    return ComputePolicy(users[0].interval, exclusive_process=users[0].strategy is Strategy.MPS)


def _on_partitions(world: World, held: Sequence[Holding]) -> Iterator[Step]:
    for holding in held:
        instance = holding.instance(world.gpu)
        if instance is None or not instance.uuid:
            continue
        running = _daemon(world, instance.uuid)
        if running is None and holding.strategy is Strategy.MPS:
            yield StartDaemon(_wanted(instance.uuid, holding))
        if running is not None and holding.strategy is not Strategy.MPS:
            yield StopDaemon(instance.uuid)


def _wanted(device: str, holding: Holding) -> Daemon:
    """Return the daemon for a device. Shares have limits each of its own, which their containers are told."""
    if holding.share or holding.sharing is None:
        return Daemon(device)
    limits = holding.sharing.mps
    return Daemon(device, limits.percentage, limits.memory_mebibytes)


def _daemon(world: World, device: str) -> Daemon | None:
    return next((one for one in world.daemons if one.device == device), None)

"""What is asked of NVIDIA's driver and of MPS, and how a GPU is brought to what claims hold of it.

Every call may be repeated, and any may raise Retry (somebody uses it; try again), Refused (no, and why) or Gone (no
such GPU any more). All of them block, some for seconds, as creating a partition does: call them from a thread, one GPU
at a time. Knows the steps. Must not know who decides on them, nor how the driver is reached.
"""

from typing import Protocol, assert_never

import msgspec

from jackfield.core import share
from jackfield.core.share import ComputePolicy, Daemon, Gpu, Holding, Instance, Partition, Step, World
from jackfield.ports import Gone, Refused, Retry

ROUNDS_MAX = 5
"""A mode, a partition, a daemon: three rounds are needed at most. More means that somebody works against us."""


class Driver(Protocol):
    """NVIDIA's driver on this node."""

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs there are, in the driver's order, as they are now; a lost one is not there."""

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """Make the GPU one that is divided or not. Raises Retry while it is used, Refused where a reset is needed."""

    def create(self, uuid: str, partition: Partition) -> Instance:
        """Create the partition at its very place, usable; one that is there is completed and returned."""

    def destroy(self, uuid: str, instance: Instance) -> None:
        """Destroy the partition; one that is gone is destroyed. Raises Retry while it is used, naming by whom."""

    def set_policy(self, uuid: str, policy: ComputePolicy) -> None:
        """Say how processes get along on a GPU that is not divided; `gpus` shows it from then on."""


class Mps(Protocol):
    """The MPS control daemons on this node."""

    def daemons(self) -> tuple[Daemon, ...]:
        """Return those that run."""

    def start(self, daemon: Daemon) -> None:
        """Start it, and return when clients can reach it; one that runs for the device goes on as it is."""

    def stop(self, device: str) -> None:
        """Stop it, and its clients with it; one that does not run is stopped."""


class Hands(msgspec.Struct, frozen=True):
    """What is needed to do anything."""

    driver: Driver
    mps: Mps


def act(step: Step, hands: Hands) -> None:
    """Take one step."""
    match step:
        case share.SetMig(gpu, enabled):
            hands.driver.set_mig(gpu, enabled=enabled)
        case share.CreateInstance(gpu, partition):
            hands.driver.create(gpu, partition)
        case share.DestroyInstance(gpu, instance):
            hands.driver.destroy(gpu, instance)
        case share.SetPolicy(gpu, policy):
            hands.driver.set_policy(gpu, policy)
        case share.StartDaemon(daemon):
            hands.mps.start(daemon)
        case share.StopDaemon(device):
            hands.mps.stop(device)
        case _ as never:
            assert_never(never)


def bring_about(
    hands: Hands,
    uuid: str,
    held: tuple[Holding, ...] = (),
    left: tuple[Holding, ...] = (),
    new: Holding | None = None,
) -> Gpu:
    """Bring the GPU to what is held of it, and return it as it is then.

    Raises Refused where the new holder cannot be served, and whatever a step raises; then the same call again goes on
    where this one ended.
    """
    for _ in range(ROUNDS_MAX):
        gpu = next((one for one in hands.driver.gpus() if one.uuid == uuid), None)
        if gpu is None:
            raise Gone(f"GPU {uuid} is not there any more: it was pulled, or fell off the bus")
        found = share.settle(World(gpu, hands.mps.daemons(), held, left), new)
        if isinstance(found, share.Refusal):
            raise Refused(found.what)
        if not found:
            return gpu
        for step in found:
            act(step, hands)
    raise Retry(f"GPU {uuid} does not become what its claims need: somebody else seems to change it")

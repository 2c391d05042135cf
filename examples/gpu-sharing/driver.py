"""GPUs shared by partitions, turns and MPS: a driver on the kit, over real GPUs or over some that exist nowhere.

`jackfield node` does this for the GPUs of its node. Here it stands alone, so that it can be tried without any: then
the GPUs are those of `jackfield.testing.nvidia`, which refuse what real ones refuse.
"""

import asyncio
from collections.abc import Iterable

from jackfield import driver
from jackfield.core.share import Partitions, Shares, Sharing
from jackfield.node.nvidia import Hands, Settings, SharedGpus
from jackfield.testing import nvidia


class Gpus(driver.Driver):
    """Publishes GPUs, their partitions and shares, and prepares what claims were given of them."""

    name = "node.jackfield.dev"

    def __init__(self, *kinds: SharedGpus) -> None:
        self.kinds = kinds

    def pools(self) -> Iterable[driver.Pool]:
        """Return all GPUs of the node as one pool."""
        pools = [one.pool()[0] for one in self.kinds]
        devices = tuple(device for pool in pools for device in pool.devices)
        return (driver.Pool(devices, tuple(counters for pool in pools for counters in pool.counters)),)

    async def prepare(self, share: driver.Share) -> driver.Prepared:
        """Create the partition, start the daemon, or do whatever the claim's share needs."""
        # The driver takes its time, and the kit has other claims to see to.
        return await asyncio.get_running_loop().run_in_executor(None, self._kind(share).prepare, share)

    async def unprepare(self, share: driver.Share) -> None:
        """Undo it."""
        await asyncio.get_running_loop().run_in_executor(None, self._kind(share).unprepare, share)

    async def restore(self, shares: tuple[driver.Share, ...]) -> None:
        """Take up what an earlier life prepared."""
        for kind in self.kinds:
            kind.restore(one for one in shares if self._kind(one) is kind)

    def _kind(self, share: driver.Share) -> SharedGpus:
        """Return who has the device."""
        for kind in self.kinds:
            if any(one.name == share.device for one in kind.pool()[0].devices):
                return kind
        raise driver.Refused(f"{share.device} is not here any more")


def gpus(product: str, sharing: Sharing, count: int = 1) -> SharedGpus:
    """Return GPUs that exist nowhere, shared like this."""
    hands = Hands(nvidia.Gpus.of(product, count), nvidia.Daemons())
    return SharedGpus(hands, Settings(sharing, "/run/jackfield/mps"))


def everything() -> Gpus:
    """Return two GPUs that are given away whole, one that is shared, and one that is divided on demand.

    In this order, as the scheduler takes the first that fits: who wants a whole GPU gets one that cannot be divided.
    """
    return Gpus(
        gpus("NVIDIA L40S", Sharing(), 2),
        gpus("NVIDIA A100-SXM4-40GB", Sharing(shares=Shares(10))),
        gpus("NVIDIA A30", Sharing(Partitions.ON_DEMAND)),
    )


if __name__ == "__main__":
    driver.main(everything())

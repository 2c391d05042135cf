"""Claims for partitions, allocated by our engine: no counter is overdrawn, and what was promised can be made.

Eight GPUs offer every partition they could have. Claims come and go by chance; each is allocated as kube-scheduler
would, created on a GPU that knows nothing of counters, and destroyed when it goes. The engine and the GPUs must be of
one mind about every claim, met or not.
"""

import random
from collections.abc import Iterator, Mapping

import pytest
from msgspec.structs import replace

from jackfield.core import allocate, share
from jackfield.core import offer as slices
from jackfield.core.share import Mig, Partition, Partitions, Sharing, Source
from jackfield.core.share.geometry import partitions
from jackfield.model import quantity
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from jackfield.model.device import CounterSet
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NodeName, Uid
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, DeviceClassSpec, ResourceSlice
from jackfield.ports import Refused
from jackfield.testing import nvidia

DRIVER = "node.jackfield.dev"
NODE = Node(metadata=ObjectMeta(name="n1"))
GPUS, CLAIMS, LIVING_MAX = 8, 500, 60
SHARING = Sharing(Partitions.ON_DEMAND)


def selects(expression: str) -> tuple[DeviceSelector, ...]:
    return (DeviceSelector(CELDeviceSelector(expression)),)


CLASSES = {
    "mig": DeviceClass(
        metadata=ObjectMeta(name="mig"),
        spec=DeviceClassSpec(selects(f"device.attributes['{DRIVER}'].type == 'mig'")),
    ),
    "gpu": DeviceClass(
        metadata=ObjectMeta(name="gpu"),
        spec=DeviceClassSpec(selects(f"device.attributes['{DRIVER}'].type == 'gpu'")),
    ),
}


def asking(name: str, profile: str) -> ResourceClaim:
    """Return a claim for a partition of a profile; for a whole GPU where there is none."""
    which = selects(f"device.attributes['{DRIVER}'].profile == '{profile}'") if profile else ()
    request = DeviceRequest("r", ExactDeviceRequest("mig" if profile else "gpu", which))
    metadata = ObjectMeta(name=name, namespace="ns", uid=Uid(name))
    return ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(DeviceClaim((request,))))


class Node8:
    """A node with GPUs, what it publishes, and who has what."""

    def __init__(self, product: str) -> None:
        self.gpus = nvidia.Gpus.of(product, GPUS, Mig.ENABLED)
        found = self.gpus.gpus()
        self.sources = {f"gpu-{index}": Source(f"gpu-{index}", gpu) for index, gpu in enumerate(found)}
        offers = [share.offer(source, SHARING) for source in self.sources.values()]
        pool = slices.Pool(
            tuple(device for one in offers for device in one.devices),
            tuple(counters for one in offers for counters in one.counters),
        )
        self.counters: tuple[CounterSet, ...] = pool.counters
        self.devices = {device.name: device for device in pool.devices}
        steps = slices.steps(slices.Publisher(DRIVER, NodeName("n1")), (pool,), ())
        published: list[ResourceSlice] = [one.slice for one in steps if isinstance(one, slices.Create)]
        self.allocator = allocate.Allocator(published, CLASSES, allocate.Allocated())
        self.places = {
            name: (source.gpu.uuid, share.partition_named(source, name))
            for name in self.devices
            for source in (self.sources[name.partition("-mig-")[0]],)
        }
        self.every = partitions(found[0].profiles)
        self.living: dict[str, ResourceClaim] = {}

    def allocate(self, claim: ResourceClaim) -> ResourceClaim | None:
        """Return the claim, allocated; None where it does not fit."""
        held = allocate.allocated(self.living.values())
        found = self.allocator.derive(allocated=held).allocate([claim], NODE)
        if isinstance(found, allocate.NoFit):
            return None
        return replace(claim, status=ResourceClaimStatus(found[0]))

    def place(self, device: str) -> tuple[str, Partition | None]:
        """Return which GPU, and which partition of it, a device of that name is."""
        return self.places[device]

    def overdrawn(self) -> Iterator[str]:
        """Yield the counters of which more is held than there is."""
        names = [result.device for claim in self.living.values() for result in claim.results]
        used: dict[tuple[str, str], int] = {}
        for name in names:
            for one in self.devices[name].consumes_counters:
                for counter, amount in one.counters.items():
                    key = (one.counter_set, counter)
                    used[key] = used.get(key, 0) + quantity.as_int(amount.value)
        for shared in self.counters:
            for counter, amount in shared.counters.items():
                if used.get((shared.name, counter), 0) > quantity.as_int(amount.value):
                    yield f"{shared.name}/{counter}"

    def could_make(self, profile: str) -> bool:
        """Return whether any GPU has room for a partition of the profile, by making it and undoing that."""
        for gpu in self.gpus.gpus():
            for partition in self.every:
                if partition.profile.name == profile and not self.whole(gpu.uuid):
                    try:
                        made = self.gpus.make(gpu.uuid, partition)
                    except Refused:
                        continue
                    self.gpus.destroy(gpu.uuid, made)
                    return True
        return False

    def whole(self, uuid: str) -> bool:
        """Return whether somebody has all of the GPU."""
        held = (result.device for claim in self.living.values() for result in claim.results)
        return any(self.place(name) == (uuid, None) for name in held)

    def empty(self) -> bool:
        """Return whether there is a GPU of which nobody has anything."""
        return any(not gpu.instances and not self.whole(gpu.uuid) for gpu in self.gpus.gpus())


def met(node: Node8, claim: ResourceClaim) -> None:
    """Create what the engine gave; an instance that cannot be created fails the test by its words."""
    (result,) = claim.results
    uuid, partition = node.place(result.device)
    if partition is not None:
        assert not node.whole(uuid)
        node.gpus.create(uuid, partition)
    else:
        assert next(gpu for gpu in node.gpus.gpus() if gpu.uuid == uuid).instances == ()


def ended(node: Node8, claim: ResourceClaim) -> None:
    (result,) = claim.results
    uuid, partition = node.place(result.device)
    gpu = next(one for one in node.gpus.gpus() if one.uuid == uuid)
    if partition is not None:
        node.gpus.destroy(uuid, next(one for one in gpu.instances if one.is_(partition)))


@pytest.mark.parametrize("product", ["NVIDIA A100-SXM4-40GB", "NVIDIA A30"])
def test_500_random_claims_overdraw_nothing_and_every_one_that_is_met_can_be_made(product: str) -> None:
    dice, node = random.Random(f"500/{product}"), Node8(product)  # noqa: S311 - chance is not cryptography
    profiles = ["", *(one.name for one in node.gpus.gpus()[0].profiles)]
    outcomes: dict[bool, int] = {True: 0, False: 0}
    for number in range(CLAIMS):
        while node.living and (len(node.living) > LIVING_MAX or dice.random() < 0.4):
            ended(node, node.living.pop(dice.choice(list(node.living))))
        profile = dice.choice(profiles)
        claim = node.allocate(asking(f"c-{number}", profile))
        outcomes[claim is not None] += 1
        if claim is None:
            assert not (node.could_make(profile) if profile else node.empty())
            continue
        met(node, claim)
        node.living[claim.metadata.name] = claim
        assert list(node.overdrawn()) == []
    assert min(outcomes.values()) > 50, outcomes


def test_counts_of_claims_that_fill_a_node_are_those_of_the_hardware() -> None:
    """Seven small partitions on each GPU, then not one more; a GPU that is freed serves a whole again."""
    node = Node8("NVIDIA A100-SXM4-40GB")
    for number in range(GPUS * 7):
        claim = node.allocate(asking(f"c-{number}", "1g.5gb"))
        assert claim is not None
        met(node, claim)
        node.living[claim.metadata.name] = claim
    for profile in ("1g.5gb", "1g.10gb", ""):
        assert node.allocate(asking("more", profile)) is None
    first: Mapping[str, ResourceClaim] = dict(node.living)
    for name, claim in first.items():
        if claim.results[0].device.startswith("gpu-3-"):
            ended(node, node.living.pop(name))
    whole = node.allocate(asking("whole", ""))
    assert whole is not None
    assert whole.results[0].device == "gpu-3"

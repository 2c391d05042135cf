"""What an allocation means for a GPU, and what a container is told."""

import json

import msgspec
import pytest
from msgspec.structs import replace

from jackfield.core import share
from jackfield.core.share import (
    Exposure,
    Holding,
    Instance,
    Mount,
    Partition,
    Partitions,
    Placement,
    Refusal,
    Shares,
    Sharing,
    SharingConfig,
    Source,
    Strategy,
)
from jackfield.core.share.config import API_VERSION, KIND, MpsConfig
from jackfield.core.share.models import A100_40GB
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Uid
from jackfield.testing import nvidia

DRIVER = "node.jackfield.dev"
GPU = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB").gpus()[0]
SOURCE = Source("gpu-0", GPU)
SMALL = Partition(A100_40GB[0], Placement(3, 1))
TEN = Sharing(shares=Shares(10))
MPS = SharingConfig(Strategy.MPS)


def claim(sharing: object = None) -> ResourceClaim:
    metadata = ObjectMeta(name="c", namespace="ns", uid=Uid("uid-c"))
    body = json.dumps({"apiVersion": API_VERSION, "kind": KIND, "sharing": sharing}).encode()
    opaque = OpaqueDeviceConfiguration(DRIVER, msgspec.Raw(body))
    entries = (DeviceAllocationConfiguration("FromClaim", (), opaque),) if sharing else ()
    allocation = AllocationResult(DeviceAllocationResult(config=entries))
    return ResourceClaim(metadata=metadata, status=ResourceClaimStatus(allocation))


def result(device: str = "gpu-0", **consumed: str) -> DeviceRequestAllocationResult:
    share_id = "share-1" if consumed else ""
    return DeviceRequestAllocationResult(
        "gpu", DRIVER, "n1", device, share_id=share_id, consumed_capacity=consumed
    )


@pytest.mark.parametrize(
    ("sharing", "result_", "asked", "expected"),
    [
        (Sharing(), result(), None, Holding(Uid("uid-c"), "gpu-0")),
        (Sharing(), result(), {"strategy": "MPS"}, Holding(Uid("uid-c"), "gpu-0", MPS)),
        (
            Sharing(Partitions.ON_DEMAND),
            result("gpu-0-mig-1g-5gb-at-3"),
            None,
            Holding(Uid("uid-c"), "gpu-0-mig-1g-5gb-at-3", partition=SMALL),
        ),
        (
            Sharing(Partitions.STATIC),
            result("gpu-0-mig-1g-5gb-at-3"),
            None,
            Holding(Uid("uid-c"), "gpu-0-mig-1g-5gb-at-3", partition=SMALL, static=True),
        ),
        (
            TEN,
            result(memory="4Gi", shares="3"),
            None,
            Holding(Uid("uid-c"), "gpu-0", share="share-1", memory_mebibytes=4096, percent=30),
        ),
        (
            Sharing(shares=Shares(200, "1Mi")),
            result(memory="4Gi", shares="1"),
            None,
            Holding(Uid("uid-c"), "gpu-0", share="share-1", memory_mebibytes=4096, percent=1),
        ),
        (
            TEN,
            result(memory="4Gi", shares="10"),
            None,
            Holding(Uid("uid-c"), "gpu-0", share="share-1", memory_mebibytes=4096, percent=100),
        ),
        (
            Sharing(),
            result(memory="4Gi", shares="3"),
            None,
            Holding(Uid("uid-c"), "gpu-0", share="share-1", memory_mebibytes=4096, percent=100),
        ),
    ],
)
def test_an_allocation_is_read(
    sharing: Sharing, result_: DeviceRequestAllocationResult, asked: object, expected: Holding
) -> None:
    assert share.holding(SOURCE, sharing, share.given(claim(asked), result_)) == expected


def test_a_claim_that_lost_its_allocation_has_no_configuration() -> None:
    bare = replace(claim({"strategy": "MPS"}), status=ResourceClaimStatus())
    assert share.holding(SOURCE, Sharing(), share.given(bare, result())) == Holding(Uid("uid-c"), "gpu-0")


@pytest.mark.parametrize(
    ("result_", "asked", "words"),
    [
        (result("gpu-1"), None, "gpu-1: GPU {uuid} (NVIDIA A100-SXM4-40GB) has no such device"),
        (
            result("gpu-0-mig-3g-20gb-at-1"),
            None,
            "gpu-0-mig-3g-20gb-at-1: GPU {uuid} (NVIDIA A100-SXM4-40GB) has no such device",
        ),
        (
            result(),
            {"strategy": "MPS", "x": 1},
            "gpu-0: its configuration cannot be followed: sharing: object contains unknown field `x`",
        ),
    ],
)
def test_what_makes_no_sense_here_is_refused(
    result_: DeviceRequestAllocationResult, asked: object, words: str
) -> None:
    expected = Refusal(words.format(uuid=GPU.uuid))
    assert share.holding(SOURCE, Sharing(), share.given(claim(asked), result_)) == expected


# --- what the container is told

FOLDER = "/var/lib/kubelet/plugins/x/mps"
PIPE = ("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")  # noqa: S108 - where CUDA looks, in the container


def mounts(device: str) -> tuple[Mount, ...]:
    return Mount(f"{FOLDER}/{device}/pipe", PIPE[1]), Mount(f"{FOLDER}/{device}/shm", "/dev/shm")  # noqa: S108


WHOLE = Holding(Uid("a"), "gpu-0")
SHARE = Holding(Uid("a"), "gpu-0", share="s", memory_mebibytes=4096, percent=30)
PERCENT, MEMORY = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


@pytest.mark.parametrize(
    ("holding", "environment"),
    [
        (replace(WHOLE, sharing=MPS), ()),
        (replace(SHARE, sharing=MPS), ((PERCENT, "30"), (MEMORY, "0=4096M"))),
        (
            replace(SHARE, sharing=SharingConfig(Strategy.MPS, mps_config=MpsConfig(20, "1Gi"))),
            ((PERCENT, "20"), (MEMORY, "0=1024M")),
        ),
        (replace(SHARE, sharing=MPS, percent=100, memory_mebibytes=0), ()),
    ],
)
def test_containers_that_share_by_mps_are_told_where_its_server_is_and_how_much_is_theirs(
    holding: Holding, environment: tuple[tuple[str, str], ...]
) -> None:
    expected = Exposure(GPU.uuid, (PIPE, *environment), mounts(GPU.uuid))
    assert share.exposure(GPU, holding, FOLDER) == expected


@pytest.mark.parametrize("holding", [WHOLE, SHARE])
def test_other_containers_are_told_nothing_beyond_their_device(holding: Holding) -> None:
    assert share.exposure(GPU, holding, FOLDER) == Exposure(GPU.uuid)


def test_a_partition_is_known_by_its_own_uuid_once_it_exists() -> None:
    held = Holding(Uid("a"), "gpu-0-mig-1g-5gb-at-3", partition=SMALL)
    divided = replace(GPU, instances=(Instance("MIG-1", 19, Placement(3, 1)),))
    assert share.exposure(divided, held, FOLDER) == Exposure("MIG-1")
    refusal = Refusal("gpu-0-mig-1g-5gb-at-3: the partition 1g.5gb at {3}:1 is not there yet")
    half_made = replace(GPU, instances=(Instance("", 19, Placement(3, 1)),))
    assert share.exposure(GPU, held, FOLDER) == share.exposure(half_made, held, FOLDER) == refusal


def test_a_share_by_mps_without_limits_of_its_own_is_limited_by_what_it_consumed() -> None:
    told = share.exposure(GPU, replace(SHARE, sharing=MPS), FOLDER)
    assert isinstance(told, Exposure)
    assert dict(told.environment)[MEMORY] == "0=4096M"

"""What is published of a GPU."""

import pytest
from msgspec.structs import replace

from jackfield.cluster import validate
from jackfield.codec import encoding, kinds
from jackfield.core import offer as slices
from jackfield.core import share
from jackfield.core.share import Gpu, Mig, Partition, Partitions, Placement, Shares, Sharing, Source
from jackfield.core.share.models import A100_40GB
from jackfield.core.share.offering import PCI_BUS_ID
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from jackfield.testing import nvidia

DRIVER = "node.jackfield.dev"
ON_DEMAND = Sharing(Partitions.ON_DEMAND)
STATIC = Sharing(Partitions.STATIC)


def source(product: str = "NVIDIA A100-SXM4-40GB", mig: Mig = Mig.DISABLED, name: str = "gpu-0") -> Source:
    return Source(name, nvidia.Gpus.of(product, mig=mig).gpus()[0])


def problems(published: ResourceSlice) -> list[str]:
    change = validate.Change(None, published, encoding.encode(published), None, wants=True, status=False)
    return [str(one) for one in validate.problems(kinds.of(ResourceSlice), change)]


def cut(*offers: share.Offer) -> list[ResourceSlice]:
    """Cut what is offered into slices, as a driver does."""
    pool = slices.Pool(
        tuple(device for one in offers for device in one.devices),
        tuple(counters for one in offers for counters in one.counters),
    )
    steps = slices.steps(slices.Publisher(DRIVER, NodeName("n1")), (pool,), ())
    return [one.slice for one in steps if isinstance(one, slices.Create)]


def test_a_gpu_that_is_not_shared_is_one_device_without_counters() -> None:
    found = share.offer(replace(source(), attributes={"numa": DeviceAttribute(int_=1)}))
    (device,) = found.devices
    assert (device.name, found.counters, found.problems) == ("gpu-0", (), ())
    assert device.capacity["memory"].value == "40448Mi"
    assert not device.allow_multiple_allocations
    values = {name: one.string or one.version or one.int_ for name, one in device.attributes.items()}
    assert values["type"] == values["gpu.nvidia.com/type"] == "gpu"
    assert values["productName"] == "NVIDIA A100-SXM4-40GB"
    assert values["cudaComputeCapability"] == "8.0.0"
    assert values["driverVersion"] == "570.124.6"
    assert values[PCI_BUS_ID] == "0000:01:00.0"
    assert values["numa"] == 1


def test_what_the_driver_does_not_say_is_not_published() -> None:
    plain = Gpu("GPU-1", "0000:01:00.0", "x" * 63 + "ü", 1024, driver_version="R570 beta")
    attributes = share.offer(Source("gpu-0", plain)).devices[0].attributes
    assert sorted(name for name in attributes if "/" not in name) == ["productName", "type", "uuid"]
    assert attributes["productName"].string == "x" * 63


@pytest.mark.parametrize(
    ("product", "devices", "counters"),
    [("NVIDIA A30", 14, 10), ("NVIDIA A100-SXM4-40GB", 26, 14), ("NVIDIA H200", 26, 14)],
)
def test_on_demand_everything_that_could_be_is_offered(product: str, devices: int, counters: int) -> None:
    found = share.offer(source(product), ON_DEMAND)
    (shared,) = found.counters
    assert (len(found.devices), len(shared.counters), shared.name) == (devices, counters, "gpu-0")
    assert len({one.name for one in found.devices}) == devices
    whole = found.devices[0].consumes_counters[0]
    assert whole.counters == shared.counters


def test_a_partition_says_what_it_is_and_what_it_takes() -> None:
    device = next(
        one for one in share.offer(source(), ON_DEMAND).devices if one.name == "gpu-0-mig-3g-20gb-at-4"
    )
    assert device.attributes["profile"].string == "3g.20gb"
    assert device.attributes["gpu.nvidia.com/profile"].string == "3g.20gb"
    assert device.attributes["parentUUID"].string == source().gpu.uuid
    assert device.attributes["placementStart"].int_ == 4
    assert {name: one.value for name, one in device.capacity.items()} == {
        "memory": "20096Mi",
        "computeSlices": "3",
        "multiprocessors": "42",
        "copyEngines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
    }
    (consumed,) = device.consumes_counters
    assert sorted(name for name in consumed.counters if "slice-" in name) == [
        f"memory-slice-{index}" for index in (4, 5, 6, 7)
    ]
    assert consumed.counters["compute-slices"].value == "3"


def test_what_strangers_occupy_is_not_on_offer() -> None:
    gpus = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB", mig=Mig.ENABLED)
    made = gpus.make(gpus.uuids[0], Partition(A100_40GB[3], Placement(4, 2)))
    odd = share.Instance("MIG-odd", 99, Placement(0, 1))
    found = share.offer(Source("gpu-0", gpus.gpus()[0], foreign=(made, odd)), ON_DEMAND)
    left = {name: one.value for name, one in found.counters[0].counters.items()}
    assert [index for index in range(8) if left[f"memory-slice-{index}"] == "0"] == [0, 4, 5]
    assert (left["compute-slices"], left["multiprocessors"]) == ("5", "70")


def test_counters_never_fall_below_nothing() -> None:
    gpus = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB", mig=Mig.ENABLED)
    odd = share.Instance("MIG-odd", 99, Placement(0, 1))
    found = share.offer(Source("gpu-0", gpus.gpus()[0], foreign=(odd, odd)), ON_DEMAND)
    assert found.counters[0].counters["memory-slice-0"].value == "0"


def test_static_partitions_are_those_that_exist() -> None:
    gpus = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB", mig=Mig.ENABLED)
    gpus.make(gpus.uuids[0], Partition(A100_40GB[3], Placement(4, 2)))
    gpu = gpus.gpus()[0]
    odd = replace(gpu, instances=(*gpu.instances, share.Instance("MIG-odd", 99, Placement(0, 1))))
    found = share.offer(Source("gpu-0", odd), STATIC)
    assert [one.name for one in found.devices] == ["gpu-0-mig-2g-10gb-at-4"]
    assert (found.counters, found.devices[0].consumes_counters) == ((), ())


def test_a_gpu_that_is_not_divided_is_offered_whole_though_static_partitions_are_asked_for() -> None:
    assert [one.name for one in share.offer(source(), STATIC).devices] == ["gpu-0"]


def test_a_divided_gpu_is_not_offered_whole() -> None:
    found = share.offer(source(mig=Mig.ENABLED))
    assert found.devices == ()
    assert "cannot be given away whole" in found.problems[0]


def test_a_gpu_that_cannot_be_divided_is_offered_whole_and_that_is_said() -> None:
    found = share.offer(source(nvidia.NO_MIG), ON_DEMAND)
    assert [one.name for one in found.devices] == ["gpu-0"]
    assert found.problems == ("gpu-0 (NVIDIA L40S) cannot be divided: it is offered as a whole",)


def test_shares_are_asked_for_by_memory_and_by_number() -> None:
    (device,) = share.offer(source(), Sharing(shares=Shares(10, "1Gi"))).devices
    assert device.allow_multiple_allocations
    memory, shares = device.capacity["memory"], device.capacity["shares"]
    assert (memory.value, shares.value) == ("39Gi", "10")
    assert memory.request_policy is not None
    assert shares.request_policy is not None
    assert (memory.request_policy.default, shares.request_policy.default) == ("3Gi", "1")
    assert memory.request_policy.valid_range is not None
    assert (memory.request_policy.valid_range.min, memory.request_policy.valid_range.step) == ("1Gi", "1Gi")


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        (Shares(1), "at least 2 make sense"),
        (Shares(4, "lots"), "`shares.memoryStep` is no quantity"),
        (Shares(50, "1Gi"), "cannot be cut into 50 shares in steps of 1Gi"),
        (Shares(4, "0"), "cannot be cut into 4 shares in steps of 0"),
    ],
)
def test_a_gpu_that_cannot_be_cut_like_that_is_offered_whole_and_that_is_said(
    shares: Shares, words: str
) -> None:
    found = share.offer(source(), Sharing(shares=shares))
    assert not found.devices[0].allow_multiple_allocations
    assert words in found.problems[0]


def test_names_lead_back_to_partitions() -> None:
    gpu = source()
    for device in share.offer(gpu, ON_DEMAND).devices[1:]:
        partition = share.partition_named(gpu, device.name)
        assert partition is not None
        assert share.device_name("gpu-0", partition) == device.name
    assert share.partition_named(gpu, "gpu-0") is None
    assert share.partition_named(gpu, "gpu-0-mig-3g-20gb-at-2") is None


@pytest.mark.parametrize(
    "sharing",
    [
        share.Sharing(),
        ON_DEMAND,
        Sharing(shares=Shares()),
        Sharing(Partitions.ON_DEMAND, Shares()),
        Sharing(shares=Shares(2, "19Gi")),
    ],
)
def test_what_is_offered_of_a_node_full_of_gpus_is_valid_for_the_api(sharing: Sharing) -> None:
    gpus = nvidia.Gpus.of("NVIDIA A100-SXM4-40GB", 8).gpus()
    published = cut(*(share.offer(Source(f"gpu-{index}", gpu), sharing) for index, gpu in enumerate(gpus)))
    assert [problems(one) for one in published] == [[]] * len(published)
    assert sum(len(one.spec.devices) for one in published) in (8, 208)

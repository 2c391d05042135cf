"""What a node offers of its own devices, and what it leaves to the fabric."""

import pytest

from jackfield.core import local, sight
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.device import DeviceAttribute, DeviceCapacity
from jackfield.model.host import HostDevice, Interface
from jackfield.model.policy import LocalDevices, Policy
from jackfield.testing import builders as b

GPU = HostDevice("0000:17:00.0", "10de", "20b0", "030200", uuid="GPU-1111-2", serial="77777-1")
NIC = HostDevice("0000:65:00.1", "15b3", "101e", "020000", parent="0000:65:00.0")
CLOCK = HostDevice("0000:00:1f.0", "8086", "a1c1", "060100")
GPUS = LocalDevices("gpu", vendor="10de", pci_class="03")
NICS = LocalDevices("nic", pci_class="0200")


def offered(policy: Policy, *resources: ComposableResource) -> list[str]:
    devices = (GPU, NIC, CLOCK)
    return [*local.offered(zip(sight.sights(devices), devices, strict=True), resources, policy)]


OFFERS = {
    "nothing unless the policy names it": (Policy(), (), []),
    "what agrees with a rule": (
        Policy(local_devices=(GPUS, NICS)),
        (),
        ["gpu-0000-17-00-0", "nic-0000-65-00-1"],
    ),
    "a rule by vendor and device": (
        Policy(local_devices=(LocalDevices("x", "8086", "a1c1"),)),
        (),
        ["x-0000-00-1f-0"],
    ),
    "another device of the vendor": (Policy(local_devices=(LocalDevices("x", "8086", "a1c2"),)), (), []),
    "another vendor": (Policy(local_devices=(LocalDevices("x", "1002"),)), (), []),
    "the first rule names it": (
        Policy(local_devices=(LocalDevices("a", "10de"), GPUS)),
        (),
        ["a-0000-17-00-0"],
    ),
    "what a fabric attached is the fabric's": (
        Policy(local_devices=(GPUS, NICS)),
        (b.resource(physical="block-7", uuid="77777-1"),),
        ["nic-0000-65-00-1"],
    ),
    "another device that a fabric attached": (
        Policy(local_devices=(GPUS,)),
        (b.resource(physical="block-7", uuid="77777-3"),),
        ["gpu-0000-17-00-0"],
    ),
}


@pytest.mark.parametrize(("policy", "resources", "names"), OFFERS.values(), ids=OFFERS)
def test_what_is_offered(policy: Policy, resources: tuple[ComposableResource, ...], names: list[str]) -> None:
    assert offered(policy, *resources) == names


def test_of_two_devices_that_the_fabric_may_have_lent_neither_is_offered() -> None:
    devices = (
        HostDevice("0000:17:00.0", "10de", pci_class="0302", serial="77777-1"),
        HostDevice("0000:18:00.0", "10de", pci_class="0302", serial="77777-1"),
    )
    pairs = zip(sight.sights(devices), devices, strict=True)
    lent = b.resource(physical="77777-1")
    assert local.offered(pairs, (lent,), Policy(local_devices=(GPUS,))) == {}


def test_a_device_is_described_as_everybody_does() -> None:
    device = HostDevice(
        "0000:17:00.0",
        "15b3",
        "101e",
        "020000",
        pcie_root="pci0000:17",
        numa_node=1,
        serial="77777-1",
        uuid="u" * 80,
        link_width=16,
        model="ConnectX",
        memory_bytes=1 << 30,
        driver="mlx5_core",
        parent="0000:17:00.1",
        interfaces=(Interface("eth0", "aa:bb"),),
        rdma=("mlx5_0",),
    )
    policy = Policy(local_devices=(LocalDevices("nic"),))
    ((entry, found),) = local.offered(
        zip(sight.sights((device,)), (device,), strict=True), (), policy
    ).values()
    assert found == device
    assert entry.capacity == {"memory": DeviceCapacity("1073741824")}
    said = {
        name: next(x for x in (one.string, one.int_, one.bool_) if x is not None)
        for name, one in entry.attributes.items()
    }
    assert said == {
        "resource.kubernetes.io/pciBusID": "0000:17:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:17",
        "resource.kubernetes.io/numaNode": 1,
        "numaNode": 1,
        "vendor": "15b3",
        "device": "101e",
        "pciClass": "020000",
        "uuid": "u" * 64,
        "serial": "77777-1",
        "productName": "ConnectX",
        "driver": "mlx5_core",
        "interface": "eth0",
        "mac": "aa:bb",
        "rdmaDevice": "mlx5_0",
        "linkWidth": 16,
        "virtual": True,
    }


def test_what_is_not_known_is_not_said() -> None:
    assert local.attributes(HostDevice("region0", uuid="7")) == {"uuid": DeviceAttribute(string="7")}


@pytest.mark.parametrize(
    ("device", "policy", "matters"),
    [
        (GPU, Policy(), True),
        (CLOCK, Policy(), False),
        (CLOCK, Policy(local_devices=(LocalDevices("x", "8086"),)), True),
    ],
)
def test_what_nobody_could_want_is_not_looked_at(
    device: HostDevice, policy: Policy, *, matters: bool
) -> None:
    assert local.matters(device, policy) == matters


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (b.resource(state=ResourceState.ATTACHING), True),
        (b.resource(state=ResourceState.ATTACHING, physical="1"), False),
        (b.resource(state=ResourceState.ATTACHING, uuid="GPU-1"), False),
        (b.resource(state=ResourceState.ONLINE), False),
    ],
)
def test_while_an_unnamed_device_may_come_nothing_new_is_trusted(
    resource: ComposableResource, *, expected: bool
) -> None:
    assert local.expecting((resource,)) == expected

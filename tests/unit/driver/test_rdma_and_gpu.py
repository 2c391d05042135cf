"""The driver of the examples that offers GPUs and RDMA network cards: pairs on one PCIe root, and none on two."""

import asyncio
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield import driver
from jackfield.model.names import Key, Uid
from jackfield.node.sysfs import Roots
from jackfield.testing.sysfs import Machine, PciDevice
from unit.driver import examples
from unit.driver.examples import Example
from unit.driver.site import NODE, Site, on_a_node
from unit.node.silence import nobody_speaks

PAIR = "pair.example.com"
EXAMPLE = Example("rdma-and-gpu")
MACHINE = EXAMPLE.load("machine")
gpu, nic, NEAR, FAR = MACHINE.gpu, MACHINE.nic, MACHINE.NEAR, MACHINE.FAR


def build(folder: Path, *devices: PciDevice) -> Machine:
    made = MACHINE.build(folder / "host", *devices)
    assert isinstance(made, Machine)
    return made


def accelerators(machine: Machine) -> driver.Driver:
    roots = Roots(machine.sysfs, machine.proc, machine.dev)
    made = EXAMPLE.module.Accelerators(roots, nobody_speaks)
    assert isinstance(made, driver.Driver)
    return made


def test_a_claim_gets_a_gpu_and_a_network_card_on_one_root() -> None:
    async def scene(site: Site) -> None:
        # In order of their addresses the first card would go with the second GPU.
        machine = build(
            site.folder,
            gpu(0, "0000:17:00.0", NEAR),
            gpu(1, "0000:65:00.0", FAR),
            nic(1, "0000:66:00.0", FAR),
        )
        site.apply(EXAMPLE.yaml("classes"), EXAMPLE.yaml("pair"))
        async with site.kubelet() as kubelet, site.kit(accelerators(machine)):
            claim, got = await examples.prepared(site, kubelet, PAIR, "pair")
            given = [one.device for one in site.claim("pair").results]
            assert given == ["gpu-0000-65-00-0", "nic-0000-66-00-0"]
            assert got.environment == {
                "GPU_ADDRESS": "0000:65:00.0",
                "GPU_UUID": "GPU-00000000-0000-0000-0000-000000000001",
                "NIC_ADDRESS": "0000:66:00.0",
                "NIC_INTERFACES": "eth1",
                "NIC_RDMA_DEVICES": "mlx5_1",
            }
            assert got.device_nodes == (
                "/dev/nvidia-uvm",
                "/dev/nvidia1",
                "/dev/nvidiactl",
                "/dev/infiniband/rdma_cm",
                "/dev/infiniband/uverbs1",
            )
            await examples.unprepared(site, kubelet, PAIR, claim)

    on_a_node(scene)


def test_a_gpu_and_a_card_on_different_roots_are_no_pair_and_that_is_told() -> None:
    async def scene(site: Site) -> None:
        machine = build(site.folder, gpu(0, "0000:17:00.0", NEAR), nic(0, "0000:66:00.0", FAR))
        site.apply(EXAMPLE.yaml("classes"), EXAMPLE.yaml("pair"))
        async with site.kit(accelerators(machine)) as kit:
            await kit.published()
            told = await examples.waiting(site, "pair")
            assert "resource.kubernetes.io/pcieRoot" in told
            assert (NEAR in told, FAR in told) == (True, True), told

    on_a_node(scene)


def test_what_is_plugged_in_while_it_runs_is_offered_as_soon_as_the_kernel_says_so() -> None:
    async def scene(site: Site) -> None:
        machine = build(site.folder, gpu(0, "0000:17:00.0", NEAR))
        site.apply(EXAMPLE.yaml("classes"), EXAMPLE.yaml("pair"))
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        roots = Roots(machine.sysfs, machine.proc, machine.dev)
        with kernels:
            async with site.kit(EXAMPLE.module.Accelerators(roots, lambda: ours)) as kit:
                await kit.published()
                await examples.waiting(site, "pair")
                machine.plug(nic(0, "0000:18:00.0", NEAR))
                path = "/devices/pci0000:16/0000:18:00.0"
                kernels.send(f"add@{path}\0ACTION=add\0DEVPATH={path}\0SUBSYSTEM=pci".encode())
                await site.allocated("pair")

    on_a_node(scene)


# --- without a cluster


def names(machine: Machine) -> list[str]:
    return [one.name for one in accelerators(machine).devices()]


SCREEN = PciDevice(
    "0000:03:00.0",
    vendor="1a03",
    pci_class="030000",
    driver="ast",
    device_files={"drm/card0": "dri/card0 226:0"},
)
PLAIN_CARD = PciDevice(
    "0000:04:00.0", vendor="8086", pci_class="020000", driver="igb", interfaces={"eth9": "02:00:00:00:00:09"}
)
AMD = PciDevice(
    "0000:05:00.0",
    vendor="1002",
    pci_class="038000",
    driver="amdgpu",
    device_files={"drm/card1": "dri/card1 226:1", "drm/renderD128": "dri/renderD128 226:128"},
)
UNBOUND = PciDevice("0000:06:00.0")


def test_only_what_can_compute_or_speaks_rdma_is_offered(tmp_path: Path) -> None:
    without_interfaces = replace(nic(0, "0000:18:00.0", NEAR), interfaces={}, up=())
    machine = build(tmp_path, SCREEN, PLAIN_CARD, AMD, UNBOUND, without_interfaces)
    assert names(machine) == ["gpu-0000-05-00-0", "nic-0000-18-00-0"]


def test_devices_say_where_they_are(tmp_path: Path) -> None:
    (found,) = accelerators(build(tmp_path, nic(1, "0000:66:00.0", FAR))).devices()
    said = {
        name: next(value for value in (one.string, one.int_, one.bool_) if value is not None)
        for name, one in found.attributes.items()
    }
    assert said == {
        "type": "nic",
        "vendor": "15b3",
        "driver": "mlx5_core",
        "resource.kubernetes.io/pciBusID": "0000:66:00.0",
        "resource.kubernetes.io/pcieRoot": FAR,
        "resource.kubernetes.io/numaNode": 1,
        "linkUp": True,
        "speedMegabits": 100000,
    }


def test_who_may_not_listen_to_the_kernel_says_so_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(accelerators(build(tmp_path)).watch(lambda: None))
    assert "found after a restart: [Errno 1] Operation not permitted" in caplog.text


def share(device: str) -> driver.Share:
    return driver.Share(
        claim=Key("default", "c"), uid=Uid("u"), requests=("fast-one/amd",), pool=NODE, device=device
    )


def prepare(one: driver.Driver, device: str) -> driver.Edits:
    made = asyncio.run(one.prepare(share(device)))
    assert isinstance(made, driver.Edits)
    return made


def test_who_computes_gets_no_file_that_switches_the_screen(tmp_path: Path) -> None:
    machine = build(tmp_path, AMD)
    made = prepare(accelerators(machine), "gpu-0000-05-00-0")
    assert [one.path for one in made.device_nodes] == ["/dev/dri/renderD128"]
    assert made.env == {"FAST_ONE_ADDRESS": "0000:05:00.0"}


def test_a_device_that_is_pulled_out_is_not_prepared(tmp_path: Path) -> None:
    machine = build(tmp_path, AMD)
    one = accelerators(machine)
    machine.pull(AMD.address)
    with pytest.raises(
        driver.Retry, match="gpu-0000-05-00-0 has no kernel driver any more, or was pulled out"
    ):
        prepare(one, "gpu-0000-05-00-0")


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    machine = build(tmp_path, AMD)
    (machine.dev / "dri/renderD128").unlink()
    with pytest.raises(driver.Retry, match="renderD128 does not exist yet"):
        prepare(accelerators(machine), "gpu-0000-05-00-0")


def test_the_command_line_says_where_the_machine_is(tmp_path: Path) -> None:
    build(tmp_path, gpu(0, "0000:17:00.0", NEAR))
    one = EXAMPLE.module.Accelerators(Roots(tmp_path, tmp_path, tmp_path), nobody_speaks)
    command = EXAMPLE.module.command(one)
    context = command.make_context("driver.py", [f"--host-root={tmp_path / 'host'}", "--node-name=n1"])
    assert [device.name for device in one.devices()] == ["gpu-0000-17-00-0"]
    assert prepare(one, "gpu-0000-17-00-0").device_nodes[0].host_path == str(tmp_path / "host/dev/nvidia-uvm")
    assert set(context.params) == {option.name for option in driver.command(one).params}
    command.make_context("driver.py", ["--node-name=n1"])
    assert one.roots == Roots()


def test_the_daemon_set_gives_only_options_that_there_are(tmp_path: Path) -> None:
    EXAMPLE.check_installation(EXAMPLE.module.command(accelerators(build(tmp_path))))

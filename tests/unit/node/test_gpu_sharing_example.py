"""The example of GPU sharing on the embedded cluster: allocated, prepared on GPUs that exist nowhere, and undone."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from jackfield import driver
from jackfield.core.share import ComputePolicy, Daemon, Gpu, Interval, Mig
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass
from jackfield.node.nvidia import SharedGpus
from jackfield.testing.kubelet import Claim, Kubelet
from jackfield.testing.nvidia import Daemons, Gpus
from unit.driver.site import Site, on_a_served_node

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gpu-sharing"
DRIVER = "node.jackfield.dev"


def module() -> ModuleType:
    """Return the example's driver."""
    spec = importlib.util.spec_from_file_location("gpu_sharing", EXAMPLE / "driver.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def text(name: str) -> str:
    return (EXAMPLE / f"{name}.yaml").read_text()


class Hardware:
    """What is behind the example's driver."""

    def __init__(self) -> None:
        self._module = module()
        self.driver = self._module.everything()

    def reborn(self) -> driver.Driver:
        """Return the driver after a restart: it remembers nothing, and the hardware is as it was."""
        # A look behind the scenes.
        kinds = [SharedGpus(one._hands, one._settings) for one in self.driver.kinds]  # noqa: SLF001
        again: driver.Driver = self._module.Gpus(*kinds)
        self.driver = again
        return again

    def gpu(self, number: int) -> Gpu:
        gpus = self.driver.kinds[number]._hands.driver  # noqa: SLF001
        assert isinstance(gpus, Gpus)
        return gpus.gpus()[0]

    def daemons(self) -> list[Daemon]:
        found = [one._hands.mps for one in self.driver.kinds]  # noqa: SLF001
        return [daemon for one in found for daemon in one.daemons()]

    def die(self) -> None:
        """Let all daemons die, as when the plugin's container does."""
        for one in self.driver.kinds:
            daemons = one._hands.mps  # noqa: SLF001
            assert isinstance(daemons, Daemons)
            daemons.kill()


async def named(site: Site, pod: str) -> str:
    """Wait until a pod's claim was made from its template, and return its name."""

    def claim() -> str:
        found = site.store.get(Pod, Key("default", pod)).object
        assert isinstance(found, Pod)
        return found.claim_names[0]

    await site.until(lambda: bool(claim()))
    return claim()


async def prepared(site: Site, kubelet: Kubelet, name: str) -> tuple[Claim, list[str]]:
    """Have a claim allocated and prepared; return it, and the environment that its containers get."""
    claim = await site.allocated(name)
    outcome = (await kubelet.prepare(DRIVER, claim))[claim.uid]
    assert outcome.error == ""
    (device,) = outcome.devices
    specs = [json.loads(one.read_text()) for one in site.places.cdi.glob("*.json")]
    edits = [
        one["containerEdits"]
        for spec in specs
        for one in spec["devices"]
        if f"{spec['kind']}={one['name']}" in device.cdi
    ]
    return claim, [line for one in edits for line in one.get("env", [])]


async def undone(kubelet: Kubelet, *claims: Claim) -> None:
    for one in claims:
        assert (await kubelet.unprepare(DRIVER, one))[one.uid].error == ""


def result(site: Site, name: str) -> tuple[str, dict[str, str]]:
    (one,) = site.claim(name).results
    return one.device, dict(one.consumed_capacity)


def test_partitions_are_made_for_their_pods_and_destroyed_after_them() -> None:
    async def scene(site: Site) -> None:
        hardware = Hardware()
        site.apply(text("classes"), text("partition"))
        async with site.kubelet() as kubelet, site.kit(hardware.driver):
            await kubelet.registered(DRIVER)
            names = [await named(site, f"quarter-{number}") for number in (1, 2)]
            claims = [(await prepared(site, kubelet, one))[0] for one in names]
            gpu = hardware.gpu(2)
            assert gpu.mig is Mig.ENABLED
            assert sorted(one.placement.start for one in gpu.instances) == [2, 3]
            await undone(kubelet, claims[0])
            assert len(hardware.gpu(2).instances) == 1
            await undone(kubelet, claims[1])
            assert hardware.gpu(2).instances == ()

    on_a_served_node(scene)


def test_shares_of_one_gpu_are_prepared_side_by_side() -> None:
    async def scene(site: Site) -> None:
        hardware = Hardware()
        site.apply(text("classes"), text("shares"))
        async with site.kubelet() as kubelet, site.kit(hardware.driver):
            await kubelet.registered(DRIVER)
            small, _ = await prepared(site, kubelet, "small-share")
            large, environment = await prepared(site, kubelet, "large-share")
            device, consumed = result(site, "small-share")
            assert consumed == {"memory": "3Gi", "shares": "1"}
            assert result(site, "large-share") == (device, {"memory": "12Gi", "shares": "4"})
            assert environment == ["NVIDIA_VISIBLE_DEVICES=void"]
            assert hardware.gpu(1).policy == ComputePolicy(Interval.SHORT)
            await undone(kubelet, small)
            assert hardware.gpu(1).policy == ComputePolicy(Interval.SHORT)
            await undone(kubelet, large)
            assert hardware.gpu(1).policy == ComputePolicy()

    on_a_served_node(scene)


def test_containers_of_one_claim_compute_side_by_side() -> None:
    async def scene(site: Site) -> None:
        hardware = Hardware()
        site.apply(text("classes"), text("mps"))
        async with site.kubelet() as kubelet, site.kit(hardware.driver):
            await kubelet.registered(DRIVER)
            claim, environment = await prepared(site, kubelet, "side-by-side")
            assert "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps" in environment
            limits = [
                (one.active_thread_percentage, one.pinned_memory_mebibytes) for one in hardware.daemons()
            ]
            assert limits == [(50, 16384)]
        hardware.die()
        async with site.kubelet() as kubelet, site.kit(hardware.reborn()):
            await kubelet.registered(DRIVER)
            assert len(hardware.daemons()) == 1
            await undone(kubelet, claim)
            assert hardware.daemons() == []

    on_a_served_node(scene)


def test_the_class_stands_for_plain_pods_which_the_embedded_scheduler_leaves_to_the_real_one() -> None:
    async def scene(site: Site) -> None:
        site.apply(text("classes"), text("plain"))
        found = site.store.get(DeviceClass, Key("", "whole-gpu")).object
        assert isinstance(found, DeviceClass)
        assert found.spec.extended_resource_name == "nvidia.com/gpu"
        async with site.kubelet(), site.kit(Hardware().driver):
            await site.until(lambda: "Insufficient nvidia.com/gpu" in message(site))
            assert not site.store.list(ResourceClaim).items

    def message(site: Site) -> str:
        pod = site.store.get(Pod, Key("default", "plain")).object
        assert isinstance(pod, Pod)
        return " ".join(one.message for one in pod.status.conditions)

    on_a_served_node(scene)

"""Drivers of the examples as tests use them: loaded from their folder, with what a user of the cluster sees."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import click
import msgspec

from jackfield import driver
from jackfield.core import allocate
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass
from jackfield.testing.kubelet import Claim, Kubelet
from unit.driver.site import NODE, Site

FOLDER = Path(__file__).resolve().parents[3] / "examples"


class Example:
    """One folder of the examples."""

    def __init__(self, name: str) -> None:
        self._folder = FOLDER / name
        self.module: ModuleType = self.load("driver")

    def load(self, name: str) -> ModuleType:
        """Return one of its modules."""
        spec = importlib.util.spec_from_file_location(
            f"{self._folder.name.replace('-', '_')}_{name}", self._folder / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def yaml(self, name: str) -> str:
        """Return one of its files."""
        return (self._folder / f"{name}.yaml").read_text()

    def check_installation(self, command: click.Command) -> None:
        """Look whether the DaemonSet gives the command only options and folders that there are."""
        daemon_set = msgspec.yaml.decode(self.yaml("install").split("\n---\n")[-1])
        pod = daemon_set["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        given = [one.partition("=")[0] for one in container["command"] if one.startswith("--")]
        assert given
        assert set(given) <= {option for one in command.params for option in one.opts}
        variables = {one.envvar for one in command.params if isinstance(one, click.Option)}
        assert {one["name"] for one in container["env"]} <= variables
        mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert {one["name"]: one["hostPath"]["path"] for one in pod["volumes"]} == mounted
        places = driver.Places()
        assert {str(one) for one in (places.plugins, places.registry, places.cdi)} <= set(mounted.values())


class Given(msgspec.Struct, frozen=True):
    """What the containers of a claim get."""

    environment: dict[str, str]
    device_nodes: tuple[str, ...]


async def prepared(site: Site, kubelet: Kubelet, name: str, claim: str) -> tuple[Claim, Given]:
    """Have a claim allocated, and prepared by the driver of a name; return it and what its containers get."""
    found = await site.allocated(claim)
    await kubelet.registered(name)
    outcome = (await kubelet.prepare(name, found))[found.uid]
    assert outcome.error == ""
    specs = [json.loads(one.read_text()) for one in site.places.cdi.glob("*.json")]
    edits = {
        f"{spec['kind']}={one['name']}": one["containerEdits"] for spec in specs for one in spec["devices"]
    }
    own = [edits[one] for device in outcome.devices for one in device.cdi]
    lines = [line for one in own for line in one.get("env", ())]
    environment = dict(line.split("=", 1) for line in lines)
    # No two devices may write the same variable: the container would see but one.
    assert len(environment) == len(lines)
    return found, Given(
        environment, tuple(node["path"] for one in own for node in one.get("deviceNodes", ()))
    )


async def unprepared(site: Site, kubelet: Kubelet, name: str, claim: Claim) -> None:
    """Have a claim unprepared, the only one that was: nothing is left of it."""
    assert (await kubelet.unprepare(name, claim))[claim.uid].error == ""
    assert list(site.places.cdi.glob("*.json")) == []


async def waiting(site: Site, claim: str) -> str:
    """Wait until the scheduler has turned the pod of the claim's name down; return why, as `--explain` says it."""
    await site.until(lambda: "cannot allocate all claims" in message(site, claim))
    assert site.claim(claim).status.allocation is None
    classes = [one.object for one in site.store.list(DeviceClass).items]
    claims = [one.object for one in site.store.list(ResourceClaim).items]
    holding = [one for one in claims if isinstance(one, ResourceClaim)]
    node = site.store.get(Node, named(NODE)).object
    assert isinstance(node, Node)
    allocator = allocate.Allocator(
        site.slices(),
        {one.metadata.name: one for one in classes if isinstance(one, DeviceClass)},
        allocate.allocated(holding),
    )
    why = allocate.why(allocator, [site.claim(claim)], node, allocate.holders(holding))
    return "\n".join(allocate.sentences(why))


def message(site: Site, pod: str) -> str:
    """Return what the scheduler says of a pod that it has not placed."""
    found = site.store.get(Pod, Key("default", pod)).object
    assert isinstance(found, Pod)
    return next((one.message for one in found.status.conditions if one.type == "PodScheduled"), "")

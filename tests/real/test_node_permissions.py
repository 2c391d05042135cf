"""A node's plugin may write on what is of its own node, and on nothing else; the API server itself says so."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import yaml
from msgspec.structs import replace

from jackfield.cli.clock import WallClock
from jackfield.cli.log import Log
from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.codec.encoding import encoded
from jackfield.driver.sockets import Places
from jackfield.driver.store import CHECKPOINT
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.permissions import Account, Part, Role, admission, manifests
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import HOLDER, RELEASED, ComposableResource
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta, holds
from jackfield.model.names import Key, NodeName, Seconds, Version, named
from jackfield.model.node import HEARTBEATS
from jackfield.model.policy import DRIVER, LOCAL_DRIVER, LocalDevices, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.node.host import Manners
from jackfield.node.plugin import NodePlugin, Settings
from jackfield.node.sysfs import Roots
from jackfield.ports import Merge, PortError
from jackfield.testing import builders as b
from jackfield.testing.control_plane import ControlPlane, fake_node
from jackfield.testing.kubelet import Claim, Kubelet
from jackfield.testing.sysfs import Machine, PciDevice
from real.accounts import put, unused, with_cluster
from real.rack import bound
from real.waiting import comes_true
from unit.node.silence import Paper, nobody_speaks

T = TypeVar("T", ResourceClaim, ComposableResource)

ACCOUNT = Account("jackfield", "node")
ANY = Version("")
SPACES: list[Raw] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name in ("jackfield", HEARTBEATS)
]


def resource(node: str) -> Raw:
    return {
        "apiVersion": "cro.hpsys.ibm.ie.com/v1alpha1",
        "kind": "ComposableResource",
        "metadata": {"name": f"on-{node}"},
        "spec": {"type": "gpu", "model": "A100", "target_node": node},
    }


def piece(node: str, driver: str) -> ResourceSlice:
    spec = ResourceSliceSpec(driver, ResourcePool(node, 1), node_name=NodeName(node))
    return ResourceSlice(metadata=ObjectMeta(name=f"{node}-{driver}"), spec=spec)


def lease(node: str) -> Lease:
    return Lease(metadata=ObjectMeta(name=node, namespace=HEARTBEATS), spec=LeaseSpec(holder_identity=node))


class Desk:
    """What the plugin of a node asks of the API server, with the token that its pod would have."""

    def __init__(self, plane: ControlPlane, folder: Path, *binding: str) -> None:
        token = plane.kubectl("create", "token", ACCOUNT.name, f"--namespace={ACCOUNT.namespace}", *binding)
        config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
        config["users"] = [{"name": one["name"], "user": {"token": token.strip()}} for one in config["users"]]
        self._path = folder / "plugin.kubeconfig"
        self._path.write_text(yaml.safe_dump(config))

    def _said(self, ask: Callable[[KubeCluster], Awaitable[object]]) -> str:
        async def scene(cluster: KubeCluster) -> str:
            try:
                await ask(cluster)
            except PortError as error:
                return str(error)
            return ""

        return with_cluster(self._path, scene)

    def hold(self, node: str, *, status: bool = False) -> str:
        """Write on a resource; return what the API server says against it."""
        body: dict[str, object] = {"metadata": {"annotations": {HOLDER: "u"}}}
        if status:
            body = {"status": {"state": "Online"}}
        patch = Merge(ComposableResource, named(f"on-{node}"), ANY, body, status=status)
        return self._said(lambda cluster: cluster.write(patch))

    def create(self, new: Object) -> str:
        return self._said(lambda cluster: cluster.create(new))

    def delete(self, kind: type[Object], key: Key) -> str:
        return self._said(lambda cluster: cluster.delete(kind, key, ANY))


@pytest.fixture
def guarded(fresh: ControlPlane) -> ControlPlane:
    put(fresh, *SPACES, *definitions(), *manifests(Part.NODE, ACCOUNT), *admission(ACCOUNT))
    fresh.kubectl("wait", "--for=condition=Established", "crd", "--all")
    put(fresh, resource("n1"), resource("n2"))
    with fresh.api() as api:
        fake_node(api, "n1")
    return fresh


def test_a_plugin_writes_on_its_own_node_and_on_no_other(guarded: ControlPlane, tmp_path: Path) -> None:
    desk = Desk(guarded, tmp_path, "--bound-object-kind=Node", "--bound-object-name=n1")
    assert comes_true(lambda: "of its node" in desk.hold("n2"))  # a new policy does not hold at once
    assert desk.hold("n1") == ""
    assert desk.hold("n1", status=True) == ""
    assert "of its node" in desk.hold("n2", status=True)
    assert desk.create(lease("n1")) == ""
    assert "only its own Lease" in desk.create(lease("n2"))
    assert desk.create(piece("n1", LOCAL_DRIVER)) == ""
    assert "only devices of its node" in desk.create(piece("n2", LOCAL_DRIVER))
    assert "only devices of its node" in desk.create(piece("n1", DRIVER))
    with_cluster(guarded.kubeconfig, lambda admin: admin.create(piece("n2", "gpu.example.com")))
    assert "only devices of its node" in desk.delete(ResourceSlice, named("n2-gpu.example.com"))
    assert desk.delete(ResourceSlice, named(f"n1-{LOCAL_DRIVER}")) == ""


def test_a_token_that_names_no_node_writes_nothing(guarded: ControlPlane, tmp_path: Path) -> None:
    desk = Desk(guarded, tmp_path)
    assert comes_true(lambda: "does not say which node" in desk.hold("n1"))
    assert "does not say which node" in desk.create(lease("n1"))


# --- all that it does, by its role

POLICY = Policy(local_devices=(LocalDevices("gpu", vendor="10de"),))
LENT = PciDevice("0000:17:00.0", driver="nvidia", uuid="GPU-lent-1", minor=0)
OWN = PciDevice("0000:18:00.0", driver="nvidia", uuid="GPU-own-1", minor=1)


class Life:
    """A plugin with the token of its pod, a kubelet's double, a machine in a folder; and an administrator."""

    def __init__(self, folder: Path, plugin: KubeCluster, admin: KubeCluster, number: int = 1) -> None:
        self.node = f"n{number}"
        self.device = f"a100-{number}"
        self.resource = named(f"{self.device}.rack-a")
        self.said = Paper()
        self.places = Places(folder / "plugins", folder / "registry", folder / "cdi")
        self.machine = Machine(folder / "host")
        self._plugin = plugin
        self._admin = admin

    def settings(self) -> Settings:
        """A plugin that finds its checkpoint damaged, which it tells."""
        checkpoint = self.places.folder(DRIVER) / CHECKPOINT
        checkpoint.parent.mkdir(parents=True, mode=0o700)
        checkpoint.write_text("not a checkpoint\n")
        self.places.registry.mkdir()
        roots = Roots(self.machine.sysfs, self.machine.proc, self.machine.dev)
        return Settings(
            NodeName(self.node),
            POLICY,
            self.places,
            roots,
            Manners(self.machine.pod_logs, uevents=nobody_speaks),
        )

    async def put(self, new: T) -> T:
        """Create an object, its status included."""
        meta = ObjectMeta(new.metadata.name, new.metadata.namespace, annotations=new.metadata.annotations)
        await self._admin.create(replace(new, metadata=meta))
        status = Merge(type(new), new.key, ANY, {"status": encoded(new.status)}, status=True)
        made = await self._admin.write(status)
        assert isinstance(made, type(new))
        return made

    async def live(self) -> None:
        """Be started, prepare and unprepare, publish and withdraw, let go, and stay alive."""
        self.machine.plug(LENT)
        old = piece(self.node, LOCAL_DRIVER)  # of an earlier life, in which its pool had another name
        await self._admin.create(replace(old, spec=replace(old.spec, pool=ResourcePool("another", 1))))
        claim = await self.put(b.claim(f"of-{self.node}", devices=(self.device,), on=self.node))
        await self.put(
            b.resource(self.device, on=self.node, record=claim, physical="block-7", uuid=LENT.uuid)
        )
        plugin = NodePlugin(self.settings(), self._plugin, WallClock(), Log("text", self.said))
        async with Kubelet(self.places.registry) as kubelet, self.machine, asyncio.TaskGroup() as group:
            task = group.create_task(plugin.run(self.said.write))
            await kubelet.registered(DRIVER)
            asked = Claim("default", f"of-{self.node}", claim.uid)
            (prepared,) = (await kubelet.prepare(DRIVER, asked)).values()
            assert prepared.error == ""
            await kubelet.unprepare(DRIVER, asked)
            await self._devices_come_and_go()
            state = {"status": {"state": "Detaching"}}
            await self._admin.write(Merge(ComposableResource, self.resource, ANY, state, status=True))
            await self._until(self._released)
            first = await self._renewed()
            await self._until(lambda: self._later(first))
            task.cancel()

    async def _devices_come_and_go(self) -> None:
        for number in (0x18, 0x19):
            own = replace(OWN, address=f"0000:{number:x}:00.0", minor=number, uuid=f"GPU-own-{number}")
            self.machine.plug(own)
            await self._until(partial(self._publishes, own.address))

    async def _publishes(self, address: str) -> bool:
        ours = f"fieldSelector=spec.nodeName%3D{self.node}"
        slices = (await self._admin.raw("GET", f"/apis/resource.k8s.io/v1/resourceslices?{ours}"))["items"]
        names = [one["name"] for piece in slices for one in piece["spec"].get("devices", ())]
        return f"gpu-{address.replace(':', '-').replace('.', '-')}" in names

    async def _released(self) -> bool:
        found = await self._admin.read(ComposableResource, self.resource)
        return holds(found.status.conditions, RELEASED)

    async def _renewed(self) -> str:
        return (await self._admin.read(Lease, Key(HEARTBEATS, self.node))).spec.renew_time

    async def _later(self, than: str) -> bool:
        return await self._renewed() > than

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        clock = WallClock()
        until = clock.now() + 60
        while not await condition():
            assert clock.now() < until
            await clock.sleep(Seconds(0.1))


def test_a_plugin_does_all_it_does_by_its_role_and_uses_all_of_that(guarded: ControlPlane) -> None:
    async def scene(folder: Path) -> None:
        way = folder / "plugin.kubeconfig"
        way.write_text(yaml.safe_dump(bound(guarded, "n1")))
        async with KubeCluster(load(way)) as plugin, KubeCluster(load(guarded.kubeconfig)) as admin:
            await Life(folder, plugin, admin).live()

    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:  # a socket's path has to be short
        asyncio.run(scene(Path(folder)))
    assert comes_true(lambda: unused(guarded, Role.NODE) == set()), unused(guarded, Role.NODE)

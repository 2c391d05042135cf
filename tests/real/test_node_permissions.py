"""A node's plugin may write on what is of its own node, and on nothing else; the API server itself says so."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.kube.client import KubeCluster
from jackfield.kube.permissions import Account, Part, admission, manifests
from jackfield.model.composition import HOLDER, ComposableResource
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, NodeName, Version, named
from jackfield.model.node import HEARTBEATS
from jackfield.model.policy import DRIVER, LOCAL_DRIVER
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import Merge, PortError
from jackfield.testing.control_plane import ControlPlane, fake_node
from real.accounts import put, with_cluster
from real.waiting import comes_true

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

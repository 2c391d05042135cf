"""Ways in to a real cluster: as the administrator, and as our controllers with their role and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import yaml

from jackfield.codec import Raw
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.permissions import Account, Part, manifests
from jackfield.model.policy import DRIVER
from jackfield.testing.control_plane import ControlPlane

T = TypeVar("T")


def with_cluster(kubeconfig: Path, scene: Callable[[KubeCluster], Awaitable[T]]) -> T:
    """Play a scene with a client that lives as long as it."""

    async def main() -> T:
        async with KubeCluster(load(kubeconfig)) as cluster:
            return await scene(cluster)

    return asyncio.run(main())


def put(plane: ControlPlane, *objects: Raw) -> None:
    """Apply objects as the administrator, whoever wrote them before."""
    plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "--filename=-", text=yaml.safe_dump_all(objects)
    )


@contextmanager
def controllers(plane: ControlPlane, folder: Path, drivers: tuple[str, ...] = (DRIVER,)) -> Iterator[Path]:
    """Make the controllers' service account; yield its kubeconfig."""
    spaces: list[Raw] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("jackfield", "jackfield-node", "jackfield-controllers")
    ]
    made = manifests(Part.CONTROLLERS, Account("jackfield", "controllers"), drivers)
    put(plane, *spaces, *made)
    token = plane.kubectl("create", "token", "controllers", "--namespace=jackfield")
    config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token.strip()}} for one in config["users"]]
    path = folder / "controllers.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        yield path
    finally:
        plane.kubectl("delete", "--filename=-", text=yaml.safe_dump_all(made))

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
from jackfield.kube.permissions import Account, Part, Role, manifests, rights
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


SPACES: list[Raw] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name in ("jackfield", "jackfield-node", "jackfield-controllers")
]


def way_in(plane: ControlPlane, folder: Path, account: Account) -> Path:
    """Return a kubeconfig with a token of a service account that is there."""
    token = plane.kubectl("create", "token", account.name, f"--namespace={account.namespace}")
    config: Raw = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token.strip()}} for one in config["users"]]
    path = folder / f"{account.name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def unused(plane: ControlPlane, role: Role, user: str = "") -> set[tuple[str, str]]:
    """Return the rights of a role that nobody, or that user, made use of; a watch counts when it has ended."""
    asked = [
        one for one in plane.audited() if one.allowed_by == f"jackfield-{role}" and user in {"", one.user}
    ]
    held = {(verb, one.resource) for one in rights(role) for verb in one.verbs}
    return held - {(one.verb, one.resource) for one in asked}


@contextmanager
def controllers(plane: ControlPlane, folder: Path, drivers: tuple[str, ...] = (DRIVER,)) -> Iterator[Path]:
    """Make the controllers' service account; yield its kubeconfig."""
    account = Account("jackfield", "controllers")
    made = manifests(Part.CONTROLLERS, account, drivers)
    put(plane, *SPACES, *made)
    try:
        yield way_in(plane, folder, account)
    finally:
        plane.kubectl("delete", "--filename=-", text=yaml.safe_dump_all(made))

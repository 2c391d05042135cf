"""A picture of the cluster at one moment: nodes and what is on them, the pool, pods that wait.

Knows where to look. Must not know how it is drawn.
"""

import msgspec

from jackfield.model.claim import ResourceClaim
from jackfield.model.names import NodeName
from jackfield.model.node import NODE_GROUP
from jackfield.model.pod import Pod
from jackfield.sim.world import SimWorld


class DevicePicture(msgspec.Struct, frozen=True):
    """A device on a node: its own, or out of the pool."""

    name: str
    state: str
    """own, attaching, attached, leaving"""
    pod: str = ""


class NodePicture(msgspec.Struct, frozen=True):
    """A node."""

    name: str
    ready: bool
    added: bool
    memory: str
    devices: tuple[DevicePicture, ...]
    pods: tuple[str, ...]


class PoolPicture(msgspec.Struct, frozen=True):
    """A fabric's pool."""

    fabric: str
    free: int
    total: int


class Picture(msgspec.Struct, frozen=True):
    """Everything at one moment."""

    nodes: tuple[NodePicture, ...]
    pools: tuple[PoolPicture, ...]
    waiting: tuple[str, ...]
    """Pods that have no node."""


_STATES = {"": "attaching", "Attaching": "attaching", "Online": "attached"}


def take(world: SimWorld) -> Picture:
    """Return what there is to be seen now."""
    users = _users(world)
    store = world.store
    nodes = []
    for node in store.nodes():
        own = _own_devices(world, node.name, users)
        attached = tuple(
            DevicePicture(
                one.device.device if one.device is not None else one.metadata.name,
                _STATES.get(one.state.value, "leaving"),
                users.get(str(one.device), ""),
            )
            for one in store.resources_on(node.name)
        )
        pods = tuple(pod.metadata.name for pod in store.pods_on(node.name) if not pod.finished)
        added = NODE_GROUP in node.metadata.labels
        memory = node.status.allocatable.get("memory", "")
        nodes.append(NodePicture(node.name, node.ready, added, memory, (*own, *attached), pods))
    everybody = (pod for pod in store.all(Pod) if isinstance(pod, Pod))
    waiting = tuple(pod.metadata.name for pod in everybody if not pod.spec.node_name and not pod.finished)
    return Picture(tuple(nodes), _pools(world), waiting)


def _pools(world: SimWorld) -> tuple[PoolPicture, ...]:
    pictures = []
    for name, manager in world.hardware.managers.items():
        devices = manager.inventory().devices
        pictures.append(PoolPicture(name, sum(not one.node for one in devices), len(devices)))
    return tuple(pictures)


def _users(world: SimWorld) -> dict[str, str]:
    """The pod that uses each device."""
    users: dict[str, str] = {}
    for claim in world.store.all(ResourceClaim):
        if isinstance(claim, ResourceClaim) and claim.results:
            pods = [pod.metadata.name for pod in world.store.pods_using(claim.key)]
            users |= {str(result.id): pods[0] if pods else claim.metadata.name for result in claim.results}
    return users


def _own_devices(world: SimWorld, node: NodeName, users: dict[str, str]) -> tuple[DevicePicture, ...]:
    return tuple(
        DevicePicture(device.device, "own", users.get(str(device), ""))
        for device in world.hardware.own_devices(node)
    )

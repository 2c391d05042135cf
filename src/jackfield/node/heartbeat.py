"""The sign of life that makes a node eligible for devices: a Lease, renewed while the plugin is of use.

Knows the Lease. Must not know what makes a plugin useful: it is told, and is silent while something is in the way.
"""

from collections.abc import Callable
from typing import Final

from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import ObjectMeta, OwnerReference
from jackfield.model.names import Key, NodeName, Seconds, Version, named, rfc3339_micro
from jackfield.model.node import HEARTBEATS, Node
from jackfield.model.policy import Policy
from jackfield.ports import Clock, Cluster, Gone, Merge, PortError

BEATS: Final = 4
"""How many signs of life are given within the policy's `heartbeatSeconds`: all but one of them may get lost."""
AGAIN_SECONDS: Final = Seconds(0.5)
"""How soon it is looked again whether something is still in the way, or a renewal that failed is repeated."""
_ANY: Final = Version("")


class Heartbeat:
    """Renews the Lease of one node."""

    def __init__(self, node: NodeName, cluster: Cluster, clock: Clock, trouble: Callable[[], str]) -> None:
        """`trouble` says what keeps the plugin from being of use; nothing while it is."""
        self.duration = Policy().heartbeat_seconds
        """How long the node may be silent, by the policy: where it is longer, the API server hears of us less often."""
        self.lost = ""
        """Why the last renewal failed; nothing if it did not."""
        self._node = node
        self._cluster = cluster
        self._clock = clock
        self._trouble = trouble

    async def run(self, note: Callable[[str], None] = lambda _: None) -> None:
        """Renew, for ever, while nothing is in the way. `note` hears why it cannot be, once."""
        told = ""
        while True:
            pause = AGAIN_SECONDS
            if not self._trouble():
                try:
                    await self._beat()
                except PortError as error:
                    self.lost = f"the Lease {HEARTBEATS}/{self._node} cannot be renewed: {error}"
                    if self.lost != told:
                        told = self.lost
                        note(f"{told}; without it the node is offered nothing")
                else:
                    self.lost, pause, told = "", Seconds(max(AGAIN_SECONDS, self.duration / BEATS)), ""
            await self._clock.sleep(pause)

    async def _beat(self) -> None:
        now, key = rfc3339_micro(self._clock.now()), Key(HEARTBEATS, self._node)
        lasts = max(1, round(self.duration))  # a Lease has to last for something
        body = {"spec": {"renewTime": now, "holderIdentity": self._node, "leaseDurationSeconds": lasts}}
        try:
            await self._cluster.write(Merge(Lease, key, _ANY, body))
        except Gone:
            node = await self._cluster.read(Node, named(self._node))
            # With its node the Lease goes as well.
            owner = OwnerReference("v1", "Node", self._node, node.metadata.uid)
            metadata = ObjectMeta(name=key.name, namespace=key.namespace, owner_references=(owner,))
            spec = LeaseSpec(
                holder_identity=self._node,
                lease_duration_seconds=lasts,
                acquire_time=now,
                renew_time=now,
            )
            await self._cluster.create(Lease(metadata=metadata, spec=spec))

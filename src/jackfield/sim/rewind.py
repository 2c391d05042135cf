"""A backup of the API's store is restored, and somebody does what is to be done then.

Knows what Kubernetes' own guide says (https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/): the
API server is stopped meanwhile, and the control plane is started anew. Must not know what our controllers make of it:
they, the plugins and the kubelets go on, and notice by themselves.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

import msgspec

from jackfield.cluster.api import Client
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.meta import Object, ObjectMeta, holds
from jackfield.model.names import DeviceID, Key, Seconds, Version
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import READY
from jackfield.ports import Conflict, Gone
from jackfield.sim.audit import Audit
from jackfield.sim.world import SimWorld

AGAIN: Final = Seconds(1.0)
TRIES_MAX: Final = 900
"""After so many seconds without a quiet moment the backup is not restored."""
LOOKS: Final = (Seconds(0.0), Seconds(60.0), Seconds(300.0))
"""After which pauses somebody looks for pods that wait in vain."""
Spawn = Callable[[Coroutine[None, None, None]], None]
"""Lets something go on by itself."""
WISHES: Final = (ResourceClaim, ComposabilityRequest)
"""What users write by hand, and therefore have in files."""


class Rewind:
    """A backup, made when this is, and its restoration."""

    def __init__(self, world: SimWorld, audit: Audit, user: Client, spawn: Spawn) -> None:
        self._world = world
        self._audit = audit
        self._user = user
        self._spawn = spawn
        self._backup = world.api.backup()
        self._nodes = self._all_nodes()

    def _all_nodes(self) -> tuple[Key, ...]:
        return tuple(one.key for one in self._world.api.list(Node).items)

    async def happen(self) -> bool:
        """Restore it; return whether that was done. A backup that knows other machines than there are is no good."""
        world = self._world
        tries = TRIES_MAX
        while tries and self._is_under_way():
            await world.clock.sleep(AGAIN)
            tries -= 1
        if not tries or self._all_nodes() != self._nodes:
            return False
        wishes = {kind: self._wishes(kind) for kind in WISHES}
        world.api.restore(self._backup)
        # What is wished for from now on is no part of the backup.
        restored = {kind: self._wishes(kind) for kind in WISHES}
        for program in world.programs.values():  # all connections broke, those as well that were silent
            program.weather.deaf.clear()
        self._audit.rewound()
        world.restart_scheduler()
        world.restart_upkeep()
        await world.hardware.rewound()
        for kind, before in wishes.items():
            await self._wish_again(kind, before, restored[kind])
        return True

    def _is_under_way(self) -> bool:
        """Whether something has been sent that nobody can take back, and that the books would not say any more.

        A detach, or whatever somebody paused sends when he goes on (V16). A server that is down for minutes outlasts
        both.
        """
        paused = any(one.process.stopped for one in self._world.replicas)
        return paused or any(one.taking_back for one in self._world.hardware.managers.values())

    # --- what users do

    def _wishes(self, kind: type[Object]) -> dict[Key, Object]:
        """What users, and not controllers, have written of a kind."""
        found = (one.object for one in self._world.api.list(kind).items)
        return {one.key: one for one in found if not one.deleting and _is_by_hand(one)}

    async def _wish_again(
        self, kind: type[Object], before: dict[Key, Object], restored: dict[Key, Object]
    ) -> None:
        """Have what users wanted when the backup was restored, as whoever applies his files again."""
        for key in [key for key in restored if key not in before]:
            with suppress(Gone):
                await self._user.delete(kind, key, Version(""))
        for key, one in before.items():
            if key not in restored:
                meta = ObjectMeta(name=key.name, namespace=key.namespace)
                new = msgspec.structs.replace(one, metadata=meta, **_unsaid(one))
                self._spawn(self._make(new))

    async def _make(self, new: Object) -> None:
        """Make it as soon as a namesake that is on its way out is gone; one that stays is as good."""
        while True:
            try:
                await self._user.create(new)
            except Conflict:
                await self._world.clock.sleep(AGAIN)
            else:
                return
            with suppress(Gone):
                if not (await self._user.read(type(new), new.key)).deleting:
                    return

    async def clear_up(self) -> None:
        """Delete the pods that were promised what is not there any more, as `jackfield check` advises."""
        for pause in LOOKS:
            await self._world.clock.sleep(pause)
            for item in self._world.api.list(Pod).items:
                pod = item.object
                if isinstance(pod, Pod) and not pod.finished and not pod.deleting and self._is_bereft(pod):
                    with suppress(Gone):
                        await self._user.delete(Pod, pod.key, Version(""))

    def _is_bereft(self, pod: Pod) -> bool:
        items = self._world.api.list(ResourceClaim).items
        names = [Key(pod.metadata.namespace, name) for name in pod.claim_names]
        claims = [one.object for one in items if one.key in names]
        return any(isinstance(one, ResourceClaim) and self._is_robbed(one) for one in claims)

    def _is_robbed(self, claim: ResourceClaim) -> bool:
        """Whether a claim was told that it has a device which does not stand on its node."""
        ready = [one.id for one in claim.results if holds(claim.conditions(one.id), READY)]
        return any(not self._stands(device, claim.node) for device in ready)

    def _stands(self, device: DeviceID, node: str) -> bool:
        items = self._world.api.list(ComposableResource).items
        found = [one.object for one in items if isinstance(one.object, ComposableResource)]
        physical = [one.status.cdi_device_id for one in found if one.device == device and one.node == node]
        pools = [one.pool for one in self._world.hardware.managers.values()]
        shown = [known for pool in pools for one in physical if (known := pool.device(one)) is not None]
        return any(one.node == node for one in shown)


def _is_by_hand(one: Object) -> bool:
    ours = isinstance(one, ComposabilityRequest) and bool(one.scalers)
    return not ours and not one.metadata.owner_references


def _unsaid(one: Object) -> dict[str, object]:
    """What nobody writes by hand, as it is in the beginning."""
    return {"status": type(one)().status} if isinstance(one, ResourceClaim | ComposabilityRequest) else {}

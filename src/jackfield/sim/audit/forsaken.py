"""Pods that Kubernetes itself leaves without their claim though they are bound.

Knows what kube-scheduler and kube-controller-manager do to a claim between them. Must not know what we do about it.
"""

from typing import Final

from jackfield.cluster.history import Event
from jackfield.controllers.store import Store
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, Uid
from jackfield.model.pod import Pod

CONTROLLER_MANAGER: Final = "controller-manager"
SCHEDULER: Final = "scheduler"


class Forsaken:
    """Sees every change before it is in the books, and tells whose pod is left without its claim by nobody's fault."""

    def __init__(self) -> None:
        self._taken_back: dict[Uid, None] = {}  # claims that a scheduler took back, and gave nothing since

    def pods(self, event: Event, store: Store) -> tuple[Pod, ...]:
        """Return the bound pods that a change leaves without their claim, if that is Kubernetes' own doing."""
        old, new = event.before.object if event.before is not None else None, event.stored.object
        if isinstance(old, ResourceClaim) and isinstance(new, ResourceClaim):
            self._note(old, new, event.by)
            return _taken_off(old, new, event.by, store)
        if isinstance(old, Pod) and isinstance(new, Pod):
            return self._bound_by_an_old_cache(old, new, store)
        return ()

    def _note(self, old: ResourceClaim, new: ResourceClaim, by: str) -> None:
        if new.results:
            self._taken_back.pop(new.uid, None)
        elif old.results and by == SCHEDULER:
            self._taken_back[new.uid] = None

    def _bound_by_an_old_cache(self, old: Pod, new: Pod, store: Store) -> tuple[Pod, ...]:
        """A scheduler does not remember that it took a claim back; it waits to hear of it.

        If a node comes to fit the pod before that, it takes the claim for allocated and reserved, writes nothing, and
        binds the pod. As upstream.
        """
        if old.spec.node_name or not new.spec.node_name:
            return ()
        claims = (store.claim(Key(new.metadata.namespace, name)) for name in new.claim_names)
        taken_back = any(claim is not None and claim.uid in self._taken_back for claim in claims)
        return (new,) if taken_back else ()


def _taken_off(old: ResourceClaim, new: ResourceClaim, by: str, store: Store) -> tuple[Pod, ...]:
    """A scheduler that gets no answer to a bind takes the pod off `reservedFor`, though the bind may have taken effect.

    When the last of the others ends, kube-controller-manager deallocates the claim; it does not ask who is bound, and
    reserves it for such a pod only when it has heard of the bind. Both are as upstream, and none of our programs is
    asked. What the pod has it keeps: its holder does, whatever becomes of the claim (rule 12).
    """
    if by != CONTROLLER_MANAGER or not old.results or new.results:
        return ()
    reserved = {one.uid for one in old.status.reserved_for}
    using = (pod for pod in store.pods_using(old.key) if pod.spec.node_name and not pod.finished)
    return tuple(pod for pod in using if pod.uid not in reserved)

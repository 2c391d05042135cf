"""Pods whose claim Kubernetes itself takes back though they are bound.

Knows what kube-scheduler and kube-controller-manager do to a claim between them. Must not know what we do about it.
"""

from typing import Final

from jackfield.cluster.history import Event
from jackfield.controllers.store import Store
from jackfield.model.claim import ResourceClaim
from jackfield.model.pod import Pod

CONTROLLER_MANAGER: Final = "controller-manager"


def pods(event: Event, store: Store) -> tuple[Pod, ...]:
    """Return the bound pods that a change leaves without their claim, if that is nobody's fault; told before it.

    A scheduler that gets no answer to a bind takes the pod off `reservedFor`, though the bind may have taken effect.
    When the last of the others ends, kube-controller-manager deallocates the claim; it does not ask who is bound, and
    reserves it for such a pod only when it has heard of the bind. Both are as upstream, and none of our programs is
    asked. What the pod has it keeps: its holder does, whatever becomes of the claim (rule 12).
    """
    old, new = event.before.object if event.before is not None else None, event.stored.object
    if not isinstance(old, ResourceClaim) or not isinstance(new, ResourceClaim):
        return ()
    if event.by != CONTROLLER_MANAGER or not old.results or new.results:
        return ()
    reserved = {one.uid for one in old.status.reserved_for}
    using = (pod for pod in store.pods_using(old.key) if pod.spec.node_name and not pod.finished)
    return tuple(pod for pod in using if pod.uid not in reserved)

"""What the scheduler knows: the API as its informers heard it, and its own decisions that no event has shown yet.

Knows which of two versions of an object counts, which pods count against which node, and which devices are taken.
Must not know what is decided from it. A claim that the scheduler wrote counts until an event brings a newer
version; an allocation decided but not yet written is in flight and takes its devices all the same; a pod decided
but not yet bound is assumed on its node. Everything is counted when it changes, never summed up anew.
"""

import bisect
from collections.abc import Callable

import msgspec

from jackfield.cluster.scheduling.filters import NodeInfo, PodInfo, requests
from jackfield.core.allocate import Allocated, allocated
from jackfield.model.claim import AllocationResult, ResourceClaim
from jackfield.model.device import DeviceTaint
from jackfield.model.names import DeviceID, Key, NodeName, Uid, Version
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice
from jackfield.model.taint import DeviceTaintRule


class SchedulerCache:
    """The scheduler's picture of the cluster."""

    def __init__(self) -> None:
        self.pods: dict[Key, PodInfo] = {}
        self.claims: dict[Key, ResourceClaim] = {}
        self.slices: dict[Key, ResourceSlice] = {}
        """As they are seen: with the taints that rules put on their devices."""
        self._published: dict[Key, ResourceSlice] = {}
        self._rules: dict[Key, DeviceTaintRule] = {}
        self.classes: dict[Key, DeviceClass] = {}
        self.names: list[NodeName] = []
        """The nodes that are there, in order."""
        self.room_freed = 0
        """Goes up whenever a pod may fit on a node that did not before, its claims aside."""
        self.devices_freed = 0
        """Goes up whenever claims may be met on a node that could not be before."""
        self.offered = 0
        """Goes up whenever slices or classes changed."""
        self.on_claim: Callable[[ResourceClaim | None, ResourceClaim], None] = _nobody
        """Told of every change of a claim, whether it was heard of or written by ourselves: before, and now."""
        self._nodes: dict[NodeName, NodeInfo] = {}
        self._where: dict[Uid, NodeName] = {}
        self._assumed: dict[Uid, NodeName] = {}
        self._users: dict[Key, dict[Key, None]] = {}
        self._in_flight: dict[Key, ResourceClaim] = {}
        self._held: dict[Key, list[ResourceClaim]] = {}
        self._allocated: Allocated | None = None

    # --- nodes

    def node(self, name: NodeName) -> NodeInfo:
        """Return what is known of a node that is there."""
        return self._nodes[name]

    def put_node(self, node: Node) -> bool:
        """Take a node as it is now; return whether anything changed that a pod could care about."""
        info = self._nodes.setdefault(node.name, NodeInfo())
        matters = info.node is None or _seen_by_pods(info.node) != _seen_by_pods(node)
        if info.node is None:
            bisect.insort(self.names, node.name)
        info.put(node)
        self.room_freed += matters
        self.devices_freed += matters
        return matters

    def drop_node(self, name: NodeName) -> None:
        """Forget a node; its pods still count, should it come back."""
        info = self._nodes.get(name)
        if info is None or info.node is None:
            return
        info.node = None
        del self.names[bisect.bisect_left(self.names, name)]
        if not info.pods:
            del self._nodes[name]

    # --- pods

    def put_pod(self, pod: Pod) -> bool:
        """Take a pod as it is now; return whether room was freed on a node."""
        old = self.pods.get(pod.key)
        freed = False
        if old is not None and old.uid != pod.uid:
            freed = self.drop_pod(pod.key)
            old = None
        self.pods[pod.key] = info = PodInfo(pod, old.requests if old else requests(pod))
        for name in pod.claim_names:
            if name:
                self._users.setdefault(Key(pod.metadata.namespace, name), {})[pod.key] = None
        if pod.finished:
            return self._take_off(pod.uid) or freed
        if pod.spec.node_name:
            self._assumed.pop(pod.uid, None)
            self._put_on(info, pod.spec.node_name)
        return freed

    def drop_pod(self, key: Key) -> bool:
        """Forget a pod; return whether room was freed on a node."""
        info = self.pods.pop(key, None)
        if info is None:
            return False
        for name in info.pod.claim_names:
            users = self._users.get(Key(key.namespace, name), {})
            users.pop(key, None)
            if not users:
                self._users.pop(Key(key.namespace, name), None)
        return self._take_off(info.uid)

    def assume(self, info: PodInfo, node: NodeName) -> None:
        """Count a pod against the node that was decided for it."""
        self._put_on(info, node)
        self._assumed[info.uid] = node

    def forget(self, uid: Uid) -> bool:
        """Undo `assume`, unless an event has confirmed it; return whether room was freed."""
        return self._assumed.pop(uid, None) is not None and self._take_off(uid)

    def users(self, claim: Key) -> tuple[Key, ...]:
        """Return the pods that name the claim."""
        return tuple(self._users.get(claim, ()))

    def _put_on(self, info: PodInfo, node: NodeName) -> None:
        if self._where.get(info.uid) == node:
            return
        self._take_off(info.uid)
        self._where[info.uid] = node
        self._nodes.setdefault(node, NodeInfo()).add(info)

    def _take_off(self, uid: Uid) -> bool:
        name = self._where.pop(uid, None)
        self._assumed.pop(uid, None)
        if name is None:
            return False
        info = self._nodes[name]
        info.remove(uid)
        if info.node is None and not info.pods:
            del self._nodes[name]
        self.room_freed += 1
        return True

    # --- slices and classes

    def put_slice(self, new: ResourceSlice) -> None:
        """Take a slice as it is now."""
        self._published[new.key] = new
        self.slices[new.key] = self._tainted(new)
        self._offer()

    def drop_slice(self, key: Key) -> None:
        """Forget a slice."""
        self._published.pop(key, None)
        self.slices.pop(key, None)
        self._offer()

    def put_rule(self, new: DeviceTaintRule) -> None:
        """Take a taint rule as it is now."""
        self._rules[new.key] = new
        self._taint_anew()

    def drop_rule(self, key: Key) -> None:
        """Forget a taint rule."""
        self._rules.pop(key, None)
        self._taint_anew()

    def _taint_anew(self) -> None:
        for key, published in self._published.items():
            if self.slices[key] is not published or self._rules:
                self.slices[key] = self._tainted(published)
        self._offer()

    def _tainted(self, published: ResourceSlice) -> ResourceSlice:
        """Add the rules' taints; a slice that no rule means stays the very object it is."""
        spec = published.spec
        added = {
            device.name: taints
            for device in spec.devices
            if (taints := self._taints(DeviceID(spec.driver, spec.pool.name, device.name)))
        }
        if not added:
            return published
        devices = tuple(
            msgspec.structs.replace(one, taints=(*one.taints, *added[one.name])) if one.name in added else one
            for one in spec.devices
        )
        return msgspec.structs.replace(published, spec=msgspec.structs.replace(spec, devices=devices))

    def _taints(self, device: DeviceID) -> tuple[DeviceTaint, ...]:
        return tuple(
            rule.spec.taint
            for rule in self._rules.values()
            # As in 1.36 and 1.37, a rule that selects nothing in particular means every device.
            if rule.spec.device_selector is None or rule.spec.device_selector.matches(device)
        )

    def put_class(self, new: DeviceClass) -> None:
        """Take a class as it is now."""
        self.classes[new.key] = new
        self._offer()

    def drop_class(self, key: Key) -> None:
        """Forget a class."""
        self.classes.pop(key, None)
        self._offer()

    def _offer(self) -> None:
        self.offered += 1
        self.devices_freed += 1

    # --- claims

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take a claim, heard of or written by ourselves, unless we know it or a newer version."""
        old = self.claims.get(claim.key)
        if old is not None and not newer(claim.metadata.resource_version, old.metadata.resource_version):
            return
        self.claims[claim.key] = claim
        self._count(claim.key)
        self.on_claim(old, claim)

    def drop_claim(self, gone: ResourceClaim) -> None:
        """Forget a claim, unless a later one has taken its name."""
        old = self.claims.get(gone.key)
        if old is None or newer(old.metadata.resource_version, gone.metadata.resource_version):
            return
        del self.claims[gone.key]
        self._count(gone.key)

    def send_off(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Note an allocation that is decided and not yet written."""
        status = msgspec.structs.replace(claim.status, allocation=allocation)
        self._in_flight[claim.key] = msgspec.structs.replace(claim, status=status)
        self._count(claim.key)

    def landed(self, key: Key) -> None:
        """Note that the writing of an allocation is over, well or not."""
        if self._in_flight.pop(key, None) is not None:
            self._count(key)

    def in_flight(self, key: Key) -> bool:
        """Return whether an allocation of the claim is decided and not yet written."""
        return key in self._in_flight

    def allocated(self) -> Allocated:
        """Return which devices are taken."""
        if self._allocated is None:
            self._allocated = allocated(one for held in self._held.values() for one in held)
        return self._allocated

    def _count(self, key: Key) -> None:
        """Bring what is taken up to date for one claim: what it has, and what it is about to get."""
        both = (self._in_flight.get(key), self.claims.get(key))
        now = [one for one in both if one is not None and one.results]
        if len(now) > 1 and now[0].results == now[1].results:
            now.pop()
        before = self._held.pop(key, [])
        if now:
            self._held[key] = now
        if [one.results for one in now] == [one.results for one in before]:
            return
        if not before:
            for one in now if self._allocated is not None else ():
                self._allocated = self.allocated().plus(one)
            return
        # Another claim may hold the same device if an answer got lost: what is left is counted, not subtracted.
        self._allocated = None
        self.devices_freed += 1


def _nobody(_old: ResourceClaim | None, _new: ResourceClaim) -> None:
    """Tell nobody."""


def _seen_by_pods(node: Node) -> tuple[object, ...]:
    return (
        node.metadata.labels,
        node.spec.unschedulable,
        node.spec.taints,
        node.status.allocatable,
        node.ready,
    )


def newer(version: Version, than: Version) -> bool:
    """Return whether a resourceVersion is later than another of the same object."""
    return int(version or 0) > int(than or 0)

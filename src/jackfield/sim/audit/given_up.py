"""What claims gave up a moment ago, and which nodes were opened: what was a reason then may still be acted on.

Knows why a device leaves its node early. Must not know who does it, or how.
"""

from typing import Final

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.meta import Object, holds
from jackfield.model.names import LONG_AGO, DeviceID, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.policy import FAILED, READY, RESCHEDULE

ANSWERS: Final = (READY, RESCHEDULE, FAILED)


class GivenUp:
    """Remembers where claims had which devices, where they waited, which nodes took no pods, and until when."""

    def __init__(self) -> None:
        self._devices: dict[DeviceID, tuple[NodeName, Seconds]] = {}
        self._rooms: dict[NodeName, Seconds] = {}
        self._closed: dict[NodeName, Seconds] = {}

    def note(self, old: Object | None, new: Object | None, now: Seconds) -> None:
        """Note what a change takes from a claim, or that a node takes pods again."""
        if (
            isinstance(old, Node)
            and isinstance(new, Node)
            and old.spec.unschedulable > new.spec.unschedulable
        ):
            self._closed[new.name] = now
        if not isinstance(old, ResourceClaim):
            return
        kept = [result.id for result in new.results] if isinstance(new, ResourceClaim) else []
        left = [result.id for result in old.results if result.id not in kept]
        self._devices |= dict.fromkeys(left, (old.node, now))
        if any(not _is_answered(old, device) for device in left):
            self._rooms[old.node] = now

    def explains(self, resource: ComposableResource, since: Seconds) -> bool:
        """Return whether somebody had a reason to return a device, that long ago and later, which is gone now.

        A claim on another node had it: it was to come there (rule 4). Or a claim on its own node waited for a device:
        that needed its room. Or its node took no pods. None is more than who decided so could have heard, and its node
        loses but a device that nobody had (rule 13).
        """
        here = max(self._rooms.get(resource.node, LONG_AGO), self._closed.get(resource.node, LONG_AGO))
        if resource.device is None:
            return False
        node, at = self._devices.get(resource.device, (resource.node, LONG_AGO))
        return here > since or (node != resource.node and at > since)


def _is_answered(claim: ResourceClaim, device: DeviceID) -> bool:
    return any(holds(claim.conditions(device), kind) for kind in ANSWERS)

"""Resources whose manager does not show their device where it should be, and since when that is certain.

An inventory may only be older than the books: what it lacks counts if an earlier one had it, else from the first one
that was asked for when it was known that the device should be there. That is counted anew by every process, so that
nobody gives up too early. Knows looks and answers. Must not know why a device is where, nor what follows.
"""

from jackfield.model.composition import ComposableResource
from jackfield.model.names import NEVER, FabricName, Seconds, Uid


class Absent:
    """Remembers since when which resource lacks its device, by the resource's uid."""

    def __init__(self) -> None:
        self._shown: dict[Uid, None] = {}
        self._wanting: dict[FabricName, dict[Uid, ComposableResource]] = {}
        self._asked: dict[FabricName, dict[Uid, None]] = {}
        self._since: dict[Uid, Seconds] = {}
        self._news: dict[FabricName, dict[Uid, ComposableResource]] = {}

    def since(self, uid: Uid) -> Seconds:
        """Return since when it is certain; NEVER if it is not."""
        return self._since.get(uid, NEVER)

    def shown(self, fabric: FabricName, resource: ComposableResource) -> None:
        """Take it that a resource's device is shown where it should be."""
        self.forget(fabric, resource)
        self._shown[resource.uid] = None

    def lack(self, fabric: FabricName, resource: ComposableResource) -> None:
        """Take it that a resource's device is not shown where it should be."""
        self._wanting.setdefault(fabric, {})[resource.uid] = resource
        if resource.uid in self._shown:  # it has left since, so the answer that is being read counts
            del self._shown[resource.uid]
            self._asked.setdefault(fabric, {})[resource.uid] = None

    def forget(self, fabric: FabricName, resource: ComposableResource) -> None:
        """Take it that a resource need not have its device, or is gone."""
        self._shown.pop(resource.uid, None)
        self._wanting.get(fabric, {}).pop(resource.uid, None)
        self._asked.get(fabric, {}).pop(resource.uid, None)
        if self._since.pop(resource.uid, None) is not None:
            self._news.setdefault(fabric, {})[resource.uid] = resource

    def ask(self, fabric: FabricName) -> None:
        """Take it that the manager is asked now: what it does not show then is not shown indeed."""
        self._asked[fabric] = dict.fromkeys(self._wanting.get(fabric, ()))

    def answered(self, fabric: FabricName, at: Seconds, *, current: bool) -> tuple[ComposableResource, ...]:
        """Take it that the manager has answered; return the resources about which that made a difference."""
        news, asked = self._news.pop(fabric, {}), self._asked.pop(fabric, {})
        for uid in asked if current else ():
            if uid not in self._since:
                self._since[uid] = at
                news[uid] = self._wanting[fabric][uid]
        return tuple(news.values())

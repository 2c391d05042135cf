"""What our controllers would do, and will not, since no change woke them.

Only a key that is in no queue at two looks in a row counts: what was done a moment ago may not have been heard of
yet. Knows replicas. Must not know what is decided.
"""

from collections.abc import Hashable, Iterator
from typing import Final

from jackfield.model.names import LONG_AGO, Seconds
from jackfield.model.plan import DeleteRequest, DeleteResource, DropTaint, FreeResource, Plan
from jackfield.sim.audit.checkers import Checker
from jackfield.sim.replica import Replica
from jackfield.sim.world import SimWorld

LOOK_SECONDS: Final = Seconds(120.0)
"""How often all keys are decided for: a look takes a millisecond or two."""

DELETIONS: Final = (DeleteRequest, DeleteResource, DropTaint, FreeResource)
"""What was done about these is heard by a watch only, and that may be silent for long."""

Place = tuple[str, str, Hashable]


class Overlooked:
    """Looks now and then, and again soon at what is suspicious."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._next = LONG_AGO
        self._suspects: dict[Place, Plan] = {}

    def look(self, now: Seconds) -> Iterator[tuple[str, str]]:
        """Yield what was there to be done a while ago already; called every few seconds."""
        if now < self._next and not self._suspects:
            return
        self._next = Seconds(now + LOOK_SECONDS)
        before, self._suspects = self._suspects, dict(self._found())
        for place in [one for one in self._suspects if one in before]:
            replica, controller, key = place
            what = self._suspects.pop(place).actions[0].because
            yield Checker.OVERLOOKED, f"replica/{replica}: {controller} of {key}: nobody looks, though {what}"

    def _found(self) -> Iterator[tuple[Place, Plan]]:
        for replica in self._world.replicas:
            if not _is_at_work(replica):
                continue
            deaf = self._is_deaf(replica)
            for controller, key, plan in replica.runner.overlooked():
                if not deaf or not all(isinstance(one, DELETIONS) for one in plan.actions):
                    yield (replica.name, controller, key), plan

    def _is_deaf(self, replica: Replica) -> bool:
        return self._world.clock.now() < self._world.program(replica.client.name).weather.deaf_until


def _is_at_work(replica: Replica) -> bool:
    return not replica.dead and not replica.process.stopped and replica.runner.synced.is_set()

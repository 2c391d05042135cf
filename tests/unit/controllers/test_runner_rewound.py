"""What a restored backup means to the controllers: nothing that they remember counts any more."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from msgspec.structs import replace

from jackfield.controllers.lead import Lead
from jackfield.controllers.runner import ALONE, Controller, Runner
from jackfield.controllers.store import Store
from jackfield.core import lead
from jackfield.model.meta import Object
from jackfield.model.names import NodeName, Seconds, Version
from jackfield.model.node import Node
from jackfield.model.plan import Plan
from jackfield.model.pod import Pod
from jackfield.ports import EVERYTHING, Change, Changed, Cluster, Retry, Rewound, Selection, Synced, World
from jackfield.sim import loop
from jackfield.sim.clock import running
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard
from unit.controllers.leading import Some


def numbered(name: str, version: int) -> Node:
    node = b.node(name)
    return replace(node, metadata=replace(node.metadata, resource_version=Version(str(version))))


class Restored:
    """A cluster that is put back to a backup a second after everything was told; all but watching is another's."""

    def __init__(self, other: Cluster, after: Callable[[], Exception]) -> None:
        self.read, self.create, self.write, self.delete = other.read, other.create, other.write, other.delete
        self._after = after
        self._told = [(numbered("kept", 90), numbered("lost", 100)), (numbered("kept", 40),)]

    async def watch(
        self, kind: type[Object], selection: Selection = EVERYTHING
    ) -> AsyncGenerator[Change, None]:
        del selection
        nodes = self._told.pop(0)
        for node in nodes:
            yield Changed(node)
        yield Synced(kind, frozenset(node.key for node in nodes))
        await running().sleep(Seconds(1.0))
        if self._told:
            raise self._after()
        await asyncio.Event().wait()


def versions(error: Callable[[], Exception], leads: Lead = ALONE) -> dict[str, str]:
    """Return what is known of the nodes, a while after the backup was restored."""
    found: dict[str, str] = {}

    async def scene() -> None:
        bench = Bench()
        store = Store(b.policy())
        world = World(Restored(bench.client, error), bench.clock)
        idle = Controller("idle", lambda *_: Plan(), lambda *_: (), lead.of_none)
        runner = Runner(world, store, (idle,), Heard(), leads)
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.wait(10)
        found.update(
            {
                name: node.metadata.resource_version
                for name in ("kept", "lost")
                if (node := store.node(NodeName(name)))
            }
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    loop.run(scene())
    return found


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (lambda: Rewound("from 100 to 50"), {"kept": "40"}),
        (lambda: Retry("the connection was lost"), {"kept": "90"}),
    ],
    ids=["restored", "only interrupted"],
)
def test_older_versions_count_only_after_the_world_went_back_in_time(
    error: Callable[[], Exception], known: dict[str, str]
) -> None:
    assert versions(error) == known


def test_whoever_leads_is_told_that_time_went_back() -> None:
    """Its Lease may not be there any more."""
    leads = Some()
    versions(lambda: Retry("the connection was lost"), leads)
    assert leads.doubts == 0
    versions(lambda: Rewound("from 100 to 50"), leads)
    assert leads.doubts == 1


class Lingering:
    """A cluster of which one watch hears once that time went back, and another takes its time to end."""

    def __init__(self, other: Cluster) -> None:
        self.read, self.create, self.write, self.delete = other.read, other.create, other.write, other.delete
        self._rewinds = 1

    async def watch(
        self, kind: type[Object], selection: Selection = EVERYTHING
    ) -> AsyncGenerator[Change, None]:
        del selection
        yield Synced(kind, frozenset())
        if kind is Node and self._rewinds:
            self._rewinds -= 1
            await running().sleep(Seconds(1.0))
            raise Rewound("from 100 to 50")
        try:
            await asyncio.Event().wait()
        finally:
            await running().sleep(Seconds(5.0))


def test_who_is_to_end_while_time_goes_back_ends() -> None:
    async def scene() -> None:
        bench = Bench()
        idle = Controller("idle", lambda *_: Plan(), lambda *_: (), lead.of_none)
        runner = Runner(
            World(Lingering(bench.client), bench.clock), Store(b.policy()), (idle,), Heard(), ALONE
        )
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING, Pod: EVERYTHING}))
        await bench.wait(3)
        task.cancel()
        await bench.wait(30)
        ended = task.cancelled()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ended

    loop.run(scene())

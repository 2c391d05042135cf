"""A manager is asked only while the fabric is surely ours for as long as the call may take effect."""

from contextlib import nullcontext
from typing import cast

import pytest
from msgspec.structs import replace

from jackfield.controllers.act import SENDING_SECONDS_MAX
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Seconds
from jackfield.model.plan import Attach, Detach
from jackfield.ports import Apply, Cluster, Merge, Retry
from jackfield.sim.fabric import Call, Fate, Verb
from jackfield.testing import builders as b
from unit.controllers.actions import BLIND, CR, WHY, P, order, version
from unit.controllers.bench import Bench, play
from unit.controllers.leading import Some

Asked = type[Attach] | type[Detach]
ASKED: list[Asked] = [Attach, Detach]
STATES: dict[Asked, ResourceState] = {Attach: ResourceState.ATTACHING, Detach: ResourceState.DETACHING}
SOON = Seconds(7.0)
"""How long a call to the manager of these tests may take."""
NO_IDS = replace(BLIND, call_timeout=SOON)


class Calls:
    """Remembers what arrives at the manager; a `sim.fabric.Faults` that harms nothing."""

    def __init__(self) -> None:
        self.made: list[Verb] = []

    def fate(self, call: Call) -> Fate:
        self.made.append(call.verb)
        return Fate()


async def asked(bench: Bench, kind: Asked, leader: Some, *, marked: bool) -> None:
    """Ask the manager under this lead."""
    bench.store.see(bench.manager.inventory())
    made = await bench.put(b.resource(state=STATES[kind], physical="0000"))
    bench.hands = replace(bench.hands, lead=leader)
    await bench.act(
        kind(phase=P, because=WHY, resource=CR, version=version(made), order=order(), mark_sent=marked)
    )


def again(kind: Asked, made: ComposableResource, bench: Bench, leader: Some) -> Attach | Detach:
    bench.hands = replace(bench.hands, lead=leader)
    return kind(phase=P, because=WHY, resource=CR, version=version(made), order=order())


async def unasked(bench: Bench, calls: Calls) -> bool:
    """Whether nothing was asked, nor noted as asked."""
    found = await bench.resource()
    return not calls.made and not found.sent[0]


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("traits", [Traits(), NO_IDS], ids=["with ids", "without ids"])
def test_a_manager_is_not_asked_when_another_replica_leads_its_fabric(kind: Asked, traits: Traits) -> None:
    calls = Calls()

    async def scene(bench: Bench) -> None:
        leader = Some(FabricName("rack-b"))
        with pytest.raises(Retry, match=r"^another replica leads fabric rack-a by now$"):
            await asked(bench, kind, leader, marked=not traits.knows_orders)
        assert await unasked(bench, calls)
        assert leader.needs == []

    play(scene, traits, faults=calls)


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("left", [0.0, 6.9, 7.0])
def test_a_manager_without_ids_is_not_asked_with_less_lease_left_than_the_call_may_take(
    kind: Asked, left: float
) -> None:
    """What is asked then could still take effect under the one who takes over (rule 18)."""

    calls = Calls()

    async def scene(bench: Bench) -> None:
        leader = Some(b.FABRIC, left=left)
        with pytest.raises(
            Retry, match=r"^less of our lease is left than the 7 s that a call to the manager"
        ):
            await asked(bench, kind, leader, marked=True)
        assert await unasked(bench, calls), "what is noted as sent is not asked again for long"
        assert leader.needs == [SOON]

    play(scene, NO_IDS, faults=calls)


@pytest.mark.parametrize("kind", ASKED)
def test_a_manager_without_ids_is_asked_with_enough_lease_left(kind: Asked) -> None:
    calls = Calls()

    async def scene(bench: Bench) -> None:
        leader = Some(b.FABRIC, left=7.1)
        await asked(bench, kind, leader, marked=True)
        assert not await unasked(bench, calls)
        assert leader.needs == []

    play(scene, NO_IDS, faults=calls)


@pytest.mark.parametrize("kind", ASKED)
def test_a_manager_with_ids_is_asked_as_long_as_we_lead_at_all(kind: Asked) -> None:
    calls = Calls()

    async def scene(bench: Bench) -> None:
        with pytest.raises(Retry, match="less of our lease is left than the 0 s"):
            await asked(bench, kind, Some(b.FABRIC, left=0.0), marked=False)
        assert await unasked(bench, calls)
        await bench.act(again(kind, await bench.resource(), bench, Some(b.FABRIC, left=0.1)))
        assert not await unasked(bench, calls)

    play(scene, Traits(call_timeout=SOON), faults=calls)


class Losing(Some):
    """Loses the fabric while the note is being written."""

    def left(self) -> Seconds:
        self.fabrics = ()
        return super().left()


@pytest.mark.parametrize("kind", ASKED)
def test_the_lead_is_looked_at_again_after_the_note_was_written(kind: Asked) -> None:
    calls = Calls()

    async def scene(bench: Bench) -> None:
        with pytest.raises(Retry, match="another replica leads fabric rack-a by now"):
            await asked(bench, kind, Losing(b.FABRIC), marked=True)
        assert (await bench.resource()).sent[0]
        assert calls.made == []

    play(scene, NO_IDS, faults=calls)


class SlowToAnswer:
    """An API that takes its time with every write."""

    def __init__(self, bench: Bench, seconds: float) -> None:
        self._bench = bench
        self._seconds = Seconds(seconds)

    async def write(self, patch: Merge | Apply) -> Object:
        written = await self._bench.client.write(patch)
        await self._bench.clock.sleep(self._seconds)
        return written


@pytest.mark.parametrize(
    ("seconds", "sent"), [(0.0, True), (SENDING_SECONDS_MAX, True), (SENDING_SECONDS_MAX + 0.1, False)]
)
@pytest.mark.parametrize("kind", ASKED)
def test_a_call_that_was_noted_too_long_ago_does_not_set_out(
    kind: Asked, seconds: float, *, sent: bool
) -> None:
    """Others count the time it may take from the note: what set out later could take effect when they repeat it."""
    calls = Calls()

    async def scene(bench: Bench) -> None:
        slow = cast("Cluster", SlowToAnswer(bench, seconds))
        bench.hands = replace(bench.hands, world=replace(bench.hands.world, cluster=slow))
        began = bench.clock.now()
        with nullcontext() if sent else pytest.raises(Retry, match="took so long to note"):
            await asked(bench, kind, Some(b.FABRIC), marked=True)
        assert bool(calls.made) is sent
        assert (await bench.resource()).sent[1] == began + SENDING_SECONDS_MAX

    play(scene, NO_IDS, faults=calls)

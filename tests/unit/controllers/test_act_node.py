"""Effects on a node, and what it says of itself, against the real embedded API."""

import pytest
from msgspec.structs import replace

from jackfield.model.composition import (
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.host import Facts
from jackfield.model.meta import Condition, condition, holds
from jackfield.model.names import (
    NodeName,
    Uid,
    rfc3339,
    seconds,
)
from jackfield.model.node import Node
from jackfield.model.plan import (
    AddNode,
    Hold,
    LetGo,
    RemoveCDI,
    Rescan,
    WriteCDI,
)
from jackfield.model.view import FactsChanged
from jackfield.ports import Conflict, Refused
from jackfield.testing import builders as b
from unit.controllers.actions import ANY, CLAIM, CR, D0, DEVICE, WHY, P, order, release, version, visible
from unit.controllers.bench import Bench, play

# --- the node


def test_a_rescan_is_looked_at() -> None:
    async def scene(bench: Bench) -> None:
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(10)
        assert bench.host.seen() == ()
        await bench.act(Rescan(phase=P, because=WHY, node=b.NODE, resource=CR))
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), ())
        assert len(bench.host.seen()) == 1
        assert bench.deltas == [FactsChanged(b.NODE)]

    play(scene)


def test_what_is_seen_is_a_condition_beside_others() -> None:
    async def scene(bench: Bench) -> None:
        old = Condition("Theirs", "True", "R", "m", rfc3339(b.NOW))
        made = await bench.put(b.resource(state=ResourceState.ATTACHING, conditions=(old,)))
        await bench.act(visible(version(made)))
        found = await bench.resource()
        assert found.status.device_id == "GPU-1"
        assert [one.type for one in found.status.conditions] == ["Theirs", VISIBLE]
        said = condition(found.status.conditions, VISIBLE)
        assert said is not None
        assert (said.status, said.reason, said.message) == ("True", VISIBLE, "seen as GPU-1")
        assert seconds(said.last_transition_time) == bench.clock.now()

    play(scene)


async def _seen_and_prepared(bench: Bench) -> ComposableResource:
    await bench.world.fabrics[b.FABRIC].attach(order())
    await bench.wait(10)
    await bench.host.rescan()
    await bench.act(
        WriteCDI(
            phase=P,
            because=WHY,
            claim=CLAIM,
            node=b.NODE,
            uid=Uid("u"),
            device=DEVICE,
            physical=D0,
            cdi="GPU-1",
        )
    )
    return await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))


def test_what_is_prepared_is_in_the_checkpoint_and_comes_out_again() -> None:
    async def scene(bench: Bench) -> None:
        await _seen_and_prepared(bench)
        (prepared,) = bench.host.prepared()
        assert (prepared.uid, prepared.claim, prepared.physical, prepared.device) == (
            "u",
            CLAIM,
            D0,
            str(DEVICE),
        )
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), (prepared,))
        await bench.act(RemoveCDI(phase=P, because=WHY, claim=CLAIM, node=b.NODE, uid=Uid("u")))
        assert bench.host.prepared() == ()
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), ())

    play(scene)


@pytest.mark.parametrize("force", [False, True])
def test_a_device_in_use_is_released_only_by_force(*, force: bool) -> None:
    async def scene(bench: Bench) -> None:
        made = await _seen_and_prepared(bench)
        if force:
            await bench.act(release(version(made), "0000", force=True))
        else:
            with pytest.raises(Refused, match="is prepared for default/c"):
                await bench.act(release(version(made), "0000"))
        assert (bench.host.seen() == ()) == force
        found = await bench.resource()
        assert holds(found.status.conditions, RELEASED) == force
        said = condition(found.status.conditions, RELEASED)
        assert said is not None
        assert force or said.message == "device 0000 is prepared for default/c"
        assert found.state is ResourceState.DETACHING
        known = bench.store.facts(b.NODE)
        assert known is not None
        assert known.seen == bench.host.seen()

    play(scene)


def test_who_holds_a_device_is_written_once() -> None:
    async def scene(bench: Bench) -> None:
        made = await _seen_and_prepared(bench)
        for _ in range(2):
            with pytest.raises(Refused):
                await bench.act(release(version(await bench.resource()), "0000"))
        first = version(await bench.resource())
        assert first != version(made)
        with pytest.raises(Refused):
            await bench.act(release(first, "0000"))
        assert version(await bench.resource()) == first

    play(scene)


def test_what_was_never_attached_is_released_without_asking_the_node() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING))
        await bench.act(release(version(made)))
        said = condition((await bench.resource()).status.conditions, RELEASED)
        assert said is not None
        assert (said.status, said.message) == ("True", "nobody has it")
        assert bench.store.facts(b.NODE) is None

    play(scene)


def test_the_holder_is_written_and_cleared() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource())
        await bench.act(Hold(phase=P, because=WHY, resource=CR, version=version(made), uid=Uid("u")))
        held = await bench.resource()
        assert held.holder == "u"
        await bench.act(LetGo(phase=P, because=WHY, resource=CR, version=version(held)))
        assert (await bench.resource()).holder == ""

    play(scene)


def test_a_node_is_ordered_by_its_object() -> None:
    async def scene(bench: Bench) -> None:
        new = Node(metadata=replace(b.node("big-1").metadata, uid=Uid(""), resource_version=ANY))
        await bench.act(AddNode(phase=P, because=WHY, node=new))
        assert bench.store.node(NodeName("big-1")) is not None
        with pytest.raises(Conflict):
            await bench.act(AddNode(phase=P, because=WHY, node=new))

    play(scene)

"""Orders to managers without ids: sent once, repeated, given up and let go only when all is quiet."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import attach, quiet
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Machine, Traits
from jackfield.model.names import NEVER, ModelName, NodeName, PhysicalID, Seconds, Version, rfc3339_micro
from jackfield.model.plan import Adopt, Attach, Detach, MarkState, Phase, Plan
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

POLICY = b.policy()
CALL = Seconds(180.0)
SLOTS = Traits(chooses_device=True, knows_orders=False, call_timeout=CALL)
NAMED = Traits(chooses_device=False, knows_orders=False, call_timeout=CALL)
SOON = Seconds(b.NOW + 1)
LONG_AGO = b.NOW - 1000


def sent(verb: str, ago: float) -> str:
    return f"{verb} {rfc3339_micro(Seconds(b.NOW - ago))}"


def slot(number: int = 0, **meta: object) -> ComposableResource:
    return b.resource(f"a100-{number}", state=ResourceState.ATTACHING, **meta)  # type: ignore[arg-type] # passed on


def leaving(**meta: object) -> ComposableResource:
    return b.resource("a100-0", state=ResourceState.DETACHING, **meta)  # type: ignore[arg-type] # passed on


def gpu(number: int, *, ours: bool = True, model: str = "A100", on: str = "n1") -> FabricDevice:
    return FabricDevice(
        PhysicalID(f"p{number}"), ModelName(model), serial=f"s{number}", node=NodeName(on), ours=ours
    )


class Row(NamedTuple):
    """What there is, and what is to come of it."""

    there: tuple[ComposableResource, ...]
    attached: tuple[FabricDevice, ...] = ()
    do: tuple[str, ...] = ()
    says: str = ""
    again_at: Seconds = NEVER
    since: float = LONG_AGO
    """When anything last came to the node or left it."""
    traits: Traits = SLOTS
    asked: float = b.NOW
    """When the manager was asked for what it shows."""


def view(row: Row) -> Store:
    machines = (Machine(NodeName("n1"), since=Seconds(row.since)), Machine(NodeName("n2")))
    shown = b.inventory(models={"A100": 2}, machines=machines, traits=row.traits)
    return b.world(b.node(), *row.there, inventories=(b.showing(shown, *row.attached),), looked=row.asked)


def decided(row: Row, name: str = "a100-0.rack-a") -> Plan:
    there = view(row)
    resource = there.resource(name)
    assert resource is not None
    order = attach.order(resource, POLICY, there)
    if resource.state is ResourceState.ATTACHING:
        return quiet.attach(there, resource, order, POLICY, b.NOW)
    return quiet.detach(there, resource, order, POLICY, b.NOW)


ATTACH = "Attach A100 at n1 resource/a100-0.rack-a"
GONE = "MarkState Deleting resource/a100-0.rack-a"

ATTACHES = {
    "the first call is sent": Row((slot(),), do=(ATTACH,), says="n1 should have it", again_at=SOON),
    "the first call is sent though another was, for another slot": Row(
        (slot(), slot(1, sent=sent("attach", 9))), do=(ATTACH,), again_at=SOON
    ),
    "a call is not repeated while it may take effect": Row(
        (slot(sent=sent("attach", 9)),), says="asked again only when quiet", again_at=SOON
    ),
    "nor just before its time is over": Row(
        (slot(sent=sent("attach", 179.5)),), says="only when quiet", again_at=SOON
    ),
    "nor on an inventory that was asked for before that": Row(
        (slot(sent=sent("attach", 900)),), says="only when quiet", again_at=SOON, asked=b.NOW - 721
    ),
    "a call is repeated when all is quiet": Row(
        (slot(sent=sent("attach", 180)),), do=(ATTACH,), says="all is quiet and nothing came", again_at=SOON
    ),
    "a call for another slot of the node is not quiet": Row(
        (slot(sent=sent("attach", 900)), slot(1, sent=sent("detach", 9))),
        says="only when quiet",
        again_at=SOON,
    ),
    "a call for another model is": Row(
        (
            slot(sent=sent("attach", 900)),
            b.resource("t4-1", model="T4", state=ResourceState.ATTACHING, sent=sent("attach", 9)),
        ),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "a call for another node is": Row(
        (slot(sent=sent("attach", 900)), b.resource("a100-1", on="n2", sent=sent("attach", 9))),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "a node where something just came is not quiet": Row(
        (slot(sent=sent("attach", 900)),), says="only when quiet", since=b.NOW - 179, again_at=SOON
    ),
    "what stands unclaimed is this slot's, whatever waits for another model or does not wait": Row(
        (
            slot(5),
            b.resource("a0-1", model="A0", state=ResourceState.ATTACHING),
            b.resource("a100-1", state=ResourceState.DETACHING),
        ),
        (gpu(1),),
        do=("Adopt p1 resource/a100-5.rack-a",),
    ),
    "what stands unclaimed fills the slot before anything is sent": Row(
        (slot(),), (gpu(1),), do=("Adopt p1 resource/a100-0.rack-a",), says="p1 stands unclaimed on n1"
    ),
    "and before anything is repeated": Row(
        (slot(sent=sent("attach", 900)),), (gpu(1),), do=("Adopt p1 resource/a100-0.rack-a",)
    ),
    "what is another's is left alone": Row((slot(),), (gpu(1, ours=False),), do=(ATTACH,), again_at=SOON),
    "what is of another model is left alone": Row(
        (slot(),), (gpu(1, model="T4"),), do=(ATTACH,), again_at=SOON
    ),
    "what is on another node is left alone": Row((slot(),), (gpu(1, on="n2"),), do=(ATTACH,), again_at=SOON),
    "what another slot has is left alone": Row(
        (slot(), b.resource("a100-5", physical="p1")), (gpu(1),), do=(ATTACH,), again_at=SOON
    ),
    "what leaves is left alone": Row(
        (slot(), b.resource("a100-5", physical="p1", state=ResourceState.DETACHING)),
        (gpu(1),),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "where one can choose, only the very device is taken": Row(
        (b.resource("a100-p2", state=ResourceState.ATTACHING, sent=sent("attach", 9)),),
        (gpu(1), gpu(2)),
        do=("Adopt p2 resource/a100-p2.rack-a",),
        traits=NAMED,
    ),
    "where one can choose, another device is not taken for it": Row(
        (b.resource("a100-p2", state=ResourceState.ATTACHING, sent=sent("attach", 9)),),
        (gpu(1), gpu(2, on="")),
        says="only when quiet",
        again_at=SOON,
        traits=NAMED,
    ),
}

DETACHES = {
    "the first call is sent": Row(
        (leaving(physical="p1"),),
        (gpu(1),),
        do=("Detach p1 at n1 resource/a100-0.rack-a",),
        says="released",
        again_at=SOON,
    ),
    "a call is not repeated while it may take effect": Row(
        (leaving(physical="p1", sent=sent("detach", 9)),),
        (gpu(1),),
        says="the manager to take it back",
        again_at=SOON,
    ),
    "nor just before its time is over": Row(
        (leaving(physical="p1", sent=sent("detach", 179.5)),),
        (gpu(1),),
        says="take it back",
        again_at=SOON,
    ),
    "nor on an inventory that was asked for before that": Row(
        (leaving(physical="p1", sent=sent("detach", 900)),),
        (gpu(1),),
        says="take it back",
        again_at=SOON,
        asked=b.NOW - 721,
    ),
    "a call is repeated when all is quiet": Row(
        (leaving(physical="p1", sent=sent("detach", 180)),),
        (gpu(1),),
        do=("Detach p1 at n1 resource/a100-0.rack-a",),
        says="all is quiet and it is still there",
        again_at=SOON,
    ),
    "a device that is gone is let go only when quiet": Row(
        (leaving(physical="p1", sent=sent("detach", 9)),),
        says="quiet about it",
        again_at=Seconds(b.NOW + 171),
    ),
    "a device that is gone is not let go on an inventory from before": Row(
        (leaving(physical="p1", sent=sent("detach", 900)),),
        says="quiet about it",
        again_at=SOON,
        asked=b.NOW - 721,
    ),
    "a device that is gone is let go when quiet": Row(
        (leaving(physical="p1", sent=sent("detach", 180)),), do=(GONE,), says="gone and all is quiet"
    ),
    "a device that has just gone is not quiet": Row(
        (leaving(physical="p1", sent=sent("detach", 900)),),
        says="quiet about it",
        since=b.NOW - 5,
        again_at=Seconds(b.NOW + 175),
    ),
    "a device that an answer named and nothing shows is asked back": Row(
        (leaving(physical="p1", sent=sent("attach", 9)),),
        do=("Detach p1 at n1 resource/a100-0.rack-a",),
        says="released",
        again_at=SOON,
    ),
    "a device that an answer named and nothing has shown until all is quiet is gone": Row(
        (leaving(physical="p1", sent=sent("attach", 180)),), do=(GONE,)
    ),
    "a device that nothing has shown for long is gone": Row((leaving(physical="p1"),), do=(GONE,)),
    "a device that is on another node is gone from this one": Row(
        (leaving(physical="p1", sent=sent("detach", 900)),), (gpu(1, on="n2"),), do=(GONE,)
    ),
    "what somebody else attached left, and an order of ours brought it back": Row(
        (leaving(physical="p1", foreign="p1", sent=sent("detach", 900)),), (gpu(1),), do=(GONE,)
    ),
    "likewise, while a call to detach it may still take effect": Row(
        (leaving(physical="p1", foreign="p1", sent=sent("detach", 9)),),
        (gpu(1),),
        says="quiet about it",
        again_at=Seconds(b.NOW + 171),
    ),
    "what somebody else attached is still there": Row(
        (leaving(physical="p1", foreign="p1", sent=sent("detach", 900)),),
        (gpu(1, ours=False),),
        do=("Detach p1 at n1 resource/a100-0.rack-a",),
        again_at=SOON,
    ),
    "nothing was ever sent": Row((leaving(),), do=(GONE,), since=b.NOW - 5),
    "something was sent and nothing came: only when quiet": Row(
        (leaving(sent=sent("attach", 9)),), says="quiet about it", again_at=Seconds(b.NOW + 171)
    ),
    "something was sent and nothing came": Row((leaving(sent=sent("attach", 180)),), do=(GONE,)),
}


@pytest.mark.parametrize(
    "row", [*ATTACHES.values(), *DETACHES.values()], ids=[*ATTACHES, *(f"detach: {one}" for one in DETACHES)]
)
def test_a_manager_without_ids(row: Row) -> None:
    plan = decided(row, row.there[0].metadata.name)
    assert steps(plan) == row.do
    assert reasons(plan) == (() if row.do else ("Quiet",))
    assert row.says in words(plan)
    assert plan.again_at == row.again_at


def test_two_slots_never_take_the_same_device() -> None:
    row = Row((slot(0, sent=sent("attach", 9)), slot(1, sent=sent("attach", 9)), slot(2)), (gpu(1), gpu(2)))
    taken = [steps(decided(row, f"a100-{number}.rack-a")) for number in range(3)]
    assert taken == [
        ("Adopt p1 resource/a100-0.rack-a",),
        ("Adopt p2 resource/a100-1.rack-a",),
        ("Attach A100 at n1 resource/a100-2.rack-a",),
    ]


def test_a_slot_that_has_its_device_takes_no_other() -> None:
    row = Row((slot(0, physical="p1"), slot(1, sent=sent("attach", 9))), (gpu(1), gpu(2)))
    assert steps(decided(row, "a100-1.rack-a")) == ("Adopt p2 resource/a100-1.rack-a",)


@pytest.mark.parametrize(
    ("found", "attached", "do", "again_at"),
    [
        (slot(physical="p1", sent=sent("attach", 9)), (gpu(1),), None, None),
        (slot(), (), None, None),
        (slot(), (gpu(1),), ("Adopt p1 resource/a100-0.rack-a",), NEVER),
        (slot(sent=sent("attach", 9)), (gpu(1),), ("Adopt p1 resource/a100-0.rack-a",), NEVER),
        (slot(sent=sent("attach", 9)), (), (), Seconds(b.NOW + 171)),
        (slot(sent=sent("attach", 180)), (), None, None),
    ],
)
def test_an_attach_is_given_up_with_its_device_or_when_none_will_come(
    found: ComposableResource,
    attached: tuple[FabricDevice, ...],
    do: tuple[str, ...] | None,
    again_at: Seconds | None,
) -> None:
    there = view(Row((found,), attached))
    resource = there.resource("a100-0.rack-a")
    assert resource is not None
    plan = quiet.unsettled(there, resource, attach.order(resource, POLICY, there), POLICY, b.NOW)
    assert (steps(plan) if plan is not None else None, plan.again_at if plan is not None else None) == (
        do,
        again_at,
    )


def test_an_attach_that_was_never_sent_is_given_up_at_once() -> None:
    there = view(Row((slot(),), since=b.NOW - 5))
    resource = there.resource("a100-0.rack-a")
    assert resource is not None
    assert quiet.unsettled(there, resource, attach.order(resource, POLICY, there), POLICY, b.NOW) is None


def test_a_machine_that_nobody_knows_has_been_quiet() -> None:
    there = b.world(
        b.node(), slot(sent=sent("attach", 180)), inventories=(b.inventory(traits=SLOTS, machines=()),)
    )
    resource = there.resource("a100-0.rack-a")
    assert resource is not None
    plan = quiet.attach(there, resource, attach.order(resource, POLICY, there), POLICY, b.NOW)
    assert steps(plan) == (ATTACH,)


def test_what_is_asked_carries_the_version_and_is_marked_first() -> None:
    (send,) = decided(Row((slot(version="7"),))).actions
    assert isinstance(send, Attach)
    assert (send.phase, send.version, send.mark_sent) == (Phase.ATTACHING, "7", True)
    (back,) = decided(Row((leaving(physical="p1", version="8"),), (gpu(1),))).actions
    assert isinstance(back, Detach)
    assert (back.phase, back.version, back.mark_sent) == (Phase.DETACHED, "8", True)


def test_a_call_that_is_repeated_is_another_order() -> None:
    """What the first one brought may be another's by now; an adapter that remembers it would answer it for ever."""
    ids = []
    for mark in ("", sent("attach", 180), sent("attach", 400)):
        (send,) = decided(Row((slot(sent=mark),))).actions
        (same,) = decided(Row((slot(sent=mark),))).actions
        assert isinstance(send, Attach)
        assert isinstance(same, Attach)
        assert send.order == same.order, "the same view gives the same order"
        assert send.ask == bool(mark), "what the first one brought may stand there, in books that are gone"
        ids.append(send.order.id)
    assert len(set(ids)) == len(ids)


def test_what_is_taken_or_let_go_carries_the_version() -> None:
    (taken,) = decided(Row((slot(version="7"),), (gpu(1),))).actions
    assert taken == Adopt(
        phase=Phase.ATTACHING,
        resource="a100-0.rack-a",
        version=Version("7"),
        device=PhysicalID("p1"),
        serial="s1",
        because="p1 stands unclaimed on n1",
    )
    (gone,) = decided(Row((leaving(version="8"),))).actions
    assert gone == MarkState(
        phase=Phase.DETACHED,
        resource="a100-0.rack-a",
        version=Version("8"),
        state=ResourceState.DELETING,
        because="its device is gone and all is quiet",
    )


def test_whoever_has_not_seen_the_inventory_has_not_begun_to_count() -> None:
    resource = slot(sent=sent("attach", 9999))
    there = b.world(b.node(), resource)
    order = attach.order(replace(resource, status=resource.status), POLICY, there)
    plan = quiet.attach(there, resource, order, POLICY, b.NOW)
    assert (plan.actions, plan.again_at) == ((), SOON)


def test_an_attach_is_not_given_up_on_an_inventory_from_before() -> None:
    there = view(Row((slot(sent=sent("attach", 900)),), asked=b.NOW - 721))
    resource = there.resource("a100-0.rack-a")
    assert resource is not None
    plan = quiet.unsettled(there, resource, attach.order(resource, POLICY, there), POLICY, b.NOW)
    assert plan is not None
    assert words(plan) == "the manager to be quiet about it"
    assert plan.again_at == SOON


SERIAL = replace(SLOTS, jobs=1)
TURNS = {
    "the first by name goes first": Row((slot(0), slot(1)), do=("a100-0",)),
    "what is under way is waited for": Row((slot(0), slot(1, sent=sent("attach", 9)))),
    "what has come is not": Row((slot(0), slot(1, sent=sent("attach", 9), physical="p1")), do=("a100-0",)),
    "nor what has failed": Row((slot(0), slot(1, sent=sent("attach", 9), error="no")), do=("a100-0",)),
    "nor what will not come any more": Row(
        (slot(0, sent=sent("attach", 180)), slot(1)), do=("a100-1",), since=b.NOW - 9
    ),
    "what may be asked again goes first as well": Row(
        (slot(0, sent=sent("attach", 180)), slot(1)), do=("a100-0",)
    ),
    "a detach takes the manager's time too": Row(
        (leaving(physical="p9", sent=sent("detach", 9)), slot(1)), (gpu(9),)
    ),
    "until its device has gone": Row(
        (leaving(physical="p9", sent=sent("detach", 9)), slot(1)), do=("a100-1",)
    ),
    "what nobody has asked for yet takes no time": Row(
        (leaving(physical="p9", sent=sent("attach", 9)), slot(1)), (gpu(9),), do=("a100-1",)
    ),
    "who waits for something else lets others go first": Row(
        (slot(0, on="n0"), slot(1)), (gpu(9, on="n0", ours=False),), do=("a100-1",)
    ),
    "a manager that does two at a time is asked for two": Row(
        (slot(0), slot(1), slot(2)), do=("a100-0", "a100-1"), traits=replace(SLOTS, jobs=2)
    ),
}


@pytest.mark.parametrize("row", TURNS.values(), ids=TURNS)
def test_a_manager_is_not_asked_for_more_than_it_does_at_a_time(row: Row) -> None:
    """A call that queues there runs out of its time, and what it was to bring would be blamed for it."""
    traits = SERIAL if row.traits is SLOTS else row.traits
    machines = (Machine(NodeName("n0"), 1), Machine(NodeName("n1"), since=Seconds(row.since)))
    shown = b.showing(b.inventory(models={"A100": 2}, machines=machines, traits=traits), *row.attached)
    there = b.world(b.node(), b.node("n0"), *row.there, inventories=(shown,), looked=row.asked)
    asked = []
    for one in row.there:
        plan = attach.decide(there, one.metadata.name, POLICY, b.NOW)
        name = one.metadata.name.removesuffix(".rack-a")
        asked += [name for action in plan.actions if isinstance(action, Attach)]
        if reasons(plan) == ("Turn",):
            assert (words(plan), plan.again_at) == (
                "the fabric manager to have done what it was asked before",
                SOON,
            )
    assert tuple(asked) == row.do


def test_who_never_had_its_turn_is_not_to_blame() -> None:
    late = Seconds(b.NOW + 200)
    for mark, blamed in (("", False), (sent("attach", 0), True)):
        there = view(Row((slot(sent=mark),), asked=late))
        steps_ = steps(attach.decide(there, "a100-0.rack-a", POLICY, late))
        assert ("Blame node/n1" in steps_) is blamed
        assert "MarkState Detaching resource/a100-0.rack-a" in steps_


@pytest.mark.parametrize(
    ("found", "quiet_at"),
    [
        (slot(sent=sent("attach", 180)), b.NOW - 4 + CALL),
        (leaving(physical="p1", sent=sent("detach", 180)), b.NOW - 4 + CALL),
        (b.resource("a100-0", physical="p1", sent=sent("attach", 180)), b.NOW),
        (slot(), LONG_AGO + CALL),
    ],
    ids=["attaching", "detaching", "long there", "never sent"],
)
def test_a_new_leader_counts_anew_what_others_have_sent(found: ComposableResource, quiet_at: float) -> None:
    """By its own clock, which may be ahead of theirs: then all that they did would look old."""
    there = view(Row(()))
    there.clock = lambda: Seconds(b.NOW - 4)
    there.put(replace(found, metadata=replace(found.metadata, resource_version=Version("9"))))
    resource = there.resource("a100-0.rack-a")
    assert resource is not None
    waiting = slot(9, sent=sent("attach", 1000))
    there.clock = lambda: Seconds(LONG_AGO)
    there.put(replace(waiting, metadata=replace(waiting.metadata, resource_version=Version("10"))))
    waits = there.resource("a100-9.rack-a")
    assert waits is not None
    for now, due in ((quiet_at - 1, False), (quiet_at, True)):
        there.ask(b.FABRIC, Seconds(now))
        known = there.inventory(b.FABRIC)
        assert known is not None
        there.see(known, at=Seconds(now))
        assert quiet.due(there, waits, b.FABRIC) is due

"""What a node writes so that a claim's devices are prepared, and every reason not to (rules 10 and 11)."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import prepare
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, Record, ResourceState
from jackfield.model.host import Facts, Prepared, Seen
from jackfield.model.meta import Object
from jackfield.model.names import Key, PhysicalID, Uid, Version
from jackfield.model.plan import Hold, LetGo, Phase, PrepareKey, RemoveCDI, WriteCDI
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

KEY = Key("default", "c")
ASKED = PrepareKey(b.NODE, KEY, Uid("u"))
CLAIM = b.claim("c", uid="u", version="9")
ONE, TWO = (Seen(PhysicalID(number), f"GPU-{number}") for number in "12")
SERIAL, TWIN = (Seen(PhysicalID(one), one, one, "", "77777-1") for one in ("GPU-3", "GPU-4"))
HOLD, HOLD_2 = "Hold resource/a100-1.rack-a", "Hold resource/a100-2.rack-a"
WRITE = "WriteCDI claim/default/c"
ON_RACK_B = b.resource(b.device("a100-2", fabric="rack-b"), physical="1", state=ResourceState.DETACHING)


def recorded(uid: str = "u") -> Record:
    return Record(KEY, Uid(uid), Version("9"))


def online(name: str = "a100-1", **meta: object) -> ComposableResource:
    given = {"record": recorded(), "physical": "1", "uuid": "GPU-1"} | meta
    return b.resource(name, **given)  # type: ignore[arg-type] # passed on


def prepared(uid: str = "u", physical: str = "1", device: str = "a100-1") -> Prepared:
    return Prepared(Uid(uid), Key("default", f"of-{uid}"), PhysicalID(physical), str(b.device(device)))


class Row(NamedTuple):
    """What there is, and what is to come of it."""

    claim: ResourceClaim | None = CLAIM
    resources: tuple[ComposableResource, ...] = (online(),)
    facts: Facts | None = Facts((ONE, TWO))
    do: tuple[str, ...] = ()
    says: str = ""


PREPARES = {
    "holder first, then the files": Row(do=(HOLD, WRITE)),
    "all holders before any file": Row(
        b.claim("c", uid="u", devices=("a100-1", "a100-2")),
        (online(), online("a100-2", physical="2")),
        do=(HOLD, HOLD_2, WRITE, WRITE),
    ),
    "held and not written: the resource is asked again before": Row(
        resources=(online(holder="u"),), do=(HOLD, WRITE)
    ),
    "written and not held: the holder is repaired": Row(facts=Facts((ONE,), (prepared(),)), do=(HOLD,)),
    "written and held": Row(resources=(online(holder="u"),), facts=Facts((ONE,), (prepared(),))),
    "one of two is left": Row(
        b.claim("c", uid="u", devices=("a100-1", "a100-2")),
        (online(holder="u"), online("a100-2", physical="2")),
        Facts((ONE, TWO), (prepared(),)),
        do=(HOLD_2, WRITE),
    ),
    "another claim's device beside it": Row(
        facts=Facts((ONE, TWO), (prepared("v", "2", "a100-2"),)), do=(HOLD, WRITE)
    ),
    "admin access needs no preparing": Row(b.claim("c", uid="u", admin=True), ()),
    "another driver's device": Row(b.claim("c", uid="u", devices=("gpu.example.com/n1/gpu-0",)), ()),
    "deleted, but still online and recorded": Row(resources=(online(deleted=b.NOW),), do=(HOLD, WRITE)),
    "another with the same device is not to be returned": Row(
        resources=(online(), online("a100-2", physical="1", record=None)), do=(HOLD, WRITE)
    ),
    "another with the same device cannot be returned, since a claim is to have it": Row(
        resources=(online(), online("a100-2", physical="1", record=recorded("v"), deleted=b.NOW)),
        do=(HOLD, WRITE),
    ),
    "another of the same name on another fabric is being returned": Row(
        resources=(online(), ON_RACK_B),
        do=(HOLD, WRITE),
    ),
    "another on another node is being returned": Row(
        resources=(online(), online("a100-2", physical="1", on="n2", state=ResourceState.DETACHING)),
        do=(HOLD, WRITE),
    ),
    "another is being returned, and it was prepared before": Row(
        resources=(online(holder="u"), online("a100-2", physical="1", state=ResourceState.DETACHING)),
        facts=Facts((ONE,), (prepared(),)),
    ),
}

SAME = {"physical": "1", "record": None}  # it came by an order of which who is to have it knows nothing

REFUSALS = {
    "another with the same device is to be returned": Row(
        resources=(online(), online("a100-2", **SAME, deleted=b.NOW)),
        says="a100-2.rack-a, which has the same device, to be returned",
    ),
    "another with the same device is being returned": Row(
        resources=(online(), online("a100-2", **SAME, state=ResourceState.DETACHING)),
        says="a100-2.rack-a, which has the same device, to be returned",
    ),
    "two devices go by its name": Row(
        resources=(online(physical="77777-1", uuid=""),),
        facts=Facts((SERIAL, TWIN)),
        says="go by that name alike",
    ),
    "prepared under the node's own name for it": Row(
        facts=Facts(
            (ONE,), (Prepared(Uid("v"), Key("default", "of-v"), PhysicalID("x"), "a/b/c", ONE.physical),)
        ),
        says="a100-1 to be unprepared for claim default/of-v",
    ),
    "no plugin": Row(facts=None, says="the plugin on n1"),
    "no claim": Row(None, says="the claim the pod was bound with"),
    "a claim of that name, but another": Row(b.claim("c", uid="v"), says="another of its name exists"),
    "allocated to another node": Row(b.claim("c", uid="u", on="n2"), says="an allocation to n1; it is to n2"),
    "not allocated": Row(b.claim("c", uid="u", devices=()), says="it is to no node"),
    "no resource": Row(resources=(), says="a100-1 to be online on n1"),
    "a resource on another node": Row(resources=(online(on="n2"),), says="to be online on n1"),
    "attaching": Row(resources=(online(state=ResourceState.ATTACHING),), says="to be online on n1"),
    "detaching": Row(resources=(online(state=ResourceState.DETACHING),), says="to be online on n1"),
    "not recorded": Row(resources=(online(record=None),), says="a100-1 to be recorded for this claim"),
    "recorded for another": Row(
        resources=(online(record=recorded("v")),), says="to be recorded for this claim"
    ),
    "held by another": Row(resources=(online(holder="v"),), says="a100-1 to be unprepared for another claim"),
    "not seen": Row(facts=Facts((TWO,)), do=("Rescan resource/a100-1.rack-a",), says="1 to be seen on n1"),
    "prepared for another": Row(
        facts=Facts((ONE,), (prepared("v"),)), says="a100-1 to be unprepared for claim default/of-v"
    ),
    "another device prepared for it": Row(
        facts=Facts((ONE, TWO), (prepared("u", "2", "a100-2"),)), says="a100-2, which this claim had before"
    ),
    "the same slot with another device behind it": Row(
        facts=Facts((ONE, TWO), (prepared("u", "2", "a100-1"),)), says="a100-1, which this claim had before"
    ),
    "one of two cannot be prepared, so none is": Row(
        b.claim("c", uid="u", devices=("a100-1", "a100-2")), says="a100-2 to be online on n1"
    ),
}


@pytest.mark.parametrize("row", [*PREPARES.values(), *REFUSALS.values()], ids=[*PREPARES, *REFUSALS])
def test_what_is_written_so_that_a_claim_is_prepared(row: Row) -> None:
    objects: tuple[Object, ...] = row.resources if row.claim is None else (row.claim, *row.resources)
    there = b.world(*objects, facts={"n1": row.facts} if row.facts is not None else {})
    plan = prepare.decide(there, ASKED, b.policy(), b.NOW)
    assert steps(plan) == row.do
    assert reasons(plan) == (("Preparing",) if row.says else ())
    assert row.says in words(plan)


def test_the_holder_is_written_by_version_and_the_files_name_the_device_as_the_node_knows_it() -> None:
    there = b.world(CLAIM, online(version="7"), facts={"n1": Facts((ONE,))})
    assert prepare.decide(there, ASKED, b.policy(), b.NOW).actions == (
        Hold(
            phase=Phase.PREPARED,
            claim=KEY,
            resource="a100-1.rack-a",
            version=Version("7"),
            uid=Uid("u"),
            because="the holder is written before anything is prepared",
        ),
        WriteCDI(
            phase=Phase.PREPARED,
            claim=KEY,
            node=b.NODE,
            uid=Uid("u"),
            device=b.device("a100-1"),
            physical=PhysicalID("1"),
            cdi="GPU-1",
            seen=PhysicalID("1"),
            requests=("gpu",),
            because="a pod of claim default/c starts on n1",
        ),
    )


REMOVE, LET_GO = "RemoveCDI claim/default/c", "LetGo resource/a100-1.rack-a"


@pytest.mark.parametrize(
    ("there", "facts", "do"),
    [
        ((CLAIM, online(holder="u")), Facts((ONE,), (prepared(),)), (REMOVE,)),
        ((CLAIM, online(holder="u")), Facts((ONE,)), (LET_GO,)),
        ((online(holder="u"),), Facts((ONE,)), (LET_GO,)),
        ((online(holder="u"),), None, (LET_GO,)),
        (
            (online(holder="u"), online("a100-2", holder="u")),
            Facts(),
            (LET_GO, "LetGo resource/a100-2.rack-a"),
        ),
        ((online(holder="v"),), Facts((ONE,), (prepared("v"),)), ()),
        ((online(holder="u", on="n2"),), Facts(), ()),
        ((), Facts(), ()),
    ],
    ids=[
        "files first",
        "then the holder",
        "the claim is gone",
        "the plugin has seen nothing",
        "of all devices",
        "another's",
        "another node's",
        "nothing left",
    ],
)
def test_what_is_undone_when_a_pod_has_ended(
    there: tuple[Object, ...], facts: Facts | None, do: tuple[str, ...]
) -> None:
    view = b.world(*there, facts={"n1": facts} if facts is not None else {})
    assert steps(prepare.decide_unprepare(view, ASKED, b.policy(), b.NOW)) == do


def test_what_is_undone_names_the_claim_the_node_and_the_version() -> None:
    held = online(holder="u", version="7")
    full = b.world(held, facts={"n1": Facts((), (prepared(),))})
    empty = b.world(held, facts={"n1": Facts()})
    assert prepare.decide_unprepare(full, ASKED, b.policy(), b.NOW).actions == (
        RemoveCDI(phase=Phase.RELEASED, claim=KEY, node=b.NODE, uid=Uid("u"), because="its pod has ended"),
    )
    assert prepare.decide_unprepare(empty, ASKED, b.policy(), b.NOW).actions == (
        LetGo(
            phase=Phase.RELEASED,
            claim=KEY,
            resource="a100-1.rack-a",
            version=Version("7"),
            because="nothing is prepared for it any more",
        ),
    )


# --- after a restart


class Found(NamedTuple):
    """What a plugin finds when it starts, and what it writes."""

    resources: tuple[ComposableResource, ...]
    facts: Facts | None = Facts((ONE,))
    claim: ResourceClaim | None = CLAIM
    strays: tuple[Uid, ...] = ()
    do: tuple[str, ...] = ()
    says: str = ""


LETS_GO = "LetGo resource/a100-1.rack-a"
ELSEWHERE = b.claim("c", uid="u", on="n2")
OF_U = Prepared(Uid("u"), KEY, PhysicalID("1"), str(b.device("a100-1")))

RESTARTS = {
    "nothing is prepared and nothing held": Found((online(),)),
    "all is as it should be": Found((online(holder="u"),), Facts((ONE,), (OF_U,))),
    "prepared and not held": Found(
        (online(),), Facts((ONE,), (OF_U,)), do=(HOLD,), says="no holder is written"
    ),
    "prepared, and a restored backup knows nothing of it": Found(
        (online(record=None),), Facts((ONE,), (OF_U,))
    ),
    "prepared, and a restored backup has it recorded for another": Found(
        (online(record=b.claim("d", uid="v")),), Facts((ONE,), (OF_U,))
    ),
    "prepared, and held by another": Found(
        (online(holder="v"),), Facts((ONE,), (OF_U,)), says="claim default/c to be unprepared; v is written"
    ),
    "prepared, and another device is behind the name by now": Found(
        (online(physical="2"),), Facts((ONE,), (OF_U,))
    ),
    "prepared, and the device is on another node by now": Found((online(on="n2"),), Facts((ONE,), (OF_U,))),
    "prepared, and its resource is gone": Found((), Facts((ONE,), (OF_U,))),
    "prepared, of another pool": Found((online(),), Facts((ONE,), (replace(OF_U, device="x"),))),
    "held by a claim that is still to be served": Found((online(holder="u"),)),
    "held by a claim that is gone": Found((online(holder="u"),), claim=None, do=(LETS_GO,)),
    "held by a claim that another has followed": Found(
        (online(holder="u"),), claim=b.claim("c", uid="w"), do=(LETS_GO,)
    ),
    "held by a claim that has a device elsewhere": Found(
        (online(holder="u"),), claim=ELSEWHERE, do=(LETS_GO,), says="has ended, and nothing is prepared"
    ),
    "held by a claim that has another device here": Found(
        (online(holder="u"),), claim=b.claim("c", uid="u", devices=("a100-2",)), do=(LETS_GO,)
    ),
    "held by a claim that is gone, of which a damaged checkpoint left a file": Found(
        (online(holder="u"),), claim=None, strays=(Uid("v"), Uid("u"))
    ),
    "held by a claim that is gone, and a damaged checkpoint left a file of another": Found(
        (online(holder="u"),), claim=None, strays=(Uid("v"),), do=(LETS_GO,)
    ),
    "held by somebody whom no record names": Found((online(holder="v"),), claim=None),
    "held without a record": Found((online(holder="u", record=None),), claim=None),
    "no plugin": Found((online(holder="u"),), facts=None),
}


@pytest.mark.parametrize("found", RESTARTS.values(), ids=RESTARTS)
def test_what_a_plugin_repairs_when_it_starts(found: Found) -> None:
    objects: tuple[Object, ...] = found.resources if found.claim is None else (found.claim, *found.resources)
    there = b.world(*objects, facts={"n1": found.facts} if found.facts is not None else {})
    plan = prepare.decide_repair(there, b.NODE, found.strays)
    assert steps(plan) == found.do
    assert found.says in words(plan)
    assert (reasons(plan) == ("HeldTwice",)) == ("is written" in found.says and not found.do)


def test_the_claims_of_holders_are_those_to_be_read() -> None:
    there = b.world(online(holder="u"), online("a100-2", holder="v", record=None), online("a100-3"))
    assert prepare.holders(there, b.NODE) == (KEY,)


@pytest.mark.parametrize(
    ("seen", "lost"),
    [
        (Seen(PhysicalID("GPU-1"), "GPU-1", "0000:10:00.0"), False),
        (Seen(PhysicalID("77777-1"), "77777-1", "0000:10:00.0", "GPU-1", "77777-1"), False),
        (Seen(PhysicalID("GPU-2"), "GPU-2", "0000:11:00.0"), True),
    ],
)
def test_what_is_prepared_and_goes_by_no_name_any_more_is_out_of_sight(seen: Seen, *, lost: bool) -> None:
    mine = Prepared(Uid("u"), Key("default", "c"), PhysicalID("block-7"), "d/p/a", PhysicalID("GPU-1"))
    unnamed = Prepared(Uid("v"), Key("default", "c"), PhysicalID("block-8"), "d/p/b")
    assert prepare.out_of_sight(Facts((seen,), (mine, unnamed))) == ((mine,) if lost else ())

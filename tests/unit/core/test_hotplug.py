"""What a node does about a resource that is for it: look, report, release."""

from typing import NamedTuple

import pytest

from jackfield.core import hotplug
from jackfield.model.composition import RELEASED, VISIBLE, ComposableResource, ResourceState
from jackfield.model.host import Facts, Identity, Prepared, Seen
from jackfield.model.meta import Condition
from jackfield.model.names import NEVER, Key, NodeName, PhysicalID, Seconds, Uid, Version
from jackfield.model.plan import MarkVisible, Phase, Release
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

CR = "a100-1.rack-a"
ONE = Seen(PhysicalID("1"), "GPU-1", "0000:10:00.0")
TWO = Seen(PhysicalID("2"), "GPU-2")
USED = Prepared(Uid("u"), Key("default", "c"), PhysicalID("1"), "fabric.jackfield.dev/rack-a/a100-1")
SERIAL = Seen(PhysicalID("GPU-3"), "GPU-3", "0000:11:00.0", "GPU-3", "77777-1")
TWIN = Seen(PhysicalID("GPU-4"), "GPU-4", "0000:12:00.0", "GPU-4", "77777-1")
LOCAL = Prepared(Uid("u"), Key("default", "c"), PhysicalID("other"), "a/b/c", PhysicalID("GPU-3"))
NOTHING_SEEN = Facts()
ATTACHING, DETACHING = ResourceState.ATTACHING, ResourceState.DETACHING


class Row(NamedTuple):
    """A resource and what its node knows, and what is to come of it."""

    there: ComposableResource
    facts: Facts = NOTHING_SEEN
    do: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()
    says: str = ""
    again_at: Seconds = NEVER
    policy: Policy = b.policy()


RESCAN, VISIBLY = "Rescan resource/a100-1.rack-a", "MarkVisible resource/a100-1.rack-a"
LETS_GO = "Release resource/a100-1.rack-a"

ROWS = {
    "nothing is attached yet": Row(b.resource(state=ATTACHING), Facts((ONE,))),
    "attached and out of sight": Row(
        b.resource(state=ATTACHING, physical="1"),
        Facts((TWO,)),
        do=(RESCAN,),
        wait=("Visible",),
        says="1 to come into sight",
        again_at=Seconds(b.NOW + 1),
    ),
    "attached and in sight": Row(b.resource(state=ATTACHING, physical="1"), Facts((TWO, ONE)), do=(VISIBLY,)),
    "in sight under the serial number that the manager says": Row(
        b.resource(state=ATTACHING, physical="block-7", uuid="77777-1"), Facts((SERIAL,)), do=(VISIBLY,)
    ),
    "compared by nothing that the policy names": Row(
        b.resource(state=ATTACHING, physical="block-7", uuid="77777-1"),
        Facts((SERIAL,)),
        do=(RESCAN,),
        wait=("Visible",),
        says="block-7 or 77777-1 to come into sight; the node sees GPU-3",
        again_at=Seconds(b.NOW + 1),
        policy=b.policy(base=Policy(identities=(Identity.ADDRESS,))),
    ),
    "two go by its name": Row(
        b.resource(state=ATTACHING, physical="77777-1"),
        Facts((SERIAL, TWIN)),
        do=(RESCAN,),
        wait=("Visible",),
        says="0000:11:00.0 and 0000:12:00.0 go by that name alike",
        again_at=Seconds(b.NOW + 1),
    ),
    "two go by the name of what is to leave": Row(
        b.resource(state=DETACHING, physical="77777-1"),
        Facts((SERIAL, TWIN)),
        wait=("Blurred",),
        says="go by that name alike",
    ),
    "prepared under the node's own name for it": Row(
        b.resource(state=DETACHING, physical="block-7", uuid="GPU-3"),
        Facts((SERIAL,), (LOCAL,)),
        wait=("Held",),
        says="claim default/c to be unprepared",
    ),
    "already reported": Row(
        b.resource(state=ATTACHING, physical="1", conditions=(Condition(VISIBLE, "True"),)), Facts((ONE,))
    ),
    "reported as out of sight": Row(
        b.resource(state=ATTACHING, physical="1", conditions=(Condition(VISIBLE, "False"),)),
        Facts((ONE,)),
        do=(VISIBLY,),
    ),
    "new": Row(b.resource(state=ResourceState.NEW, physical="1")),
    "online": Row(b.resource(physical="1"), Facts((ONE,), (USED,))),
    "its end was asked for, and nobody has it": Row(
        b.resource(physical="1", deleted=b.NOW), Facts((ONE,)), do=(LETS_GO,)
    ),
    "its end was asked for, and a claim is recorded": Row(
        b.resource(physical="1", deleted=b.NOW, record=b.claim("c")), Facts((ONE,))
    ),
    "its end was asked for, and a claim holds it": Row(
        b.resource(physical="1", deleted=b.NOW, holder="u"), Facts((ONE,))
    ),
    "its end was asked for by force": Row(
        b.resource(physical="1", deleted=b.NOW, holder="u", record=b.claim("c"), force=True),
        Facts((ONE,), (USED,)),
        do=(LETS_GO,),
    ),
    "its end was asked for, and it is still prepared": Row(
        b.resource(physical="1", deleted=b.NOW), Facts((ONE,), (USED,)), wait=("Held",)
    ),
    "deleting": Row(b.resource(state=ResourceState.DELETING, physical="1")),
    "nobody has it": Row(
        b.resource(state=DETACHING, physical="1"),
        Facts((ONE,)),
        do=(LETS_GO,),
        says="nothing on the node uses it",
    ),
    "somebody has it": Row(
        b.resource(state=DETACHING, physical="1"),
        Facts((ONE,), (USED,)),
        wait=("Held",),
        says="claim default/c to be unprepared",
    ),
    "somebody has another": Row(
        b.resource(state=DETACHING, physical="2"), Facts((TWO,), (USED,)), do=(LETS_GO,)
    ),
    "somebody has it, and force is asked for": Row(
        b.resource(state=DETACHING, physical="1", force=True),
        Facts((ONE,), (USED,)),
        do=(LETS_GO,),
        says="forced, though claim default/c has it",
    ),
    "released already": Row(
        b.resource(state=DETACHING, physical="1", conditions=(Condition(RELEASED, "True"),)), Facts((ONE,))
    ),
    "nothing was ever attached": Row(b.resource(state=DETACHING), Facts((ONE,), (USED,)), do=(LETS_GO,)),
    "another driver's device": Row(
        b.resource(b.device("gpu.example.com/a100-fabricrack-a/a100-1"), state=DETACHING, physical="1"),
        policy=b.policy(b.model("A100", driver="gpu.example.com")),
    ),
    "a model that has left the policy": Row(
        b.resource(state=DETACHING, physical="1"), do=(LETS_GO,), policy=b.policy("T4")
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_node_does_about_a_resource(row: Row) -> None:
    plan = hotplug.decide(b.world(row.there, facts={"n1": row.facts}), CR, row.policy, b.NOW)
    assert steps(plan) == row.do
    assert reasons(plan) == row.wait
    assert row.says in words(plan)
    looks_again = Seconds(b.NOW + 5 * row.policy.poll_seconds)  # who has it open does not tell when he ends
    assert plan.again_at == (looks_again if LETS_GO in row.do else row.again_at)


@pytest.mark.parametrize(
    ("there", "facts"),
    [
        ((), {"n1": Facts()}),
        ((b.resource(state=DETACHING),), {"n2": Facts()}),
        ((b.resource(state=DETACHING),), {}),
    ],
    ids=["no resource", "another node's eyes", "no eyes"],
)
def test_a_node_leaves_alone_what_is_not_its_own(
    there: tuple[ComposableResource, ...], facts: dict[str, Facts]
) -> None:
    plan = hotplug.decide(b.world(*there, facts=facts), CR, b.policy(), b.NOW)
    assert (plan.actions, plan.waiting) == ((), ())


def test_what_is_seen_is_written_on_the_very_resource_that_was_decided_on() -> None:
    there = b.world(b.resource(state=ATTACHING, physical="1", version="7"), facts={"n1": Facts((ONE,))})
    assert hotplug.decide(there, CR, b.policy(), b.NOW).actions == (
        MarkVisible(
            phase=Phase.VISIBLE,
            resource=CR,
            version=Version("7"),
            device="GPU-1",
            message="seen as GPU-1 at 0000:10:00.0",
            because="n1 sees it",
        ),
    )


def test_an_address_that_is_not_known_is_said_to_be_so() -> None:
    there = b.world(b.resource("a100-2", state=ATTACHING, physical="2"), facts={"n1": Facts((TWO,))})
    (action,) = hotplug.decide(there, "a100-2.rack-a", b.policy(), b.NOW).actions
    assert isinstance(action, MarkVisible)
    assert action.message == "seen as GPU-2 at an unknown address"


@pytest.mark.parametrize("force", [False, True])
def test_a_release_carries_version_device_and_force(*, force: bool) -> None:
    there = b.world(
        b.resource(state=DETACHING, physical="1", version="8", force=force), facts={"n1": Facts()}
    )
    (action,) = hotplug.decide(there, CR, b.policy(), b.NOW).actions
    assert isinstance(action, Release)
    assert (action.node, action.version, action.device, action.force) == ("n1", "8", "1", force)
    assert action.phase is Phase.DETACHED


LEAVING = b.resource(state=DETACHING, physical="1")


@pytest.mark.parametrize(
    ("other", "device"),
    [
        (b.resource("a100-5", state=ATTACHING, physical="1"), ""),
        (b.resource("a100-5", physical="1"), ""),
        (b.resource("a100-5", state=DETACHING, physical="1"), "1"),
        (b.resource("a100-5", state=ATTACHING, physical="2"), "1"),
        (b.resource("fabric.jackfield.dev/rack-b/a100-5", state=ATTACHING, physical="1"), "1"),
        (b.resource("a100-5", state=ATTACHING, physical="1", on="n2"), "1"),
    ],
    ids=["comes", "stands", "leaves too", "another device", "another fabric's", "elsewhere"],
)
def test_what_another_resource_has_by_now_is_not_taken_off_the_bus(
    other: ComposableResource, device: str
) -> None:
    """A restored backup may have a resource whose device was detached, and came back by another order."""
    there = b.world(LEAVING, other, facts={"n1": Facts((ONE,))})
    (action,) = hotplug.decide(there, CR, b.policy(), b.NOW).actions
    assert isinstance(action, Release)
    assert action.device == device


def test_what_another_resource_has_and_a_claim_uses_is_not_said_to_be_released() -> None:
    heir = b.resource("a100-5", physical="1")
    there = b.world(LEAVING, heir, facts={"n1": Facts((ONE,), (USED,))})
    assert hotplug.decide(there, CR, b.policy(), b.NOW).actions == ()


COMING = b.resource("a100-7", state=ATTACHING)


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (ObjectChanged(None, COMING), ("a100-7.rack-a",)),
        (ObjectChanged(None, b.resource("a100-7", state=DETACHING)), ("a100-7.rack-a",)),
        (ObjectChanged(None, b.resource("a100-7", deleted=b.NOW)), ("a100-7.rack-a",)),
        (ObjectChanged(COMING, b.resource("a100-7")), ("a100-7.rack-a",)),
        (ObjectChanged(None, b.resource("a100-7")), ()),
        (ObjectChanged(b.resource("a100-7"), b.resource("a100-7", holder="u-1")), ()),
        (ObjectChanged(None, b.resource("a100-7", on="n2", state=ATTACHING)), ()),
        (ObjectChanged(COMING, None), ()),
        (ObjectChanged(None, b.node()), ()),
        (FactsChanged(b.NODE), ("a100-2.rack-a", "a100-3.rack-a", "a100-4.rack-a")),
        (FactsChanged(NodeName("n2")), ()),
        (InventoryChanged(b.FABRIC, (b.NODE,), ()), ()),
    ],
)
def test_a_node_is_woken_by_what_it_sees_and_by_resources_that_come_or_go(
    delta: Delta, woken: tuple[str, ...]
) -> None:
    there = (
        b.resource(),  # online and wanted: whatever its node sees makes no difference to it
        b.resource("a100-2", state=ATTACHING),
        b.resource("a100-3", state=DETACHING),
        b.resource("a100-4", deleted=b.NOW),
    )
    assert hotplug.wakes(b.world(*there, facts={"n1": Facts()}), b.policy(), delta) == woken

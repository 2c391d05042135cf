"""Where books and fabric differ: attached but unknown, known but gone; what is told of it, where, and when."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import drift
from jackfield.core.drift import Kind
from jackfield.model.composition import MISSING, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import Condition, Object, OwnerReference
from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.model.plan import Finding, MarkMissing, Plan
from jackfield.model.policy import Foreign, Policy
from jackfield.model.view import FactsChanged, InventoryChanged, ObjectChanged
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    device,
    inventory,
    node,
    policy,
    request,
    resource,
    showing,
    world,
)

N2 = NodeName("n2")
BOTH = (Machine(NODE), Machine(N2))
STAGE = inventory(models={MODEL: 4}, machines=BOTH)
OWNED = (OwnerReference("v1", "ComposabilityRequest", "r", "u"),)  # type: ignore[arg-type] # a uid like any
NAMED = policy(base=Policy(detach_foreign=(Foreign(PhysicalID("9")),)))
GONE = NOW - policy().missing_seconds
CALL = STAGE.traits.call_timeout
INVENTORY = policy().inventory_seconds


def stranger(name: str = "9", *, on: NodeName = NODE, **fields: object) -> FabricDevice:
    """Return a device that somebody else attached."""
    return replace(FabricDevice(PhysicalID(name), MODEL, node=on, ours=False), **fields)


def ours(name: str = "9", **fields: object) -> FabricDevice:
    """Return a device that we attached, long ago."""
    return replace(FabricDevice(PhysicalID(name), MODEL, node=NODE), **fields)


def asked(name: str = "a100-1", **meta: object) -> ComposableResource:
    """Return the resource of a device that a request asked for."""
    return resource(name, owners=OWNED, **meta)  # type: ignore[arg-type] # passed on


def decided(
    *objects: Object,
    stage: Inventory = STAGE,
    chosen: Policy = policy(),
    looked: float = NEVER,
    now: float = NOW,
) -> Plan:
    view = world(node(), node(N2), *objects, inventories=[stage], policy=chosen, looked=looked)
    return drift.decide(view, NODE, chosen, Seconds(now))


def told(plan: Plan) -> list[tuple[str, str, int]]:
    return [(one.object, one.reason, one.count) for one in plan.findings]


def only(plan: Plan) -> Finding:
    (finding,) = plan.findings
    return finding


# --- attached but unknown


def test_what_somebody_else_attached_is_told_on_its_node_with_what_to_do() -> None:
    assert only(decided(stage=showing(STAGE, stranger()))) == Finding(
        "node/n1",
        Kind.FOREIGN,
        "9 (A100) is attached to n1 by somebody else; it takes room and is left alone. Detach it where it was "
        "attached, or let detachForeign of the policy name it.",
        FABRIC,
    )


def test_what_the_policy_names_is_told_to_go_and_the_rest_to_stay() -> None:
    found = only(decided(stage=showing(STAGE, stranger(), stranger("8")), chosen=NAMED))
    assert found.count == 2
    assert found.what == (
        "8 (A100) is attached to n1 by somebody else; it takes room and is left alone. 9 (A100) is attached to n1 by "
        "somebody else; detachForeign names it, and it goes when nothing uses it. Detach it where it was attached, or "
        "let detachForeign of the policy name it."
    )
    alone = only(decided(stage=showing(STAGE, stranger()), chosen=NAMED))
    assert alone.what.endswith("and it goes when nothing uses it.")


def test_what_the_policy_names_of_a_model_that_it_does_not_list_stays() -> None:
    unlisted = showing(STAGE, stranger(model=ModelName("L40")))
    assert "left alone" in only(decided(stage=unlisted, chosen=NAMED)).what


def test_many_devices_are_counted_and_few_are_named() -> None:
    many = showing(STAGE, *(stranger(f"{number}") for number in range(10, 40)))
    found = only(decided(stage=many))
    assert found.count == 30
    assert found.what.startswith(
        "10 (A100), 11 (A100), 12 (A100) and 27 more are attached to n1 by somebody else;"
    )
    assert len(found.what) < 512
    few = only(decided(stage=showing(STAGE, *(stranger(f"{number}") for number in (7, 8, 9)))))
    assert few.what.startswith("7 (A100), 8 (A100), 9 (A100) are attached to n1")


@pytest.mark.parametrize(
    ("objects", "stage"),
    [
        ((), STAGE),
        ((), showing(STAGE, stranger(on=N2))),
        ((), showing(STAGE, stranger(on=NodeName("another-cluster")))),
        ((), showing(STAGE, ours(node=NodeName("")))),
        ((asked(physical="9"),), showing(STAGE, stranger())),
        ((asked(physical="9"),), showing(STAGE, ours())),
    ],
)
def test_nothing_is_told_where_books_and_fabric_agree(objects: tuple[Object, ...], stage: Inventory) -> None:
    assert told(decided(*objects, stage=stage)) == []


def test_another_clusters_node_is_its_own_business() -> None:
    view = world(inventories=[showing(STAGE, stranger())])
    assert drift.decide(view, NODE, policy(), NOW) == Plan()


def test_a_node_of_no_fabric_has_nothing_to_differ_from() -> None:
    assert drift.decide(world(node("n3")), NodeName("n3"), policy(), NOW) == Plan()


def test_a_device_that_somebody_moved_is_told_where_it_is_with_where_it_should_be() -> None:
    found = only(decided(asked(on="n2", physical="9"), stage=showing(STAGE, stranger())))
    assert found.what.startswith("9 (A100, on n2 by the books) is attached to n1 by somebody else")


@pytest.mark.parametrize(
    ("chosen", "remedy"),
    [
        (policy("H100"), "List A100 among the models of the policy, and it is used or returned."),
        (policy(), "It is used or returned as soon as attaching is not paused."),
    ],
)
def test_what_is_ours_and_is_not_put_into_the_books_is_told(chosen: Policy, remedy: str) -> None:
    stray = showing(STAGE, ours(order=OrderID("o-1"), since=Seconds(NOW - CALL - INVENTORY)))
    found = only(decided(stage=stray, chosen=chosen))
    assert (found.object, found.reason) == ("node/n1", Kind.UNKNOWN)
    assert found.what == f"9 (A100, order o-1) is attached to n1 by us, and is in nobody's books. {remedy}"


def test_what_is_ours_is_not_told_before_it_had_time_to_be_put_into_the_books() -> None:
    stray = showing(STAGE, ours(since=Seconds(NOW - CALL)))
    assert decided(stage=stray) == Plan(again_at=Seconds(NOW + INVENTORY))


def test_a_device_that_was_found_and_put_into_the_books_is_told_of_on_its_resource() -> None:
    found = only(decided(resource(physical="1", order="o-1"), stage=inventory(attached={"1": "n1"})))
    assert (found.object, found.reason, found.grave) == ("resource/a100-1.rack-a", Kind.ADOPTED, False)
    assert found.what.startswith("1 was found attached to n1 by order o-1 and in nobody's books")
    nameless = only(decided(resource(physical="1"), stage=inventory(attached={"1": "n1"})))
    assert nameless.what.startswith("1 was found attached to n1 and in nobody's books")


@pytest.mark.parametrize(
    "one",
    [
        asked(physical="1"),
        resource(),
        resource(physical="1", state=ResourceState.DETACHING),
        resource(physical="1", state=ResourceState.NEW, foreign="1"),
        replace(resource(physical="1"), metadata=replace(resource().metadata, annotations={})),
    ],
)
def test_what_was_asked_for_or_goes_was_not_found(one: ComposableResource) -> None:
    assert Kind.ADOPTED not in [reason for _, reason, _ in told(decided(one))]


# --- known but gone


@pytest.mark.parametrize(
    ("stage", "where"),
    [
        (inventory(models={}, machines=BOTH), "does not show it"),
        (STAGE, "shows it in the pool"),
        (inventory(machines=BOTH, attached={"1": "n2"}), "shows it on n2"),
    ],
)
def test_a_device_that_is_gone_is_told_on_its_resource_with_where_it_is(stage: Inventory, where: str) -> None:
    found = only(decided(asked(physical="1", uid="u-1"), stage=stage, looked=GONE))
    assert (found.object, found.reason) == ("resource/a100-1.rack-a", Kind.MISSING)
    assert found.what == (
        "1 is not on n1 any more, and no order of ours took it away (it came by order u-1): the manager of rack-a "
        f"{where}. Nobody uses it, so it is taken out of the books."
    )


def test_a_device_that_vanished_on_its_way_is_called_by_its_name() -> None:
    lost = asked(state=ResourceState.ATTACHING)
    assert only(decided(lost, stage=inventory(models={}), looked=GONE)).what.startswith("a100-1 is not on n1")


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        (
            (claim("a"), asked(physical="1", record=claim("a"))),
            "Claim default/a has it, and its pod runs without it",
        ),
        (
            (request(1), asked(physical="1", request="by-hand")),
            "by-hand asked for it: delete this ComposableResource",
        ),
    ],
)
def test_whoever_has_a_device_that_is_gone_is_told_what_to_do(
    objects: tuple[Object, ...], words: str
) -> None:
    assert words in only(decided(*objects, looked=GONE)).what


def test_what_a_manager_may_only_have_forgotten_is_counted_and_makes_no_event() -> None:
    lost = (asked(physical="1"), asked("a100-2", physical="2"))
    plan = decided(*lost, looked=GONE + 1)
    assert plan.again_at == NOW + 1
    found = only(plan)
    assert (found.object, found.reason, found.count) == ("node/n1", Kind.UNSHOWN, 2)
    assert not found.told
    assert not found.grave
    assert "2 missing, which count as gone if that lasts for 90 s" in found.what
    over = decided(*lost, looked=GONE)
    assert over.again_at == NEVER
    assert told(over) == [
        ("resource/a100-1.rack-a", Kind.MISSING, 1),
        ("resource/a100-2.rack-a", Kind.MISSING, 1),
    ]


def test_what_an_inventory_from_before_does_not_show_is_nothing_to_tell() -> None:
    assert decided(asked(physical="1")) == Plan()


def test_a_manager_that_does_not_show_the_node_itself_does_not_show_what_is_on_it() -> None:
    nowhere = inventory(machines=["n2"])
    assert told(decided(asked(physical="1"), stage=nowhere, looked=GONE)) == [
        ("resource/a100-1.rack-a", Kind.MISSING, 1)
    ]


def test_what_stands_on_a_node_that_its_manager_does_not_show_is_not_judged() -> None:
    nowhere = showing(inventory(machines=["n2"]), ours())
    assert told(decided(asked(physical="1"), stage=nowhere)) == []


def test_a_device_that_its_manager_calls_unhealthy_is_told_on_its_resource() -> None:
    sick = showing(STAGE, ours("1", healthy=False))
    found = only(decided(asked(physical="1"), stage=sick))
    assert (found.object, found.reason) == ("resource/a100-1.rack-a", Kind.ILL)
    assert "calls 1 on n1 unhealthy" in found.what
    assert told(decided(asked(physical="1", on="n2"), stage=sick)) == []
    assert told(decided(stage=showing(STAGE, ours("1", since=NOW, healthy=False)))) == []


# --- the condition


def marks(plan: Plan) -> list[tuple[str, bool]]:
    assert all(isinstance(one, MarkMissing) for one in plan.actions)
    return [(one.resource, one.missing) for one in plan.actions if isinstance(one, MarkMissing)]


HERE = inventory(attached={"1": "n1"})
FOR_ANOTHER = showing(STAGE, ours("1", order=OrderID("another")))
SAID = (Condition(MISSING, "True"),)
UNSAID = (Condition(MISSING, "False"),)
TRUE, FALSE = [("a100-1.rack-a", True)], [("a100-1.rack-a", False)]


@pytest.mark.parametrize(
    ("conditions", "stage", "looked", "written"),
    [
        ((), HERE, GONE, []),
        ((), STAGE, GONE, TRUE),
        ((), STAGE, GONE + 1, []),
        ((), STAGE, NEVER, []),
        (SAID, STAGE, GONE, []),
        (SAID, STAGE, NEVER, []),
        (SAID, HERE, GONE, FALSE),
        (SAID, HERE, NEVER, FALSE),
        ((), FOR_ANOTHER, GONE, TRUE),
        (SAID, FOR_ANOTHER, GONE, []),
        (UNSAID, HERE, GONE, []),
        (UNSAID, STAGE, GONE, TRUE),
    ],
)
def test_a_resource_in_use_says_whether_its_device_is_gone(
    conditions: tuple[Condition, ...], stage: Inventory, looked: float, written: list[tuple[str, bool]]
) -> None:
    used = asked(physical="1", record=claim("a"), conditions=conditions)
    assert marks(decided(claim("a"), used, stage=stage, looked=looked)) == written


def test_the_condition_says_where_the_device_is_or_that_it_is_back() -> None:
    used = asked(physical="1", record=claim("a"), version="7")
    (gone,) = decided(claim("a"), used, looked=GONE).actions
    assert isinstance(gone, MarkMissing)
    assert (gone.version, gone.message) == ("7", gone.because)
    assert gone.message.endswith("the manager of rack-a shows it in the pool.")
    (back,) = decided(
        claim("a"), replace(used, status=replace(used.status, conditions=SAID)), stage=HERE
    ).actions
    assert isinstance(back, MarkMissing)
    assert back.message == "its manager shows it on n1 again"


@pytest.mark.parametrize(
    "one", [asked(physical="1"), asked(physical="1", record=claim("a"), state=ResourceState.DETACHING)]
)
def test_nothing_is_written_on_what_goes_anyway(one: ComposableResource) -> None:
    assert decided(claim("a", on="n2"), one, looked=GONE).actions == ()


# --- all of it


def test_the_drift_of_a_fabric_is_that_of_all_its_nodes() -> None:
    stage = showing(STAGE, stranger(), stranger("8", on=N2), stranger("7", on=N2))
    view = world(node(), node(N2), inventories=[stage])
    found = drift.drift(view, FABRIC, policy(), NOW)
    assert [(one.object, one.count) for one in found] == [("node/n1", 1), ("node/n2", 2)]
    assert drift.drift(view, FabricName("rack-b"), policy(), NOW) == ()


def test_a_sum_says_in_a_few_words_how_much_differs() -> None:
    assert drift.summary({}) == ""
    assert drift.summary({Kind.FOREIGN: 0, Kind.MISSING: 3}) == "3 gone from where they should be"
    everything = {str(kind): 1 for kind in Kind}
    assert drift.summary(everything).count(",") == len(Kind) - 1


# --- who is woken


def woken(
    view: Store, *deltas: ObjectChanged | InventoryChanged | FactsChanged
) -> list[tuple[NodeName, ...]]:
    return [drift.wakes(view, policy(), one) for one in deltas]


def test_what_comes_goes_or_changes_wakes_the_nodes_that_it_is_about() -> None:
    view = world(inventories=[showing(STAGE, stranger(on=N2))])
    one = asked(physical="9")
    assert woken(
        view,
        InventoryChanged(FABRIC, (N2,), ()),
        ObjectChanged(None, node()),
        ObjectChanged(node(), node()),
        ObjectChanged(None, one),
        ObjectChanged(one, None),
        ObjectChanged(one, replace(one, status=replace(one.status, state=ResourceState.DETACHING))),
        ObjectChanged(one, asked(physical="9", holder="u")),
        ObjectChanged(one, asked(physical="9", record=claim("a"))),
        ObjectChanged(None, resource(device("gpu.example.com/other/x-1"))),
        FactsChanged(NODE),
    ) == [(N2,), (NODE,), (), (NODE, N2), (NODE, N2), (NODE, N2), (), (NODE, N2), (NODE,), ()]


MISSED = asked(physical="9", conditions=(Condition(MISSING, "True"),))


def test_what_another_replica_says_of_a_device_is_compared_with_what_is_shown_here() -> None:
    view = world(inventories=[STAGE])
    assert woken(view, ObjectChanged(asked(physical="9"), MISSED)) == [(NODE,)]
    assert woken(view, ObjectChanged(MISSED, asked(physical="9"))) == [(NODE,)]


@pytest.mark.parametrize(("there", "nodes"), [(MISSED, (NODE,)), (asked(physical="9"), ())])
def test_a_claim_that_is_given_a_missing_device_wakes_where_that_is_told(
    there: ComposableResource, nodes: tuple[NodeName, ...]
) -> None:
    view = world(there, inventories=[STAGE])
    given, left = claim("a", devices=["a100-1", "a100-2"]), claim("a", devices=[])
    assert woken(view, ObjectChanged(None, given), ObjectChanged(given, left)) == [nodes, nodes]


# --- whatever a manager shows


nodes = st.sampled_from([NodeName(""), NODE, N2, NodeName("another-cluster")])
devices = st.lists(
    st.builds(
        FabricDevice,
        id=st.sampled_from([PhysicalID(f"{number}") for number in range(6)]),
        model=st.sampled_from([MODEL, ModelName("L40")]),
        node=nodes,
        ours=st.booleans(),
        healthy=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda one: one.id,
)


@given(shown=devices, looked=st.sampled_from([NEVER, GONE, NOW]))
@settings(max_examples=200, deadline=None)
def test_whatever_is_shown_every_finding_is_bounded_and_about_an_object(
    shown: list[FabricDevice], looked: float
) -> None:
    stage = replace(STAGE, devices=tuple(shown))
    plan = decided(asked(physical="1"), asked("a100-2", physical="2"), stage=stage, looked=looked)
    assert all(len(one.what) < 700 for one in plan.findings)
    assert {one.object.partition("/")[0] for one in plan.findings} <= {"node", "resource"}
    places = [(one.object, one.reason) for one in plan.findings]
    assert len(places) == len(set(places))
    foreign = sum(one.node == NODE and not one.ours and one.id not in "12" for one in shown)
    told_of = [one.count for one in plan.findings if one.reason == Kind.FOREIGN]
    assert sum(told_of) == foreign

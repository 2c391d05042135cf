"""What somebody else attached is touched only if the policy names it, and then goes by the way of our own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import attach, compose, evict, naming, scale, shelf, surplus
from jackfield.model.composition import FOREIGN, RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Order
from jackfield.model.meta import Condition, Object
from jackfield.model.names import DeviceID, FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.model.plan import (
    AnyAction,
    Attach,
    Detach,
    FreeResource,
    MarkState,
    Phase,
    Plan,
    PutResource,
)
from jackfield.model.policy import READY, Foreign, Policy
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    heartbeat,
    inventory,
    model,
    node,
    policy,
    request,
    resource,
    showing,
    vendor_slice,
    world,
)
from unit.core.plans import reasons, steps, words

N2 = NodeName("n2")
NINE = PhysicalID("9")
THERE = FabricDevice(NINE, MODEL, serial="GPU-9", node=NODE, ours=False)
STAGE = showing(inventory(machines=(Machine(NODE), Machine(N2))), THERE)
NAMED = policy(base=Policy(detach_foreign=(Foreign(NINE),)))
CR = "a100-9.rack-a"
MADE = resource("a100-9", state=ResourceState.NEW, foreign="9", version="7")
OPTED_OUT = node(labels={"jackfield.dev/opt-out": "true"})


def rules(*which: Foreign) -> Policy:
    return policy(base=Policy(detach_foreign=which))


# --- what the policy names


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (Foreign(), False),
        (Foreign(fabric=FABRIC), False),
        (Foreign(device=NINE), True),
        (Foreign(device=PhysicalID("8")), False),
        (Foreign(model=MODEL), True),
        (Foreign(model=ModelName("L40")), False),
        (Foreign(node=NODE), True),
        (Foreign(node=N2), False),
        (Foreign(device=NINE, fabric=FABRIC), True),
        (Foreign(device=NINE, fabric=FabricName("rack-b")), False),
        (Foreign(device=NINE, node=N2), False),
        (Foreign(device=NINE, model=MODEL, node=NODE, fabric=FABRIC), True),
    ],
)
def test_a_rule_names_what_agrees_with_all_that_it_says(rule: Foreign, *, named: bool) -> None:
    view = world(node(), inventories=[STAGE])
    assert evict.named(view, FABRIC, THERE, rules(rule)) is named
    assert evict.named(view, FABRIC, THERE, rules(Foreign(PhysicalID("x")), rule)) is named


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ((node(),), replace(THERE, ours=True)),
        ((OPTED_OUT,), THERE),
        ((), THERE),
        ((node(),), replace(THERE, node=N2)),
    ],
)
def test_what_is_ours_or_stands_on_no_node_of_ours_is_never_named(
    objects: tuple[Object, ...], found: FabricDevice
) -> None:
    assert not evict.named(world(*objects), FABRIC, found, NAMED)


# --- into the books


def test_what_the_policy_names_gets_a_resource_that_says_so() -> None:
    (put,) = surplus.adopt(world(node(), inventories=[STAGE]), NODE, NAMED, NOW).actions
    assert isinstance(put, PutResource)
    assert (put.resource.metadata.name, put.resource.foreign, put.resource.node) == (CR, "9", NODE)
    assert put.because == "somebody else attached 9 to n1, and detachForeign names it"
    assert surplus.adopt(world(node(), inventories=[STAGE]), NODE, policy(), NOW) == Plan()


def test_it_is_given_time_as_our_own_are() -> None:
    late = showing(STAGE, replace(THERE, since=Seconds(NOW - 10)))
    found = surplus.adopt(world(node(), inventories=[late]), NODE, NAMED, NOW)
    assert found == Plan(again_at=Seconds(NOW - 10 + STAGE.traits.call_timeout))


# --- the first step


def first(
    *objects: Object, stage: Inventory | None = STAGE, chosen: Policy = NAMED, on: Object = node()
) -> Plan:
    view = world(on, *objects, inventories=[stage] if stage is not None else [], policy=chosen)
    return attach.decide(view, CR, chosen, NOW)


def test_it_leaves_with_its_id_written_down_so_that_its_node_can_be_asked() -> None:
    assert first(MADE) == Plan(
        (
            MarkState(
                phase=Phase.DETACHED,
                resource=CR,
                version=MADE.metadata.resource_version,
                state=ResourceState.DETACHING,
                device=NINE,
                serial="GPU-9",
                because="somebody else attached 9 to n1, and detachForeign names it",
            ),
        )
    )


@pytest.mark.parametrize(
    ("objects", "wait"),
    [
        ((claim("a", devices=["a100-9"]),), ()),
        ((claim("a", devices=["a100-9"], told=READY),), ("Claimed",)),
        ((vendor_slice("GPU-9"),), ()),
        ((vendor_slice("GPU-9"), claim("a", devices=["gpu.example.com/n1/gpu-0"])), ("Claimed",)),
        ((vendor_slice("GPU-8"), claim("a", devices=["gpu.example.com/n1/gpu-0"])), ()),
        ((claim("a", devices=["fabric.jackfield.dev/n1/gpu-0"], waits=()),), ("Claimed",)),
        ((claim("a", devices=["fabric.jackfield.dev/n2/gpu-0"], on="n2", waits=()),), ()),
    ],
)
def test_what_a_pod_may_use_stays(objects: tuple[Object, ...], wait: tuple[str, ...]) -> None:
    plan = first(MADE, *objects)
    assert reasons(plan) == wait
    assert bool(plan.actions) is (not wait)
    assert plan.again_at == (NOW + 30 if wait else Seconds(float("inf")))


@pytest.mark.parametrize(
    ("stage", "chosen", "on", "wait"),
    [
        (None, NAMED, node(), "Silent"),
        (STAGE, replace(NAMED, paused=True), node(), "Paused"),
        (STAGE, replace(NAMED, fabrics_paused=(FABRIC,)), node(), "Paused"),
    ],
)
def test_it_waits_for_the_manager_and_for_whoever_paused_it(
    stage: Inventory | None, chosen: Policy, on: Object, wait: str
) -> None:
    plan = first(MADE, stage=stage, chosen=chosen, on=on)
    assert (plan.actions, reasons(plan)) == ((), (wait,))


@pytest.mark.parametrize(
    ("made", "stage", "chosen", "on", "why"),
    [
        (MADE, inventory(), NAMED, node(), "9 is not on n1 any more"),
        (MADE, showing(STAGE, replace(THERE, node=N2)), NAMED, node(), "9 is not on n1 any more"),
        (MADE, showing(STAGE, replace(THERE, ours=True)), NAMED, node(), "the policy does not want 9 off n1"),
        (MADE, STAGE, policy(), node(), "the policy does not want 9 off n1 any more"),
        (MADE, STAGE, NAMED, OPTED_OUT, "the policy does not want 9 off n1 any more"),
        (
            resource("a100-9", state=ResourceState.NEW, foreign="9", deleted=NOW),
            STAGE,
            NAMED,
            node(),
            "9 is not",
        ),
        (
            resource("a100-9", state=ResourceState.NEW, foreign="9", deleted=NOW),
            None,
            NAMED,
            node(),
            "9 is not",
        ),
    ],
)
def test_what_needs_not_leave_any_more_leaves_the_books(
    made: ComposableResource, stage: Inventory | None, chosen: Policy, on: Object, why: str
) -> None:
    plan = first(made, stage=stage, chosen=chosen, on=on)
    assert [type(one) for one in plan.actions] == [FreeResource]
    assert why in words(plan)


# --- the way out


def leaving(*, released: bool = False, **meta: object) -> ComposableResource:
    conditions = (Condition(RELEASED, "True"),) if released else ()
    return resource(
        "a100-9",
        state=ResourceState.DETACHING,
        foreign="9",
        physical="9",
        uuid="GPU-9",
        conditions=conditions,
        **meta,  # type: ignore[arg-type] # passed on
    )


def test_its_node_lets_go_before_the_manager_is_asked_to_detach_what_is_not_ours() -> None:
    assert reasons(first(leaving())) == ("Released",)
    (detach,) = first(leaving(released=True, uid="u-9")).actions
    assert isinstance(detach, Detach)
    assert detach.order == Order(OrderID("u-9"), FABRIC, NODE, MODEL, NINE, foreign=True)


def test_it_has_left_where_an_order_of_ours_has_brought_it_back() -> None:
    """A manager refuses to detach for it what another order of ours has; whoever has it, or nobody, is looked after."""
    stage = showing(STAGE, replace(THERE, ours=True, order=OrderID("another")))
    (gone,) = first(leaving(released=True), stage=stage).actions
    assert isinstance(gone, MarkState)
    assert (gone.state, gone.because) == (ResourceState.DELETING, "an order of ours has it by now")


def test_a_driver_that_offers_it_is_kept_from_giving_it_away() -> None:
    assert steps(first(leaving(released=True), vendor_slice("GPU-9"))) == (
        "PutTaint taint/a100-9.rack-a-taint",
    )
    ours = replace(leaving(released=True), metadata=resource("a100-9").metadata)
    assert steps(first(ours, vendor_slice("GPU-9"))) == ("Detach 9 at n1 resource/a100-9.rack-a",)


def test_it_is_offered_to_nobody_meanwhile() -> None:
    for made in (MADE, leaving()):
        view = world(node(), made, inventories=[STAGE], policy=NAMED)
        assert made.device is not None
        offer = shelf.Shelf(view, NAMED, NOW).offer(made.device)
        assert offer == shelf.Closed("on its way back to the pool")


# --- whatever a manager shows, and whatever the policy says


found = st.builds(
    FabricDevice,
    id=st.sampled_from([PhysicalID(f"{number}") for number in range(6)]),
    model=st.sampled_from([MODEL, ModelName("L40")]),
    serial=st.sampled_from(["", "GPU-1"]),
    node=st.sampled_from([NodeName(""), NODE, N2, NodeName("another-cluster")]),
    ours=st.booleans(),
    order=st.sampled_from([OrderID(""), OrderID("o")]),
)
inventories = st.lists(found, max_size=8, unique_by=lambda one: one.id)
names = st.builds(
    Foreign,
    device=st.sampled_from([PhysicalID(""), PhysicalID("1"), PhysicalID("2")]),
    model=st.sampled_from([ModelName(""), MODEL, ModelName("L40")]),
    node=st.sampled_from([NodeName(""), NODE, N2]),
    fabric=st.sampled_from([FabricName(""), FABRIC, FabricName("rack-b")]),
)
policies = st.lists(names, max_size=2).map(lambda which: rules(*which))
books = st.lists(
    st.builds(
        lambda number, state, on, foreign: resource(
            f"a100-{number}",
            state=state,
            on=on,
            physical="" if state is ResourceState.NEW else f"{number}",
            conditions=(Condition(RELEASED, "True"),) if state is ResourceState.DETACHING else (),
            foreign=f"{number}" if foreign and state is ResourceState.NEW else "",
        ),
        number=st.integers(0, 5),
        state=st.sampled_from([*ResourceState]),
        on=st.sampled_from([NODE, N2]),
        foreign=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda one: one.metadata.name,
)


def everything(view: Store, chosen: Policy, there: list[ComposableResource]) -> list[AnyAction]:
    """Return all that is decided about both nodes and about every resource."""
    plans = [scale.decide(view, on, chosen, NOW) for on in (NODE, N2)]
    plans += [attach.decide(view, one.metadata.name, chosen, NOW) for one in there]
    plans += [compose.decide(view, one.request, chosen, NOW) for one in there]
    return [action for plan in plans for action in plan.actions]


@given(shown=inventories, chosen=policies, there=books)
@settings(max_examples=400, deadline=None)
def test_nothing_that_is_not_ours_is_touched_unless_the_policy_names_it(
    shown: list[FabricDevice], chosen: Policy, there: list[ComposableResource]
) -> None:
    stage = Inventory(FABRIC, machines=(Machine(NODE), Machine(N2)), devices=tuple(shown))
    view = world(
        *(node(), node(N2), heartbeat(), heartbeat(N2)),
        *there,
        inventories=[stage],
        policy=chosen,
        looked=0.0,
    )
    named = {one.id: one for one in shown if evict.named(view, FABRIC, one, chosen)}
    for action in everything(view, chosen, there):
        match action:
            case PutResource(resource=made) if FOREIGN in made.metadata.annotations:
                assert named[made.foreign].node == made.node
            case PutResource(resource=made) if not made.metadata.owner_references:
                assert all(one.ours for one in shown if made.device == _name(one))
            case MarkState(device=device) if device:
                assert device in named
            case Detach(order=order) | Attach(order=order):
                # A manager detaches what an order attached; only this word says that it may be somebody else's.
                assert not order.foreign
            case _:
                pass
    assert not chosen.detach_foreign or all(not one.ours for one in named.values())


def _name(one: FabricDevice) -> DeviceID | None:
    listed = policy().model(one.model)
    return naming.device(FABRIC, listed, one.id) if listed is not None else None


def test_a_vendors_device_is_named_and_sent_away_like_any_other() -> None:
    chosen = replace(policy(model(MODEL, driver="gpu.example.com")), detach_foreign=NAMED.detach_foreign)
    (put,) = surplus.adopt(world(node(), inventories=[STAGE], policy=chosen), NODE, chosen, NOW).actions
    assert isinstance(put, PutResource)
    assert put.resource.foreign == NINE


def test_a_request_for_the_node_does_not_ask_for_what_is_to_leave() -> None:
    view = world(node(), MADE, request({}), inventories=[STAGE], policy=NAMED)
    assert compose.decide(view, "jackfield-a100-n1", NAMED, NOW).actions == ()
    assert not [
        one for one in scale.decide(view, NODE, NAMED, NOW).actions if not isinstance(one, PutResource)
    ]

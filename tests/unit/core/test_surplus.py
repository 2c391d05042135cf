"""Devices of ours that stand on a node and are in nobody's books get a resource, once all is quiet."""

import pytest
from msgspec.structs import replace

from jackfield.core import surplus
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    MANAGED_BY,
    ORDER,
    ComposableResource,
    ComposableResourceSpec,
    ResourceState,
)
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import NEVER, NO_TIME, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.model.plan import Phase, Plan, PutResource
from jackfield.model.policy import Foreign, Policy
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    inventory,
    node,
    policy,
    request,
    resource,
    showing,
    world,
)

CHOOSING = Traits(chooses_device=True, knows_orders=False)
FOUND = FabricDevice(PhysicalID("9"), MODEL, node=NODE, order=OrderID("an-order"))
STAGE = showing(inventory(), FOUND)
UNSAID = showing(inventory(), replace(FOUND, order=OrderID("")))
"""A manager that does not say by whose order a device came."""
SLOTS = inventory(traits=CHOOSING, attached={"x": "n1"})


def adopted(*objects: Object, stage: Inventory = STAGE, chosen: Policy = policy(), now: float = NOW) -> Plan:
    view = world(*objects, inventories=[stage], policy=chosen)
    return surplus.adopt(view, NODE, chosen, Seconds(now))


def names(plan: Plan) -> str:
    puts = [one.resource.metadata.name for one in plan.actions if isinstance(one, PutResource)]
    assert len(puts) == len(plan.actions)
    return " ".join(puts)


def test_a_device_in_nobodys_books_gets_a_resource_that_knows_its_order() -> None:
    new = ComposableResource(
        metadata=ObjectMeta(
            name="a100-9.rack-a",
            labels={MANAGED_BY: "jackfield-a100-n1"},
            annotations={DEVICE: "fabric.jackfield.dev/rack-a/a100-9", ORDER: "an-order"},
            finalizers=(FINALIZER,),
        ),
        spec=ComposableResourceSpec("gpu", MODEL, NODE),
    )
    because = "9 is ours, stands on n1, and is in nobody's books"
    put = PutResource(phase=Phase.COMPOSED, resource=new, ask=True, because=because)
    assert adopted() == Plan((put,))


def test_what_was_detached_a_moment_ago_and_is_still_shown_is_not_put_into_the_books() -> None:
    view = world(inventories=[STAGE])
    view.doubt(FABRIC)
    assert surplus.adopt(view, NODE, policy(), NOW) == Plan(again_at=Seconds(NOW + policy().poll_seconds))
    view.see(STAGE, current=False)
    assert names(surplus.adopt(view, NODE, policy(), NOW)) == ""
    view.see(STAGE)
    assert names(surplus.adopt(view, NODE, policy(), NOW)) == "", "the manager was not asked since"
    view.ask(FABRIC, NOW)
    view.see(STAGE)
    assert names(surplus.adopt(view, NODE, policy(), NOW)) == "a100-9.rack-a"


def test_what_turned_out_not_to_be_there_is_left_alone_for_a_while() -> None:
    """A manager that shows an old listing goes on showing what it has taken back."""
    blame = policy().blame_seconds
    for ago, name in ((1.0, ""), (blame - 1.0, ""), (blame, "a100-9.rack-a")):
        failed = node(failures={"a100-9": NOW - ago})
        plan = adopted(failed)
        assert names(plan) == name
        assert plan.again_at == (NEVER if name else NOW - ago + blame)
    assert names(adopted(node(failures={"a100-8": NOW - 1}))) == "a100-9.rack-a"


@pytest.mark.parametrize(("since", "name"), [(NOW - 210, "a100-9.rack-a"), (NOW - 220, ""), (NOW - 230, "")])
def test_what_came_only_after_its_name_had_failed_is_put_into_the_books(since: float, name: str) -> None:
    """An order that a restored backup knows nothing of was in the way of another for the same device."""
    stage = showing(inventory(), replace(FOUND, since=Seconds(since)))
    assert names(adopted(node(failures={"a100-9": NOW - 220}), stage=stage)) == name


def test_what_another_process_detached_is_not_put_into_the_books_by_an_old_inventory() -> None:
    had = resource("a100-9", physical="9", version="7")
    view = world(had, inventories=[STAGE])
    view.remove(replace(had, metadata=replace(had.metadata, resource_version="8")))
    assert names(surplus.adopt(view, NODE, policy(), NOW)) == ""
    view.ask(FABRIC, NOW)
    view.see(STAGE)
    assert names(surplus.adopt(view, NODE, policy(), NOW)) == "a100-9.rack-a"


def test_a_manager_that_knows_no_orders_leaves_none_to_be_written() -> None:
    (put,) = adopted(stage=SLOTS).actions
    assert isinstance(put, PutResource)
    assert put.resource.metadata.annotations == {DEVICE: "fabric.jackfield.dev/rack-a/a100-0"}


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "resources"),
    [
        ((), STAGE, policy(), "a100-9.rack-a"),
        ((), showing(STAGE, replace(FOUND, ours=False)), policy(), ""),
        ((), showing(STAGE, replace(FOUND, node=NodeName("n2"))), policy(), ""),
        ((), showing(STAGE, replace(FOUND, node=NodeName(""))), policy(), ""),
        ((), STAGE, policy("H100"), ""),
        ((), replace(UNSAID, machines=()), policy(), "a100-9.rack-a"),
        ((), replace(showing(UNSAID, replace(FOUND, ours=False)), machines=()), policy(), ""),
        ((), replace(STAGE, machines=()), policy(), "a100-9.rack-a"),
        ((resource("a100-5", physical="9"),), STAGE, policy(), ""),
        ((resource("a100-9"),), STAGE, policy(), ""),
        ((resource("a100-9", on="n2"),), STAGE, policy(), ""),
        ((resource("a100-5", uid="an-order"),), STAGE, policy(), ""),
        ((resource("a100-5", uid="an-order", on="n2"),), STAGE, policy(), "a100-9.rack-a"),
        ((resource("a100-5", state=ResourceState.NEW),), UNSAID, policy(), ""),
        ((resource("a100-5", state=ResourceState.ATTACHING),), UNSAID, policy(), ""),
        ((resource("a100-5", state=ResourceState.ATTACHING),), STAGE, policy(), "a100-9.rack-a"),
        (
            (resource("a100-5", state=ResourceState.ATTACHING, physical="5"),),
            UNSAID,
            policy(),
            "a100-9.rack-a",
        ),
        (
            (resource("h100-5", state=ResourceState.ATTACHING, model="H100"),),
            UNSAID,
            policy(),
            "a100-9.rack-a",
        ),
        ((resource("a100-5", state=ResourceState.ONLINE),), STAGE, policy(), "a100-9.rack-a"),
        ((claim("a", devices=["a100-9"]),), STAGE, policy(), "a100-9.rack-a"),
        ((), SLOTS, policy(), "a100-0.rack-a"),
        ((resource("a100-0", physical="y"),), SLOTS, policy(), "a100-1.rack-a"),
        ((claim("a", devices=["a100-0"]),), SLOTS, policy(), "a100-1.rack-a"),
        (
            (),
            inventory(traits=CHOOSING, attached={"x": "n1", "y": "n1"}),
            policy(),
            "a100-0.rack-a a100-1.rack-a",
        ),
        ((), inventory(attached={"1": "n1", "2": "n1"}), policy(), "a100-1.rack-a a100-2.rack-a"),
    ],
    ids=[
        "ours: adopted",
        "not ours: left alone",
        "on another node: that node's business",
        "in the pool: nobody's business",
        "of no model in the policy: left alone",
        "on what is no machine any more: taken back",
        "on what is no machine, and not ours: left alone",
        "on what is no machine any more, by an order of ours: taken back",
        "a resource's: its own",
        "a resource has its name: it will have it",
        "a resource elsewhere has its name: it is to come there",
        "a resource has its order: it will have it",
        "a resource elsewhere has its order: adopted here",
        "a new resource may be about to have it",
        "an attaching resource may be about to have it",
        "an attaching resource has another order: it waits for something else",
        "an attaching resource has another",
        "an attaching resource wants another model",
        "a resource that is online has its own",
        "a claim was given its name: it is adopted for it",
        "a slot: the first",
        "a slot: the first without a resource",
        "a slot: the first without a claim",
        "two slots for two devices",
        "two devices",
    ],
)
def test_a_device_that_stands_on_a_node(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, resources: str
) -> None:
    assert names(adopted(*objects, stage=stage, chosen=chosen)) == resources


@pytest.mark.parametrize(
    ("machine_since", "device_since", "order", "again_at"),
    [
        (NOW - 180, NOW - 999, "", NEVER),
        (NOW - 179, NOW - 999, "", NOW + 1),
        (NOW - 999, NOW - 180, "", NEVER),
        (NOW - 999, NOW - 100, "", NOW + 80),
        (NOW - 50, NOW - 100, "", NOW + 130),
        # A node on which much comes and goes: what says by whose order it came does not wait for that.
        (NOW - 1, NOW - 180, "an-order", NEVER),
        (NOW - 1, NOW - 179, "an-order", NOW + 1),
    ],
)
def test_nothing_is_adopted_before_it_or_its_node_has_been_quiet_for_a_calls_time(
    machine_since: float, device_since: float, order: str, again_at: float
) -> None:
    device = replace(FOUND, order=OrderID(order), since=Seconds(device_since))
    stage = replace(showing(inventory(), device), machines=(Machine(NODE, since=Seconds(machine_since)),))
    plan = adopted(stage=stage)
    assert (bool(plan.actions), plan.again_at) == (again_at == NEVER, again_at)


def test_the_first_device_to_be_quiet_says_when_to_look_again() -> None:
    young = replace(FOUND, since=Seconds(NOW - 10))
    older = FabricDevice(PhysicalID("8"), MODEL, node=NODE, since=Seconds(NOW - 20))
    old = FabricDevice(PhysicalID("7"), MODEL, node=NODE)
    plan = adopted(stage=showing(inventory(), young, older, old))
    assert (names(plan), plan.again_at) == ("a100-7.rack-a", NOW + 160)


def test_when_every_slot_has_an_owner_nothing_is_adopted() -> None:
    taken = [
        resource(f"a100-{number}", on="n2", physical=f"p{number}")
        for number in range(surplus.SLOTS_SEARCHED_MAX)
    ]
    assert names(adopted(*taken[:-1], stage=SLOTS)) == f"a100-{surplus.SLOTS_SEARCHED_MAX - 1}.rack-a"
    assert adopted(*taken, stage=SLOTS) == Plan()


def test_a_device_for_a_vendors_driver_is_adopted_under_its_fabric() -> None:
    chosen = policy(replace(policy().models[0], driver_name="gpu.example.com"))
    (put,) = adopted(chosen=chosen).actions
    assert isinstance(put, PutResource)
    assert put.resource.metadata.name == "a100-9.rack-a"
    assert put.resource.spec.model == ModelName("A100")
    assert put.resource.device is not None
    assert put.resource.device.pool == "a100-fabricrack-a"


def test_nothing_is_adopted_for_a_request_that_goes() -> None:
    going = request({"a100-1": ""}, deleted=NOW)
    assert going.metadata.name == "jackfield-a100-n1"
    assert names(adopted(going)) == ""
    assert names(adopted(replace(going, metadata=replace(going.metadata, deletion_timestamp=NO_TIME)))) != ""


@pytest.mark.parametrize(
    "given_up",
    [
        resource("a100-9", physical="9", state=ResourceState.DELETING),
        resource("a100-9", state=ResourceState.DELETING, order="an-order"),
    ],
    ids=["with its device", "by its order alone"],
)
def test_what_a_resource_on_a_node_that_is_gone_has_just_given_up_is_left_alone_for_a_while(
    given_up: ComposableResource,
) -> None:
    """Its manager shows an old listing; where there is a node, it is noted on that."""
    for nodes, expected in (((), ""), ((node(),), "a100-9.rack-a")):
        view = world(*nodes, given_up, inventories=[STAGE])
        view.clock = lambda: Seconds(NOW - 10)
        known = view.resource(given_up.metadata.name)
        assert known is not None
        view.remove(known)
        view.ask(FABRIC, NOW)
        view.see(STAGE, at=NOW)
        plan = surplus.adopt(view, NODE, policy(), NOW)
        assert (names(plan), plan.again_at) == (
            expected,
            NEVER if expected else Seconds(NOW - 10 + policy().blame_seconds),
        )
        later = surplus.adopt(view, NODE, policy(), Seconds(NOW - 10 + policy().blame_seconds))
        assert names(later) == "a100-9.rack-a"


@pytest.mark.parametrize(("machines", "name"), [((Machine(NODE),), "a100-9.rack-a"), ((), "")])
def test_what_others_have_on_a_machine_that_is_not_listed_is_left_alone(
    machines: tuple[Machine, ...], name: str
) -> None:
    """Its manager would not take it from there, and be asked for ever."""
    chosen = policy(base=Policy(detach_foreign=(Foreign(node=NODE),)))
    stage = replace(showing(UNSAID, replace(FOUND, ours=False, order=OrderID(""))), machines=machines)
    assert names(adopted(node(), stage=stage, chosen=chosen)) == name

"""What an operator sees first: every number and every word of it comes from the view."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import overview
from jackfield.core.overview import NO_AGE, Objects, Overview, Stock
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import FINALIZER, ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, NodeName, PhysicalID, Seconds
from jackfield.model.node import Node
from jackfield.model.pod import PodCondition, PodStatus
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    heartbeat,
    inventory,
    node,
    pod,
    policy,
    request,
    resource,
    showing,
    world,
)

STAGE = inventory(models={MODEL: 4}, machines=(Machine(NODE, slots=3),))


def seen(*objects: Object, shown: Inventory | None = STAGE, **more: object) -> Overview:
    """Return the overview of a world with these objects in it."""
    store: Store = world(*objects, inventories=(shown,) if shown is not None else ())
    found = Objects(
        claims=tuple(one for one in store.all(ResourceClaim) if isinstance(one, ResourceClaim)),
        requests=tuple(
            one for one in store.all(ComposabilityRequest) if isinstance(one, ComposabilityRequest)
        ),
        resources=tuple(one for one in store.all(ComposableResource) if isinstance(one, ComposableResource)),
        nodes=tuple(one for one in store.all(Node) if isinstance(one, Node)),
    )
    return overview.overview(store, replace(found, **more), policy(), NOW)


def stock(*objects: Object, shown: Inventory = STAGE) -> Stock:
    return seen(*objects, shown=shown).fabrics[0].stocks[0]


ALLOCATED = claim("c", uid="u", version="7")
ATTACHED = inventory(models={MODEL: 4}, attached={"1": NODE})


@pytest.mark.parametrize(
    ("objects", "shown", "expected"),
    [
        ((), STAGE, Stock(MODEL, free=4)),
        ((resource(state=ResourceState.NEW),), STAGE, Stock(MODEL, free=3, attaching=1)),
        ((resource(state=ResourceState.ATTACHING),), STAGE, Stock(MODEL, free=3, attaching=1)),
        ((resource(),), ATTACHED, Stock(MODEL, free=3, idle=1)),
        ((ALLOCATED, resource(record=ALLOCATED)), ATTACHED, Stock(MODEL, free=3, in_use=1)),
        ((resource(state=ResourceState.DETACHING),), ATTACHED, Stock(MODEL, free=3, detaching=1)),
        (
            (),
            showing(STAGE, FabricDevice(PhysicalID("1"), MODEL, node=NODE, ours=False)),
            Stock(MODEL, free=3, foreign=1),
        ),
        (
            (),
            showing(STAGE, FabricDevice(PhysicalID("1"), MODEL, healthy=False)),
            Stock(MODEL, free=3, unhealthy=1),
        ),
    ],
)
def test_every_device_is_counted_where_it_is(
    objects: tuple[Object, ...], shown: Inventory, expected: Stock
) -> None:
    assert stock(*objects, shown=shown) == expected


def test_a_fabric_is_led_by_one_of_the_living() -> None:
    assert seen(replicas=("one",)).fabrics[0].leader == "one"


def test_a_fabric_that_nobody_leads_has_no_leader() -> None:
    assert seen().fabrics[0].leader == ""


def test_a_silent_manager_is_told_and_the_books_of_its_fabric_are_shown() -> None:
    [line] = seen(
        resource(state=ResourceState.ATTACHING), shown=None, silent={FabricName(FABRIC): "refused"}
    ).fabrics
    assert (line.trouble, line.stocks) == ("refused", (Stock(MODEL, attaching=1),))


def test_a_node_says_what_stands_there_and_when_its_plugin_was_heard() -> None:
    [line] = seen(node(), heartbeat(at=NOW - 5), shown=ATTACHED_IN_THREE).nodes
    assert (line.fabric, line.attached, line.slots, line.heard, line.trouble) == (FABRIC, 1, 3, 5.0, "")


ATTACHED_IN_THREE = replace(ATTACHED, machines=(Machine(NODE, slots=3),))


def test_a_node_whose_plugin_was_never_heard_is_in_trouble() -> None:
    [line] = seen(node()).nodes
    assert line.heard == NO_AGE
    assert "no sign of life" in line.trouble


def test_a_node_of_a_silent_manager_is_shown_by_its_label_and_the_books() -> None:
    labelled = node(labels={policy().fabric_label(): FABRIC})
    other = node("elsewhere")
    [line] = seen(
        labelled, other, heartbeat(), resource(), shown=None, silent={FabricName(FABRIC): "refused"}
    ).nodes
    assert (line.name, line.fabric, line.attached, line.slots, line.trouble) == (NODE, FABRIC, 1, -1, "")


def test_an_order_says_for_whom_it_is_and_what_it_waits_for() -> None:
    ordered = resource(state=ResourceState.ATTACHING, created=NOW - 9)
    [line] = seen(node(), heartbeat(), ALLOCATED, ordered).orders
    assert (line.resource, line.node, line.state, line.age) == (f"a100-1.{FABRIC}", NODE, "Attaching", 9.0)
    assert line.claim == "default/c"
    assert line.what.startswith("waiting for")


def test_an_order_that_failed_says_so() -> None:
    failed = resource(state=ResourceState.ATTACHING, error="no such port")
    [line] = seen(node(), heartbeat(), failed).orders
    assert (line.claim, line.what) == ("", "no such port")


def test_an_order_for_a_recorded_claim_names_it() -> None:
    [line] = seen(node(), heartbeat(), resource(state=ResourceState.DETACHING, record=ALLOCATED)).orders
    assert line.claim == "default/c"


def test_an_order_of_somebody_else_has_no_claim() -> None:
    [line] = seen(replace(resource(state=ResourceState.NEW), metadata=request(1).metadata)).orders
    assert (line.state, line.claim) == ("New", "")


def test_a_device_that_is_online_and_used_is_no_order() -> None:
    assert not seen(node(), heartbeat(), ALLOCATED, resource(record=ALLOCATED), shown=ATTACHED).orders


def test_a_device_that_is_to_go_when_its_claim_does_is_no_order() -> None:
    going = resource(record=ALLOCATED, deleted=NOW)
    assert not seen(node(), heartbeat(), ALLOCATED, going, shown=ATTACHED).orders


def test_a_claim_that_waits_says_for_what_since_when_and_whose_pod() -> None:
    given = claim("c", allocated=NOW - 30)
    [line] = seen(node(), heartbeat(), given, pod("p", "c")).waits
    assert (line.object, line.pods, line.age) == ("claim/default/c", ("default/p",), 30.0)
    assert "a100-1 to be ordered" in line.what


def test_a_request_that_waits_has_no_pod_and_no_age() -> None:
    [line] = seen(node(), heartbeat(), request(9, name="mine", finalizers=(FINALIZER,))).waits
    assert (line.object, line.pods, line.age) == ("request/mine", (), NO_AGE)


def test_a_claim_that_is_ready_does_not_wait() -> None:
    ready = claim("c", uid="u", version="7", ready=True)
    assert not seen(node(), heartbeat(), ready, resource(record=ready), shown=ATTACHED).waits


def unscheduled(message: str) -> Object:
    said = PodCondition("PodScheduled", "False", "Unschedulable", message)
    return replace(pod("p", "c", created=NOW - 3), status=PodStatus(conditions=(said,)))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/3 nodes are available", "0/3 nodes are available"),
        ("", "a node that fits; the scheduler does not say what is missing"),
    ],
)
def test_a_pod_without_a_node_says_what_the_scheduler_says(message: str, expected: str) -> None:
    [line] = seen(unscheduled(message)).waits
    assert (line.object, line.reason, line.what, line.age) == (
        "pod/default/p",
        "Unschedulable",
        expected,
        3.0,
    )


def test_a_pod_without_a_node_and_without_claims_is_not_ours_to_tell() -> None:
    said = PodCondition("PodScheduled", "False", "Unschedulable", "0/3")
    assert not seen(replace(pod("p"), status=PodStatus(conditions=(said,)))).waits


def test_what_books_and_fabric_differ_in_is_found() -> None:
    stranger = FabricDevice(PhysicalID("9"), MODEL, node=NODE, ours=False)
    [finding] = seen(node(), heartbeat(), shown=showing(STAGE, stranger)).findings
    assert finding.object == f"node/{NODE}"


def test_a_clock_that_is_behind_makes_no_negative_age() -> None:
    [line] = seen(node(), heartbeat(at=NOW + 60)).nodes
    assert line.heard == Seconds(0.0)


def test_a_machine_that_is_no_node_of_this_cluster_is_not_shown() -> None:
    assert not seen().nodes


@pytest.mark.parametrize(
    ("objects", "shown", "unknown"),
    [
        ((node(),), STAGE, ()),
        ((node("other"),), STAGE, (NODE,)),
        ((node("other"),), inventory(machines=()), ()),
        ((node(),), inventory(machines=(Machine(NODE), Machine(NodeName("elsewhere")))), ()),
    ],
    ids=["a node", "under another name", "no machines at all", "one of another cluster beside ours"],
)
def test_machines_are_told_of_if_none_is_a_node(
    objects: tuple[Object, ...], shown: Inventory, unknown: tuple[str, ...]
) -> None:
    assert seen(*objects, shown=shown).fabrics[0].unknown == unknown

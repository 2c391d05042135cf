"""The requests that the scaler writes: additive, by version, only its own; and what wakes it."""

import pytest
from msgspec.structs import replace

from jackfield.core import scale
from jackfield.model.composition import (
    DELETE_DEVICE,
    DEVICES,
    SCALER,
    ResourceState,
    ScalarResource,
)
from jackfield.model.fabric import Machine
from jackfield.model.meta import Object
from jackfield.model.names import DeviceID, FabricName, ModelName, NodeName, Seconds, Version
from jackfield.model.plan import (
    DeleteRequest,
    ForgetClaim,
    MarkVictim,
    Phase,
    Plan,
    PutRequest,
    PutResource,
    SetCondition,
)
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged
from jackfield.testing.builders import (
    FABRIC,
    NODE,
    NOW,
    claim,
    device,
    inventory,
    model,
    node,
    pod,
    policy,
    request,
    resource,
    vendor_slice,
    world,
)
from unit.core.scaling import ROOMY, only, plan

VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
OTHERS = device("gpu.example.com/n1/gpu-0")
A = claim("a", uid="u-a", version="7")
THERE = request({"a100-1": "a"})
"""The scaler's request for what A was given: nothing is left to be asked for."""


# --- requests


def asked(found: Plan) -> PutRequest:
    (put,) = [one for one in found.actions if isinstance(one, PutRequest)]
    return put


def test_a_claim_makes_a_request_that_names_its_device() -> None:
    put = asked(plan(A))
    assert (put.phase, put.claim) == (Phase.WANTED, A.key)
    assert put.because == "claim default/a was given a100-1"
    assert put.request.metadata.name == "jackfield-a100-n1"
    assert put.request.metadata.resource_version == ""
    assert put.request.metadata.labels == {SCALER: "true"}
    assert put.request.metadata.annotations == {DEVICES: "fabric.jackfield.dev/rack-a/a100-1=default/a"}
    assert put.request.spec.resource == ScalarResource("gpu", ModelName("A100"), 1, target_node=NODE)


def test_a_request_grows_by_the_version_it_was_seen_with_and_keeps_what_others_wrote_on_it() -> None:
    before = request({"a100-1": "a"}, version="9", labels={"team": "x"}, annotations={"note": "y"})
    put = asked(plan(A, resource(record=A), claim("b", devices=["a100-2"]), before))
    assert put.because == "claim default/b was given a100-2"
    assert put.claim.name == "b"
    assert put.request.metadata.resource_version == "9"
    assert put.request.metadata.labels == {SCALER: "true", "team": "x"}
    assert put.request.metadata.annotations["note"] == "y"
    assert [(one.device.device, one.claim.name) for one in put.request.wanted] == [
        ("a100-1", "a"),
        ("a100-2", "b"),
    ]
    assert put.request.spec.resource.size == 2


def test_an_idle_device_keeps_the_name_of_the_claim_it_came_for() -> None:
    idle = resource(used=NOW - 100)
    assert plan(idle, THERE) == Plan(again_at=Seconds(NOW + 500))


def test_a_device_that_serves_another_claim_now_is_wanted_for_that_one() -> None:
    other = claim("b")
    put = asked(plan(other, resource(record=other), THERE))
    assert (put.phase, put.claim, put.because) == (Phase.WANTED, other.key, "what it is wanted for changed")


def test_a_request_shrinks_and_says_who_goes_and_why() -> None:
    old, young = resource(used=NOW - 600), resource("a100-2", used=NOW - 100)
    found = plan(old, young, request({"a100-1": "a", "a100-2": "b"}))
    put = asked(found)
    assert (put.phase, put.claim.name) == (Phase.DETACHED, "")
    assert put.because == "a100-1.rack-a goes: idle for 600 s"
    assert [one.device.device for one in put.request.wanted] == ["a100-2"]
    assert found.again_at == NOW + 500


def test_a_request_for_nothing_is_deleted_by_version() -> None:
    found = plan(resource(used=NOW - 600), request({"a100-1": "a"}, version="9"))
    assert only(found) == DeleteRequest(
        phase=Phase.DETACHED,
        name="jackfield-a100-n1",
        version=Version("9"),
        because="a100-1.rack-a goes: idle for 600 s",
    )


@pytest.mark.parametrize(
    ("objects", "chosen"),
    [
        ((), policy()),
        ((request({"a100-1": "a"}, deleted=NOW),), policy()),
        ((A, request({}, deleted=NOW)), policy()),
        ((A, request(3, name="jackfield-a100-n1")), policy()),
        ((request(3), resource(request="by-hand", used=NOW - 900)), policy()),
        ((A,), policy(base=Policy(paused=True))),
        ((resource(used=NOW - 900), THERE), policy(base=Policy(paused=True))),
        ((A,), policy(base=Policy(fabrics_paused=(FABRIC,)))),
    ],
    ids=[
        "nothing is wanted",
        "a request is on its way out",
        "a request that is wanted again is on its way out",
        "somebody else has a request of that name",
        "somebody else's request and its device",
        "paused, for a claim",
        "paused, for an idle device",
        "the fabric paused",
    ],
)
def test_no_request_is_written_while(objects: tuple[Object, ...], chosen: Policy) -> None:
    assert plan(*objects, chosen=chosen).actions == ()


@pytest.mark.parametrize("current", [request({}, deleted=NOW), request(3, name="jackfield-a100-n1")])
def test_a_claim_for_which_nothing_can_be_ordered_is_looked_at_until_it_is_too_late_for_that(
    current: Object,
) -> None:
    assert plan(A, current).again_at == NOW + policy().poll_seconds


def test_another_fabrics_pause_is_not_ours() -> None:
    chosen = policy(base=Policy(fabrics_paused=(FabricName("rack-b"),)))
    assert asked(plan(A, chosen=chosen)).claim == A.key


def test_a_pause_does_not_keep_a_claim_from_what_is_there() -> None:
    paused = policy(base=Policy(paused=True))
    assert isinstance(only(plan(A, resource(record=A), chosen=paused)), SetCondition)
    assert isinstance(only(plan(resource(record=A), chosen=paused)), ForgetClaim)


def test_in_reschedule_the_victim_is_marked_before_the_request_shrinks() -> None:
    wanted, offered = request({str(SHARED): "a"}), vendor_slice("GPU-1")
    idle = resource(SHARED, uuid="GPU-1", used=NOW - 600, version="5")
    assert only(plan(idle, offered, wanted, chosen=VENDORS)) == MarkVictim(
        phase=Phase.DETACHED,
        resource="a100-1.rack-a",
        version=Version("5"),
        because="its request is about to shrink by this very device",
    )
    marked = resource(SHARED, uuid="GPU-1", used=NOW - 600, annotations={DELETE_DEVICE: "true"})
    assert isinstance(only(plan(marked, offered, wanted, chosen=VENDORS)), DeleteRequest)


def test_in_bind_no_victim_is_marked() -> None:
    assert isinstance(only(plan(resource(used=NOW - 600), THERE)), DeleteRequest)


def test_two_models_have_two_requests() -> None:
    chosen = policy("A100", "H100")
    found = plan(claim("a", devices=["a100-1", "h100-5"]), chosen=chosen)
    puts = [one.request.metadata.name for one in found.actions if isinstance(one, PutRequest)]
    assert puts == ["jackfield-a100-n1", "jackfield-h100-n1"]


def test_room_that_an_idle_device_must_make_is_made() -> None:
    small = inventory(models={"A100": 4}, machines=[Machine(NODE, slots=1)])
    put = asked(plan(A, resource("a100-2", used=NOW), request({"a100-2": "x"}), stage=small))
    assert put.because == "claim default/a was given a100-1; a100-2.rack-a goes: a claim needs its room"


def test_a_device_in_nobodys_books_is_adopted() -> None:
    stage = inventory(attached={"1": "n1"})
    (put,) = plan(stage=stage).actions
    assert isinstance(put, PutResource)
    assert plan(stage=stage, chosen=policy(base=Policy(paused=True))) == Plan()


def test_the_earliest_of_all_reasons_to_look_again_counts() -> None:
    one, two = resource(used=NOW - 100), resource("a100-2", used=NOW - 300)
    assert plan(one, two, request({"a100-1": "", "a100-2": ""})).again_at == NOW + 300


# --- waking

SPARES = policy(model("A100", spares=1))


@pytest.mark.parametrize(
    ("objects", "delta", "nodes"),
    [
        ((), InventoryChanged(FABRIC, (NODE,), ()), "n1"),
        ((claim("b", on="n2"),), InventoryChanged(FABRIC, (NODE,), (device("a100-1"),)), "n1 n2"),
        ((), FactsChanged(NODE), ""),
        ((), ObjectChanged(None, A), "n1"),
        ((claim("b", on="n2"),), ObjectChanged(A, None), "n1 n2"),
        (
            (resource(uuid="GPU-1"), vendor_slice("GPU-1"), claim("b", on="n2")),
            ObjectChanged(None, claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=())),
            "n1 n2",
        ),
        ((resource("a100-3", on="n3", record=A),), ObjectChanged(None, claim("a", devices=[])), "n3"),
        ((claim("b", on="n2"),), ObjectChanged(None, resource()), "n1 n2"),
        (
            (claim("a", on="n2", devices=[]), claim("a", on="n4", devices=["a100-9"], version="2")),
            ObjectChanged(resource(record=A), None),
            "n1 n4",
        ),
        ((), ObjectChanged(None, resource(record=A)), "n1"),
        (
            (),
            ObjectChanged(None, replace(resource(), metadata=replace(resource().metadata, annotations={}))),
            "n1",
        ),
        ((), ObjectChanged(None, vendor_slice("GPU-1", on="n2")), "n2"),
        ((), ObjectChanged(vendor_slice("GPU-1", on="n2"), None), "n2"),
        ((resource(), claim("b", on="n2")), ObjectChanged(None, vendor_slice("GPU-1")), "n1 n2"),
        ((), ObjectChanged(None, vendor_slice("GPU-1", on="")), ""),
        ((), ObjectChanged(None, pod("p")), ""),
        ((node(),), ObjectChanged(pod("p", on="n1"), None), ""),
        ((), ObjectChanged(pod("p", on="n1"), None), "n1"),
    ],
    ids=[
        "its inventory",
        "an inventory that a claim elsewhere waits for",
        "not facts",
        "a claim",
        "a claim, its rivals",
        "a claim, its rivals by another name for its device",
        "a claim, where it is still recorded",
        "a resource, where its device is wanted",
        "a resource, where its claim is now",
        "a resource of an unknown claim",
        "a resource of an unknown device",
        "a driver that publishes",
        "a driver that withdraws",
        "a driver that publishes, where its device is wanted",
        "not a slice of no node",
        "not a pod",
        "not a pod on a node",
        "a pod on a node that is gone",
    ],
)
def test_a_change_wakes_the_nodes_it_is_about(objects: tuple[Object, ...], delta: Delta, nodes: str) -> None:
    view = world(*objects, inventories=[ROOMY])
    assert scale.wakes(view, policy(), delta) == tuple(nodes.split())


@pytest.mark.parametrize("state", [ResourceState.ATTACHING, ResourceState.DETACHING, ResourceState.DELETING])
def test_a_resource_that_never_got_its_device_wakes_where_that_stands(state: ResourceState) -> None:
    """An order that was given up brought it there; while this one has its name, nobody can put it into the books."""
    stage = inventory(models={"A100": 2}, attached={"1": "n2"}, machines=["n1", "n2"])
    refused = resource("a100-1", on="n1", state=state, physical="")
    view = world(refused, inventories=[stage])
    assert scale.wakes(view, policy(), ObjectChanged(refused, None)) == ("n1", "n2")


def test_a_device_that_falls_idle_wakes_where_an_older_spare_stands() -> None:
    stage = inventory(models={"A100": 4}, machines=["n1", "n2", "n3"])
    spares = [resource(f"a100-{number}", on=f"n{number}", used=NOW - 100 + number) for number in (1, 2, 3)]
    fresh = ObjectChanged(None, spares[-1])
    for chosen, nodes in ((SPARES, "n3 n1 n2"), (policy(model("A100", spares=2)), "n3 n1"), (policy(), "n3")):
        view = world(*spares, inventories=[stage], policy=chosen)
        assert scale.wakes(view, chosen, fresh) == tuple(NodeName(one) for one in nodes.split())


@pytest.mark.parametrize("left", ["a100-3", OTHERS], ids=["before it was recorded", "by its vendor's name"])
def test_a_claim_that_leaves_its_device_idle_wakes_where_an_older_spare_stands(left: str | DeviceID) -> None:
    stage = inventory(models={"A100": 4}, machines=["n1", "n2", "n3"])
    spares = [resource(f"a100-{number}", on=f"n{number}", used=NOW - 100 + number) for number in (1, 2, 3)]
    view = world(*spares, inventories=[stage], policy=SPARES)
    gone = ObjectChanged(claim("a", devices=[left], on="n3"), claim("a", devices=[]))
    assert scale.wakes(view, SPARES, gone) == ("n3", "n1", "n2")
    assert scale.wakes(view, policy(), gone) == ("n3",)


def test_a_vendors_slice_by_which_a_device_is_idle_wakes_where_an_older_spare_stands() -> None:
    stage = inventory(models={"A100": 4}, machines=["n1", "n2", "n3"])
    spares = [resource(f"a100-{number}", on=f"n{number}", used=NOW - 100 + number) for number in (1, 2, 3)]
    view = world(*spares, inventories=[stage], policy=SPARES)
    published = ObjectChanged(None, vendor_slice("GPU-3", on="n3"))
    assert scale.wakes(view, SPARES, published) == ("n3", "n1", "n2")
    assert scale.wakes(view, policy(), published) == ("n3",)


def test_a_resource_of_no_model_or_no_fabric_wakes_no_spares() -> None:
    elsewhere = resource(on="n9")
    unknown = resource("b200-1", model="B200")
    view = world(elsewhere, unknown, inventories=[ROOMY], policy=SPARES)
    assert scale.wakes(view, SPARES, ObjectChanged(None, elsewhere)) == ("n9",)
    assert scale.wakes(view, SPARES, ObjectChanged(None, unknown)) == ("n1",)

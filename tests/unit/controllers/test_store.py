"""The store: older news never replaces newer, the dead stay dead, and every change says what it changed."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import GRAVES_MAX, Store
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Key, NodeName, PhysicalID, Seconds
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import Pod, PodCondition
from jackfield.model.view import ObjectChanged
from jackfield.ports import Changed, Deleted, Synced
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    device,
    heartbeat,
    model,
    node,
    pod,
    policy,
    request,
    resource,
    vendor_slice,
    world,
)

OLD, NEW = node(version="5"), node(version="6", cordoned=True)
N2 = NodeName("n2")
SLOTS = Traits(chooses_device=True)
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
OTHERS = device("gpu.example.com/n1/gpu-0")
VENDORS = policy(model("A100", driver="gpu.example.com"))
USER = claim("a", devices=[OTHERS], waits=())


# --- versions and graves


def test_an_object_is_known_as_it_was_last_heard_of() -> None:
    store = Store(policy())
    assert store.put(OLD) == (ObjectChanged(None, OLD),)
    assert store.put(NEW) == (ObjectChanged(OLD, NEW),)
    assert store.node(NODE) == NEW


@pytest.mark.parametrize("stale", [OLD, NEW, node(version="")], ids=["older", "the same", "never written"])
def test_older_news_is_passed_over(stale: Node) -> None:
    store = world(NEW)
    assert store.put(stale) == ()
    assert store.node(NODE) == NEW


def test_versions_are_numbers_not_texts() -> None:
    store = world(node(version="9"))
    assert store.put(node(version="10")) != ()


@pytest.mark.parametrize(
    ("gone", "there"),
    [(node(version="5"), True), (node(version="6"), False), (node(version="7"), False)],
    ids=["an older one went", "this one went", "a later one went"],
)
def test_an_object_goes_unless_a_later_one_of_its_name_is_known(gone: Node, *, there: bool) -> None:
    store = world(NEW)
    assert store.observe(Deleted(gone)) == (() if there else (ObjectChanged(NEW, None),))
    assert (store.node(NODE) is not None) is there


@pytest.mark.parametrize(
    ("version", "there"),
    [("5", False), ("7", False), ("8", True)],
    ids=["from before", "of its end", "of its successor"],
)
def test_the_dead_do_not_come_back_by_news(version: str, *, there: bool) -> None:
    store = world(NEW)
    store.observe(Deleted(node(version="7")))
    store.observe(Changed(node(version=version)))
    assert (store.node(NODE) is not None) is there


def test_the_end_of_an_object_never_heard_of_is_remembered() -> None:
    store = Store(policy())
    assert store.observe(Deleted(node(version="7"))) == ()
    assert store.put(node(version="6")) == ()
    assert store.node(NODE) is None


def test_a_grave_is_of_one_kind() -> None:
    store = world(NEW)
    store.remove(NEW)
    assert store.put(heartbeat(version="1")) != ()


def test_graves_are_bounded_and_the_oldest_goes_first() -> None:
    store = Store(policy())
    for number in range(GRAVES_MAX + 1):
        store.remove(node(f"n{number}", version="5"))
    back = [bool(store.put(node(name, version="4"))) for name in ("n0", "n1", f"n{GRAVES_MAX}")]
    assert back == [True, False, False]


def test_what_the_api_says_is_gone_is_gone() -> None:
    store = world(NEW)
    assert store.remove(NEW) == (ObjectChanged(NEW, None),)
    assert store.remove(NEW) == ()
    assert store.put(OLD) == ()


def test_a_list_takes_away_what_it_does_not_name() -> None:
    two = node("n2")
    store = world(OLD, two, heartbeat())
    assert store.observe(Synced(Node, frozenset([OLD.key]))) == (ObjectChanged(two, None),)
    assert store.nodes() == (OLD,)
    assert store.heartbeat(NODE) == NOW


def test_what_was_written_after_a_list_was_made_is_known_again_once_it_is_told() -> None:
    store = world(NEW)  # the answer to a write of ours, later than the list
    store.observe(Synced(Node, frozenset()))
    assert store.node(NODE) is None
    assert store.observe(Changed(NEW)) == (ObjectChanged(None, NEW),)


def test_all_of_a_kind_are_listed_by_name() -> None:
    store = world(node("n2"), node("n1"), claim("a"))
    assert [one.key.name for one in store.all(Node)] == ["n1", "n2"]
    assert store.kinds() == (Node, ResourceClaim)
    assert store.all(ComposableResource) == ()


# --- looking things up


def test_claims_are_served_by_the_age_of_their_allocation_then_their_own_then_by_name() -> None:
    wishes = [
        claim("d", allocated=NOW - 10, created=NOW - 50),
        claim("c", allocated=NOW - 10, created=NOW - 50),
        claim("b", allocated=NOW - 10, created=NOW - 60),
        claim("a", allocated=NOW - 5, created=NOW - 90),
        claim("e", allocated=NOW - 20, created=NOW - 40),
    ]
    store = world(*wishes)
    expected = ["e", "b", "c", "d", "a"]
    assert [one.metadata.name for one in store.claims_on(NODE)] == expected
    assert [one.metadata.name for one in store.claims_holding(device("a100-1"))] == expected


@pytest.mark.parametrize(
    ("one", "on", "holding"),
    [
        (claim("a"), True, True),
        (claim("a", admin=True), True, False),
        (claim("a", waits=()), False, True),
        (claim("a", on="n2"), False, True),
        (claim("a", devices=[]), False, False),
    ],
    ids=["ours", "admin access", "another driver's", "another node's", "not allocated"],
)
def test_a_claim_is_found_by_node_if_it_waits_for_us_and_by_device_if_it_holds_it(
    one: ResourceClaim, *, on: bool, holding: bool
) -> None:
    store = world(one)
    assert store.claim(one.key) == one
    assert bool(store.claims_on(NODE)) is on
    assert bool(store.claims_holding(device("a100-1"))) is holding


def test_a_claim_that_moves_is_found_only_where_it_is() -> None:
    store = world(claim("a"))
    store.put(claim("a", devices=["a100-2"], on="n2", version="2"))
    assert store.claims_on(NODE) == store.claims_holding(device("a100-1")) == ()
    assert len(store.claims_on(N2)) == len(store.claims_holding(device("a100-2"))) == 1


@pytest.mark.parametrize(
    ("phase", "on", "using", "bound"),
    [("Pending", "", 1, 0), ("Running", "n1", 1, 1), ("Succeeded", "n1", 0, 1), ("Failed", "n1", 0, 1)],
)
def test_pods_use_their_claims_until_they_have_finished(phase: str, on: str, using: int, bound: int) -> None:
    store = world(pod("p", "a", on=on, phase=phase))
    assert len(store.pods_using(Key("default", "a"))) == using
    assert len(store.pods_on(NODE)) == bound
    store.remove(pod("p"))
    assert store.pods_using(Key("default", "a")) == store.pods_on(NODE) == ()


def test_unschedulable_pods_are_listed_oldest_first() -> None:
    def stuck(name: str, *, created: float, on: str = "", deleted: float | None = None) -> Object:
        made = (
            pod(name, on=on, created=created)
            if deleted is None
            else pod(name, created=created, deleted=deleted)
        )
        said = PodCondition("PodScheduled", "False", "Unschedulable")
        return replace(made, status=replace(made.status, conditions=(said,)))

    store = world(
        stuck("b", created=NOW - 5),
        stuck("a", created=NOW - 1),
        stuck("bound", created=NOW, on="n1"),
        stuck("going", created=NOW, deleted=NOW),
        pod("fine"),
    )
    assert [one.metadata.name for one in store.pods_unschedulable()] == ["b", "a"]


def test_nodes_are_found_by_group() -> None:
    store = world(node("n1", labels={NODE_GROUP: "big"}), node("n2"))
    assert [one.name for one in store.nodes_in_group("big")] == ["n1"]
    store.put(node("n1", version="2"))
    assert store.nodes_in_group("big") == ()


def test_failures_are_known_by_node_and_by_device_in_the_order_of_time() -> None:
    first = node("n1", failures={"a100-1": NOW - 10, "a100-2": NOW - 20})
    store = world(first, node("n2", failures={"a100-1": NOW - 30}), node("n3", failures={"a100-1": NOW - 10}))
    assert [one.device.device for one in store.failures_on(NODE)] == ["a100-1", "a100-2"]
    assert [one.node for one in store.failures_of(device("a100-1"))] == ["n2", "n1", "n3"]
    store.put(node("n1", version="2", annotations={"jackfield.dev/failures": "nonsense"}))
    assert store.failures_on(NODE) == ()
    assert [one.node for one in store.failures_of(device("a100-1"))] == ["n2", "n3"]


def test_a_plugin_that_never_gave_a_sign_of_life_is_silent_for_ever() -> None:
    assert Store(policy()).heartbeat(NODE) == Seconds(float("-inf"))
    assert world(heartbeat(at=NOW - 3)).heartbeat(NODE) == NOW - 3


def test_requests_are_found_by_name_node_and_model() -> None:
    mine, theirs = request({"a100-1": ""}, created=NOW - 5), request(2, created=NOW - 9, on="n2")
    store = world(mine, theirs)
    assert store.request("by-hand") == theirs
    assert store.requests_on(NODE) == (mine,)
    assert store.requests_by_hand(MODEL) == (theirs,)
    younger = request(1, name="younger", created=NOW - 3)
    store.put(younger)
    assert store.requests_by_hand(MODEL) == (theirs, younger)
    store.remove(theirs)
    assert store.requests_by_hand(MODEL) == (younger,)
    assert store.requests_wanting(device("a100-1")) == (mine,)
    store.remove(mine)
    assert store.requests_wanting(device("a100-1")) == ()


def test_resources_are_found_by_all_they_are_known_by() -> None:
    user = claim("a", uid="u-a")
    one = resource(physical="1", record=user, holder=user.uid)
    store = world(one)
    assert store.resource("a100-1.rack-a") == store.resource_of(device("a100-1")) == one
    assert store.resource_with(FABRIC, PhysicalID("1")) == one
    assert store.resource_with(FabricName("rack-b"), PhysicalID("1")) is None
    assert store.resources_on(NODE) == store.resources_of("jackfield-a100-n1") == (one,)
    assert store.resources_recording(user.key) == store.resources_held_by(user.uid) == (one,)
    store.put(resource(version="2"))
    assert store.resource_with(FABRIC, PhysicalID("1")) is None
    assert store.resources_recording(user.key) == store.resources_held_by(user.uid) == ()


@pytest.mark.parametrize("order", [1, -1], ids=["the new one heard of last", "the new one heard of first"])
def test_a_device_that_one_resource_gives_back_and_another_has_is_the_others(order: int) -> None:
    leaving = resource("a100-0", physical="x", uuid="GPU-1", state=ResourceState.DELETING)
    having = resource("a100-9", physical="x", uuid="GPU-1")
    store = world(*(leaving, having)[::order])
    assert store.resource_with(FABRIC, PhysicalID("x")) == having
    store.remove(leaving)
    assert store.resource_with(FABRIC, PhysicalID("x")) == having


def test_what_was_heard_of_is_found_by_kind_and_key() -> None:
    user = claim("c")
    store = world(user, node())
    assert store.known(ResourceClaim, user.key) == user
    assert store.known(ResourceClaim, Key("other", "c")) is None
    assert store.known(Pod, user.key) is None
    store.remove(user)
    assert store.known(ResourceClaim, user.key) is None


def test_slices_are_found_by_pool_by_device_and_by_uuid() -> None:
    one = vendor_slice("GPU-1")
    store = world(one)
    assert store.slices("gpu.example.com", "n1") == (one,)
    assert store.slice_with(OTHERS) == one
    assert store.published("GPU-1") == (OTHERS,)
    assert store.published("") == ()
    store.remove(one)
    assert store.slice_with(OTHERS) is None
    assert store.published("GPU-1") == ()


def test_a_device_that_moves_between_slices_stays_published() -> None:
    before = vendor_slice("GPU-1")
    after = replace(before, metadata=replace(before.metadata, name="another"))
    store = world(before, after)
    assert store.published("GPU-1") == (OTHERS,)
    store.remove(before)
    assert store.published("GPU-1") == (OTHERS,)
    assert store.slice_with(OTHERS) == after


def test_entries_that_wait_for_us_are_no_other_drivers_and_those_without_a_uuid_are_nobodys() -> None:
    theirs = vendor_slice("GPU-1")
    (entry,) = theirs.spec.devices
    ours = replace(entry, binding_conditions=("FabricDeviceReady",))
    for listed in (ours, replace(entry, attributes={})):
        store = world(replace(theirs, spec=replace(theirs.spec, devices=(listed,))))
        assert store.published("GPU-1") == store.published("") == ()
        assert store.slice_with(OTHERS) is not None


def test_a_resource_is_as_old_as_the_process_says_that_saw_it_come() -> None:
    """The API's clock may be far from ours; what was there before we came is as old as the API says."""
    store, time = Store(policy()), [NOW + 600]
    store.clock = lambda: Seconds(time[0])
    old, new = (resource(f"a100-{one}", created=NOW, uid=f"u{one}", version=f"{one}") for one in (1, 2))
    store.observe(Changed(old))
    store.observe(Synced(ComposableResource, frozenset({old.key})))
    store.observe(Changed(new))
    assert (store.born_at(old), store.born_at(new)) == (NOW, NOW + 600)
    time[0] = NOW + 700
    for one, version in ((old, "3"), (new, "4")):
        store.observe(Changed(replace(one, metadata=replace(one.metadata, resource_version=version))))
    assert (store.born_at(old), store.born_at(new)) == (NOW, NOW + 600)
    time[0] = NOW + 1
    assert store.born_at(new) == NOW, "our clock went back since"

"""What a claim gives a driver on a node, and what it cannot make it believe."""

import msgspec
import pytest
from msgspec.structs import replace

from jackfield.driver import claims
from jackfield.driver.claims import Place
from jackfield.driver.driver import Share
from jackfield.driver.entry import Entry, Held
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.device import Device
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from jackfield.model.names import Key, NodeName, Uid
from jackfield.ports import Refused
from unit.driver.lamps import LAMPS, given

UID = Uid("11111111-2222-3333-4444-555555555555")
LAMP = Device("a")
HERE = Place(LAMPS, NodeName("n1"), lambda pool, device: LAMP if (pool, device) == ("n1", "a") else None)
ANYTHING = replace(HERE, published_only=False)


def pinned(node: str) -> NodeSelector:
    return NodeSelector(
        (NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", (node,)),)),)
    )


def config(source: str, text: str, *requests: str, driver: str = LAMPS) -> DeviceAllocationConfiguration:
    opaque = OpaqueDeviceConfiguration(driver, msgspec.Raw(text.encode()))
    return DeviceAllocationConfiguration(source, requests, opaque)


def allocated(
    *results: DeviceRequestAllocationResult,
    node: str = "n1",
    configs: tuple[DeviceAllocationConfiguration, ...] = (),
) -> ResourceClaim:
    allocation = AllocationResult(DeviceAllocationResult(results, configs), pinned(node) if node else None)
    return ResourceClaim(
        metadata=ObjectMeta(name="mine", namespace="default", uid=UID),
        status=ResourceClaimStatus(allocation),
    )


def test_a_share_says_whose_it_is_and_what_it_is() -> None:
    result = replace(given("a"), share_id="s", consumed_capacity={"watts": "5"}, admin_access=True)
    (share,) = claims.shares(allocated(result), UID, HERE)
    assert share == Share(
        claim=Key("default", "mine"),
        uid=UID,
        requests=("lamp",),
        pool="n1",
        device="a",
        share_id="s",
        consumed_capacity={"watts": "5"},
        admin_access=True,
        published=LAMP,
    )


def test_what_other_drivers_give_is_theirs() -> None:
    assert claims.shares(allocated(given("a", driver="other.example.com")), UID, HERE) == ()


def test_a_claim_that_is_not_pinned_to_a_node_is_taken_for_what_is_here() -> None:
    assert len(claims.shares(allocated(given("a"), node=""), UID, HERE)) == 1


def test_one_device_for_two_requests_is_prepared_once_for_both() -> None:
    (share,) = claims.shares(allocated(given("a"), given("a", "look")), UID, HERE)
    assert share.requests == ("lamp", "look")


@pytest.mark.parametrize(
    ("claim", "uid", "words"),
    [
        (allocated(given("a")), Uid("another"), "another one now"),
        (replace(allocated(given("a")), status=ResourceClaimStatus()), UID, "is not allocated"),
        (allocated(given("a"), node="n2"), UID, "allocated to node 'n2', and this is n1"),
        (allocated(given("b")), UID, "device 'b' of pool 'n1', which is not on node n1"),
        (allocated(given("a", pool="n2"), node=""), UID, "pool 'n2', which is not on node n1"),
        (allocated(given("../../etc"), node=""), UID, "device '../../etc'"),
    ],
)
def test_what_is_not_for_this_node_is_refused_in_words(claim: ResourceClaim, uid: Uid, words: str) -> None:
    with pytest.raises(Refused, match=words.replace(".", r"\.")):
        claims.shares(claim, uid, HERE)


def test_what_is_not_published_is_taken_where_others_publish_or_where_it_is_prepared_already() -> None:
    (share,) = claims.shares(allocated(given("b")), UID, ANYTHING)
    assert share.published is None
    assert claims.shares(allocated(given("b")), UID, HERE, {("n1", "b", ""): None}) == (share,)


# --- configuration


def test_what_the_class_says_comes_before_what_the_claim_says() -> None:
    configs = (
        config("FromClaim", '{"is": 2}'),
        config("FromClass", '{"is": 1}'),
        config("FromClaim", '{"is": 3}'),
    )
    (share,) = claims.shares(allocated(given("a"), configs=configs), UID, HERE)
    assert share.config == ({"is": 1}, {"is": 2}, {"is": 3})


def test_only_what_is_for_this_request_and_this_driver_is_handed_on() -> None:
    configs = (
        config("FromClaim", '{"is": "for all"}'),
        config("FromClaim", '{"is": "for the request"}', "lamp"),
        config("FromClaim", '{"is": "for the choice"}', "lamp/warm"),
        config("FromClaim", '{"is": "for another choice"}', "lamp/cold"),
        config("FromClaim", '{"is": "for another request"}', "other"),
        config("FromClaim", '{"is": "for another driver"}', driver="other.example.com"),
        DeviceAllocationConfiguration("FromClaim"),
    )
    (share,) = claims.shares(allocated(given("a", "lamp/warm"), configs=configs), UID, HERE)
    assert [one["is"] for one in share.config] == ["for all", "for the request", "for the choice"]


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        ("FromClaim", "[1]", "in the claim cannot be read as a JSON object"),
        ("FromClass", "{", "in the device class cannot be read"),
        ("FromClaim", '{"a": ' + "[" * 5000 + "]" * 5000 + "}", "cannot be read"),
        ("FromClaim", '{"a": "' + "x" * 10240 + '"}', "has 10249 bytes; at most 10240"),
    ],
)
def test_configuration_that_is_none_is_refused_in_words(source: str, text: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        claims.shares(allocated(given("a"), configs=(config(source, text),)), UID, HERE)


# --- who is in whose way


WHOLE = Held(("lamp",), "n1", "a")
PART = replace(WHOLE, share_id="s1")
LOOKING = replace(WHOLE, notes={claims.ADMIN: "true"})


def _wanted(**fields: object) -> Share:
    (share,) = claims.shares(allocated(given("a")), UID, HERE)
    return msgspec.convert({**msgspec.structs.asdict(share), **fields}, Share, from_attributes=True)


@pytest.mark.parametrize(
    ("held", "fields", "in_the_way"),
    [
        (WHOLE, {}, True),
        (WHOLE, {"share_id": "s2"}, True),
        (PART, {}, True),
        (PART, {"share_id": "s1"}, True),
        (PART, {"share_id": "s2"}, False),
        (WHOLE, {"admin_access": True}, False),
        (LOOKING, {}, False),
        (replace(WHOLE, device="b"), {}, False),
        (replace(WHOLE, pool="other"), {}, False),
    ],
)
def test_a_device_is_given_to_two_only_in_parts_or_for_looking(
    held: Held, fields: dict[str, object], *, in_the_way: bool
) -> None:
    entry = Entry(Uid("other"), Key("default", "other"), (held,))
    assert claims.in_the_way(_wanted(**fields), entry) is in_the_way
    assert not claims.in_the_way(_wanted(**fields), replace(entry, uid=UID))


def test_what_is_remembered_has_the_drivers_notes_and_no_others() -> None:
    held = replace(LOOKING, notes={claims.ADMIN: "true", "plug": "p"})
    share = claims.remembered(Entry(UID, Key("default", "mine"), (held,)), held, HERE.published)
    assert (share.admin_access, share.notes, share.published) == (True, {"plug": "p"}, LAMP)

"""What is asked of the API itself, and what its answer tells."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.act import act
from jackfield.model.composition import (
    FINALIZER,
    MANAGED_BY,
    ComposabilityRequest,
    ComposableResource,
    ResourceState,
)
from jackfield.model.device import DeviceTaint
from jackfield.model.meta import Object, ObjectMeta, OwnerReference
from jackfield.model.names import NodeName, OrderID, Uid
from jackfield.model.node import Node
from jackfield.model.plan import (
    Adopt,
    DeleteResource,
    Detach,
    DropTaint,
    FreeResource,
    LabelNode,
    MarkState,
    PutResource,
    PutTaint,
)
from jackfield.model.taint import DeviceTaintRule, DeviceTaintRuleSpec
from jackfield.ports import Conflict, Gone
from jackfield.testing import builders as b
from unit.controllers.actions import ANY, CR, DEVICE, WHY, P, order, version
from unit.controllers.bench import Bench, play


def forget(bench: Bench, known: Object) -> None:
    """Be as somebody who was told an old list."""
    bench.store.remove(known)
    bench.store.clear()


def test_nothing_is_put_into_the_books_by_who_does_not_know_what_is_in_them() -> None:
    """The device may be another's: who has been told an old list would have it twice."""

    async def scene(bench: Bench) -> None:
        other = await bench.put(b.resource("a100-2"))
        forget(bench, other)
        new = b.resource()
        new = ComposableResource(
            metadata=replace(new.metadata, uid=Uid(""), resource_version=ANY, finalizers=(FINALIZER,)),
            spec=new.spec,
        )
        found = PutResource(phase=P, because=WHY, resource=new, ask=True)
        with pytest.raises(Conflict):
            await bench.act(found)
        assert bench.store.resource(other.metadata.name) == other
        await bench.act(found)
        assert (await bench.resource()).device == DEVICE

    play(scene)


@pytest.mark.parametrize(
    ("end", "words"),
    [("request", "request .* is gone"), ("another", "another"), ("node", "node n1 is gone")],
    ids=["its request is gone", "there is another of its name", "its node is gone"],
)
def test_what_went_with_its_request_or_its_node_is_not_made_again_for_it(end: str, words: str) -> None:
    """Who has not heard of their end would make its resources as fast as others delete them."""

    async def scene(bench: Bench) -> None:
        node, wish = await bench.put(b.node()), await bench.put(b.request(1))
        owner = OwnerReference("v1", "ComposabilityRequest", wish.metadata.name, wish.uid)
        mine = {MANAGED_BY: wish.metadata.name}
        meta = ObjectMeta(name=CR, labels=mine, owner_references=(owner,))
        make = PutResource(
            phase=P, because=WHY, resource=ComposableResource(metadata=meta, spec=b.resource().spec)
        )
        for _ in range(2):  # while its request is there, it may have been given back and be wanted again
            await bench.act(make)
            made = await bench.resource()
            await bench.client.delete(ComposableResource, made.key, version(made))
            bench.store.remove(made)
        if end == "node":
            await bench.client.delete(Node, node.key, ANY)
        else:
            await bench.client.delete(ComposabilityRequest, wish.key, version(wish))
        if end == "another":
            await bench.put(b.request(1))
            bench.store.put(wish)
        with pytest.raises(Conflict, match=words):
            await bench.act(make)
        known = bench.store.request(wish.metadata.name)
        assert (known is None) is (end == "request")
        assert (known == wish) is (end == "node")
        assert (bench.store.node(b.NODE) is None) is (end == "node")

    play(scene)


@pytest.mark.parametrize("vendors", [False, True], ids=["ours", "a vendor's"])
@pytest.mark.parametrize("empty", [False, True], ids=["whatever is bound to it", "nothing bound to it"])
@pytest.mark.parametrize("left", ["the node", "a pod", "nothing"])
def test_the_api_is_asked_for_a_node_that_counts_as_gone(left: str, *, empty: bool, vendors: bool) -> None:
    """Who has been told an old list would pull a device from a node that has come since, and may use it.

    Of a vendor's device claims say who uses it. They are asked for last: what is noted of them holds only since a taint
    kept others from coming, and on a node that counted as gone there was none.
    """

    async def scene(bench: Bench) -> None:
        resource = await bench.put(b.resource(state=ResourceState.DETACHING, physical="1"))
        there: Object | None = None
        if left == "the node":
            there = await bench.put(b.node())
        elif left == "a pod":
            there = await bench.put(b.pod("p", on=b.NODE))
        if there is not None:
            forget(bench, there)
            bench.store.put(resource)
        pull = Detach(
            phase=P,
            because=WHY,
            resource=CR,
            version=version(resource),
            order=order(),
            gone=True,
            empty=empty,
            ask=vendors,
        )
        if there is None or (left == "a pod" and not empty):
            await bench.act(pull)
            return
        with pytest.raises(Conflict, match="is not gone"):
            await bench.act(pull)
        assert there in bench.store.all(type(there))
        assert tuple(bench.hands.unclaimed) == ()

    play(scene)


def test_no_attach_is_given_up_for_a_node_that_only_an_old_list_lacks() -> None:
    """Whoever chose the node knows of it, and would have the same ordered again at once, again and again."""

    async def scene(bench: Bench) -> None:
        resource = await bench.put(b.resource(state=ResourceState.ATTACHING))
        there = await bench.put(b.node())
        forget(bench, there)
        bench.store.put(resource)
        leave = MarkState(
            phase=P,
            because=WHY,
            resource=CR,
            version=version(resource),
            state=ResourceState.DETACHING,
            gone=b.NODE,
        )
        with pytest.raises(Conflict, match="is not gone"):
            await bench.act(leave)
        assert bench.store.node(b.NODE) == there
        await bench.client.delete(Node, there.key, ANY)
        await bench.act(leave)
        assert (await bench.resource()).state is ResourceState.DETACHING

    play(scene)


def test_what_turns_out_to_be_gone_is_known_to_be_gone() -> None:
    """A watch that is behind may not tell of it for long, and the same would be decided until then."""

    async def scene(bench: Bench) -> None:
        known = await bench.put(b.resource())
        await bench.client.delete(ComposableResource, known.key, known.metadata.resource_version)
        end = DeleteResource(
            phase=P, because=WHY, resource=known.metadata.name, version=known.metadata.resource_version
        )
        with pytest.raises(Gone):
            await bench.act(end)
        assert bench.store.resource(known.metadata.name) is None
        await bench.act(end)

    play(scene)


def test_a_vendors_device_is_not_detached_by_who_has_not_heard_of_a_claim_there() -> None:
    """It may have the device by its driver's name, and nobody but the API would say so."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        claim = await bench.put(b.claim("c"))
        forget(bench, claim)
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), ask=True)
        with pytest.raises(Conflict):
            await bench.act(detach)
        await bench.wait(4)
        assert bench.store.claim(claim.key) == claim
        there = bench.manager.pool.device(order().device)
        assert there is not None
        assert there.node == b.NODE
        await bench.act(detach)  # nothing is new by now; what is asked again is under way
        forget(bench, claim)
        await bench.act(detach)
        await bench.wait(4)
        await bench.act(detach)
        assert (await bench.resource()).state is ResourceState.DELETING
        assert bench.hands.unclaimed == {}

    play(scene)


def test_a_vendors_device_is_not_detached_by_who_has_not_heard_that_its_driver_offers_it() -> None:
    """Without a taint the scheduler gives it away while it is on its way out."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        offered = await bench.put(b.vendor_slice("uuid-0"))
        elsewhere = await bench.put(b.vendor_slice("uuid-1", on="n2"))
        forget(bench, offered)
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), ask=True)
        with pytest.raises(Conflict):
            await bench.act(detach)
        await bench.wait(4)
        assert bench.store.all(type(offered)) == (offered,)
        assert elsewhere not in bench.store.all(type(offered))
        there = bench.manager.pool.device(order().device)
        assert there is not None
        assert there.node == b.NODE

    play(scene)


@pytest.mark.parametrize("known", [True, False])
def test_a_taint_is_known_as_it_is_before_anything_rests_on_it(*, known: bool) -> None:
    """One that is gone keeps nobody from being given the device; one that is there would be left behind."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        taint = DeviceTaintRuleSpec(DeviceTaint("k8s.io/device-uuid", "GPU-7", "NoSchedule"))
        rule = DeviceTaintRule(metadata=ObjectMeta(name=f"{CR}-taint"), spec=taint)
        there = await bench.cluster.create(rule)
        if known:
            bench.store.put(there)
            await bench.cluster.delete(DeviceTaintRule, there.key, ANY)
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), ask=True)
        free = FreeResource(phase=P, because=WHY, resource=CR, version=version(made), taint=f"{CR}-taint")
        with pytest.raises(Conflict):
            await bench.act(detach if known else free)
        assert bench.store.taint_rule(f"{CR}-taint") == (None if known else there)
        await bench.act(detach)

    play(scene)


def guarding(uid: str) -> DeviceTaintRule:
    """The taint of a resource's device."""
    notes = {"jackfield.dev/tainted": "2026-11-17T00:00:00Z", "jackfield.dev/resource-uid": uid}
    taint = DeviceTaintRuleSpec(DeviceTaint("k8s.io/device-uuid", "GPU-7", "NoSchedule"))
    return DeviceTaintRule(metadata=ObjectMeta(name=f"{CR}-taint", annotations=notes), spec=taint)


def test_a_taint_is_not_written_for_a_resource_that_has_gone() -> None:
    """Who has not heard of its end would write what another lifts, again and again."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        put = PutTaint(phase=P, because=WHY, resource=CR, rule=guarding(made.uid))
        await bench.cluster.delete(ComposableResource, made.key, ANY)
        with pytest.raises(Conflict):
            await bench.act(put)
        assert bench.store.resource(CR) is None
        again = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        assert again.uid != made.uid
        with pytest.raises(Conflict):
            await bench.act(put)
        await bench.act(replace(put, rule=guarding(again.uid)))
        assert bench.store.taint_rule(f"{CR}-taint") is not None

    play(scene)


def test_a_taint_is_not_lifted_by_who_has_not_heard_of_the_resource_that_it_is_for() -> None:
    """The device would be given away while it is on its way out."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        forget(bench, made)
        rule = await bench.put(guarding(made.uid))
        drop = DropTaint(
            phase=P, because=WHY, name=rule.metadata.name, version=rule.metadata.resource_version, ask=CR
        )
        with pytest.raises(Conflict):
            await bench.act(drop)
        assert bench.store.resource(CR) == made
        await bench.cluster.delete(ComposableResource, made.key, ANY)
        await bench.put(b.resource(physical="0000"))  # another of the same name
        await bench.act(drop)
        with pytest.raises(Gone):
            await bench.client.read(DeviceTaintRule, rule.key)

    play(scene)


def test_what_came_between_a_decision_and_its_deed_is_news_whoever_asked_for_it() -> None:
    """Two who ask at the same time are told the same, and only for the first of them it would be new."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), ask=True)
        before = replace(bench.hands, decided=bench.store.news)
        await bench.put(b.claim("c", on="n2"))
        await act(replace(detach, order=replace(order(), node=NodeName("n3"))), before)
        await bench.put(b.claim("d"))
        with pytest.raises(Conflict):
            await act(replace(detach, order=replace(order(), id=OrderID("another"))), before)
        assert tuple(bench.hands.unclaimed) == ()

    play(scene)


def test_what_turns_out_to_be_gone_when_it_is_written_is_known_to_be_gone() -> None:
    """A replica that has not heard that a node is gone would quarrel about it with one that has."""

    async def scene(bench: Bench) -> None:
        known = await bench.put(b.node())
        await bench.client.delete(Node, known.key, ANY)
        assert bench.store.node(b.NODE) == known
        with pytest.raises(Gone):
            await bench.act(LabelNode(phase=P, because=WHY, node=b.NODE, labels={"room": "true"}))
        assert bench.store.node(b.NODE) is None

    play(scene)


def test_nobody_takes_a_device_that_another_has_in_books_he_was_not_told_of() -> None:
    async def scene(bench: Bench) -> None:
        waits = await bench.put(b.resource("a100-2", state=ResourceState.ATTACHING))
        other = await bench.put(b.resource(state=ResourceState.ATTACHING, physical="0000"))
        forget(bench, other)
        bench.store.put(waits)
        take = Adopt(
            phase=P, because=WHY, resource=waits.metadata.name, version=version(waits), device=order().device
        )
        with pytest.raises(Conflict):
            await bench.act(take)
        assert bench.store.resource(other.metadata.name) == other
        assert (await bench.resource(waits.metadata.name)).status.cdi_device_id == ""

    play(scene)

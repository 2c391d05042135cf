"""Every effect against the real embedded API: what is written, on which version, and what a conflict leaves alone."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from jackfield.codec.encoding import encoded
from jackfield.controllers.act import FAILURES_MAX
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DELETE_DEVICE,
    FINALIZER,
    LAST_USED,
    RELEASED,
    VISIBLE,
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    OtherSpec,
    Record,
    RequestState,
    ResourceState,
)
from jackfield.model.device import Device
from jackfield.model.fabric import Order, Traits
from jackfield.model.host import Facts
from jackfield.model.meta import Condition, condition, holds
from jackfield.model.names import (
    DeviceID,
    Key,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    Uid,
    Version,
    named,
    rfc3339,
    seconds,
)
from jackfield.model.node import FAILURES, Node
from jackfield.model.plan import (
    AddNode,
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    DeleteResource,
    Detach,
    ForgetClaim,
    FreeRequest,
    FreeResource,
    Hold,
    KeepRequest,
    LabelNode,
    LetGo,
    MarkState,
    MarkVictim,
    MarkVisible,
    Phase,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    RecordClaim,
    Release,
    RemoveCDI,
    Rescan,
    SetCondition,
    WriteCDI,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, RESCHEDULE
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import FactsChanged
from jackfield.ports import Apply, Conflict, Gone, Merge, Refused, Retry
from jackfield.sim.fabric import Call, Fate
from jackfield.sim.spec import Foreign
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, play

CR = "rack-a-a100-1"
DEVICE = b.device("a100-1")
CLAIM = Key("default", "c")
ANY = Version("")
OLD = Version("1")
"""A version that every object has left behind: the first write of a bench."""
P, WHY = Phase.WANTED, "of this"
D0 = PhysicalID("0000")
BLIND = Traits(chooses_device=True, knows_orders=False)


def order(number: str = "o-1", device: str = "0000") -> Order:
    return Order(OrderID(number), b.FABRIC, b.NODE, b.MODEL, PhysicalID(device))


def version(of: ComposableResource | ComposabilityRequest | ResourceClaim) -> Version:
    return of.metadata.resource_version


# --- every action that names a version is refused on another one, and then changes nothing


def put_request(at: Version) -> PutRequest:
    wish = b.request({"a100-1": "c"}, name="by-hand", version=at)
    return PutRequest(phase=P, because=WHY, request=wish)


def set_condition(at: Version, devices: tuple[DeviceID, ...] = (DEVICE,), kind: str = READY) -> SetCondition:
    return SetCondition(
        phase=P,
        because=WHY,
        claim=CLAIM,
        uid=Uid("u"),
        version=at,
        devices=devices,
        type=kind,
        message="attached",
    )


def forget(
    at: Version, uid: str = "u", node: str = "n1", devices: tuple[DeviceID, ...] = (DEVICE,)
) -> ForgetClaim:
    return ForgetClaim(
        phase=P,
        because=WHY,
        resource=CR,
        version=at,
        record=Record(CLAIM, Uid(uid), OLD),
        devices=devices,
        node=NodeName(node),
        at=b.NOW,
    )


def clear(at: Version, *, ask_pods: bool = False) -> ClearClaim:
    return ClearClaim(phase=P, because=WHY, claim=CLAIM, uid=Uid("u"), version=at, ask_pods=ask_pods)


def record(at: Version) -> RecordClaim:
    return RecordClaim(
        phase=P, because=WHY, resource=CR, version=at, record=Record(CLAIM, Uid("u"), Version("9")), at=b.NOW
    )


def release(at: Version, device: str = "", *, force: bool = False) -> Release:
    return Release(
        phase=P,
        because="nobody has it",
        node=b.NODE,
        resource=CR,
        version=at,
        device=PhysicalID(device),
        force=force,
    )


def put_status(at: Version, status: ComposabilityRequestStatus) -> PutRequestStatus:
    return PutRequestStatus(phase=P, because=WHY, request="by-hand", version=at, status=status)


def mark(at: Version, state: ResourceState = ResourceState.ONLINE) -> MarkState:
    return MarkState(phase=P, because=WHY, resource=CR, version=at, state=state)


def visible(at: Version) -> MarkVisible:
    return MarkVisible(phase=P, because=WHY, resource=CR, version=at, device="GPU-1", message="seen as GPU-1")


GUARDED: list[Callable[[Version], AnyAction]] = [
    put_request,
    set_condition,
    lambda at: forget(at, uid="another"),
    clear,
    record,
    release,
    mark,
    visible,
    lambda at: put_status(at, ComposabilityRequestStatus(RequestState.RUNNING)),
    lambda at: DeleteRequest(phase=P, because=WHY, name="by-hand", version=at),
    lambda at: DeleteResource(phase=P, because=WHY, resource=CR, version=at),
    lambda at: KeepRequest(phase=P, because=WHY, request="by-hand", version=at),
    lambda at: FreeRequest(phase=P, because=WHY, request="by-hand", version=at),
    lambda at: FreeResource(phase=P, because=WHY, resource=CR, version=at),
    lambda at: MarkVictim(phase=P, because=WHY, resource=CR, version=at),
    lambda at: CountAttempt(phase=P, because=WHY, claim=CLAIM, version=at, order="o", attempts=2),
    lambda at: Adopt(phase=P, because=WHY, resource=CR, version=at, device=D0),
    lambda at: Hold(phase=P, because=WHY, resource=CR, version=at, uid=Uid("u")),
    lambda at: LetGo(phase=P, because=WHY, resource=CR, version=at),
    lambda at: Attach(phase=P, because=WHY, resource=CR, version=at, order=order(), mark_sent=True),
    lambda at: Detach(phase=P, because=WHY, resource=CR, version=at, order=order(), mark_sent=True),
]


@pytest.mark.parametrize("made", GUARDED, ids=[type(made(OLD)).__name__ for made in GUARDED])
def test_an_action_on_another_version_is_a_conflict_and_changes_nothing(
    made: Callable[[Version], AnyAction],
) -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.node())
        await bench.put(b.claim("c"))
        await bench.put(b.request(1, finalizers=(FINALIZER,)))
        await bench.put(b.resource(finalizers=(FINALIZER,), holder="u"))
        before = bench.cluster.store.version
        with pytest.raises(Conflict):
            await bench.act(made(OLD))
        assert bench.cluster.store.version == before
        assert bench.deltas == []
        assert bench.manager.busy is False

    play(scene)


# --- the publisher


def test_a_slice_is_created_once_and_changed_by_version() -> None:
    async def scene(bench: Bench) -> None:
        new = replace(
            b.vendor_slice("GPU-1"), metadata=replace(b.node("s").metadata, uid=Uid(""), resource_version=ANY)
        )
        await bench.act(PutSlice(phase=P, because=WHY, slice=new))
        with pytest.raises(Conflict):
            await bench.act(PutSlice(phase=P, because=WHY, slice=new))
        (made,) = bench.store.all(ResourceSlice)
        assert isinstance(made, ResourceSlice)
        larger = replace(made, spec=replace(made.spec, devices=(*made.spec.devices, Device("gpu-1"))))
        await bench.act(PutSlice(phase=P, because=WHY, slice=larger))
        with pytest.raises(Conflict):
            await bench.act(PutSlice(phase=P, because=WHY, slice=made))
        found = await bench.cluster.read(ResourceSlice, named("s"))
        assert [one.name for one in found.spec.devices] == ["gpu-0", "gpu-1"]
        assert bench.store.all(ResourceSlice) == (found,)

    play(scene)


def test_labels_of_ours_come_and_go_and_others_stay() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.node(labels={"theirs": "yes", "old": "true"}))
        await bench.act(LabelNode(phase=P, because=WHY, node=b.NODE, labels={"new": "true", "old": None}))
        assert (await bench.node()).metadata.labels == {"theirs": "yes", "new": "true"}

    play(scene)


# --- the scaler


def test_a_request_is_created_resized_and_deleted() -> None:
    async def scene(bench: Bench) -> None:
        wish = b.request({"a100-1": "c"})
        wish = replace(wish, metadata=replace(wish.metadata, uid=Uid(""), resource_version=ANY))
        await bench.act(PutRequest(phase=P, because=WHY, request=wish))
        name = wish.metadata.name
        made = await bench.request(name)
        two = b.request({"a100-1": "c", "a100-2": "d"}, version=version(made))
        await bench.act(PutRequest(phase=P, because=WHY, request=two))
        resized = await bench.request(name)
        assert (resized.wanted, resized.spec.resource.size) == (two.wanted, 2)
        await bench.act(DeleteRequest(phase=P, because=WHY, name=name, version=version(resized)))
        with pytest.raises(Gone):
            await bench.cluster.read(ComposabilityRequest, named(name))

    play(scene)


def test_a_victim_is_marked() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource())
        await bench.act(MarkVictim(phase=P, because=WHY, resource=CR, version=version(made)))
        assert (await bench.resource()).metadata.annotations[DELETE_DEVICE] == "true"

    play(scene)


def test_the_record_names_the_claim_and_its_version() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource())
        await bench.act(record(version(made)))
        found = await bench.resource()
        assert found.record == Record(CLAIM, Uid("u"), Version("9"))
        assert found.metadata.annotations[LAST_USED] == rfc3339(b.NOW)

    play(scene)


def test_ready_lands_only_on_the_very_version_that_was_recorded() -> None:
    async def scene(bench: Bench) -> None:
        seen = await bench.put(b.claim("c"))
        note: dict[str, object] = {"metadata": {"annotations": {"somebody": "was here"}}}
        await bench.cluster.write(Merge(ResourceClaim, CLAIM, ANY, note))
        with pytest.raises(Conflict):
            await bench.act(set_condition(version(seen)))
        live = await bench.cluster.read(ResourceClaim, CLAIM)
        assert live.conditions(DEVICE) == ()
        await bench.act(set_condition(version(live)))
        (said,) = (await bench.claim()).conditions(DEVICE)
        assert (said.type, said.status, said.reason, said.message) == (READY, "True", READY, "attached")
        assert said.last_transition_time == rfc3339(bench.clock.now())

    play(scene)


def test_what_other_managers_say_of_devices_survives() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.claim("c", devices=("a100-1", "a100-2")))
        theirs = {
            "driver": DEVICE.driver,
            "pool": DEVICE.pool,
            "conditions": [encoded(Condition("Theirs", "True", "R", "", rfc3339(b.NOW)))],
        }
        for name in ("a100-1", "a100-2"):
            body: dict[str, object] = {"status": {"devices": [{**theirs, "device": name}]}}
            patch = Apply(ResourceClaim, CLAIM, ANY, body, f"driver of {name}", status=True)
            bench.store.put(await bench.cluster.write(patch))
        await bench.act(set_condition(version(await bench.claim())))
        found = await bench.claim()
        assert [one.type for one in found.conditions(DEVICE)] == ["Theirs", READY]
        assert [one.type for one in found.conditions(b.device("a100-2"))] == ["Theirs"]

    play(scene)


def test_a_condition_is_set_for_several_devices_at_once() -> None:
    async def scene(bench: Bench) -> None:
        both = (DEVICE, b.device("a100-2"))
        made = await bench.put(b.claim("c", devices=both))
        await bench.act(set_condition(version(made), both, RESCHEDULE))
        found = await bench.claim()
        assert all(holds(found.conditions(one), RESCHEDULE) for one in both)

    play(scene)


def test_attempts_are_counted_on_the_claim() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.claim("c"))
        await bench.act(
            CountAttempt(
                phase=P, because=WHY, claim=CLAIM, version=version(made), order="a100-1@n1:5", attempts=2
            )
        )
        assert (await bench.claim()).attempts == (2, "a100-1@n1:5")

    play(scene)


# --- forgetting


async def _recorded(bench: Bench) -> tuple[ResourceClaim, ComposableResource]:
    """A claim that holds the device, recorded; what we know of the claim is older than it is."""
    made = await bench.put(b.claim("c"))
    found = await bench.put(b.resource(record=made, used=b.NOW - 50))
    return made, found


@pytest.mark.parametrize(
    ("changes", "forgotten"),
    [
        ({}, False),
        ({"uid": "another"}, True),
        ({"node": "n2"}, True),
        ({"devices": (b.device("a100-2"),)}, True),
        ({"devices": ()}, True),
    ],
    ids=[
        "it holds",
        "another claim of its name",
        "another node",
        "another device",
        "another driver is the lock",
    ],
)
def test_a_record_goes_only_when_the_claim_read_live_does_not_hold(
    changes: dict[str, object], *, forgotten: bool
) -> None:
    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        action = forget(version(found), **{"uid": made.uid, **changes})  # type: ignore[arg-type] # a row's words
        if forgotten:
            await bench.act(action)
        else:
            with pytest.raises(Conflict, match="still holds"):
                await bench.act(action)
        after = await bench.resource()
        assert (after.record is None) == forgotten
        assert after.metadata.annotations[LAST_USED] == rfc3339(b.NOW if forgotten else Seconds(b.NOW - 50))

    play(scene)


def test_a_stale_view_of_the_claim_does_not_forget_it() -> None:
    """We believe that the claim is gone; it is there, and holds."""

    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        bench.store.forget(ResourceClaim, CLAIM)
        note: dict[str, object] = {"metadata": {"annotations": {"news": "yes"}}}
        await bench.cluster.write(Merge(ResourceClaim, CLAIM, ANY, note))
        with pytest.raises(Conflict):
            await bench.act(forget(version(found), uid=made.uid))
        assert (await bench.resource()).record is not None
        assert (await bench.claim()).metadata.annotations["news"] == "yes"

    play(scene)


def test_a_record_of_a_claim_that_is_gone_is_forgotten_and_so_is_the_claim() -> None:
    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        await bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        await bench.act(forget(version(found), uid=made.uid))
        assert (await bench.resource()).record is None
        assert bench.store.claim(CLAIM) is None

    play(scene)


# --- clearing


async def _used(bench: Bench) -> None:
    await bench.cluster.create(
        Pod(metadata=b.node("p").metadata.__class__(name="p", namespace="default"), spec=b.pod("p", "c").spec)
    )


async def _nobody(bench: Bench) -> None:
    del bench


@pytest.mark.parametrize(
    ("ask_pods", "users", "cleared"),
    [(False, _nobody, True), (False, _used, True), (True, _nobody, True), (True, _used, False)],
)
def test_a_claim_that_is_ready_is_cleared_only_if_no_pod_is_found_live(
    users: Callable[[Bench], Awaitable[None]], *, ask_pods: bool, cleared: bool
) -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.claim("c", ready=True))
        await users(bench)  # nobody has told us
        if cleared:
            await bench.act(clear(version(made), ask_pods=ask_pods))
        else:
            with pytest.raises(Conflict, match="a pod uses claim default/c"):
                await bench.act(clear(version(made), ask_pods=ask_pods))
        found = await bench.claim()
        assert (found.status.allocation is None) == cleared
        assert (found.status.devices == ()) == cleared

    play(scene)


# --- requests by hand


def test_our_finalizer_comes_and_goes_beside_others() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.request(1, finalizers=("theirs.example.com/x",)))
        await bench.act(KeepRequest(phase=P, because=WHY, request="by-hand", version=version(made)))
        kept = await bench.request()
        assert kept.metadata.finalizers == ("theirs.example.com/x", FINALIZER)
        await bench.act(FreeRequest(phase=P, because=WHY, request="by-hand", version=version(kept)))
        assert (await bench.request()).metadata.finalizers == ("theirs.example.com/x",)

    play(scene)


def test_a_request_that_was_kept_is_seen_to_go() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.request(1, finalizers=(FINALIZER,)))
        await bench.cluster.delete(ComposabilityRequest, named("by-hand"), ANY)
        live = await bench.cluster.read(ComposabilityRequest, named("by-hand"))
        await bench.act(FreeRequest(phase=P, because=WHY, request="by-hand", version=version(live)))
        assert bench.store.request("by-hand") is None
        with pytest.raises(Gone):
            await bench.cluster.read(ComposabilityRequest, named("by-hand"))

    play(scene)


FULL = b.request(2, force=True, other=OtherSpec(milli_cpu=5, memory=6)).spec.resource
BARE = b.request(0, on="", other=OtherSpec(memory=7)).spec.resource
BEFORE = ComposabilityRequestStatus(
    RequestState.UPDATING,
    error="1 more",
    resources={
        "gone": ChildStatus("Online", "GPU-1", "1", b.NODE),
        "kept": ChildStatus("Attaching", "GPU-2", "2", b.NODE, "slow"),
    },
    scalar_resource=FULL,
)
AFTER = ComposabilityRequestStatus(
    RequestState.RUNNING,
    resources={"kept": ChildStatus(), "new": ChildStatus("Online")},
    scalar_resource=BARE,
)


@pytest.mark.parametrize("shown", [(BEFORE,), (BEFORE, AFTER), (AFTER, BEFORE), (BEFORE, BEFORE)])
def test_what_is_shown_on_a_request_is_all_that_is_shown(
    shown: tuple[ComposabilityRequestStatus, ...],
) -> None:
    """Else a merge would keep what is not there any more, and it would be shown again and again."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.request(1))
        for status in shown:
            await bench.act(put_status(version(made), status))
            made = await bench.request()
            assert made.status == status

    play(scene)


def test_required_fields_are_shown_whatever_they_are() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.request(1))
        await bench.act(put_status(version(made), AFTER))
        raw = bench.cluster.store.get(ComposabilityRequest, named("by-hand")).raw
        status = raw["status"]
        assert status["resources"]["kept"] == {"state": ""}
        assert status["scalarResource"]["size"] == 0

    play(scene)


# --- the operator


def test_a_resource_is_created_once() -> None:
    async def scene(bench: Bench) -> None:
        new = b.resource()
        new = ComposableResource(
            metadata=replace(new.metadata, uid=Uid(""), resource_version=ANY, finalizers=(FINALIZER,)),
            spec=new.spec,
        )
        await bench.act(PutResource(phase=P, because=WHY, resource=new))
        assert (await bench.resource()).device == DEVICE
        with pytest.raises(Conflict):
            await bench.act(PutResource(phase=P, because=WHY, resource=new))

    play(scene)


def test_a_resource_that_is_deleted_stays_until_it_is_free() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(finalizers=(FINALIZER,)))
        await bench.act(DeleteResource(phase=P, because=WHY, resource=CR, version=version(made)))
        live = await bench.cluster.read(ComposableResource, named(CR))
        assert live.deleting
        bench.store.put(live)
        await bench.act(FreeResource(phase=P, because=WHY, resource=CR, version=version(live)))
        assert bench.store.resource(CR) is None
        with pytest.raises(Gone):
            await bench.cluster.read(ComposableResource, named(CR))

    play(scene)


def test_a_resource_that_nobody_deleted_is_deleted_before_it_is_freed() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(finalizers=(FINALIZER,)))
        await bench.act(FreeResource(phase=P, because=WHY, resource=CR, version=version(made)))
        live = await bench.cluster.read(ComposableResource, named(CR))
        assert live.deleting
        assert live.metadata.finalizers == (FINALIZER,)

    play(scene)


def test_a_resource_that_we_do_not_know_is_gone() -> None:
    async def scene(bench: Bench) -> None:
        with pytest.raises(Gone):
            await bench.act(FreeResource(phase=P, because=WHY, resource=CR, version=OLD))

    play(scene)


def test_a_state_is_written_and_an_old_error_goes() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING, error="old", physical="1"))
        await bench.act(mark(version(made)))
        found = await bench.resource()
        assert (found.state, found.status.error, found.status.cdi_device_id) == (
            ResourceState.ONLINE,
            "",
            "1",
        )
        await bench.act(replace(mark(version(found), ResourceState.DETACHING), error="new"))
        assert (await bench.resource()).status.error == "new"

    play(scene)


def test_an_attach_writes_the_device_when_it_is_done() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        attach = Attach(phase=P, because=WHY, resource=CR, version=version(made), order=order())
        await bench.act(attach)
        assert await bench.resource() == made
        assert bench.moved == []
        await bench.wait(6)
        await bench.act(attach)
        found = await bench.resource()
        (device,) = (one for one in bench.manager.inventory().devices if one.id == D0)
        assert (found.status.cdi_device_id, found.status.device_id) == (D0, device.serial)
        assert device.node == b.NODE
        assert bench.moved == [b.FABRIC]

    play(scene)


def test_an_attach_that_failed_is_shown() -> None:
    async def scene(bench: Bench) -> None:
        bench.refuse("n1")
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        attach = Attach(phase=P, because=WHY, resource=CR, version=version(made), order=order())
        await bench.act(attach)
        await bench.wait(6)
        await bench.act(attach)
        assert (await bench.resource()).status.error == "the link to n1 does not come up"
        assert bench.moved == [b.FABRIC]

    play(scene)


def test_an_attach_that_is_refused_is_shown_and_told() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        await bench.world.fabrics[b.FABRIC].attach(order())
        elsewhere = replace(order(), node=NodeName("n7"))
        with pytest.raises(Refused):
            await bench.act(Attach(phase=P, because=WHY, resource=CR, version=version(made), order=elsewhere))
        assert (await bench.resource()).status.error == "order o-1 was placed for A100 on n1"

    play(scene)


def test_a_detach_that_is_refused_is_shown_and_told() -> None:
    async def scene(bench: Bench) -> None:
        (theirs,) = (one.id for one in bench.manager.inventory().devices if not one.ours)
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical=theirs))
        detach = Detach(
            phase=P,
            because=WHY,
            resource=CR,
            version=version(made),
            order=order(device=theirs),
            mark_sent=True,
        )
        with pytest.raises(Refused):
            await bench.act(detach)
        found = await bench.resource()
        assert (found.state, found.status.error) == (
            ResourceState.DETACHING,
            f"device {theirs} was attached by somebody else",
        )

    play(scene, BLIND, foreign=(Foreign(b.NODE, b.MODEL),))


def test_a_manager_without_ids_is_asked_only_after_it_was_written_that_it_would_be() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        await bench.wait(0.25)
        await bench.act(
            Attach(
                phase=P,
                because=WHY,
                resource=CR,
                version=version(made),
                order=order(device=""),
                mark_sent=True,
            )
        )
        found = await bench.resource()
        assert found.sent == ("attach", bench.clock.now())
        assert bench.manager.busy

    play(scene, BLIND)


def test_what_a_manager_without_ids_answers_is_left_to_the_inventory() -> None:
    """Another slot may have taken the device meanwhile; whoever believed the answer would share it."""

    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        await bench.act(
            Attach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), mark_sent=True)
        )
        assert (await bench.resource()).status.cdi_device_id == ""
        assert bench.moved == [b.FABRIC]

    play(scene, Traits(knows_orders=False))


def test_an_unclaimed_device_is_taken() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        adopt = Adopt(phase=P, because=WHY, resource=CR, version=version(made), device=D0, serial="GPU-1")
        await bench.act(adopt)
        found = await bench.resource()
        assert (found.status.cdi_device_id, found.status.device_id) == (D0, "GPU-1")
        await bench.act(replace(adopt, version=version(found), serial=""))
        assert (await bench.resource()).status.device_id == ""

    play(scene)


def test_a_detach_ends_a_resource_when_it_is_done() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order())
        await bench.act(detach)
        assert await bench.resource() == made
        await bench.wait(4)
        await bench.act(detach)
        assert (await bench.resource()).state is ResourceState.DELETING
        assert bench.moved == [b.FABRIC]
        assert all(not one.node for one in bench.manager.inventory().devices)

    play(scene)


def test_a_detach_that_failed_is_shown_and_nothing_ends() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(6)
        bench.manager.refusals = replace(bench.manager.refusals, detach=1.0)
        detach = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order())
        await bench.act(detach)
        await bench.wait(4)
        await bench.act(detach)
        found = await bench.resource()
        assert (found.state, found.status.error) == (
            ResourceState.DETACHING,
            "device 0000 did not come off n1",
        )

    play(scene)


def test_without_ids_only_quiet_ends_a_resource() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))
        await bench.act(
            Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), mark_sent=True)
        )
        found = await bench.resource()
        assert found.state is ResourceState.DETACHING
        assert found.sent == ("detach", bench.clock.now())
        assert bench.moved == [b.FABRIC]

    play(scene, BLIND)


class Deaf:
    """Every call fails before it reaches anybody."""

    def fate(self, call: Call) -> Fate:
        return Fate(error=f"{call.verb} does not get through")


def test_a_call_that_fails_leaves_the_resource_as_it_is() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        with pytest.raises(Retry, match="attach does not get through"):
            await bench.act(Attach(phase=P, because=WHY, resource=CR, version=version(made), order=order()))
        assert await bench.resource() == made

    play(scene, faults=Deaf())


def test_blame_is_kept_by_device_the_last_time_counts() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(b.node(failures={"a100-1": b.NOW - 500, "a100-2": b.NOW - 400}))
        await bench.act(Blame(phase=P, because=WHY, node=b.NODE, device=DEVICE, at=b.NOW))
        await bench.node()
        assert [(one.device.device, one.at) for one in bench.store.failures_on(b.NODE)] == [
            ("a100-2", b.NOW - 400),
            ("a100-1", b.NOW),
        ]

    play(scene)


def test_a_node_remembers_so_many_failures() -> None:
    async def scene(bench: Bench) -> None:
        await bench.put(
            b.node(failures={f"a100-{number}": b.NOW - 100 + number for number in range(FAILURES_MAX)})
        )
        await bench.act(Blame(phase=P, because=WHY, node=b.NODE, device=b.device("a100-new"), at=b.NOW))
        lines = (await bench.node()).metadata.annotations[FAILURES].splitlines()
        assert len(lines) == FAILURES_MAX
        assert "a100-new" in lines[-1]
        assert "a100-1=" in lines[0]

    play(scene)


# --- the node


def test_a_rescan_is_looked_at() -> None:
    async def scene(bench: Bench) -> None:
        await bench.world.fabrics[b.FABRIC].attach(order())
        await bench.wait(10)
        assert bench.host.seen() == ()
        await bench.act(Rescan(phase=P, because=WHY, node=b.NODE, resource=CR))
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), ())
        assert len(bench.host.seen()) == 1
        assert bench.deltas == [FactsChanged(b.NODE)]

    play(scene)


def test_what_is_seen_is_a_condition_beside_others() -> None:
    async def scene(bench: Bench) -> None:
        old = Condition("Theirs", "True", "R", "m", rfc3339(b.NOW))
        made = await bench.put(b.resource(state=ResourceState.ATTACHING, conditions=(old,)))
        await bench.act(visible(version(made)))
        found = await bench.resource()
        assert found.status.device_id == "GPU-1"
        assert [one.type for one in found.status.conditions] == ["Theirs", VISIBLE]
        said = condition(found.status.conditions, VISIBLE)
        assert said is not None
        assert (said.status, said.reason, said.message) == ("True", VISIBLE, "seen as GPU-1")
        assert seconds(said.last_transition_time) == bench.clock.now()

    play(scene)


async def _seen_and_prepared(bench: Bench) -> ComposableResource:
    await bench.world.fabrics[b.FABRIC].attach(order())
    await bench.wait(10)
    await bench.host.rescan()
    await bench.act(
        WriteCDI(
            phase=P,
            because=WHY,
            claim=CLAIM,
            node=b.NODE,
            uid=Uid("u"),
            device=DEVICE,
            physical=D0,
            cdi="GPU-1",
        )
    )
    return await bench.put(b.resource(state=ResourceState.DETACHING, physical="0000"))


def test_what_is_prepared_is_in_the_checkpoint_and_comes_out_again() -> None:
    async def scene(bench: Bench) -> None:
        await _seen_and_prepared(bench)
        (prepared,) = bench.host.prepared()
        assert (prepared.uid, prepared.claim, prepared.physical, prepared.device) == (
            "u",
            CLAIM,
            D0,
            str(DEVICE),
        )
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), (prepared,))
        await bench.act(RemoveCDI(phase=P, because=WHY, claim=CLAIM, node=b.NODE, uid=Uid("u")))
        assert bench.host.prepared() == ()
        assert bench.store.facts(b.NODE) == Facts(bench.host.seen(), ())

    play(scene)


@pytest.mark.parametrize("force", [False, True])
def test_a_device_in_use_is_released_only_by_force(*, force: bool) -> None:
    async def scene(bench: Bench) -> None:
        made = await _seen_and_prepared(bench)
        if force:
            await bench.act(release(version(made), "0000", force=True))
        else:
            with pytest.raises(Refused, match="is prepared for default/c"):
                await bench.act(release(version(made), "0000"))
        assert (bench.host.seen() == ()) == force
        found = await bench.resource()
        assert holds(found.status.conditions, RELEASED) == force
        known = bench.store.facts(b.NODE)
        assert known is not None
        assert known.seen == bench.host.seen()

    play(scene)


def test_what_was_never_attached_is_released_without_asking_the_node() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING))
        await bench.act(release(version(made)))
        said = condition((await bench.resource()).status.conditions, RELEASED)
        assert said is not None
        assert (said.status, said.message) == ("True", "nobody has it")
        assert bench.store.facts(b.NODE) is None

    play(scene)


def test_the_holder_is_written_and_cleared() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource())
        await bench.act(Hold(phase=P, because=WHY, resource=CR, version=version(made), uid=Uid("u")))
        held = await bench.resource()
        assert held.holder == "u"
        await bench.act(LetGo(phase=P, because=WHY, resource=CR, version=version(held)))
        assert (await bench.resource()).holder == ""

    play(scene)


def test_a_node_is_ordered_by_its_object() -> None:
    async def scene(bench: Bench) -> None:
        new = Node(metadata=replace(b.node("big-1").metadata, uid=Uid(""), resource_version=ANY))
        await bench.act(AddNode(phase=P, because=WHY, node=new))
        assert bench.store.node(NodeName("big-1")) is not None
        with pytest.raises(Conflict):
            await bench.act(AddNode(phase=P, because=WHY, node=new))

    play(scene)

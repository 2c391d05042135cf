"""Effects on claims, slices and nodes, against the real embedded API; and what a conflict leaves alone."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from jackfield.codec.encoding import encoded
from jackfield.controllers.act import act
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DELETE_DEVICE,
    FINALIZER,
    HOLDER,
    LAST_USED,
    ComposabilityRequest,
    ComposableResource,
    Record,
)
from jackfield.model.device import Device
from jackfield.model.meta import Condition, holds
from jackfield.model.names import (
    Key,
    Seconds,
    Uid,
    Version,
    named,
    rfc3339,
)
from jackfield.model.plan import (
    AnyAction,
    CountAttempt,
    DeleteRequest,
    LabelNode,
    MarkVictim,
    PutRequest,
    PutSlice,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, RESCHEDULE
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Apply, Conflict, Gone, Merge
from jackfield.testing import builders as b
from unit.controllers.actions import (
    ANY,
    CLAIM,
    CR,
    DEVICE,
    GUARDED,
    OLD,
    WHY,
    P,
    clear,
    forget,
    record,
    set_condition,
    version,
)
from unit.controllers.bench import Bench, T, play


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


class Overtaken:
    """The cluster, which says that a claim is gone after we have heard of the next one of its name."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.watch, self.write = bench.client.watch, bench.client.write
        self.create, self.delete = bench.client.create, bench.client.delete

    async def read(self, kind: type[T], key: Key) -> T:
        await self._bench.cluster.delete(kind, key, ANY)
        await self._bench.put(b.claim("c"))
        raise Gone(str(key))


def test_a_claim_that_is_gone_does_not_take_the_next_of_its_name_with_it() -> None:
    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        hands = replace(bench.hands, world=replace(bench.world, cluster=Overtaken(bench)))
        await act(forget(version(found), uid=made.uid), hands)
        assert (await bench.resource()).record is None
        assert (await bench.claim()).uid != made.uid

    play(scene)


def test_a_stale_view_of_the_claim_does_not_forget_it() -> None:
    """We believe that the claim is gone; it is there, and holds."""

    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        bench.store.remove(made)
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


def test_a_holder_that_is_left_on_a_node_that_is_gone_goes_with_the_record() -> None:
    async def scene(bench: Bench) -> None:
        made, found = await _recorded(bench)
        held = await bench.cluster.write(
            Merge(
                ComposableResource,
                named(CR),
                version(found),
                {"metadata": {"annotations": {HOLDER: made.uid}}},
            )
        )
        await bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        await bench.act(forget(held.metadata.resource_version, uid=made.uid))
        assert (await bench.resource()).holder == ""

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
        told = [(about.key, words.type, words.reason) for about, words in bench.told]
        assert told == ([(Key("default", "c"), "Normal", "Cleared")] if cleared else [])

    play(scene)

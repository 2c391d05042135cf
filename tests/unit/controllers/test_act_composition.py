"""Effects on requests and resources, and on the fabric behind them, against the real embedded API."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.act import FAILURES_MAX, SENDING_SECONDS_MAX, act
from jackfield.model.composition import (
    FINALIZER,
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    OtherSpec,
    RequestState,
    ResourceState,
)
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.names import (
    NodeName,
    Uid,
    named,
)
from jackfield.model.node import FAILURES
from jackfield.model.plan import (
    Adopt,
    Attach,
    Blame,
    DeleteResource,
    Detach,
    FreeRequest,
    FreeResource,
    KeepRequest,
    PutResource,
)
from jackfield.ports import Apply, Conflict, Gone, Merge, Refused, Retry
from jackfield.sim.fabric import Call, Fate
from jackfield.sim.spec import Foreign
from jackfield.testing import builders as b
from unit.controllers.actions import ANY, BLIND, CR, D0, DEVICE, OLD, WHY, P, mark, order, put_status, version
from unit.controllers.bench import Bench, play

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


class Overtaken:
    """The cluster, whose answers come after what happened next: somebody has made one of the same name."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.watch, self.read = bench.client.watch, bench.client.read
        self.create, self.delete = bench.client.create, bench.client.delete

    async def write(self, patch: Merge | Apply) -> Object:
        answer = await self._bench.client.write(patch)
        self._bench.store.remove(answer)
        await self._bench.put(b.request(2, name="by-hand"))
        return answer


def test_a_request_that_goes_does_not_take_the_next_of_its_name_with_it() -> None:
    """The next one would be seen by nobody until the process ends: seen when requests came and went, in a storm."""

    async def scene(bench: Bench) -> None:
        await bench.put(b.request(1, finalizers=(FINALIZER,)))
        await bench.cluster.delete(ComposabilityRequest, named("by-hand"), ANY)
        live = await bench.cluster.read(ComposabilityRequest, named("by-hand"))
        hands = replace(bench.hands, world=replace(bench.world, cluster=Overtaken(bench)))
        await act(FreeRequest(phase=P, because=WHY, request="by-hand", version=version(live)), hands)
        known = bench.store.request("by-hand")
        assert known is not None
        assert known.spec.resource.size == 2

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


def test_an_attach_that_is_refused_is_shown_and_told_and_written_once() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.ATTACHING))
        await bench.world.fabrics[b.FABRIC].attach(order())
        elsewhere = replace(order(), node=NodeName("n7"))
        attach = Attach(phase=P, because=WHY, resource=CR, version=version(made), order=elsewhere)
        with pytest.raises(Refused):
            await bench.act(attach)
        told, written = await bench.resource(), bench.client.writes
        assert told.status.error == "order o-1 was placed for A100 on n1"
        with pytest.raises(Refused):
            await bench.act(replace(attach, version=version(told)))
        assert bench.client.writes == written

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
        assert found.sent == ("attach", bench.clock.now() + SENDING_SECONDS_MAX)
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
        made = await bench.put(b.resource(state=ResourceState.ATTACHING, error="the call failed"))
        adopt = Adopt(phase=P, because=WHY, resource=CR, version=version(made), device=D0, serial="GPU-1")
        await bench.act(adopt)
        found = await bench.resource()
        assert (found.status.cdi_device_id, found.status.device_id) == (D0, "GPU-1")
        assert found.status.error == ""  # it has a device: nothing that was said is a reason to give it up
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


def test_a_resource_goes_with_the_answer_to_its_last_detach() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING, finalizers=(FINALIZER,)))
        await bench.cluster.delete(ComposableResource, made.key, version(made))
        going = await bench.cluster.read(ComposableResource, named(CR))
        bench.store.put(going)
        last = Detach(phase=P, because=WHY, resource=CR, version=version(going), order=order(), last=True)
        await bench.act(last)
        assert bench.store.resource(CR) is None
        with pytest.raises(Gone):
            await bench.cluster.read(ComposableResource, named(CR))

    play(scene)


def test_a_resource_whose_end_nobody_asked_for_is_only_marked_by_its_last_detach() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.resource(state=ResourceState.DETACHING))
        last = Detach(phase=P, because=WHY, resource=CR, version=version(made), order=order(), last=True)
        await bench.act(last)
        assert (await bench.resource()).state is ResourceState.DELETING

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
        assert found.sent == ("detach", bench.clock.now() + SENDING_SECONDS_MAX)
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

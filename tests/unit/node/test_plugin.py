"""The plugin on its node, whole: seen, prepared, released, restarted, as the kubelet and the API see it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from jackfield.cli.clock import WallClock
from jackfield.kube.permissions import Role
from jackfield.model.composition import RELEASED, VISIBLE, ResourceState
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, named
from jackfield.model.node import Node
from jackfield.model.policy import DRIVER, LOCAL_DRIVER, LocalDevices, Policy
from jackfield.node.heartbeat import Heartbeat
from jackfield.ports import EVERYTHING, Change, Cluster, Rewound, Selection, Synced
from jackfield.testing import builders as b
from jackfield.testing.kubelet import Claim, Reported
from jackfield.testing.sysfs import PciDevice, Process
from unit.kube.test_permissions import Watched, granted
from unit.node.stage import ADDRESS, CARD, Stage, on_stage


def _leases(stage: Stage) -> list[Lease]:
    return [one.object for one in stage.site.store.list(Lease).items if isinstance(one.object, Lease)]


def test_a_node_gives_a_sign_of_life_when_the_kubelet_has_taken_its_plugin() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.plugin() as plugin:
            assert plugin.ready() == "waiting for the API server to tell of this node's ComposableResources"
            assert _leases(stage) == []
            await stage.kubelet.registered(DRIVER)
            await stage.until(lambda: _leases(stage) != [])
            (lease,) = _leases(stage)
            node = await stage.site.cluster.read(Node, named(b.NODE))
            assert lease.spec.holder_identity == b.NODE
            assert [one.uid for one in lease.metadata.owner_references] == [node.uid]
            assert plugin.ready() == ""
            assert stage.notes == ["serves n1, which has 0 devices"]

    on_stage(scene)


def test_a_plugin_that_is_of_no_use_gives_no_sign_of_life() -> None:
    async def scene(stage: Stage) -> None:
        trouble, asked = ["the kubelet does not look"], asyncio.Event()

        def ask() -> str:
            asked.set()
            return trouble[0]

        heartbeat = Heartbeat(b.NODE, stage.site.client("heart"), WallClock(), ask)
        task = asyncio.create_task(heartbeat.run())
        await asked.wait()
        asked.clear()
        await asked.wait()  # the second time: whatever the first one led to has been done
        assert _leases(stage) == []
        trouble[0] = ""
        await stage.until(lambda: _leases(stage) != [])
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    on_stage(scene)


class _Pauses:
    """A clock that remembers how long somebody wants to wait, and waits no time."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def now(self) -> Seconds:
        return WallClock().now()

    async def sleep(self, duration: Seconds) -> None:
        self.asked.append(duration)
        await WallClock().sleep(Seconds(0.001))


def test_signs_of_life_are_as_frequent_as_the_policy_needs_them() -> None:
    """Five thousand nodes that say every ten seconds that they live keep an API server busy with nothing else."""

    async def scene(stage: Stage) -> None:
        clock = _Pauses()
        heartbeat = Heartbeat(b.NODE, stage.site.client("heart"), clock, lambda: "")
        task = asyncio.create_task(heartbeat.run())
        await stage.until(lambda: clock.asked != [])
        assert clock.asked[0] == 10.0
        assert _leases(stage)[0].spec.lease_duration_seconds == 40
        heartbeat.duration = Seconds(240.0)
        await stage.until(lambda: 60.0 in clock.asked)
        assert _leases(stage)[0].spec.lease_duration_seconds == 240
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    on_stage(scene)


def test_a_device_that_is_attached_is_seen_by_its_serial_number_wherever_it_comes_up() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            await stage.put(
                b.resource(state=ResourceState.ATTACHING, physical="block-7", uuid="00-00-00-00-00-12-34-56")
            )
            await stage.until(lambda: stage.machine.rescans > 0)
            stage.machine.plug(
                PciDevice("0000:a1:00.0", driver="nvidia", uuid="GPU-new-1", minor=0, serial=0x123456)
            )
            await stage.until(lambda: stage.said(VISIBLE)[0] == "True")
            assert stage.said(VISIBLE)[1] == "seen as GPU-new-1 at 0000:a1:00.0"
            assert (await stage.resource()).status.device_id == "GPU-new-1"

    on_stage(scene)


def test_a_device_of_another_node_is_none_of_our_business() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            await stage.put(b.resource(state=ResourceState.ATTACHING, physical="GPU-ab12-cd", on="n2"))
            await stage.put(b.resource("a100-2", state=ResourceState.ATTACHING, physical="block-9"))
            await stage.until(lambda: stage.machine.rescans > 0)
            assert stage.said(VISIBLE) == ("", "")

    on_stage(scene)


def test_a_claim_is_prepared_with_its_device_and_undone_again() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        async with stage.plugin() as plugin:
            await stage.kubelet.registered(DRIVER)
            given = await stage.prepare(claim)
            assert given.startswith(f"{DRIVER}/")
            assert await stage.prepare(claim) == given
            assert stage.holder() == claim.uid
            (file,) = stage.files()
            text = (stage.site.places.cdi / file).read_text()
            assert "JACKFIELD_DEVICE_A100_1=GPU-ab12-cd" in text
            assert f"{stage.machine.dev}/nvidia0" in text
            assert b"jackfield_driver_prepared_claims" in plugin.figures()
            (stage.site.places.cdi / file).unlink()
            assert await stage.prepare(claim) == given
            assert stage.files() == [file]
            assert await stage.unprepare(claim) == ""
            assert await stage.unprepare(claim) == ""
            assert (stage.holder(), stage.files()) == ("", [])

    on_stage(scene)


def test_the_kubelet_hears_that_a_prepared_device_is_gone_and_that_it_is_back() -> None:
    where = (b.FABRIC, "a100-1")

    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        async with stage.plugin():
            heard = await stage.kubelet.registered(DRIVER)
            await stage.prepare(claim)
            await stage.kubelet.until(lambda: heard.health == {where: Reported("HEALTHY")})
            stage.machine.pull(CARD.address)
            gone = "n1 does not see it any more: it was pulled out, or fell off the bus"
            await stage.kubelet.until(lambda: heard.health == {where: Reported("UNHEALTHY", gone)})
            stage.machine.plug(CARD)
            await stage.kubelet.until(lambda: heard.health == {where: Reported("HEALTHY")})
            await stage.kubelet.unprepare(DRIVER, Claim("default", claim.metadata.name, claim.uid))
            await stage.kubelet.until(lambda: heard.health == {})

    on_stage(scene)


def test_what_may_not_be_prepared_is_refused_in_words() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim, other = await stage.claim(), await stage.claim("other")
        await stage.lent(claim)
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            assert await stage.prepare(other) == "waiting for a100-1 to be recorded for this claim"
            await stage.prepare(claim)
            await stage.site.cluster.delete(type(claim), claim.key, claim.metadata.resource_version)
            assert await stage.prepare(claim) == "claim default/c does not exist"
            assert await stage.unprepare(claim) == ""

    on_stage(scene)


def test_a_plugin_that_starts_again_repairs_the_holder_first() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            await stage.prepare(claim)
        await stage.kubelet.gone(DRIVER)
        await stage.forget_holder()
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            assert stage.holder() == claim.uid
            assert await stage.unprepare(claim) == ""
            assert stage.holder() == ""

    on_stage(scene)


class Restored:
    """A cluster that is put back to a backup when somebody says so; all but watching is another's."""

    def __init__(self, other: Cluster, restored: asyncio.Event) -> None:
        self.read, self.create, self.write, self.delete = other.read, other.create, other.write, other.delete
        self._other = other
        self._restored = restored

    async def watch(
        self, kind: type[Object], selection: Selection = EVERYTHING
    ) -> AsyncGenerator[Change, None]:
        async for change in self._other.watch(kind, selection):
            yield change
            if isinstance(change, Synced):
                break
        await self._restored.wait()
        self._restored.clear()
        raise Rewound("from 100 to 50")


def test_a_plugin_ends_when_a_backup_was_restored_and_repairs_the_holder_when_it_starts() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        restored = asyncio.Event()

        async def restore() -> None:
            async with stage.plugin(wrapped=lambda one: Restored(one, restored)):
                await stage.kubelet.registered(DRIVER)
                await stage.prepare(claim)
                await stage.forget_holder()
                restored.set()
                await stage.kubelet.gone(DRIVER)

        with pytest.raises(ExceptionGroup) as ended:
            await restore()
        assert ended.group_contains(Rewound)
        assert stage.holder() == ""
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            assert stage.holder() == claim.uid

    on_stage(scene)


def test_a_holder_whose_claim_has_ended_meanwhile_is_cleared() -> None:
    async def scene(stage: Stage) -> None:
        claim = await stage.claim()
        await stage.lent(claim, holder=claim.uid)
        await stage.site.cluster.delete(type(claim), claim.key, claim.metadata.resource_version)
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            assert stage.holder() == ""

    on_stage(scene)


def test_a_damaged_checkpoint_is_told_and_clears_nobody() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            await stage.prepare(claim)
        await stage.kubelet.gone(DRIVER)
        (checkpoint,) = (stage.site.places.plugins / DRIVER).glob("checkpoint*")
        checkpoint.write_bytes(b"rubbish\n")
        await stage.site.cluster.delete(type(claim), claim.key, claim.metadata.resource_version)
        async with stage.plugin() as plugin:
            await stage.kubelet.registered(DRIVER)
            assert plugin.findings
            assert stage.notes[1 : 1 + len(plugin.findings)] == [*plugin.findings]
            assert (stage.holder(), len(stage.files())) == (claim.uid, 1)
            assert await stage.unprepare(claim) == ""
            assert (stage.holder(), stage.files()) == ("", [])

    on_stage(scene)


@pytest.mark.parametrize("held", [False, True])
def test_a_device_leaves_when_nobody_holds_it(*, held: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        if held:
            stage.machine.run(Process(4711, opens=("/dev/nvidia0",)))
        await stage.put(b.resource(state=ResourceState.DETACHING, physical="block-7", uuid="GPU-ab12-cd"))
        async with stage.plugin(Policy(poll_seconds=Seconds(0.02))) as plugin:
            await stage.until(lambda: stage.said(RELEASED)[0] != "")
            if held:
                used = f"device GPU-ab12-cd at {ADDRESS} is used by python (pid 4711)"
                assert stage.said(RELEASED) == ("False", used)
                stage.machine.end(4711)
                await stage.until(lambda: stage.said(RELEASED)[0] == "True")
            assert stage.said(RELEASED) == ("True", "nothing on the node uses it")
            assert plugin.host.seen() == ()

    on_stage(scene)


# --- the node's own devices

OURS = Policy(local_devices=(LocalDevices("gpu", vendor="10de"),))


def test_what_no_fabric_lent_is_published_and_prepared() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        stage.machine.plug(PciDevice("0000:18:00.0", driver="nvidia", uuid="GPU-lent-1", minor=1))
        await stage.put(b.resource(physical="block-7", uuid="GPU-lent-1"))
        async with stage.plugin(OURS) as plugin:
            await stage.kubelet.registered(LOCAL_DRIVER)
            await stage.until(lambda: stage.published() == ["gpu-0000-17-00-0"])
            stage.machine.plug(PciDevice("0000:19:00.0", driver="nvidia", uuid="GPU-own-2", minor=2))
            await stage.until(lambda: stage.published() == ["gpu-0000-17-00-0", "gpu-0000-19-00-0"])
            await stage.put(b.resource("a100-2", physical="GPU-own-2"))
            await stage.until(lambda: stage.published() == ["gpu-0000-17-00-0"])
            claim = await stage.put(b.claim("own", devices=(f"{LOCAL_DRIVER}/n1/gpu-0000-17-00-0",)))
            outcome = (await stage.kubelet.prepare(LOCAL_DRIVER, stage.of(claim)))[claim.uid]
            assert outcome.error == ""
            (file,) = stage.files()
            assert (
                "JACKFIELD_DEVICE_GPU_0000_17_00_0=GPU-ab12-cd" in (stage.site.places.cdi / file).read_text()
            )
            figures = plugin.figures().decode()
            assert 'jackfield_driver_devices{driver="node.jackfield.dev"} 1.0' in figures
            assert 'jackfield_driver_devices{driver="fabric.jackfield.dev"} 3.0' in figures
            assert figures.count("# TYPE jackfield_driver_devices gauge") == 1

    on_stage(scene)


def test_while_an_unnamed_device_may_come_nothing_new_is_published() -> None:
    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        async with stage.plugin(OURS) as plugin:
            await stage.until(lambda: stage.published() == ["gpu-0000-17-00-0"])
            await stage.put(b.resource(state=ResourceState.ATTACHING))
            await stage.until(lambda: any("a100-1" in one.metadata.name for one in plugin.resources()))
            stage.machine.plug(PciDevice("0000:18:00.0", driver="nvidia", uuid="GPU-lent-1", minor=1))
            await stage.until(lambda: len(plugin.host.seen()) == 2)
            assert stage.published() == ["gpu-0000-17-00-0"]
            await stage.change({"cdi_device_id": "block-7", "device_id": "GPU-lent-1"})
            await stage.until(lambda: stage.said(VISIBLE)[0] == "True")
            assert stage.published() == ["gpu-0000-17-00-0"]

    on_stage(scene)


def test_the_plugin_uses_its_rights_and_no_others() -> None:
    used: set[tuple[str, str]] = set()

    async def scene(stage: Stage) -> None:
        stage.machine.plug(CARD)
        claim = await stage.claim()
        await stage.lent(claim)
        other = PciDevice("0000:18:00.0", driver="nvidia", uuid="GPU-own-1", minor=1)
        async with stage.plugin(OURS, lambda cluster: Watched(cluster, used)):
            await stage.kubelet.registered(DRIVER)
            await stage.prepare(claim)
            await stage.unprepare(claim)
            stage.machine.plug(other)
            await stage.until(lambda: stage.published() == ["gpu-0000-18-00-0"])
            stage.machine.pull(other.address)
            await stage.until(lambda: stage.published() == [])
            await stage.state(ResourceState.DETACHING)
            await stage.until(lambda: stage.said(RELEASED)[0] == "True")
            await stage.until(lambda: _leases(stage) != [])

    on_stage(scene)
    rare = {
        ("leases.coordination.k8s.io", "patch"),
        ("resourceslices.resource.k8s.io", "delete"),
        ("events", "create"),
    }
    assert used | rare == granted(Role.NODE)

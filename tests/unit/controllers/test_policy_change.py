"""Another policy while we run, and admissions to a quota: what the API has of them in the end."""

import asyncio

from msgspec.structs import replace

from jackfield.controllers.runner import OBSERVED
from jackfield.model.device import Device
from jackfield.model.meta import Condition
from jackfield.model.names import Seconds, named
from jackfield.model.node import Node
from jackfield.model.plan import PutSlice
from jackfield.model.policy import ADMITTED, FAILED, READY, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import EVERYTHING
from jackfield.testing import builders as b
from unit.controllers import scene as stages
from unit.controllers.actions import DEVICE, WHY, P, set_condition, version
from unit.controllers.bench import Bench, play
from unit.controllers.scene import Decision, Host, Scene


def types(conditions: tuple[Condition, ...]) -> list[str]:
    return [one.type for one in conditions]


def test_an_admission_outlives_the_answer_and_is_told_as_nothing_to_worry_about() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.claim("c"))
        await bench.act(set_condition(version(made), (DEVICE,), ADMITTED))
        await bench.act(set_condition(version(await bench.claim())))
        assert types((await bench.claim()).conditions(DEVICE)) == [ADMITTED, READY]
        assert [(one.type, one.reason) for _, one in bench.told] == [("Normal", ADMITTED), ("Normal", READY)]

    play(scene)


def test_a_refusal_is_told_as_a_warning() -> None:
    async def scene(bench: Bench) -> None:
        made = await bench.put(b.claim("c"))
        await bench.act(set_condition(version(made), (DEVICE,), FAILED))
        assert [one.type for _, one in bench.told] == ["Warning"]

    play(scene)


def test_the_last_entry_of_a_slice_is_withdrawn_as_well() -> None:
    async def scene(bench: Bench) -> None:
        spec = ResourceSliceSpec(
            "d.example.com", ResourcePool("p", 1), node_name=b.NODE, devices=(Device("a"),)
        )
        made = await bench.put(replace(b.vendor_slice(""), spec=spec))
        empty = replace(made, spec=replace(spec, devices=()))
        await bench.act(PutSlice(phase=P, because=WHY, slice=empty))
        assert (await bench.cluster.read(ResourceSlice, named(made.metadata.name))).spec.devices == ()

    play(scene)


def test_since_when_a_device_is_missing_is_remembered_over_another_policy() -> None:
    lost = b.resource("a100-9", physical="9")
    store = b.world(lost, inventories=[b.inventory()], looked=b.NOW - 60)
    store.follow(b.policy("A100", "H100"))
    assert store.missing_since(lost) == b.NOW - 60


def test_whoever_follows_another_policy_looks_at_everything_by_it() -> None:
    async def scene() -> None:
        host, decision = Host(), Decision(rounds=2)
        stage = Scene(
            decision, host, b.policy(base=Policy(observe_only=True, resync_seconds=Seconds(9999.0)))
        )
        await stage.bench.put(b.node(annotations={"keys": "a"}))
        task = asyncio.get_running_loop().create_task(stage.runner.run({Node: EVERYTHING}))
        await stage.bench.wait(1)
        await stage.mark("a")
        await stage.bench.wait(1)
        assert host.begun == []
        assert [error for _, _, error in stage.heard.done] == [OBSERVED]
        stage.runner.follow(b.policy())
        await stage.bench.wait(1)
        assert host.begun == [2.0]
        assert stage.runner.store.policy == b.policy()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stages.play(scene)

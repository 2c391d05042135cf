"""The plugin takes another policy over while it runs, or says why it does not."""

from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.model.host import Identity
from jackfield.model.lease import Lease
from jackfield.model.names import Seconds
from jackfield.model.policy import DRIVER, LocalDevices, Policy
from jackfield.node.plugin import NodePlugin
from unit.node.stage import Stage, on_stage


def store(plugin: NodePlugin) -> Store:
    assert isinstance(plugin.view, Store)
    return plugin.view


def test_a_plugin_decides_by_another_policy_without_a_restart() -> None:
    async def scene(stage: Stage) -> None:
        other = replace(Policy(), identities=(Identity.SERIAL,), observe_only=True)
        async with stage.plugin() as plugin:
            await stage.kubelet.registered(DRIVER)
            assert plugin.synced.is_set()
            assert plugin.follow(other) == ()
            assert store(plugin).policy == other
            assert plugin.ready() == ""

    on_stage(scene)


def test_a_plugin_gives_signs_of_life_as_often_as_another_policy_needs_them() -> None:
    def durations(stage: Stage) -> list[int | None]:
        leases = (item.object for item in stage.site.store.list(Lease).items)
        return [one.spec.lease_duration_seconds for one in leases if isinstance(one, Lease)]

    async def scene(stage: Stage) -> None:
        async with stage.plugin(Policy(heartbeat_seconds=Seconds(1.0))) as plugin:
            await stage.until(lambda: durations(stage) == [1])
            assert plugin.follow(Policy(heartbeat_seconds=Seconds(200.0))) == ()
            await stage.until(lambda: durations(stage) == [200])

    on_stage(scene)


def test_a_plugin_that_is_to_publish_other_devices_must_be_started_again() -> None:
    async def scene(stage: Stage) -> None:
        other = Policy(local_devices=(LocalDevices("gpu", "10de"),), observe_only=True)
        async with stage.plugin() as plugin:
            await stage.kubelet.registered(DRIVER)
            (obstacle,) = plugin.follow(other)
            assert obstacle.startswith("localDevices: is read when the plugin starts")
            assert store(plugin).policy == Policy()

    on_stage(scene)

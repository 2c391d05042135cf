"""A simulated node sees devices come and go as a kernel does, and its checkpoint outlives the plugin."""

from collections.abc import Callable, Coroutine

import pytest

from jackfield.model.fabric import FabricDevice, Machine, Order
from jackfield.model.names import FabricName, Key, ModelName, NodeName, OrderID, PhysicalID, Seconds, Uid
from jackfield.ports import Host, Prepared, Refused, Retry
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.host import HostSpec, SimHost
from jackfield.sim.manager import Manager
from jackfield.sim.pool import Movement, serial
from jackfield.sim.spec import Batch, FabricSpec, Foreign

NODE = NodeName("n0")
D0, D1 = PhysicalID("0000"), PhysicalID("0001")
U0, U1 = Uid("u0"), Uid("u1")
TWO = Fixed(Seconds(2.0))

Scenario = Callable[[SimHost], Coroutine[None, None, None]]


def play(scenario: Scenario, spec: HostSpec = HostSpec(hotplug=TWO)) -> None:
    async def main() -> None:
        await scenario(SimHost(NODE, clock.running(), Chance(1), spec))

    loop.run(main())


def move(host: SimHost, device: PhysicalID, *, present: bool) -> None:
    where = NODE if present else NodeName("")
    shown = FabricDevice(device, ModelName("A100"), serial=f"GPU-{device}", node=where)
    host.moved(Movement(clock.running().now(), shown, NODE, present))


def prepared(uid: Uid, device: PhysicalID) -> Prepared:
    return Prepared(uid, Key("default", f"claim-{uid}"), device, str(device))


def in_sight(host: Host) -> list[PhysicalID]:
    return [seen.physical for seen in host.seen()]


async def after(seconds: float) -> None:
    await clock.running().sleep(Seconds(seconds))


def test_a_device_comes_into_sight_after_a_while_by_itself() -> None:
    async def scenario(host: SimHost) -> None:
        heard: list[float] = []
        host.listen(lambda: heard.append(clock.running().now() - loop.START))
        move(host, D0, present=True)
        await host.rescan()
        await after(1.9)
        assert in_sight(host) == []
        await after(1)
        (seen,) = host.seen()
        assert (seen.physical, seen.device, seen.address) == (D0, f"GPU-{D0}", "0000:10:00.0")
        assert heard == [2.0]

    play(scenario)


def test_a_node_that_needs_it_sees_nothing_before_a_rescan() -> None:
    async def scenario(host: SimHost) -> None:
        heard: list[int] = []
        host.listen(lambda: heard.append(1))
        move(host, D0, present=True)
        await after(60)
        assert (in_sight(host), heard) == ([], [])
        await host.rescan()
        await host.rescan()
        assert (in_sight(host), heard) == ([D0], [1])

    play(scenario, HostSpec(hotplug=TWO, needs_rescan=True))


def test_a_device_whose_driver_does_not_start_is_never_seen() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        move(host, D1, present=True)
        await after(60)
        await host.rescan()
        assert in_sight(host) == [D1]

    play(scenario, HostSpec(hotplug=TWO, blind_to=(D0,)))


def test_a_pulled_device_is_out_of_sight_at_once_and_a_device_on_its_way_never_comes() -> None:
    async def scenario(host: SimHost) -> None:
        heard: list[int] = []
        host.listen(lambda: heard.append(1))
        move(host, D0, present=True)
        await after(3)
        move(host, D1, present=True)
        await after(1)
        move(host, D1, present=False)
        move(host, D0, present=False)
        assert in_sight(host) == []
        await after(60)
        await host.rescan()
        assert in_sight(host) == []
        assert len(heard) == 2

    play(scenario)


def test_a_device_that_is_plugged_in_again_at_once_waits_its_full_time() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(1)
        move(host, D0, present=False)
        move(host, D0, present=True)
        await after(1.5)
        assert in_sight(host) == []
        await after(1)
        assert in_sight(host) == [D0]
        move(host, D0, present=False)
        assert in_sight(host) == []

    play(scenario)


def test_no_two_devices_share_an_address_and_a_freed_one_is_used_again() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        move(host, D1, present=True)
        await after(3)
        assert [seen.address for seen in host.seen()] == ["0000:10:00.0", "0000:11:00.0"]
        move(host, D0, present=False)
        move(host, PhysicalID("0002"), present=True)
        await after(3)
        assert [seen.address for seen in host.seen()] == ["0000:11:00.0", "0000:10:00.0"]

    play(scenario)


def test_a_device_keeps_its_uuid_wherever_it_is() -> None:
    here, there = FabricName("rack0"), FabricName("rack1")
    assert serial(here, 0) == serial(here, 0)
    assert len({serial(here, 0), serial(here, 1), serial(there, 0)}) == 3


def test_the_checkpoint_holds_all_devices_of_a_claim_until_it_is_removed() -> None:
    async def scenario(host: SimHost) -> None:
        heard: list[int] = []
        host.listen(lambda: heard.append(1))
        await host.write(prepared(U0, D0), U0)
        await host.write(prepared(U0, D1), U0)
        await host.write(prepared(U0, D1), U0)
        await host.write(prepared(U1, PhysicalID("0002")), U1)
        assert [one.uid for one in host.prepared()] == [U0, U0, U1]
        await host.write(None, U0)
        await host.write(None, U0)
        assert [one.uid for one in host.prepared()] == [U1]
        assert len(heard) == 4

    play(scenario)


def test_a_prepared_device_is_not_released_but_by_force() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(3)
        await host.write(prepared(U0, D0), U0)
        with pytest.raises(Refused, match="prepared for default/claim-u0"):
            await host.release(D0, force=False)
        assert in_sight(host) == [D0]
        await host.release(D0, force=True)
        assert in_sight(host) == []
        move(host, D0, present=False)
        assert host.pulled_in_use == []

    play(scenario)


def test_a_released_device_is_out_of_sight_until_a_rescan() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(3)
        heard: list[int] = []
        host.listen(lambda: heard.append(1))
        await host.release(D0, force=False)
        await host.release(D0, force=False)
        assert (in_sight(host), heard) == ([], [1])
        await after(60)
        assert in_sight(host) == []
        await host.rescan()
        assert in_sight(host) == [D0]

    play(scenario)


def test_what_has_ended_uses_nothing_though_its_checkpoint_was_lost() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(3)
        await host.write(prepared(U0, D0), U0)
        host.damage()
        assert host.users(D0) == (U0,)
        host.ended(U0)
        assert host.users(D0) == ()
        move(host, D0, present=False)
        assert host.pulled_in_use == []

    play(scenario)


def test_a_device_pulled_from_under_a_claim_is_remembered() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        move(host, D1, present=True)
        await after(3)
        await host.write(prepared(U0, D0), U0)
        move(host, D1, present=False)
        assert host.pulled_in_use == []
        move(host, D0, present=False)
        assert [pulled.device.id for pulled in host.pulled_in_use] == [D0]
        assert [one.physical for one in host.prepared()] == [D0]

    play(scenario)


def test_a_listener_that_ended_hears_nothing() -> None:
    async def scenario(host: SimHost) -> None:
        heard: list[int] = []
        end = host.listen(lambda: heard.append(1))
        end()
        await host.write(prepared(U0, D0), U0)
        assert heard == []

    play(scenario)


@pytest.mark.parametrize("needs_rescan", [False, True])
def test_a_node_that_reboots_sees_its_devices_again_and_keeps_its_checkpoint(*, needs_rescan: bool) -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(3)
        await host.rescan()
        move(host, D1, present=True)
        await host.write(prepared(U0, D0), U0)
        heard: list[int] = []
        host.listen(lambda: heard.append(1))
        host.reboot()
        await host.rescan()
        assert (in_sight(host), heard) == ([], [1])
        await after(3)
        assert sorted(in_sight(host)) == [D0, D1]
        assert [one.uid for one in host.prepared()] == [U0]

    play(scenario, HostSpec(hotplug=TWO, needs_rescan=needs_rescan))


def test_a_device_moves_from_the_sight_of_one_node_into_that_of_another() -> None:
    async def main() -> list[tuple[object, ...]]:
        spec = FabricSpec(
            name=FabricName("rack0"),
            machines=(Machine(NodeName("n0")), Machine(NodeName("n1"))),
            batches=(Batch(ModelName("A100"), 1),),
            attach=Fixed(Seconds(10.0)),
            foreign=(Foreign(NodeName("n0"), ModelName("A100")),),
        )
        manager = Manager(spec, clock.running(), Chance(1))
        nodes = [NodeName("n0"), NodeName("n1")]
        hosts = [SimHost(node, clock.running(), Chance(1).branch(node)) for node in nodes]
        story: list[tuple[object, ...]] = []
        for host in hosts:
            manager.pool.listen(host.node, host.moved)
            host.listen(lambda: story.append((clock.running().now() - loop.START, *map(in_sight, hosts))))
        await after(5)
        manager.pool.give_back(D0)
        order = Order(OrderID("a"), spec.name, NodeName("n1"), ModelName("A100"), D0)
        manager.attach(order, clock.running().now())
        await after(20)
        return story

    assert loop.run(main()) == [(2.0, [D0], []), (5.0, [], []), (17.0, [], [D0])]


def test_a_device_whose_driver_does_not_start_comes_into_sight_when_it_does() -> None:
    async def scenario(host: SimHost) -> None:
        host.duds[D0] = Seconds(clock.running().now() + 30.0)
        for device in (D0, D1):
            move(host, device, present=True)
        await after(20)
        await host.rescan()
        assert in_sight(host) == [D1]
        await after(11)
        assert in_sight(host) == [D1, D0]

    play(scenario)


def test_nobody_lets_a_device_go_on_a_machine_that_was_taken_away() -> None:
    async def scenario(host: SimHost) -> None:
        move(host, D0, present=True)
        await after(3)
        host.scrap()
        with pytest.raises(Retry, match="not there any more"):
            await host.release(D0, force=False)

    play(scenario)

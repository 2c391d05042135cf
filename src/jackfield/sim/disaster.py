"""Brings troubles about, and ends them when their time is over.

Knows how each trouble is done to a simulated site. Must not know when, nor what comes of it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress

from jackfield.cluster.api import Client
from jackfield.model.composition import ComposableResource
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import FabricName, Key, NodeName, PhysicalID, Seconds, Version
from jackfield.model.node import Node, NodeSpec, NodeStatus
from jackfield.model.pod import Pod
from jackfield.ports import Gone
from jackfield.sim import trouble
from jackfield.sim.audit import Audit
from jackfield.sim.loop import world as nobody
from jackfield.sim.manager import Manager
from jackfield.sim.pool import ELSEWHERE
from jackfield.sim.program import Program, Static
from jackfield.sim.replica import Replica
from jackfield.sim.rewind import Rewind
from jackfield.sim.spec import Refusals
from jackfield.sim.weather import Fuse, RoughClient, Spell
from jackfield.sim.world import SimWorld


class Disasters:
    """All troubles of one world."""

    def __init__(self, world: SimWorld, audit: Audit) -> None:
        self._world = world
        self._audit = audit
        self._user: Client = world.cluster.client("operator")
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._refusing: dict[trouble.Refuse, None] = {}
        self._ends: dict[int, Callable[[], Coroutine[None, None, None]]] = {}
        self._number = 0

    @property
    def _now(self) -> Seconds:
        return self._world.clock.now()

    def stop(self) -> None:
        """Bring nothing more to its end."""
        for task in tuple(self._tasks):
            task.cancel()

    # --- what lasts for a while

    def _after(self, seconds: float, end: Callable[[], Coroutine[None, None, None]]) -> None:
        """End a trouble when its time is over, or when all of them are."""
        self._number += 1
        self._ends[self._number] = end
        self.spawn(self._wait(seconds, self._number))

    async def _wait(self, seconds: float, number: int) -> None:
        await self._world.clock.sleep(Seconds(seconds))
        end = self._ends.pop(number, None)
        if end is not None:
            await end()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Let something go on until the end."""
        task = asyncio.get_running_loop().create_task(work, context=nobody())
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def calm(self) -> None:
        """End everything that lasts."""
        while self._ends:
            await self._ends.pop(next(iter(self._ends)))()
        for program in self._world.programs.values():
            program.clear()
        for manager in self._world.hardware.managers.values():
            manager.stalled_until = manager.outdated_until = manager.forgetful_until = self._now
        for host in self._world.hardware.hosts.values():
            host.blind_until = host.clinging_until = self._now
            host.duds.clear()
        for node in list(self._world.hardware.hosts):
            await self._mend(node)

    async def _mend(self, node: NodeName) -> None:
        machines = self._world.hardware.machines
        try:
            found = await self._user.read(Node, Key("", node))
        except Gone:
            return
        if not found.ready:
            await machines.recover(node)
        if found.spec.unschedulable:
            await machines.cordon(node, unschedulable=False)
        await machines.restore(node)

    # --- one by one

    async def strike(self, step: trouble.AnyTrouble) -> None:
        """Bring a trouble about."""
        match step:
            case trouble.Kill():
                self._kill(step)
            case trouble.Pause():
                self._pause(step)
            case trouble.Jump():
                self._jump(step)
            case trouble.Restart():
                self._restart(step)
            case trouble.Storm():
                weather = self._program(step.program).weather
                weather.lost = self._lost
                weather.spells += (Spell(step.mishap, step.likely, self._until(step.seconds)),)
            case trouble.Deafen():
                self._deafen(step)
            case trouble.Restore():
                self._restore(step)
            case trouble.Calm():
                await self.calm()
            case _ if isinstance(step, trouble.ManagerTrouble):
                self._to_fabric(step)
            case _:
                await self._to_machine(step)

    def _to_fabric(self, step: trouble.ManagerTrouble) -> None:
        match step:
            case trouble.Noise():
                noise = Static(step.fabric, step.fate, step.likely, self._until(step.seconds))
                for number in range(len(self._world.replicas)):
                    self._replica(number).wire.noise += (noise,)
            case trouble.Stall():
                self._manager(step.fabric).stalled_until = self._until(step.seconds)
            case trouble.Outdate():
                self._manager(step.fabric).outdate(self._until(step.seconds))
            case trouble.Refuse():
                self._refuse(step)
            case trouble.Borrow():
                self._borrow(step)
            case trouble.Vanish() | trouble.Meddle() | trouble.Forget() | trouble.Ail() | trouble.Dud():
                self._to_devices(step)

    async def _to_machine(self, step: trouble.NodeTrouble) -> None:
        match step:
            case trouble.Blind() | trouble.Cling() | trouble.Damage():
                self._to_host(step)
            case trouble.Reboot() | trouble.Drain() | trouble.Replace() | trouble.Mute():
                await self._to_node(step)
            case trouble.Discard():
                await self._discard(step.node)
            case trouble.Swap():
                self._swap(step)
            case trouble.Wipe():
                await self._wipe(step)

    def _until(self, seconds: float) -> Seconds:
        return Seconds(self._now + seconds)

    def _manager(self, fabric: FabricName) -> Manager:
        return self._world.hardware.managers[fabric]

    # --- processes

    def _program(self, name: str) -> Program:
        return self._world.program(name)

    def _replica(self, number: int) -> Program:
        return self._program(self._world.replicas[number].client.name)

    def _lost(self) -> None:
        """Take it that something may be written once more, since nobody knows that it was."""
        self._audit.repeats += 1

    def _kill(self, step: trouble.Kill) -> None:
        weather = self._replica(step.replica).weather

        def burn() -> None:
            weather.fuse = None
            victim = self._world.replicas[step.replica]
            victim.kill()
            self._lost()
            self.spawn(self._rise(step, victim))

        weather.fuse = Fuse(step.calls, effect=step.effect, burn=burn)

    async def _rise(self, step: trouble.Kill, victim: Replica) -> None:
        victim.reap()  # by now somebody else may have started the next
        await self._world.clock.sleep(Seconds(step.down))
        weather = self._replica(step.replica).weather
        weather.stale = step.stale
        self._world.start_replica(step.replica)
        await self._world.clock.sleep(Seconds(1.0))
        weather.stale = 0

    def _pause(self, step: trouble.Pause) -> None:
        process = self._world.replicas[step.replica].process

        async def end() -> None:
            process.go_on()

        process.stop()
        self._after(step.seconds, end)

    def _jump(self, step: trouble.Jump) -> None:
        clock = self._replica(step.replica).clock

        async def end() -> None:
            clock.ahead = Seconds(0.0)

        clock.ahead = Seconds(step.by)
        self._audit.clocks_were_set = True
        self._after(step.seconds, end)

    def _restart(self, step: trouble.Restart) -> None:
        match step.part:
            case "controllers":
                self._world.restart_controllers()
            case "plugins":
                self._world.hardware.restart_plugins()
            case "kubelets":
                self._world.hardware.restart_kubelets()
            case "scheduler":
                self._world.restart_scheduler()

    def _deafen(self, step: trouble.Deafen) -> None:
        program = self._program(step.program)
        program.weather.deafen(step.kind, self._until(step.seconds))
        if step.dropped and isinstance(program.client, RoughClient):
            program.client.drop_watches()

    def _restore(self, step: trouble.Restore) -> None:
        rewind = Rewind(self._world, self._audit, self._user, self.spawn)

        async def end() -> None:
            if await rewind.happen():
                self.spawn(rewind.clear_up())

        self._after(step.seconds, end)

    # --- managers

    def _refuse(self, step: trouble.Refuse) -> None:
        self._refusing[step] = None

        async def end() -> None:
            self._refusing.pop(step, None)
            self._apply_refusals(step.fabric)

        self._apply_refusals(step.fabric)
        self._after(step.seconds, end)

    def _apply_refusals(self, fabric: FabricName) -> None:
        steps = [one for one in self._refusing if one.fabric == fabric]
        self._world.hardware.managers[fabric].refusals = Refusals(
            devices=tuple(device for one in steps for device in one.devices),
            nodes=tuple(node for one in steps for node in one.nodes),
            attach=max((one.attach for one in steps), default=0.0),
            detach=max((one.detach for one in steps), default=0.0),
        )

    def _to_devices(
        self, step: trouble.Vanish | trouble.Meddle | trouble.Forget | trouble.Ail | trouble.Dud
    ) -> None:
        manager = self._manager(step.fabric)
        pool = manager.pool
        match step:
            case trouble.Forget():
                pool.hide(*step.devices)
                manager.forgetful_until = self._until(step.seconds)
                self._after(step.seconds, lambda: _soon(pool.hide))
            case trouble.Dud():
                for node, host in self._world.hardware.hosts.items():
                    if self._world.hardware.fabrics[node] == step.fabric:
                        host.duds[step.device] = self._until(step.seconds)
            case trouble.Ail() if pool.device(step.device) is not None:
                pool.set_health(step.device, healthy=False)
                self._after(step.seconds, lambda: _soon(lambda: pool.set_health(step.device, healthy=True)))
            case trouble.Vanish() if pool.device(step.device) is not None:
                self._by_hand(manager, step.device, NodeName(""))
            case trouble.Meddle() if step.node in self._world.hardware.hosts:
                self._by_hand(manager, step.device, step.node)
                self._after(
                    step.seconds, lambda: _soon(lambda: self._by_hand(manager, step.device, NodeName("")))
                )
            case _:
                pass  # there is no such thing any more

    def _by_hand(self, manager: Manager, device: PhysicalID, node: NodeName) -> None:
        self._audit.excuse(device)
        manager.move(device, node)

    def _borrow(self, step: trouble.Borrow) -> None:
        pool = self._world.hardware.managers[step.fabric].pool
        models = dict.fromkeys(batch.model for batch in pool.spec.batches)
        taken = [device for model in models for device in pool.take(model, step.count)]

        async def end() -> None:
            for device in taken:
                found = pool.device(device)
                # Unless somebody has brought it to a node meanwhile.
                if found is not None and found.node == ELSEWHERE:
                    pool.give_back(device)

        self._after(step.seconds, end)

    # --- nodes

    def _to_host(self, step: trouble.Blind | trouble.Cling | trouble.Damage) -> None:
        host = self._world.hardware.hosts.get(step.node)
        if host is None:
            return
        match step:
            case trouble.Blind():
                host.blind_until = self._until(step.seconds)
            case trouble.Cling():
                host.clinging_until = self._until(step.seconds)
            case trouble.Damage():
                host.damage()
                self._world.hardware.restart_plugins()

    async def _to_node(self, step: trouble.Reboot | trouble.Drain | trouble.Replace | trouble.Mute) -> None:
        try:
            node = await self._user.read(Node, Key("", step.node))
        except Gone:
            return
        machines = self._world.hardware.machines
        match step:
            case trouble.Reboot():
                await machines.lose(step.node)
                self._world.hardware.hosts[step.node].reboot()
                self._after(step.seconds, lambda: self._mend(step.node))
            case trouble.Drain():
                await machines.cordon(step.node)
                await self._delete(self._pods_on(step.node), grace=None)
                self._after(step.seconds, lambda: self._mend(step.node))
            case trouble.Mute():
                machines.silence(step.node)
                self._after(step.seconds, lambda: self._mend(step.node))
            case trouble.Replace():
                await self._replace(node, step.by)

    async def _replace(self, node: Node, by: NodeName) -> None:
        hardware = self._world.hardware
        nodes = next((one for one in self._world.setting.nodes if node.name in one.names()), None)
        await hardware.remove_node(node.name)
        hardware.hosts[node.name].scrap()
        labels = {"kubernetes.io/hostname": by, **(nodes.labels if nodes is not None else {})}
        spec, status = (
            NodeSpec(provider_id=node.spec.provider_id),
            NodeStatus(capacity=node.status.capacity, allocatable=node.status.allocatable),
        )
        await hardware.add_node(
            Node(metadata=ObjectMeta(name=by, labels=labels), spec=spec, status=status), nodes
        )

    async def _discard(self, node: NodeName) -> None:
        items = self._world.api.list(ComposableResource).items
        found = (one.object for one in items if isinstance(one.object, ComposableResource))
        for key in [one.key for one in found if one.node == node]:
            with suppress(Gone):
                await self._user.delete(ComposableResource, key, Version(""))

    def _swap(self, step: trouble.Swap) -> None:
        hardware = self._world.hardware
        if {step.node, step.other} <= set(hardware.hosts):
            hardware.cables.exchange(step.node, step.other)
            self._after(step.seconds, lambda: _soon(lambda: hardware.cables.set_right(step.node, step.other)))

    async def _wipe(self, step: trouble.Wipe) -> None:
        hardware = self._world.hardware
        await hardware.wipe(step.node)
        self._after(step.seconds, lambda: hardware.publish(step.node))

    def _pods_on(self, node: NodeName) -> tuple[Key, ...]:
        items = self._world.api.list(Pod).items
        return tuple(
            one.key for one in items if isinstance(one.object, Pod) and one.object.spec.node_name == node
        )

    async def _delete(self, pods: Iterable[Key], grace: int | None) -> None:
        for pod in pods:
            with suppress(Gone):
                await self._user.delete(Pod, pod, Version(""), grace_seconds=grace)


async def _soon(do: Callable[[], None]) -> None:
    """Do it, as the end of a trouble."""
    do()

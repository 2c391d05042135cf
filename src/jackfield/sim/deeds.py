"""Makes happen what a scenario says: a step becomes an API call, or a broken device.

Knows how each step is done. Must not know when, nor what comes of it.
"""

from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, NodeName, Seconds
from jackfield.ports import Conflict, Gone
from jackfield.sim import scenario
from jackfield.sim.audit import Audit
from jackfield.sim.disaster import Disasters
from jackfield.sim.spec import Refusals
from jackfield.sim.users import NAMESPACE, Users
from jackfield.sim.world import SimWorld

NODE = "node/"
CLAIM_AGAIN = Seconds(1.0)
"""How often somebody tries who wants a claim of a name that is still taken."""


class Deeds:
    """Does the steps of a scenario to one world."""

    def __init__(self, world: SimWorld, audit: Audit) -> None:
        self._world = world
        self._audit = audit
        self._users = Users(world.cluster)
        self.disasters = Disasters(world, audit)

    async def do(self, step: scenario.AnyStep) -> None:
        """Do it."""
        match step:
            case scenario.Delete() if step.object.startswith(NODE):
                await self._world.hardware.remove_node(NodeName(step.object.removeprefix(NODE)))
            case scenario.CreateClaim():
                await self._create_claim(step)
            case scenario.CreatePod() | scenario.CreateRequest() | scenario.Delete():
                await self._users.do(step)
            case scenario.Cordon() | scenario.Lose() | scenario.Silence():
                await self._do_to_node(step)
            case scenario.Break() | scenario.ChangePolicy():
                self._do_to_machinery(step)
            case scenario.CreateWorkload():
                pass  # it has become pods
            case scenario.Take() | scenario.Move() | scenario.Hide() | scenario.Sicken():
                self._do_behind_our_back(step)
            case _:
                await self.disasters.strike(step)

    async def _create_claim(self, step: scenario.CreateClaim) -> None:
        try:
            await self._users.do(step)
        except Conflict:  # one of its name is still there
            self.disasters.spawn(self._create_when_gone(step))

    async def _create_when_gone(self, step: scenario.CreateClaim) -> None:
        """Try until there is such a claim that nobody has deleted."""
        while True:
            await self._world.clock.sleep(CLAIM_AGAIN)
            try:
                found = await self._world.cluster.read(ResourceClaim, Key(NAMESPACE, step.name))
            except Gone:
                await self._users.do(step)
                return
            if not found.deleting:
                return

    def _do_to_machinery(self, step: scenario.Break | scenario.ChangePolicy) -> None:
        if isinstance(step, scenario.Break):
            self._break(step)
        else:
            self._world.follow(step.policy)

    def _do_behind_our_back(
        self, step: scenario.Take | scenario.Move | scenario.Hide | scenario.Sicken
    ) -> None:
        for manager in self._world.hardware.managers.values():
            match step:
                case scenario.Take():
                    manager.pool.take(step.model, step.count)
                case scenario.Move() if manager.pool.device(step.device) is not None:
                    self._audit.excuse(step.device)
                    manager.move(step.device, step.node)
                case scenario.Hide():
                    manager.pool.hide(*step.devices)
                case scenario.Sicken() if manager.pool.device(step.device) is not None:
                    manager.pool.set_health(step.device, healthy=step.undo)
                case _:
                    pass  # a device may be another fabric's

    async def _do_to_node(self, step: scenario.Cordon | scenario.Lose | scenario.Silence) -> None:
        machines = self._world.hardware.machines
        match step:
            case scenario.Cordon():
                await machines.cordon(step.node, unschedulable=not step.undo)
            case scenario.Lose():
                await (machines.recover(step.node) if step.undo else machines.lose(step.node))
            case scenario.Silence(undo=True):
                await machines.restore(step.node)
            case scenario.Silence():
                machines.silence(step.node)

    def _break(self, step: scenario.Break) -> None:
        for manager in self._world.hardware.managers.values():
            old = manager.refusals
            devices = tuple(one for one in old.devices if one != step.device)
            nodes = tuple(one for one in old.nodes if one != step.node)
            if not step.undo:
                devices += (step.device,) if step.device else ()
                nodes += (step.node,) if step.node else ()
            manager.refusals = Refusals(devices, nodes, old.attach, old.detach)

"""What is attached to a machine comes to whichever machine has its cables, and to the right one in the end."""

from jackfield.model.fabric import FabricDevice
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.sim import clock, loop
from jackfield.sim.cables import Cables
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.host import HostSpec, SimHost
from jackfield.sim.pool import Movement

A, B, C = NodeName("a"), NodeName("b"), NodeName("c")
BEFORE, MEANWHILE, THIRD = PhysicalID("0"), PhysicalID("1"), PhysicalID("2")
SOON = HostSpec(hotplug=Fixed(Seconds(1.0)))


class Site:
    """Three machines, and the cables between them and their fabric."""

    def __init__(self) -> None:
        self.hosts = {one: SimHost(one, clock.running(), Chance(one), SOON) for one in (A, B, C)}
        self.cables = Cables(self.hosts)

    def move(self, device: PhysicalID, node: NodeName, *, present: bool = True) -> None:
        shown = FabricDevice(device, ModelName("A100"), serial=f"GPU-{device}", node=node)
        self.cables.moved(Movement(clock.running().now(), shown, node, present, FabricName("rack")))

    async def sight(self) -> dict[NodeName, list[PhysicalID]]:
        await clock.running().sleep(Seconds(2.0))
        return {node: [one.physical for one in host.seen()] for node, host in self.hosts.items()}


def test_what_comes_while_cables_are_exchanged_comes_to_the_wrong_machine_and_then_to_the_right_one() -> None:
    async def main() -> None:
        site = Site()
        site.move(BEFORE, A)
        site.cables.exchange(A, B)
        site.move(MEANWHILE, A)
        site.move(THIRD, C)
        assert await site.sight() == {A: [BEFORE], B: [MEANWHILE], C: [THIRD]}
        site.cables.set_right(A, B)
        assert await site.sight() == {A: [BEFORE, MEANWHILE], B: [], C: [THIRD]}

    loop.run(main())


def test_what_leaves_leaves_the_machine_that_it_came_to() -> None:
    async def main() -> None:
        site = Site()
        site.move(BEFORE, A)
        site.cables.exchange(A, B)
        site.move(MEANWHILE, A)
        await site.sight()
        site.move(BEFORE, A, present=False)
        site.move(MEANWHILE, A, present=False)
        assert await site.sight() == {A: [], B: [], C: []}

    loop.run(main())

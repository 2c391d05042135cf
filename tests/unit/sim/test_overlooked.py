"""The audit misses what our controllers were not woken for, once they had time to be."""

from contextlib import closing

import pytest

from jackfield.controllers import app
from jackfield.controllers.recorders import Recorders
from jackfield.controllers.runner import Controller, Runner
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, View
from jackfield.sim.audit.overlooked import LOOK_SECONDS, Overlooked
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.loop import VirtualLoop
from jackfield.sim.setting import Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.sim.world import SimWorld
from jackfield.testing import builders as b


def nobody(view: View, policy: Policy, delta: Delta) -> tuple[()]:
    """Wake nobody, whatever has changed."""
    del view, policy, delta
    return ()


class Asleep(Runner):
    """Hears of nothing by which its publisher would be woken."""

    def hear(self, deltas: tuple[Delta, ...]) -> None:
        awake = self._controllers
        self._controllers = tuple(
            Controller(one.name, one.decide, nobody, one.fabric) if one.name == "publish" else one
            for one in awake
        )
        super().hear(deltas)
        self._controllers = awake


@pytest.mark.parametrize("runner", [Runner, Asleep])
def test_what_nobody_was_woken_for_is_missed_at_the_second_look(
    runner: type[Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield.sim.replica.Runner", runner)

    async def scenario() -> None:
        fabric = FabricSpec(b.FABRIC, batches=(Batch(b.MODEL, 2),))
        stage = Setting(nodes=(Nodes("n", 1, fabric=b.FABRIC),), fabrics=(fabric,), policy=b.policy())
        world = SimWorld(stage, running(), Chance(1), Recorders())
        async with world:
            await world.clock.sleep(Seconds(30.0))
            overlooked = Overlooked(world)
            assert list(overlooked.look(world.clock.now())) == [], "it may have been done a moment ago"
            await world.clock.sleep(Seconds(10.0))
            found = [words for _, words in overlooked.look(world.clock.now())]
            if runner is Runner:
                assert found == []
            else:
                assert found
                assert all("nobody looks, though the pool changed" in words for words in found)
            assert LOOK_SECONDS > 10.0, "else it is looked at every time"

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())
    assert any(one.name == "publish" for one in app.ALL)

"""A play is the same in the viewer's own time, over a store that others are served from."""

import asyncio

import pytest
from click.testing import CliRunner

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cli.main import main
from jackfield.model.names import Seconds
from jackfield.sim import play
from jackfield.sim.chance import Chance
from jackfield.sim.scenario import Scenario, parse

BRIEF = """
setting:
  nodes: [{name: worker, count: 2, fabric: rack-a}]
  fabrics:
    - name: rack-a
      batches: [{model: A100, count: 1}]
      attach: {kind: fixed, seconds: 0.3}
      detach: {kind: fixed, seconds: 0.3}
  host: {hotplug: {kind: fixed, seconds: 0.1}}
  classes: [{name: gpu, expression: 'device.driver == "fabric.jackfield.dev"'}]
  policy:
    models: [{index: 0, cdi-model-name: A100, k8s-device-name: a100}]
    holdSeconds: 1
play:
  - {do: pod, name: pod-a, devices: 1, run: 1}
until: 15
settle: 3
expect: {pods: {pod-a: Succeeded}, attaches: 1, detaches: 1, pool_full: true}
"""


def test_a_play_in_real_time_comes_true_over_a_store_that_is_served() -> None:
    async def performance(scenario: Scenario) -> play.Outcome:
        clock = WallClock()
        store = up.new_store(clock)
        async with up.serving(store, clock):
            house = play.House(clock, store, prelude=Seconds(1.0))
            return await play.Stage(scenario, Chance(1), None, house).run()

    outcome = asyncio.run(asyncio.wait_for(performance(parse(BRIEF, "brief")), 60))
    assert outcome.failures == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--live", "--json"], "leave out --json and --plain"),
        (["--live", "--plain"], "leave out --json and --plain"),
        (["--kubeconfig=x"], "--kubeconfig needs --live"),
        (["--live", "--kubeconfig=no/such/x"], "no/such is no folder"),
    ],
)
def test_options_that_do_not_go_together_are_named(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["demo", *words])
    assert done.exit_code == 2
    assert said in done.output

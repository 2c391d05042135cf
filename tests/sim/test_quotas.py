"""Whatever happens, no namespace has more than its quota, and whoever waits is served when there is room again."""

from collections import Counter

import pytest
from msgspec.structs import replace

from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import holds
from jackfield.model.policy import ADMITTED, READY
from jackfield.sim import play, scenario, story, trouble
from jackfield.sim.chance import Chance
from jackfield.sim.world import SimWorld

QUOTAS = {"team-a": 2, "team-b": 3}
STAGE = """
setting:
  nodes: [{name: n, count: 3, fabric: rack-a, slots: 3}]
  fabrics: [{name: rack-a, batches: [{model: A100, count: 7}], attach: {kind: uniform, min: 3, max: 20}}]
  classes: [{name: gpu, expression: 'device.driver == "fabric.jackfield.dev"'}]
  policy:
    models: [{index: 0, cdi-model-name: A100, k8s-device-name: a100}]
    holdSeconds: 20
    quotaWaitSeconds: 10
    namespaces:
      - {name: team-a, quota: {"*": 2}, priority: 5}
      - {name: team-b, quota: {A100: 3}}
"""


def scenes(seed: int, replicas: int) -> scenario.Scenario:
    """Pods of three namespaces that come at random, and controllers that are killed or stopped in between."""
    dice, stage = Chance(seed).branch("quotas").generator, scenario.parse(STAGE, "stage")
    steps: list[scenario.AnyStep] = []
    for number in range(24):
        at, run = dice.uniform(0.0, 200.0), dice.uniform(5.0, 60.0)
        namespace = dice.choice([*QUOTAS, "default"])
        steps.append(
            scenario.CreatePod(
                at=at, name=f"p-{number}", namespace=namespace, devices=dice.choice([1, 1, 2]), run=run
            )
        )
    for replica in range(replicas):
        steps.append(trouble.Kill(at=dice.uniform(10.0, 90.0), replica=replica, down=dice.uniform(1.0, 20.0)))
        steps.append(trouble.Pause(at=dice.uniform(120.0, 200.0), replica=replica, seconds=40.0))
    expect = scenario.Expect(pods={"p-*": "Succeeded"}, pool_full=True)
    setting = replace(stage.setting, replicas=replicas)
    return scenario.Scenario(setting, tuple(steps), until=3000.0, expect=expect)


class Witness:
    """Counts after every line of the story what each namespace has."""

    def __init__(self) -> None:
        self.exceeded: list[str] = []
        self.most: Counter[str] = Counter()

    def look(self, line: story.Line, world: SimWorld) -> None:
        had: Counter[str] = Counter()
        for one in world.api.list(ResourceClaim).items:
            claim = one.object
            assert isinstance(claim, ResourceClaim)
            said = [claim.conditions(result.id) for result in claim.results]
            had[claim.metadata.namespace] += sum(holds(one, ADMITTED) or holds(one, READY) for one in said)
        self.most |= had
        over = {name: count for name, count in had.items() if count > QUOTAS.get(name, count)}
        if over:
            self.exceeded.append(f"{line.at:.1f}: {over}")


@pytest.mark.parametrize(("seed", "replicas"), [(1, 1), (2, 2)])
def test_no_namespace_ever_has_more_than_its_quota_and_all_are_served(seed: int, replicas: int) -> None:
    witness = Witness()
    outcome = play.perform(scenes(seed, replicas), seed, witness.look)
    assert witness.exceeded == []
    assert outcome.failures == ()
    assert {name: witness.most[name] for name in QUOTAS} == QUOTAS  # else nothing was put to the test

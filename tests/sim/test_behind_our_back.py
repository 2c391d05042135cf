"""Somebody attaches, pulls and moves devices by hand, the manager forgets some for a while; in the end all have run.

Whatever is done behind our back, nothing is pulled from under a pod by us, and of what is not ours only that leaves its
node which the policy names.
"""

import pytest

from jackfield.model.claim import ResourceClaim
from jackfield.model.fabric import FabricDevice
from jackfield.model.names import NEVER, FabricName, NodeName, PhysicalID
from jackfield.sim import play, scenario, story
from jackfield.sim.audit import TITLE
from jackfield.sim.world import SimWorld

DAY = """
title: behind our back
setting:
  nodes: [{{name: n, count: 3, fabric: "0", slots: 5}}]
  fabrics:
    - name: "0"
      batches: [{{model: A100, count: 12}}]
      traits: {{{traits}}}
      attach: {{kind: uniform, min: 5, max: 20}}
  classes: [{{name: gpu, expression: 'device.driver == "fabric.jackfield.dev"'}}]
  policy:
    models: [{{index: 0, cdi-model-name: A100, k8s-device-name: a100}}]
    holdSeconds: 120
    attachDeadlineSeconds: 120
    bindingTimeoutSeconds: 200
    detachForeign: [{{device: "0011"}}]
play:
  - {{do: move, at: 1, device: "0009", node: n-1}}
  - {{do: move, at: 1, device: "0011", node: n-2}}
  - {{do: pod, at: 2, name: long, count: 2, devices: 2, run: 900}}
  - {{do: workload, name: job, count: 16, every: {{kind: exponential, mean: 12}}, run: {{kind: exponential, mean: 60}}}}
  - {{do: move, at: 45, device: "0000"}}
  - {{do: move, at: 60, device: "0001", node: n-3}}
  - {{do: hide, at: 70, devices: ["0000", "0002", "0004", "0006", "0008", "0009"]}}
  - {{do: restart, at: 100}}
  - {{do: hide, at: 130}}
  - {{do: move, at: 150, device: "0003"}}
  - {{do: sicken, at: 160, device: "0005"}}
  - {{do: sicken, at: 170, device: "0005", undo: true}}
  - {{do: move, at: 300, device: "0001"}}
  - {{do: move, at: 310, device: "0002", node: n-1}}
until: 4000
settle: 700
"""
MANAGERS = {
    "devices": "jobs: 4",
    "slots": "jobs: 4, chooses_device: true",
    "devices-without-orders": "jobs: 4, knows_orders: false, call_timeout: 30",
    "slots-without-orders": "jobs: 4, chooses_device: true, knows_orders: false, call_timeout: 30",
}


class Last:
    """Remembers the world that a story is told of."""

    def __init__(self) -> None:
        self.world: SimWorld | None = None

    def __call__(self, line: story.Line, world: SimWorld) -> None:
        del line
        self.world = world

    def robbed(self) -> list[str]:
        """Return the pods that were given a device which somebody pulled before they could start."""
        assert self.world is not None
        store = self.world.store
        claims = [one for one in store.all(ResourceClaim) if isinstance(one, ResourceClaim)]
        pods = []
        for claim in claims:
            resources = [store.resource_of(result.id) for result in claim.results]
            if any(one is not None and store.missing_since(one) != NEVER for one in resources):
                pods += [pod.metadata.labels[TITLE] for pod in store.pods_using(claim.key)]
        return pods

    def device(self, name: str) -> FabricDevice:
        assert self.world is not None
        found = self.world.hardware.managers[FabricName("0")].pool.device(PhysicalID(name))
        assert found is not None
        return found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("manager", MANAGERS)
def test_what_is_done_behind_our_back_harms_nobody_and_what_is_not_ours_stays(
    manager: str, seed: int
) -> None:
    last = Last()
    day = scenario.parse(DAY.format(traits=MANAGERS[manager]), "behind our back")
    outcome = play.perform(day, seed, last)
    assert outcome.failures == ()
    waiting = [name for name, phase in outcome.summary.pods.items() if phase != "Succeeded"]
    assert waiting == last.robbed(), "who was bound to a device can have no other; its claim says so"
    assert len(waiting) <= 1
    assert [last.device(name).node for name in ("0009", "0002")] == [NodeName("n-1"), NodeName("n-1")]
    assert last.device("0011").ours, "it is back in the pool, or serves us"
    told = [line.action for line in outcome.lines]
    assert "Found ForeignDevice" in told
    assert "Found DeviceMissing" in told

"""Rough days: failures, restarts, lost nodes and other people's clusters at once; in the end everybody has run.

Each kind of manager has its days. With the trouble nothing happens that must never happen; when it is over, everything
good does, within the play's own time.
"""

from itertools import product

import pytest

from jackfield.sim import play, scenario

DAY = """
title: a rough day
setting:
  nodes: [{{name: n, count: 8, fabric: "0", slots: 3}}]
  fabrics:
    - name: "0"
      batches: [{{model: A100, count: 14}}]
      traits: {{{traits}}}
      attach: {{kind: lognormal, median: 12, sigma: 0.6, max: 60}}
      detach: {{kind: uniform, min: 2, max: 8}}
      refusals: {{attach: 0.05, detach: 0.05, devices: ["0003"]}}
  classes: [{{name: gpu, expression: 'device.driver == "{driver}"'}}]
  scheduler_lag: {{kind: uniform, min: 0, max: 2}}
  policy:
    models: [{{index: 0, cdi-model-name: A100, k8s-device-name: a100, driver-name: {driver}}}]
    holdSeconds: 30
    blameSeconds: 300
    claimAttemptsMax: 20
play:
  - {{do: workload, name: job, count: 40, every: {{kind: exponential, mean: 10}}, run: {{kind: exponential, mean: 40}}}}
  - {{do: pod, at: 50, name: wide, count: 2, devices: 3, run: 40}}
  - {{do: restart, at: 5, times: 60, every: 7}}
  - {{do: restart, at: 8, part: plugins, times: 30, every: 13}}
  - {{do: take, at: 60, model: A100, count: 2}}
  - {{do: cordon, at: 90, node: n-1}}
  - {{do: cordon, at: 200, node: n-1, undo: true}}
  - {{do: silence, at: 100, node: n-2}}
  - {{do: silence, at: 220, node: n-2, undo: true}}
  - {{do: lose, at: 120, node: n-3}}
  - {{do: lose, at: 260, node: n-3, undo: true}}
  - {{do: request, at: 130, name: by-hand, model: A100, size: 2, policy: differentnode}}
  - {{do: request, at: 230, name: by-hand, model: A100, size: 1, policy: differentnode}}
  - {{do: delete, at: 300, object: request/by-hand}}
until: 7200
settle: 900
expect: {{pods: {{job-*: Succeeded, wide-*: Succeeded}}, pool_full: true}}
"""

OURS, VENDORS = "fabric.jackfield.dev", "gpu.example.com"
MANAGERS = {
    "devices": "jobs: 4",
    "slots": "jobs: 4, chooses_device: true",
    "devices-without-orders": "jobs: 2, knows_orders: false, call_timeout: 90",
    "slots-without-orders": "jobs: 2, chooses_device: true, knows_orders: false, call_timeout: 90",
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("driver", "manager"), list(product((OURS, VENDORS), MANAGERS)), ids=lambda part: part.partition(".")[0]
)
def test_a_rough_day_ends_well(driver: str, manager: str, seed: int) -> None:
    text = DAY.format(driver=driver, traits=MANAGERS[manager])
    outcome = play.perform(scenario.parse(text, "a rough day"), seed)
    assert outcome.failures == ()

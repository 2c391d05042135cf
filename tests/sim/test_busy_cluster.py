"""1,000 pods over 100 nodes and 200 pool GPUs: everybody runs, nothing is attached for nobody, everything returns."""

from pathlib import Path

import msgspec
import pytest

from jackfield.model.names import Seconds
from jackfield.sim import play, scenario
from jackfield.sim.chance import Uniform

EXAMPLES = Path(__file__).parents[2] / "examples" / "busy-cluster"
LAG = Uniform(Seconds(0.0), Seconds(3.0))


def performed(name: str, *, lagging: bool) -> play.Outcome:
    read = scenario.read(EXAMPLES / name)
    if lagging:
        setting = msgspec.structs.replace(read.setting, scheduler_lag=LAG)
        read = msgspec.structs.replace(read, setting=setting)
    return play.perform(read, seed=7)


@pytest.mark.parametrize("lagging", [False, True], ids=["fresh-caches", "lagging-caches"])
def test_bind_attaches_at_most_once_per_pod_and_never_for_nobody(*, lagging: bool) -> None:
    outcome = performed("bind.yaml", lagging=lagging)
    summary = outcome.summary
    assert outcome.failures == ()
    assert len(summary.pods) == 1000
    assert set(summary.pods.values()) == {"Succeeded"}
    assert 0 < summary.attaches_per_pod <= 1.00
    assert summary.wasted == 0
    assert summary.devices_attached == 0
    assert summary.attaches == summary.detaches


@pytest.mark.parametrize("lagging", [False, True], ids=["fresh-caches", "lagging-caches"])
def test_reschedule_stays_under_one_attach_and_a_twentieth_per_pod(*, lagging: bool) -> None:
    outcome = performed("reschedule.yaml", lagging=lagging)
    summary = outcome.summary
    assert outcome.failures == ()
    assert len(summary.pods) == 1000
    assert set(summary.pods.values()) == {"Succeeded"}
    assert 0 < summary.attaches_per_pod <= 1.05
    assert summary.devices_attached == 0

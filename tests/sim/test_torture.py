"""Ordeals drawn from seeds: the same seed is the same ordeal. Some are lived through here, more by `make torture`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import yaml

from jackfield.sim import scenario, trouble
from jackfield.sim.chance import Chance
from jackfield.sim.scenario import CreateClaim, CreatePod
from jackfield.sim.torture import draw, hardship, plots, run, shrink
from jackfield.sim.torture.draw import Ordeal
from jackfield.sim.torture.run import Verdict
from jackfield.sim.weather import Mishap

ORDEALS = Path(__file__).parent / "ordeals"
SEEDS = (3, 7)
"""One of each hand-over; the rest is for `make torture`."""
MANY = range(200)
FEWER = range(100)


def told(seed: int, hash_seed: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "jackfield", "torture", "--seed", str(seed), "--steps", "1-12"],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_a_seed_tells_the_same_lines_under_every_hash_seed() -> None:
    assert told(5, 1) == told(5, 2)


def test_nobody_goes_on_when_whoever_began_is_killed() -> None:
    words = [sys.executable, "-m", "jackfield", "torture", "--seeds", "1000", "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as begun:
        workers = Path(f"/proc/{begun.pid}/task/{begun.pid}/children")
        give_up_at = time.monotonic() + 60
        while len(workers.read_text().split()) < 2:
            assert time.monotonic() < give_up_at, "no workers were started"
            time.sleep(0.1)  # noqa: TID251 - another process is waited for
        begun.kill()
        begun.communicate(timeout=60)  # as long as a worker lives, somebody can still write here


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_breaks_in_an_ordeal_and_everybody_runs_when_it_is_over(seed: int) -> None:
    verdict = run.suffer(draw.draw(seed))
    assert verdict.violations == ()


@pytest.mark.parametrize("path", sorted(ORDEALS.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_once_broke_something_breaks_nothing_any_more(path: Path) -> None:
    ordeal = msgspec.convert(yaml.safe_load(path.read_text()), Ordeal)
    assert run.suffer(ordeal).violations == ()


def test_every_seed_draws_fifty_pods_and_ten_troubles() -> None:
    drawn = [draw.draw(seed) for seed in MANY]
    assert min(one.pods for one in drawn) >= draw.PODS_MIN
    assert min(one.troubles for one in drawn) >= hardship.TROUBLES_MIN


def test_as_much_goes_wrong_as_is_wanted_on_the_same_cluster() -> None:
    usual, worse = draw.draw(5), draw.draw(5, draw.Given(troubles=70))
    assert usual.troubles < 70 <= worse.troubles
    assert worse.setting == usual.setting
    assert draw.draw(5, draw.Given()) == usual


def test_every_trouble_of_the_table_is_drawn() -> None:
    kinds = {type(step) for seed in MANY for step in draw.draw(seed).steps if not isinstance(step, CreatePod)}
    assert kinds >= set(hardship.TROUBLES) - set(hardship.UNDRAWN)


def test_what_a_vendors_device_is_detached_by_is_never_too_late_for_a_scheduler() -> None:
    """In `reschedule` an allocation that takes effect after `taintSeconds` would be of a device that is pulled."""
    drawn = [draw.draw(seed, draw.Given(troubles=70)) for seed in FEWER]
    late = [
        all(model.binds for model in ordeal.setting.policy.models)
        for ordeal in drawn
        for step in ordeal.steps
        if isinstance(step, trouble.Storm) and (step.program, step.mishap) == ("scheduler", Mishap.LATE)
    ]
    assert late
    assert all(late)


def test_no_pod_needs_a_spare_on_another_node() -> None:
    """Some seeds had a pool of three, one spare, and a pod that wanted three on its own node."""
    for seed in MANY:
        ordeal = draw.draw(seed)
        spares = max(one.spares for one in ordeal.setting.policy.models)
        pool = min(batch.count for fabric in ordeal.setting.fabrics for batch in fabric.batches)
        assert all(one.devices <= pool - spares for one in ordeal.steps if isinstance(one, CreatePod)), seed


def test_some_pods_do_not_take_any_device() -> None:
    pods = [
        step
        for seed in range(1, 21)
        for step in draw.draw(seed).steps
        if isinstance(step, CreatePod | CreateClaim)
    ]
    assert any(one.selector for one in pods)
    assert any(one.prefer for one in pods)
    assert any(one.same and one.devices > 1 for one in pods)
    assert not any(one.same and one.devices == 1 for one in pods)


def test_every_plot_is_drawn_and_lasts_no_longer_than_it_may() -> None:
    told: list[tuple[scenario.AnyStep, ...]] = []
    for seed in FEWER:
        ordeal = draw.draw(seed)
        stage = hardship.Stage.of(ordeal.setting)
        told += plots.drawn(Chance(seed).generator, stage, ordeal.calm_at, frozenset())
    spans = [max(one.at for one in plot) - min(one.at for one in plot) for plot in told]
    assert max(spans) <= plots.LONGEST
    kinds = {tuple(sorted({type(one).__name__ for one in plot})) for plot in told}
    assert len(kinds) >= len(plots.TABLE)


def test_no_plot_needs_a_node_that_is_not_to_stay() -> None:
    for seed in FEWER:
        stage = hardship.Stage.of(draw.draw(seed).setting)
        gone = frozenset(stage.nodes[1:])
        told = [step for one in plots.drawn(Chance(seed).generator, stage, 3000.0, gone) for step in one]
        pods = [one for one in told if isinstance(one, CreatePod)]
        assert {one.node for one in pods} <= {"", stage.nodes[0]}
        assert plots.drawn(Chance(seed).generator, stage, 3000.0, frozenset(stage.nodes)) == ()


def test_an_ordeal_can_be_kept_and_read_again() -> None:
    ordeal = draw.draw(17)
    kept = yaml.safe_dump(msgspec.to_builtins(ordeal))
    assert msgspec.convert(yaml.safe_load(kept), Ordeal) == ordeal


def test_all_that_is_drawn_is_over_before_the_calm() -> None:
    assert all(step.at < ordeal.calm_at for ordeal in map(draw.draw, MANY) for step in ordeal.steps)


# --- making it short


def broken_by(*numbers: int) -> run.Lived:
    """A way to live in which only these steps together break something."""
    ordeal = draw.draw(1)
    guilty = [ordeal.steps[number - 1] for number in numbers]

    def live(one: Ordeal) -> Verdict:
        broken = all(step in one.steps for step in guilty)
        at = max(step.at for step in guilty)
        return Verdict(1, 0, 0, at, None, (f"{at:.3f} on-two-nodes device/0",) if broken else ())

    return live


@pytest.mark.parametrize("places", [(0,), (2, 19), (1, 8, 32)])
def test_of_an_ordeal_that_breaks_something_only_the_guilty_steps_are_left(places: tuple[int, ...]) -> None:
    ordeal = draw.draw(1)
    alone = [
        number
        for number, step in enumerate(ordeal.steps, start=1)
        if not (isinstance(step, CreatePod) and step.claim)
    ]
    guilty = tuple(alone[place] for place in places)
    live = broken_by(*guilty)
    found = shrink.shortest(ordeal, live(ordeal), live=live)
    assert found.kept == guilty
    assert found.ordeal.steps == tuple(ordeal.steps[number - 1] for number in guilty)


def test_a_pod_is_left_with_the_claim_that_it_names() -> None:
    """Without it the pod could never run, and another fault would be shown than the one that was looked for."""
    ordeal = draw.draw(1)
    pod, claim = next(
        (number, step.claim)
        for number, step in enumerate(ordeal.steps, start=1)
        if isinstance(step, CreatePod) and step.claim
    )
    live = broken_by(pod)
    found = shrink.shortest(ordeal, live(ordeal), live=live)
    assert [step.name for step in found.ordeal.steps if isinstance(step, CreateClaim)] == [claim]
    assert len(found.kept) == 2


def test_another_violation_is_not_taken_for_the_same() -> None:
    ordeal = draw.draw(1)

    def live(one: Ordeal) -> Verdict:
        word = "pulled-in-use" if len(one.steps) == len(ordeal.steps) else "pod-waits"
        return Verdict(1, 0, 0, 9999.0, None, (f"1.0 {word} device/0",))

    assert len(shrink.shortest(ordeal, live(ordeal), live=live).kept) == len(ordeal.steps)

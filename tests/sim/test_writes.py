"""A claim's life costs few API writes of ours: eight until its pod is bound, sixteen until its device is back."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.cluster.api import WRITES, Client
from jackfield.sim import scenario
from jackfield.sim.play import perform
from jackfield.sim.story import Line
from jackfield.sim.world import SimWorld

LIFE = Path(__file__).parents[1] / "golden" / "life_of_a_claim.yaml"
APART = ("Event", "Lease")
"""Courtesies and signs of life; they are no part of what a claim costs."""
BOUND_MAX = 8
LIFE_MAX = 16
SEEDS = (1, 2, 3)
OPENED = 1
"""The last device of a pool is opened to all nodes when it becomes idle, since somebody may wait elsewhere."""

Writes = Counter[tuple[str, str]]


class Meter:
    """Counts what our controllers and our plugins have written at each line of a story."""

    def __init__(self) -> None:
        self.marks: dict[str, Writes] = {}
        self.last: Writes = Counter()
        self._world: SimWorld | None = None

    def __call__(self, line: Line, world: SimWorld) -> None:
        self._world = world
        self.marks.setdefault(f"{line.object} {line.action}", self._now())

    def end(self) -> Writes:
        """Return all that was written by the end of the play."""
        return self._now()

    def _now(self) -> Writes:
        world = self._world
        assert world is not None
        node = world.hardware.node_client
        assert isinstance(node, Client)
        calls = world.client.calls + node.calls
        return Counter(
            {
                (verb, kind): count
                for (verb, kind), count in calls.items()
                if verb in WRITES and kind not in APART
            }
        )


def lived(seed: int, devices: int) -> tuple[Writes, Writes]:
    """What was written from the pod's creation until it was bound, and until all was quiet again."""
    play = scenario.read(LIFE)
    (rack,) = play.setting.fabrics
    (batch,) = rack.batches
    rack = replace(rack, batches=(replace(batch, count=devices),))
    meter = Meter()
    outcome = perform(replace(play, setting=replace(play.setting, fabrics=(rack,))), seed, meter)
    assert outcome.failures == ()
    begin, bound = meter.marks["pod/default/train Created"], meter.marks["pod/default/train Bound"]
    return bound - begin, meter.end() - begin


@pytest.fixture(scope="module", params=SEEDS)
def life(request: pytest.FixtureRequest) -> tuple[Writes, Writes]:
    """One claim's life beside a device that stays in the pool."""
    return lived(request.param, devices=2)


def test_eight_writes_bring_a_pod_to_its_device(life: tuple[Writes, Writes]) -> None:
    bound, _ = life
    assert bound.total() <= BOUND_MAX, sorted(bound.items())


def test_sixteen_writes_are_a_whole_life(life: tuple[Writes, Writes]) -> None:
    _, whole = life
    assert whole.total() <= LIFE_MAX, sorted(whole.items())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_device_of_a_pool_costs_one_more_to_be_offered_to_all_nodes(seed: int) -> None:
    bound, whole = lived(seed, devices=1)
    assert bound.total() <= BOUND_MAX, sorted(bound.items())
    assert whole.total() <= LIFE_MAX + OPENED, sorted(whole.items())


def test_what_is_counted_is_what_was_written(life: tuple[Writes, Writes]) -> None:
    """The request comes and goes, the claim is told once, the entry is pinned and opened: else nothing was counted."""
    bound, whole = life
    assert bound["create", "ComposabilityRequest"] == bound["create", "ComposableResource"] == 1
    assert bound["apply", "ResourceClaim"] == whole["apply", "ResourceClaim"] == 1
    assert whole["delete", "ComposabilityRequest"] == 1
    assert whole["patch", "ResourceSlice"] == 2

"""How long things take: every distribution keeps to its bounds, and nonsense is refused."""

import random

import msgspec
import pytest

from jackfield.fabric_manager.durations import Distribution, Empirical, Exponential, Fixed, Lognormal, Uniform
from jackfield.model.names import Seconds

SAMPLES = (Seconds(60.0), Seconds(4.0), Seconds(20.0), Seconds(4.0))
BOUNDS: tuple[tuple[Distribution, float, float], ...] = (
    (Fixed(Seconds(3.0)), 3.0, 3.0),
    (Uniform(Seconds(1.0), Seconds(2.0)), 1.0, 2.0),
    (Lognormal(Seconds(20.0), 0.5, Seconds(5.0), Seconds(60.0)), 5.0, 60.0),
    (Lognormal(Seconds(20.0), 1e9, Seconds(5.0), Seconds(60.0)), 5.0, 60.0),
    (Exponential(Seconds(20.0), Seconds(1.0), Seconds(40.0)), 1.0, 40.0),
    (Empirical((Seconds(7.0),), between=True), 7.0, 7.0),
    (Empirical(SAMPLES), 4.0, 60.0),
    (Empirical(SAMPLES, between=True), 4.0, 60.0),
)


@pytest.mark.parametrize(("distribution", "least", "most"), BOUNDS)
def test_every_draw_is_within_the_bounds(distribution: Distribution, least: float, most: float) -> None:
    generator = random.Random("draws")  # noqa: S311 - no secret is made of it
    drawn = [distribution.draw(generator) for _ in range(2000)]
    assert least <= min(drawn) <= max(drawn) <= most
    assert least == most or max(drawn) > min(drawn)


def test_half_of_a_lognormal_is_above_its_median() -> None:
    generator = random.Random("median")  # noqa: S311
    drawn = sorted(Lognormal(Seconds(20.0), 0.5).draw(generator) for _ in range(5000))
    assert 19.0 < drawn[2500] < 21.0


def test_what_was_measured_is_drawn_as_often_as_it_was() -> None:
    generator = random.Random("measured")  # noqa: S311
    drawn = [Empirical(SAMPLES).draw(generator) for _ in range(4000)]
    assert {*drawn} == {*SAMPLES}
    assert 1800 < drawn.count(Seconds(4.0)) < 2200


def test_between_what_was_measured_everything_can_be_drawn() -> None:
    generator = random.Random("between")  # noqa: S311
    drawn = [Empirical(SAMPLES, between=True).draw(generator) for _ in range(3000)]
    assert 800 < sum(one == 4.0 for one in drawn) < 1200
    assert 800 < sum(4.0 < one <= 20.0 for one in drawn) < 1200
    assert 800 < sum(20.0 < one <= 60.0 for one in drawn) < 1200


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "fixed", "seconds": -1}',
        '{"kind": "fixed", "seconds": 1e999}',
        '{"kind": "uniform", "min": 2, "max": 1}',
        '{"kind": "lognormal", "median": 0, "sigma": 1}',
        '{"kind": "lognormal", "median": 1, "sigma": -1}',
        '{"kind": "lognormal", "median": 1, "sigma": 1, "min": 3, "max": 2}',
        '{"kind": "exponential", "mean": 0}',
        '{"kind": "empirical", "samples": []}',
        '{"kind": "empirical", "samples": [1, -1]}',
        '{"kind": "weekly"}',
    ],
)
def test_what_no_duration_could_come_from_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Distribution)

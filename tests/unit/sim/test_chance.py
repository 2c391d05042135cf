"""Chance is a function of seed and name."""

import math
from statistics import fmean, median

import msgspec
import pytest

from jackfield.model.names import NEVER, Seconds
from jackfield.sim.chance import Chance, Distribution, Exponential, Fixed, Lognormal, Uniform

DISTRIBUTIONS: tuple[Distribution, ...] = (
    Fixed(Seconds(3.0)),
    Uniform(Seconds(1.0), Seconds(4.0)),
    Lognormal(Seconds(20.0), 0.5, min=Seconds(5.0), max=Seconds(60.0)),
    Exponential(Seconds(30.0), min=Seconds(1.0), max=Seconds(90.0)),
)


def draws(chance: Chance, count: int = 5) -> list[float]:
    return [chance.generator.random() for _ in range(count)]


def test_the_same_seed_and_name_give_the_same_numbers() -> None:
    assert draws(Chance(7).branch("fabric")) == draws(Chance(7).branch("fabric"))
    assert draws(Chance(7).branch("fabric")) != draws(Chance(8).branch("fabric"))
    assert draws(Chance(7).branch("fabric")) != draws(Chance(7).branch("host"))


def test_a_draw_in_one_place_disturbs_no_other() -> None:
    disturbed = Chance(7)
    draws(disturbed)
    draws(disturbed.branch("fabric").branch("n0"))
    assert draws(disturbed.branch("fabric")) == draws(Chance(7).branch("fabric"))


def test_nobody_draws_anothers_numbers_twice() -> None:
    chance = Chance(7)
    assert draws(chance.branch("fabric")) != draws(chance.branch("fabric"))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_draws_stay_within_bounds(distribution: Distribution) -> None:
    low, high = distribution.bounds
    drawn = [distribution.draw(Chance(1).branch(str(number)).generator) for number in range(500)]
    assert low <= min(drawn) <= max(drawn) <= high
    assert len(set(drawn)) > 100 or low == high


def test_distributions_have_the_middle_they_name() -> None:
    generator = Chance("middle").generator
    assert median(Lognormal(Seconds(20.0), 0.5).draw(generator) for _ in range(4000)) == pytest.approx(
        20, rel=0.05
    )
    assert fmean(Exponential(Seconds(30.0)).draw(generator) for _ in range(4000)) == pytest.approx(
        30, rel=0.05
    )
    assert fmean(Uniform(Seconds(1.0), Seconds(4.0)).draw(generator) for _ in range(4000)) == pytest.approx(
        2.5, rel=0.05
    )


def test_the_spread_of_a_lognormal_is_sigma() -> None:
    generator = Chance("spread").generator
    logs = [math.log(Lognormal(Seconds(1.0), 0.5).draw(generator)) for _ in range(4000)]
    assert math.sqrt(fmean(log * log for log in logs)) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("yaml", "distribution"),
    [
        ("{kind: fixed, seconds: 3}", Fixed(Seconds(3.0))),
        ("{kind: uniform, min: 1, max: 4}", Uniform(Seconds(1.0), Seconds(4.0))),
        (
            "{kind: lognormal, median: 20, sigma: 0.5, max: 60}",
            Lognormal(Seconds(20.0), 0.5, max=Seconds(60.0)),
        ),
        ("{kind: exponential, mean: 30}", Exponential(Seconds(30.0))),
    ],
)
def test_distributions_are_read_from_scenarios(yaml: str, distribution: Distribution) -> None:
    assert msgspec.yaml.decode(yaml, type=Distribution) == distribution


@pytest.mark.parametrize(
    "yaml",
    [
        "{kind: fixed, seconds: -1}",
        "{kind: fixed, seconds: .inf}",
        "{kind: uniform, min: 4, max: 1}",
        "{kind: lognormal, median: 0, sigma: 1}",
        "{kind: lognormal, median: 1, sigma: -1}",
        "{kind: lognormal, median: 1, sigma: 1, min: 5, max: 4}",
        "{kind: exponential, mean: 0}",
        "{kind: exponential, mean: .inf}",
        "{kind: exponential, mean: 1, maximum: 3}",
        "{kind: normal, mean: 0}",
    ],
)
def test_distributions_that_make_no_sense_are_refused(yaml: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.yaml.decode(yaml, type=Distribution)


def test_bounds_default_to_none() -> None:
    assert Exponential(Seconds(1.0)).bounds == (0.0, NEVER)

"""How long attaching and detaching take, as distributions that can be written into a file.

Knows numbers. Must not know what is waited for. Chance is handed in.
"""

import math
import random
from typing import Final

import msgspec

from jackfield.model.names import NEVER, Seconds

SAMPLES_MAX: Final = 10_000


def _demand(condition: bool, rule: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Refuse parameters that no duration could come from; msgspec says where in the file they stand."""
    if not condition:
        raise ValueError(rule)


class Fixed(msgspec.Struct, frozen=True, tag_field="kind", tag="fixed", forbid_unknown_fields=True):
    """Always the same."""

    seconds: Seconds = Seconds(0.0)

    def __post_init__(self) -> None:
        _demand(0 <= self.seconds < NEVER, "fixed: seconds must be finite and not negative")

    def draw(self, _: random.Random) -> Seconds:
        """Return a duration."""
        return self.seconds


class Uniform(msgspec.Struct, frozen=True, tag_field="kind", tag="uniform", forbid_unknown_fields=True):
    """Anything between two bounds, equally likely."""

    min: Seconds
    max: Seconds

    def __post_init__(self) -> None:
        _demand(0 <= self.min <= self.max < NEVER, "uniform: 0 <= min <= max < infinity")

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration."""
        return Seconds(self.min + (self.max - self.min) * generator.random())


class Lognormal(msgspec.Struct, frozen=True, tag_field="kind", tag="lognormal", forbid_unknown_fields=True):
    """Mostly near the median, now and then far above: what operations on hardware look like."""

    median: Seconds
    sigma: float
    """The standard deviation of the logarithm: 0.5 puts one in forty above 2.7 medians."""
    min: Seconds = Seconds(0.0)
    max: Seconds = Seconds(3600.0)

    def __post_init__(self) -> None:
        _demand(0 < self.median < NEVER, "lognormal: median must be finite and positive")
        _demand(0 <= self.sigma < math.inf, "lognormal: sigma must be finite and not negative")
        _demand(0 <= self.min <= self.max < NEVER, "lognormal: 0 <= min <= max < infinity")

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration; what falls outside the bounds is moved to them."""
        # A large sigma leaves what a float can hold; the bound applies long before.
        exponent = min(self.sigma * generator.gauss(0.0, 1.0), 700.0)
        return Seconds(min(max(self.median * math.exp(exponent), self.min), self.max))


class Exponential(
    msgspec.Struct, frozen=True, tag_field="kind", tag="exponential", forbid_unknown_fields=True
):
    """The time between events that know nothing of each other."""

    mean: Seconds
    min: Seconds = Seconds(0.0)
    max: Seconds = Seconds(3600.0)

    def __post_init__(self) -> None:
        _demand(0 < self.mean < NEVER, "exponential: mean must be finite and positive")
        _demand(0 <= self.min <= self.max < NEVER, "exponential: 0 <= min <= max < infinity")

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration; what falls outside the bounds is moved to them."""
        drawn = -self.mean * math.log(1.0 - generator.random())
        return Seconds(min(max(drawn, self.min), self.max))


class Empirical(msgspec.Struct, frozen=True, tag_field="kind", tag="empirical", forbid_unknown_fields=True):
    """As it was measured: any of these, equally likely, and anything between neighbours if so wished."""

    samples: tuple[Seconds, ...]
    between: bool = False
    """Whether what lies between two neighbouring samples is drawn too."""

    def __post_init__(self) -> None:
        _demand(0 < len(self.samples) <= SAMPLES_MAX, f"empirical: samples must be 1 to {SAMPLES_MAX}")
        _demand(
            all(0 <= one < NEVER for one in self.samples),
            "empirical: samples must be finite and not negative",
        )

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration."""
        if not self.between or len(self.samples) == 1:
            return self.samples[int(generator.random() * len(self.samples))]
        known = sorted(self.samples)
        whole, part = divmod(generator.random() * (len(known) - 1), 1.0)
        lower, upper = known[int(whole)], known[int(whole) + 1]
        return Seconds(lower + (upper - lower) * part)


Distribution = Fixed | Uniform | Lognormal | Exponential | Empirical


class Times(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the work takes, beside what a back end takes by itself."""

    attach: Distribution = Fixed()
    detach: Distribution = Fixed()

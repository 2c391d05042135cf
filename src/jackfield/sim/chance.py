"""Chance under control: a tree of generators, each derived from seed and name, and distributions as data.

A further draw in one place disturbs no other, as every place has a branch of its own. Must not know what is
drawn for.
"""

import math
import random
from functools import cached_property

import msgspec

from jackfield.model.names import NEVER, Seconds


class Chance:
    """A node of the tree. The same name gives the same branch, so nobody draws another's numbers twice."""

    def __init__(self, seed: int | str) -> None:
        self._path = str(seed)
        self._branches: dict[str, Chance] = {}

    @cached_property
    def generator(self) -> random.Random:
        """The generator of this very place; it depends on the path alone."""
        return random.Random(self._path)

    def branch(self, name: str) -> "Chance":
        """Return the branch of that name."""
        if name not in self._branches:
            self._branches[name] = Chance(f"{self._path}/{name}")
        return self._branches[name]


class Fixed(msgspec.Struct, frozen=True, tag_field="kind", tag="fixed", forbid_unknown_fields=True):
    """Always the same."""

    seconds: Seconds

    def __post_init__(self) -> None:
        _demand(0 <= self.seconds < NEVER, "fixed: seconds must be finite and not negative")

    @property
    def bounds(self) -> tuple[Seconds, Seconds]:
        """The least and the most that can be drawn."""
        return self.seconds, self.seconds

    def draw(self, generator: random.Random) -> Seconds:
        """Return the duration; draws all the same, so that distributions can be exchanged."""
        generator.random()
        return self.seconds


class Uniform(msgspec.Struct, frozen=True, tag_field="kind", tag="uniform", forbid_unknown_fields=True):
    """Anything between two bounds, equally likely."""

    min: Seconds
    max: Seconds

    def __post_init__(self) -> None:
        _demand(0 <= self.min <= self.max < NEVER, "uniform: 0 <= min <= max < infinity")

    @property
    def bounds(self) -> tuple[Seconds, Seconds]:
        """The least and the most that can be drawn."""
        return self.min, self.max

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration."""
        return Seconds(self.min + (self.max - self.min) * generator.random())


class Lognormal(msgspec.Struct, frozen=True, tag_field="kind", tag="lognormal", forbid_unknown_fields=True):
    """Mostly near the median, now and then far above: what operations on hardware look like."""

    median: Seconds
    sigma: float
    """The standard deviation of the logarithm: 0.5 puts one in forty above 2.7 medians."""
    min: Seconds = Seconds(0.0)
    max: Seconds = NEVER

    def __post_init__(self) -> None:
        _demand(0 < self.median < NEVER, "lognormal: median must be finite and positive")
        _demand(0 <= self.sigma < math.inf, "lognormal: sigma must be finite and not negative")
        _demand(0 <= self.min <= self.max, "lognormal: 0 <= min <= max")

    @property
    def bounds(self) -> tuple[Seconds, Seconds]:
        """The least and the most that can be drawn."""
        return self.min, self.max

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration; what falls outside the bounds is moved to them."""
        drawn = self.median * math.exp(self.sigma * generator.gauss(0.0, 1.0))
        return Seconds(min(max(drawn, self.min), self.max))


class Exponential(
    msgspec.Struct, frozen=True, tag_field="kind", tag="exponential", forbid_unknown_fields=True
):
    """The time between events that know nothing of each other."""

    mean: Seconds
    min: Seconds = Seconds(0.0)
    max: Seconds = NEVER

    def __post_init__(self) -> None:
        _demand(0 < self.mean < NEVER, "exponential: mean must be finite and positive")
        _demand(0 <= self.min <= self.max, "exponential: 0 <= min <= max")

    @property
    def bounds(self) -> tuple[Seconds, Seconds]:
        """The least and the most that can be drawn."""
        return self.min, self.max

    def draw(self, generator: random.Random) -> Seconds:
        """Return a duration; what falls outside the bounds is moved to them."""
        drawn = -self.mean * math.log(1.0 - generator.random())
        return Seconds(min(max(drawn, self.min), self.max))


Distribution = Fixed | Uniform | Lognormal | Exponential


def _demand(condition: bool, rule: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Refuse parameters that no duration could come from; msgspec says where in the file they stand."""
    if not condition:
        raise ValueError(rule)

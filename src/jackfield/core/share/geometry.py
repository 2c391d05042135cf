"""How a GPU can be divided: profiles, where they fit, and what each takes of the whole.

A MIG partition occupies memory slices that lie side by side, at one of the few places its profile allows; besides it
takes engines, of which the GPU has a number. Two partitions can exist together if and only if they share no memory
slice, the engines suffice, and no profile has more instances than it may. That is what counters can say. Knows
NVIDIA's rules of placement. Must not know any one GPU, nor the API's words.
"""

from collections.abc import Mapping

import msgspec


class Placement(msgspec.Struct, frozen=True, order=True):
    """Where a partition lies on its GPU, in memory slices."""

    start: int
    size: int

    @property
    def slices(self) -> range:
        """The memory slices it occupies."""
        return range(self.start, self.start + self.size)

    def overlaps(self, other: "Placement") -> bool:
        """Return whether the two occupy a memory slice in common."""
        return self.start < other.start + other.size and other.start < self.start + self.size

    def __str__(self) -> str:
        """Spell it as nvidia-smi does."""
        return f"{{{self.start}}}:{self.size}"


class Engines(msgspec.Struct, frozen=True):
    """What a partition has for itself, apart from memory."""

    multiprocessors: int = 0
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0

    def amounts(self) -> Mapping[str, int]:
        """Return how many there are, by the name of their counter."""
        return {
            "multiprocessors": self.multiprocessors,
            "copy-engines": self.copy_engines,
            "decoders": self.decoders,
            "encoders": self.encoders,
            "jpeg-engines": self.jpeg_engines,
            "ofa-engines": self.ofa_engines,
        }


class Profile(msgspec.Struct, frozen=True):
    """A kind of partition, as the driver lists it."""

    name: str
    """As nvidia-smi spells it: `1g.5gb+me`."""
    number: int
    """The driver's own, by which it is created: 19."""
    compute_slices: int
    memory_mebibytes: int
    instances_max: int
    placements: tuple[Placement, ...]
    engines: Engines = Engines()


class Partition(msgspec.Struct, frozen=True):
    """A profile at a place: what can be created, and what is."""

    profile: Profile
    placement: Placement

    def __str__(self) -> str:
        """Spell it for people."""
        return f"{self.profile.name} at {self.placement}"


def partitions(profiles: tuple[Profile, ...]) -> tuple[Partition, ...]:
    """Return all that can be created, profile by profile, the places first that stand least in the way of others.

    The scheduler takes the first that fits. So a GPU fills up from the end where only small partitions fit, and what
    large ones need stays free as long as possible.
    """
    every = [Partition(profile, one) for profile in profiles for one in profile.placements]

    def in_the_way(one: Partition) -> tuple[int, int]:
        return sum(one.placement.overlaps(other.placement) for other in every), -one.placement.start

    numbers = {profile.number: index for index, profile in enumerate(profiles)}
    return tuple(sorted(every, key=lambda one: (numbers[one.profile.number], in_the_way(one))))


def totals(profiles: tuple[Profile, ...]) -> dict[str, int]:
    """Return what the whole GPU has of everything that partitions take, by the name of its counter."""
    end = max(one.start + one.size for profile in profiles for one in profile.placements)
    found = {"compute-slices": max(profile.compute_slices for profile in profiles)}
    for name in Engines().amounts():
        # The largest profile has all there is of most engines, but nobody promises that it has all of all.
        amount = max(profile.engines.amounts()[name] for profile in profiles)
        if amount:
            found[name] = amount
    found |= {memory_slice(index): 1 for index in range(end)}
    for profile in profiles:
        if _would_fit(profile, found) > profile.instances_max:
            found[_instances(profile)] = profile.instances_max
    return found


def taken(partition: Partition, whole: Mapping[str, int]) -> dict[str, int]:
    """Return what a partition takes of the whole GPU, by the name of the counter; what it takes none of is left out."""
    profile = partition.profile
    amounts = {"compute-slices": profile.compute_slices, **profile.engines.amounts()}
    amounts |= {memory_slice(index): 1 for index in partition.placement.slices}
    amounts[_instances(profile)] = 1
    return {name: amount for name, amount in amounts.items() if amount and name in whole}


def memory_slice(index: int) -> str:
    """Return the name of a memory slice's counter."""
    return f"memory-slice-{index}"


def slug(name: str) -> str:
    """Return a profile's name as part of a DNS label; no two profiles become alike."""
    plain = name.lower().replace("-me", ".no-me").replace("+", ".")
    return plain.replace(".", "-")


def _instances(profile: Profile) -> str:
    return f"{slug(profile.name)}-instances"


def _would_fit(profile: Profile, whole: Mapping[str, int]) -> int:
    """Return how many instances the other counters would let through: a profile's places are all of one size."""
    counted, end = 0, 0
    for placement in sorted(profile.placements):
        if placement.start >= end:
            counted, end = counted + 1, placement.start + placement.size
    needed = {"compute-slices": profile.compute_slices, **profile.engines.amounts()}
    return min([counted, *(whole[name] // amount for name, amount in needed.items() if amount)])

"""How GPUs can be divided: what the counters let through is what can exist, no more and no less."""

from collections.abc import Iterator, Mapping

import pytest

from jackfield.core.share.geometry import (
    Engines,
    Partition,
    Placement,
    Profile,
    memory_slice,
    partitions,
    slug,
    taken,
    totals,
)
from jackfield.core.share.gpu import Mig
from jackfield.core.share.models import A30, A100_40GB, A100_80GB, H100_80GB, H200_141GB
from jackfield.ports import Refused
from jackfield.testing import nvidia

CLASSIC = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")

# As `nvidia-smi mig -lgipp` prints them.
PLACEMENTS_OF_EIGHT = {
    19: "{0,1,2,3,4,5,6}:1",
    20: "{0,1,2,3,4,5,6}:1",
    15: "{0,2,4,6}:2",
    14: "{0,2,4}:2",
    9: "{0,4}:4",
    5: "{0}:4",
    0: "{0}:8",
}
PLACEMENTS_OF_FOUR = {14: "{0,1,2,3}:1", 21: "{0,1,2,3}:1", 5: "{0,2}:2", 6: "{0,2}:2", 0: "{0}:4"}


def printed(profile: Profile) -> str:
    starts = ",".join(str(one.start) for one in profile.placements)
    return f"{{{starts}}}:{profile.placements[0].size}"


@pytest.mark.parametrize("profiles", [A100_40GB, A100_80GB, H100_80GB, H200_141GB])
def test_large_gpus_place_their_profiles_as_the_driver_prints_them(profiles: tuple[Profile, ...]) -> None:
    assert {one.number: printed(one) for one in profiles} == PLACEMENTS_OF_EIGHT


def test_an_a30_places_its_profiles_as_the_driver_prints_them() -> None:
    assert {one.number: printed(one) for one in A30} == PLACEMENTS_OF_FOUR


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Placement(0, 1), Placement(0, 1), True),
        (Placement(0, 1), Placement(1, 1), False),
        (Placement(0, 4), Placement(3, 1), True),
        (Placement(4, 4), Placement(3, 1), False),
        (Placement(2, 1), Placement(0, 8), True),
    ],
)
def test_placements_overlap_where_they_share_a_slice(
    one: Placement, other: Placement, *, expected: bool
) -> None:
    assert one.overlaps(other) is other.overlaps(one) is expected


def test_places_and_partitions_are_spelt_as_nvidia_smi_does() -> None:
    assert str(Partition(A100_40GB[3], Placement(4, 2))) == "2g.10gb at {4}:2"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("1g.5gb", "1g-5gb"),
        ("1g.5gb+me", "1g-5gb-me"),
        ("1g.24gb-me", "1g-24gb-no-me"),
        ("1g.24gb+me.all", "1g-24gb-me-all"),
        ("4g.96gb+gfx", "4g-96gb-gfx"),
    ],
)
def test_no_two_profiles_become_alike_as_labels(name: str, label: str) -> None:
    assert slug(name) == label


def test_places_that_stand_in_nobodys_way_come_first() -> None:
    starts = {
        profile.name: [one.placement.start for one in partitions(A100_40GB) if one.profile == profile]
        for profile in A100_40GB
    }
    assert starts["1g.5gb"] == [6, 5, 4, 3, 2, 1, 0]
    assert starts["1g.10gb"] == [6, 4, 2, 0]
    assert starts["3g.20gb"] == [4, 0]


def test_a_whole_gpu_has_what_its_largest_profile_has() -> None:
    whole = totals(A100_40GB)
    assert whole == {
        "compute-slices": 7,
        "multiprocessors": 98,
        "copy-engines": 7,
        "decoders": 5,
        "jpeg-engines": 1,
        "ofa-engines": 1,
        **{memory_slice(index): 1 for index in range(8)},
    }
    assert taken(Partition(A100_40GB[-1], Placement(0, 8)), whole) == whole


def test_a_partition_takes_its_slices_and_engines_and_nothing_it_has_none_of() -> None:
    media = Partition(A100_40GB[1], Placement(5, 1))
    assert taken(media, totals(A100_40GB)) == {
        "compute-slices": 1,
        "multiprocessors": 14,
        "copy-engines": 1,
        "decoders": 1,
        "jpeg-engines": 1,
        "ofa-engines": 1,
        "memory-slice-5": 1,
    }


def test_a_profile_that_may_have_fewer_instances_than_fit_is_counted_by_itself() -> None:
    places = (Placement(0, 1), Placement(1, 1), Placement(2, 1))
    whole = Profile("3g.3gb", 0, 3, 3072, 1, (Placement(0, 3),), Engines(30))
    rare = Profile("1g.1gb+rare", 1, 1, 1024, 2, places, Engines(10))
    found = totals((whole, rare))
    assert found["1g-1gb-rare-instances"] == 2
    assert taken(Partition(rare, places[2]), found)["1g-1gb-rare-instances"] == 1
    assert "3g-3gb-instances" not in found


def test_places_that_overlap_are_not_counted_twice() -> None:
    sliding = Profile("2g.2gb", 1, 2, 2048, 1, (Placement(0, 2), Placement(1, 2)), Engines(20))
    assert "2g-2gb-instances" not in totals((sliding,))


# --- counters and the GPU agree


def fits(used: Mapping[str, int], one: Partition, whole: Mapping[str, int]) -> bool:
    return all(used.get(name, 0) + amount <= whole[name] for name, amount in taken(one, whole).items())


def combinations(profiles: tuple[Profile, ...]) -> Iterator[tuple[Partition, ...]]:
    """Yield every set of partitions that the counters let through."""
    every, whole = partitions(profiles), totals(profiles)

    def beyond(
        start: int, chosen: tuple[Partition, ...], used: dict[str, int]
    ) -> Iterator[tuple[Partition, ...]]:
        yield chosen
        for index in range(start, len(every)):
            if fits(used, every[index], whole):
                more = taken(every[index], whole)
                together = {name: used.get(name, 0) + more.get(name, 0) for name in whole}
                yield from beyond(index + 1, (*chosen, every[index]), together)

    yield from beyond(0, (), {})


def full(chosen: tuple[Partition, ...], profiles: tuple[Profile, ...]) -> bool:
    whole = totals(profiles)
    used = {name: sum(taken(one, whole).get(name, 0) for one in chosen) for name in whole}
    return not any(fits(used, one, whole) for one in partitions(profiles))


def test_an_a100_can_be_filled_in_the_nineteen_ways_that_are_known() -> None:
    classic = tuple(one for one in A100_40GB if one.name in CLASSIC)
    assert sum(full(chosen, classic) for chosen in combinations(classic)) == 19


def held(gpus: nvidia.Gpus, every: tuple[Partition, ...], start: int = 0) -> Iterator[tuple[Partition, ...]]:
    """Yield every set of partitions that can be created on a GPU, by creating it."""
    yield ()
    for index in range(start, len(every)):
        try:
            made = gpus.make(gpus.uuids[0], every[index])
        except Refused:
            continue
        for more in held(gpus, every, index + 1):
            yield (every[index], *more)
        gpus.destroy(gpus.uuids[0], made)


@pytest.mark.parametrize(("product", "sets"), [("NVIDIA A30", 76), ("NVIDIA A100-SXM4-40GB", 2319)])
def test_what_the_counters_let_through_is_exactly_what_the_gpu_can_hold(product: str, sets: int) -> None:
    gpus = nvidia.Gpus.of(product, mig=Mig.ENABLED)
    profiles = gpus.gpus()[0].profiles
    found = list(combinations(profiles))
    assert found == list(held(gpus, partitions(profiles)))
    assert len(found) == sets


def test_larger_gpus_can_be_divided_in_the_same_ways_as_an_a100() -> None:
    def ways(profiles: tuple[Profile, ...]) -> list[list[tuple[int, Placement]]]:
        return [[(one.profile.number, one.placement) for one in chosen] for chosen in combinations(profiles)]

    assert ways(H100_80GB) == ways(A100_40GB)

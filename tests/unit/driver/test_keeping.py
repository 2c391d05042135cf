"""Nothing leaves a slice while a claim has it."""

import pytest
from msgspec.structs import replace

from jackfield import driver
from jackfield.core.offer import Pool
from jackfield.driver.keeping import Kept, Place, kept
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec

TAINT = DeviceTaint("lamps.example.com/unhealthy", "missing", "NoSchedule")
OLD = DeviceTaint("example.com/old", "", "NoSchedule")
A, B = driver.device("a", attributes={"colour": "warm"}), driver.device("b")
HALF = driver.device("half", consumes={"board": {"slots": 1}})
BOARD, OTHER_BOARD = driver.counters("board", {"slots": 2}), driver.counters("other", {"slots": 2})
GROWN_BOARD = driver.counters("board", {"slots": 4})


def shown(*devices: Device, pool: str = "n1") -> ResourceSlice:
    return ResourceSlice(
        spec=ResourceSliceSpec(
            "lamps.example.com", ResourcePool(pool, 1), node_name=NodeName("n1"), devices=devices
        )
    )


def with_counters(*counters: driver.CounterSet, pool: str = "n1") -> ResourceSlice:
    one = shown(pool=pool)
    return replace(one, spec=replace(one.spec, shared_counters=counters))


def gone(device: Device, *before: DeviceTaint) -> Device:
    return replace(device, taints=(*before, TAINT))


ALL = Pool((A, B), name="n1")
CASES: list[tuple[str, tuple[Pool, ...], list[ResourceSlice], list[Place], Kept]] = [
    ("nothing is held", (Pool((A,), name="n1"),), [shown(A, B)], [], Kept((Pool((A,), name="n1"),))),
    ("what is held is listed", (ALL,), [shown(A, B)], [("n1", "a")], Kept((ALL,))),
    (
        "it is not listed any more",
        (Pool((A,), name="n1"),),
        [shown(A, B)],
        [("n1", "b"), ("n1", "b"), ("n1", "a")],
        Kept((Pool((A, gone(B)), name="n1"),), (("n1", "b"),)),
    ),
    (
        "its taint is there already, beside another",
        (Pool(name="n1"),),
        [shown(replace(A, taints=(TAINT, OLD)))],
        [("n1", "a")],
        Kept((Pool((gone(A, OLD),), name="n1"),), (("n1", "a"),)),
    ),
    (
        "its pool is not listed any more",
        (Pool((B,), name="n1"),),
        [shown(B), shown(A, pool="shelf")],
        [("shelf", "a")],
        Kept((Pool((B,), name="n1"), Pool((gone(A),), name="shelf")), (("shelf", "a"),)),
    ),
    (
        "it was never shown",
        (Pool((A,), name="n1"),),
        [shown(A), shown(B, pool="shelf")],
        [("n1", "b")],
        Kept((Pool((A,), name="n1"),)),
    ),
    (
        "the counters it consumes from are not listed any more",
        (Pool((A,), name="n1"),),
        [shown(A, HALF), with_counters(BOARD, OTHER_BOARD), with_counters(GROWN_BOARD, pool="shelf")],
        [("n1", "half")],
        Kept((Pool((A, gone(HALF)), (BOARD,), name="n1"),), (("n1", "half"),)),
    ),
    (
        "the counters it consumes from are listed, as they are now",
        (Pool((A,), (GROWN_BOARD,), name="n1"),),
        [shown(A, HALF), with_counters(BOARD)],
        [("n1", "half")],
        Kept((Pool((A, gone(HALF)), (GROWN_BOARD,), name="n1"),), (("n1", "half"),)),
    ),
]


@pytest.mark.parametrize(
    ("pools", "slices", "held", "expected"), [one[1:] for one in CASES], ids=[one[0] for one in CASES]
)
def test_what_is_held_stays_published_tainted(
    pools: tuple[Pool, ...], slices: list[ResourceSlice], held: list[Place], expected: Kept
) -> None:
    assert kept(pools, slices, held, TAINT) == expected

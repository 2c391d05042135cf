"""GPUs whose division is known without asking them: for planning, for pools, for tests.

What `nvidia-smi mig -lgip` and `-lgipp` print for them. Memory differs by a little between releases of the driver, so
where there is a driver it is asked. Knows figures. Must not know what is done with them.
"""

from collections.abc import Iterable

from jackfield.core.share.geometry import Engines, Placement, Profile


def _places(starts: Iterable[int], size: int) -> tuple[Placement, ...]:
    return tuple(Placement(start, size) for start in starts)


_ONE_OF_EIGHT = _places(range(7), 1)
_TWO_OF_EIGHT_AND_ONE_COMPUTE_SLICE = _places((0, 2, 4, 6), 2)
_TWO_OF_EIGHT = _places((0, 2, 4), 2)
_FOUR_OF_EIGHT = _places((0, 4), 4)
_LOWER_HALF = _places((0,), 4)
_ALL_OF_EIGHT = _places((0,), 8)


def _ampere(names: tuple[str, ...], mebibytes: tuple[int, ...]) -> tuple[Profile, ...]:
    """Return the profiles of an A100; its memory slices are of another size on each model."""
    one, one_double, two, three, four, seven = names
    small, double, half, whole = mebibytes
    return (
        Profile(one, 19, 1, small, 7, _ONE_OF_EIGHT, Engines(14, 1)),
        Profile(f"{one}+me", 20, 1, small, 1, _ONE_OF_EIGHT, Engines(14, 1, 1, 0, 1, 1)),
        Profile(one_double, 15, 1, double, 4, _TWO_OF_EIGHT_AND_ONE_COMPUTE_SLICE, Engines(14, 1, 1)),
        Profile(two, 14, 2, double, 3, _TWO_OF_EIGHT, Engines(28, 2, 1)),
        Profile(three, 9, 3, half, 2, _FOUR_OF_EIGHT, Engines(42, 3, 2)),
        Profile(four, 5, 4, half, 1, _LOWER_HALF, Engines(56, 4, 2)),
        Profile(seven, 0, 7, whole, 1, _ALL_OF_EIGHT, Engines(98, 7, 5, 0, 1, 1)),
    )


def _hopper(names: tuple[str, ...], mebibytes: tuple[int, ...]) -> tuple[Profile, ...]:
    """Return the profiles of an H100 or H200: decoders and JPEG engines in every slice, one OFA engine in all."""
    one, one_double, two, three, four, seven = names
    small, double, half, whole = mebibytes
    return (
        Profile(one, 19, 1, small, 7, _ONE_OF_EIGHT, Engines(16, 1, 1, 0, 1)),
        Profile(f"{one}+me", 20, 1, small, 1, _ONE_OF_EIGHT, Engines(16, 1, 1, 0, 1, 1)),
        Profile(one_double, 15, 1, double, 4, _TWO_OF_EIGHT_AND_ONE_COMPUTE_SLICE, Engines(26, 1, 1, 0, 1)),
        Profile(two, 14, 2, double, 3, _TWO_OF_EIGHT, Engines(32, 2, 2, 0, 2)),
        Profile(three, 9, 3, half, 2, _FOUR_OF_EIGHT, Engines(60, 3, 3, 0, 3)),
        Profile(four, 5, 4, half, 1, _LOWER_HALF, Engines(64, 4, 4, 0, 4)),
        Profile(seven, 0, 7, whole, 1, _ALL_OF_EIGHT, Engines(132, 8, 7, 0, 7, 1)),
    )


A30 = (
    Profile("1g.6gb", 14, 1, 5952, 4, _places(range(4), 1), Engines(14, 1, 1)),
    Profile("1g.6gb+me", 21, 1, 5952, 1, _places(range(4), 1), Engines(14, 1, 1, 0, 1, 1)),
    Profile("2g.12gb", 5, 2, 11968, 2, _places((0, 2), 2), Engines(28, 2, 2)),
    Profile("2g.12gb+me", 6, 2, 11968, 1, _places((0, 2), 2), Engines(28, 2, 2, 0, 1, 1)),
    Profile("4g.24gb", 0, 4, 24004, 1, _places((0,), 4), Engines(56, 4, 4, 0, 1, 1)),
)
A100_40GB = _ampere(
    ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"), (4864, 9984, 20096, 40448)
)
A100_80GB = _ampere(
    ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"), (9728, 19968, 40192, 80640)
)
H100_80GB = _hopper(
    ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"), (9984, 20096, 40448, 81152)
)
H200_141GB = _hopper(
    ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"), (16384, 33280, 71168, 143360)
)

KNOWN = {
    "NVIDIA A30": A30,
    "NVIDIA A100-SXM4-40GB": A100_40GB,
    "NVIDIA A100-PCIE-40GB": A100_40GB,
    "NVIDIA A100-SXM4-80GB": A100_80GB,
    "NVIDIA A100 80GB PCIe": A100_80GB,
    "NVIDIA H100 80GB HBM3": H100_80GB,
    "NVIDIA H200": H200_141GB,
}
"""By the name under which the driver sells them."""

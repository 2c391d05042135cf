"""CPUs as sysfs shows them: which core, socket and NUMA node each belongs to.

Knows the kernel's files. Must not know who may run where.
"""

from pathlib import Path
from typing import Final

import msgspec

from jackfield.node import files, memory

CPUS_MAX: Final = 65_536
"""A range in a list that names more is nonsense."""


class Cpu(msgspec.Struct, frozen=True, order=True):
    """A logical CPU that is online."""

    number: int
    core: int = -1
    socket: int = -1
    numa_node: int = -1


def cpus(sysfs: Path) -> tuple[Cpu, ...]:
    """Return the CPUs that are online, by number."""
    system = sysfs / "devices/system"
    homes = {number: node for node in _nodes(system) for number in _cpus_of(system, node)}
    return tuple(
        Cpu(
            number,
            files.number(system / f"cpu/cpu{number}/topology/core_id", -1),
            files.number(system / f"cpu/cpu{number}/topology/physical_package_id", -1),
            homes.get(number, -1),
        )
        for number in listed(files.text(system / "cpu/online"))
    )


def listed(words: str) -> tuple[int, ...]:
    """Return the numbers of a list such as `0-3,8`; what is no number is left out."""
    numbers: list[int] = []
    for part in words.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            low, high = int(first), int(last or first)
            numbers += range(low, min(high, low + CPUS_MAX) + 1)
    return tuple(numbers)


def _nodes(system: Path) -> list[int]:
    return [number for one in files.names(system / "node") if (number := memory.numa_node(one)) >= 0]


def _cpus_of(system: Path, node: int) -> tuple[int, ...]:
    return listed(files.text(system / f"node/node{node}/cpulist"))

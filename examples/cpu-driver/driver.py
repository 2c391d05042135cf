"""The CPU driver: every NUMA node is a device, whose CPUs are given away by number.

Run it with `python driver.py --node-name NODE`; `--help` tells the rest. Knows CPUs, and who has which. Must not know
how a container is kept on its CPUs.
"""

import platform
import re
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

import click
import msgspec

from jackfield import driver
from jackfield.model import quantity
from jackfield.node import cpus, files
from jackfield.node.cpus import Cpu

CPUS = "dra.cpu/cpu"
"""The capacity, as Kubernetes' own driver for CPUs calls it: claims that were written for that one work here, too."""
NUMA_NODE_ID = "dra.cpu/numaNodeID"
"""Likewise the number of a NUMA node."""
NUMA_NODE = "resource.kubernetes.io/numaNode"
"""Kubernetes' own name for it: a claim can ask that devices of several drivers agree in it."""
MAKERS = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
SYSFS = Path("/sys")
PROC = Path("/proc")
LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")

Which = tuple[str, str, str]
"""A share: uid of its claim, device, and share of it."""
Core = tuple[int, int]
"""Socket and core; what has the same is threads of one."""


class Given(msgspec.Struct, frozen=True):
    """What a share has got; it is remembered as it stands here."""

    numbers: str
    """As the kernel writes CPUs: `0-4,16-20`."""
    variable: str
    """What says so in the container's environment."""


class Cpus(driver.Driver):
    """Publishes NUMA nodes, and gives every share CPUs that no other share has."""

    name = "cpu.example.com"

    def __init__(self, sysfs: Path = SYSFS, reserved: Iterable[int] = (), proc: Path = PROC) -> None:
        self.sysfs = sysfs
        self.proc = proc
        self.reserved = frozenset(reserved)
        """CPUs that are nobody's: for the system."""
        self._given: dict[Which, Given] = {}

    def devices(self) -> Iterable[driver.Device]:
        """Return the NUMA nodes that have CPUs to give away."""
        made_by = processor(self.proc)
        for numa_node, there in self._homes().items():
            amount = len(there)
            # The API server wants room for a step; a single CPU has none, and needs none.
            step = 1 if amount > 1 else None
            yield driver.device(
                f"numa-{numa_node}",
                attributes={NUMA_NODE: numa_node, NUMA_NODE_ID: numa_node, **made_by},
                capacity={CPUS: driver.Capacity(amount, default=1, minimum=1, step=step)},
                shared=True,
            )

    async def prepare(self, share: driver.Share) -> driver.Prepared:
        """Choose CPUs for a share, the same ones whenever it is asked."""
        if share.admin_access:
            return driver.Prepared()  # who only looks is given nothing
        numa_node = int(share.device.removeprefix("numa-"))
        given = self._given.get(_which(share)) or self._chosen(share, numa_node)
        self._given[_which(share)] = given
        return driver.Prepared(
            edits=driver.Edits(
                env={given.variable: given.numbers, f"{given.variable}_NUMA_NODE": str(numa_node)}
            ),
            notes=msgspec.structs.asdict(given),
        )

    async def unprepare(self, share: driver.Share) -> None:
        """Have the CPUs back."""
        self._given.pop(_which(share), None)

    async def restore(self, shares: tuple[driver.Share, ...]) -> None:
        """Know again who has which CPUs: an earlier life gave them away."""
        self._given = {
            _which(one): msgspec.convert(one.notes, Given) for one in shares if not one.admin_access
        }

    def _homes(self) -> dict[int, list[Cpu]]:
        """Return the CPUs that may be given away, by NUMA node; a machine that has none counts as one."""
        homes: dict[int, list[Cpu]] = {}
        for one in cpus.cpus(self.sysfs):
            if one.number not in self.reserved:
                homes.setdefault(max(one.numa_node, 0), []).append(one)
        return dict(sorted(homes.items()))

    def _chosen(self, share: driver.Share, numa_node: int) -> Given:
        there = self._homes().get(numa_node, [])
        # Without the gate DRAConsumableCapacity a device has no shares: then it is given away whole.
        asked = share.consumed_capacity.get(CPUS)
        wanted = quantity.parse(asked).value() if asked else len(there)
        taken = {number for one in self._given.values() for number in cpus.listed(one.numbers)}
        free = [one for one in there if one.number not in taken]
        if len(free) < wanted:
            raise driver.Retry(
                f"the claim was given {wanted} CPUs of NUMA node {numa_node}, and only {len(free)} are free: "
                f"pods that have ended have not given theirs back yet, or CPUs went offline"
            )
        return Given(spelt(one.number for one in picked(there, free, wanted)), self._variable(share))

    def _variable(self, share: driver.Share) -> str:
        """Return the name of a variable that no other share of the claim has: a request may have several shares."""
        request = share.requests[0].partition("/")[0]
        name = f"CPUSET_{request.upper().replace('-', '_')}"
        others = {given.variable for (uid, _, _), given in self._given.items() if uid == share.uid}
        names = (name if number == 1 else f"{name}_{number}" for number in count(1))
        return next(one for one in names if one not in others)


def processor(proc: Path) -> dict[str, str]:
    """Return what sort of CPUs they are, as attributes; what the kernel does not say is left out."""
    said = {"hardware.cpu/architecture": files.text(proc / "sys/kernel/arch") or platform.machine()}
    for line in files.text(proc / "cpuinfo").splitlines():
        name, _, maker = line.partition(":")
        if name.strip() == "vendor_id" and maker.strip():
            said["hardware.cpu/vendor"] = MAKERS.get(maker.strip(), maker.strip().lower())
            break
    return said


def picked(there: Sequence[Cpu], free: Sequence[Cpu], wanted: int) -> list[Cpu]:
    """Return some of the free CPUs: whole cores as far as possible, then what others have left of theirs."""
    threads: dict[Core, int] = {}
    siblings: dict[Core, list[Cpu]] = {}
    for one in there:
        threads[_core(one)] = threads.get(_core(one), 0) + 1
    for one in free:
        siblings.setdefault(_core(one), []).append(one)
    chosen: list[Cpu] = []
    for core, own in siblings.items():
        if len(own) == threads[core] and len(own) <= wanted - len(chosen):
            chosen += own
    rest = [one for one in free if one not in chosen]
    rest.sort(key=lambda one: (len(siblings[_core(one)]), one.number))
    return chosen + rest[: wanted - len(chosen)]


def spelt(numbers: Iterable[int]) -> str:
    """Return CPUs as the kernel and `taskset` write them, `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _core(cpu: Cpu) -> Core:
    return (cpu.socket, cpu.core)


def _which(share: driver.Share) -> Which:
    return (share.uid, share.device, share.share_id)


def command(one: Cpus) -> click.Command:
    """Return the driver's command, with options of its own."""

    def look_in(_context: click.Context, _option: click.Parameter, value: Path) -> None:
        one.sysfs = value

    def read_in(_context: click.Context, _option: click.Parameter, value: Path) -> None:
        one.proc = value

    def reserve(_context: click.Context, _option: click.Parameter, value: str) -> None:
        if value and not LIST.fullmatch(value):
            raise click.BadParameter(f"{value!r} is no list of CPUs; it takes one such as 0-3,8")
        one.reserved = frozenset(cpus.listed(value))

    made = driver.command(one)
    made.params += [
        click.Option(
            ["--sysfs-root"],
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            default=SYSFS,
            show_default=True,
            expose_value=False,
            callback=look_in,
            help="Where the node's sysfs is.",
        ),
        click.Option(
            ["--proc-root"],
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            default=PROC,
            show_default=True,
            expose_value=False,
            callback=read_in,
            help="Where the node's proc is.",
        ),
        click.Option(
            ["--reserved-cpus"],
            default="",
            expose_value=False,
            callback=reserve,
            help="CPUs that are given to nobody, such as 0-1,16-17: those that the system keeps to itself.",
        ),
    ]
    return made


if __name__ == "__main__":
    command(Cpus()).main()

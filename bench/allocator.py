"""Our allocator and Kubernetes' own on the same claims, taking turns in one run.

Says how many claims each of them serves in a second of processor time, their ratio, and whether both gave the same
devices. Reading the input and starting up count on neither side; compiled selectors are kept from round to round on
both. What a claim costs with 5,000 nodes against 100 is counted in bytecodes. Where Go is missing only ours is run, and
no ratio is judged.
"""

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from jackfield.core import allocate, cel
from jackfield.model.claim import ResourceClaim, ResourceClaimStatus
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice

ROOT: Final = Path(__file__).resolve().parent.parent
GO: Final = ROOT / "tools" / "bench-allocator"
RESULTS: Final = ROOT / "bench" / "results" / "allocator.json"
DRIVER: Final = "gpu.example.com"
MODELS: Final = (("A100", "40Gi"), ("H100", "80Gi"), ("H200", "141Gi"), ("L40S", "48Gi"))
SLICE_DEVICES_MAX: Final = 64
HEADER: Final = (
    f"{'nodes x GPUs + pool':42} {'ours/s':>10} {'Go/s':>12} {'ratio':>10} {'at least':>8}"
    f" {'build s':>8} {'with build':>11}"
)
FLAT_MAX: Final = 1.20
FLAT_CLAIMS: Final = 100


class Row(msgspec.Struct, frozen=True):
    """One row of the table."""

    nodes: int
    local: int
    pool: int
    every: bool
    claims: int
    rounds: int
    ratio_min: float

    def __str__(self) -> str:
        mode = "all nodes" if self.every else "first fit"
        return f"{self.nodes:,} x {self.local} + {self.pool:,}, {mode}, {self.claims:,} claims"


ROWS: Final = (
    Row(100, 8, 0, every=False, claims=300, rounds=5, ratio_min=0.3),
    Row(100, 8, 256, every=False, claims=300, rounds=5, ratio_min=0.3),
    Row(1_000, 8, 256, every=False, claims=300, rounds=5, ratio_min=1),
    Row(1_000, 0, 1_024, every=False, claims=300, rounds=5, ratio_min=1),
    Row(5_000, 8, 256, every=False, claims=300, rounds=3, ratio_min=10),
    Row(5_000, 8, 256, every=False, claims=10_000, rounds=1, ratio_min=10),
    Row(1_000, 8, 256, every=True, claims=12, rounds=3, ratio_min=100),
    Row(5_000, 8, 1_024, every=True, claims=4, rounds=1, ratio_min=100),
)


# --- the world, as it is on the wire


def device(name: str, number: int) -> dict[str, Any]:
    """Return a GPU; its number decides the model."""
    model, memory = MODELS[number % len(MODELS)]
    return {
        "name": name,
        "attributes": {"model": {"string": model}, "index": {"int": number % 8}},
        "capacity": {"memory": {"value": memory}},
    }


def slice_(name: str, pool: str, count: int, devices: Sequence[Any], **where: object) -> dict[str, Any]:
    """Return one of so many slices of a pool."""
    of = {"name": pool, "generation": 1, "resourceSliceCount": count}
    return {"metadata": {"name": name}, "spec": {"driver": DRIVER, "pool": of, "devices": devices, **where}}


def claim(number: int) -> dict[str, Any]:
    """Return a claim for one to three GPUs of a model."""
    model, memory = MODELS[number % len(MODELS)]
    memory_suffices = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{memory}')) >= 0"
    expression = f"{memory_suffices} && device.attributes['{DRIVER}'].model == '{model}'"
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1 + number % 3,
        "selectors": [{"cel": {"expression": expression}}],
    }
    return {
        "metadata": {"name": f"claim-{number}", "namespace": "default", "uid": f"uid-{number}"},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
    }


def world(row: Row) -> dict[str, Any]:
    """Return nodes of one model each, a pool of all models for all nodes, and claims."""
    names = [f"node-{number:04}" for number in range(row.nodes)]
    local = [
        slice_(name, name, 1, [device(f"gpu-{one}", number) for one in range(row.local)], nodeName=name)
        for number, name in enumerate(names)
        if row.local
    ]
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"], "bindsToNode": True}
    fabric = [{**device(f"fabric-{one:04}", one), **conditions} for one in range(row.pool)]
    starts = range(0, row.pool, SLICE_DEVICES_MAX)
    parts = [
        slice_(f"fabric-{at:04}", "fabric", len(starts), fabric[at : at + SLICE_DEVICES_MAX], allNodes=True)
        for at in starts
    ]
    of_driver = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    return {
        "nodes": [{"metadata": {"name": name}} for name in names],
        "slices": local + parts,
        "classes": [{"metadata": {"name": "gpu"}, "spec": {"selectors": of_driver}}],
        "claims": [claim(number) for number in range(row.claims)],
    }


# --- the two sides


class Served(msgspec.Struct):
    """What one claim got."""

    node: str
    devices: tuple[str, ...]
    fitting: int


class Run(msgspec.Struct):
    """What all claims got, and how long it took."""

    seconds: float
    claims: tuple[Served, ...]


class Ours:
    """Our side: the world, read."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.nodes = msgspec.convert(wire["nodes"], tuple[Node, ...])
        self.slices = msgspec.convert(wire["slices"], tuple[ResourceSlice, ...])
        self.classes = {one["metadata"]["name"]: msgspec.convert(one, DeviceClass) for one in wire["classes"]}
        self.claims = msgspec.convert(wire["claims"], tuple[ResourceClaim, ...])
        self.build_seconds = 0.0
        self._next = 0

    def fleet(self) -> allocate.Fleet:
        """Return all nodes with all devices free."""
        began = process_time()
        fleet = allocate.Fleet(
            allocate.Allocator(self.slices, self.classes, allocate.Allocated()), self.nodes
        )
        self.build_seconds = process_time() - began
        self._next = 0
        return fleet

    def run(self, *, every: bool) -> Run:
        """Serve all claims."""
        fleet = self.fleet()
        gc.collect()
        began = process_time()
        served = [self.serve(fleet, one, every=every) for one in self.claims]
        seconds = process_time() - began
        return Run(seconds, tuple(_served(fit, fitting) for fit, fitting in served))

    def serve(
        self, fleet: allocate.Fleet, one: ResourceClaim, *, every: bool
    ) -> tuple[allocate.Fit | allocate.Nowhere, int]:
        """Serve one claim; what it gets is in use for the next."""
        found, fitting = self._every(fleet, one) if every else self._first(fleet, one)
        if isinstance(found, allocate.Fit):
            fleet.hold(replace(one, status=ResourceClaimStatus(found.allocations[0])))
        return found, fitting

    def _first(
        self, fleet: allocate.Fleet, one: ResourceClaim
    ) -> tuple[allocate.Fit | allocate.Nowhere, int]:
        found = fleet.first_from((one,), self.nodes[self._next].name)
        if isinstance(found, allocate.Nowhere):
            return found, 0
        self._next = (int(found.node.removeprefix("node-")) + 1) % len(self.nodes)
        return found, 1

    def _every(
        self, fleet: allocate.Fleet, one: ResourceClaim
    ) -> tuple[allocate.Fit | allocate.Nowhere, int]:
        fitting = fleet.fitting((one,))
        if not len(fitting):
            return allocate.Nowhere(()), 0
        return fleet.first_in((one,), (fitting.first,)), len(fitting)


def _served(found: allocate.Fit | allocate.Nowhere, fitting: int) -> Served:
    if isinstance(found, allocate.Nowhere):
        return Served("", (), fitting)
    return Served(found.node, tuple(str(one.id) for one in found.allocations[0].devices.results), fitting)


class Theirs:
    """Kubernetes' side: a process of its own, spoken to by lines."""

    def __init__(self, program: Path) -> None:
        # Without helpers on other cores, as ours.
        self._process = subprocess.Popen(  # noqa: S603 - built from our own source
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "GOMAXPROCS": "1"},
        )

    def load(self, wire: dict[str, Any]) -> None:
        """Hand over the world."""
        self._ask({"load": wire})

    def run(self, *, every: bool) -> Run:
        """Serve all claims."""
        return msgspec.json.decode(self._ask({"run": "all" if every else "first"}), type=Run)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, command: dict[str, Any]) -> bytes:
        to, back = self._process.stdin, self._process.stdout
        if to is None or back is None:
            raise RuntimeError("the Go program has no pipes")
        to.write(msgspec.json.encode(command) + b"\n")
        to.flush()
        answer = back.readline()
        if not answer:
            raise RuntimeError("the Go program ended without an answer")
        return answer


def built() -> Path | None:
    """Return the Go program, built where it is missing or its source has changed; None where it cannot be built."""
    go = shutil.which("go")
    if go is None:
        click.echo("Go is not installed: only our side is run, and no ratio is judged.")
        return None
    sources = sorted(one for one in GO.iterdir() if one.suffix in {".go", ".mod", ".sum"})
    digest = sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jackfield"
    program = cache / f"bench-allocator-{digest}"
    if program.exists():
        return program
    click.echo(f"building {GO.relative_to(ROOT)}, which takes minutes, but only once")
    cache.mkdir(parents=True, exist_ok=True)
    # Built beside and moved into place, so that an interrupted build leaves nothing that looks whole.
    unfinished = program.with_suffix(f".{os.getpid()}")
    flags = f"-mod=readonly -buildvcs=false {os.environ.get('GOFLAGS', '')}"
    environment = {**os.environ, "GOFLAGS": flags, "GOWORK": "off", "CGO_ENABLED": "0"}
    try:
        subprocess.run(  # noqa: S603 - our own source
            [go, "build", "-trimpath", "-o", unfinished, "."], cwd=GO, env=environment, check=True
        )
    except subprocess.CalledProcessError:
        click.echo("The Go program cannot be built: only our side is run, and no ratio is judged.")
        return None
    return unfinished.replace(program)


# --- the figures


class Figures(msgspec.Struct, rename="camel"):
    """What one row came to."""

    row: str
    claims: int
    ours_per_second: float
    theirs_per_second: float | None
    ratio: float | None
    ratio_min: float
    same_devices: bool
    build_seconds: float
    """What our side spends once on a world, before the first claim; not part of the rates."""
    ratio_with_build: float | None
    """What the ratio would be if these claims were all there ever are, and had to pay for the preparation."""

    @property
    def good(self) -> bool:
        """Whether it is as it must be."""
        return self.same_devices and (self.ratio is None or self.ratio >= self.ratio_min)


def measured(row: Row, theirs: Theirs | None) -> Figures:
    """Return the figures of a row; both sides take turns."""
    wire = world(row)
    ours = Ours(wire)
    if theirs is not None:
        theirs.load(wire)
    mine: list[float] = []
    other: list[float] = []
    same = True
    for _ in range(row.rounds):
        found = ours.run(every=row.every)
        mine.append(found.seconds)
        if theirs is not None:
            wanted = theirs.run(every=row.every)
            other.append(wanted.seconds)
            same = same and found.claims == wanted.claims
    rate = row.claims / statistics.median(mine)
    their_rate = row.claims / statistics.median(other) if other else None
    whole = statistics.median(mine) + ours.build_seconds
    return Figures(
        row=str(row),
        claims=row.claims,
        ours_per_second=rate,
        theirs_per_second=their_rate,
        ratio=None if their_rate is None else rate / their_rate,
        ratio_min=row.ratio_min,
        same_devices=same,
        build_seconds=ours.build_seconds,
        ratio_with_build=statistics.median(other) / whole if other else None,
    )


def told(one: Figures) -> str:
    """Return the line of a row."""
    theirs = "-" if one.theirs_per_second is None else f"{one.theirs_per_second:,.2f}"
    ratio = "-" if one.ratio is None else f"{one.ratio:,.2f}"
    words = [] if one.same_devices else ["OTHER DEVICES"]
    if one.ratio is not None and one.ratio < one.ratio_min:
        words.append("TOO LOW")
    line = f"{one.row:42} {one.ours_per_second:>10,.0f} {theirs:>12} {ratio:>10} {one.ratio_min:>8g}"
    whole = "-" if one.ratio_with_build is None else f"{one.ratio_with_build:,.2f}"
    return " ".join([line, f"{one.build_seconds:>8.2f} {whole:>11}", *words])


class Bytecodes:
    """Counts the bytecodes that Python executes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> "Bytecodes":
        """Count one, and ask for more."""
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.count += event == "opcode"
        return self


def bytecodes(nodes: int, *, every: bool) -> float:
    """Return how many bytecodes a claim takes, selectors compiled before."""
    ours = Ours(world(Row(nodes, 8, 256, every=every, claims=FLAT_CLAIMS, rounds=1, ratio_min=0)))
    fleet = ours.fleet()
    counted = ours.claims[len(MODELS) :]
    for one in ours.claims[: len(MODELS)]:
        ours.serve(fleet, one, every=every)
    counter = Bytecodes()
    sys.settrace(counter)
    for one in counted:
        ours.serve(fleet, one, every=every)
    sys.settrace(None)
    return counter.count / len(counted)


def flatness() -> dict[str, float]:
    """Return what a claim costs with 5,000 nodes against 100."""
    found: dict[str, float] = {}
    for mode, every in (("first fit", False), ("all nodes", True)):
        few, many = (bytecodes(nodes, every=every) for nodes in (100, 5_000))
        found[mode] = many / few
        words = f"{few:,.0f} bytecodes a claim with 100 nodes, {many:,.0f} with 5,000"
        click.echo(f"{mode}: {words}: {many / few:.3f} times (at most {FLAT_MAX})")
    return found


def main() -> int:
    """Print and write the figures; return 1 if one is out of its bound."""
    program = built()
    # Makes the compiler of expressions, which is start-up; the other side does the same.
    cel.compile("true")
    theirs = None if program is None else Theirs(program)
    click.echo(HEADER)
    rows: list[Figures] = []
    for row in ROWS:
        rows.append(measured(row, theirs))
        click.echo(told(rows[-1]))
    if theirs is not None:
        theirs.close()
    flat = flatness()
    RESULTS.parent.mkdir(exist_ok=True)
    written = {"cores": os.cpu_count(), "rows": msgspec.to_builtins(rows), "costAt5000NodesAgainst100": flat}
    RESULTS.write_text(json.dumps(written, indent=2) + "\n")
    click.echo(f"written to {RESULTS.relative_to(ROOT)}")
    return int(not all(one.good for one in rows) or max(flat.values()) > FLAT_MAX)


if __name__ == "__main__":
    sys.exit(main())

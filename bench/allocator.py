"""Our allocator and Kubernetes' own on the same claims, taking turns in one run.

Says how many claims a second each of them serves, their ratio, and whether both gave the same devices. Reading the input and
starting up count on neither side. What a claim costs with 5,000 nodes against 100 is counted in bytecodes, since seconds
depend on who else uses the machine. Where Go is missing only ours is run, and no ratio is judged.
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
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, Final

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
        return f"{self.nodes:,} x {self.local} + {self.pool:,}, {'all nodes' if self.every else 'first fit'}"


ROWS: Final = (
    Row(100, 8, 0, every=False, claims=300, rounds=5, ratio_min=0.3),
    Row(100, 8, 256, every=False, claims=300, rounds=5, ratio_min=0.3),
    Row(1_000, 8, 256, every=False, claims=300, rounds=5, ratio_min=1),
    Row(1_000, 0, 1_024, every=False, claims=300, rounds=5, ratio_min=1),
    Row(5_000, 8, 256, every=False, claims=300, rounds=3, ratio_min=10),
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
        began = perf_counter()
        fleet = allocate.Fleet(
            allocate.Allocator(self.slices, self.classes, allocate.Allocated()), self.nodes
        )
        self.build_seconds = perf_counter() - began
        self._next = 0
        return fleet

    def run(self, *, every: bool) -> Run:
        """Serve all claims."""
        fleet = self.fleet()
        gc.collect()
        began = perf_counter()
        served = [self.serve(fleet, one, every=every) for one in self.claims]
        seconds = perf_counter() - began
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
        answer = fleet.allocate((one,), fitting.first)
        assert not isinstance(answer, allocate.NoFit)
        return allocate.Fit(fitting.first, answer), len(fitting)


def _served(found: allocate.Fit | allocate.Nowhere, fitting: int) -> Served:
    if isinstance(found, allocate.Nowhere):
        return Served("", (), fitting)
    return Served(
        found.node, tuple(str(one.id) for one in found.allocations[0].devices.results), fitting
    )


class Theirs:
    """Kubernetes' side: a process of its own, spoken to by lines."""

    def __init__(self, program: Path) -> None:
        # One core, as ours.
        environment = {**os.environ, "GOMAXPROCS": "1"}
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> "Theirs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def load(self, wire: dict[str, Any]) -> None:
        """Hand over the world."""
        self._ask({"load": wire})

    def run(self, *, every: bool) -> Run:
        """Serve all claims."""
        return msgspec.json.decode(self._ask({"run": "all" if every else "first"}), type=Run)

    def _ask(self, command: dict[str, Any]) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

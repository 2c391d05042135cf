"""The Redfish adapter keeps every promise of the port, over HTTP, against our manager's face, in every mode."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jackfield.fabric import Line
from jackfield.fabric_manager.durations import Distribution, Fixed, Uniform
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.model.fabric import Traits
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from jackfield.testing import fabric as conformance
from unit.fabric.redfish_bench import MODES, line, serving
from unit.fabric_manager.lab import FABRIC

WAYS: tuple[tuple[str, Distribution, float], ...] = (
    ("at once", Fixed(), 1.0),
    ("by task", Uniform(Seconds(1.0), Seconds(4.0)), 0.0),
)
"""How long the manager takes, and how long its face waits for that before it answers with a task."""
CASES = [
    pytest.param(mode, row, duration, held, id=f"{mode}-{way}-{row}")
    for mode, options in MODES.items()
    for row in conformance.rows(
        Traits(chooses_device=options.get("composition") == "constrained", knows_orders=False)
    )
    for way, duration, held in (WAYS if mode == "action" else WAYS[1:])
]


@pytest.mark.parametrize(("mode", "row", "duration", "held"), CASES)
def test_the_adapter_keeps_its_promises(
    tmp_path: Path, mode: str, row: conformance.Row, duration: Distribution, held: float
) -> None:
    async def main() -> None:
        async with asyncio.timeout(300.0), AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                serving(tmp_path, duration, face=Redfish(answer_seconds=Seconds(held)))
            )

            foreign: list[PhysicalID] = []

            def connect() -> Line:
                jobs = 1 if mode == "constrained" else 3
                made = line(server.url, server.manager.clock, **MODES[mode], jobs=jobs, foreign=foreign)
                stack.push_async_exit(made)
                return made

            async def another() -> PhysicalID:
                foreign.append(await conformance.taken(bench))
                return foreign[0]

            bench = conformance.Bench(
                connect=connect,
                clock=server.manager.clock,
                fabric=FABRIC,
                nodes=(NodeName("n-1"), NodeName("n-2")),
                plenty=ModelName("A100"),
                scarce=ModelName("H100"),
                another=another,
            )
            await row.run(bench)

    asyncio.run(main())

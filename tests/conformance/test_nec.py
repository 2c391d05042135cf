"""The adapter for NEC's layout-apply keeps every promise of the port, over HTTP, against our manager's face of it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jackfield.fabric import Line
from jackfield.fabric_manager.durations import Distribution, Fixed, Uniform
from jackfield.model.fabric import Traits
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from jackfield.testing import fabric as conformance
from unit.fabric.nec_bench import line, serving
from unit.fabric_manager.lab import FABRIC

TRAITS = Traits(knows_orders=False, jobs=1)
TRIALS: tuple[tuple[str, Distribution], ...] = (
    ("cpu", Fixed()),
    ("cpu", Uniform(Seconds(0.5), Seconds(3.0))),
    ("fabricAdapter", Fixed(Seconds(1.0))),
)


@pytest.mark.parametrize(("wiring", "duration"), TRIALS, ids=["at once", "uniform", "by fabric adapters"])
@pytest.mark.parametrize("row", conformance.rows(TRAITS), ids=str)
def test_the_adapter_keeps_its_promises(
    tmp_path: Path, row: conformance.Row, wiring: str, duration: Distribution
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(tmp_path, duration))

            foreign: list[PhysicalID] = []

            def connect() -> Line:
                made = line(server.url, server.manager.clock, wiring=wiring, foreign=foreign)
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

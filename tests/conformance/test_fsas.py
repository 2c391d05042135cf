"""The adapters for Fsas' managers keep every promise of the port, over HTTP, against our manager's face of both."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jackfield.fabric import Line
from jackfield.fabric_manager.durations import Distribution, Fixed, Uniform
from jackfield.model.fabric import Traits
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from jackfield.testing import fabric as conformance
from unit.fabric.fsas_bench import TYPES, line, serving
from unit.fabric_manager.lab import FABRIC

TRAITS = Traits(chooses_device=True, knows_orders=False)
DURATIONS: tuple[Distribution, ...] = (Fixed(), Fixed(Seconds(5.0)), Uniform(Seconds(1.0), Seconds(9.0)))


@pytest.mark.parametrize("duration", DURATIONS, ids=["at once", "fixed", "uniform"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("row", conformance.rows(TRAITS), ids=str)
def test_the_adapters_keep_their_promises(
    tmp_path: Path, row: conformance.Row, kind: str, duration: Distribution
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(tmp_path, duration))

            foreign: list[PhysicalID] = []

            def connect() -> Line:
                made = line(
                    kind,
                    server.url,
                    server.manager.clock,
                    effectSeconds=15.0,
                    queueSeconds=35.0,
                    foreign=foreign,
                )
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

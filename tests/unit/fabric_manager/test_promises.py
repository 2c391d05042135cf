"""The native adapter keeps every promise of the port against this manager, over HTTP."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jackfield.fabric.native import NativeFabric
from jackfield.fabric_manager.durations import Distribution, Fixed, Uniform
from jackfield.model.fabric import Done, Traits
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from jackfield.testing import fabric as conformance
from unit.fabric_manager.lab import FABRIC, attached, lab, line, order, serving

DURATIONS: tuple[Distribution, ...] = (
    Fixed(),
    Fixed(Seconds(5.0)),
    Uniform(Seconds(1.0), Seconds(9.0)),
)


@pytest.mark.parametrize("duration", DURATIONS, ids=["at once", "fixed", "uniform"])
@pytest.mark.parametrize("row", conformance.rows(Traits()), ids=str)
def test_the_manager_keeps_its_promises_over_http(
    tmp_path: Path, row: conformance.Row, duration: Distribution
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(tmp_path, lab(duration)))

            def connect() -> NativeFabric:
                made = line(server)
                stack.push_async_exit(made)
                return made

            async def another() -> PhysicalID:
                by_hand = order("by-hand")
                assert isinstance(await attached(server.manager, by_hand, "control"), Done)
                return by_hand.device

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

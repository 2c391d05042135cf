"""The Sunfish adapter keeps every promise of the port, against a Sunfish on paper whose agents tell all, or little."""

from contextlib import AsyncExitStack

import pytest

from jackfield.fabric.redfish.adapter import RedfishFabric
from jackfield.model.fabric import Traits
from jackfield.model.names import ModelName, NodeName, PhysicalID
from jackfield.sim import clock, loop
from jackfield.testing import fabric as conformance
from unit.fabric.sunfish_bench import adapter, small
from unit.fabric_manager.lab import FABRIC

TELLING = pytest.mark.parametrize("agents", ["tell", "say nothing"])
TAKING = pytest.mark.parametrize("seconds", [0.0, 5.0], ids=["at once", "fixed"])


@TELLING
@TAKING
@pytest.mark.parametrize("row", conformance.rows(Traits(knows_orders=False)), ids=str)
def test_the_adapter_keeps_its_promises(row: conformance.Row, seconds: float, agents: str) -> None:
    async def main() -> None:
        paper = small(tells=agents == "tell", seconds=seconds)
        async with AsyncExitStack() as stack:
            foreign: list[PhysicalID] = []

            def connect() -> RedfishFabric:
                made = adapter(paper, foreign=foreign)
                stack.push_async_exit(made)
                return made

            async def another() -> PhysicalID:
                foreign.append(await conformance.taken(bench))
                return foreign[0]

            bench = conformance.Bench(
                connect=connect,
                clock=clock.running(),
                fabric=FABRIC,
                nodes=(NodeName("n-1"), NodeName("n-2")),
                plenty=ModelName("A100"),
                scarce=ModelName("H100"),
                another=another,
            )
            await row.run(bench)

    loop.run(main())

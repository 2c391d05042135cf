"""The seven steps of KEP-5007 with the real scheduler, handed over by `bind`."""

import asyncio
from pathlib import Path

from jackfield.testing.control_plane import ControlPlane
from real.site import Site, setting

PODS = 30


def test_thirty_pods_on_forty_nodes_cost_thirty_attaches_and_all_come_back(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, setting(nodes=40, devices=PODS), tmp_path) as site:
            await site.template()
            for number in range(PODS):
                await site.pod(f"p{number}", template="gpu", seconds=5)
            await site.until(lambda: site.phases("Succeeded", PODS), 120)
            assert site.attaches <= PODS
            await site.until(lambda: not site.attached, 90)
            await site.until(site.none_left)

    asyncio.run(scene())

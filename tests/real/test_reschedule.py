"""Devices of a vendor's driver on the real scheduler, handed over by `reschedule`: attach, publish, go round again."""

import asyncio
from pathlib import Path

from jackfield.testing.control_plane import ControlPlane
from real.site import Site, setting

VENDOR = "gpu.example.com"
PODS = 30
ATTACHES_MAX = 31
"""Of thirty pods: at most 1.05 for each."""


async def thirty_pods(plane: ControlPlane, folder: Path) -> None:
    """Thirty pods on forty nodes: few attaches, all run, all devices come back."""
    async with Site(plane, setting(nodes=40, devices=PODS, driver=VENDOR), folder) as site:
        await site.template()
        for number in range(PODS):
            await site.pod(f"p{number}", template="gpu", seconds=5)
        await site.until(lambda: site.phases("Succeeded", PODS), 180)
        assert site.attaches <= ATTACHES_MAX
        await site.until(lambda: not site.attached, 120)
        await site.until(site.none_left)


def test_thirty_pods_on_forty_nodes_cost_at_most_thirty_one_attaches_and_all_come_back(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(thirty_pods(fresh, tmp_path))

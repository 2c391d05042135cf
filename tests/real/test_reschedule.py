"""Devices of a vendor's driver on the real scheduler, handed over by `reschedule`: attach, publish, go round again."""

import asyncio
from pathlib import Path

import pytest

from jackfield.model.names import Seconds
from jackfield.model.policy import RESCHEDULE, Policy
from jackfield.testing.control_plane import ControlPlane, Settings
from real.site import Site, setting

VENDOR = "gpu.example.com"
PODS = 30
ATTACHES_MAX = 31
"""Of thirty pods: at most 1.05 for each."""
HOLD = Policy(hold_seconds=Seconds(15.0), inventory_seconds=Seconds(5.0))
LONG_HOLD = Policy(hold_seconds=Seconds(600.0), inventory_seconds=Seconds(5.0))
WITH_RULES = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
)
"""By default 1.36 serves no DeviceTaintRules."""


async def thirty_pods(plane: ControlPlane, folder: Path, *, rules: bool) -> None:
    """Thirty pods on forty nodes: few attaches, all run, all devices come back, tainted before where that can be."""
    stage = setting(nodes=40, devices=PODS, driver=VENDOR, policy=HOLD)
    async with Site(plane, stage, folder) as site:
        await site.template()
        for number in range(PODS):
            await site.pod(f"p{number}", template="gpu", seconds=5)
        await site.until(lambda: site.phases("Succeeded", PODS), 180)
        assert site.attaches <= ATTACHES_MAX
        await site.until(lambda: not site.attached, 120)
        await site.until(site.none_left)
        assert site.attaches <= ATTACHES_MAX
        tainted, cleaned = (_subjects(site, what) for what in ("PutTaint", "DropTaint"))
        devices = {one.device.id for one in site.movements}
        assert (len(tainted), len(cleaned)) == ((len(devices), len(devices)) if rules else (0, 0))
        assert any("DeviceTaintRules" in one.because for one in site.lines) == (not rules)


def _subjects(site: Site, what: str) -> set[str]:
    """The objects to which something was done."""
    return {one.object for one in site.lines if one.what == what and not one.error}


def test_thirty_pods_on_forty_nodes_cost_at_most_thirty_one_attaches_and_all_come_back(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(thirty_pods(fresh, tmp_path, rules=False))


@pytest.mark.slow
def test_where_there_are_taint_rules_every_device_is_tainted_before_it_leaves(tmp_path: Path) -> None:
    with ControlPlane(WITH_RULES) as plane:
        asyncio.run(thirty_pods(plane, tmp_path, rules=True))


def test_a_claim_of_two_devices_is_told_why_it_goes_round_and_its_devices_stay_warm_for_the_next(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        stage = setting(nodes=3, devices=2, driver=VENDOR, policy=LONG_HOLD)
        async with Site(fresh, stage, tmp_path) as site:
            await site.claim("pair", count=2)
            await site.pod("first", claim="pair", seconds=1)
            await site.until(lambda: site.phases("Succeeded", 1))
            told = [one.message for one in await site.events("pair") if one.reason == RESCHEDULE]
            assert ["is attached; its driver on the node offers it now" in one for one in told] == [True]
            await site.pod("second", claim="pair", seconds=1)
            await site.until(lambda: site.phases("Succeeded", 2))
            pods = await site.pods()
            assert pods["first"].spec.node_name == pods["second"].spec.node_name
            assert site.attaches == 2

    asyncio.run(scene())

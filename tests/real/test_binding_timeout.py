"""A fabric that is slower than the scheduler is patient: nobody waits in vain, and what comes late is not lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.model.claim import ResourceClaim
from jackfield.model.fabric import Traits
from jackfield.model.names import Seconds
from jackfield.model.policy import RESCHEDULE, Policy
from jackfield.testing.control_plane import ControlPlane, Settings, binding_timeout
from real.site import Site, setting

TIMEOUT_SECONDS = 15
PODS = 5

pytestmark = pytest.mark.slow


@pytest.fixture
def impatient() -> Iterator[ControlPlane]:
    """A control plane whose scheduler waits 15 s for a device."""
    with ControlPlane(Settings(scheduler=binding_timeout(TIMEOUT_SECONDS))) as plane:
        yield plane


def policy(attach: float) -> Policy:
    return Policy(
        hold_seconds=Seconds(60.0),
        inventory_seconds=Seconds(2.0),
        binding_timeout_seconds=Seconds(float(TIMEOUT_SECONDS)),
        binding_margin_seconds=Seconds(6.0),
        attach_seconds=Seconds(attach),
    )


async def sent_round(site: Site) -> list[str]:
    """What claims were told that were sent round."""
    claims = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    events = [event for one in claims for event in await site.events(one.metadata.name)]
    return [one.message for one in events if one.reason == RESCHEDULE]


def test_a_device_that_comes_too_late_serves_the_next_attempt(
    impatient: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        # A third device stays open: were none left, an idle one would be opened to all nodes, and might be moved.
        stage = setting(nodes=2, devices=3, attach=25.0, policy=policy(attach=60.0))
        async with Site(impatient, stage, tmp_path) as site:
            await site.template()
            await site.pod("p", template="gpu")
            await site.until(lambda: site.phases("Running", 1), 180)
            assert 1 <= site.attaches <= 2  # one for each node that the scheduler tried, and none was moved

    asyncio.run(scene())


def test_claims_that_cannot_be_served_in_time_are_sent_round_early_with_the_reason(
    impatient: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        made = setting(nodes=2, devices=PODS, attach=4.0, policy=policy(attach=4.0))
        (fabric,) = made.fabrics
        one_by_one = msgspec.structs.replace(fabric, traits=Traits(jobs=1))
        stage = msgspec.structs.replace(made, fabrics=(one_by_one,))
        async with Site(impatient, stage, tmp_path) as site:
            await site.template()
            for number in range(PODS):
                await site.pod(f"p{number}", template="gpu")
            await site.until(lambda: site.phases("Running", PODS), 240)
            assert site.attaches == PODS
            reasons = await sent_round(site)
            assert reasons
            assert all("orders ahead of it and cannot attach it in time" in one for one in reasons)

    asyncio.run(scene())

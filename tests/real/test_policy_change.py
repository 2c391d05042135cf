"""The policy's file changes under running controllers, and quotas, with the real scheduler and API server."""

import asyncio
import os
import signal
from pathlib import Path

import msgspec
import yaml

from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import holds
from jackfield.model.names import Seconds
from jackfield.model.policy import ADMITTED, READY, RESCHEDULE, NamespaceRule, Policy
from jackfield.testing.control_plane import ControlPlane
from real.site import Site, setting

STAGE = setting(
    nodes=2,
    devices=4,
    policy=Policy(
        hold_seconds=Seconds(30.0),
        inventory_seconds=Seconds(5.0),
        quota_wait_seconds=Seconds(2.0),
        namespaces=(NamespaceRule("default", {"*": 1}),),
    ),
)


def swapped(folder: Path, text: str) -> None:
    """Put another file in the place of the policy, at once and whole."""
    (folder / "policy.new").write_text(text)
    (folder / "policy.new").rename(folder / "policy.yaml")


def spelt(policy: Policy) -> str:
    return yaml.safe_dump(msgspec.to_builtins(policy))


def said(site: Site, words: str) -> bool:
    return any(words in line.because for line in site.lines)


async def told(site: Site, kind: str) -> list[str]:
    """The claims that carry a condition."""
    claims = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    return [
        one.metadata.name
        for one in claims
        if one.results and all(holds(one.conditions(result.id), kind) for result in one.results)
    ]


def test_a_quota_is_kept_and_raised_and_attaching_paused_while_the_controllers_run(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Site(fresh, STAGE, tmp_path) as site:
            await site.template()
            await site.pod("first", template="gpu")
            await site.until(lambda: site.phases("Running", 1))
            await site.pod("second", template="gpu")
            await site.until(lambda: said(site, "namespace default has 1 device, and may have 1 at once"))
            await site.until(lambda: any(RESCHEDULE in line.what for line in site.lines))
            assert len(await told(site, READY)) == len(await told(site, ADMITTED)) == site.attaches == 1

            swapped(tmp_path, "holdSecond: 7\n")
            await site.until(
                lambda: said(site, "holdSecond: there is no such setting; was holdSeconds meant?")
            )
            assert site.attaches == 1

            raised = msgspec.structs.replace(STAGE.policy, namespaces=())
            swapped(tmp_path, spelt(raised))
            os.kill(site.replicas[0].pid, signal.SIGHUP)
            await site.until(lambda: said(site, "is in force; changed: namespaces"))
            await site.until(lambda: site.phases("Running", 2))

            swapped(tmp_path, spelt(msgspec.structs.replace(raised, paused=True, models=())))
            await site.until(lambda: said(site, "models: A100 cannot be removed"))
            assert len(site.attached) == 2

            swapped(tmp_path, spelt(msgspec.structs.replace(raised, paused=True)))
            await site.until(lambda: said(site, "is in force; changed: paused"))
            await site.pod("third", template="gpu")
            swapped(tmp_path, spelt(raised))
            await site.until(lambda: site.phases("Running", 3))
            assert await site.replicas[0].stop() == 0

    asyncio.run(scene())

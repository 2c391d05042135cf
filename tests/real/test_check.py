"""`jackfield check` on a real control plane: all is well, until something is broken by hand; it writes nothing."""

import asyncio
import json
import sys
from pathlib import Path

from jackfield.core.check import Checker
from jackfield.model.composition import CLAIM, ComposableResource
from jackfield.model.names import Seconds, Version, named
from jackfield.model.policy import Policy
from jackfield.ports import Merge
from jackfield.testing.control_plane import ControlPlane
from real.site import Site, setting

POLICY = Policy(hold_seconds=Seconds(600.0), inventory_seconds=Seconds(1.0))
Told = list[dict[str, str]]


class Checked(Site):
    """A site at which somebody looks whether anything is wrong."""

    async def check(self, wait: str) -> tuple[int, Told]:
        """Return the exit status of `jackfield check`, and what it told."""
        words = ("check", *self._arguments()[:6], "--json", "--wait", wait)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "jackfield", *words, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, [json.loads(line) for line in told.splitlines()]

    async def all_is_well(self) -> bool:
        """Whether nothing is wrong: a pod that has just started may not be known to everybody yet."""
        status, told = await self.check("1")
        return (status, told) == (0, [])


async def _broken(site: Checked) -> ComposableResource:
    """Take the record off the one resource there is, as no program of ours would."""
    (resource,) = await site.resources()
    body = {"metadata": {"annotations": {CLAIM: None}}}
    await site.cluster.write(Merge(ComposableResource, named(resource.metadata.name), Version(""), body))
    return resource


def test_what_was_broken_by_hand_is_told_and_nothing_else(fresh: ControlPlane, tmp_path: Path) -> None:
    async def evening() -> None:
        async with Checked(fresh, setting(nodes=1, devices=2, policy=POLICY), tmp_path) as site:
            await site.template()
            await site.pod("p", template="gpu")
            await site.until(lambda: site.phases("Running", 1))
            await site.until(site.all_is_well)
            resource = await _broken(site)
            status, told = await site.check("0")
            assert status == 1
            found = {(one["object"].partition("/")[0], one["checker"]) for one in told}
            assert ("claim", Checker.READY_UNSERVED) in found
            assert ("resource", Checker.HOLDER_UNRECORDED) in found
            assert all(one["why"] and one["remedy"] for one in told)
            again = await site.cluster.read(ComposableResource, named(resource.metadata.name))
            assert again.status == resource.status

    asyncio.run(evening())

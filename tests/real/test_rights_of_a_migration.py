"""A process that takes over CoHDI's settings, and lacks a single right to read them, ends and says which.

Each has an account of its own, whose roles lack exactly one right.
"""

import asyncio
from pathlib import Path

from jackfield.cli.output import FAILED
from jackfield.kube.permissions import Account, Part, Role, manifests
from jackfield.testing.control_plane import ControlPlane
from real import accounts, cohdi
from real.deprived import Single, of_its_own, singles, without, words
from real.site import Replica

ALL = singles(Role.MIGRATION)
SIDE_BY_SIDE = 4


def test_without_one_right_to_read_cohdis_settings_nothing_is_taken_over(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    made = cohdi.objects("127.0.0.1:9", "secret")
    for one in made:
        if one["kind"] == "Deployment":
            one["spec"]["replicas"] = 0
    accounts.put(fresh, *(one for one in made if one["kind"] == "Namespace"))
    accounts.put(fresh, *accounts.SPACES, *(one for one in made if one["kind"] != "Namespace"))
    ways = [employed(fresh, tmp_path, number, one) for number, one in enumerate(ALL)]

    async def main() -> list[str]:
        room = asyncio.Semaphore(SIDE_BY_SIDE)

        async def told(way: Path) -> str:
            async with room:
                replica = Replica(["--kubeconfig", str(way), "--log", "json"], way.stem, tmp_path)
                await replica.start()
                assert await replica.ended() == FAILED
                return replica.errors

        return await asyncio.gather(*map(told, ways))

    said = asyncio.run(main())
    assert [str(one) for one, complaint in zip(ALL, said, strict=True) if words(one) not in complaint] == []


def employed(plane: ControlPlane, folder: Path, number: int, one: Single) -> Path:
    """Return the way in of an account with all rights but one."""
    account = Account("jackfield", f"migrant-{number}")
    made = without(manifests(Part.CONTROLLERS, account, (cohdi.DRIVER,), cohdi=True), one)
    accounts.put(plane, *of_its_own(made, account))
    return accounts.way_in(plane, folder, account)

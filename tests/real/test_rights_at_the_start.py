"""A process of controllers that lacks a single right of those that all of them have does not come up, and says why.

Each life has an account of its own, whose roles lack exactly one right; so many can be lived side by side.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackfield.cli.clock import WallClock
from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.controllers.lead import REPLICAS
from jackfield.kube.permissions import Account, Part, Role, manifests
from jackfield.model.names import Seconds
from jackfield.testing.control_plane import ControlPlane, Settings
from real import accounts
from real.deprived import DRIVERS, Single, of_its_own, refused, singles, without, words
from real.site import Replica

WITH_RULES = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
    audit=True,
)
SIDE_BY_SIDE = 4
SECONDS = 120.0
REFUSED = "refused, as the API server's own log says"
DEFINITIONS = "customresourcedefinitions"
BY_FLOWS = ("events",)
"""What a process needs only when there is something to tell: `test_rights_of_flows.py`."""
ALL = tuple(one for one in singles(Role.SHARED) if one.resource not in BY_FLOWS)
OF_DEFINITIONS = tuple(one for one in ALL if one.resource == DEFINITIONS)
OF_THE_REST = tuple(one for one in ALL if one.resource != DEFINITIONS)


class Life:
    """A process with all rights but one."""

    def __init__(self, plane: ControlPlane, folder: Path, one: Single) -> None:
        self.one = one
        self.account = Account("jackfield", f"life-{ALL.index(one)}")
        self._plane = plane
        self._folder = folder
        self._replica: Replica

    def born(self) -> None:
        """Have its account, its roles and a way in."""
        made = without(manifests(Part.AUTOSCALER, self.account, DRIVERS), self.one)
        accounts.put(self._plane, *of_its_own(made, self.account))
        self._way = accounts.way_in(self._plane, self._folder, self.account)

    async def lived(self) -> str:
        """Live until the right is missed, or in vain; return what was said by then, and by the API server of it."""
        files = (
            "--policy",
            str(self._folder / "policy.yaml"),
            "--fabrics",
            str(self._folder / "fabrics.yaml"),
        )
        given = [*files, "--kubeconfig", str(self._way), "--log", "json", "--only", "autoscaler"]
        self._replica = Replica(given, self.account.name, self._folder)
        await self._replica.start()
        try:
            await self._miss()
        finally:
            await self._replica.kill()
        return f"{self._text()}\n{REFUSED if await self._plane.aside(self._is_refused) else ''}"

    async def _miss(self) -> None:
        """Wait until the process says that it may not, or has ended; to give a Lease back is the last that it does."""
        clock = WallClock()
        until = clock.now() + SECONDS
        while clock.now() < until and self._replica.status is None and words(self.one) not in self._text():
            if self.one.verb == "delete" and "leads" in self._text():
                await self._replica.stop()
            await clock.sleep(Seconds(0.2))

    def _is_refused(self) -> bool:
        return refused(self._plane, self.one, self.account)

    def _text(self) -> str:
        lines = (f"{line.what} {line.because} {line.error}" for line in self._replica.lines)
        return "\n".join((*lines, self._replica.errors))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that serves DeviceTaintRules, with an audit log."""
    with ControlPlane(WITH_RULES) as started:
        accounts.put(started, *accounts.SPACES)
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with settings of a cluster without fabrics."""
    (tmp_path / "policy.yaml").write_text("models: []\n")
    (tmp_path / "fabrics.yaml").write_text("fabrics: []\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("one", OF_DEFINITIONS, ids=str)
def test_without_one_right_on_a_definition_it_is_not_installed_and_that_is_told(
    plane: ControlPlane, folder: Path, one: Single
) -> None:
    plane.kubectl(
        "delete", DEFINITIONS, *(each["metadata"]["name"] for each in definitions()), "--ignore-not-found"
    )
    life = Life(plane, folder, one)
    life.born()
    assert f"definition {one.name} is needed, and we may not write it" in asyncio.run(life.lived())


@pytest.mark.slow
def test_without_one_right_that_all_have_a_process_does_not_come_up_and_that_is_told(
    plane: ControlPlane, folder: Path
) -> None:
    accounts.put(plane, *definitions())
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    lives = [Life(plane, folder, one) for one in OF_THE_REST]
    for one in lives:
        one.born()
        if one.one.verb == "get" and one.one.namespace == REPLICAS:
            accounts.put(plane, _lease(one.account.name))

    async def main() -> dict[str, str]:
        room = asyncio.Semaphore(SIDE_BY_SIDE)

        async def lived(life: Life) -> str:
            async with room:
                return await life.lived()

        return dict(zip(map(str, OF_THE_REST), await asyncio.gather(*map(lived, lives)), strict=True))

    became = asyncio.run(main())
    assert [one for one in became if REFUSED not in became[one]] == []
    untold = [str(one) for one in OF_THE_REST if words(one) not in became[str(one)]]
    assert untold == [f"shared: delete leases in {REPLICAS}"], "which costs the next one a Lease's time"


def _lease(name: str) -> Raw:
    """The Lease of an earlier life."""
    meta = {"name": f"{name}-autoscaler", "namespace": REPLICAS}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}}

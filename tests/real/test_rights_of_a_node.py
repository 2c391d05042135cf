"""A node's plugin that lacks a single right of its role stops where it needs it, and says so.

Many live side by side, each on a node of its own, with an account of its own whose role lacks exactly one right; one
beside them lacks nothing, and comes to its end.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from jackfield.cli.clock import WallClock
from jackfield.codec.definitions import definitions
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.permissions import Account, Part, Role, manifests
from jackfield.model.names import Seconds
from jackfield.testing.control_plane import ControlPlane, fake_node
from real import accounts
from real.deprived import Single, of_its_own, refused, singles, without, words
from real.rack import bound
from real.test_node_permissions import SPACES, Life

ALL = singles(Role.NODE)
SAMPLE = tuple(
    one for one in ALL if (one.verb, one.resource) in {("patch", "composableresources"), ("get", "nodes")}
)
SECONDS = 120.0


class Case:
    """A plugin on a node of its own, with all rights but one; or with all."""

    def __init__(self, plane: ControlPlane, folder: Path, number: int, one: Single | None) -> None:
        self._plane = plane
        self._folder = folder / str(number)
        self._folder.mkdir()
        self._number = number
        self._one = one
        self._account = Account("jackfield", f"node-{number}")

    def born(self) -> None:
        """Have a node, an account with its role, and a way in."""
        made = manifests(Part.NODE, self._account)
        mine = of_its_own(without(made, self._one) if self._one else made, self._account)
        accounts.put(self._plane, *mine)
        with self._plane.api() as api:
            fake_node(api, f"n{self._number}")
        (self._folder / "kubeconfig").write_text(
            yaml.safe_dump(bound(self._plane, f"n{self._number}", self._account))
        )

    async def lived(self) -> str:
        """Live until the right is missed; return what became of it, nothing if it was not missed."""
        async with AsyncExitStack() as stack:
            way = load(self._folder / "kubeconfig")
            plugin = await stack.enter_async_context(KubeCluster(way))
            admin = await stack.enter_async_context(KubeCluster(load(self._plane.kubeconfig)))
            life = Life(self._folder, plugin, admin, self._number)
            living = asyncio.get_running_loop().create_task(life.live())
            try:
                return await self._missed(life, living)
            finally:
                living.cancel()
                await asyncio.gather(living, return_exceptions=True)

    async def _missed(self, life: Life, living: asyncio.Task[None]) -> str:
        clock = WallClock()
        until = clock.now() + SECONDS
        while clock.now() < until:
            if self._one is None:
                await living
                return "well"
            if words(self._one) in "\n".join(life.said.lines):
                return "told"
            if await self._plane.aside(self._is_refused):
                return "refused"
            if living.done():
                return ""
            await clock.sleep(Seconds(0.5))
        return ""

    def _is_refused(self) -> bool:
        return self._one is not None and refused(self._plane, self._one, self._account)


def became(plane: ControlPlane, rights: tuple[Single, ...]) -> dict[str, str]:
    """Return what became of plugins that lack one of these rights each, and of one that lacks none."""
    accounts.put(plane, *SPACES, *definitions())
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
    with tempfile.TemporaryDirectory(prefix="jackfield-") as folder:  # a socket's path has to be short
        cases = [Case(plane, Path(folder), number, one) for number, one in enumerate((*rights, None), 1)]
        for case in cases:
            case.born()

        async def main() -> list[str]:
            return await asyncio.gather(*(case.lived() for case in cases))

        return dict(zip((*map(str, rights), "with all of them"), asyncio.run(main()), strict=True))


def test_without_one_of_some_rights_a_nodes_plugin_stops(fresh: ControlPlane) -> None:
    assert len(SAMPLE) == 2
    assert [one for one, what in became(fresh, SAMPLE).items() if not what] == []


@pytest.mark.slow
def test_without_any_one_right_a_nodes_plugin_stops(fresh: ControlPlane) -> None:
    assert [one for one, what in became(fresh, ALL).items() if not what] == []

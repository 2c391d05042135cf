"""A plugin that the API server does not let do its work says so: what is missing, where it is looked for, and once."""

from collections.abc import AsyncGenerator
from typing import TypeVar

import pytest

from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.model.policy import DRIVER, Policy
from jackfield.ports import EVERYTHING, Apply, Change, Cluster, Merge, Refused, Selection
from unit.kube.test_permissions import Watched
from unit.node.stage import Stage, on_stage

T = TypeVar("T", bound=Object)
OFTEN = Policy(poll_seconds=Seconds(0.01))


class Poor(Watched):
    """A way to the API by which some things are refused, until somebody grants them."""

    def __init__(
        self, inner: Cluster, refusals: dict[type[Object], str], *, chosen_only: bool = False
    ) -> None:
        super().__init__(inner, set())
        self._refusals = refusals
        self._chosen_only = chosen_only

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        if kind in self._refusals and (selection != EVERYTHING or not self._chosen_only):
            return _refused(self._refusals[kind])
        return super().watch(kind, selection)

    async def write(self, patch: Merge | Apply) -> Object:
        if patch.kind in self._refusals:
            raise Refused(self._refusals[patch.kind])
        return await super().write(patch)


async def _refused(words: str) -> AsyncGenerator[Change, None]:
    if words:
        raise Refused(words)
    yield  # type: ignore[misc]  # never: it only makes this an iterator


@pytest.mark.parametrize("words", ["composableresources is forbidden", "the server does not know this kind"])
def test_a_plugin_that_may_not_watch_says_what_it_waits_for_once_and_goes_on_when_it_may(words: str) -> None:
    async def scene(stage: Stage) -> None:
        refusals: dict[type[Object], str] = {ComposableResource: words}
        async with stage.plugin(OFTEN, lambda cluster: Poor(cluster, refusals)) as plugin:
            waiting = f"waiting for ComposableResources to be shown to us: {words}"
            await stage.until(lambda: plugin.ready() == waiting)
            assert stage.notes == [f"{waiting}; nothing is prepared on this node before that"]
            refusals.clear()
            await stage.kubelet.registered(DRIVER)
            await stage.until(lambda: plugin.ready() == "")
            assert stage.notes[1:] == ["serves n1, which has 0 devices"]

    on_stage(scene)


def test_where_only_the_choice_of_a_node_is_refused_all_are_watched() -> None:
    async def scene(stage: Stage) -> None:
        refusals: dict[type[Object], str] = {ComposableResource: "field label not supported"}
        async with stage.plugin(OFTEN, lambda cluster: Poor(cluster, refusals, chosen_only=True)):
            await stage.kubelet.registered(DRIVER)
            await stage.until(lambda: len(stage.notes) == 2)
            assert stage.notes[0].startswith("ComposableResources cannot be selected by node")
            assert "field label not supported; our definition can" in stage.notes[0]

    on_stage(scene)


def test_a_sign_of_life_that_is_refused_is_told_once_until_it_is_heard() -> None:
    async def scene(stage: Stage) -> None:
        refusals: dict[type[Object], str] = {Lease: "leases is forbidden"}
        async with stage.plugin(OFTEN, lambda cluster: Poor(cluster, refusals)) as plugin:
            words = "the Lease jackfield-node/n1 cannot be renewed: leases is forbidden"
            await stage.until(lambda: plugin.ready() == words)
            assert stage.notes[1:] == [f"{words}; without it the node is offered nothing"]
            refusals.clear()
            await stage.until(lambda: plugin.ready() == "")

    on_stage(scene)


def test_a_damaged_checkpoint_is_an_event_of_the_node() -> None:
    def events(stage: Stage) -> list[str]:
        found = [one.object for one in stage.site.store.list(Event).items if isinstance(one.object, Event)]
        return [f"{one.reason} {one.message}" for one in found if one.source.component == DRIVER]

    async def scene(stage: Stage) -> None:
        folder = stage.site.places.plugins / DRIVER
        folder.mkdir()
        (folder / "checkpoint.jsonl").write_text("nonsense\n")
        async with stage.plugin():
            await stage.kubelet.registered(DRIVER)
            await stage.until(lambda: len(events(stage)) == 1)
            (told,) = events(stage)
            assert told.startswith(f"CheckpointDamaged {DRIVER}: {folder}/checkpoint.jsonl: its first line")

    on_stage(scene)

"""Slices are written when something changed, put right when somebody meddled, and left alone otherwise."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import ClassVar, TypeVar

import pytest
from msgspec.structs import replace

from jackfield import driver
from jackfield.cluster.api import Client
from jackfield.cluster.store import Write
from jackfield.core.offer import Pool, Publisher
from jackfield.driver.slices import Slices
from jackfield.model.meta import Object
from jackfield.model.names import NodeName, Seconds, named
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from jackfield.ports import (
    EVERYTHING,
    Apply,
    Change,
    Changed,
    Conflict,
    Deleted,
    Gone,
    Merge,
    PortError,
    Refused,
    Retry,
    Rewound,
    Selection,
)
from unit.driver.site import NODE, Site, on_a_node

T = TypeVar("T", bound=Object)

LAMPS = "lamps.example.com"


class Tally:
    """Counts what was written."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()

    def slice_written(self, verb: str, result: str) -> None:
        self.seen[verb, result] += 1


class Shop:
    """Pools that change, and their slices."""

    def __init__(self, site: Site, client: Client, node: str = NODE) -> None:
        self.devices = [driver.device("a")]
        self.client = client
        self.tally = Tally()
        publisher = Publisher(LAMPS, NodeName(node))
        self.slices = Slices(client, publisher, lambda _: (Pool(tuple(self.devices)),), self.tally)
        self._site = site

    async def change(self, *devices: driver.Device) -> None:
        """Have other devices, and wait until that is published."""
        self.devices = list(devices)
        self.slices.changed()
        await self.slices.published.wait()

    def names(self) -> list[str]:
        return [device.name for one in self._site.slices() for device in one.spec.devices]


@asynccontextmanager
async def opened(site: Site, client: Client | None = None, node: str = NODE) -> AsyncIterator[Shop]:
    shop = Shop(site, client or site.client(LAMPS), node)
    running = asyncio.create_task(shop.slices.run())
    try:
        yield shop
    finally:
        running.cancel()
        await asyncio.wait([running])


def played(scene: Callable[[Site], Coroutine[object, object, None]]) -> None:
    on_a_node(scene)


def test_what_does_not_change_is_not_written_again() -> None:
    async def scene(site: Site) -> None:
        async with opened(site) as shop:
            await shop.slices.published.wait()
            await shop.change(driver.device("a"))
            await shop.change(driver.device("a"), driver.device("b", capacity={"light": "1000m"}))
            await shop.change(driver.device("b", capacity={"light": 1}), driver.device("a"))
            assert shop.tally.seen == {("create", "ok"): 1, ("change", "ok"): 1}
            assert shop.names() == ["a", "b"]
        async with opened(site) as shop:
            shop.devices = [driver.device("a"), driver.device("b", capacity={"light": 1})]
            shop.slices.changed()
            await shop.slices.published.wait()
            assert shop.client.writes == 0
            await shop.change()
            assert shop.names() == []

    played(scene)


def test_the_slices_belong_to_the_node_and_stay_when_the_driver_ends() -> None:
    async def scene(site: Site) -> None:
        async with opened(site) as shop:
            await shop.slices.published.wait()
        (one,) = site.slices()
        node = site.store.get(Node, named(NODE)).object
        assert [owner.uid for owner in one.metadata.owner_references] == [node.uid]
        assert one.spec.node_name == NODE

    played(scene)


def test_slices_of_other_nodes_and_drivers_are_none_of_our_business() -> None:
    async def scene(site: Site) -> None:
        for name, whose, where in (("x", LAMPS, "n2"), ("y", "other.example.com", NODE)):
            pool = {"name": where, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": whose, "nodeName": where, "pool": pool}
            site.store.create(ResourceSlice, {"metadata": {"name": name}, "spec": spec})
        async with opened(site) as shop:
            await shop.slices.published.wait()
        assert len(site.slices()) == 3

    played(scene)


def test_what_somebody_else_did_to_a_slice_is_put_right_after_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(site: Site) -> None:
        async with opened(site) as shop:
            await shop.slices.published.wait()
            (one,) = site.slices()
            site.store.patch(ResourceSlice, one.key, {"spec": {"devices": [{"name": "forged"}]}}, Write())
            await site.until(lambda: shop.names() == ["a"])
            assert (
                "somebody else changed the slices of lamps.example.com; they are put right in 1 s"
                in caplog.text
            )
            site.store.delete(ResourceSlice, one.key)
            shop.slices.changed()  # news of our own are not made to wait
            await site.until(lambda: shop.names() == ["a"])

    played(scene)


def test_a_node_that_nobody_knows_is_told_of_and_waited_for() -> None:
    async def scene(site: Site) -> None:
        async with opened(site, node="n9") as shop:
            await site.until(lambda: "there is no node n9" in shop.slices.trouble)
            assert not shop.slices.published.is_set()
            site.store.create(Node, {"metadata": {"name": "n9"}})
            await shop.slices.published.wait()
            assert shop.slices.trouble == ""

    played(scene)


class Line(Client):
    """A handle that fails as it is told to, each time once."""

    fails: ClassVar[list[tuple[str, PortError]]] = []

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        return self._watched(kind, selection)

    async def _watched(self, kind: type[T], selection: Selection) -> AsyncGenerator[Change, None]:
        self._fail("watch")
        async for change in super().watch(kind, selection):
            yield change

    async def create(self, new: T) -> T:
        self._fail("create")
        return await super().create(new)

    async def write(self, patch: Merge | Apply) -> Object:
        self._fail("write")
        return await super().write(patch)

    def _fail(self, call: str) -> None:
        for one in self.fails:
            if one[0] == call:
                self.fails.remove(one)
                raise one[1]


def failing(site: Site, *errors: tuple[str, PortError]) -> Client:
    """Return a handle of which these calls fail once."""

    class Failing(Line):
        fails: ClassVar[list[tuple[str, PortError]]] = list(errors)

    return site.cluster.client(LAMPS, Failing)


SOON = Seconds(0.01)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("watch", Retry("away", SOON)),
        ("watch", Rewound("restored", SOON)),
        ("create", Retry("away", SOON)),
        ("create", Conflict("there is one of this name")),
    ],
)
def test_what_fails_once_is_done_all_the_same(call: str, error: PortError) -> None:
    async def scene(site: Site) -> None:
        async with opened(site, failing(site, (call, error))) as shop:
            await shop.slices.published.wait()
            assert shop.names() == ["a"]
            assert shop.slices.trouble == ""

    played(scene)


def test_who_may_not_do_what_it_needs_says_so_once_and_tries_again_when_there_is_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(site: Site) -> None:
        refusal = Refused('resourceslices is forbidden: User "driver" cannot create')
        async with opened(site, failing(site, ("create", refusal), ("create", refusal))) as shop:
            await site.until(lambda: "cannot create" in shop.slices.trouble)
            shop.slices.changed()
            await site.until(lambda: shop.tally.seen["create", "refused"] == 2)
            assert not shop.slices.published.is_set()
            await shop.change(driver.device("a"))
            assert (shop.names(), shop.slices.trouble) == (["a"], "")
            assert shop.tally.seen == {("create", "refused"): 2, ("create", "ok"): 1}
        told = [one.message for one in caplog.records if "cannot be published" in one.message]
        assert len(told) == 1

    played(scene)


def test_a_slice_that_is_not_needed_any_more_is_deleted() -> None:
    async def scene(site: Site) -> None:
        async with opened(site) as shop:
            await shop.change(*(driver.device(f"d{number}") for number in range(65)))
            assert len(site.slices()) == 2
            await shop.change(*(driver.device(f"d{number}") for number in range(64)))
            (left,) = site.slices()
            assert left.spec.pool.resource_slice_count == 1
            assert shop.tally.seen["delete", "ok"] == 1

    played(scene)


def test_what_the_server_leaves_out_is_told_with_the_gate_that_is_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Older(Client):
        """A handle to a server that does not know taints."""

        async def create(self, new: T) -> T:
            assert isinstance(new, ResourceSlice)
            bare = tuple(driver.device(one.name) for one in new.spec.devices)
            return await super().create(replace(new, spec=replace(new.spec, devices=bare)))

    async def scene(site: Site) -> None:
        async with opened(site, site.cluster.client(LAMPS, Older)) as shop:
            for _ in range(3):
                await shop.change(driver.device("a", taints=[driver.taint("example.com/broken")]))
            assert shop.tally.seen == {("create", "ok"): 1}
        assert "taints of a: feature gate DRADeviceTaints is off" in caplog.text

    played(scene)


def test_a_slice_that_goes_while_it_is_written_is_made_anew() -> None:
    async def scene(site: Site) -> None:
        async with opened(site, failing(site, ("write", Gone("it is not there")))) as shop:
            await shop.slices.published.wait()
            (one,) = site.slices()
            shop.devices = [driver.device("b")]
            shop.slices.changed()
            site.store.delete(ResourceSlice, one.key)
            await site.until(lambda: shop.names() == ["b"])

    played(scene)


def test_an_event_that_tells_less_than_the_answer_to_our_own_write_is_passed_over() -> None:
    async def scene(site: Site) -> None:
        async with opened(site) as shop:
            await shop.slices.published.wait()
            (first,) = site.slices()
            await shop.change(driver.device("b"))
            (second,) = site.slices()
            for late in (Changed(first), Deleted(first)):
                shop.slices._hear(late)  # noqa: SLF001 - what a slow watch tells
            assert shop.slices._there == {second.metadata.name: second}  # noqa: SLF001
            shop.slices._hear(Deleted(second))  # noqa: SLF001
            assert shop.slices._there == {}  # noqa: SLF001

    played(scene)

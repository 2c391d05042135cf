"""The embedded cluster's handles: what they count, how they die, and what a slow watcher gets."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine

import pytest

from jackfield.cluster import api
from jackfield.cluster.api import EmbeddedCluster, port_error
from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.model.composition import ComposableResource, ComposableResourceSpec
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Seconds, Version, named
from jackfield.ports import (
    Apply,
    Bug,
    Change,
    Changed,
    Conflict,
    Gone,
    Merge,
    PortError,
    Refused,
    Retry,
    Synced,
)

ANY = Version("")
R = named("r")


def new_cluster() -> EmbeddedCluster:
    return EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("api")))  # noqa: S311 - no cryptography


def resource(name: str = "r") -> ComposableResource:
    return ComposableResource(metadata=ObjectMeta(name=name), spec=ComposableResourceSpec(type="gpu"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (404, Gone),
        (409, Conflict),
        (400, Refused),
        (403, Refused),
        (422, Refused),
        (429, Retry),
        (500, Retry),
        (503, Retry),
        (410, Bug),
    ],
)
def test_an_answer_becomes_one_of_the_five_errors(code: int, expected: type[PortError]) -> None:
    assert type(port_error(ApiError(code, "Why", "so"))) is expected


def test_calls_are_counted_by_verb_and_kind_for_every_handle_apart() -> None:
    async def run() -> None:
        cluster = new_cluster()
        one, two = cluster.client("one"), cluster.client("two")
        await one.create(resource())
        await one.read(ComposableResource, R)
        await two.write(Merge(ComposableResource, R, ANY, {"spec": {"force_detach": True}}))
        await two.write(Apply(ComposableResource, R, ANY, {"spec": {"force_detach": True}}, "two"))
        await two.delete(ComposableResource, R, ANY)
        assert [verb for verb, _ in two.calls] == ["patch", "apply", "delete"]
        assert dict(one.calls) == {("create", "ComposableResource"): 1, ("get", "ComposableResource"): 1}
        assert (one.writes, two.writes, cluster.writes) == (1, 3, 0)

    asyncio.run(run())


def test_a_write_is_booked_under_the_handles_name() -> None:
    async def run() -> None:
        cluster = new_cluster()
        await cluster.create(resource())
        body = {"metadata": {"labels": {"a": "1"}}}
        cluster.store.apply(ComposableResource, R, body, Write(manager="me"))
        await cluster.client("editor").write(
            Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": "2"}}})
        )
        names = [one.name for one in cluster.store.get(ComposableResource, R).managers]
        assert names == ["before-first-apply", "editor"]

    asyncio.run(run())


def test_all_watchers_share_one_change_and_one_object() -> None:
    async def run() -> None:
        cluster = new_cluster()
        watches = [cluster.watch(ComposableResource) for _ in range(3)]
        for watch in watches:
            assert isinstance(await anext(watch), Synced)
        created = await cluster.create(resource())
        told = [await anext(watch) for watch in watches]
        assert all(one is told[0] for one in told)
        assert isinstance(told[0], Changed)
        assert told[0].object is created

    asyncio.run(run())


def test_a_watcher_too_far_behind_is_told_everything_anew() -> None:
    async def run() -> list[str]:
        cluster = new_cluster()
        watch = cluster.watch(ComposableResource)
        await cluster.create(resource("a"))
        await anext(watch)
        await anext(watch)
        for number in range(api.NEWS_MAX + 1):
            cluster.store.patch(ComposableResource, named("a"), {"metadata": {"labels": {"a": str(number)}}})
        await cluster.create(resource("b"))
        await cluster.delete(ComposableResource, named("a"), ANY)
        told = [await anext(watch) for _ in range(2)]
        await cluster.create(resource("c"))
        told.append(await anext(watch))
        return [_short(one) for one in told]

    assert asyncio.run(run()) == ["b", "synced: b", "c"]


def _short(change: Change) -> str:
    if isinstance(change, Synced):
        return f"synced: {','.join(key.name for key in change.keys)}"
    return change.object.metadata.name


def test_what_happens_while_the_list_is_told_comes_after_it() -> None:
    async def run() -> list[str]:
        cluster = new_cluster()
        await cluster.create(resource("a"))
        await cluster.create(resource("b"))
        watch = cluster.watch(ComposableResource)
        told = [await anext(watch)]
        await cluster.create(resource("c"))
        told += [await anext(watch) for _ in range(3)]
        return [_short(one) for one in told if not isinstance(one, Synced)]

    assert asyncio.run(run()) == ["a", "b", "c"]


def test_a_watch_that_ends_is_not_told_any_more() -> None:
    async def run() -> None:
        cluster = new_cluster()
        watch = cluster.watch(ComposableResource)
        await anext(watch)
        await watch.aclose()
        await cluster.create(resource())
        with pytest.raises(StopAsyncIteration):
            await anext(watch)

    asyncio.run(run())


Call = Callable[[api.Client], Coroutine[object, object, object]]
CALLS: dict[str, Call] = {
    "read": lambda client: client.read(ComposableResource, R),
    "create": lambda client: client.create(resource("other")),
    "write": lambda client: client.write(Merge(ComposableResource, R, ANY, {"spec": {"force_detach": True}})),
    "delete": lambda client: client.delete(ComposableResource, R, ANY),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_killed_handle_does_nothing_more_and_ends_who_uses_it(name: str) -> None:
    async def run() -> None:
        cluster = new_cluster()
        created = await cluster.create(resource())
        client = cluster.client("victim")
        client.kill()
        tidied: list[str] = []

        async def victim() -> None:
            try:
                await CALLS[name](client)
                tidied.append("went on")
            except Exception:  # noqa: BLE001 - that is the point: no handler may see it
                tidied.append("handled")

        task = asyncio.ensure_future(victim())
        await asyncio.wait([task])
        assert task.cancelled()
        assert tidied == []
        assert await cluster.read(ComposableResource, R) is created

    asyncio.run(run())


def test_a_killed_handles_watch_wakes_up_to_die_and_the_others_sleep_on() -> None:
    async def run() -> None:
        cluster = new_cluster()
        victim, other = cluster.client("victim"), cluster.client("other")

        async def follow(client: api.Client, heard: list[str]) -> None:
            async for change in client.watch(ComposableResource):
                heard += [_short(change)]

        dead: list[str] = []
        alive: list[str] = []
        tasks = [asyncio.ensure_future(follow(victim, dead)), asyncio.ensure_future(follow(other, alive))]
        await asyncio.wait(tasks, timeout=0.01)
        victim.kill()
        await cluster.create(resource())
        await asyncio.wait(tasks, timeout=0.01)
        assert tasks[0].cancelled()
        assert not tasks[1].done()
        assert dead == ["synced: "]
        assert alive == ["synced: ", "r"]
        tasks[1].cancel()
        await asyncio.wait(tasks)

    asyncio.run(run())


def test_an_event_costs_a_watcher_the_same_however_many_objects_there_are() -> None:
    def seconds(objects: int) -> float:
        async def run() -> float:
            cluster = new_cluster()
            for number in range(objects):
                await cluster.create(resource(f"r{number}"))
            watches = [cluster.watch(ComposableResource) for _ in range(10)]
            for watch in watches:
                while not isinstance(await anext(watch), Synced):
                    pass
            begun = time.perf_counter()
            for number in range(200):
                cluster.store.patch(
                    ComposableResource, named("r0"), {"metadata": {"labels": {"a": str(number)}}}
                )
                for watch in watches:
                    await anext(watch)
            return time.perf_counter() - begun

        return asyncio.run(run())

    seconds(10)
    assert seconds(2_000) < 5 * seconds(20)

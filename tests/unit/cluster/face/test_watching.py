"""What watches are told, line by line."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.face import watching
from jackfield.cluster.face.calls import Call
from jackfield.cluster.face.reading import Watching
from jackfield.cluster.face.watching import Hub, Watch
from jackfield.codec import Raw, kinds
from unit.cluster.face.faces import MAPS, NOW, Face, config_map

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Stage:
    """A face whose watches are read by hand."""

    def __init__(self, events_max: int = 1000) -> None:
        self.face = Face(events_max=events_max)
        self.hub = Hub(self.face.store, kinds.KINDS)

    def watch(self, accept: str = "", path: str = MAPS, **query: str) -> tuple[Watch, list[Raw]]:
        asked = self.face.api.answer(Call("GET", path, {"watch": "1", **query}, accept=accept))
        assert isinstance(asked, Watching), asked
        watch, lines = self.hub.begin(asked.view, asked.asked, NOW)
        return watch, read(lines)

    def now(self) -> str:
        return str(self.face.store.version)


def read(lines: bytes) -> list[Raw]:
    return [msgspec.json.decode(line) for line in lines.splitlines()]


def news(watch: Watch) -> list[tuple[str, str]]:
    return [(one["type"], one["object"]["metadata"]["name"]) for one in read(watch.lines(NOW))]


def playing(story: Callable[[Stage], None], events_max: int = 1000) -> None:
    """Play a story in a loop, which wakes whoever watches."""

    async def play() -> None:
        story(Stage(events_max))

    asyncio.run(play())


def test_a_watch_from_a_version_hears_of_all_after_it() -> None:
    def story(stage: Stage) -> None:
        stage.face.post(MAPS, config_map("a"))
        began = stage.now()
        stage.face.post(MAPS, config_map("b"))
        watch, first = stage.watch(resourceVersion=began)
        stage.face.patch(f"{MAPS}/b", "merge-patch+json", {"data": {"x": "1"}})
        stage.face.delete(f"{MAPS}/a")
        assert first == []
        assert news(watch) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
        assert watch.caught_up

    playing(story)


def test_a_watch_from_nowhere_begins_with_what_is_there() -> None:
    def story(stage: Stage) -> None:
        stage.face.post(MAPS, config_map("a"))
        for version in ("", "0"):
            watch, first = stage.watch(resourceVersion=version)
            assert [(one["type"], one["object"]["metadata"]["name"]) for one in first] == [("ADDED", "a")]
            assert news(watch) == []

    playing(story)


def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    def story(stage: Stage) -> None:
        stage.face.post(MAPS, config_map("a"))
        _, first = stage.watch(
            sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
        )
        assert [one["type"] for one in first] == ["ADDED", "BOOKMARK"]
        metadata = first[-1]["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == stage.now()

    playing(story)


def test_who_ceases_to_be_selected_goes_as_it_was() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(labelSelector="a=1", resourceVersion=stage.now())
        stage.face.post(MAPS, {"metadata": {"name": "m", "labels": {"a": "1"}}})
        stage.face.patch(f"{MAPS}/m", "merge-patch+json", {"metadata": {"labels": {"a": "2"}}})
        stage.face.patch(f"{MAPS}/m", "merge-patch+json", {"data": {"x": "1"}})
        lines = read(watch.lines(NOW))
        assert [one["type"] for one in lines] == ["ADDED", "DELETED"]
        assert lines[1]["object"]["metadata"]["labels"] == {"a": "1"}
        assert int(lines[1]["object"]["metadata"]["resourceVersion"]) == stage.face.store.version - 1

    playing(story)


def test_a_watch_of_a_namespace_hears_of_no_other() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(resourceVersion=stage.now())
        everywhere, _ = stage.watch(path="/api/v1/configmaps", resourceVersion=stage.now())
        stage.face.post(MAPS.replace("default", "kube-system"), config_map("other"))
        assert news(watch) == []
        assert news(everywhere) == [("ADDED", "other")]

    playing(story)


def test_a_table_says_once_what_its_columns_are() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(TABLE, resourceVersion=stage.now())
        for name in ("a", "b"):
            stage.face.post(MAPS, config_map(name))
        first, second = (one["object"] for one in read(watch.lines(NOW)))
        assert first["columnDefinitions"][0]["name"] == "Name"
        assert second["columnDefinitions"] is None
        assert second["rows"][0]["object"]["metadata"]["name"] == "b"

    playing(story)


def test_whoever_is_too_far_behind_hears_nothing_more() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(resourceVersion=stage.now())
        stage.face.post(MAPS, config_map("a"))
        event = stage.face.store.since(kinds.by_kind("v1", "ConfigMap").type, 0)[-1]  # type: ignore[union-attr] # known
        for _ in range(watching.NEWS_MAX):
            watch.tell(watching.News(event))
        assert watch.behind
        assert watch.lines(NOW) == b""

    playing(story)


def test_many_large_objects_are_told_in_pieces() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(resourceVersion=stage.now())
        for number in range(4):
            stage.face.post(MAPS, config_map(f"m{number}", a="x" * 200_000))
        assert len(news(watch)) == 2
        assert not watch.caught_up
        assert len(news(watch)) == 2
        assert watch.caught_up

    playing(story)


def test_what_is_forgotten_cannot_be_watched_from() -> None:
    def story(stage: Stage) -> None:
        began = stage.now()
        for number in range(5):
            stage.face.post(MAPS, config_map(f"m{number}"))
        with pytest.raises(ApiError) as refused:
            stage.watch(resourceVersion=began)
        assert (refused.value.code, refused.value.reason) == (410, "Expired")

    playing(story, events_max=3)


def test_who_leaves_hears_nothing_and_counts_no_more() -> None:
    def story(stage: Stage) -> None:
        watch, _ = stage.watch(resourceVersion=stage.now())
        assert stage.hub.count == 1
        stage.hub.leave(watch)
        stage.hub.leave(watch)
        stage.face.post(MAPS, config_map("a"))
        assert (stage.hub.count, news(watch)) == (0, [])

    playing(story)


def test_news_wakes_whoever_waits() -> None:
    async def play() -> None:
        stage = Stage()
        watch, _ = stage.watch(resourceVersion=stage.now())
        waiting = asyncio.ensure_future(watch.wait(NOW))
        await asyncio.wait([waiting], timeout=0)
        stage.face.post(MAPS, config_map("a"))
        await asyncio.wait_for(waiting, 5.0)
        assert news(watch) == [("ADDED", "a")]

    asyncio.run(play())


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
    ],
)
def test_a_watch_that_contradicts_itself_is_refused(query: dict[str, str]) -> None:
    answer = Face().get(MAPS, watch="true", **query)
    assert answer.code == 422

"""A watch tells everything once and in order, whatever becomes of its connections."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from jackfield.kube import reflector
from jackfield.kube.answers import Unserved
from jackfield.kube.client import KubeCluster
from jackfield.kube.reflector import Lines
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import named
from jackfield.ports import (
    EVERYTHING,
    Change,
    Changed,
    Deleted,
    PortError,
    Refused,
    Retry,
    Rewound,
    Selection,
    Synced,
)
from unit.kube.loopback import Api, Raw, answer, event, listing, resource, serving, status, stream

Watch = Callable[[web.Request], Awaitable[web.StreamResponse]]
BOOKMARK: Raw = {"kind": "ComposableResource", "metadata": {"resourceVersion": "900"}}


def short(change: Change) -> str:
    match change:
        case Changed(object=one):
            return f"+{one.metadata.name}{one.metadata.resource_version}"
        case Deleted(object=one):
            return f"-{one.metadata.name}{one.metadata.resource_version}"
        case Synced(keys=keys):
            return f"={','.join(sorted(key.name for key in keys))}"


async def taken(changes: AsyncIterator[Change], count: int) -> list[str]:
    return [short(await anext(changes)) for _ in range(count)]


def sent(*chunks: bytes) -> Watch:
    return lambda request: stream(request, *chunks)


async def nothing_more(request: web.Request) -> web.StreamResponse:
    """A watch in which nothing happens; the test ends it."""
    response = web.StreamResponse()
    await response.prepare(request)
    assert request.transport is not None
    while not request.transport.is_closing():
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.02)
    return response


class Server:
    """Lists and watches, each from its script; the last of each is repeated."""

    def __init__(self, lists: list[Raw | web.Response], watches: list[Watch]) -> None:
        self._lists = lists
        self._watches = watches
        self.watched: list[str] = []
        self.listed: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            self.watched.append(request.query["resourceVersion"])
            script = self._watches[min(len(self.watched), len(self._watches)) - 1]
            return await script(request)
        self.listed.append(request.query_string)
        said = self._lists[min(len(self.listed), len(self._lists)) - 1]
        return said if isinstance(said, web.Response) else answer(said)


def told(server: Server, count: int, selection: Selection = EVERYTHING) -> tuple[list[str], Api]:
    async def main() -> tuple[list[str], Api]:
        async with serving(server) as api, KubeCluster(api.connection) as cluster:
            changes = cluster.watch(ComposableResource, selection)
            found = await taken(changes, count)
            await changes.aclose()
            return found, api

    return asyncio.run(asyncio.wait_for(main(), 20))


# --- listing


def test_all_is_told_then_that_it_was_then_the_news() -> None:
    server = Server(
        [listing(10, resource("a", 3), resource("b", 7))],
        [sent(event("ADDED", resource("c", 11)), event("DELETED", resource("a", 12)))],
    )
    found, api = told(server, 5)
    assert found == ["+a3", "+b7", "=a,b", "+c11", "-a12"]
    assert server.watched == ["10"]
    first = api.asked[0].query
    assert "resourceVersion" not in first, "a first list must not come from a cache"
    assert first["limit"] == "500"
    watch = api.asked[1].query
    assert (watch["watch"], watch["allowWatchBookmarks"]) == ("true", "true")
    assert 300 <= int(watch["timeoutSeconds"]) <= 600


def test_a_long_list_comes_in_pages() -> None:
    server = Server(
        [
            listing(10, resource("a", 3), more="x/=&"),
            listing(10, resource("b", 4), more="y"),
            listing(10, resource("c", 5)),
        ],
        [nothing_more],
    )
    found, api = told(server, 4)
    assert found == ["+a3", "+b4", "+c5", "=a,b,c"]
    assert api.queries("continue")[:3] == ["", "x/=&", "y"]


def test_pages_that_expired_are_asked_for_all_at_once() -> None:
    expired = answer(status(410, "Expired"), 410)
    server = Server(
        [listing(10, resource("a", 3), more="x"), expired, listing(12, resource("a", 3), resource("b", 11))],
        [nothing_more],
    )
    found, api = told(server, 4)
    assert found == ["+a3", "+a3", "+b11", "=a,b"]
    assert api.queries("limit")[:3] == ["500", "500", "0"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (answer(status(403), 403), Refused),
        (answer("404 page not found", 404), Unserved),
        (answer(status(500), 500), Retry),
        (answer("a word"), Retry),
        (answer({"items": []}), Retry),
    ],
)
def test_what_cannot_be_listed_is_told_at_once(said: web.Response, error: type[PortError]) -> None:
    with pytest.raises(error):
        told(Server([said], [nothing_more]), 1)


def test_one_bad_object_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    bad = {**resource("bad", 4), "spec": {"type": 7}}
    server = Server(
        [listing(10, resource("a", 3), bad)],
        [
            sent(
                event("ADDED", {**bad, "metadata": {"name": "worse", "resourceVersion": "11"}}),
                b"no json\n",
                b'{"type": "NEWS", "object": {}}\n',
                event("ADDED", resource("c", 12)),
            )
        ],
    )
    with caplog.at_level(logging.WARNING):
        found, _ = told(server, 3)
    assert found == ["+a3", "=a,bad", "+c12"], "what exists is named, even if it cannot be read"
    said = caplog.text
    for words in ("bad: spec.type", "worse: spec.type", "malformed", "unknown event 'NEWS'"):
        assert words in said


# --- going on


def test_a_watch_goes_on_where_it_ended() -> None:
    server = Server(
        [listing(10)],
        [
            sent(event("ADDED", resource("a", 11)), event("BOOKMARK", BOOKMARK)),
            sent(event("MODIFIED", resource("a", 901))),
            sent(event("MODIFIED", resource("a", 902))),
        ],
    )
    found, _ = told(server, 4)
    assert found == ["=", "+a11", "+a901", "+a902"]
    assert server.watched[:3] == ["10", "900", "901"]
    assert len(server.listed) == 1


def test_an_event_cut_in_two_is_told_once_and_whole() -> None:
    whole, cut = event("ADDED", resource("a", 11)), event("ADDED", resource("b", 12))
    server = Server([listing(10)], [sent(whole, cut[:30]), sent(cut[:30], cut[30:])])
    found, _ = told(server, 3)
    assert found == ["=", "+a11", "+b12"]
    assert server.watched == ["10", "11"]


def test_an_event_may_be_longer_than_any_buffer() -> None:
    large = resource("a", 11, annotations={"x": "y" * 3_000_000})
    server = Server([listing(10)], [sent(event("ADDED", large), event("ADDED", resource("b", 12)))])
    assert told(server, 3)[0] == ["=", "+a11", "+b12"]


EXPIRED_EVENT = sent(event("ADDED", resource("b", 11)), event("ERROR", status(410, "Expired")))


async def expired_answer(_: web.Request) -> web.StreamResponse:
    return answer(status(410, "Expired"), 410)


async def future_answer(_: web.Request) -> web.StreamResponse:
    details = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
    return answer(status(504, "Timeout", details=details), 504)


async def refused_answer(_: web.Request) -> web.StreamResponse:
    return answer(status(400, "BadRequest"), 400)


@pytest.mark.parametrize(
    ("broken", "between"),
    [
        (EXPIRED_EVENT, ["+b11"]),
        (expired_answer, []),
        (future_answer, []),
        (refused_answer, []),
    ],
    ids=["expired event", "expired answer", "a version from the future", "no such version"],
)
def test_what_cannot_be_resumed_is_told_anew(broken: Watch, between: list[str]) -> None:
    server = Server(
        [listing(10, resource("a", 3)), listing(20, resource("b", 15))],
        [broken, sent(event("ADDED", resource("c", 21)))],
    )
    found, _ = told(server, 5 + len(between))
    assert found == ["+a3", "=a", *between, "+b15", "=b", "+c21"]
    assert server.watched == ["10", "20"]


@pytest.mark.parametrize(
    "broken",
    [
        sent(event("ERROR", status(500, "InternalError"))),
        sent(event("ERROR", {})),
        lambda _: _answered(503),
        lambda _: _answered(429),
    ],
    ids=["500 event", "empty event", "503", "429"],
)
def test_what_is_only_broken_is_resumed_without_a_list(broken: Watch) -> None:
    server = Server([listing(10)], [broken, sent(event("ADDED", resource("c", 21)))])
    assert told(server, 2)[0] == ["=", "+c21"]
    assert (server.watched, server.listed) == (["10", "10"], ["limit=500", "limit=1"])


async def _answered(code: int) -> web.StreamResponse:
    return answer(status(code), code)


def test_a_list_that_fails_later_on_is_repeated_until_it_works() -> None:
    server = Server(
        [listing(10), answer(status(403), 403), answer(status(500), 500), listing(20, resource("a", 15))],
        [expired_answer, nothing_more],
    )
    assert told(server, 3)[0] == ["=", "+a15", "=a"]


def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    server = Server([listing(10)], [sent()])

    async def main() -> None:
        async with serving(server) as api, KubeCluster(api.connection) as cluster:
            changes = cluster.watch(ComposableResource)
            await taken(changes, 1)
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.wait([waiting], timeout=1.0)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])

    asyncio.run(main())
    assert 2 <= len(server.watched) <= 6
    assert server.listed == ["limit=500", *["limit=1"] * (len(server.watched) - 1)]


def test_a_connection_that_is_aborted_is_mended() -> None:
    async def abort(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("ADDED", resource("a", 11)))
        assert request.transport is not None
        request.transport.abort()
        return response

    server = Server([listing(10), listing(11)], [abort, sent(event("ADDED", resource("b", 12)))])
    assert told(server, 3)[0] == ["=", "+a11", "+b12"]
    assert server.watched == ["10", "11"]


def test_whoever_watches_a_server_that_went_back_in_time_must_begin_anew() -> None:
    server = Server([listing(100, resource("a", 90)), listing(50)], [lambda _: _answered(503)])
    with pytest.raises(Rewound, match="from 100 to 50"):
        told(server, 3)
    assert server.watched == ["100"]


def test_a_watch_that_heard_nothing_for_long_learns_from_other_calls_that_time_went_back() -> None:
    """It alone would not notice: the server went back to a later time than that of its own last news."""
    server = Server(
        [listing(100), answer(resource("b", 900)), listing(500), listing(500)],
        [lambda _: _answered(503), nothing_more],
    )

    async def main() -> None:
        async with serving(server) as api, KubeCluster(api.connection) as cluster:
            first = cluster.watch(ComposableResource)
            assert await taken(first, 1) == ["="]
            await cluster.read(ComposableResource, named("b"))
            with pytest.raises(Rewound, match="from 900 to 500"):
                await taken(first, 1)
            second = cluster.watch(ComposableResource)
            assert await taken(second, 1) == ["="], "whoever begins now begins in the new time"
            await second.aclose()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_every_watch_of_a_program_hears_that_time_went_back() -> None:
    server = Server([listing(100), listing(100), listing(50), listing(150)], [lambda _: _answered(503)])

    async def main() -> None:
        async with serving(server) as api, KubeCluster(api.connection) as cluster:
            watches = [cluster.watch(ComposableResource) for _ in range(2)]
            for one in watches:
                assert await taken(one, 1) == ["="]
            with pytest.raises(Rewound):
                await taken(watches[0], 1)
            with pytest.raises(Rewound):
                await taken(watches[1], 1)

    asyncio.run(asyncio.wait_for(main(), 20))


# --- selecting


def test_a_selection_is_asked_of_the_server() -> None:
    selection = Selection("ns", labels={"a": "b", "c/d": "e"}, fields={"metadata.name": r"x,y=z\w"})

    async def main() -> Api:
        server = Server([listing(10)], [sent(event("ADDED", resource("a", 11)))])
        async with serving(server) as api, KubeCluster(api.connection) as cluster:
            for kind in (ResourceClaim, ComposableResource):
                changes = cluster.watch(kind, selection)
                await taken(changes, 2)
                await changes.aclose()
        return api

    api = asyncio.run(main())
    assert {one.query["labelSelector"] for one in api.asked} == {"a=b,c/d=e"}
    assert {one.query["fieldSelector"] for one in api.asked} == {r"metadata.name=x\,y\=z\\w"}
    assert [one.path for one in api.asked[::2]] == [
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims",
        "/apis/cro.hpsys.ibm.ie.com/v1alpha1/composableresources",
    ]


# --- lines


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_the_same_however_they_are_cut(size: int) -> None:
    data = b"one\ntwo\n\nthree\nrest"
    lines = Lines()
    found = [line for at in range(0, len(data), size) for line in lines.of(data[at : at + size])]
    assert found == [b"one", b"two", b"three"]


def test_a_line_without_end_is_no_watch() -> None:
    lines = Lines()
    chunk = b"x" * (reflector.LINE_BYTES_MAX // 4)
    for _ in range(4):
        assert lines.of(chunk) == []
    with pytest.raises(Retry, match="no watch"):
        lines.of(chunk)

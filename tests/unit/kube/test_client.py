"""What each call of the port says to an API server, and what its answers become."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from http import HTTPMethod

import msgspec
import pytest
from aiohttp import web

import jackfield
from jackfield.kube.answers import Unserved
from jackfield.kube.client import KubeCluster
from jackfield.kube.credentials import BadCredentials, Proof
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ComposableResourceSpec
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key, ModelName, Version, named
from jackfield.model.node import Node
from jackfield.ports import Apply, Bug, Conflict, Gone, Merge, PortError, Refused, Retry
from unit.kube.loopback import Api, Handler, Raw, answer, resource, serving, status

Use = Callable[[KubeCluster], Awaitable[object]]
R = named("r")
ANY = Version("")
PATH = "/apis/cro.hpsys.ibm.ie.com/v1alpha1/composableresources"
NEW = ComposableResource(
    metadata=ObjectMeta(name="r"), spec=ComposableResourceSpec(type="gpu", model=ModelName("A100"))
)
SECRET = "t0ken"  # noqa: S105 - what the loopback server is shown


def used(handler: Handler, use: Use) -> tuple[object, Api]:
    async def main() -> tuple[object, Api]:
        async with serving(handler) as api, KubeCluster(api.connection, "tests") as cluster:
            return await use(cluster), api

    return asyncio.run(asyncio.wait_for(main(), 20))


async def yes(_: web.Request) -> web.Response:
    return answer(resource("r", 7))


def no(code: int, body: object = None, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return answer(status(code) if body is None else body, code, **headers)

    return handler


# --- what is said

READ: Use = lambda cluster: cluster.read(ComposableResource, R)  # noqa: E731 - a table of calls
CREATE: Use = lambda cluster: cluster.create(NEW)  # noqa: E731
MERGE: Use = lambda cluster: cluster.write(  # noqa: E731
    Merge(ComposableResource, R, Version("5"), {"metadata": {"labels": {"a": None}}, "spec": {"model": "B"}})
)
STATUS: Use = lambda cluster: cluster.write(  # noqa: E731
    Merge(ComposableResource, R, ANY, {"status": {"state": "Online"}}, status=True)
)
APPLY: Use = lambda cluster: cluster.write(  # noqa: E731
    Apply(ResourceClaim, Key("ns", "c"), Version("5"), {"status": {}}, "jackfield/p", status=True)
)
DELETE: Use = lambda cluster: cluster.delete(ComposableResource, R, Version("5"))  # noqa: E731
DELETE_ANY: Use = lambda cluster: cluster.delete(ComposableResource, R, ANY)  # noqa: E731
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}
CLAIM_PATH = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"


@pytest.mark.parametrize(
    ("use", "said", "content", "body"),
    [
        (READ, f"GET {PATH}/r", "application/octet-stream", None),
        (
            CREATE,
            f"POST {PATH}?fieldManager=tests",
            "application/json",
            {
                "apiVersion": "cro.hpsys.ibm.ie.com/v1alpha1",
                "kind": "ComposableResource",
                "metadata": {"name": "r"},
                "spec": {"type": "gpu", "model": "A100", "target_node": ""},
            },
        ),
        (
            MERGE,
            f"PATCH {PATH}/r?fieldManager=tests",
            "application/merge-patch+json",
            {"metadata": {"labels": {"a": None}, "resourceVersion": "5"}, "spec": {"model": "B"}},
        ),
        (
            STATUS,
            f"PATCH {PATH}/r/status?fieldManager=tests",
            "application/merge-patch+json",
            {"status": {"state": "Online"}},
        ),
        (
            APPLY,
            f"PATCH {CLAIM_PATH}?fieldManager=jackfield/p&force=true",
            "application/apply-patch+yaml",
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "resourceVersion": "5"},
                "status": {},
            },
        ),
        (
            DELETE,
            f"DELETE {PATH}/r",
            "application/json",
            {**OPTIONS, "preconditions": {"resourceVersion": "5"}},
        ),
        (DELETE_ANY, f"DELETE {PATH}/r", "application/json", OPTIONS),
    ],
)
def test_every_method_of_the_port_is_one_call(use: Use, said: str, content: str, body: Raw | None) -> None:
    _, api = used(yes, use)
    (asked,) = api.asked
    assert f"{asked.method} {asked.path_qs}" == said
    assert asked.content_type == content
    assert (msgspec.json.decode(api.bodies[0]) if api.bodies[0] else None) == body
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    assert asked.headers["User-Agent"] == f"jackfield/{jackfield.__version__} (tests)"
    assert asked.headers["Accept"] == "application/json"


def test_answers_become_objects() -> None:
    for use in (READ, CREATE, MERGE):
        found, _ = used(yes, use)
        assert isinstance(found, ComposableResource)
        assert (found.metadata.resource_version, found.spec.model) == ("7", "A100")


def test_calls_are_counted_by_verb_and_kind() -> None:
    async def use(cluster: KubeCluster) -> None:
        for one in (READ, READ, CREATE, MERGE, APPLY, DELETE):
            await one(cluster)
        await cluster.raw("GET", "/version")
        cluster.watch(Node)
        assert dict(cluster.calls) == {
            ("get", "ComposableResource"): 2,
            ("create", "ComposableResource"): 1,
            ("patch", "ComposableResource"): 1,
            ("apply", "ResourceClaim"): 1,
            ("delete", "ComposableResource"): 1,
            ("get", "/version"): 1,
            ("watch", "Node"): 1,
        }
        assert cluster.writes == 4

    used(yes, use)


@pytest.mark.parametrize(
    "key", [named(""), named(".."), named("."), named("a/b"), named("a%2fb"), named("../nodes/n")]
)
def test_what_is_no_name_is_never_asked_for(key: Key) -> None:
    async def use(cluster: KubeCluster) -> None:
        for call in (
            lambda: cluster.read(ComposableResource, key),
            lambda: cluster.delete(ComposableResource, key, ANY),
            lambda: cluster.read(ResourceClaim, Key(key.name, "c")),
        ):
            with pytest.raises(Refused):
                await call()

    _, api = used(yes, use)
    assert api.asked == []


# --- what comes back

GONE = status(404, "NotFound", details={"name": "r", "kind": "composableresources"})


@pytest.mark.parametrize(
    ("handler", "error", "words"),
    [
        (no(409), Conflict, "no: 409"),
        (no(409, status(409, "AlreadyExists")), Conflict, "AlreadyExists"),
        (no(404, GONE), Gone, "NotFound"),
        (no(404), Unserved, "does not know this kind of object .*install its definition"),
        (no(404, "404 page not found"), Unserved, "404 page not found.*install its definition"),
        (no(400), Refused, "no: 400"),
        (no(403), Refused, "no: 403"),
        (no(413), Refused, "no: 413"),
        (no(422), Refused, "no: 422"),
        (no(401), Refused, "does not believe who we are.*renew the credentials"),
        (no(429), Retry, "no: 429"),
        (no(500), Retry, "no: 500"),
        (no(503, "<html>try later</html>"), Retry, "try later"),
        (no(504), Retry, "no: 504"),
        (no(415), Bug, "no: 415"),
        (no(302), Retry, "302.*really an API server"),
        (no(200, "a word"), Retry, "is no ComposableResource"),
        (no(200, {"metadata": {"name": 7}}), Refused, r"metadata\.name"),
    ],
)
@pytest.mark.parametrize("use", [READ, CREATE, MERGE], ids=["read", "create", "write"])
def test_answers_become_the_five_errors(
    handler: Handler, error: type[PortError], words: str, use: Use
) -> None:
    with pytest.raises(error, match=f"(?s){words}") as caught:
        used(handler, use)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("handler", "after"),
    [
        (no(429, Retry_After="7"), 7.0),
        (no(503, Retry_After="7"), 7.0),
        (no(429, Retry_After="86400"), 60.0),
        (no(429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"), 1.0),
        (no(429, status(429, details={"retryAfterSeconds": 3})), 3.0),
        (no(500), 1.0),
    ],
)
def test_a_server_says_when_to_try_again(handler: Handler, after: float) -> None:
    with pytest.raises(Retry) as caught:
        used(handler, MERGE)
    assert caught.value.after == after


# --- who we are


class Doubtful:
    """Credentials that become right only after doubts."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def proof(self) -> Proof:
        return Proof(self.tokens[0])

    def doubt(self) -> None:
        if len(self.tokens) > 1:
            self.tokens.pop(0)


@pytest.mark.parametrize("use", [READ, CREATE, MERGE, DELETE], ids=["read", "create", "write", "delete"])
def test_doubted_credentials_are_renewed_once(use: Use) -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer good":
            return answer(resource("r", 1))
        return answer(status(401, "Unauthorized"), 401)

    async def main(credentials: Doubtful) -> int:
        async with serving(handler, credentials) as api, KubeCluster(api.connection) as cluster:
            try:
                await use(cluster)
            except Refused:
                return -len(api.asked)
            return len(api.asked)

    assert asyncio.run(main(Doubtful("old", "good"))) == 2
    assert asyncio.run(main(Doubtful("old", "bad", "good"))) == -2


def test_credentials_that_fail_are_tried_again_later() -> None:
    class Failing:
        async def proof(self) -> Proof:
            raise BadCredentials("the plugin is not there; install it")

        def doubt(self) -> None:
            raise AssertionError

    async def main() -> None:
        async with serving(yes, Failing()) as api, KubeCluster(api.connection) as cluster:
            with pytest.raises(Retry, match="install it") as caught:
                await READ(cluster)
            assert caught.value.after > 1
            assert isinstance(caught.value.__cause__, BadCredentials)
            assert api.asked == []

    asyncio.run(main())


@pytest.mark.parametrize("handler", [no(401), no(403), no(500), no(404), no(302), no(200, "x")])
@pytest.mark.parametrize("use", [READ, CREATE, MERGE], ids=["read", "create", "write"])
def test_no_error_shows_the_token(handler: Handler, use: Use) -> None:
    with pytest.raises(PortError) as caught:
        used(handler, use)
    printed = "".join(traceback.format_exception(caught.value))
    assert SECRET not in printed + repr(caught.value) + repr(caught.value.__cause__)


# --- connections that break


def breaking(times: int) -> tuple[Handler, list[str]]:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.method)
        if len(seen) <= times:
            assert request.transport is not None
            request.transport.abort()
            raise web.HTTPInternalServerError
        return answer(resource("r", 1))

    return handler, seen


def test_a_read_is_asked_again_once_when_its_connection_breaks() -> None:
    handler, seen = breaking(1)
    used(handler, READ)
    assert seen == [HTTPMethod.GET, HTTPMethod.GET]
    handler, seen = breaking(2)
    with pytest.raises(Retry):
        used(handler, READ)
    assert len(seen) == 2


@pytest.mark.parametrize("use", [CREATE, MERGE, APPLY, DELETE], ids=["create", "merge", "apply", "delete"])
def test_a_write_is_never_sent_twice(use: Use) -> None:
    async def twice(cluster: KubeCluster) -> None:
        await READ(cluster)  # so that the write goes over a connection that is kept, as most do
        with pytest.raises(Retry) as caught:
            await use(cluster)
        assert caught.value.__cause__ is not None

    seen: list[str] = []

    async def only_reads(request: web.Request) -> web.Response:
        if request.method == HTTPMethod.GET:
            return await yes(request)
        seen.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        raise web.HTTPInternalServerError

    used(only_reads, twice)
    assert len(seen) == 1


def test_a_server_that_is_not_there_is_a_matter_of_time() -> None:
    async def main() -> None:
        async with serving(yes) as api:
            connection = api.connection
        async with KubeCluster(connection) as cluster:
            for use in (READ, CREATE):
                with pytest.raises(Retry, match="Cannot connect") as caught:
                    await use(cluster)
                assert isinstance(caught.value.__cause__, OSError)

    asyncio.run(main())


# --- beyond the port


def test_raw_calls_say_and_return_json() -> None:
    async def handler(_: web.Request) -> web.Response:
        return answer({"a": 1})

    async def use(cluster: KubeCluster) -> Raw:
        return await cluster.raw(
            "PATCH",
            "/apis/x",
            {"b": 2},
            params={"dryRun": "All"},
            content_type="application/merge-patch+json",
        )

    found, api = used(handler, use)
    assert found == {"a": 1}
    assert api.asked[0].path_qs == "/apis/x?dryRun=All"
    assert api.asked[0].content_type == "application/merge-patch+json"
    assert api.bodies == [b'{"b":2}']

    async def word(cluster: KubeCluster) -> Raw:
        return await cluster.raw("GET", "/readyz")

    with pytest.raises(Refused, match="no JSON object"):
        used(no(200, "ok"), word)


@pytest.mark.parametrize(
    ("handler", "served"),
    [
        (no(200, {"resources": [{"name": "composableresources"}]}), True),
        (no(200, {"resources": [{"name": "others"}]}), False),
        (no(404, "404 page not found"), False),
    ],
)
def test_a_cluster_knows_which_kinds_it_has(handler: Handler, served: bool) -> None:  # noqa: FBT001 - a row
    found, api = used(handler, lambda cluster: cluster.serves(ComposableResource))
    assert found is served
    assert api.asked[0].path == "/apis/cro.hpsys.ibm.ie.com/v1alpha1"


def test_somebody_hears_of_every_call() -> None:
    heard: list[tuple[str, str, str]] = []

    def hear(verb: str, resource: str, code: str, took: float) -> None:
        assert took >= 0.0
        heard.append((verb, resource, code))

    async def use(cluster: KubeCluster) -> None:
        cluster.tell(hear)
        for call in (READ, CREATE, MERGE):
            await call(cluster)

    used(yes, use)
    assert heard == [(verb, "composableresources", "200") for verb in ("get", "create", "patch")]


def test_a_call_without_an_answer_is_heard_of_too() -> None:
    heard: list[str] = []

    async def silent(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def use(cluster: KubeCluster) -> None:
        cluster.tell(lambda *call: heard.append(str(call[2])))
        with pytest.raises(Retry):
            await CREATE(cluster)

    used(silent, use)
    assert heard == ["error"]

"""The whole face as one function: a call in, an answer out.

Knows which path and method mean which verb. Must not know sockets. Whatever is asked, it answers; what nobody foresaw
is answered with 500 and told to whoever listens, and the next call is served as if nothing had been.
"""

import traceback
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from jackfield.cluster import discovery, openapi
from jackfield.cluster.errors import ApiError, internal, not_found
from jackfield.cluster.face import negotiation, reading, reviews, status
from jackfield.cluster.face.calls import Answer, Call, json, text
from jackfield.cluster.face.negotiation import Form
from jackfield.cluster.face.paging import Pages
from jackfield.cluster.face.reading import Reader, Watching
from jackfield.cluster.face.target import Target, parse
from jackfield.cluster.face.writing import Writer
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.model import composition
from jackfield.model.names import Seconds, rfc3339

HEALTH: Final = ("/healthz", "/livez", "/readyz")
PUBLIC: Final = (*HEALTH, "/version")
"""What anybody may ask."""
NOT_FOUND: Final = text("404 page not found\n", HTTPStatus.NOT_FOUND)
NO_CONTAINERS: Final = {
    "log": "has no logs",
    "exec": "has nothing to run a command in",
    "attach": "has nothing to attach to",
    "portforward": "listens on no port",
    "proxy": "listens on no port",
}
OPENAPI_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
NO_OPENAPI: Final = b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36"
"""A document in which nothing is described: a version, a title and the title's version."""
NEVER_HERE: Final = {"limitranges": "LimitRangeList", "resourcequotas": "ResourceQuotaList"}

Verb = Callable[[Call, Target, Seconds], Answer]


class Api:
    """A store, spoken to as an API server is."""

    def __init__(
        self, store: Store, now: Callable[[], Seconds], version: str, wrong: Callable[[str], None]
    ) -> None:
        self._now = now
        self._version = version
        self._wrong = wrong
        self._store = store
        self._reader = Reader(store, Pages(now))
        self._writer = Writer(store)
        self._verbs: dict[tuple[str, str], Verb] = {
            ("GET", "all"): self._reader.list,
            ("POST", "all"): self._writer.create,
            ("DELETE", "all"): self._delete_all,
            ("GET", "one"): self._reader.get,
            ("PUT", "one"): self._writer.update,
            ("PATCH", "one"): self._writer.patch,
            ("DELETE", "one"): self._writer.delete,
            ("GET", "status"): self._reader.get,
            ("PUT", "status"): self._writer.update,
            ("PATCH", "status"): self._writer.patch,
            ("PUT", "finalize"): self._writer.finalize,
            ("POST", "binding"): lambda call, target, _: self._writer.bind(call, target),
            ("POST", "eviction"): lambda call, target, _: self._writer.evict(call, target),
        }

    def answer(self, call: Call) -> Answer | Watching:
        """Return the answer to a call, or what is to be watched."""
        try:
            return self._answer(call)
        except ApiError as error:
            return status.answer(error)
        except Exception:  # noqa: BLE001 - one call that nobody foresaw must not end the others
            self._wrong(f"{call.method} {call.path}: {traceback.format_exc()}")
            return status.answer(internal("Internal error occurred: a mistake of ours, see the log"))

    def _answer(self, call: Call) -> Answer | Watching:
        target = parse(call.path)
        if target is None:
            return self._about_itself(call)
        if call.method != "GET" or target.subresource or not _watches(call):
            verb = self._verb(call.method, target)
            reading.view(call, target.kind)  # what cannot be answered must not be done either
            return verb(call, target, self._now())
        return self._reader.watch(call, target)

    def _verb(self, method: str, target: Target) -> Verb:
        part = target.subresource or ("one" if target.name else "all")
        if target.kind.kind == "Pod" and part in NO_CONTAINERS:
            return self._no_container
        known = {one for _, one in self._verbs}
        if part not in known or not _has(target, part):
            custom = target.kind.group == composition.GROUP
            raise not_found(target.kind, target.key) if custom else status.NOWHERE
        everywhere = target.kind.namespaced and not target.namespace
        if (method, part) not in self._verbs or (method == "POST" and part == "all" and everywhere):
            raise status.NOT_SO
        if (method, part, target.kind.kind) == ("DELETE", "all", "Namespace"):
            raise status.NOT_SO
        return self._verbs[method, part]

    def _no_container(self, call: Call, target: Target, now: Seconds) -> Answer:
        del call, now
        self._store.get(target.kind.type, target.key)
        words = f'pod "{target.name}" {NO_CONTAINERS[target.subresource]}: this cluster runs no containers'
        raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", words)

    def _delete_all(self, call: Call, target: Target, now: Seconds) -> Answer:
        return self._writer.delete_all(
            call, target, lambda one, asked: self._reader.part(one, asked).items, now
        )

    # --- what it says of itself

    def _about_itself(self, call: Call) -> Answer:
        path = call.path.rstrip("/") or "/"
        if path in HEALTH:
            return text("ok")
        review = reviews.answer(call, rfc3339(self._now())) if call.method == "POST" else None
        if review is not None:
            return review
        found = self._document(call, path) or _none_of_them(path, self._store.version)
        if found is None and path.startswith(_served()):
            raise status.NOWHERE
        if found is None:
            return NOT_FOUND
        if call.method != "GET":
            raise status.NOT_SO
        return found

    def _document(self, call: Call, path: str) -> Answer | None:
        if path in ("/api", "/apis"):
            return _groups(call, path)
        if path == "/version":
            return json(discovery.version(self._version))
        if path == "/openapi/v3":
            return json(openapi.index())
        if path == "/openapi/v2":
            return _openapi_v2(call)
        document = None
        if path.startswith("/openapi/v3/"):
            document = openapi.document(path.removeprefix("/openapi/v3/"))
        elif path.startswith(("/api/", "/apis/")):
            document = discovery.document(path)
        return None if document is None else json(document)


def _groups(call: Call, path: str) -> Answer:
    wanted = negotiation.wanted(call.accept, (Form.WHOLE, Form.DISCOVERY))
    if wanted.form is Form.DISCOVERY:
        body: Raw = discovery.aggregated(path)
        told = json(body)
        kind = f"application/json;g=apidiscovery.k8s.io;v={wanted.version};as=APIGroupDiscoveryList"
        return Answer(told.code, told.body, kind)
    return json(discovery.core() if path == "/api" else discovery.groups())


def _openapi_v2(call: Call) -> Answer:
    """Return the types for clients that know no third version of OpenAPI; kubectl looks there for what it misses."""
    if OPENAPI_PROTOBUF not in call.accept:
        return json(openapi.v2())
    return Answer(HTTPStatus.OK, NO_OPENAPI, OPENAPI_PROTOBUF.replace("@", "."))


def _none_of_them(path: str, version: int) -> Answer | None:
    """Return the list of what no object here ever is, but what `kubectl describe namespace` asks for."""
    match path.split("/"):
        case ["", "api", "v1", "namespaces", _, plural] if plural in NEVER_HERE:
            metadata = {"resourceVersion": str(version)}
            return json({"kind": NEVER_HERE[plural], "apiVersion": "v1", "metadata": metadata, "items": []})
        case _:
            return None


def _served() -> tuple[str, ...]:
    return tuple(f"{one}/" for one in discovery.prefixes())


def _watches(call: Call) -> bool:
    return call.query.get("watch", "false").lower() not in ("false", "0")


def _has(target: Target, part: str) -> bool:
    """Whether objects of this kind have that part."""
    match part:
        case "status":
            return target.kind.has_status
        case "finalize":
            return target.kind.kind == "Namespace"
        case "binding" | "eviction":
            return target.kind.kind == "Pod"
        case _:
            return True

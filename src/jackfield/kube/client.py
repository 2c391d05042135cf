"""The Cluster port over an API server.

Knows which call each method of the port is. Must not know what any object means, nor how bytes travel.
"""

import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

import jackfield
from jackfield import codec
from jackfield.codec import Raw, kinds
from jackfield.kube import paths
from jackfield.kube.answers import Unserved
from jackfield.kube.bucket import Bucket
from jackfield.kube.connection import Connection
from jackfield.kube.reflector import Reflector, Timeline
from jackfield.kube.spoken import spoken
from jackfield.kube.transport import APPLY_PATCH, JSON, Call, Transport
from jackfield.model.meta import Object
from jackfield.model.names import Key, Version
from jackfield.ports import EVERYTHING, Apply, Change, Merge, Refused, Retry, Selection

T = TypeVar("T", bound=Object)

MERGE_PATCH: Final = "application/merge-patch+json"
WRITES: Final = frozenset({"create", "patch", "apply", "delete"})
NOTHING: Final[Mapping[str, str]] = {}


class KubeCluster:
    """One program's handle to an API server: `async with KubeCluster(connection) as cluster`."""

    def __init__(self, connection: Connection, name: str = "jackfield", bucket: Bucket | None = None) -> None:
        agent = f"jackfield/{jackfield.__version__} ({name})"
        self._transport = Transport(connection, agent, bucket or Bucket())
        self._time = Timeline()
        self._dice = random.Random()  # noqa: S311 - spreads calls over time, hides nothing
        self.connection = connection
        self.name = name
        self.calls: Counter[tuple[str, str]] = Counter()
        """How often each verb was used on each kind."""

    @property
    def writes(self) -> int:
        """How many calls meant to change something."""
        return sum(count for (verb, _), count in self.calls.items() if verb in WRITES)

    def tell(self, heard: Callable[[str, str, str, float], None]) -> None:
        """Have somebody hear of every call: verb, resource, the answer's code, and how long it took to begin."""
        self._transport.heard = lambda call, code, took: heard(*spoken(call), code, took)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    # --- the port

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        """Tell all objects, then `Synced`, then every change."""
        self.calls["watch", kind.__name__] += 1
        return Reflector(self._transport, kind, selection, self._dice, self._time).changes()

    async def read(self, kind: type[T], key: Key) -> T:
        """Read the object as it is now: without a version asked for, no server answers from its cache."""
        self.calls["get", kind.__name__] += 1
        return self._decoded(kind, await self._transport.ask(Call("GET", paths.one(kinds.of(kind), key))))

    async def create(self, new: T) -> T:
        """Create the object."""
        kind = type(new)
        self.calls["create", kind.__name__] += 1
        path = paths.home(kinds.of(kind), new.key)
        body = msgspec.json.encode(codec.encode(new))
        return self._decoded(
            kind, await self._transport.ask(Call("POST", path, {"fieldManager": self.name}, body))
        )

    async def write(self, patch: Merge | Apply) -> Object:
        """Change the object. An apply takes over what others own, as controllers should."""
        self.calls["apply" if isinstance(patch, Apply) else "patch", patch.kind.__name__] += 1
        return self._decoded(patch.kind, await self._transport.ask(self._patching(patch)))

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for the object's deletion; a kubelet ends a pod with a grace of 0."""
        self.calls["delete", kind.__name__] += 1
        options: Raw = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if version:
            options["preconditions"] = {"resourceVersion": version}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        path = paths.one(kinds.of(kind), key)
        await self._transport.ask(Call("DELETE", path, body=msgspec.json.encode(options)))

    def _patching(self, patch: Merge | Apply) -> Call:
        names = kinds.of(patch.kind)
        path = paths.one(names, patch.key, status=patch.status)
        body: Raw = dict(patch.body)
        metadata = dict(body.get("metadata") or {})
        if patch.version:
            metadata["resourceVersion"] = patch.version
        match patch:
            case Merge():
                if metadata:
                    body["metadata"] = metadata
                params = {"fieldManager": self.name}
                return Call("PATCH", path, params, msgspec.json.encode(body), MERGE_PATCH)
            case Apply():
                body |= {"apiVersion": names.api_version, "kind": names.kind}
                body["metadata"] = {**metadata, "name": patch.key.name}
                params = {"fieldManager": patch.manager, "force": "true"}
                return Call("PATCH", path, params, msgspec.json.encode(body), APPLY_PATCH)

    def _decoded(self, kind: type[T], body: bytes) -> T:
        try:
            one = codec.decode(kind, body)
        except codec.BadObject as error:
            if error.path:
                raise Refused(str(error)) from error
            raise Retry(f"the answer is no {kind.__name__}: {error}") from error
        self._time.heard(one.metadata.resource_version)
        return one

    # --- beyond the port

    async def raw(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, str] = NOTHING,
        content_type: str = JSON,
    ) -> Raw:
        """Ask for what has no type in the model: definitions, discovery, access reviews, dry runs."""
        self.calls[method.lower(), path] += 1
        encoded = b"" if body is None else msgspec.json.encode(body)
        answer = await self._transport.ask(Call(method, path, params, encoded, content_type))
        try:
            return msgspec.json.decode(answer or b"{}", type=Raw)
        except msgspec.DecodeError as error:
            raise Refused(f"{method} {path}: the answer is no JSON object") from error

    async def text(self, path: str, params: Mapping[str, str] = NOTHING) -> str:
        """Ask for what is no object: logs of a pod, and what it answers by itself."""
        self.calls["get", path] += 1
        return (await self._transport.ask(Call("GET", path, params))).decode(errors="replace")

    async def serves(self, kind: type[Object]) -> bool:
        """Return whether the server knows this kind of object at all."""
        names = kinds.of(kind)
        group = f"/apis/{names.group}/{names.version}" if names.group else f"/api/{names.version}"
        try:
            found = await self.raw("GET", group)
        except Unserved:
            return False
        return any(one.get("name") == names.plural for one in codec.objects(found.get("resources")))

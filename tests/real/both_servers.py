"""The same calls to a real API server and to the embedded store, and their answers made comparable."""

import base64
import http.client
import random
import re
import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import yaml

from jackfield import codec
from jackfield.cluster import bootstrap
from jackfield.cluster.deletion import Deletion
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import Stored
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.account import ServiceAccount
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds
from real.changed_bodies import Case

NOW: Final = Seconds(1_700_000_000.0)
SPACE: Final = "default"
MASK: Final = "…"
MERGE: Final = "application/merge-patch+json"
STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ACCESS: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")

TTL: Final = {"node.alpha.kubernetes.io/ttl": "0"}
"""What a controller writes onto every node of a real cluster."""

Answer = tuple[int, Raw]


class Real:
    """A real API server, asked call by call."""

    def __init__(self, kubeconfig: Path) -> None:
        config: Raw = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._host = urlsplit(cluster["server"]).netloc
        self._context = ssl.create_default_context(cadata=authority)
        self._token = config["users"][0]["user"]["token"]

    def ask(
        self, method: str, path: str, body: Raw | None = None, content: str = "application/json"
    ) -> Answer:
        """Return the answer's code and body, whatever they are."""
        connection = http.client.HTTPSConnection(self._host, timeout=10.0, context=self._context)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content, "User-Agent": "test/1"}
        try:
            connection.request(method, path, msgspec.json.encode(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, msgspec.json.decode(answer.read())
        finally:
            connection.close()

    def create(self, kind: type[Object], raw: Raw) -> Answer:
        """Create an object."""
        return self.ask("POST", collection(kind), with_names(kind, raw))

    def try_create(self, kind: type[Object], raw: Raw) -> Answer:
        """Create an object, and leave nothing of it."""
        return self.ask("POST", f"{collection(kind)}?dryRun=All", with_names(kind, raw))

    def patch(self, kind: type[Object], name: str, body: Raw, *, status: bool = False) -> Answer:
        """Merge a patch into an object, or into its status."""
        return self.ask("PATCH", f"{collection(kind)}/{name}{'/status' if status else ''}", body, MERGE)

    def replace(self, kind: type[Object], name: str, raw: Raw, *, status: bool = False) -> Answer:
        """Replace an object, or its status."""
        path = f"{collection(kind)}/{name}{'/status' if status else ''}"
        return self.ask("PUT", path, with_names(kind, raw))

    def delete(self, kind: type[Object], name: str) -> Answer:
        """Delete an object, at once."""
        return self.ask("DELETE", f"{collection(kind)}/{name}?gracePeriodSeconds=0")


class Embedded:
    """The embedded store, asked in the same words."""

    def __init__(self) -> None:
        self.store = Store(lambda: NOW, random.Random("both"), served=True)  # noqa: S311 - no cryptography
        bootstrap.furnish(self.store, NOW)
        self.store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": SPACE}})

    def create(self, kind: type[Object], raw: Raw) -> Answer:
        """Create an object."""
        return _answer(201, lambda: self.store.create(kind, _placed(kind, raw)))

    def try_create(self, kind: type[Object], raw: Raw) -> Answer:
        """Create an object, and leave nothing of it."""
        return _answer(201, lambda: self.store.create(kind, _placed(kind, raw), Write(dry_run=True)))

    def patch(self, kind: type[Object], name: str, body: Raw, *, status: bool = False) -> Answer:
        """Merge a patch into an object, or into its status."""
        write = Write(status=status)
        return _answer(200, lambda: self.store.patch(kind, _key(kind, name), codec.copied(body), write))

    def replace(self, kind: type[Object], name: str, raw: Raw, *, status: bool = False) -> Answer:
        """Replace an object, or its status."""
        placed = _placed(kind, raw)
        placed["metadata"].setdefault("name", name)
        return _answer(200, lambda: self.store.update(kind, placed, Write(status=status)))

    def delete(self, kind: type[Object], name: str) -> Answer:
        """Delete an object, at once."""
        return _answer(200, lambda: self.store.delete(kind, _key(kind, name), how=Deletion(0)))


def changed(server: Real | Embedded, case: Case, *, whole: bool = False) -> Answer:
    """Make an object, and return what is said to a patch of it, or to another whole in its place."""
    kind, raw, body, status = case
    name = str(raw["metadata"]["name"])
    made = server.create(kind, raw)
    assert made[0] == HTTPStatus.CREATED, made[1]
    try:
        change = server.replace if whole else server.patch
        return change(kind, name, body, status=status)
    finally:
        server.delete(kind, name)


def collection(kind: type[Object]) -> str:
    """Return the path of a kind's objects."""
    names = kinds.of(kind)
    group = f"/apis/{names.group}/{names.version}" if names.group else f"/api/{names.version}"
    return f"{group}/namespaces/{SPACE}/{names.plural}" if names.namespaced else f"{group}/{names.plural}"


def with_names(kind: type[Object], raw: Raw) -> Raw:
    """Return the object with what kind it is of."""
    names = kinds.of(kind)
    return {"apiVersion": names.api_version, "kind": names.kind, **raw}


def masked(value: RawValue) -> RawValue:
    """Return an answer without what chance, time and the server's own books put into it."""
    if isinstance(value, dict):
        return {
            name: MASK if name == "resourceVersion" else masked(_once(one) if name == "causes" else one)
            for name, one in value.items()
            if name != "managedFields" and one != TTL
        }
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, str):
        for pattern in (STAMP, UID, ACCESS):
            value = pattern.sub(MASK, value)
    return value


def _once(causes: list[Raw]) -> list[Raw]:
    """Return each cause once: a real server looks at metadata several times, and says so."""
    return [one for place, one in enumerate(causes) if one not in causes[:place]]


def differences(real: RawValue, ours: RawValue, at: str = "") -> list[str]:
    """Return where two answers differ, line by line."""
    if isinstance(real, dict) and isinstance(ours, dict):
        return [
            line
            for name in sorted({*real, *ours})
            for line in differences(real.get(name, "(absent)"), ours.get(name, "(absent)"), f"{at}.{name}")
        ]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return [
            line
            for place, (one, two) in enumerate(zip(real, ours, strict=True))
            for line in differences(one, two, f"{at}[{place}]")
        ]
    return [] if real == ours and type(real) is type(ours) else [f"{at}: real {real!r}, ours {ours!r}"]


def _key(kind: type[Object], name: str) -> Key:
    return Key(SPACE if kind.namespaced else "", name)


def _placed(kind: type[Object], raw: Raw) -> Raw:
    """Return the object in the namespace of the path it is sent to, as the HTTP layer puts it."""
    placed: Raw = codec.copied(raw)
    metadata = placed.setdefault("metadata", {})
    if kind.namespaced and isinstance(metadata, dict):
        metadata.setdefault("namespace", SPACE)
    return placed


def _answer(code: int, call: Callable[[], Stored]) -> Answer:
    try:
        return code, call().wire()
    except ApiError as error:
        return error.code, error.status()

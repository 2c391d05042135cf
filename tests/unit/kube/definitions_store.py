"""An API server's shelf of definitions in memory: server-side apply, permissions, and time until established."""

from collections.abc import Mapping

from jackfield.codec import Raw, copied
from jackfield.kube.api import APPLY, JSON
from jackfield.kube.definitions import DEFINITIONS, REVIEWS
from jackfield.model.names import Seconds
from jackfield.ports import Conflict, Gone, Refused

NOBODY: Mapping[str, str] = {}


class Ticking:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.time = Seconds(0.0)

    def now(self) -> Seconds:
        return self.time

    async def sleep(self, duration: Seconds) -> None:
        self.time = Seconds(self.time + duration)


class Shelf:
    """Definitions by name, and who may do what with them."""

    def __init__(
        self,
        *stored: Raw,
        verbs: tuple[str, ...] = ("get", "create", "patch"),
        looks: int = 1,
        reason: str = "",
        races: tuple[Raw, ...] = (),
    ) -> None:
        self.stored: dict[str, Raw] = {one["metadata"]["name"]: copied(one) for one in stored}
        self.verbs = verbs
        self.looks = looks
        """How often a new definition is looked at before it is established."""
        self.reason = reason
        """Why no name is accepted, if none is."""
        self.races = list(races)
        """What another writes just before each of our writes."""
        self.writes: list[tuple[str, bool]] = []

    async def raw(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, str] = NOBODY,
        content_type: str = JSON,
    ) -> Raw:
        if path == REVIEWS:
            assert method == "POST"
            return self._reviewed(body)
        if not path.startswith(DEFINITIONS):
            return self._served(path)
        name = path.removeprefix(f"{DEFINITIONS}/")
        if method == "GET":
            return self._read(name)
        assert (method, content_type, params["fieldManager"]) == ("PATCH", APPLY, "jackfield")
        return self._apply(name, dict(body or {}), force=params.get("force") == "true")

    def _reviewed(self, body: Mapping[str, object] | None) -> Raw:
        review: Raw = copied(body)
        return {"status": {"allowed": review["spec"]["resourceAttributes"]["verb"] in self.verbs}}

    def _served(self, path: str) -> Raw:
        plurals = [
            one["spec"]["names"]["plural"]
            for one in self.stored.values()
            if path == f"/apis/{one['spec']['group']}/v1alpha1"
        ]
        if not plurals:
            raise Refused("404 page not found")
        return {"resources": [{"name": one} for one in plurals]}

    def _read(self, name: str) -> Raw:
        if "get" not in self.verbs:
            raise Refused("forbidden")
        if name not in self.stored:
            raise Gone(name)
        found = self.stored[name]
        self.looks -= 1
        established = "False" if self.reason or self.looks > 0 else "True"
        conditions = [
            {"type": "NamesAccepted", "status": "False" if self.reason else "True", "message": self.reason},
            {"type": "Established", "status": established},
        ]
        read: Raw = copied({**found, "status": {"conditions": conditions}})
        return read

    def _apply(self, name: str, body: Raw, *, force: bool) -> Raw:
        if self.races:
            self.stored[name] = self.races.pop(0)
        if "patch" not in self.verbs or (name not in self.stored and "create" not in self.verbs):
            raise Refused("forbidden")
        if name in self.stored and self.stored[name]["spec"] != body["spec"] and not force:
            raise Conflict("another manager owns .spec")
        self.writes.append((name, force))
        self.stored[name] = body
        return body

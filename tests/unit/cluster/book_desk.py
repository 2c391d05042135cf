"""An object on which tests write in turn, and the books that are kept of it meanwhile."""

from jackfield import codec
from jackfield.cluster.ownership import books, managers
from jackfield.cluster.ownership.managers import Manager, Managers
from jackfield.codec import Raw, RawValue, kinds
from jackfield.model.meta import Object
from jackfield.model.names import Time

NOON = Time("2026-01-01T12:00:00Z")
LATER = Time("2026-01-01T13:00:00Z")


def who(name: str, kind: type[Object], *, status: bool = False, time: Time = NOON) -> Manager:
    version = kinds.of(kind).api_version
    return Manager(name, applies=False, version=version, subresource="status" if status else "", time=time)


def shown(found: Managers) -> list[tuple[str, str, str, Raw]]:
    return [(one.name, one.operation, one.subresource, managers.fields_v1(one.fields)) for one in found]


def names(found: Managers) -> list[str]:
    return [one.name for one in found]


def pod(**metadata: RawValue) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "1", **metadata},
        "spec": {
            "containers": [{"name": "a", "image": "i:1", "resources": {}}],
            "nodeSelector": {"x": "1"},
            "tolerations": [{"key": "k"}],
            "restartPolicy": "Always",
        },
        "status": {},
    }


def resource(**spec: RawValue) -> Raw:
    return {"metadata": {"name": "r"}, "spec": {"type": "gpu", "model": "A", "target_node": "n", **spec}}


class Desk:
    """An object and its books, written to in turn."""

    def __init__(self, kind: type[Object], raw: Raw, *, kept: bool = True) -> None:
        self.kind = kind
        self.raw = raw
        self.books = books.of(kinds.of(kind))
        self.managers = self.books.created(raw, who("creator", kind)) if kept else ()

    def update(self, name: str, new: Raw, *, status: bool = False) -> None:
        me = who(name, self.kind, status=status)
        self.managers = self.books.updated(self.raw, new, me, self.managers)
        self.raw = new

    def apply(
        self, name: str, body: Raw, *, force: bool = False, status: bool = False, time: Time = NOON
    ) -> books.Outcome:
        live, given = codec.copied(self.raw), codec.copied(body)
        me = who(name, self.kind, status=status, time=time)
        outcome = self.books.applied(self.raw, body, me, self.managers, force=force)
        assert (live, given) == (self.raw, body), "what is given is left alone"
        self.raw, self.managers = outcome.object, outcome.managers
        return outcome

    def labels(self, name: str, *, force: bool = False, **labels: str) -> Raw:
        self.apply(name, {"metadata": {"name": self.raw["metadata"]["name"], "labels": labels}}, force=force)
        found: Raw = self.raw["metadata"].get("labels", {})
        return found

"""What a cluster has before anybody brings anything: namespaces, and the definitions of CoHDI's two kinds.

Knows what a real API server makes when it starts. Must not know who uses it.
"""

from typing import Final

from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, definitions
from jackfield.model.definition import CustomResourceDefinition
from jackfield.model.names import Seconds, Time, named, rfc3339
from jackfield.model.namespace import Namespace

SERVER: Final = "kube-apiserver"
NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


def furnish(store: Store, now: Seconds) -> None:
    """Create what is there from the start, once."""
    write = Write(manager=SERVER)
    for name in NAMESPACES:
        store.create(Namespace, {"metadata": {"name": name}}, write)
    for one in definitions.definitions():
        store.create(CustomResourceDefinition, one, write)
        key = named(one["metadata"]["name"])
        status = Write(manager=SERVER, status=True)
        store.patch(CustomResourceDefinition, key, {"status": _in_force(one["spec"], rfc3339(now))}, status)


def _in_force(spec: Raw, now: Time) -> Raw:
    """Return what a definition says of itself once its kind is served."""
    said = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in said
    ]
    versions = [one["name"] for one in spec["versions"] if one["storage"]]
    return {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": versions}

"""The four protocols between us and the world, and the five errors that may cross them.

Knows what is promised. Must not know who keeps the promise.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, TypeVar

import msgspec

from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.host import Prepared as Prepared  # noqa: PLC0414 - part of this port's words
from jackfield.model.host import Seen as Seen  # noqa: PLC0414 - likewise
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Key, NodeName, PhysicalID, Seconds, Uid, Version

T = TypeVar("T", bound=Object)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = Mapping[str, object]


# --- the five errors, by what the caller must do


class PortError(Exception):
    """Something a port may answer; only its five subclasses are ever raised."""


class Retry(PortError):  # noqa: N818 - named for what the caller must do
    """The same call may work later."""

    def __init__(self, reason: str, after: Seconds = Seconds(1.0)) -> None:
        super().__init__(reason)
        self.after = after


class Rewound(Retry):
    """The world went back in time, since a backup was restored: what is remembered of it is void, begin anew."""


class Conflict(PortError):  # noqa: N818
    """The world is not what the decision saw: look again."""


class Gone(PortError):  # noqa: N818
    """The thing spoken of does not exist (any more)."""


class Refused(PortError):  # noqa: N818
    """The answer is no, and will be no again; the reason belongs on a condition."""


class Bug(PortError):  # noqa: N818
    """Only a mistake of ours explains this."""


# --- the cluster


class Changed(msgspec.Struct, frozen=True, gc=False):
    """An object is now like this."""

    object: Object


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object is gone; this is how it was last, with the version of its going."""

    object: Object


class Synced(msgspec.Struct, frozen=True, gc=False):
    """All objects of the kind have been told once; what follows is news. `keys` are all that exist."""

    kind: type[Object]
    keys: frozenset[Key]


Change = Changed | Deleted | Synced


class Merge(msgspec.Struct, frozen=True, gc=False):
    """Change these fields (JSON merge patch), on exactly this version; an empty version means any."""

    kind: type[Object]
    key: Key
    version: Version
    body: JsonObject
    status: bool = False


class Apply(msgspec.Struct, frozen=True, gc=False):
    """Server-side apply these fields as this manager, on exactly this version; an empty version means any."""

    kind: type[Object]
    key: Key
    version: Version
    body: JsonObject
    manager: str
    status: bool = False


class Selection(msgspec.Struct, frozen=True, gc=False):
    """Which objects of a kind somebody wants to see: those that agree with all that is set."""

    namespace: str = ""
    """Means nothing to kinds without namespaces."""
    labels: Mapping[str, str] = {}
    fields: Mapping[str, str] = {}
    """By path, such as `spec.nodeName`; an API server knows only a few of each kind."""


EVERYTHING = Selection()


class Cluster(Protocol):
    """The Kubernetes API. Any call may raise Retry."""

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        """Tell all objects, then `Synced`, then every change, without end and without a gap.

        A lost connection is mended inside; after one that cannot be resumed all objects are told again, with
        `Synced` naming those that exist. An object that ceases to be selected is `Deleted` to this watcher. Who has
        heard enough closes it. Raises Refused, as Retry, only before the first `Synced`; Rewound at any time.
        """

    async def read(self, kind: type[T], key: Key) -> T:
        """Read the object as it is now, from no cache. Raises Gone."""

    async def create(self, new: T) -> T:
        """Create it. Raises Conflict if the name is taken, Refused if it is invalid."""

    async def write(self, patch: Merge | Apply) -> Object:
        """Change it. Raises Conflict if the version is another, Gone, Refused if the result is invalid."""

    async def delete(self, kind: type[Object], key: Key, version: Version) -> None:
        """Ask for its deletion on exactly this version. Raises Conflict, Gone."""


# --- the fabric


class Fabric(Protocol):
    """A fabric manager. Any call may be repeated and answers soon; any may raise Retry, Gone, Refused.

    Long work is asked about again, not awaited: the same order twice is one order.
    """

    async def inventory(self) -> Inventory:
        """Return what is there, free or attached, and since when."""

    async def attach(self, order: Order) -> Progress:
        """Attach; Done names the device. With order ids: at most once, and never after a detach closed the id."""

    async def detach(self, order: Order) -> Progress:
        """Take back what this order attached and close it; Done also when nothing ever was attached.

        One that is `foreign` means the device it names, whoever else attached it; who cannot do that raises Refused.
        """


# --- the node


class Host(Protocol):
    """The node itself, as its plugin touches it. Any call may be repeated; any may raise Retry."""

    def seen(self) -> tuple[Seen, ...]:
        """Return the devices present."""

    def prepared(self) -> tuple[Prepared, ...]:
        """Return what the checkpoint says is prepared."""

    def strays(self) -> tuple[Uid, ...]:
        """Return claims of which the checkpoint says nothing, as it was damaged, and whose containers may run."""

    async def rescan(self) -> None:
        """Look for devices that came or went."""

    async def release(self, device: PhysicalID, *, force: bool) -> None:
        """Let go of the device, so that it can be pulled. Raises Refused naming who holds it."""

    async def write(self, prepared: Prepared | None, uid: Uid) -> None:
        """Put this into checkpoint and CDI directory for the claim, or remove what is there; atomically."""


class Clock(Protocol):
    """Time, which passes differently in the simulator."""

    def now(self) -> Seconds:
        """Return the time."""

    async def sleep(self, duration: Seconds) -> None:
        """Wait."""


class World(msgspec.Struct, frozen=True):
    """All that a process can touch."""

    cluster: Cluster
    clock: Clock
    fabrics: Mapping[FabricName, Fabric] = {}
    hosts: Mapping[NodeName, Host] = {}

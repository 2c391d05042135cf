"""A cluster, a fabric and a node on virtual time, and the hands that touch them: what actions are tried on."""

import random
from collections.abc import Callable, Coroutine
from typing import TypeVar

from msgspec.structs import replace

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store as ApiStore
from jackfield.codec.encoding import encoded
from jackfield.controllers.act import act
from jackfield.controllers.lead import Alone
from jackfield.controllers.store import Store
from jackfield.controllers.writing import Hands
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.event import Event
from jackfield.model.fabric import Machine, Traits
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import FabricName, Key, NodeName, Seconds, Version, named
from jackfield.model.node import Node
from jackfield.model.plan import AnyAction, Finding, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import Delta
from jackfield.ports import Merge, World
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import running
from jackfield.sim.fabric import Faults, SimFabric
from jackfield.sim.host import HostSpec, SimHost
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec, Foreign, Refusals
from jackfield.testing import builders as b

T = TypeVar("T", bound=Object)


class Heard:
    """Keeps what was decided and done; a `runner.Recorder`."""

    def __init__(self) -> None:
        self.done: list[tuple[float, str, str]] = []
        self.waiting: list[tuple[str, tuple[Waiting, ...]]] = []
        self.findings: list[tuple[Finding, bool]] = []

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        self.done.append((at - loop.START, f"{by} {type(action).__name__}", error))

    def hop(self, action: AnyAction, after: Seconds) -> None: ...

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        del at, by
        self.findings.append((finding, over))

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        del at
        self.waiting.append((by, waiting))


class Bench:
    """The very parts a process has, and what it heard."""

    def __init__(
        self,
        traits: Traits = Traits(),
        policy: Policy = b.policy(),
        faults: Faults | None = None,
        foreign: tuple[Foreign, ...] = (),
    ) -> None:
        self.clock = running()
        self.cluster = EmbeddedCluster(ApiStore(self.clock.now, random.Random("names")))  # noqa: S311 - a test's chance
        self.client = self.cluster.client("jackfield")
        spec = FabricSpec(
            b.FABRIC,
            (Machine(b.NODE),),
            (Batch(b.MODEL, 2),),
            traits,
            attach=Fixed(Seconds(5.0)),
            detach=Fixed(Seconds(3.0)),
            foreign=foreign,
        )
        self.manager = Manager(spec, self.clock, Chance("fabric"))
        self.host = SimHost(b.NODE, self.clock, Chance("host"), HostSpec(needs_rescan=True))
        self.manager.pool.listen(b.NODE, self.host.moved)
        self.deltas: list[Delta] = []
        self.moved: list[FabricName] = []
        self.world = World(
            self.client, self.clock, {b.FABRIC: SimFabric(self.manager, faults)}, {b.NODE: self.host}
        )
        self.store = Store(policy)
        self.told: list[tuple[Object, Event]] = []
        self.hands = Hands(self.world, self.store, self.deltas.extend, self.moved.append, self._tell, Alone())

    def _tell(self, about: Object, words: Event) -> None:
        self.told.append((about, words))

    async def put(self, new: T) -> T:
        """Create an object with its status, as its writers would have left it, and know of it."""
        meta = new.metadata
        bare = ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            finalizers=meta.finalizers,
        )
        made: Object = await self.cluster.create(replace(new, metadata=bare))
        status = getattr(new, "status", None)
        if status is not None and encoded(status):
            body = {"status": encoded(status)}
            made = await self.cluster.write(Merge(type(new), new.key, Version(""), body, status=True))
        self.store.put(made)
        assert isinstance(made, type(new))
        return made

    async def act(self, action: AnyAction) -> None:
        await act(action, self.hands)

    async def wait(self, duration: float) -> None:
        await self.clock.sleep(Seconds(duration))

    # --- what is there

    async def resource(self, name: str = "a100-1.rack-a") -> ComposableResource:
        return await self._same(ComposableResource, named(name))

    async def request(self, name: str = "by-hand") -> ComposabilityRequest:
        return await self._same(ComposabilityRequest, named(name))

    async def claim(self, name: str = "c") -> ResourceClaim:
        return await self._same(ResourceClaim, Key("default", name))

    async def node(self) -> Node:
        return await self._same(Node, named(b.NODE))

    async def _same(self, kind: type[T], key: Key) -> T:
        """Read an object, and see that what we know of it is what it is."""
        found = await self.cluster.read(kind, key)
        known = next((one for one in self.store.all(kind) if one.key == key), None)
        assert known == found, "the answer to a write was not taken into the store"
        return found

    def refuse(self, *nodes: str) -> None:
        """Let the manager refuse to attach to these nodes."""
        self.manager.refusals = Refusals(nodes=tuple(NodeName(one) for one in nodes))


def play(
    scene: Callable[[Bench], Coroutine[None, None, None]],
    traits: Traits = Traits(),
    policy: Policy = b.policy(),
    faults: Faults | None = None,
    foreign: tuple[Foreign, ...] = (),
) -> None:
    """Play a scene on virtual time."""

    async def main() -> None:
        await scene(Bench(traits, policy, faults, foreign))

    loop.run(main())

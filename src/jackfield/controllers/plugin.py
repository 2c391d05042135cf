"""Our node plugin, as the kubelet calls it: prepare and unprepare.

Reads the claim live, decides, acts. Knows the kubelet's two calls. Must not know what makes a device fit to be used.
"""

from collections import Counter

from jackfield.controllers.act import act
from jackfield.controllers.runner import Recorder, Runner
from jackfield.core import prepare
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, NodeName, Seconds, Uid
from jackfield.model.plan import AnyAction, LetGo, Plan, PrepareKey
from jackfield.ports import Gone, PortError, World

ROUNDS_MAX = 4
"""Steps that one call may take; the kubelet asks again."""
TIDY_SECONDS = Seconds(30.0)
"""How often it is looked for holders for whom nothing is prepared and whose claims have ended."""


class Plugin:
    """The plugin of one node, over the store of its runner."""

    def __init__(self, node: NodeName, world: World, runner: Runner, recorder: Recorder) -> None:
        self._node = node
        self._world = world
        self._runner = runner
        self._recorder = recorder
        self._preparing: Counter[Uid] = Counter()
        """For whom something is being prepared at this moment."""

    async def prepare(self, claim: Key, uid: Uid) -> str:
        """Prepare the claim's devices; return what stands in the way, or nothing when they are prepared."""
        self._preparing[uid] += 1
        try:
            if not await self._read_at_rest(claim):
                return f"the resources of claim {claim} changed whenever it was read"
            return await self._go(PrepareKey(self._node, claim, uid), preparing=True)
        except Gone:
            return f"claim {claim} does not exist"
        except PortError as error:
            return str(error)
        finally:
            self._preparing[uid] -= 1
            if not self._preparing[uid]:
                del self._preparing[uid]

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        """Undo it; the claim may be gone. Return what stands in the way, or nothing when it is undone."""
        return await self._go(PrepareKey(self._node, claim, uid), preparing=False)

    async def repair(self) -> str:
        """Have resources name as holders what the checkpoint says, before anything is prepared or unprepared.

        Return what stands in the way, or nothing when it is done.
        """
        plan = await self._repairs()
        if isinstance(plan, str):
            return plan
        self._recorder.waits(self._world.clock.now(), "prepare.decide_repair", plan.waiting)
        errors = [await self._do(action) for action in plan.actions]
        return next((one for one in errors if one), "")

    async def tidy(self) -> None:
        """Clear holders for whom nothing is prepared nor being prepared, and whose claims have ended.

        One that was written after its writer had given it up, or that a restored backup shows: nobody else would. Who
        asks for such a claim meanwhile is refused, or writes the holder anew, and then its version is another.
        """
        self._runner.sense(self._node)
        left = [uid for uid in self._unprepared() if not self._preparing[uid]]
        plan = await self._repairs() if left else Plan()
        for action in plan.actions if not isinstance(plan, str) else ():
            held = self._runner.store.resource(action.resource) if isinstance(action, LetGo) else None
            if held is not None and held.holder in left and not self._preparing[held.holder]:
                await self._do(action)

    def _unprepared(self) -> tuple[Uid, ...]:
        return prepare.unprepared(self._runner.store, self._node)

    async def _repairs(self) -> Plan | str:
        """Return what is to be repaired, by what the claims of all holders are now, or why that is not known."""
        store, known = self._runner.store, dict[Key, None]()
        try:
            # While one is read another plugin of this node may write a holder: of none that was not read it is known
            # whether its claim has ended.
            while unread := [key for key in prepare.holders(store, self._node) if key not in known]:
                await self._read(unread[0])
                known[unread[0]] = None
            strays = self._world.hosts[self._node].strays()
        except PortError as error:
            return str(error)
        self._runner.sense(self._node)
        return prepare.decide_repair(store, self._node, strays)

    async def _read(self, key: Key) -> None:
        """Read a claim live; one that is gone is forgotten."""
        store = self._runner.store
        try:
            self._runner.hear(store.put(await self._world.cluster.read(ResourceClaim, key)))
        except Gone:
            known = store.claim(key)
            self._runner.hear(store.remove(known) if known is not None else ())

    async def _read_at_rest(self, key: Key) -> bool:
        """Read a claim live, and return whether its resources stayed as they were meanwhile. Raises Gone.

        A record that comes while a claim is read may be of a time at which the claim had the device no more, and the
        answer of a time at which it had: together they would say that it has.
        """
        store = self._runner.store
        for _ in range(ROUNDS_MAX):
            before = {one.uid: one.metadata.resource_version for one in store.resources_on(self._node)}
            claim = await self._world.cluster.read(ResourceClaim, key)
            self._runner.hear(store.put(claim))
            given = [result.id for result in claim.results]
            now = [one for one in store.resources_on(self._node) if one.device in given]
            if all(before.get(one.uid) == one.metadata.resource_version for one in now):
                return True
        return False

    async def _go(self, key: PrepareKey, *, preparing: bool) -> str:
        self._runner.sense(
            self._node
        )  # during an update another plugin of this node may have prepared something
        for _ in range(ROUNDS_MAX):
            plan = self._decide(key, preparing=preparing)
            for action in plan.actions:
                error = await self._do(action)
                if error:
                    return error
            if plan.waiting:
                return f"waiting for {plan.waiting[0].what}"
            if not plan.actions:
                return ""
        return "not all steps could be taken yet"

    async def _do(self, action: AnyAction) -> str:
        """Do it; return what went wrong, or nothing."""
        error = ""
        try:
            await act(action, self._runner.hands)
        except PortError as wrong:
            error = f"{type(wrong).__name__}: {wrong}"
        self._recorder.did(self._world.clock.now(), "prepare.decide", action, error)
        return error

    def _decide(self, key: PrepareKey, *, preparing: bool) -> Plan:
        decide = prepare.decide if preparing else prepare.decide_unprepare
        store = self._runner.store
        plan = decide(store, key, store.policy, self._world.clock.now())
        self._recorder.waits(self._world.clock.now(), "prepare.decide", plan.waiting)
        return plan

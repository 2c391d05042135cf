"""Our node plugin, as the kubelet calls it: prepare and unprepare.

Reads the claim live, decides, acts. Knows the kubelet's two calls. Must not know what makes a device fit to be used.
"""

from jackfield.controllers.act import act
from jackfield.controllers.runner import Recorder, Runner
from jackfield.core import prepare
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, NodeName, Uid
from jackfield.model.plan import AnyAction, Plan, PrepareKey
from jackfield.ports import Gone, PortError, World

ROUNDS_MAX = 4
"""Steps that one call may take; the kubelet asks again."""


class Plugin:
    """The plugin of one node, over the store of its runner."""

    def __init__(self, node: NodeName, world: World, runner: Runner, recorder: Recorder) -> None:
        self._node = node
        self._world = world
        self._runner = runner
        self._recorder = recorder

    async def prepare(self, claim: Key, uid: Uid) -> str:
        """Prepare the claim's devices; return what stands in the way, or nothing when they are prepared."""
        try:
            self._runner.hear(self._runner.store.put(await self._world.cluster.read(ResourceClaim, claim)))
        except Gone:
            return f"claim {claim} does not exist"
        except PortError as error:
            return str(error)
        return await self._go(PrepareKey(self._node, claim, uid), preparing=True)

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        """Undo it; the claim may be gone. Return what stands in the way, or nothing when it is undone."""
        return await self._go(PrepareKey(self._node, claim, uid), preparing=False)

    async def repair(self, *, sound: bool) -> str:
        """Have resources name as holders what the checkpoint says, before anything is prepared or unprepared.

        `sound` says whether the checkpoint was whole. Return what stands in the way, or nothing when it is done.
        """
        store = self._runner.store
        try:
            for key in prepare.holders(store, self._node):
                await self._read(key)
        except PortError as error:
            return str(error)
        plan = prepare.decide_repair(store, self._node, sound=sound)
        self._recorder.waits(self._world.clock.now(), "prepare.decide_repair", plan.waiting)
        errors = [await self._do(action) for action in plan.actions]
        return next((one for one in errors if one), "")

    async def _read(self, key: Key) -> None:
        """Read a claim live; one that is gone is forgotten."""
        store = self._runner.store
        try:
            self._runner.hear(store.put(await self._world.cluster.read(ResourceClaim, key)))
        except Gone:
            known = store.claim(key)
            self._runner.hear(store.remove(known) if known is not None else ())

    async def _go(self, key: PrepareKey, *, preparing: bool) -> str:
        for _ in range(ROUNDS_MAX):
            plan = self._decide(key, preparing=preparing)
            if plan.waiting:
                return f"waiting for {plan.waiting[0].what}"
            if not plan.actions:
                return ""
            for action in plan.actions:
                error = await self._do(action)
                if error:
                    return error
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

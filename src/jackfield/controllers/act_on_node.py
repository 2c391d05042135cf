"""The effects of the plugin on its own node: what it sees, lets go of and writes down there, and says of it.

Knows in which order machine and API are told. Must not know why, nor choose: choices are decisions.
"""

import msgspec

from jackfield.controllers.writing import Hands, annotate, say, sense
from jackfield.model.composition import (
    HOLDER,
    RELEASED,
    VISIBLE,
    ResourceState,
)
from jackfield.model.host import Prepared
from jackfield.model.names import (
    NodeName,
    Uid,
)
from jackfield.model.plan import (
    Hold,
    LetGo,
    MarkVisible,
    Release,
    RemoveCDI,
    Rescan,
    WriteCDI,
)
from jackfield.ports import Refused

OnNode = Rescan | MarkVisible | Release | Hold | LetGo | WriteCDI | RemoveCDI
"""What only a node's plugin does."""


async def act(action: OnNode, hands: Hands) -> None:
    """Do it. Raises the ports' five errors."""
    match action:
        case Rescan():
            await hands.world.hosts[action.node].rescan()
            sense(hands, action.node)
        case MarkVisible():
            await say(hands, action, VISIBLE, {"device_id": action.device})
        case Release():
            await _release(action, hands)
        case Hold() | LetGo():
            holder = action.uid if isinstance(action, Hold) else None
            await annotate(hands, action.resource, action.version, {HOLDER: holder})
        case WriteCDI() | RemoveCDI():
            prepared = _prepared(action) if isinstance(action, WriteCDI) else None
            await _checkpoint(hands, action.node, prepared, action.uid)


async def _release(action: Release, hands: Hands) -> None:
    """Let the node let go first; then it is true, and may be said. Who holds it is said as well."""
    if action.device:
        try:
            await hands.world.hosts[action.node].release(action.device, force=action.force)
        except Refused as refused:
            await _say_held(action, str(refused), hands)
            raise
        sense(hands, action.node)
    await say(hands, action, RELEASED, {"state": ResourceState.DETACHING.value})


async def _say_held(action: Release, holders: str, hands: Hands) -> None:
    """Write who holds a device, once: the same words again would wake everybody for nothing."""
    known = hands.store.resource(action.resource)
    before = known.status.conditions if known is not None else ()
    if any(one.type == RELEASED and one.message == holders for one in before):
        return
    said = msgspec.structs.replace(action, because=holders)
    await say(hands, said, RELEASED, {}, holds=False)


def _prepared(action: WriteCDI) -> Prepared:
    more = (action.seen, action.requests, action.share_id, action.pod_claim_name)
    return Prepared(action.uid, action.claim, action.physical, str(action.device), *more)


async def _checkpoint(hands: Hands, node: NodeName, prepared: Prepared | None, uid: Uid) -> None:
    await hands.world.hosts[node].write(prepared, uid)
    sense(hands, node)

"""What the API has now, where it must not rest on what was heard.

A watch may be behind, and a first list old. Knows how a list is asked for. Must not know what is done with it.
"""

from collections.abc import AsyncIterator

from jackfield.controllers.writing import Hands
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.fabric import Order
from jackfield.model.meta import Object
from jackfield.model.names import NodeName, Version
from jackfield.ports import Changed, Cluster, Conflict, Gone, Selection, Synced


async def shown(cluster: Cluster, kind: type[Object], selection: Selection) -> AsyncIterator[Object]:
    """Yield what the API has of a kind now, whatever watches have told so far."""
    async for change in cluster.watch(kind, selection):
        if isinstance(change, Synced):
            return
        if isinstance(change, Changed):
            yield change.object


async def need_current(hands: Hands, kind: type[ComposableResource | ResourceClaim], node: NodeName) -> None:
    """See that all of a kind on a node is known as it is now. Raises Conflict if it was not, and now is."""
    news = False
    async for one in shown(hands.world.cluster, kind, Selection()):
        deltas = hands.store.put(one)
        hands.told(deltas)
        news |= bool(deltas) and isinstance(one, kind) and one.node == node
    if news:
        raise Conflict(f"a {kind.__name__} on {node} had changed")


async def need_unclaimed(hands: Hands, order: Order) -> None:
    """See that every claim on an order's node is known, once in this process: what is asked again is under way."""
    if order.id not in hands.unclaimed:
        await need_current(hands, ResourceClaim, order.node)
        hands.unclaimed[order.id] = None


async def delete(hands: Hands, known: Object | None, version: Version) -> None:
    """Have an object deleted. That it is gone already is news, and a watch that is behind may not bring it for long."""
    if known is None:
        return
    try:
        await hands.world.cluster.delete(type(known), known.key, version)
    except Gone:
        hands.told(hands.store.remove(known))
        raise

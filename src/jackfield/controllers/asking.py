"""What the API has now, where it must not rest on what was heard.

A watch may be behind, and a first list old. Knows how a list is asked for. Must not know what is done with it.
"""

from collections.abc import AsyncIterator

from jackfield.controllers.writing import Hands
from jackfield.model.composition import ComposableResource
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


async def need_current(hands: Hands, node: NodeName) -> None:
    """See that the books on a node are known as they are now. Raises Conflict if they were not, and now are."""
    news = False
    async for one in shown(hands.world.cluster, ComposableResource, Selection()):
        deltas = hands.store.put(one)
        hands.told(deltas)
        news |= bool(deltas) and isinstance(one, ComposableResource) and one.node == node
    if news:
        raise Conflict(f"what is in the books on {node} had changed")


async def delete(hands: Hands, known: Object | None, version: Version) -> None:
    """Have an object deleted. That it is gone already is news, and a watch that is behind may not bring it for long."""
    if known is None:
        return
    try:
        await hands.world.cluster.delete(type(known), known.key, version)
    except Gone:
        hands.told(hands.store.remove(known))
        raise

"""What the API has now, where it must not rest on what was heard.

A watch may be behind, and a first list old. Knows how a list is asked for. Must not know what is done with it.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing

from jackfield.controllers.writing import Hands
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.fabric import Order
from jackfield.model.meta import Object
from jackfield.model.names import NodeName, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import GUARDED, DeviceTaintRule
from jackfield.ports import Changed, Cluster, Conflict, Gone, Selection, Synced


async def shown(cluster: Cluster, kind: type[Object], selection: Selection) -> AsyncIterator[Object]:
    """Yield what the API has of a kind now, whatever watches have told so far."""
    async with aclosing(cluster.watch(kind, selection)) as changes:
        async for change in changes:
            if isinstance(change, Synced):
                return
            if isinstance(change, Changed):
                yield change.object


async def _current(hands: Hands, kind: type[Object], name: str) -> Object | None:
    """Return the object of a name as it is now, of a kind without namespaces, and know it; None if it is gone."""
    known, found = hands.store.get(kind, named(name)), None
    async for found in shown(hands.world.cluster, kind, Selection(fields={"metadata.name": name})):
        hands.told(hands.store.put(found))
    if found is None and known is not None:
        hands.told(hands.store.remove(known))
    return found


async def need_current(
    hands: Hands, kind: type[ComposableResource | ResourceClaim | ResourceSlice], node: NodeName
) -> None:
    """See that all of a kind on a node was known, when this was decided, as it is now. Raises Conflict if it was not.

    What was not known may have come since by any way: as an answer to somebody else who asked at the same time, too.
    """
    decided = min(hands.decided, hands.store.news)
    fields = {"spec.nodeName": node} if kind is ResourceSlice else {}  # nothing selects claims by their node
    async for one in shown(hands.world.cluster, kind, Selection(fields=fields)):
        hands.told(hands.store.put(one))
    if hands.store.changed(kind, node) > decided:
        raise Conflict(f"a {kind.__name__} on {node} had changed")


async def need_reasons(hands: Hands, new: ComposableResource) -> None:
    """See that a resource's request is there, and its node. Raises Conflict if one is gone, or is another."""
    found = await _current(hands, ComposabilityRequest, new.request)
    if found is None or all(one.uid != found.uid for one in new.metadata.owner_references):
        raise Conflict(f"request {new.request} is {'another' if found else 'gone'}")
    if await _current(hands, Node, new.node) is None:
        raise Conflict(f"node {new.node} is gone")


async def need_booked(hands: Hands, order: Order) -> None:
    """See that what stands on an order's node is in the books that we know of. Raises Conflict if it is in no such."""
    for device in hands.store.attached(order.node):
        known = hands.store.resource_with(order.fabric, device.id) if device.model == order.model else None
        if known is None:
            continue
        found = await _current(hands, ComposableResource, known.metadata.name)
        if not isinstance(found, ComposableResource) or found.status.cdi_device_id != device.id:
            raise Conflict(
                f"{device.id} on {order.node} is not in the books of {known.metadata.name} any more"
            )


async def need_no_node(hands: Hands, node: NodeName, *, pods: bool) -> None:
    """See that a node is gone, and no pod bound to it if that matters (rule 16). Raises Conflict if it is otherwise."""
    kinds: tuple[tuple[type[Object], str], ...] = ((Node, "metadata.name"), (Pod, "spec.nodeName"))
    for kind, field in kinds if pods else kinds[:1]:
        async for one in shown(hands.world.cluster, kind, Selection(fields={field: node})):
            hands.told(hands.store.put(one))
            raise Conflict(f"{node} is not gone: there is {kind.__name__} {one.key}")


async def need_taint(hands: Hands, name: str) -> None:
    """See that a taint was known as it is, when this was decided, or known not to be. Raises Conflict if it was not."""
    decided = min(hands.decided, hands.store.news)
    await _current(hands, DeviceTaintRule, name)
    if hands.store.changed(DeviceTaintRule, name) > decided:
        raise Conflict(f"taint {name} had changed")


async def need_guarding(hands: Hands, rule: DeviceTaintRule, name: str, *, there: bool) -> None:
    """See that the resource that a taint is written for is there, or is not. Raises Conflict if it is otherwise."""
    one = await _current(hands, ComposableResource, name)
    found = one is not None and rule.metadata.annotations.get(GUARDED, one.uid) == one.uid
    if found is not there:
        raise Conflict(f"the resource that {rule.metadata.name} is for is {'there' if found else 'gone'}")


async def need_unclaimed(hands: Hands, order: Order, taint: str) -> None:
    """See that every claim on an order's node is known, once in this process: what is asked again is under way.

    Also what drivers offer there, and the device's taint, if it is to have one: whoever has been told an old list does
    not know that it must be tainted first, or takes it to be tainted still.
    """
    if order.id not in hands.unclaimed:
        if taint:
            await need_taint(hands, taint)
        await need_current(hands, ResourceSlice, order.node)
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

"""A view → what an operator wants to see first: fabrics, nodes, orders under way, who waits and why, what is not right.

What is waited for is asked of the decisions themselves, so that it is what the controllers wait for now and not what
somebody once wrote down. Knows what is worth a line. Must not know how a line is laid out, nor do anything about it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import msgspec

from jackfield.core import attach, compose, drift, figures, lead, room, scale
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.names import (
    LONG_AGO,
    FabricName,
    Key,
    ModelName,
    NodeName,
    Seconds,
    seconds,
)
from jackfield.model.node import Node
from jackfield.model.plan import Finding
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.model.view import View

UNSCHEDULABLE = "Unschedulable"
"""The reason of a pod for which the scheduler found no node; the words are the scheduler's."""
NO_AGE = Seconds(-1.0)
"""Since when is not known."""
UNKNOWN = -1
"""How many is not known."""


class Objects(msgspec.Struct, frozen=True):
    """All that is looked through; what belongs to each is asked of the view."""

    claims: tuple[ResourceClaim, ...] = ()
    requests: tuple[ComposabilityRequest, ...] = ()
    resources: tuple[ComposableResource, ...] = ()
    nodes: tuple[Node, ...] = ()
    replicas: tuple[str, ...] = ()
    """The names of the replicas whose lease has not run out."""
    silent: Mapping[FabricName, str] = {}
    """Fabrics whose manager did not answer, and what it said instead."""


class Stock(msgspec.Struct, frozen=True):
    """Devices of one model on one fabric, by where they are."""

    model: ModelName
    free: int = 0
    attaching: int = 0
    in_use: int = 0
    idle: int = 0
    detaching: int = 0
    foreign: int = 0
    unhealthy: int = 0


class FabricLine(msgspec.Struct, frozen=True):
    """A fabric: whether its manager answers, who leads it, what it has."""

    name: FabricName
    trouble: str
    """Why its manager did not answer; empty if it did."""
    leader: str
    nodes: int
    stocks: tuple[Stock, ...]
    unknown: tuple[NodeName, ...] = ()
    """Its machines, if it has some and none of them is a node of this cluster: then nothing can be attached."""


class NodeLine(msgspec.Struct, frozen=True):
    """A node of a fabric: what stands there, and why nothing more may."""

    name: NodeName
    fabric: FabricName
    attached: int
    slots: int
    """How many devices it can have; UNKNOWN while its manager is silent."""
    heard: Seconds
    """How many seconds ago its plugin last gave a sign of life; NO_AGE if it never did."""
    trouble: str


class OrderLine(msgspec.Struct, frozen=True):
    """A device on its way."""

    resource: str
    node: NodeName
    model: ModelName
    state: str
    age: Seconds
    """How many seconds ago it was ordered."""
    claim: str
    what: str
    """What it waits for, or what went wrong with it."""


class WaitLine(msgspec.Struct, frozen=True):
    """Somebody who waits."""

    object: str
    reason: str
    what: str
    pods: tuple[str, ...]
    age: Seconds


class Overview(msgspec.Struct, frozen=True):
    """Everything at a glance."""

    fabrics: tuple[FabricLine, ...]
    replicas: tuple[str, ...]
    nodes: tuple[NodeLine, ...]
    orders: tuple[OrderLine, ...]
    waits: tuple[WaitLine, ...]
    findings: tuple[Finding, ...]


def overview(view: View, objects: Objects, policy: Policy, now: Seconds) -> Overview:
    """Return how things stand; of a fabric whose manager is silent only the books tell."""
    fabrics = sorted({*view.fabrics(), *objects.silent})
    shown = (*chain.from_iterable(view.nodes_of(fabric) for fabric in fabrics), *_labelled(objects, policy))
    # A machine that is no node of this cluster may be another's.
    nodes = {name: node for name in shown if (node := view.node(name)) is not None}
    return Overview(
        fabrics=tuple(_fabric(view, fabric, objects, policy) for fabric in fabrics),
        replicas=objects.replicas,
        nodes=tuple(_node(view, node, policy, now) for node in nodes.values()),
        orders=tuple(_orders(view, objects.resources, policy, now)),
        waits=(*_waits(view, objects, policy, now), *_unschedulable(view, now)),
        findings=tuple(one for node in nodes for one in drift.decide(view, node, policy, now).findings),
    )


def _labelled(objects: Objects, policy: Policy) -> Iterator[NodeName]:
    """Nodes of silent managers, by the label that we gave them when theirs still spoke."""
    for node in objects.nodes:
        if node.metadata.labels.get(policy.fabric_label(), "") in objects.silent:
            yield node.name


def _fabric(view: View, fabric: FabricName, objects: Objects, policy: Policy) -> FabricLine:
    models = tuple(one.cdi_model_name for one in policy.models)
    return FabricLine(
        name=fabric,
        trouble=objects.silent.get(fabric, ""),
        leader=lead.leader(fabric, objects.replicas),
        nodes=len(view.nodes_of(fabric)),
        stocks=tuple(_stock(view, (fabric, model), objects.resources, policy) for model in models),
        unknown=_unknown(view, fabric),
    )


def _unknown(view: View, fabric: FabricName) -> tuple[NodeName, ...]:
    machines = view.nodes_of(fabric)
    return machines if all(view.node(name) is None for name in machines) else ()


def _stock(
    view: View, place: figures.Place, resources: tuple[ComposableResource, ...], policy: Policy
) -> Stock:
    fabric, model = place
    booked = [one for one in resources if figures.place(one.device, policy) == place]
    online = sum(figures.sort(one) is figures.Sort.ONLINE for one in booked)
    idle = len(view.idle(fabric, model))
    inventory = view.inventory(fabric)
    shown = [one for one in inventory.devices if one.model == model] if inventory is not None else []
    return Stock(
        model=model,
        free=view.free(fabric, model),
        attaching=sum(figures.sort(one) is figures.Sort.ATTACHING for one in booked),
        in_use=max(0, online - idle),
        idle=idle,
        detaching=sum(figures.sort(one) is figures.Sort.DETACHING for one in booked),
        foreign=sum(bool(one.node) and not one.ours for one in shown),
        unhealthy=sum(not one.healthy for one in shown),
    )


def _node(view: View, node: Node, policy: Policy, now: Seconds) -> NodeLine:
    name, machine = node.name, view.machine(node.name)
    heard = _age(view.heartbeat(name), now)
    if machine is None:  # its manager is silent, so that only the books tell what stands there
        fabric = FabricName(node.metadata.labels.get(policy.fabric_label(), ""))
        return NodeLine(name, fabric, len(view.resources_on(name)), UNKNOWN, heard, "")
    refusals = (room.refusal(view, name, model, policy, now) for model in policy.models)
    return NodeLine(
        name=name,
        fabric=view.fabric_of(name) or lead.NO_FABRIC,
        attached=len(view.attached(name)),
        slots=machine.slots,
        heard=heard,
        trouble=next((one for one in refusals if one), ""),
    )


def _orders(
    view: View, resources: Iterable[ComposableResource], policy: Policy, now: Seconds
) -> Iterator[OrderLine]:
    for one in resources:
        if (
            one.state is ResourceState.ONLINE
        ):  # also one that goes as soon as its claim does: nothing is under way
            continue
        waiting = attach.decide(view, one.metadata.name, policy, now).waiting
        yield OrderLine(
            resource=one.metadata.name,
            node=one.node,
            model=one.spec.model,
            state=one.state.value or "New",
            age=_age(seconds(one.metadata.creation_timestamp), now),
            claim=_wanted_by(view, one),
            what=one.status.error or next((f"waiting for {each.what}" for each in waiting), ""),
        )


def _wanted_by(view: View, resource: ComposableResource) -> str:
    if resource.record is not None:
        return str(resource.record.claim)
    holding = view.claims_holding(resource.device) if resource.device is not None else ()
    return str(holding[0].key) if holding else ""


def _waits(view: View, objects: Objects, policy: Policy, now: Seconds) -> Iterator[WaitLine]:
    """What the decisions about claims and requests wait for, each object once; an order's own line says its."""
    nodes = dict.fromkeys(one.node for one in objects.claims if one.node)
    plans = chain(
        (scale.decide(view, node, policy, now) for node in nodes),
        (compose.decide(view, one.metadata.name, policy, now) for one in objects.requests),
    )
    told = {one.object: one for plan in plans for one in reversed(plan.waiting)}
    for one in told.values():
        claim = _claim(view, one.object)
        pods = view.pods_using(claim.key) if claim is not None else ()
        since = claim.status.allocation if claim is not None else None
        age = _age(seconds(since.allocation_timestamp), now) if since is not None else NO_AGE
        yield WaitLine(one.object, one.reason, one.what, tuple(str(pod.key) for pod in pods), age)


def _claim(view: View, name: str) -> ResourceClaim | None:
    kind, _, key = name.partition("/")
    namespace, _, last = key.partition("/")
    return view.claim(Key(namespace, last)) if kind == "claim" else None


def _unschedulable(view: View, now: Seconds) -> Iterator[WaitLine]:
    """Pods with claims that the scheduler finds no node for."""
    for pod in view.pods_unschedulable():
        if not pod.spec.resource_claims:
            continue
        age = _age(seconds(pod.metadata.creation_timestamp), now)
        yield WaitLine(f"pod/{pod.key}", UNSCHEDULABLE, _scheduler_says(pod), (str(pod.key),), age)


def _scheduler_says(pod: Pod) -> str:
    said = (one.message for one in pod.status.conditions if one.type == "PodScheduled")
    return next(said, "") or "a node that fits; the scheduler does not say what is missing"


def _age(since: Seconds, now: Seconds) -> Seconds:
    return Seconds(max(0.0, now - since)) if since > LONG_AGO else NO_AGE

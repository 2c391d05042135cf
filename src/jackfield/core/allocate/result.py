"""What a successful attempt says on the claim.

Knows the shape of an allocation: results, configuration, node selector. Must not know how the devices were
found.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID, uuid5

from jackfield.core.allocate.attempt import Placement
from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.nodes import NAME_FIELD
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.requests import Ask
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.node import Node

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"
_SHARES: Final = UUID("6ff1a5c4-8f0c-5b0e-9d25-2f0b8c1f7a31")


def allocation(
    claim: ResourceClaim, asks: Sequence[Ask], placed: Sequence[Placement], node: Node, features: Features
) -> AllocationResult:
    """Return the claim's allocation; `asks` are its requests, each with the alternative taken."""
    results = tuple(_result(claim, number, one, features) for number, one in enumerate(placed))
    config = (*_from_classes(asks), *_from_claim(claim, asks, features))
    if features.profile is not Profile.V1_36:
        config = tuple(_general(one, asks) for one in config)
    return AllocationResult(DeviceAllocationResult(results, config), _node_selector(claim, placed, node))


def _result(
    claim: ResourceClaim, number: int, placement: Placement, features: Features
) -> DeviceRequestAllocationResult:
    entry, ask = placement.candidate.entry, placement.ask
    waits = features.binding_conditions
    return DeviceRequestAllocationResult(
        request=ask.name,
        driver=entry.id.driver,
        pool=entry.id.pool,
        device=entry.id.device,
        admin_access=ask.admin,
        tolerations=ask.tolerations,
        binding_conditions=entry.device.binding_conditions if waits else (),
        binding_failure_conditions=entry.device.binding_failure_conditions if waits else (),
        share_id=_share_id(claim, number, placement) if entry.shareable else "",
        consumed_capacity={name: str(amount) for name, amount in placement.consumed.items()},
    )


def _share_id(claim: ResourceClaim, number: int, placement: Placement) -> str:
    """Name a share after who gets it, so that the same decision twice is the same share."""
    owner = claim.metadata.uid or str(claim.key)
    return str(uuid5(_SHARES, f"{owner}/{placement.ask.name}/{placement.candidate.entry.id}/{number}"))


def _from_classes(asks: Sequence[Ask]) -> Iterable[DeviceAllocationConfiguration]:
    names: dict[str, list[str]] = {}
    for ask in asks:
        names.setdefault(ask.device_class.metadata.name, []).append(ask.name)
    classes = {ask.device_class.metadata.name: ask.device_class for ask in asks}
    for name, device_class in classes.items():
        for one in device_class.spec.config:
            yield DeviceAllocationConfiguration(FROM_CLASS, tuple(names[name]), one.opaque)


def _from_claim(
    claim: ResourceClaim, asks: Sequence[Ask], features: Features
) -> Iterable[DeviceAllocationConfiguration]:
    for one in claim.spec.devices.config:
        times = sum(_means(one, ask) for ask in asks) if one.requests else 1
        if features.profile is not Profile.V1_36:
            times = min(times, 1)
        # 1.36 repeats the entry for every request it names.
        for _ in range(times):
            yield DeviceAllocationConfiguration(FROM_CLAIM, one.requests, one.opaque)


def _means(config: DeviceClaimConfiguration, ask: Ask) -> bool:
    return ask.request in config.requests or ask.name in config.requests


def _general(config: DeviceAllocationConfiguration, asks: Sequence[Ask]) -> DeviceAllocationConfiguration:
    """Return the entry without names where it names all requests, since no name means all."""
    everything = len(config.requests) == len(asks)
    return DeviceAllocationConfiguration(config.source, (), config.opaque) if everything else config


def _node_selector(claim: ResourceClaim, placed: Sequence[Placement], node: Node) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for placement in placed:
        entry = placement.candidate.entry
        if entry.place.node_name or entry.device.binds_to_node:
            name = NodeSelectorRequirement(NAME_FIELD, "In", (node.name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
        terms = entry.place.selector.node_selector_terms if entry.place.selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _extend(fields, term.match_fields)
            _extend(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _extend(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for one in more:
        if not any(_same(one, other) for other in known):
            known.append(one)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, frozenset(one.values)) == (
        other.key,
        other.operator,
        frozenset(other.values),
    )

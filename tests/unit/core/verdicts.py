"""Verdicts, told so that a table can hold them: how each claim on a node fares."""

from jackfield.core import demand
from jackfield.core.demand import Postpone, Refuse, Serve, Settled
from jackfield.model.fabric import Inventory
from jackfield.model.meta import Object
from jackfield.model.names import NEVER
from jackfield.model.policy import Policy
from jackfield.testing.builders import (
    NODE,
    NOW,
    heartbeat,
    inventory,
    node,
    policy,
    world,
)

ROOMY = inventory(models={"A100": 2, "H100": 2})


def verdicts(
    *objects: Object,
    stage: Inventory = ROOMY,
    chosen: Policy = policy(),
    on: Object = node(),
    looked: float = NEVER,
) -> dict[str, str]:
    """Return how each claim on n1 fares, in the order in which they are served."""
    view = world(on, heartbeat(), *objects, inventories=[stage], policy=chosen, looked=looked)
    return {one.claim.metadata.name: told(one.verdict) for one in demand.on_node(view, NODE, chosen, NOW)}


def told(verdict: demand.Verdict) -> str:
    match verdict:
        case Serve():
            return "served"
        case Settled(ready=ready):
            return "ready" if ready else "sent away"
        case Refuse(type=kind, device=of, reason=reason):
            return f"{kind} {of.device}: {reason}"
        case Postpone(what=what):
            return f"waits: {what}"

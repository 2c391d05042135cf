"""What the scaler decides for the node n1, for tables."""

from jackfield.core import scale
from jackfield.model.fabric import Inventory
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.model.plan import (
    AnyAction,
    Plan,
)
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

ROOMY = inventory(models={"A100": 4, "H100": 1})


def plan(
    *objects: Object,
    stage: Inventory = ROOMY,
    chosen: Policy = policy(),
    on: Object | None = node(),
    now: float = NOW,
) -> Plan:
    """Return what is decided for n1."""
    there = () if on is None else (on,)
    view = world(*there, heartbeat(at=now), *objects, inventories=[stage], policy=chosen)
    return scale.decide(view, NODE, chosen, Seconds(now))


def only(found: Plan) -> AnyAction:
    """Return the one action of a plan that waits for nothing."""
    (action,) = found.actions
    assert found.waiting == ()
    return action

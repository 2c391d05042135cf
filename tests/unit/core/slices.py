"""Slices as the publisher would have them: its plans, carried out on a store."""

from itertools import count

from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import publish
from jackfield.core.publish import WHOLE_POOL
from jackfield.model.device import Device
from jackfield.model.fabric import Inventory
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, Version
from jackfield.model.plan import PutSlice, SliceKey
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.testing.builders import (
    FABRIC,
    NOW,
    inventory,
    policy,
    world,
)

VERSIONS = count(100)
POOL = SliceKey(FABRIC, DRIVER, "rack-a", WHOLE_POOL)
FIRST = replace(POOL, index=0)
ONE = inventory(models={"A100": 1})
SHARED_POOL = SliceKey(FABRIC, "gpu.example.com", "a100-fabricrack-a", WHOLE_POOL)


def settled(view: Store, chosen: Policy, *keys: SliceKey, now: float = NOW) -> tuple[ResourceSlice, ...]:
    """Carry the plans out, as the API would, until nothing is left to do; return the slices of the pool."""
    keys = keys or (POOL, FIRST)
    for key in keys:
        for action in publish.decide(view, key, chosen, Seconds(now)).actions:
            assert isinstance(action, PutSlice)
            meta = replace(action.slice.metadata, resource_version=Version(str(next(VERSIONS))))
            view.put(replace(action.slice, metadata=meta))
    return view.slices(keys[0].driver, keys[0].pool)


def entry(*objects: Object, stage: Inventory = ONE, chosen: Policy = policy()) -> Device:
    """Return how a100-1 is published."""
    view = world(*objects, inventories=[stage], policy=chosen)
    key = POOL if chosen.models[0].binds else SHARED_POOL
    (one,) = settled(view, chosen, key)
    return next(entry for entry in one.spec.devices if entry.name == "a100-1")

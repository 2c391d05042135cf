"""However a store came to know the world, it gives the same answers, and the same is decided on them."""

import random
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.controllers.store import Store
from jackfield.core import compose, leftover, publish, room, scale
from jackfield.model.names import Key
from jackfield.model.plan import SliceKey
from jackfield.testing.builders import NOW
from unit.controllers import random_worlds
from unit.controllers.random_worlds import CLAIMS, HALL, NODES, POLICY, POOLS, RACK, Step


def plans(store: Store) -> Iterator[tuple[str, object]]:
    """Return what is decided for every key."""
    for on in NODES:
        yield f"room {on}", room.decide(store, on, POLICY, NOW)
        yield f"scale {on}", scale.decide(store, on, POLICY, NOW)
    for driver, pool in POOLS:
        for index in (publish.WHOLE_POOL, 0):
            for fabric in (RACK, HALL):
                key = SliceKey(fabric, driver, pool, index)
                yield f"publish {key}", publish.decide(store, key, POLICY, NOW)
    for one in CLAIMS:
        yield f"leftover {one}", leftover.decide(store, Key("default", one), POLICY, NOW)
    for on in NODES:
        for request in store.requests_on(on):
            name = request.metadata.name
            yield f"compose {name}", compose.decide(store, name, POLICY, NOW)


def differences(one: dict[str, object], two: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {key: (one[key], two[key]) for key in one if one[key] != two[key]}


@given(told=random_worlds.steps, chance=st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_increments_and_a_full_pass_give_the_same_answers_and_decide_the_same(
    told: list[Step], chance: random.Random
) -> None:
    store = random_worlds.hear(told)
    again = random_worlds.rebuilt(store, chance)
    assert differences(random_worlds.answers(store), random_worlds.answers(again)) == {}
    assert differences(dict(plans(store)), dict(plans(again))) == {}

"""However a store came to know the world, it gives the same answers, and the same is decided on them."""

import random
from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.controllers import app
from jackfield.controllers.runner import Controller
from jackfield.controllers.store import Store
from jackfield.core import publish
from jackfield.model.fabric import Inventory
from jackfield.model.names import Key, Seconds
from jackfield.model.plan import Plan, SliceKey
from jackfield.model.policy import NamespaceRule, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.testing.builders import NOW
from unit.controllers import random_worlds
from unit.controllers.random_worlds import CLAIMS, NODES, OWN_POOLS, POLICY, Step

K = TypeVar("K")
CONTROLLERS = (*app.PUBLISHER, *app.SCALER, next(one for one in app.OPERATOR if one.name == "compose"))


def keys(store: Store) -> Iterator[tuple[Controller, Hashable]]:
    """Return every key that anything may have to be decided for."""
    all_keys: dict[str, list[Hashable]] = {
        "publish": [SliceKey(*pool, index) for pool in OWN_POOLS for index in (publish.WHOLE_POOL, 0, 1)],
        "room": list(NODES),
        "scale": list(NODES),
        "quota": ["default"],
        "leftover": [Key("default", one) for one in CLAIMS],
        "compose": [one.metadata.name for on in NODES for one in store.requests_on(on)],
    }
    for controller in CONTROLLERS:
        for key in all_keys[controller.name]:
            yield controller, key


def plans(store: Store) -> dict[tuple[str, Hashable], Plan]:
    """Return what is decided for every key."""
    return {(one.name, key): one.decide(store, key, POLICY, NOW) for one, key in keys(store)}


def differences(one: Mapping[K, object], two: Mapping[K, object]) -> dict[K, tuple[object, object]]:
    return {key: (one.get(key), two[key]) for key in two if one.get(key) != two[key]}


@given(told=random_worlds.steps, chance=st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_increments_and_a_full_pass_give_the_same_answers_and_decide_the_same(
    told: list[Step], chance: random.Random
) -> None:
    store = random_worlds.asked_again(random_worlds.hear(told))
    again = random_worlds.asked_again(random_worlds.rebuilt(store, chance))
    assert differences(random_worlds.answers(store), random_worlds.answers(again)) == {}
    assert differences(plans(store), plans(again)) == {}


OTHERS = (
    replace(POLICY, models=POLICY.models[:2]),
    replace(POLICY, models=()),
    replace(POLICY, models=(replace(POLICY.models[0], driver_name="gpu.example.com"), *POLICY.models[1:])),
    replace(POLICY, namespaces=(NamespaceRule("default", {"*": 0}, 1),)),
    replace(POLICY, attach_seconds=Seconds(1.0), binding_timeout_seconds=Seconds(20.0)),
)


@given(told=random_worlds.steps, before=st.sampled_from(OTHERS))
@settings(max_examples=50, deadline=None)
def test_a_store_that_follows_another_policy_answers_as_if_it_had_known_no_other(
    told: list[Step], before: Policy
) -> None:
    followed = random_worlds.hear(told, before)
    followed.follow(POLICY)
    random_worlds.asked_again(followed)  # as whoever changes the policy does
    always = random_worlds.asked_again(random_worlds.hear(told))
    assert differences(random_worlds.answers(followed), random_worlds.answers(always)) == {}
    assert differences(plans(followed), plans(always)) == {}


def exempt(store: Store, last: Step) -> bool:
    """Return whether a change is one that only the repair follows up in full."""
    match last:
        case ResourceSlice():  # nobody but us writes our slices
            return last.key in {one.key for one in store.all(ResourceSlice)}
        case Inventory():  # a fabric's first comes with a start, and that looks at everything
            return store.inventory(last.fabric) is None
        case _:
            return False


@given(told=random_worlds.steps, last=random_worlds.step)
@settings(max_examples=100, deadline=None)
def test_whatever_a_change_makes_necessary_it_wakes(told: list[Step], last: Step) -> None:
    store = random_worlds.hear(told)
    assume(not exempt(store, last))
    before = plans(store)  # a key that had something to do then has been woken before
    deltas = random_worlds.tell(store, last, len(told) + 1)
    woken = {
        (one.name, key) for one in CONTROLLERS for delta in deltas for key in one.wakes(store, POLICY, delta)
    }
    missed = {
        key: plan.actions
        for key, plan in plans(store).items()
        if plan.actions and key not in woken and not (key in before and before[key].actions)
    }
    assert missed == {}

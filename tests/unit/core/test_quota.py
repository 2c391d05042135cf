"""Namespaces: who is admitted to the pool, what counts against a quota, and whose claims come first."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import quota
from jackfield.model.claim import ResourceClaim
from jackfield.model.fabric import Machine
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, Seconds, Uid, Version
from jackfield.model.plan import Phase, Plan, SetCondition
from jackfield.model.policy import ADMITTED, FAILED, RESCHEDULE, NamespaceRule, Policy
from jackfield.model.view import FactsChanged, ObjectChanged
from jackfield.testing.builders import (
    NODE,
    NOW,
    claim,
    device,
    inventory,
    model,
    node,
    policy,
    request,
    resource,
    vendor_slice,
    world,
)
from unit.core.scaling import plan
from unit.core.verdicts import verdicts

HERE = "default"
VENDOR = "gpu.example.com/h100-fabricrack-a/h100-0"


def ruled(limits: Mapping[str, int], *, name: str = HERE, priority: int = 0) -> Policy:
    """A policy with two models of ours and one of a vendor's, and one rule."""
    chosen = policy("A100", "L40", model("H100", driver="gpu.example.com"))
    return replace(chosen, namespaces=(NamespaceRule(name, limits, priority),))


def decided(*objects: Object, limits: Mapping[str, int], namespace: str = HERE) -> Plan:
    chosen = ruled(limits)
    return quota.decide(world(*objects, policy=chosen), namespace, chosen, Seconds(NOW))


def elsewhere(one: ResourceClaim, namespace: str = "other") -> ResourceClaim:
    return replace(one, metadata=replace(one.metadata, namespace=namespace))


def admitted_in(found: Plan) -> dict[str, str]:
    """The claims that a plan admits, and in which words."""
    assert (found.waiting, found.again_at) == ((), NEVER)
    admissions = [one for one in found.actions if isinstance(one, SetCondition)]
    assert [one.type for one in admissions] == [ADMITTED] * len(found.actions)
    return {one.claim.name: one.message for one in admissions}


def test_a_claim_is_admitted_by_its_version_for_all_its_devices() -> None:
    wish = claim("a", devices=["a100-1", "l40-2"], version="7", uid="u-7")
    words = "namespace default has 2 devices, and may have 3 at once"
    assert decided(wish, limits={"*": 3}) == Plan(
        (
            SetCondition(
                phase=Phase.WANTED,
                claim=Key(HERE, "a"),
                uid=Uid("u-7"),
                version=Version("7"),
                devices=(device("a100-1"), device("l40-2")),
                type=ADMITTED,
                message=words,
                because=words,
            ),
        )
    )


def has(name: str, at: str, **said: str) -> ResourceClaim:
    return claim(name, devices=[at], told=said.get("told", ADMITTED))


ADMISSIONS: dict[str, tuple[tuple[Object, ...], Mapping[str, int], set[str]]] = {
    "all that fit": ((claim("a"), claim("b", devices=["a100-2"])), {"*": 2}, {"a", "b"}),
    "no more than fit": ((claim("a"), claim("b", devices=["a100-2"])), {"*": 1}, {"a"}),
    "none where none may": ((claim("a"),), {"*": 0}, set()),
    "the older claim, though its allocation is younger": (
        (
            claim("a", created=NOW - 50, allocated=NOW - 40),
            claim("b", devices=["a100-2"], created=NOW - 60, allocated=NOW - 5),
        ),
        {"*": 1},
        {"b"},
    ),
    "a small one that passes a large one": (
        (claim("a", devices=["a100-1", "a100-2"]), claim("b", devices=["a100-3"])),
        {"*": 1},
        {"b"},
    ),
    "beside one that is admitted": ((has("a", "a100-1"), claim("b", devices=["a100-2"])), {"*": 2}, {"b"}),
    "not beyond one that is admitted": (
        (has("a", "a100-1"), claim("b", devices=["a100-2"])),
        {"*": 1},
        set(),
    ),
    "not beyond one that was ready before": (
        (claim("a", ready=True), claim("b", devices=["a100-2"])),
        {"*": 1},
        set(),
    ),
    "beside one that was sent round": (
        (has("a", "a100-1", told=RESCHEDULE), claim("b", devices=["a100-2"])),
        {"*": 1},
        {"b"},
    ),
    "beside one that was told to stop": (
        (has("a", "a100-1", told=FAILED), claim("b", devices=["a100-2"])),
        {"*": 1},
        {"b"},
    ),
    "not beyond a device that is not let go yet": (
        (resource("a100-1", record=claim("gone")), claim("b", devices=["a100-2"])),
        {"*": 1},
        set(),
    ),
    "the one to which a device is recorded, which has it": (
        (resource("a100-1", record=claim("a")), claim("a")),
        {"*": 1},
        {"a"},
    ),
    "beside what another namespace has": (
        (elsewhere(has("a", "a100-1")), claim("b", devices=["a100-2"])),
        {"*": 1},
        {"b"},
    ),
    "of each model as many as it may": (
        (claim("a"), claim("b", devices=["a100-2"]), claim("c", devices=["l40-0"])),
        {"A100": 1, "L40": 1},
        {"a", "c"},
    ),
    "within all limits at once": (
        (claim("a"), claim("b", devices=["l40-0"]), claim("c", devices=["l40-1"])),
        {"L40": 2, "*": 2},
        {"a", "b"},
    ),
    "no one whom no limit bears on": ((claim("a"),), {"L40": 1}, set()),
    "not beyond what a vendor's driver gave": (
        (
            vendor_slice("GPU-1"),
            resource(VENDOR, uuid="GPU-1", model="H100"),
            claim("a", devices=[f"gpu.example.com/{NODE}/gpu-0"], waits=()),
            claim("b", devices=[VENDOR.replace("-0", "-1")]),
        ),
        {"H100": 1},
        set(),
    ),
    "beside a vendor's device that no fabric lent": (
        (
            vendor_slice("GPU-1"),
            claim("a", devices=[f"gpu.example.com/{NODE}/gpu-0"], waits=()),
            claim("b", devices=[VENDOR]),
        ),
        {"H100": 1},
        {"b"},
    ),
    "no one who only looks": ((claim("a", admin=True),), {"*": 0}, set()),
    "no one with a device of no model": ((claim("a", devices=["strange-1"]),), {"*": 1}, set()),
    "no one who has nothing": ((claim("a", devices=[]),), {"*": 1}, set()),
    "no one where there is no quota": ((claim("a"),), {}, set()),
}


@pytest.mark.parametrize(("there", "limits", "admits"), ADMISSIONS.values(), ids=ADMISSIONS)
def test_a_namespace_admits(there: tuple[Object, ...], limits: Mapping[str, int], admits: set[str]) -> None:
    assert set(admitted_in(decided(*there, limits=limits))) == admits


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"*": 2}, "namespace default has 1 device, and may have 2 at once"),
        ({"A100": 3, "*": 9}, "namespace default has 1 device of A100, and may have 3 at once"),
        ({"L40": 3, "*": 9}, "namespace default has 1 device, and may have 9 at once"),
    ],
)
def test_an_admission_says_how_much_is_used(limits: Mapping[str, int], words: str) -> None:
    assert admitted_in(decided(claim("a"), limits=limits)) == {"a": words}


# --- no quota is ever exceeded

CLAIMS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["a100", "l40"]),
        st.sampled_from(["", ADMITTED, RESCHEDULE]),
        st.integers(0, 9),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(wishes=CLAIMS, limits=st.dictionaries(st.sampled_from(["*", "A100", "L40"]), st.integers(0, 6)))
def test_no_admission_exceeds_a_quota(
    wishes: list[tuple[int, str, str, int]], limits: Mapping[str, int]
) -> None:
    claims, number = [], 0
    for place, (count, kind, told, old) in enumerate(wishes):
        names = [f"{kind}-{number + one}" for one in range(count)]
        number += count
        claims.append(claim(f"c{place}", devices=names, told=told, created=NOW - 100 - old))
    found = decided(*claims, limits=limits)
    new = {one.claim.name for one in found.actions}
    had = {one.metadata.name for one, wish in zip(claims, wishes, strict=True) if wish[2] == ADMITTED}
    for limit, most in limits.items():
        counted = {
            names: sum(
                limit in {"*", result.device.partition("-")[0].upper()}
                for one in claims
                if one.metadata.name in names
                for result in one.results
            )
            for names in (frozenset(had), frozenset(had | new))
        }
        before, after = counted[frozenset(had)], counted[frozenset(had | new)]
        assert after <= max(before, most)


# --- waking


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (ObjectChanged(None, claim("a")), (HERE,)),
        (ObjectChanged(claim("a"), None), (HERE,)),
        (ObjectChanged(claim("a"), claim("a", ready=True)), (HERE,)),
        (ObjectChanged(None, elsewhere(claim("a"))), ()),
        (ObjectChanged(resource(record=claim("a")), resource()), (HERE,)),
        (ObjectChanged(resource(), resource()), ()),
        (ObjectChanged(None, node()), ()),
        (FactsChanged(NODE), ()),
    ],
)
def test_a_change_wakes_the_namespaces_whose_quota_it_bears_on(
    delta: ObjectChanged | FactsChanged, woken: tuple[str, ...]
) -> None:
    assert quota.wakes(Store(Policy()), ruled({"*": 1}), delta) == woken


def test_without_rules_nothing_is_woken() -> None:
    assert quota.wakes(Store(Policy()), policy(), ObjectChanged(None, claim("a"))) == ()


# --- what becomes of a claim that is not admitted

NO_MORE = "namespace default has 1 device, and may have 1 at once"


@pytest.mark.parametrize(
    ("wish", "limits", "fares"),
    [
        (claim("b", devices=["a100-2"]), {"*": 1}, f"waits: the quota of its namespace: {NO_MORE}"),
        (claim("b", devices=["a100-2"]), {"*": 2}, "waits: its place in the quota of namespace default"),
        (
            claim("b", devices=["a100-2"], allocated=NOW - 30),
            {"*": 1},
            f"{RESCHEDULE} a100-2: {NO_MORE}",
        ),
        (
            claim("b", devices=["a100-2", "a100-3"]),
            {"*": 1},
            f"{FAILED} a100-2: this claim wants 2 devices, and namespace default may have 1 at once",
        ),
        (
            claim("b", devices=["a100-2", "a100-3"]),
            {"A100": 1},
            f"{FAILED} a100-2: this claim wants 2 devices of A100, and namespace default may have 1 at once",
        ),
        (claim("b", devices=["a100-2"], told=ADMITTED), {"*": 1}, "served"),
        (claim("b", devices=["a100-2"]), {"L40": 0}, "served"),
        (elsewhere(claim("b", devices=["a100-2"])), {"*": 1}, "served"),
    ],
)
def test_nothing_is_ordered_beyond_a_quota(
    wish: ResourceClaim, limits: Mapping[str, int], fares: str
) -> None:
    stage = inventory(models={"A100": 4})
    found = verdicts(claim("a", ready=True), resource("a100-1"), wish, stage=stage, chosen=ruled(limits))
    assert found["b"] == fares


def test_who_waits_for_a_quota_is_looked_at_again_when_it_is_to_be_sent_round() -> None:
    found = plan(claim("a", allocated=NOW - 10), has("b", "a100-2"), chosen=ruled({"*": 1}))
    (waiting,) = (one for one in found.waiting if one.object == "claim/default/a")
    assert (waiting.reason, waiting.what) == ("Quota", f"the quota of its namespace: {NO_MORE}")
    assert found.again_at == NOW + 20


def test_nobody_waits_for_a_quota_longer_than_the_scheduler_waits() -> None:
    chosen = replace(
        ruled({"*": 0}), quota_wait_seconds=Seconds(900.0), binding_timeout_seconds=Seconds(60.0)
    )
    stage = inventory(models={"A100": 4})
    early = verdicts(
        claim("a", allocated=NOW - 44), stage=stage, chosen=replace(chosen, namespaces=(rule(1),))
    )
    assert early["a"].startswith("waits: ")
    late = claim("a", allocated=NOW - 45)
    found = verdicts(late, has("b", "a100-2"), stage=stage, chosen=replace(chosen, namespaces=(rule(1),)))
    assert found["a"] == f"{RESCHEDULE} a100-1: {NO_MORE}"


def rule(most: int) -> NamespaceRule:
    return NamespaceRule(HERE, {"*": most})


# --- who comes first

ONE_SLOT = inventory(models={"A100": 4}, machines=[Machine(NODE, slots=1)])


@pytest.mark.parametrize(
    ("priority", "there", "fares"),
    [
        (0, (), {"old": "served", "new": "sent round"}),
        (1, (), {"new": "served", "old": "sent round"}),
        (-1, (), {"old": "served", "new": "sent round"}),
        (1, (request({"a100-1": "old"}),), {"old": "served", "new": "sent round"}),
    ],
)
def test_where_room_is_short_priority_decides_and_then_age_among_what_is_not_ordered(
    priority: int, there: tuple[Object, ...], fares: dict[str, str]
) -> None:
    old = claim("old", allocated=NOW - 20)
    new = elsewhere(claim("new", devices=["a100-2"], allocated=NOW - 10))
    chosen = ruled({}, name="other", priority=priority)
    found = verdicts(old, new, *there, stage=ONE_SLOT, chosen=chosen)
    assert {name: "served" if said == "served" else "sent round" for name, said in found.items()} == fares
    assert [*found] == [*fares]


@pytest.mark.parametrize(("priority", "ahead"), [(0, 1), (1, 0), (-1, 1)])
def test_an_order_of_higher_priority_waits_for_fewer_others(priority: int, ahead: int) -> None:
    old = claim("old", allocated=NOW - 20)
    new = elsewhere(claim("new", devices=["a100-2"], allocated=NOW - 10))
    chosen = ruled({}, name="other", priority=priority)
    view = world(old, new, inventories=[inventory(models={"A100": 4})], policy=chosen)
    assert view.ahead(view.fabrics()[0], new) == ahead


def test_who_is_not_admitted_is_in_nobodys_way() -> None:
    waiting, new = claim("old", allocated=NOW - 20), elsewhere(claim("new", devices=["a100-2"]))
    for limits, ahead in (({}, 1), ({"*": 0}, 0)):
        view = world(waiting, new, inventories=[inventory(models={"A100": 4})], policy=ruled(limits))
        assert view.ahead(view.fabrics()[0], new) == ahead

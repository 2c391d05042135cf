"""What a cluster lacks is said with what it means and what to do, and the policy follows it."""

import pytest
from msgspec.structs import replace

from jackfield.core import gates
from jackfield.model.claim import ResourceClaim
from jackfield.model.device import Device
from jackfield.model.gates import Gate, Gates
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Time
from jackfield.model.plan import Plan, Waiting
from jackfield.model.policy import FAILED, READY, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.view import InventoryChanged, ObjectChanged, View
from jackfield.testing import builders as b

ALL = Gates("v1.36.4")
OLD = Gates("v1.33.0", *(False,) * 5)
BOTH = (Gate.BINDING_CONDITIONS, Gate.DEVICE_STATUS)


FOUND: dict[str, tuple[Gates, list[tuple[tuple[Gate, ...], bool]]]] = {
    "all": (ALL, []),
    "too old": (OLD, [((), True)]),
    "no binding conditions": (replace(ALL, binding_conditions=False), [(BOTH, True)]),
    "no selection by entry": (
        replace(ALL, per_device_node_selection=False),
        [((Gate.PARTITIONABLE_DEVICES,), True)],
    ),
    "no rules": (replace(ALL, taint_rules=False), [((Gate.TAINT_RULES,), False)]),
    "no taints": (
        replace(ALL, taint_rules=False, device_taints=False),
        [((Gate.DEVICE_TAINTS, Gate.TAINT_RULES), False)],
    ),
    "taints of entries are not used": (replace(ALL, device_taints=False), []),
    "1.35": (
        Gates(
            "v1.35.2",
            claims=True,
            binding_conditions=False,
            per_device_node_selection=False,
            taint_rules=False,
        ),
        [(BOTH, True), ((Gate.PARTITIONABLE_DEVICES,), True), ((Gate.TAINT_RULES,), False)],
    ),
}


@pytest.mark.parametrize(("found", "expected"), FOUND.values(), ids=FOUND)
def test_what_is_off_is_found_the_gravest_first(
    found: Gates, expected: list[tuple[tuple[Gate, ...], bool]]
) -> None:
    assert [(one.gates, one.grave) for one in gates.findings(found)] == expected


SAID: dict[str, tuple[Gates, tuple[str, ...]]] = {
    "too old": (OLD, ("v1.33.0", "resource.k8s.io/v1", "upgrade to Kubernetes 1.34 or newer")),
    "no binding conditions": (
        replace(ALL, binding_conditions=False),
        (
            "are not both on",
            (
                "start kube-apiserver and kube-scheduler with --feature-gates="
                "DRADeviceBindingConditions=true,DRAResourceClaimDeviceStatus=true"
            ),
        ),
    ),
    "no selection by entry": (
        replace(ALL, per_device_node_selection=False),
        (
            "DRAPartitionableDevices is off",
            "none can be offered",
            "--feature-gates=DRAPartitionableDevices=true",
        ),
    ),
    "no rules": (
        replace(ALL, taint_rules=False),
        (
            "kube-apiserver, kube-scheduler and kube-controller-manager with --feature-gates=DRADeviceTaintRules=true",
            "kube-apiserver with --runtime-config=resource.k8s.io/v1beta2=true",
        ),
    ),
}


@pytest.mark.parametrize(("found", "words"), SAID.values(), ids=SAID)
def test_a_finding_says_what_it_means_and_what_to_do(found: Gates, words: tuple[str, ...]) -> None:
    (one,) = gates.findings(found)
    assert [word for word in words if word not in str(one)] == []


def test_a_release_that_is_not_told_is_not_made_up() -> None:
    (one,) = gates.findings(replace(OLD, kubernetes=""))
    assert one.meaning.startswith("this Kubernetes does not serve")


@pytest.mark.parametrize(
    ("policy", "found", "expected"),
    [
        (Policy(), ALL, True),
        (Policy(taint_rules=False), ALL, False),
        (Policy(), replace(ALL, taint_rules=False), False),
    ],
)
def test_a_policy_asks_for_nothing_that_the_cluster_cannot_do(
    policy: Policy, found: Gates, *, expected: bool
) -> None:
    fitted = gates.fitted(policy, found)
    assert fitted.taint_rules == expected
    assert replace(fitted, taint_rules=policy.taint_rules) == policy


# --- the scheduler

DEVICE = b.device("a100-1")


def offered(*conditions: str) -> ResourceSlice:
    failures = (FAILED,) if conditions else ()
    entry = Device(DEVICE.device, binding_conditions=conditions, binding_failure_conditions=failures)
    spec = ResourceSliceSpec(DEVICE.driver, ResourcePool(DEVICE.pool), devices=(Device("another"), entry))
    return ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)


def claimed(*conditions: str, stamped: bool) -> ResourceClaim:
    claim = b.claim("c")
    allocation = claim.status.allocation
    assert allocation is not None
    results = tuple(replace(one, binding_conditions=conditions) for one in allocation.devices.results)
    stamp = Time("2026-01-01T00:00:00Z" if stamped else "")
    allocation = replace(
        allocation, devices=replace(allocation.devices, results=results), allocation_timestamp=stamp
    )
    return replace(claim, status=replace(claim.status, allocation=allocation))


TOLD: dict[str, tuple[tuple[Object, ...], ResourceClaim, Gates, str]] = {
    "all as it should be": ((offered(READY),), claimed(READY, stamped=True), ALL, ""),
    "not allocated": ((offered(READY),), ResourceClaim(), ALL, ""),
    "conditions not copied": (
        (offered(READY),),
        claimed(stamped=True),
        ALL,
        "claim default/c was given fabric.jackfield.dev/rack-a/a100-1 without its binding conditions",
    ),
    "an entry without conditions": ((offered(),), claimed(stamped=True), ALL, ""),
    "an entry that nobody lists any more": ((), claimed(stamped=True), ALL, ""),
    "no time": ((), claimed(stamped=False), ALL, "the allocation of claim default/c bears no time"),
    "neither": ((offered(READY),), claimed(stamped=False), ALL, "without its binding conditions"),
    "dropped by the API server": (
        (offered(READY),),
        claimed(stamped=False),
        replace(ALL, binding_conditions=False),
        "",
    ),
}


@pytest.mark.parametrize(("objects", "claim", "found", "words"), TOLD.values(), ids=TOLD)
def test_a_schedulers_gate_shows_in_what_it_writes(
    objects: tuple[Object, ...], claim: ResourceClaim, found: Gates, words: str
) -> None:
    finding = gates.scheduler(b.world(*objects), claim, found)
    if not words:
        assert finding is None
        return
    assert finding is not None
    assert words in finding.meaning
    assert finding.grave
    assert "kube-scheduler" in finding.remedy
    assert "DRADeviceBindingConditions=true" in finding.remedy


HASTY = claimed(stamped=True)
FREE = replace(HASTY, status=replace(HASTY.status, allocation=None))


def test_what_a_scheduler_lacks_is_waited_for_on_the_claim_that_shows_it() -> None:
    view = b.world(offered(READY), HASTY)
    plan = gates.decide(ALL, view, HASTY.key, Policy(), b.NOW)
    finding = gates.scheduler(view, HASTY, ALL)
    assert finding is not None
    assert plan == Plan(waiting=(Waiting("claim/default/c", "SchedulerGate", str(finding)),))


@pytest.mark.parametrize(
    "view",
    [b.world(offered(READY), claimed(READY, stamped=True)), b.world(offered(READY))],
    ids=["nothing amiss", "the claim is gone"],
)
def test_where_nothing_shows_nothing_is_waited_for(view: View) -> None:
    assert gates.decide(ALL, view, HASTY.key, Policy(), b.NOW) == Plan()


WAKES: dict[str, tuple[Object | None, Object | None, bool]] = {
    "allocated just now": (FREE, HASTY, True),
    "allocated before we looked": (None, HASTY, False),
    "allocated before": (HASTY, HASTY, False),
    "not yet": (FREE, FREE, False),
    "no more": (HASTY, FREE, False),
    "gone": (HASTY, None, False),
    "another kind": (b.node(), b.node(), False),
}


@pytest.mark.parametrize(("old", "new", "woken"), WAKES.values(), ids=WAKES)
def test_only_an_allocation_that_is_seen_to_happen_tells_about_the_scheduler_of_today(
    old: Object | None, new: Object | None, *, woken: bool
) -> None:
    keys = gates.wakes(b.world(), Policy(), ObjectChanged(old, new))
    assert keys == ((HASTY.key,) if woken else ())


def test_what_is_no_object_tells_nothing_about_a_scheduler() -> None:
    assert gates.wakes(b.world(), Policy(), InventoryChanged(b.FABRIC, (), ())) == ()

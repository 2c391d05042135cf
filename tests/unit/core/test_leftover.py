"""Claims left over are cleared, and no other (rule 17)."""

import pytest
from msgspec.structs import replace

from jackfield.core import leftover
from jackfield.model.composition import Record
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, DeviceID, FabricName, Key, NodeName, Seconds, Uid, Version
from jackfield.model.plan import ClearClaim, Phase
from jackfield.model.policy import FAILED, RESCHEDULE
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

KEY = Key("default", "c")
LEFT = b.claim("c", uid="u")
RECORD = Record(KEY, Uid("u"), Version("1"))
N1 = b.node("n1")
CLEAR = ("ClearClaim claim/default/c",)

ROWS: dict[str, tuple[tuple[Object, ...], tuple[str, ...], str]] = {
    "left over": ((LEFT,), CLEAR, ""),
    "gone": ((), (), ""),
    "not allocated": ((b.claim("c", devices=()),), (), ""),
    "reserved": ((b.claim("c", reserved=("p",)),), (), ""),
    "a pod waits for it": ((LEFT, b.pod("p", "c")), (), "Pod"),
    "a pod that has finished does not": ((LEFT, b.pod("p", "c", phase="Succeeded")), CLEAR, ""),
    "another's pod does not": ((LEFT, b.pod("p", "d")), CLEAR, ""),
    "another driver's device": ((b.claim("c", devices=("gpu.example.com/n1/gpu-0",)),), (), ""),
    "a device that came without our condition": ((b.claim("c", waits=()),), (), ""),
    "its device is held for it": ((LEFT, N1, b.resource(holder="u")), (), "Held"),
    "held for it on another node": ((LEFT, b.node("n2"), b.resource(holder="u", on="n2")), (), "Held"),
    "held on a node that is not ready": (
        (LEFT, b.node("n1", ready="False"), b.resource(holder="u")),
        (),
        "Held",
    ),
    "held on a node that is gone (rule 16)": ((LEFT, b.resource(holder="u")), CLEAR, ""),
    "held on a node that is gone, but a pod is bound to it": (
        (LEFT, b.pod("q", on="n1"), b.resource(holder="u")),
        (),
        "Held",
    ),
    "one is held on a node that is gone, one on a node that is there": (
        (
            b.claim("c", uid="u", devices=("a100-1", "a100-2")),
            N1,
            b.resource("a100-1", holder="u", on="n2"),
            b.resource("a100-2", holder="u"),
        ),
        (),
        "Held",
    ),
    "its device is held for another": ((LEFT, b.resource(holder="v")), CLEAR, ""),
    "recorded and not held": ((LEFT, b.resource(record=RECORD)), CLEAR, ""),
    "held, one of two": (
        (b.claim("c", uid="u", devices=("a100-1", "a100-2")), N1, b.resource("a100-2", holder="u")),
        (),
        "Held",
    ),
}


@pytest.mark.parametrize(("there", "do", "wait"), ROWS.values(), ids=ROWS)
def test_a_claim_left_over_is_cleared(there: tuple[Object, ...], do: tuple[str, ...], wait: str) -> None:
    plan = leftover.decide(b.world(*there), KEY, b.policy(), b.NOW)
    assert steps(plan) == do
    assert reasons(plan) == ((wait,) if wait else ())


@pytest.mark.parametrize("ready", [False, True])
def test_a_claim_that_is_ready_is_cleared_only_after_a_live_look_at_the_pods(*, ready: bool) -> None:
    there = b.world(b.claim("c", uid="u", version="9", ready=ready))
    assert leftover.decide(there, KEY, b.policy(), b.NOW).actions == (
        ClearClaim(
            phase=Phase.ALLOCATED,
            claim=KEY,
            uid=Uid("u"),
            version=Version("9"),
            ask_pods=ready,
            because="it is allocated, reserved for nobody, and no pod waits for it",
        ),
    )


VENDOR = "gpu.example.com"
VENDORS = b.policy(b.model("A100", driver=VENDOR))
UNSHOWN = b.claim("c", uid="u", version="9", devices=(DeviceID(VENDOR, "n1", "gpu-0"),), waits=())
SHOWN = b.vendor_slice("uuid-0")

UNUSED: dict[str, tuple[tuple[Object, ...], tuple[str, ...]]] = {
    "nobody shows its device": ((UNSHOWN,), CLEAR),
    "its driver shows another": ((UNSHOWN, b.vendor_slice("uuid-1", name="gpu-1")), CLEAR),
    "its driver shows it": ((UNSHOWN, SHOWN), ()),
    "reserved": ((b.claim("c", devices=(UNSHOWN.results[0].id,), waits=(), reserved=("p",)),), ()),
    "a pod waits for it, or runs with it": ((UNSHOWN, b.pod("p", "c")), ()),
    "a pod that has finished does not": ((UNSHOWN, b.pod("p", "c", phase="Succeeded")), CLEAR),
    "of a driver that has nothing to do with us": (
        (b.claim("c", devices=(DeviceID("nic.example.com", "n1", "nic-0"),), waits=()),),
        (),
    ),
}


@pytest.mark.parametrize(("there", "do"), UNUSED.values(), ids=UNUSED)
def test_a_claim_that_nobody_uses_is_cleared_of_a_vendors_device_that_nobody_shows(
    there: tuple[Object, ...], do: tuple[str, ...]
) -> None:
    plan = leftover.decide(b.world(*there, inventories=(b.inventory(),), policy=VENDORS), KEY, VENDORS, b.NOW)
    assert steps(plan) == do


def test_whoever_may_run_with_a_vendors_device_is_looked_for_before_its_claim_is_cleared() -> None:
    there = b.world(UNSHOWN, inventories=(b.inventory(),), policy=VENDORS)
    assert leftover.decide(there, KEY, VENDORS, b.NOW).actions == (
        ClearClaim(
            phase=Phase.ALLOCATED,
            claim=KEY,
            uid=Uid("u"),
            version=Version("9"),
            ask_pods=True,
            because="it has a device that nobody shows any more, and no pod uses it",
        ),
    )


def test_a_claim_on_a_node_of_no_fabric_is_nobodys_business_of_ours() -> None:
    assert not leftover.decide(b.world(UNSHOWN, policy=VENDORS), KEY, VENDORS, b.NOW).actions


RESERVED = b.claim("d", devices=(DeviceID(VENDOR, "n1", "gpu-1"),), waits=(), reserved=("p",))


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (ObjectChanged(None, UNSHOWN), True),
        (ObjectChanged(None, replace(UNSHOWN, status=RESERVED.status)), False),
        (ObjectChanged(SHOWN, None), True),
        (ObjectChanged(SHOWN, b.vendor_slice("uuid-1", name="gpu-1")), True),
        (ObjectChanged(None, SHOWN), False),
        (ObjectChanged(b.vendor_slice("uuid-0", on="n2"), None), False),
        (ObjectChanged(b.vendor_slice("uuid-0", driver="nic.example.com"), None), False),
        (InventoryChanged(FabricName(b.FABRIC), (b.NODE,), ()), True),
        (InventoryChanged(FabricName(b.FABRIC), (NodeName("n2"),), ()), False),
    ],
)
def test_a_claim_is_looked_at_when_its_device_is_not_shown_any_more(delta: Delta, *, woken: bool) -> None:
    there = b.world(UNSHOWN, RESERVED, policy=VENDORS)
    assert leftover.wakes(there, VENDORS, delta) == ((KEY,) if woken else ())


TANGLED = b.claim("c", uid="u", reserved=("p", "q"), told=RESCHEDULE)
P, Q = b.pod("p", "c", uid="pods-p"), b.pod("q", "c", uid="pods-q")
LATER = Seconds(b.NOW + leftover.ENTANGLED_SECONDS)

HALF = b.claim("c", uid="u", devices=("a100-1", "a100-2"), reserved=("p", "q"), told=RESCHEDULE)
HALF = replace(
    HALF,
    status=replace(
        HALF.status, devices=(b.claim("c", ready=True).status.devices[0], *HALF.status.devices[1:])
    ),
)

TANGLES: dict[str, tuple[tuple[Object, ...], tuple[str, ...]]] = {
    "turned down, and two pods are on it": ((TANGLED, P, Q), CLEAR),
    "failed for good": ((b.claim("c", reserved=("p", "q"), told=FAILED), P, Q), CLEAR),
    "one pod: the scheduler's": ((b.claim("c", reserved=("p",), told=RESCHEDULE), P), ()),
    "not answered": ((b.claim("c", reserved=("p", "q")), P, Q), ()),
    "ready": ((b.claim("c", reserved=("p", "q"), ready=True), P, Q), ()),
    "one of them is bound": ((TANGLED, P, b.pod("q", "c", uid="pods-q", on="n1")), ()),
    "one of them is gone: Kubernetes takes it off": ((TANGLED, P), ()),
    "one of its two devices has come": ((HALF, P, Q), CLEAR),
    "another driver's": (
        (b.claim("c", devices=("gpu.example.com/n1/gpu-0",), reserved=("p", "q"), told=RESCHEDULE), P, Q),
        (),
    ),
}


@pytest.mark.parametrize(("there", "do"), TANGLES.values(), ids=TANGLES)
def test_pods_that_keep_each_other_on_a_claim_are_taken_off_it(
    there: tuple[Object, ...], do: tuple[str, ...]
) -> None:
    assert steps(leftover.decide(b.world(*there), KEY, b.policy(), LATER)) == do


def test_a_scheduler_that_waits_for_the_claim_has_its_time() -> None:
    plan = leftover.decide(b.world(TANGLED, P, Q), KEY, b.policy(), b.NOW)
    assert not plan.actions
    assert plan.again_at == LATER


def test_a_claim_whose_pods_are_not_all_heard_of_is_looked_at_again() -> None:
    plan = leftover.decide(b.world(TANGLED, P), KEY, b.policy(), LATER)
    assert plan.again_at == LATER + leftover.ENTANGLED_SECONDS


def test_a_scheduler_that_hears_nothing_may_wait_with_a_nominated_pod_until_it_gives_up() -> None:
    nominated = replace(Q, status=replace(Q.status, nominated_node_name=b.NODE))
    ends = TANGLED.given_at + b.policy().binding_timeout_seconds + leftover.ENTANGLED_SECONDS
    for now, do in ((LATER, ()), (ends - 1, ()), (ends, CLEAR)):
        plan = leftover.decide(b.world(TANGLED, P, nominated), KEY, b.policy(), Seconds(now))
        assert steps(plan) == do
        assert plan.again_at == (NEVER if do else now + leftover.ENTANGLED_SECONDS)


def test_whoever_is_waited_for_is_named() -> None:
    plan = leftover.decide(b.world(LEFT, b.pod("p", "c")), KEY, b.policy(), b.NOW)
    assert words(plan) == "pod default/p to be scheduled"
    plan = leftover.decide(b.world(LEFT, N1, b.resource(holder="u")), KEY, b.policy(), b.NOW)
    assert words(plan) == "its device to be unprepared"


POD = b.pod("p", "c", "d")


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (ObjectChanged(None, LEFT), ("c",)),
        (ObjectChanged(LEFT, None), ()),
        (ObjectChanged(None, b.claim("c", reserved=("p",))), ()),
        (ObjectChanged(None, TANGLED), ("c",)),
        (ObjectChanged(None, b.claim("c", reserved=("p", "q"))), ()),
        (ObjectChanged(None, b.claim("c", waits=())), ()),
        (ObjectChanged(POD, None), ("c", "d")),
        (ObjectChanged(POD, b.pod("p", "c", "d", phase="Failed")), ("c", "d")),
        (ObjectChanged(POD, b.pod("p", "c", "d", phase="Running")), ()),
        # Another of its name, whose end was not heard of: claims made from templates have other names.
        (ObjectChanged(POD, b.pod("p", "d", "e", uid="another")), ("c",)),
        (ObjectChanged(b.pod("p", ""), None), ()),
        (ObjectChanged(None, POD), ()),
        (ObjectChanged(b.resource(record=RECORD, holder="u"), b.resource(record=RECORD)), ("c",)),
        (ObjectChanged(b.resource(record=RECORD, holder="u"), None), ("c",)),
        (ObjectChanged(b.resource(record=RECORD), None), ()),
        (ObjectChanged(b.resource(holder="u"), None), ()),
        (FactsChanged(b.NODE), ()),
    ],
)
def test_a_claim_is_looked_at_when_somebody_leaves_it(delta: Delta, woken: tuple[str, ...]) -> None:
    assert leftover.wakes(b.world(), b.policy(), delta) == tuple(Key("default", name) for name in woken)


HELD = b.resource(record=RECORD, holder="u")
LAST = b.pod("q", on="n1")


@pytest.mark.parametrize(
    ("there", "delta", "woken"),
    [
        ((HELD,), ObjectChanged(N1, None), ("c",)),
        ((HELD, LAST), ObjectChanged(N1, None), ()),
        ((HELD,), ObjectChanged(LAST, None), ("c",)),
        ((HELD, N1), ObjectChanged(LAST, None), ()),
        ((HELD,), ObjectChanged(b.pod("p", "c", on="n1"), None), ("c",)),
        ((HELD,), ObjectChanged(LAST, replace(LAST, spec=replace(LAST.spec, node_name="n2"))), ("c",)),
        ((HELD,), ObjectChanged(LAST, LAST), ()),
        ((HELD,), ObjectChanged(b.pod("p", "d", on="n2"), None), ("d",)),
        ((b.resource(record=RECORD),), ObjectChanged(N1, None), ()),
        ((b.resource(holder="u"),), ObjectChanged(N1, None), ()),
        ((HELD, N1), ObjectChanged(N1, N1), ()),
    ],
)
def test_a_claim_is_looked_at_when_the_node_that_holds_its_device_is_gone(
    there: tuple[Object, ...], delta: Delta, woken: tuple[str, ...]
) -> None:
    assert leftover.wakes(b.world(*there), b.policy(), delta) == tuple(Key("default", name) for name in woken)

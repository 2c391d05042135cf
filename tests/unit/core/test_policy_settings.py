"""What an operator may choose makes a difference: the same world, decided by the default and by another choice."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from jackfield.core import attach, room
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Seconds
from jackfield.model.node import OPT_OUT
from jackfield.model.policy import RESCHEDULE, NamespaceRule, Policy
from jackfield.testing.builders import (
    FABRIC,
    NODE,
    NOW,
    claim,
    heartbeat,
    inventory,
    model,
    node,
    policy,
    resource,
    vendor_slice,
    world,
)
from unit.core.plans import steps
from unit.core.scaling import plan
from unit.core.verdicts import verdicts

Question = Callable[[Policy], object]
VENDOR = "gpu.example.com"
HANDED = f"{VENDOR}/a100-fabricrack-a/a100-1"
TWO = claim("a", devices=["a100-1", "a100-2"])


def idle(*, ago: float) -> ComposableResource:
    return resource("a100-1", used=NOW - ago)


def looks_again(*objects: Object) -> Question:
    """In how many seconds the scaler looks again."""
    return lambda chosen: plan(*objects, chosen=chosen).again_at - NOW


def does(*objects: Object) -> Question:
    """What the scaler does."""
    return lambda chosen: tuple(one.partition(" ")[0] for one in steps(plan(*objects, chosen=chosen)))


def fares(*objects: Object, looked: float = NOW) -> Question:
    """How the claim `a` fares."""
    return lambda chosen: verdicts(*objects, chosen=chosen, looked=looked)["a"].partition(" ")[0]


def refusal(on: Object, beat: float = NOW) -> Question:
    """Whether a node is refused."""

    def asked(chosen: Policy) -> bool:
        view = world(on, heartbeat(at=beat), inventories=[inventory()], policy=chosen)
        return room.refusal(view, NODE, chosen.models[0], chosen, Seconds(NOW)) != ""

    return asked


def congested(chosen: Policy) -> bool:
    """Whether two claims are more than a manager with one job can serve in time."""
    shown = inventory(models={"A100": 3}, traits=Traits(jobs=1))
    view = world(claim("a"), claim("b", devices=["a100-2"]), inventories=[shown], policy=chosen)
    return view.congested(FABRIC)


def ordered(chosen: Policy) -> tuple[str, ...]:
    """What becomes of an order that is 100 seconds old."""
    there = resource("a100-1", state=ResourceState.ATTACHING)
    view = world(node(), heartbeat(), there, inventories=[inventory()], policy=chosen)
    found = attach.decide(view, there.metadata.name, chosen, Seconds(NOW))
    return (*(one.partition(" ")[0] for one in steps(found)), str(found.again_at - NOW))


def handed_over(chosen: Policy) -> Seconds:
    """When a hand-over to a vendor's driver is given up."""
    sent = claim("a", devices=[HANDED], told=RESCHEDULE)
    vendors = replace(chosen, models=(model("A100", driver=VENDOR),))
    there = resource(HANDED, record=sent, used=NOW - 10, uuid="GPU-7", physical="1")
    objects = (replace(sent, status=replace(sent.status, allocation=None)), there, vendor_slice("GPU-7"))
    return Seconds(plan(*objects, chosen=vendors).again_at - NOW)


APART = replace(policy("A100", "H100").models[0], cannot_coexist_with=(1,))
BESIDE = (resource("h100-3", model="H100", record=claim("b", devices=["h100-3"], ready=True)), claim("a"))
FAILURES = node(failures={"a100-7": NOW - 60, "a100-8": NOW - 60})

SETTINGS: dict[str, tuple[Policy, Question, object, object]] = {
    "holdSeconds": (Policy(hold_seconds=Seconds(30.0)), looks_again(idle(ago=20)), 580.0, 10.0),
    "holdSeconds: none": (Policy(hold_seconds=Seconds(0.0)), does(idle(ago=1)), ("PutRequest",), ()),
    "blameSeconds": (Policy(blame_seconds=Seconds(30.0)), refusal(FAILURES), True, False),
    "bindingTimeoutSeconds": (Policy(binding_timeout_seconds=Seconds(80.0)), congested, False, True),
    "bindingMarginSeconds": (Policy(binding_margin_seconds=Seconds(590.0)), congested, False, True),
    "attachSeconds": (Policy(attach_seconds=Seconds(500.0)), congested, False, True),
    "attachDeadlineSeconds": (
        Policy(attach_deadline_seconds=Seconds(99.0)),
        ordered,
        ("Attach", "1.0"),
        ("Blame", "MarkState", "inf"),
    ),
    "pollSeconds": (Policy(poll_seconds=Seconds(7.0)), ordered, ("Attach", "1.0"), ("Attach", "7.0")),
    "heartbeatSeconds": (Policy(heartbeat_seconds=Seconds(20.0)), refusal(node(), NOW - 30), False, True),
    "missingSeconds": (
        Policy(missing_seconds=Seconds(30.0)),
        fares(resource("a100-9", physical="9"), claim("a", devices=["a100-9"]), looked=NOW - 60),
        "served",
        RESCHEDULE,
    ),
    "perNodeMax": (Policy(per_node_max=1), fares(TWO), "served", RESCHEDULE),
    "perNodeMin": (Policy(per_node_min=1), does(), (), ("PutRequest",)),
    "claimAttemptsMax": (
        Policy(claim_attempts_max=1),
        fares(claim("a", attempts=f"1/a100-1@n1:{NOW - 50:.0f}", allocated=NOW - 10)),
        "served",
        "FabricDeviceFailed",
    ),
    "handoverSeconds": (Policy(handover_seconds=Seconds(300.0)), handed_over, 50.0, 290.0),
    "paused": (Policy(paused=True), does(claim("a")), ("PutRequest",), ()),
    "fabricsPaused": (Policy(fabrics_paused=(FABRIC,)), does(claim("a")), ("PutRequest",), ()),
    "fabricsPaused: another": (
        Policy(fabrics_paused=(FabricName("hall"),)),
        does(claim("a")),
        ("PutRequest",),
        ("PutRequest",),
    ),
    "namespaces: a quota": (
        Policy(namespaces=(NamespaceRule("default", {"*": 1}),)),
        fares(TWO),
        "served",
        "FabricDeviceFailed",
    ),
    "quotaWaitSeconds": (
        Policy(namespaces=(NamespaceRule("default", {"*": 2}),), quota_wait_seconds=Seconds(5.0)),
        fares(
            claim("a"),
            claim("b", devices=["a100-2", "a100-3"], ready=True),
            resource("a100-2", state=ResourceState.ONLINE),
        ),
        "served",
        RESCHEDULE,
    ),
}


@pytest.mark.parametrize(("chosen", "ask", "before", "after"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_makes_a_difference(chosen: Policy, ask: Question, before: object, after: object) -> None:
    assert (ask(policy()), ask(policy(base=chosen))) == (before, after)


def test_a_node_that_has_opted_out_is_refused_whatever_the_policy_says() -> None:
    for chosen in (policy(), policy(base=Policy(per_node_min=1))):
        assert refusal(node(labels={OPT_OUT: "true"}))(chosen)
        assert steps(plan(on=node(labels={OPT_OUT: "true"}), chosen=chosen)) == ()


def test_models_that_cannot_coexist_do_not_stand_beside_each_other() -> None:
    both = policy("A100", "H100")
    for models, fared in ((both.models, "served"), ((APART, both.models[1]), RESCHEDULE)):
        assert fares(*BESIDE)(replace(both, models=models)) == fared


def test_spares_stay_however_long_they_are_idle() -> None:
    for spares, does_what in ((0, ()), (1, ("PutRequest",))):
        assert does(idle(ago=9000))(policy(model("A100", spares=spares))) == does_what

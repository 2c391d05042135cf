"""What should have been tidied up and was not is seen when nothing is under way, and nothing else is taken for it."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import check
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import DEVICE, ResourceState
from jackfield.model.device import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import DeviceID, FabricName, Seconds
from jackfield.model.policy import DRIVER, FAILED, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.taint import KEY, DeviceTaintRule, DeviceTaintRuleSpec
from jackfield.testing import builders as b

NEW, ATTACHING, ONLINE, DETACHING, DELETING = ResourceState
HOLD = Seconds(600.0)
POLICY = b.policy(base=Policy(hold_seconds=HOLD))
PAUSED = replace(POLICY, paused=True)
SPARE = b.policy(b.model("A100", spares=1), base=POLICY)
NODE = b.node()
CLAIM = b.claim("c")
READY_CLAIM = b.claim("c", ready=True, reserved=("p",))
POD = b.pod("p", "c", on="n1")
WISH = b.request({"a100-1": ""})
LONG_AGO = b.NOW - 1000
ON_NODE = b.inventory(attached={"1": "n1"})
GPU = "gpu.example.com"
SHARED = DeviceID(GPU, "n1", "gpu-0")


class Row(NamedTuple):
    """An object at rest, what is beside it, and what is wrong with it."""

    about: Object
    beside: tuple[Object, ...] = ()
    fault: str = ""
    policy: Policy = POLICY


def faults(row: Row) -> tuple[str, ...]:
    view = b.world(row.about, *row.beside, inventories=(ON_NODE,), policy=row.policy)
    return tuple(str(one) for one in check.at_rest(view, row.about, row.policy, b.NOW))


def idle(since: float = LONG_AGO, name: str = "a100-1", physical: str = "1") -> Object:
    return b.resource(name, used=since, physical=physical)


IDLE = "is idle on n1 for 400 s longer than holdSeconds"
GONE = "stays on n1, which is no node any more (rule 16)"
RESOURCES = {
    "in use": Row(b.resource(record=CLAIM), (READY_CLAIM, POD)),
    "in use under its vendor's name": Row(
        b.resource(DeviceID(GPU, "a100-fabricrack-a", "a100-1"), record=CLAIM, uuid="u"),
        (b.node(), b.claim("c", devices=(SHARED,), waits=()), b.vendor_slice("u")),
        policy=b.policy(b.model("A100", driver=GPU), base=POLICY),
    ),
    "on its way": Row(b.resource(state=ATTACHING), fault="is Attaching on n1 while nothing is under way"),
    "just made": Row(b.resource(state=NEW), fault="is new on n1 while nothing is under way"),
    "somebody else's, on its way": Row(b.resource(state=ATTACHING, annotations={DEVICE: ""})),
    "of no fabric, on its way": Row(b.resource(SHARED, state=ATTACHING)),
    "recorded for a claim that is gone": Row(
        b.resource(record=CLAIM), fault="is recorded for claim default/c, which does not have it"
    ),
    "recorded for an earlier claim of that name": Row(
        b.resource(record=b.claim("c", uid="earlier")),
        (READY_CLAIM,),
        "is recorded for claim default/c, which does not have it",
    ),
    "recorded for a claim that has another": Row(
        b.resource(record=CLAIM),
        (b.claim("c", devices=("a100-2",)),),
        "is recorded for claim default/c, which does not have it",
    ),
    "held, and nobody knows by whom": Row(
        b.resource(holder="u"), fault="is held by u, and nothing says which claim that is"
    ),
    "of a request that is gone": Row(
        idle(), fault="belongs to request jackfield-a100-n1, which does not exist"
    ),
    "of a request that is gone, going": Row(b.resource(used=b.NOW, deleted=b.NOW), (NODE,)),
    "of a node that is gone, going": Row(b.resource(used=b.NOW, deleted=b.NOW), fault=GONE),
    "of a node that is gone, wanted": Row(idle(b.NOW), (WISH,), GONE),
    "of a node that is gone with a pod on it": Row(idle(b.NOW), (WISH, POD)),
    "idle for a while": Row(idle(b.NOW - 10), (NODE, WISH)),
    "idle for too long": Row(idle(), (NODE, WISH), IDLE),
    "idle for too long, while all is paused": Row(idle(), (NODE, WISH), policy=PAUSED),
    "idle for too long, while its fabric is paused": Row(
        idle(), (NODE, WISH), policy=replace(POLICY, fabrics_paused=(FabricName("rack-a"),))
    ),
    "idle for too long, on a node of no fabric": Row(
        b.resource(on="n9", used=LONG_AGO), (b.node("n9"), b.request({"a100-1": ""}, on="n9"))
    ),
    "idle for too long, of a model that left the policy": Row(
        idle(), (NODE, WISH), policy=b.policy("H100", base=POLICY)
    ),
    "idle for too long, as a spare": Row(idle(), (NODE, WISH), policy=SPARE),
    "idle for too long, beside a fresher spare": Row(
        idle(), (NODE, WISH, idle(b.NOW - 5, "a100-2", "2")), IDLE, SPARE
    ),
    "idle for too long, as the node's minimum": Row(
        idle(), (NODE, WISH), policy=replace(POLICY, per_node_min=1)
    ),
    "idle for too long, by hand": Row(b.resource(used=LONG_AGO, request="by-hand"), (NODE, b.request(1))),
}


def left(words: str) -> str:
    return f"has {DRIVER}/rack-a/a100-1, is reserved for nobody, and no pod waits for it (rule 17){words}"


UNANSWERED = f"was given {DRIVER}/rack-a/a100-1, and was not answered while nothing is under way"
CLAIMS = {
    "ready": Row(READY_CLAIM, (POD,)),
    "not allocated": Row(b.claim("c", devices=())),
    "waiting": Row(b.claim("c", reserved=("p",)), (POD,), UNANSWERED),
    "waiting, by nobody": Row(b.claim("c", reserved=("p",))),
    "told that it failed": Row(b.claim("c", told=FAILED, reserved=("p",)), (POD,)),
    "reserved for nobody, and a pod waits": Row(b.claim("c", ready=True), (POD,)),
    "reserved for nobody, and nobody waits": Row(b.claim("c", ready=True), fault=left("")),
    "reserved for nobody, and going": Row(b.claim("c", ready=True, deleted=b.NOW)),
    "of another driver, reserved for nobody": Row(b.claim("c", devices=(SHARED,), waits=())),
    "with admin access": Row(b.claim("c", admin=True)),
    "with what another has, listed nowhere": Row(READY_CLAIM, (POD, b.claim("d", ready=True))),
}

# --- what is shared


def offered(*devices: Device, counters: tuple[CounterSet, ...] = (), name: str = "s1") -> ResourceSlice:
    spec = ResourceSliceSpec(GPU, ResourcePool("n1", 1), devices=devices, shared_counters=counters)
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def using(name: str, memory: str, device: str = "gpu-0") -> ResourceClaim:
    claim = b.claim(name, devices=(DeviceID(GPU, "n1", device),), waits=())
    allocation = claim.status.allocation
    assert allocation is not None
    results = tuple(
        replace(one, consumed_capacity={"memory": memory} if memory else {}) for one in claim.results
    )
    allocation = replace(allocation, devices=replace(allocation.devices, results=results))
    return replace(claim, status=replace(claim.status, allocation=allocation))


WHOLE = Device("gpu-0")
DIVISIBLE = Device("gpu-0", capacity={"memory": DeviceCapacity("80Gi")}, allow_multiple_allocations=True)
SHARES = {
    "alone": Row(using("c", ""), (offered(WHOLE),)),
    "beside who has another": Row(using("c", ""), (offered(WHOLE), using("d", "", "gpu-1"))),
    "with what another has": Row(
        using("c", ""), (offered(WHOLE), using("d", "")), f"has {SHARED}, and so has default/d (rule 9)"
    ),
    "with shares that fit": Row(using("c", "40Gi"), (offered(DIVISIBLE), using("d", "40Gi"))),
    "with shares that do not fit": Row(
        using("c", "40Gi"),
        (offered(DIVISIBLE), using("d", "41Gi")),
        f"shares {SHARED}, of whose memory more is in use than there is",
    ),
    "with shares of what there is none of": Row(
        using("c", "1"),
        (offered(replace(DIVISIBLE, capacity={})), using("d", "1")),
        f"shares {SHARED}, of whose memory more is in use than there is",
    ),
}
SLICES_ = CounterSet("gpu-0", {"slices": Counter("7")})


def part(name: str, slices: str, counter_set: str = "gpu-0") -> Device:
    taken = DeviceCounterConsumption(counter_set, {"slices": Counter(slices)})
    return Device(name, consumes_counters=(taken,))


PARTS = (part("gpu-0", "4"), part("gpu-1", "3"), part("gpu-2", "1"))
OVERDRAWN = "has partitions in use that need more of gpu-0/slices than there is"
COUNTERS = {
    "no counters": Row(offered(*PARTS)),
    "none in use": Row(offered(*PARTS, counters=(SLICES_,))),
    "in use, and enough": Row(
        offered(*PARTS, counters=(SLICES_,)), (using("c", ""), using("d", "", "gpu-1"))
    ),
    "in use, and not enough": Row(
        offered(*PARTS, counters=(SLICES_,)),
        (using("c", ""), using("d", "", "gpu-1"), using("e", "", "gpu-2")),
        OVERDRAWN,
    ),
    "in use, of another counter than there is": Row(
        offered(part("gpu-0", "4", "gpu-9"), counters=(SLICES_,)),
        (using("c", ""),),
        "has partitions in use that need more of gpu-9/slices than there is",
    ),
}


def taint(name: str, key: str = KEY) -> DeviceTaintRule:
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name), spec=DeviceTaintRuleSpec(DeviceTaint(key, "u", "NoSchedule"))
    )


TAINTS = {
    "of a resource": Row(taint("a100-1.rack-a-taint"), (b.resource(),)),
    "of a resource that is gone": Row(
        taint("a100-1.rack-a-taint"), fault="taints a device of a100-1.rack-a, which is gone"
    ),
    "somebody else's": Row(taint("mine", "example.com/broken")),
}
ALL = {
    f"{kind} {name}": row
    for kind, rows in {
        "resource": RESOURCES,
        "claim": {**CLAIMS, **SHARES},
        "slice": COUNTERS,
        "taint": TAINTS,
        "other": {"node": Row(NODE)},
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize("row", ALL.values(), ids=ALL.keys())
def test_what_should_have_been_tidied_up_is_told(row: Row) -> None:
    assert [one.partition(": ")[2] for one in faults(row)] == ([row.fault] if row.fault else [])


@pytest.mark.parametrize(
    ("one", "late"),
    [
        (b.resource(created=b.NOW - 300), False),
        (b.resource(created=b.NOW - 301), True),
        (b.resource(created=b.NOW - 301, deleted=b.NOW - 10), False),
        (b.claim("c", created=b.NOW - 900, allocated=b.NOW - 10), False),
        (b.claim("c", created=b.NOW - 900, allocated=b.NOW - 301), True),
        (b.claim("c", created=b.NOW - 900, devices=()), True),
        (ResourceClaim(), True),
    ],
)
def test_whatever_was_asked_for_has_its_time(one: Object, *, late: bool) -> None:
    assert check.overdue(one, POLICY, b.NOW) is late

"""A resource's next step: a view, the plan."""

import pytest
from msgspec.structs import replace

from jackfield.model.composition import (
    VISIBLE,
    ComposableResource,
    ComposableResourceStatus,
    ResourceState,
)
from jackfield.model.meta import Condition, ObjectMeta
from jackfield.model.names import (
    FabricName,
    Seconds,
)
from jackfield.model.policy import Policy
from jackfield.testing import builders as b
from unit.core.attaching import (
    AGAIN,
    CR,
    DEADLINE,
    GONE,
    HANDED,
    LET_GO,
    NODE,
    OLD,
    SEEN,
    VENDOR,
    Row,
    attaching,
    check,
    detaching,
    fabric_device,
    vendors,
)

ROWS = {
    "gone": Row((NODE,)),
    "somebody else's": Row((NODE, b.resource("gpu.other.com/n1/a100-1", state=ResourceState.DELETING))),
    "somebody else's, who does not say what it is": Row(
        (
            NODE,
            ComposableResource(
                metadata=ObjectMeta(name=CR), status=ComposableResourceStatus(ResourceState.DELETING)
            ),
        )
    ),
    # --- the beginning
    "intent is written before the fabric hears": Row(
        (NODE, b.resource(state=ResourceState.NEW)),
        do=("MarkState Attaching resource/a100-1.rack-a",),
        says="before the fabric hears",
    ),
    "deleted before anything was ordered": Row(
        (NODE, b.resource(state=ResourceState.NEW, deleted=b.NOW)),
        do=("FreeResource resource/a100-1.rack-a",),
        says="nothing was ordered",
    ),
    # --- attaching
    "the manager is asked, again and again": Row(
        (NODE, attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        says="n1 should have it",
        again_at=AGAIN,
    ),
    "paused": Row(
        (NODE, attaching()), wait=("Paused",), again_at=DEADLINE, policy=b.policy(base=Policy(paused=True))
    ),
    "its fabric is paused": Row(
        (NODE, attaching()),
        wait=("Paused",),
        says="attaching to be resumed",
        again_at=DEADLINE,
        policy=b.policy(base=Policy(fabrics_paused=(b.FABRIC,))),
    ),
    "another fabric is paused": Row(
        (NODE, attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        policy=b.policy(base=Policy(fabrics_paused=(FabricName("rack-b"),))),
    ),
    "the manager is silent": Row((NODE, attaching()), wait=("Silent",), again_at=DEADLINE, shown=()),
    "a device that has vanished is neither waited for nor replaced by any other": Row(
        (NODE, attaching()),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="a100-1 is not in its fabric's inventory any more",
        shown=("2",),
        looked=GONE,
    ),
    "a device that vanished before it was seen": Row(
        (NODE, attaching(physical="1")),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="a100-1 is not in its fabric's inventory any more",
        shown=("2",),
        looked=GONE,
    ),
    "a device that its manager forgot a moment ago is waited for": Row(
        (NODE, attaching()),
        wait=("Missing",),
        says="its fabric's manager to show a100-1 again",
        again_at=Seconds(b.NOW + 1),
        shown=("2",),
        looked=GONE + 1,
    ),
    "a device that its manager forgot after it was attached is waited for": Row(
        (NODE, attaching(physical="1")),
        wait=("Visible",),
        again_at=Seconds(b.NOW + 1),
        shown=("2",),
        looked=GONE + 1,
    ),
    "a device that nobody has asked its manager for since is waited for": Row(
        (NODE, attaching()), wait=("Missing",), again_at=DEADLINE, shown=("2",)
    ),
    "a device of a model that has left the policy is not replaced by any other": Row(
        (NODE, attaching()),
        wait=("Missing",),
        says="the policy to say which model",
        again_at=DEADLINE,
        policy=b.policy("H100"),
    ),
    "a full node is waited for, not blamed": Row(
        (NODE, b.resource("a100-2", physical="2", state=ResourceState.DETACHING), attaching()),
        wait=("Room",),
        says="one of the 1 slots of n1",
        again_at=DEADLINE,
        attached=(fabric_device("2", order="uid-a100-2.rack-a"),),
        slots=1,
    ),
    "what another resource has takes room, whoever ordered it": Row(
        (NODE, b.resource("a100-2", physical="2"), attaching()),
        wait=("Room",),
        again_at=DEADLINE,
        attached=(fabric_device("2"),),
        slots=1,
    ),
    "what others attached takes room too": Row(
        (NODE, attaching()),
        wait=("Room",),
        again_at=DEADLINE,
        attached=(fabric_device("2", ours=False),),
        slots=1,
    ),
    "a node with one slot left has room": Row(
        (NODE, b.resource("a100-2", physical="2"), attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        attached=(fabric_device("2", order="other"),),
        slots=2,
    ),
    "a node is full with what was ordered, and the answer is fetched": Row(
        (NODE, attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        attached=(fabric_device("1", order="uid-a100-1.rack-a"),),
        slots=1,
    ),
    "the last slot is the first one's by name": Row(
        (NODE, b.resource("a100-0", state=ResourceState.ATTACHING), attaching()),
        wait=("Room",),
        again_at=DEADLINE,
        slots=1,
    ),
    "an order that was given up under way has its slot until it is closed": Row(
        (NODE, b.resource("a100-9", state=ResourceState.DETACHING), attaching()),
        wait=("Room",),
        again_at=DEADLINE,
        slots=1,
    ),
    "the last slot is not the last one's by name": Row(
        (NODE, b.resource("a100-9", state=ResourceState.ATTACHING), attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        slots=1,
    ),
    "the one ahead has its device, which is counted once": Row(
        (NODE, b.resource("a100-0", state=ResourceState.ATTACHING), attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        attached=(fabric_device("0", order="uid-a100-0.rack-a"),),
        slots=2,
    ),
    # --- visible and online
    "attached and not seen": Row(
        (NODE, attaching(physical="1")), wait=("Visible",), says="n1 to see 1", again_at=DEADLINE
    ),
    "attached and seen": Row(
        (NODE, attaching(physical="1", conditions=SEEN)), do=("MarkState Online resource/a100-1.rack-a",)
    ),
    "attached, seen, and in the inventory": Row(
        (NODE, attaching(physical="1", conditions=SEEN)),
        do=("MarkState Online resource/a100-1.rack-a",),
        attached=(fabric_device("1", order="uid-a100-1.rack-a"),),
    ),
    "seen on a condition that is not true": Row(
        (NODE, attaching(physical="1", conditions=(Condition(VISIBLE, "False"),))),
        wait=("Visible",),
        again_at=DEADLINE,
    ),
    "late, but seen: it serves the next claim": Row(
        (NODE, attaching(physical="1", conditions=SEEN, created=OLD)),
        do=("MarkState Online resource/a100-1.rack-a",),
    ),
    "a vendor's driver is the eye": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            b.resource(HANDED, state=ResourceState.ATTACHING, physical="1", uuid="GPU-7"),
        ),
        do=("MarkState Online resource/a100-1.rack-a",),
        policy=vendors(),
    ),
    "a vendor's driver has not seen it": Row(
        (
            NODE,
            b.vendor_slice("GPU-8"),
            b.resource(HANDED, state=ResourceState.ATTACHING, physical="1", uuid="GPU-7"),
        ),
        wait=("Visible",),
        again_at=DEADLINE,
        policy=vendors(),
    ),
    "late, and its driver may still offer it: it is looked at again, but not without end": Row(
        (
            NODE,
            b.resource(HANDED, state=ResourceState.ATTACHING, physical="1", uuid="GPU-7", created=OLD),
        ),
        attached=(replace(fabric_device("1"), since=b.NOW),),
        wait=("Visible",),
        again_at=AGAIN,
        policy=vendors(),
    ),
    "a vendor's driver still shows it where it was": Row(
        (
            NODE,
            b.vendor_slice("GPU-7", on="n2"),
            b.resource(HANDED, state=ResourceState.ATTACHING, physical="1", uuid="GPU-7"),
        ),
        wait=("Visible",),
        again_at=DEADLINE,
        policy=vendors(),
    ),
    "a vendor's driver does not vouch for our own": Row(
        (NODE, b.vendor_slice("GPU-7"), attaching(physical="1", uuid="GPU-7")),
        wait=("Visible",),
        again_at=DEADLINE,
    ),
    # --- given up
    "the attach failed: blame, and give back": Row(
        (NODE, attaching(error="no link")),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
        says="the attach failed: no link",
    ),
    "blamed once": Row(
        (b.node(failures={"a100-1": b.NOW - 100}), attaching(error="no link")),
        do=("MarkState Detaching resource/a100-1.rack-a",),
    ),
    "an older blame is another failure": Row(
        (b.node(failures={"a100-1": b.NOW - 101, "a100-2": b.NOW}), attaching(error="no link")),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
    ),
    "deleted while attaching: the order is closed, not forgotten": Row(
        (NODE, attaching(deleted=b.NOW)),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="nobody wants it",
    ),
    "deleted while attaching, and late: nobody's fault": Row(
        (NODE, attaching(deleted=b.NOW, created=OLD)), do=("MarkState Detaching resource/a100-1.rack-a",)
    ),
    "its node is gone": Row(
        (attaching(error="no link"),), do=("MarkState Detaching resource/a100-1.rack-a",), says="no link"
    ),
    "its node is gone, and nothing failed": Row(
        (attaching(),), do=("MarkState Detaching resource/a100-1.rack-a",), says="node n1 is gone"
    ),
    "a node that is not ready is waited for": Row(
        (b.node(ready="False"), attaching()),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
    ),
    "too late": Row(
        (NODE, attaching()),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
        says="did not come within 300 s",
        now=DEADLINE,
    ),
    "too late to be seen": Row(
        (NODE, attaching(physical="1", created=OLD)),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
    ),
    "too late because of a pause": Row(
        (NODE, attaching(created=OLD)),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        policy=b.policy(base=Policy(paused=True)),
    ),
    "too late because the manager is silent": Row(
        (NODE, attaching(created=OLD)), do=("MarkState Detaching resource/a100-1.rack-a",), shown=()
    ),
    "another device than the one meant": Row(
        (NODE, attaching(physical="2", conditions=SEEN)),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
        says="attached 2 instead of 1",
    ),
    "a device of another model": Row(
        (NODE, attaching(physical="1", conditions=SEEN)),
        do=("Blame node/n1", "MarkState Detaching resource/a100-1.rack-a"),
        says="1, which is of model T4",
        attached=(fabric_device("1", model="T4"),),
    ),
    "recorded while attaching": Row(
        (NODE, attaching(deleted=b.NOW, record=b.claim("c"))),
        wait=("Recorded",),
        says="to let it go: delete the pod that uses it",
    ),
    "held while attaching": Row((NODE, attaching(deleted=b.NOW, holder="u")), wait=("Recorded",)),
    # --- online
    "online and wanted": Row((NODE, b.resource(physical="1"))),
    "nobody holds it: its plugin says so": Row(
        (NODE, b.resource(physical="1", deleted=b.NOW)),
        wait=("Released",),
        says="the plugin on n1 to release it",
    ),
    "nobody holds it, and its node is gone": Row(
        (b.resource(physical="1", deleted=b.NOW),),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="nobody holds it",
    ),
    "nobody holds it under its vendor's name": Row(
        (NODE, b.resource(HANDED, uuid="GPU-7", deleted=b.NOW)),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="nobody holds it",
        policy=vendors(),
    ),
    "a claim is recorded on it": Row(
        (NODE, b.resource(deleted=b.NOW, record=b.claim("c"))),
        wait=("Recorded",),
        says="to let it go: delete the pod that uses it",
    ),
    "a claim is prepared with it": Row((NODE, b.resource(deleted=b.NOW, holder="u")), wait=("Recorded",)),
    "a claim that was given it on its way out is served by the next one": Row(
        (NODE, b.claim("c"), b.resource(deleted=b.NOW)), wait=("Released",)
    ),
    "a claim has it under its vendor's name": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",)),
            b.resource(HANDED, uuid="GPU-7", deleted=b.NOW),
        ),
        wait=("Claimed",),
        says="claim default/c to give it up",
        policy=vendors(),
    ),
    "a claim was given it where it came from, and has nothing": Row(
        (
            NODE,
            b.vendor_slice("GPU-7", on="n2"),
            b.claim("c", devices=(f"{VENDOR}/n2/gpu-0",), on="n2"),
            b.resource(HANDED, uuid="GPU-7", deleted=b.NOW),
        ),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="nobody holds it",
        policy=vendors(),
    ),
    "force asks nobody": Row(
        (NODE, b.resource(deleted=b.NOW, force=True, holder="u", record=b.claim("c"))), wait=("Released",)
    ),
    "force asks nobody on a node that is gone": Row(
        (b.resource(deleted=b.NOW, force=True, holder="u", record=b.claim("c")),),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="force_detach was asked for",
    ),
    "force does nothing by itself": Row((NODE, b.resource(force=True))),
    # --- detaching
    "not released": Row((NODE, detaching()), wait=("Released",), says="the plugin on n1 to release it"),
    "not released, by force either: the plugin forces it": Row(
        (NODE, detaching(force=True)), wait=("Released",)
    ),
    "not released on a node that is not ready": Row(
        (b.node(ready="Unknown"), detaching()), wait=("Released",)
    ),
    "released": Row(
        (NODE, detaching(conditions=LET_GO)),
        do=("Detach 1 at n1 resource/a100-1.rack-a",),
        wait=("Detaching",),
        says="its order is to be closed",
        again_at=AGAIN,
    ),
    "released, and nothing was ever attached: the order is closed all the same": Row(
        (NODE, b.resource(state=ResourceState.DETACHING, conditions=LET_GO)),
        do=("Detach 1 at n1 resource/a100-1.rack-a",),
        wait=("Detaching",),
        again_at=AGAIN,
    ),
    "a node that is gone has released it": Row(
        (detaching(),), do=("Detach 1 at n1 resource/a100-1.rack-a",), wait=("Detaching",), again_at=AGAIN
    ),
    "a node that is gone with a pod bound to it has not": Row(
        (b.pod("p", on="n1"), detaching()), wait=("Released",)
    ),
    "the manager is silent about a detach": Row(
        (NODE, detaching(conditions=LET_GO)), wait=("Silent",), shown=(), again_at=AGAIN
    ),
    "paused before a detach": Row(
        (NODE, detaching(conditions=LET_GO)),
        wait=("Paused",),
        says="detaching to be resumed",
        policy=b.policy(base=Policy(paused=True)),
    ),
    "a model that has left the policy is still released by our plugin": Row(
        (NODE, detaching()), wait=("Released",), policy=b.policy("T4")
    ),
    "closed": Row(
        (NODE, b.resource(state=ResourceState.DELETING)),
        do=("FreeResource resource/a100-1.rack-a",),
        says="nothing of it is attached",
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_next_step_of_a_resource(row: Row) -> None:
    check(row)

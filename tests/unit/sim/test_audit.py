"""What the audit holds against nobody, and what it does."""

from contextlib import closing

import pytest
from msgspec.structs import replace

from jackfield.codec.encoding import encoded
from jackfield.controllers.recorders import Recorders
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object
from jackfield.model.names import NO_TIME, NodeName, PhysicalID, Seconds, Uid, Version
from jackfield.model.plan import DeleteRequest, Phase, PutRequest
from jackfield.ports import Merge
from jackfield.sim.audit.audit import Audit
from jackfield.sim.audit.ending import IN_VAIN_SECONDS
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.loop import VirtualLoop
from jackfield.sim.pool import Movement
from jackfield.sim.setting import Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.sim.world import SimWorld
from jackfield.testing import builders as b

ANY = Version("")


async def put(world: SimWorld, new: Object) -> None:
    """Create an object with its status, if it has one."""
    client = world.cluster.client("test")
    bare = replace(new.metadata, uid=Uid(""), resource_version=ANY, creation_timestamp=NO_TIME)
    made = await client.create(replace(new, metadata=bare))
    status = encoded(new).get("status")
    if status:
        version = made.metadata.resource_version
        await client.write(Merge(type(new), new.key, version, {"status": status}, status=True))


LEAVING = b.resource("a100-1", on="n2", state=ResourceState.DETACHING)
THEIRS = b.request(1, name="jackfield-a100-n1")


@pytest.mark.parametrize(
    ("one", "waited"),
    [(LEAVING, 175), (THEIRS, 350)],
    ids=["a resource elsewhere", "a request under our name"],
)
def test_nobody_waits_in_vain_for_what_can_only_come_when_this_is_gone(one: Object, waited: int) -> None:
    """It leaves another node for whoever waits, or somebody else deletes it: the wait in vain begins there."""

    async def scenario() -> None:
        world = SimWorld(Setting(policy=b.policy()), running(), Chance(1), Recorders())
        audit = Audit(world)
        long = Seconds(IN_VAIN_SECONDS + 25)
        for each in (b.node(), one, b.claim("c")):
            await put(world, each)
        await world.clock.sleep(long)
        await world.cluster.client("test").delete(type(one), one.key, ANY)
        await put(world, b.heartbeat())
        # That nobody here says what is waited for is another checker's.
        assert not any("waits-in-vain" in said for said in audit.violations)
        await world.clock.sleep(long)
        await put(world, b.heartbeat("n2"))
        found = [said for said in audit.violations if "waits-in-vain" in said]
        what = f"waits on n1 for {waited} s, and nothing happens to its devices"
        assert found == [f"350.000 waits-in-vain claim/default/c: {what}"]

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())


@pytest.mark.parametrize("knows", [True, False])
def test_what_a_manager_can_is_known_before_anybody_looks_at_everything(*, knows: bool) -> None:
    """One that knows order ids may give a device away again before it has answered that it took it back."""

    async def scenario() -> None:
        fabric = FabricSpec(b.FABRIC, traits=Traits(knows_orders=knows))
        world = SimWorld(Setting(fabrics=(fabric,), policy=b.policy()), running(), Chance(1), Recorders())
        audit = Audit(world)
        await put(world, b.node())
        await put(world, b.resource("a100-2", physical="7", state=ResourceState.ATTACHING))
        await put(world, b.resource("a100-1", physical="7", state=ResourceState.DETACHING))
        await world.clock.sleep(Seconds(1.0))
        found = [one for one in audit.violations if "device-in-two-books" in one]
        assert bool(found) is not knows

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())


@pytest.mark.parametrize(("later", "touched"), [(-1, False), (0, True), (1, True)])
def test_what_was_written_before_another_took_its_name_is_not_the_others(
    later: int, *, touched: bool
) -> None:
    """A deletion is told when it is answered; somebody may have written a request under the same name by then."""

    async def scenario() -> None:
        world = SimWorld(Setting(policy=b.policy()), running(), Chance(1), Recorders())
        audit = Audit(world)
        theirs = b.request(1, name="r")
        bare = replace(theirs.metadata, uid=Uid(""), resource_version=ANY, creation_timestamp=NO_TIME)
        came = await world.cluster.client("test").create(replace(theirs, metadata=bare))
        version = Version(str(int(came.metadata.resource_version) + later))
        ours = b.request({}, name="r")
        wish = replace(ours, metadata=replace(ours.metadata, resource_version=version))
        audit.did(b.NOW, "scale.decide", PutRequest(phase=Phase.WANTED, because="", request=wish), "")
        gone = DeleteRequest(phase=Phase.DETACHED, because="", name="r", version=version)
        audit.did(b.NOW, "scale.decide", gone, "")
        assert len([one for one in audit.violations if "foreign-touched" in one]) == 2 * touched

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())


@pytest.mark.parametrize("excused", ["0000", "0001"])
def test_a_device_that_is_pulled_in_use_is_told_by_its_own_name_and_excused_for_itself(excused: str) -> None:
    """What was pulled is told when the next device moves, which may be another."""

    async def scenario() -> None:
        fabric = FabricSpec(b.FABRIC, batches=(Batch(b.MODEL, 2),))
        stage = Setting(nodes=(Nodes("n", 1, fabric=b.FABRIC),), fabrics=(fabric,), policy=b.policy())
        world = SimWorld(stage, running(), Chance(1), Recorders())
        async with world:
            audit = Audit(world)
            (manager,), (host,) = world.hardware.managers.values(), world.hardware.hosts.values()
            for device in ("0000", "0001"):
                manager.move(PhysicalID(device), host.node)
            used = next(one for one in manager.inventory().devices if one.id == "0000")
            host.pulled_in_use.append(Movement(world.clock.now(), used, host.node, present=False))
            audit.excuse(PhysicalID(excused))
            manager.move(PhysicalID("0001"), NodeName(""))
            found = [one.partition(" ")[2] for one in audit.violations if "pulled-in-use" in one]
            told = f"pulled-in-use device/0000: pulled from {host.node} while prepared"
            assert found == ([told] if excused != "0000" else [])

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())

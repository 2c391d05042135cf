"""What must be so when nothing is under way, and what must have happened in the end.

Knows the API's truth, the hardware's and what our replicas know. Must not know what happened before.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jackfield.controllers import app
from jackfield.controllers.store import Store
from jackfield.core import check, naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, holds
from jackfield.model.names import DeviceID, FabricName, Key, PhysicalID, Seconds
from jackfield.model.plan import Waiting
from jackfield.model.pod import Pod
from jackfield.model.policy import FAILED, READY, RESCHEDULE
from jackfield.sim.audit.changes import Changes
from jackfield.sim.audit.checkers import Checker
from jackfield.sim.replica import Replica
from jackfield.sim.spec import Refusals
from jackfield.sim.weather import RoughClient
from jackfield.sim.world import SimWorld

STILL_SECONDS: Final = Seconds(30.0)
"""What has not changed for so long is known to everybody."""
IN_VAIN_SECONDS: Final = Seconds(150.0)
"""So long nothing may happen to a device that is waited for and not under way."""
CATCHING_UP_SECONDS: Final = Seconds(20.0)
"""How long after it has heard of everything again somebody may still do what he decided before."""

Said = Iterator[tuple[str, str]]
"""What must not be: the checker, and what it is."""


class Scene(msgspec.Struct, frozen=True):
    """A world at a moment, with the truth about it."""

    world: SimWorld
    store: Store
    now: Seconds
    excused: Mapping[PhysicalID, Seconds]
    hopeless: Mapping[Key, str]


def at_rest(scene: Scene) -> Said:
    """Yield what is wrong though nothing is under way."""
    store, policy = scene.store, scene.store.policy
    for kind in store.kinds():
        for one in store.all(kind):
            if not _is_excused(scene, one):
                for fault in check.at_rest(store, one, policy, scene.now):
                    yield fault.checker, str(fault)
    for fabric in store.fabrics():
        for fault in check.of_fabric(store, fabric, policy):
            if fault.object.rpartition("/")[2] not in scene.excused:
                yield fault.checker, str(fault)
    yield from _known(scene)


def _is_excused(scene: Scene, one: Object) -> bool:
    """Whether somebody works by hand on what an object is about."""
    if isinstance(one, ComposableResource):
        return one.status.cdi_device_id in scene.excused
    if isinstance(one, ResourceClaim):
        found = (scene.store.resource_of(result.id) for result in one.results)
        return any(
            resource is not None and resource.status.cdi_device_id in scene.excused for resource in found
        )
    return False


def _known(scene: Scene) -> Said:
    """What every replica knows is what the API has."""
    for replica in scene.world.replicas:
        if replica.dead or replica.process.stopped:
            continue
        for kind in app.KINDS:
            if kind is Lease:
                continue
            truth = {
                one.key: one.object.metadata.resource_version for one in scene.world.api.list(kind).items
            }
            known = {one.key: one.metadata.resource_version for one in replica.store.all(kind)}
            for key in [key for key in (*truth, *known) if truth.get(key) != known.get(key)][:1]:
                versions = f"version {known.get(key, 'none')} of {kind.__name__} {key}; it is {truth.get(key, 'none')}"
                yield Checker.STORE_DIFFERS, f"replica/{replica.name}: knows {versions}"


def is_stormy(world: SimWorld) -> bool:
    """Return whether anything is wrong with a process of ours, its lines, or a manager."""
    now = world.clock.now()
    ill = any(one.dead or one.process.stopped for one in world.replicas)
    rough = any(
        one.weather.fuse is not None
        or now < one.weather.deaf_until
        or one.weather.stale
        or one.clock.ahead
        or any(now < spell.until for spell in one.weather.spells)
        or any(now < noise.until for noise in one.wire.noise)
        for one in world.programs.values()
    )
    broken = any(
        manager.refusals != Refusals() or now < manager.outdated_until
        for manager in world.hardware.managers.values()
    )
    return ill or rough or broken or not all(_is_led(world, fabric) for fabric in world.hardware.managers)


def is_behind(world: SimWorld) -> bool:
    """Return whether a replica of ours may not have heard of everything, now or when it decided what it does now."""
    ears = [world.program(one.client.name).weather for one in world.replicas]
    deaf = any(one.stale or world.clock.now() < one.deaf_until + CATCHING_UP_SECONDS for one in ears)
    return deaf or any(lives_in_the_past(world, one) for one in world.replicas)


def lives_in_the_past(world: SimWorld, replica: Replica) -> bool:
    """Return whether a replica has not noticed yet that a backup was restored."""
    return isinstance(replica.client, RoughClient) and replica.client.age != world.api.age


def astray(world: SimWorld, one: Object) -> dict[PhysicalID, None]:
    """Return the device of a resource, if it is not where the resource says."""
    if not isinstance(one, ComposableResource) or not one.status.cdi_device_id:
        return {}
    fabric = world.hardware.fabrics.get(one.node)
    device = world.hardware.managers[fabric].pool.device(one.status.cdi_device_id) if fabric else None
    return {} if device is not None and device.node == one.node else {one.status.cdi_device_id: None}


def _is_led(world: SimWorld, fabric: FabricName) -> bool:
    return any(one.leases is None or one.leases.seems_to_lead(fabric) for one in world.replicas)


def _waiting(scene: Scene) -> Iterator[ResourceClaim]:
    """The claims that wait for us, on nodes that can be served."""
    for claim in scene.store.all(ResourceClaim):
        if isinstance(claim, ResourceClaim) and _unanswered(claim) and not _is_excused(scene, claim):
            node = scene.store.node(claim.node)
            if node is not None and node.ready and not node.spec.unschedulable:
                yield claim


def unexplained(scene: Scene, changes: Changes, waits: Mapping[str, tuple[Seconds, Waiting]]) -> Said:
    """Yield who waits and is told nothing about it, or nothing true."""
    for claim in _waiting(scene):
        if scene.now < changes.since(claim) + STILL_SECONDS:
            continue
        _, said = waits.get(f"claim/{claim.key}", (scene.now, None))
        if said is None:
            yield Checker.FALSE_WAIT, f"claim/{claim.key}: waits for its devices, and nobody says for what"
            continue
        instead = check.untrue(scene.store, said)
        if instead:
            what = f"is said to wait for {said.what} ({said.reason}); {instead}"
            yield Checker.FALSE_WAIT, f"claim/{claim.key}: {what}"


def in_vain(scene: Scene, changes: Changes) -> Said:
    """Yield who has waited for so long that somebody should have moved: no order of his is under way."""
    for claim in _waiting(scene):
        since = changes.since(claim)
        rival = _rival(scene, claim)
        if rival is not None and scene.now > since + STILL_SECONDS:
            what = f"waits for {rival[0]}, which claim {rival[1]} has, and is not sent on (rule 9)"
            yield Checker.WAITS_IN_VAIN, f"claim/{claim.key}: {what}"
        found = (scene.store.resource_of(result.id) for result in claim.results)
        under_way = any(one is not None and one.state is not ResourceState.ONLINE for one in found)
        patient = bool(scene.store.policy.namespaces) or _is_blocked(scene, claim)
        # What another's request under our name kept from being ordered can be ordered only since that is gone.
        still = scene.now - max(since, changes.unblocked_since(claim, scene.store.policy))
        if still > IN_VAIN_SECONDS and not under_way and not patient:
            what = f"waits on {claim.node} for {scene.now - since:.0f} s, and nothing happens to its devices"
            yield Checker.WAITS_IN_VAIN, f"claim/{claim.key}: {what}"


def _is_blocked(scene: Scene, claim: ResourceClaim) -> bool:
    """Whether somebody else has written a request under the name that ours for the claim's node would have."""
    models = scene.store.policy.models
    requests = (scene.store.request(naming.request(claim.node, model)) for model in models)
    return any(one is not None and not one.scalers for one in requests)


def _rival(scene: Scene, claim: ResourceClaim) -> tuple[DeviceID, Key] | None:
    """A device that a claim was given and another one has been told that it has."""
    for result in claim.results:
        for one in scene.store.claims_holding(result.id):
            if one.uid != claim.uid and holds(one.conditions(result.id), READY):
                return result.id, one.key
    return None


def _unanswered(claim: ResourceClaim) -> bool:
    ours = [one for one in claim.results if READY in one.binding_conditions and not one.admin_access]
    told = [claim.conditions(one.id) for one in ours]
    return bool(ours) and not all(
        any(holds(one, kind) for kind in (READY, RESCHEDULE, FAILED)) for one in told
    )


def fulfilled(scene: Scene, waits: Mapping[str, tuple[Seconds, Waiting]]) -> Said:
    """Yield what should have come about by now and has not."""
    for pod in scene.store.all(Pod):
        if isinstance(pod, Pod) and pod.status.phase == "Pending" and not _is_hopeless(scene, pod):
            yield Checker.POD_WAITS, f"pod/{pod.key}: does not run{_why(scene, pod, waits)}"
    for replica in scene.world.replicas:
        backlog = replica.runner.backlog
        if backlog and not replica.dead:
            yield Checker.BACKLOG, f"replica/{replica.name}: has {backlog} keys to look at"


def _is_hopeless(scene: Scene, pod: Pod) -> bool:
    """Whether a pod cannot run: it was drawn so, or somebody took by hand what it was bound to.

    Such a pod keeps its claim until somebody deletes it, and with it what others may need who were given nothing.
    """
    if pod.key in scene.hopeless:
        return True
    claims = [scene.store.claim(Key(pod.metadata.namespace, name)) for name in pod.claim_names]
    given = [one for one in claims if one is not None and one.results]
    kept = given or [one for one in scene.store.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    return any(_is_excused(scene, one) for one in kept)


def _why(scene: Scene, pod: Pod, waits: Mapping[str, tuple[Seconds, Waiting]]) -> str:
    claims = [Key(pod.metadata.namespace, name) for name in pod.claim_names]
    said = [waits[f"claim/{key}"][1].what for key in claims if f"claim/{key}" in waits]
    told = [one.message for one in pod.status.conditions if one.type == "PodScheduled" and one.message]
    given = [str(result.id) for key in claims if (one := scene.store.claim(key)) for result in one.results]
    parts = (f"has {', '.join(given)}" if given else "", *(f"waits for {one}" for one in said), *told)
    words = "; ".join(one for one in parts if one)
    return f": {words}" if words else ""

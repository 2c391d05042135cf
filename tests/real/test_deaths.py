"""Deaths, of the controller, of the API server and of etcd: nothing leaked, nothing attached twice, every pod runs."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from jackfield.core import lead
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    RELEASED,
    VISIBLE,
    ComposabilityRequest,
    ComposableResource,
    ResourceState,
)
from jackfield.model.fabric import Traits
from jackfield.model.meta import holds
from jackfield.model.names import FabricName, OrderID, Seconds, Time, seconds
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.sim.fabric import FINE, Call, Fate, Verb
from jackfield.sim.setting import Setting
from jackfield.testing.control_plane import ControlPlane, Program
from real.site import FABRIC, Line, Replica, Site, setting

TAKEN_OVER_SECONDS_MAX = 15.0
"""Within that time another replica leads what a dead one led."""
NEXT_STEP_SECONDS = 0.002
"""How often it is asked whether a step shows; the next one is only a few milliseconds away."""
POLICY = Policy(hold_seconds=Seconds(2.0), inventory_seconds=Seconds(2.0))


def play(site: Site, scene: Callable[[Site], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        async with site:
            await site.template()
            await scene(site)

    asyncio.run(main())


async def run(site: Site, count: int, seconds_max: float = 60) -> None:
    """Wait until so many pods run, all there are."""
    await site.until(lambda: site.phases("Running", count), seconds_max)


async def all_returned(site: Site, seconds_max: float = 60) -> None:
    """Delete all pods; wait until their devices are back in the pool, and nothing is left in the books."""
    for name, pod in (await site.pods()).items():
        if not pod.deleting:
            await site.delete(Pod, name)
    await site.until(lambda: not site.attached, seconds_max)
    await site.until(site.none_left)
    for kind in (ComposabilityRequest, ResourceClaim):
        await site.until(partial(none_of, site, kind))


async def none_of(site: Site, kind: type[ComposabilityRequest | ResourceClaim]) -> bool:
    return not await site.all(kind)


def orders(site: Site, verb: Verb) -> set[OrderID]:
    """The orders that managers were given."""
    return {one.order for one in site.calls if one.verb is verb}


def ordered(site: Site, count: int) -> bool:
    return len(orders(site, Verb.ATTACH)) == count


def came(site: Site, count: int) -> bool:
    return len(site.attached) == count


# --- the controller dies at every step


class Trap:
    """Sees when a step is taken that had not been taken when it was set."""

    def __init__(self, site: Site, step: str) -> None:
        self._site = site
        self._step = step
        self._known = len(site.lines)
        self._calls = len(site.calls)

    async def sprung(self) -> bool:
        """Whether the step shows: in the log, at the manager, or on an object."""
        if self._step in OBJECTS:
            return any(OBJECTS[self._step](one) for one in await self._site.resources())
        if self._step in HEARD:
            return any(one.verb is HEARD[self._step] for one in self._site.calls[self._calls :])
        return any(f"{one.what} ".startswith(f"{self._step} ") for one in self._site.lines[self._known :])


OBJECTS: dict[str, Callable[[ComposableResource], bool]] = {
    "ids written": lambda one: bool(one.status.cdi_device_id) and one.state is ResourceState.ATTACHING,
    "Visible": lambda one: holds(one.status.conditions, VISIBLE) and one.state is ResourceState.ATTACHING,
    "Released": lambda one: holds(one.status.conditions, RELEASED),
}
HEARD = {"attach heard": Verb.ATTACH, "detach heard": Verb.DETACH}
COMING = (
    "PutRequest",
    "PutResource",
    "MarkState Attaching",
    "attach heard",
    "Attach",
    "ids written",
    "Visible",
    "MarkState Online",
    "RecordClaim",
    "SetCondition",
)
GOING = ("ForgetClaim", "DeleteRequest", "Released", "detach heard", "Detach")


async def die_at(site: Site, step: str, cause: Awaitable[object]) -> None:
    """Kill the controller as soon as a step shows, which something brings about, and start it again."""
    trap = Trap(site, step)
    await cause
    deadline = site.clock.now() + 30
    while not await trap.sprung():
        assert site.clock.now() < deadline, f"{step} was not seen; {site.report()}"
        await site.clock.sleep(Seconds(NEXT_STEP_SECONDS))
    await site.replicas[0].kill()
    assert "Traceback" not in site.replicas[0].errors
    await site.replicas[0].start()


def test_a_controller_killed_at_any_step_attaches_once_and_returns_all(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        for step in COMING:
            await die_at(site, step, site.pod(_name(step), template="gpu"))
        await run(site, len(COMING))
        assert all(one.present for one in site.movements), "a device was taken from a pod"
        assert site.attaches == len(COMING), site.report()
        assert len(orders(site, Verb.ATTACH)) == len(COMING)
        for step, pod in zip(GOING, COMING, strict=False):
            await die_at(site, step, site.delete(Pod, _name(pod)))
        await all_returned(site)
        assert site.attaches == len(COMING), "something was attached again on its way out"

    stage = setting(nodes=len(COMING), devices=len(COMING) + 2, slots=1, attach=0.3, policy=POLICY)
    play(Site(fresh, stage, tmp_path), scene)


def _name(step: str) -> str:
    return step.lower().replace(" ", "-")


# --- the API server and etcd die while devices are being attached


AWAY_SECONDS = {Program.APISERVER: 11.0, Program.ETCD: 3.0}
"""How long each stays dead after the device has come; once longer than a lease lasts."""


def test_what_was_ordered_before_the_api_died_serves_its_pod_afterwards(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    async def scene(site: Site) -> None:
        for count, (program, away) in enumerate(AWAY_SECONDS.items(), start=1):
            await site.pod(f"p{count}", template="gpu")
            await site.until(partial(ordered, site, count))
            await site.plane.aside(partial(site.plane.kill, program))
            await site.until(partial(came, site, count), 20)
            await site.clock.sleep(Seconds(away))
            await site.plane.aside(partial(site.plane.start, program))
            await run(site, count, 90)
        assert site.attaches == len(orders(site, Verb.ATTACH)) == len(AWAY_SECONDS)
        assert all(one.present for one in site.movements), "a device was taken from a pod"
        await all_returned(site)
        assert site.attaches == len(AWAY_SECONDS)

    play(Site(fresh, setting(nodes=2, devices=4, attach=2.0, policy=POLICY), tmp_path), scene)


# --- one of two replicas dies, or sleeps


REPLICAS = ("replica-1", "replica-2")


def fabrics() -> tuple[FabricName, ...]:
    """Three fabrics of which each of the two replicas leads at least one."""
    names = [FabricName(f"rack-{letter}") for letter in "abcdefgh"]
    led = [next(one for one in names if lead.leader(one, REPLICAS) == replica) for replica in REPLICAS]
    return (*led, next(one for one in names if one not in led))


def with_fabrics(stage: Setting, names: tuple[FabricName, ...], traits: tuple[Traits, ...] = ()) -> Setting:
    """Return a stage that has these fabrics instead of its own, each with as many nodes."""
    kinds = traits or (Traits(),) * len(names)
    specs = zip(names, kinds, strict=True)
    return replace(
        stage,
        fabrics=tuple(replace(stage.fabrics[0], name=name, traits=kind) for name, kind in specs),
        nodes=tuple(replace(stage.nodes[0], name=f"{name}-n", fabric=name) for name in names),
    )


def led(replica: Replica, since: float) -> Line | None:
    """The last time since then that a replica said what it leads."""
    said = [
        one for one in replica.lines if one.because.startswith("leads ") and seconds(Time(one.time)) >= since
    ]
    return said[-1] if said else None


def leads(replica: Replica, names: tuple[FabricName, ...], since: float) -> bool:
    said = led(replica, since)
    return said is not None and said.because == f"leads fabric {', '.join(names)}"


def test_another_replica_takes_over_in_time_and_orders_nothing_twice(
    fresh: ControlPlane, tmp_path: Path
) -> None:
    names = fabrics()
    shares = {one: tuple(name for name in names if lead.leader(name, REPLICAS) == one) for one in REPLICAS}

    async def order(site: Site, round_: int) -> None:
        """A pod on every fabric, and the manager of each at work."""
        known = len(orders(site, Verb.ATTACH))
        for name in names:
            await site.pod(f"{name}-{round_}", template="gpu", node=f"{name}-n-{round_}")
        await site.until(lambda: ordered(site, known + len(names)))

    async def taken_over(site: Site, by: Replica, count: int) -> None:
        since = site.clock.now()
        await site.until(lambda: leads(by, names, since), 30)
        said = led(by, since)
        assert said is not None
        assert seconds(Time(said.time)) - since <= TAKEN_OVER_SECONDS_MAX
        await run(site, count)
        assert site.attaches == len(orders(site, Verb.ATTACH)) == count, site.report()

    async def scene(site: Site) -> None:
        one, other = site.replicas
        for each in site.replicas:
            await site.until(partial(leads, each, shares[each.name], 0.0))
        await order(site, 1)
        one.signal(signal.SIGSTOP)
        await taken_over(site, other, len(names))
        woken = site.clock.now()
        one.signal(signal.SIGCONT)
        await site.until(lambda: leads(one, shares[one.name], woken))
        await site.until(lambda: leads(other, shares[other.name], woken))
        await order(site, 2)
        await other.kill()
        await taken_over(site, one, 2 * len(names))
        assert all(move.present for move in site.movements)
        await all_returned(site)
        assert site.attaches == 2 * len(names)

    stage = setting(nodes=2, devices=2, slots=1, attach=3.0, policy=POLICY)
    play(Site(fresh, with_fabrics(stage, names), tmp_path, replicas=2), scene)


# --- answers get lost, come late, come twice


MANNERS = {
    FabricName("knows"): Traits(),
    FabricName("knows-chooses"): Traits(chooses_device=True),
    FabricName("blind"): Traits(knows_orders=False, call_timeout=Seconds(3.0)),
    FabricName("blind-chooses"): Traits(knows_orders=False, chooses_device=True, call_timeout=Seconds(3.0)),
}
FATES = (Fate(lost=True), Fate(late=Seconds(1.0)), Fate(again=Seconds(0.6)))
INVENTORIES_LOST = 4
"""Of so many inventories one does not arrive."""


class BadLine:
    """The first call of every order meets with something: the first order's with this, the next one's with that."""

    def __init__(self) -> None:
        self._orders: dict[tuple[FabricName, Verb], dict[OrderID, None]] = {}
        self._inventories: Counter[FabricName] = Counter()
        self.met: Counter[tuple[FabricName, Verb]] = Counter()

    def fate(self, call: Call) -> Fate:
        """Return the fate of a call."""
        if call.verb is Verb.INVENTORY:
            self._inventories[call.fabric] += 1
            return Fate(lost=self._inventories[call.fabric] % INVENTORIES_LOST == 0)
        known = self._orders.setdefault((call.fabric, call.verb), {})
        if call.order in known or len(known) == len(FATES):
            return FINE
        known[call.order] = None
        self.met[call.fabric, call.verb] += 1
        return FATES[len(known) - 1]


def test_answers_lost_late_and_twice_cost_time_but_no_device(fresh: ControlPlane, tmp_path: Path) -> None:
    line = BadLine()

    async def scene(site: Site) -> None:
        count = len(MANNERS) * len(FATES)
        for number in range(1, len(FATES) + 1):
            for name in MANNERS:
                await site.pod(f"{name}-{number}", template="gpu", node=f"{name}-n-{number}")
        await run(site, count, 120)
        await site.until(lambda: came(site, count))
        for name, traits in MANNERS.items():
            hosts = [one.node for one in site.movements if one.present and one.node.startswith(f"{name}-n-")]
            if traits.knows_orders or not traits.chooses_device:
                assert sorted(hosts) == sorted(set(hosts)), f"{name} attached something twice"
        await all_returned(site, 120)
        assert line.met == {(name, verb): 3 for name in MANNERS for verb in (Verb.ATTACH, Verb.DETACH)}

    stage = setting(nodes=len(FATES), devices=len(FATES) + 1, slots=2, attach=1.0, policy=POLICY)
    site = Site(fresh, with_fabrics(stage, tuple(MANNERS), tuple(MANNERS.values())), tmp_path)
    site.faults = line
    play(site, scene)


# --- etcd goes back in time


WRITES = 300


def test_what_a_restored_backup_does_not_know_is_adopted(fresh: ControlPlane, tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        await site.pod("before", template="gpu", node="n-1")
        await run(site, 1)
        await site.pod("ordered", template="gpu", node="n-2")
        await site.until(lambda: ordered(site, 2))
        site.replicas[0].signal(signal.SIGSTOP)
        await site.pod("allocated", template="gpu", node="n-3")
        await site.until(lambda: allocated(site, 3))
        backup = await site.plane.aside(site.plane.snapshot)
        site.replicas[0].signal(signal.SIGCONT)
        await site.pod("after", template="gpu", node="n-4")
        await run(site, 4)
        await time_passes(site)
        await site.plane.aside(partial(site.plane.restore, backup))
        await run(site, 3, 120)
        await site.until(lambda: came(site, 3))
        await site.until(lambda: books(site, 3))
        left = [one.node for one in site.movements if not one.present]
        assert left == ["n-4"], "only what nobody asks for any more goes back"
        assert site.attaches == 4, site.report()
        await all_returned(site)

    stage = setting(nodes=4, devices=6, attach=1.5, policy=POLICY)
    stage = with_fabrics(stage, (FABRIC,), (Traits(call_timeout=Seconds(3.0)),))
    play(Site(fresh, replace(stage, nodes=(replace(stage.nodes[0], name="n"),)), tmp_path), scene)


async def time_passes(site: Site) -> None:
    """Write a lot that means nothing to us, as a cluster does between two backups."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "busy", "namespace": "default"}}
    await site.cluster.raw("POST", "/api/v1/namespaces/default/configmaps", body)
    for number in range(WRITES):
        changed = {**body, "data": {"number": str(number)}}
        await site.cluster.raw("PUT", "/api/v1/namespaces/default/configmaps/busy", changed)


async def allocated(site: Site, count: int) -> bool:
    """Whether so many claims have their device."""
    found = [one for one in await site.all(ResourceClaim) if isinstance(one, ResourceClaim)]
    return sum(bool(one.results) for one in found) == count


async def books(site: Site, count: int) -> bool:
    """Whether so many resources are in the books, all of them online."""
    found = await site.resources()
    return len(found) == count and all(one.state is ResourceState.ONLINE for one in found)

"""`jackfield node`: the process on a node, from the first look at its devices to the kubelet's last question.

Knows in which order things come up: eyes first; then what the API says; then holders are repaired, before anything can
be prepared or undone; then the kubelet; then the sign of life that makes the node eligible. Must not know what is
decided.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from jackfield.controllers import app
from jackfield.controllers.plugin import TIDY_SECONDS, Plugin
from jackfield.controllers.runner import Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.core import prepare
from jackfield.core.share import Sharing
from jackfield.driver import metrics
from jackfield.driver.entry import base
from jackfield.driver.health import DeviceHealth, Health, HealthSource
from jackfield.driver.kit import Kit
from jackfield.driver.metrics import Metrics
from jackfield.driver.notices import Notices
from jackfield.driver.preparer import Answer, ClaimRef, PreparedDevice
from jackfield.driver.service import Service
from jackfield.driver.sockets import Places
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Done, Writer
from jackfield.model.composition import ComposableResource, device_id
from jackfield.model.host import Facts
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, NodeName, Seconds
from jackfield.model.policy import DRIVER, LOCAL_DRIVER, Policy
from jackfield.model.view import View
from jackfield.node.gpus import Nvml, Specs
from jackfield.node.heartbeat import Heartbeat
from jackfield.node.host import SETTLE_SECONDS, Manners, NodeHost
from jackfield.node.local import LocalDriver, Shared
from jackfield.node.nvidia import Hands, Mps, SharedGpus
from jackfield.node.nvidia import Settings as SharingSettings
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.ports import EVERYTHING, Clock, Cluster, PortError, Refused, Retry, Rewound, Selection, World

PAUSES: Final = (Seconds(0.1), Seconds(0.3), Seconds(0.6))
"""What the API has just been told may not have reached us: it is looked again so often before the kubelet is."""
REPAIR_AGAIN: Final = Seconds(1.0)
DESCRIBE_AGAIN: Final = Seconds(5.0)
"""How soon a tool that failed is tried again."""


class Nvidia(msgspec.Struct, frozen=True):
    """NVIDIA's library and tools on this node."""

    nvml: Nvml
    specs: Specs
    mps: Mps
    sharing: Sharing | None = None
    """How the node's own GPUs are shared; None: each serves one claim at a time."""

    def shared(self) -> Shared | None:
        """Return the GPUs that several claims may have at once."""
        if self.sharing is None:
            return None
        generate = self.specs.generate if self.specs.installed else None
        settings = SharingSettings(self.sharing, generate=generate)
        return Shared(self.nvml, SharedGpus(Hands(self.nvml, self.mps), settings))


class Settings(msgspec.Struct, frozen=True):
    """What a node's plugin is told."""

    node: NodeName
    policy: Policy = Policy()
    places: Places = Places()
    roots: Roots = Roots()
    manners: Manners = Manners()
    nvidia: Nvidia | None = None
    """What of NVIDIA's is used, where it is installed."""


class Preparing:
    """Answers the kubelet for devices of fabrics: `driver.preparer.Preparer` over the decisions."""

    def __init__(self, plugin: Plugin, writer: Writer, clock: Clock, metrics: Metrics) -> None:
        self._plugin = plugin
        self._store = writer.store
        self._writer = writer
        self._clock = clock
        self._metrics = metrics

    async def prepare(self, claim: ClaimRef) -> Answer:
        """Prepare a claim's devices; one that waits for words of the API waits a moment here, not for the kubelet."""
        before = self._store.get(claim.uid)
        error = await self._timed("prepare", lambda: self._plugin.prepare(claim.key, claim.uid))
        if error:
            return Answer(error=error)
        entry = self._store.remembered(claim.uid)  # has just been looked at, or written
        if entry is None:
            return Answer()
        # Of what was prepared before, files may be missing that somebody removed.
        ids = self._store.ids(entry) if before is None else await self._writer.put(entry)
        return Answer(
            tuple(
                PreparedDevice(
                    tuple(dict.fromkeys(base(one) for one in held.requests)),
                    held.pool,
                    held.device,
                    names,
                    held.share_id,
                )
                for held, names in zip(entry.held, ids, strict=True)
            )
        )

    async def unprepare(self, claim: ClaimRef) -> str:
        """Undo it; of what a damaged checkpoint does not know any more there are still files, which go first."""
        if self._store.get(claim.uid) is None:
            await self._writer.remove(claim.uid)
        return await self._timed("unprepare", lambda: self._plugin.unprepare(claim.key, claim.uid))

    async def _timed(self, operation: str, work: Callable[[], Awaitable[str]]) -> str:
        began = self._clock.now()
        error = await work()
        for pause in PAUSES:
            if not error:
                break
            await self._clock.sleep(pause)
            error = await work()
        self._metrics.claim(operation, self._clock.now() - began, done=not error)
        return error


class NodePlugin:
    """The process on one node. `run` it; `trouble` and `figures` say how it is."""

    def __init__(self, settings: Settings, cluster: Cluster, clock: Clock, recorder: Recorder) -> None:
        """Look at the machine and open the checkpoint. Raises Refused where a newer plugin wrote it."""
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        places, policy = settings.places, settings.policy
        self._store = PreparedStore(DRIVER, places.plugins, places.cdi)
        self.findings = self._store.open()
        """What was found wrong with the checkpoint, in words; nothing if it was whole."""
        nvidia, manners = settings.nvidia, settings.manners
        if nvidia is not None:
            manners = replace(manners, vendors=(nvidia.specs,), let_go=nvidia.nvml.let_go)
        sysfs = Sysfs(settings.roots, (nvidia.nvml,) if nvidia is not None else ())
        self.host = NodeHost(sysfs, self._store, clock, policy, manners)
        world = World(cluster, clock, {}, {settings.node: self.host})
        self._runner = Runner(world, Store(policy), app.NODE, recorder)
        self._runner.tell_no_events()
        self._plugin = Plugin(settings.node, world, self._runner, recorder)
        self._metrics = Metrics(DRIVER)
        preparing = Preparing(self._plugin, self.host.writer, clock, self._metrics)
        self._health = HealthSource()
        self._service = Service(DRIVER, preparing, places, self._health)
        self._notices = Notices(cluster, settings.node, DRIVER)
        self._heartbeat = Heartbeat(settings.node, cluster, clock, self.trouble)
        self._heartbeat.duration = policy.heartbeat_seconds
        self._kit: Kit | None = None
        self._starting = "the API server to tell of this node's ComposableResources"

    async def run(self, note: Callable[[str], None]) -> None:
        """Serve until cancelled. `note` hears what the process has to say of itself.

        Raises Rewound in a group when the API goes back in time: who starts then repairs what it has forgotten.
        """
        self._tell(note, self.findings)
        self.host.writer.heard = partial(self._written, note)
        self.host.listen(self._sensed)
        # The kubelet is answered to the last, with eyes open: what is entered last ends first.
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            stack.push_async_callback(self.host.writer.close)
            group.create_task(self._notices.run(), name="notices")
            group.create_task(self.host.run(), name="eyes")
            group.create_task(self._describe(), name="specs")
            group.create_task(self._follow_health(), name="health")
            group.create_task(self._runner.run(await self._kinds(note)), name="runner")
            await self._runner.synced.wait()
            await self._repair()
            group.create_task(self._tidy(), name="tidy")
            group.create_task(self._end_when_rewound(), name="rewound")
            await stack.enter_async_context(self._service)
            if self._settings.policy.local_devices:
                self._kit = await stack.enter_async_context(self._local())
                group.create_task(self._kit.failure(), name="local devices")
            self._starting = ""
            count = len(self.host.seen())
            note(f"serves {self._settings.node}, which has {count} device{'' if count == 1 else 's'}")
            await self._heartbeat.run(note)

    def _tell(self, note: Callable[[str], None], findings: tuple[str, ...]) -> None:
        """Tell what was found wrong with the checkpoint: in the log, and what matters as an Event of the node."""
        for finding in findings:
            note(finding)
        self._notices.damaged(self._store.damage())

    def _written(self, note: Callable[[str], None], done: Done) -> None:
        self._metrics.checkpoint_written(done.writes, done.seconds)
        self._tell(note, self._store.findings())

    async def _describe(self) -> None:
        """Have NVIDIA's tool describe the GPUs there are, whenever others are."""
        if self._settings.nvidia is None:
            return
        news = asyncio.Event()
        self.host.listen(news.set)
        while True:
            await self._settings.nvidia.specs.follow(self.host.devices())
            pause = DESCRIBE_AGAIN if self._settings.nvidia.specs.trouble else NEVER
            with suppress(TimeoutError):
                async with asyncio.timeout(pause if pause < NEVER else None):
                    await news.wait()
            news.clear()

    def _sensed(self) -> None:
        self._runner.sense(self._settings.node)

    async def _follow_health(self) -> None:
        """Tell of devices' health whenever it may have changed: a hundred claims at once are one change."""
        news = asyncio.Event()
        self.host.listen(news.set)
        while True:
            news.clear()
            self._tell_health()
            await news.wait()
            await self._clock.sleep(SETTLE_SECONDS)

    def _tell_health(self) -> None:
        """Have the kubelet tell the owners of pods whose device is gone from under them."""
        facts = Facts(self.host.seen(), self.host.prepared())
        lost = prepare.out_of_sight(facts)
        gone = f"{self._settings.node} does not see it any more: it was pulled out, or fell off the bus"
        told = ((device_id(one.device), one in lost) for one in facts.prepared)
        self._health.tell(
            DeviceHealth(name.pool, name.device, Health.UNHEALTHY, gone)
            if is_lost
            else DeviceHealth(name.pool, name.device, Health.HEALTHY)
            for name, is_lost in told
            if name is not None
        )

    async def _kinds(self, note: Callable[[str], None]) -> Mapping[type[Object], Selection]:
        """Watch what is for this node alone, where the definition lets one choose; an older one does not."""
        ours = Selection(fields={"spec.target_node": self._settings.node})
        told = ""
        while True:
            try:
                await self._heard_of(ours)
            except Retry as retry:
                self._starting = f"the API server: {retry}"
                await self._clock.sleep(retry.after)
            except Refused as refused:
                refusal = await self._refusal()
                if not refusal:
                    note(
                        "ComposableResources cannot be selected by node, so those of all nodes are watched: "
                        f"{refused}; our definition can: jackfield run applies it"
                    )
                    return {ComposableResource: EVERYTHING}
                self._starting = f"ComposableResources to be shown to us: {refusal}"
                if refusal != told:
                    note(f"waiting for {self._starting}; nothing is prepared on this node before that")
                    told = refusal
                await self._clock.sleep(self._settings.policy.poll_seconds)
            else:
                return {ComposableResource: ours}

    async def _refusal(self) -> str:
        """Return why not even all ComposableResources are shown; nothing where they are, and only a choice is not."""
        try:
            await self._heard_of(EVERYTHING)
        except PortError as error:
            return str(error)
        return ""

    async def _heard_of(self, selection: Selection) -> None:
        changes = self._cluster.watch(ComposableResource, selection)
        try:
            await anext(changes)
        finally:
            if isinstance(changes, AsyncGenerator):  # its connection is ended here, not when somebody sweeps
                await changes.aclose()

    async def _repair(self) -> None:
        while self._waits_for_repair(await self._plugin.repair()):
            await self._clock.sleep(REPAIR_AGAIN)

    async def _tidy(self) -> None:
        while True:
            await self._clock.sleep(TIDY_SECONDS)
            await self._plugin.tidy()

    async def _end_when_rewound(self) -> None:
        """End when the API was restored from a backup: who starts compares what is prepared with what it says now.

        Raises Rewound.
        """
        await self._runner.rewound.wait()
        raise Rewound(
            "the API server went back in time; holders have to be repaired before anything is prepared"
        )

    def _waits_for_repair(self, error: str) -> bool:
        self._starting = f"holders to be repaired: {error}"
        return bool(error)

    @property
    def synced(self) -> asyncio.Event:
        """All that this node's devices are lent for has been told."""
        return self._runner.synced

    def follow(self, policy: Policy) -> tuple[str, ...]:
        """Decide by another policy from now on; return what keeps us from it, if anything does."""
        if policy.local_devices != self._settings.policy.local_devices:
            what = "localDevices: is read when the plugin starts; restart it, what is prepared stays prepared"
            return (what,)
        self._settings = replace(self._settings, policy=policy)
        self._heartbeat.duration = policy.heartbeat_seconds
        self.host.follow(policy)
        self._runner.follow(policy)
        return ()

    def _local(self) -> Kit:
        """Return who serves the node's own devices: beside the fabrics', respecting what the other has prepared."""
        settings = self._settings
        shared = settings.nvidia.shared() if settings.nvidia is not None else None
        driver = LocalDriver(self.host, settings.policy, self.resources, shared)
        self.host.beside(PreparedStore(LOCAL_DRIVER, settings.places.plugins, settings.places.cdi))
        self._runner.listeners.append(lambda _: driver.heard())
        return Kit(driver, self._cluster, settings.node, settings.places)

    # --- how it is

    @property
    def view(self) -> View:
        """All that is known of what fabrics lend this node."""
        return self._runner.store

    def resources(self) -> tuple[ComposableResource, ...]:
        """Return what fabrics lend this node, as far as the API has told."""
        return self._runner.store.resources_on(self._settings.node)

    def trouble(self) -> str:
        """Return what keeps pods from being given devices here; nothing if all is well."""
        if self._starting:
            return f"waiting for {self._starting}"
        return self._service.trouble() or (self._kit.trouble if self._kit is not None else "")

    def ready(self) -> str:
        """Return what to say to a readiness probe: what is in the way, a sign of life that is not heard included."""
        return self.trouble() or self._heartbeat.lost

    def figures(self) -> bytes:
        """Return all that is counted, as Prometheus reads it."""
        self._metrics.set(
            prepared_claims=len(self._store.entries()),
            registered=self._service.registered.is_set(),
            devices=len(self.host.seen()),
        )
        if self._kit is None:
            return self._metrics.text()
        self._kit.figures()
        return metrics.joined(self._metrics, self._kit.metrics)

"""Plays a scenario: makes happen what it says, when it says, and judges what came of it.

Knows how a step becomes an API call or a broken device. Must not know what the controllers make of it.
"""

import asyncio
import re
from collections.abc import Callable, Iterator

import msgspec

from jackfield.cluster.nodes.kubelet import RUN_SECONDS
from jackfield.cluster.store import Store as ApiStore
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from jackfield.model.composition import (
    ComposabilityRequest,
    ComposabilityRequestSpec,
    ComposableResource,
    ScalarResource,
)
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, NodeName, Seconds, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements
from jackfield.ports import Clock, Gone, Merge
from jackfield.sim import loop, scenario, story
from jackfield.sim.audit import TITLE, Audit, Summary
from jackfield.sim.chance import Chance
from jackfield.sim.clock import running
from jackfield.sim.scenario import Scenario
from jackfield.sim.spec import Refusals
from jackfield.sim.witness import Witness
from jackfield.sim.world import Outside, SimWorld

NAMESPACE = "default"
PRELUDE_SECONDS = Seconds(30.0)
"""How long a cluster has to come up before the play begins."""
KINDS: dict[str, type[Object]] = {
    "pod": Pod,
    "claim": ResourceClaim,
    "request": ComposabilityRequest,
    "resource": ComposableResource,
    "node": Node,
}


class Outcome(msgspec.Struct, frozen=True):
    """What came of a play."""

    summary: Summary
    lines: tuple[story.Line, ...]
    failures: tuple[str, ...]
    """What was expected and is not so, and what must never be and was."""


Listener = Callable[[story.Line, SimWorld], None]
"""Hears every line as it is told, and may look at the world of that moment."""


class House(msgspec.Struct, frozen=True):
    """Where a play is performed, if not in a simulated hour: in whose time, over which store."""

    clock: Clock
    api: ApiStore
    prelude: Seconds = Seconds(5.0)
    """How long the cluster has to come up before the play begins, and again for what runs already."""


def perform(play: Scenario, seed: int, listener: Listener | None = None) -> Outcome:
    """Play a scenario to its end, in no time. The same scenario and seed give the same story."""

    async def performance() -> Outcome:
        return await Stage(play, Chance(seed), listener).run()

    return loop.run(performance())


class Stage:
    """One performance."""

    def __init__(
        self, play: Scenario, chance: Chance, listener: Listener | None, house: House | None = None
    ) -> None:
        self.clock = house.clock if house is not None else running()
        self.story = story.Story(
            lambda: self.world.store,
            lambda line: listener(line, self.world) if listener is not None else None,
        )
        outside = Outside(house.api) if house is not None else Outside()
        self.world = SimWorld(play.setting, self.clock, chance, self.story, outside)
        self._prelude_seconds = house.prelude if house is not None else PRELUDE_SECONDS
        self.audit = Audit(self.world)
        self._play = play
        self._chance = chance

    async def run(self) -> Outcome:
        """Play it."""
        witness = Witness(self.world, self.story)
        async with self.world:
            await self._prelude()
            began = self.clock.now()
            self.story.begin(began)
            watching = asyncio.get_running_loop().create_task(witness.run())
            steps = [*self._steps()]
            for at, step in sorted(steps, key=lambda pair: pair[0]):
                await self.clock.sleep(Seconds(max(0.0, began + at - self.clock.now())))
                await self._do(step)
            await self._settle(Seconds(began + self._play.until))
            watching.cancel()
            summary = self.audit.summary()
        failures = (*self.audit.violations, *self._judge(summary))
        return Outcome(summary, tuple(self.story.lines), failures)

    async def _prelude(self) -> None:
        """Let the cluster come up, and run what is there before the curtain rises."""
        await self.clock.sleep(self._prelude_seconds)
        for step in self._play.before:
            await self._create_pods(step)
        if self._play.before:
            await self.clock.sleep(self._prelude_seconds)
        self.audit.begin()

    async def _settle(self, end: Seconds) -> None:
        """Let the play go on to its end, or until nothing happens any more."""
        if not self._play.settle:
            await self.clock.sleep(Seconds(max(0.0, end - self.clock.now())))
            return
        said = -1
        while self.clock.now() < end and said != len(self.story.lines):
            said = len(self.story.lines)
            await self.clock.sleep(Seconds(min(self._play.settle, end - self.clock.now())))

    def _steps(self) -> Iterator[tuple[float, scenario.AnyStep]]:
        for step in self._play.play:
            if isinstance(step, scenario.CreateWorkload):
                yield from self._workload(step)
            elif isinstance(step, scenario.Restart):
                for number in range(step.times):
                    yield step.at + number * step.every, step
            else:
                yield step.at, step

    def _workload(self, step: scenario.CreateWorkload) -> Iterator[tuple[float, scenario.AnyStep]]:
        dice = self._chance.branch(f"workload/{step.name}").generator
        at = step.at
        for number in range(1, step.count + 1):
            at += step.every.draw(dice)
            run = max(1.0, step.run.draw(dice))
            yield (
                at,
                scenario.CreatePod(
                    at=at,
                    name=f"{step.name}-{number}",
                    devices=step.devices,
                    device_class=step.device_class,
                    run=run,
                ),
            )

    # --- steps

    async def _do(self, step: scenario.AnyStep) -> None:
        match step:
            case scenario.CreatePod():
                await self._create_pods(step)
            case scenario.CreateClaim():
                spec = _claim_spec(step.devices, step.device_class, step.selector)
                await self.world.cluster.create(
                    ResourceClaim(metadata=ObjectMeta(name=step.name, namespace=NAMESPACE), spec=spec)
                )
            case scenario.CreateRequest():
                await self._request(step)
            case scenario.Delete():
                await self._delete(step)
            case scenario.Cordon():
                await self.world.hardware.machines.cordon(step.node, unschedulable=not step.undo)
            case scenario.Lose():
                await (
                    self.world.hardware.machines.recover(step.node)
                    if step.undo
                    else self.world.hardware.machines.lose(step.node)
                )
            case scenario.Silence():
                await self._silence(step)
            case _:
                self._do_to_machinery(step)

    def _do_to_machinery(self, step: scenario.AnyStep) -> None:
        match step:
            case scenario.Break():
                self._break(step)
            case scenario.Restart(part="controllers"):
                self.world.restart_controllers()
            case scenario.Restart():
                self.world.hardware.restart_plugins()
            case _:
                self._do_behind_our_back(step)

    def _do_behind_our_back(self, step: scenario.AnyStep) -> None:
        for manager in self.world.hardware.managers.values():
            match step:
                case scenario.Take():
                    manager.pool.take(step.model, step.count)
                case scenario.Move() if manager.pool.device(step.device) is not None:
                    self.audit.excuse(step.device)
                    manager.move(step.device, step.node)
                case scenario.Hide():
                    manager.pool.hide(*step.devices)
                case scenario.Sicken() if manager.pool.device(step.device) is not None:
                    manager.pool.set_health(step.device, healthy=step.undo)
                case _:
                    pass  # a workload has become pods; a device may be another fabric's

    async def _create_pods(self, step: scenario.CreatePod) -> None:
        names = (
            [step.name]
            if step.count == 1
            else [f"{step.name}-{number}" for number in range(1, step.count + 1)]
        )
        claims: tuple[PodResourceClaim, ...] = ()
        if step.claim:
            claims = (PodResourceClaim("gpu", resource_claim_name=step.claim),)
        elif step.devices or step.all or step.admin:
            claims = (PodResourceClaim("gpu", resource_claim_template_name=await self._template(step)),)
        for name in names:
            await self.world.cluster.create(_pod(step, name, claims))

    async def _template(self, step: scenario.CreatePod) -> str:
        """Return the template for such pods, made once."""
        words = [
            step.device_class,
            "all" if step.all else str(step.devices),
            *(["admin"] if step.admin else []),
        ]
        if step.selector:
            words.append(f"s{abs(hash_text(step.selector)) % 10_000}")
        name = "-".join(words)
        try:
            await self.world.cluster.read(ResourceClaimTemplate, Key(NAMESPACE, name))
        except Gone:
            exactly = ExactDeviceRequest(
                device_class_name=step.device_class,
                selectors=_selectors(step.selector),
                allocation_mode="All" if step.all else "ExactCount",
                count=max(1, step.devices),
                admin_access=step.admin,
            )
            spec = ResourceClaimSpec(DeviceClaim((DeviceRequest("gpu", exactly),)))
            await self.world.cluster.create(
                ResourceClaimTemplate(
                    metadata=ObjectMeta(name=name, namespace=NAMESPACE),
                    spec=ResourceClaimTemplateSpec(spec=spec),
                )
            )
        return name

    async def _request(self, step: scenario.CreateRequest) -> None:
        resource = ScalarResource(
            type=step.type,
            model=step.model,
            size=step.size,
            force_detach=step.force_detach,
            allocation_policy=step.policy,
            target_node=step.node,
            other_spec=step.other_spec,
        )
        spec = ComposabilityRequestSpec(resource)
        try:
            await self.world.cluster.read(ComposabilityRequest, named(step.name))
        except Gone:
            await self.world.cluster.create(
                ComposabilityRequest(metadata=ObjectMeta(name=step.name), spec=spec)
            )
            return
        body = {"spec": {"resource": {"size": step.size, **msgspec.to_builtins(resource)}}}
        await self.world.cluster.write(Merge(ComposabilityRequest, named(step.name), Version(""), body))

    async def _delete(self, step: scenario.Delete) -> None:
        word, _, rest = step.object.partition("/")
        namespace, _, name = rest.rpartition("/")
        kind = KINDS[word]
        if kind is Node:
            await self.world.hardware.remove_node(NodeName(name))
            return
        grace = 0 if step.force else None
        try:
            await self.world.cluster.delete(kind, Key(namespace, name), Version(""), grace_seconds=grace)
        except Gone:
            return

    async def _silence(self, step: scenario.Silence) -> None:
        if step.undo:
            await self.world.hardware.machines.restore(step.node)
        else:
            self.world.hardware.machines.silence(step.node)

    def _break(self, step: scenario.Break) -> None:
        for manager in self.world.hardware.managers.values():
            old = manager.refusals
            devices = tuple(one for one in old.devices if one != step.device)
            nodes = tuple(one for one in old.nodes if one != step.node)
            if not step.undo:
                devices += (step.device,) if step.device else ()
                nodes += (step.node,) if step.node else ()
            manager.refusals = Refusals(devices, nodes, old.attach, old.detach)

    # --- judging

    def _judge(self, summary: Summary) -> Iterator[str]:
        expect = self._play.expect
        for name, phase in expect.pods.items():
            found = [
                key
                for key in summary.pods
                if key == name or (name.endswith("*") and key.startswith(name[:-1]))
            ]
            wrong = [key for key in found if summary.pods[key] != phase]
            if not found:
                yield f"expected pod {name} to be {phase}; there is none"
            for key in wrong[:5]:
                waiting = self._waits_for(key)
                yield f"expected pod {key} to be {phase}; it is {summary.pods[key]}{waiting}"
        exact = {"attaches": expect.attaches, "detaches": expect.detaches, "nodes_added": expect.nodes_added}
        for field, wanted in exact.items():
            if wanted is not None and getattr(summary, field) != wanted:
                yield f"expected {wanted} {field.replace('_', ' ')}; there were {getattr(summary, field)}"
        if expect.attaches_per_pod_max is not None and summary.attaches_per_pod > expect.attaches_per_pod_max:
            most, seen = expect.attaches_per_pod_max, summary.attaches_per_pod
            yield f"expected at most {most} attaches per pod; there were {seen}"
        if expect.wasted_max is not None and summary.wasted > expect.wasted_max:
            yield f"expected at most {expect.wasted_max} attaches that served nobody; there were {summary.wasted}"
        if expect.pool_full and summary.devices_attached:
            yield f"expected all devices back in the pool; {summary.devices_attached} are attached"
        yield from self._judge_objects()

    def _judge_objects(self) -> Iterator[str]:
        for name, state in self._play.expect.requests.items():
            found = self.world.store.request(name)
            if found is None or found.status.state != state:
                yield f"expected request {name} to be {state}; it is {found.status.state if found else 'gone'}"
        for name, words in self._play.expect.conditions.items():
            said = [line.because for line in self.story.lines if name in line.about]
            said += [one.what for one in self.story.waiting.values() if one.object == name]
            if not any(words in one for one in said):
                yield f"expected {name} to be told {words!r}; it was told {said[-1:] or 'nothing'}"

    def _waits_for(self, pod: str) -> str:
        for claim in self.world.store.all(ResourceClaim):
            waiting = self.story.waiting.get(f"claim/{claim.key}")
            if waiting is not None and claim.metadata.name.startswith(f"{pod}-"):
                return f", waiting for {waiting.what}"
        return ""


def object_name(title: str) -> str:
    """Return a title as Kubernetes lets objects be called: podA is pod-a there."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", title).lower()


def hash_text(text: str) -> int:
    """Return a number for a text, the same in every process."""
    number = 0
    for letter in text:
        number = (number * 31 + ord(letter)) % 1_000_003
    return number


def _selectors(expression: str) -> tuple[DeviceSelector, ...]:
    return (DeviceSelector(CELDeviceSelector(expression)),) if expression else ()


def _claim_spec(count: int, device_class: str, selector: str) -> ResourceClaimSpec:
    exactly = ExactDeviceRequest(device_class_name=device_class, selectors=_selectors(selector), count=count)
    return ResourceClaimSpec(DeviceClaim((DeviceRequest("gpu", exactly),)))


def _pod(step: scenario.CreatePod, name: str, claims: tuple[PodResourceClaim, ...]) -> Pod:
    annotations = {RUN_SECONDS: f"{step.run}"} if step.run else {}
    requests = {"cpu": step.cpu, "memory": step.memory}
    return Pod(
        metadata=ObjectMeta(
            name=object_name(name), namespace=NAMESPACE, labels={TITLE: name}, annotations=annotations
        ),
        spec=PodSpec(
            node_selector={"kubernetes.io/hostname": step.node} if step.node else {},
            containers=(Container("main", "app", ResourceRequirements(requests)),),
            resource_claims=claims,
        ),
    )

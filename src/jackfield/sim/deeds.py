"""Makes happen what a scenario says: a step becomes an API call, or a broken device.

Knows how each step is done. Must not know when, nor what comes of it.
"""

import re

import msgspec

from jackfield.cluster.nodes.kubelet import RUN_SECONDS
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
from jackfield.ports import Conflict, Gone, Merge
from jackfield.sim import scenario
from jackfield.sim.audit import TITLE, Audit
from jackfield.sim.disaster import Disasters
from jackfield.sim.spec import Refusals
from jackfield.sim.world import SimWorld

NAMESPACE = "default"
CLAIM_AGAIN = Seconds(1.0)
"""How often somebody tries who wants a claim of a name that is still taken."""
KINDS: dict[str, type[Object]] = {
    "pod": Pod,
    "claim": ResourceClaim,
    "request": ComposabilityRequest,
    "resource": ComposableResource,
    "node": Node,
}


class Deeds:
    """Does the steps of a scenario to one world."""

    def __init__(self, world: SimWorld, audit: Audit) -> None:
        self._world = world
        self._audit = audit
        self.disasters = Disasters(world, audit)

    async def do(self, step: scenario.AnyStep) -> None:
        """Do it."""
        match step:
            case scenario.CreatePod():
                await self._create_pods(step)
            case scenario.CreateClaim():
                await self._create_claim(step)
            case scenario.CreateRequest():
                await self._request(step)
            case scenario.Delete():
                await self._delete(step)
            case scenario.Cordon() | scenario.Lose() | scenario.Silence():
                await self._do_to_node(step)
            case scenario.Break() | scenario.ChangePolicy():
                self._do_to_machinery(step)
            case scenario.CreateWorkload():
                pass  # it has become pods
            case scenario.Take() | scenario.Move() | scenario.Hide() | scenario.Sicken():
                self._do_behind_our_back(step)
            case _:
                await self.disasters.strike(step)

    def _do_to_machinery(self, step: scenario.Break | scenario.ChangePolicy) -> None:
        if isinstance(step, scenario.Break):
            self._break(step)
        else:
            self._world.follow(step.policy)

    def _do_behind_our_back(
        self, step: scenario.Take | scenario.Move | scenario.Hide | scenario.Sicken
    ) -> None:
        for manager in self._world.hardware.managers.values():
            match step:
                case scenario.Take():
                    manager.pool.take(step.model, step.count)
                case scenario.Move() if manager.pool.device(step.device) is not None:
                    self._audit.excuse(step.device)
                    manager.move(step.device, step.node)
                case scenario.Hide():
                    manager.pool.hide(*step.devices)
                case scenario.Sicken() if manager.pool.device(step.device) is not None:
                    manager.pool.set_health(step.device, healthy=step.undo)
                case _:
                    pass  # a device may be another fabric's

    async def _create_claim(self, step: scenario.CreateClaim) -> None:
        spec = _claim_spec(step.devices, step.device_class, step.selector)
        new = ResourceClaim(metadata=ObjectMeta(name=step.name, namespace=NAMESPACE), spec=spec)
        try:
            await self._world.cluster.create(new)
        except Conflict:  # one of its name is still there
            self.disasters.spawn(self._create_when_gone(new))

    async def _create_when_gone(self, new: ResourceClaim) -> None:
        """Try until there is such a claim that nobody has deleted."""
        while True:
            await self._world.clock.sleep(CLAIM_AGAIN)
            try:
                found = await self._world.cluster.read(ResourceClaim, new.key)
            except Gone:
                await self._world.cluster.create(new)
                return
            if not found.deleting:
                return

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
            await self._world.cluster.create(_pod(step, name, claims))

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
            await self._world.cluster.read(ResourceClaimTemplate, Key(step.namespace, name))
        except Gone:
            exactly = ExactDeviceRequest(
                device_class_name=step.device_class,
                selectors=_selectors(step.selector),
                allocation_mode="All" if step.all else "ExactCount",
                count=max(1, step.devices),
                admin_access=step.admin,
            )
            spec = ResourceClaimSpec(DeviceClaim((DeviceRequest("gpu", exactly),)))
            await self._world.cluster.create(
                ResourceClaimTemplate(
                    metadata=ObjectMeta(name=name, namespace=step.namespace),
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
            await self._world.cluster.read(ComposabilityRequest, named(step.name))
        except Gone:
            await self._world.cluster.create(
                ComposabilityRequest(metadata=ObjectMeta(name=step.name), spec=spec)
            )
            return
        body = {"spec": {"resource": {"size": step.size, **msgspec.to_builtins(resource)}}}
        await self._world.cluster.write(Merge(ComposabilityRequest, named(step.name), Version(""), body))

    async def _delete(self, step: scenario.Delete) -> None:
        word, _, rest = step.object.partition("/")
        namespace, _, name = rest.rpartition("/")
        kind = KINDS[word]
        if kind is Node:
            await self._world.hardware.remove_node(NodeName(name))
            return
        grace = 0 if step.force else None
        try:
            await self._world.cluster.delete(kind, Key(namespace, name), Version(""), grace_seconds=grace)
        except Gone:
            return

    async def _do_to_node(self, step: scenario.Cordon | scenario.Lose | scenario.Silence) -> None:
        machines = self._world.hardware.machines
        match step:
            case scenario.Cordon():
                await machines.cordon(step.node, unschedulable=not step.undo)
            case scenario.Lose():
                await (machines.recover(step.node) if step.undo else machines.lose(step.node))
            case scenario.Silence(undo=True):
                await machines.restore(step.node)
            case scenario.Silence():
                machines.silence(step.node)

    def _break(self, step: scenario.Break) -> None:
        for manager in self._world.hardware.managers.values():
            old = manager.refusals
            devices = tuple(one for one in old.devices if one != step.device)
            nodes = tuple(one for one in old.nodes if one != step.node)
            if not step.undo:
                devices += (step.device,) if step.device else ()
                nodes += (step.node,) if step.node else ()
            manager.refusals = Refusals(devices, nodes, old.attach, old.detach)


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
            name=object_name(name), namespace=step.namespace, labels={TITLE: name}, annotations=annotations
        ),
        spec=PodSpec(
            node_selector={"kubernetes.io/hostname": step.node} if step.node else {},
            containers=(Container("main", "app", ResourceRequirements(requests)),),
            resource_claims=claims,
        ),
    )

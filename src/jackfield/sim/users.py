"""What users of a cluster do: a step of a scenario becomes calls to any API, embedded or real.

Knows pods, claims, requests by hand and their deletion. Must not know when, nor what comes of it.
"""

import re

import msgspec

from jackfield.cluster.nodes.kubelet import RUN_SECONDS, KubeletCluster
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
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
from jackfield.model.names import Key, Version, named
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements
from jackfield.ports import Gone, Merge
from jackfield.sim import scenario
from jackfield.sim.audit.ledger import TITLE

NAMESPACE = "default"
KINDS: dict[str, type[Object]] = {
    "pod": Pod,
    "claim": ResourceClaim,
    "request": ComposabilityRequest,
    "resource": ComposableResource,
}

Use = scenario.CreatePod | scenario.CreateClaim | scenario.CreateRequest | scenario.Delete
"""What a user does. A node is deleted by whoever has the machine."""


class Users:
    """All users of one cluster."""

    def __init__(self, cluster: KubeletCluster) -> None:
        self._cluster = cluster

    async def do(self, step: Use) -> None:
        """Do it; what is to be deleted may be gone."""
        match step:
            case scenario.CreatePod():
                await self._create_pods(step)
            case scenario.CreateClaim():
                spec = _claim_spec(step, ExactDeviceRequest(count=step.devices))
                await self._cluster.create(
                    ResourceClaim(metadata=ObjectMeta(name=step.name, namespace=NAMESPACE), spec=spec)
                )
            case scenario.CreateRequest():
                await self._request(step)
            case scenario.Delete():
                await self._delete(step)

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
            await self._cluster.create(_pod(step, name, claims))

    async def _template(self, step: scenario.CreatePod) -> str:
        """Return the template for such pods, made once."""
        words = [
            step.device_class,
            "all" if step.all else str(step.devices),
            *(["admin"] if step.admin else []),
        ]
        wishes = {"s": step.selector, "p": step.prefer, "m": step.same}
        words += [f"{mark}{abs(hash_text(wish)) % 10_000}" for mark, wish in wishes.items() if wish]
        name = "-".join(words)
        try:
            await self._cluster.read(ResourceClaimTemplate, Key(step.namespace, name))
        except Gone:
            wanted = ExactDeviceRequest(
                allocation_mode="All" if step.all else "ExactCount",
                count=max(1, step.devices),
                admin_access=step.admin,
            )
            await self._cluster.create(
                ResourceClaimTemplate(
                    metadata=ObjectMeta(name=name, namespace=step.namespace),
                    spec=ResourceClaimTemplateSpec(spec=_claim_spec(step, wanted)),
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
            await self._cluster.read(ComposabilityRequest, named(step.name))
        except Gone:
            await self._cluster.create(ComposabilityRequest(metadata=ObjectMeta(name=step.name), spec=spec))
            return
        body = {"spec": {"resource": {"size": step.size, **msgspec.to_builtins(resource)}}}
        await self._cluster.write(Merge(ComposabilityRequest, named(step.name), Version(""), body))

    async def _delete(self, step: scenario.Delete) -> None:
        word, _, rest = step.object.partition("/")
        namespace, _, name = rest.rpartition("/")
        kind = KINDS[word]
        grace = 0 if step.force else None
        try:
            await self._cluster.delete(kind, Key(namespace, name), Version(""), grace_seconds=grace)
        except Gone:
            return


def object_name(title: str) -> str:
    """Return a title as Kubernetes lets objects be called: podA is pod-a there."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", title).lower()


def hash_text(text: str) -> int:
    """Return a number for a text, the same in every process."""
    number = 0
    for letter in text:
        number = (number * 31 + ord(letter)) % 1_000_003
    return number


def _claim_spec(ask: scenario.Ask, wanted: ExactDeviceRequest) -> ResourceClaimSpec:
    """Return a claim for so many devices, of the kind that is asked for."""
    selectors = tuple(DeviceSelector(CELDeviceSelector(one)) for one in (ask.selector,) if one)
    exactly = msgspec.structs.replace(wanted, device_class_name=ask.device_class, selectors=selectors)
    request = DeviceRequest("gpu", exactly)
    if ask.prefer:
        preferred = (DeviceSelector(CELDeviceSelector(ask.prefer)), *selectors)
        request = DeviceRequest(
            "gpu",
            first_available=(
                _alternative("preferred", exactly, preferred),
                _alternative("any", exactly, selectors),
            ),
        )
    constraints = (DeviceConstraint(match_attribute=ask.same),) if ask.same else ()
    return ResourceClaimSpec(DeviceClaim((request,), constraints))


def _alternative(
    name: str, exactly: ExactDeviceRequest, selectors: tuple[DeviceSelector, ...]
) -> DeviceSubRequest:
    return DeviceSubRequest(
        name,
        device_class_name=exactly.device_class_name,
        selectors=selectors,
        allocation_mode=exactly.allocation_mode,
        count=exactly.count,
    )


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

"""CoHDI in a cluster: what is read of it, and the two steps of a migration that are written.

Knows the paths, and that nothing is written that was not read just before. Must not know which step comes next.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from jackfield import codec
from jackfield.codec import Raw, cohdi, dig, objects
from jackfield.codec.definitions import API_VERSION
from jackfield.core import gates as judge
from jackfield.core.derive import CERTIFICATE, CREDENTIALS
from jackfield.kube.answers import Unserved
from jackfield.kube.api import Api
from jackfield.kube.gates import supported
from jackfield.model.cohdi import (
    CONFIG_MAP,
    DRIVER_NAMESPACE,
    ENVIRONMENT,
    OPERATOR_NAMESPACE,
    REPLICAS,
    SECRET,
    STOPPED,
    Installation,
    Settings,
)
from jackfield.model.composition import GROUP, ComposabilityRequest, ComposableResource
from jackfield.ports import Gone

MERGE: Final = "application/merge-patch+json"
NAMESPACES: Final = (DRIVER_NAMESPACE, OPERATOR_NAMESPACE)
CONFIG: Final = f"/api/v1/namespaces/{DRIVER_NAMESPACE}/configmaps/{CONFIG_MAP}"
CREDENTIAL: Final = f"/api/v1/namespaces/{DRIVER_NAMESPACE}/secrets/{SECRET}"
WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
OURS: Final = "/apis/coordination.k8s.io/v1/namespaces/jackfield-controllers/leases"
BOOKS: Final = f"/apis/{GROUP}/v1alpha1"
DEFINITIONS: Final = f"/apis/{API_VERSION}/customresourcedefinitions"


async def settings(api: Api, told: Mapping[str, str]) -> Settings:
    """Return all that CoHDI goes by, without any secret; `told` is our own environment."""
    found = cohdi.config(await _one(api, CONFIG))
    keys = dig(await _one(api, CREDENTIAL), "data") or {}
    hosts = dict(cohdi.host(one) for one in await _all(api, "/apis/metal3.io/v1alpha1/baremetalhosts"))
    nodes = await _all(api, "/api/v1/nodes")
    return Settings(
        there=found.there,
        models=found.models,
        label_prefix=found.label_prefix,
        faults=found.faults,
        remembered=found.remembered,
        told=told,
        credentials=tuple(sorted(keys)),
        programs=tuple(cohdi.program(one) for one in await _programs(api)),
        workers=tuple(sorted((cohdi.worker(one) for one in nodes), key=lambda one: one.name)),
        hosts=hosts,
    )


async def credentials(api: Api) -> tuple[dict[str, str], str]:
    """Return what proves who CoHDI is to its manager, by name, and the certificate of who vouches for it."""
    secret = await _one(api, CREDENTIAL)
    found = {name: cohdi.secret(secret, name) for name in (*CREDENTIALS, CERTIFICATE)}
    return {name: found[name] for name in CREDENTIALS}, found[CERTIFICATE]


async def installation(api: Api) -> Installation:
    """Return CoHDI as it stands: its settings, its books, and who manages it. Raises BadRelease."""
    found = judge.findings(await supported(api))
    definitions = [one for _, name in cohdi.NEEDED[:2] if (one := await _one(api, f"{DEFINITIONS}/{name}"))]
    record = await _release(api, definitions)
    return Installation(
        await settings(api, {}),
        gates=tuple(str(one) for one in found if one.grave),
        definitions=tuple(str(dig(one, "metadata", "name")) for one in definitions),
        release=cohdi.release(cohdi.opened(record)) if record is not None else None,
        asks_webhook=any(not _stopped(one) for hook in await _webhooks(api) for one in _ours(hook)),
        resources=codec.decode_many(
            ComposableResource, await _all(api, f"{BOOKS}/{ComposableResource.plural}")
        )[0],
        requests=codec.decode_many(
            ComposabilityRequest, await _all(api, f"{BOOKS}/{ComposabilityRequest.plural}")
        )[0],
        replicas=tuple(str(dig(one, "metadata", "name")) for one in await _all(api, OURS)),
    )


# --- the steps


async def protect(api: Api, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Have what we need outlive CoHDI's uninstall; return what was done. Raises BadRelease."""
    done = await _keep(api, keep=True)
    await api.raw(
        "PATCH", CONFIG, {"data": {ENVIRONMENT: cohdi.remembering(environment)}}, content_type=MERGE
    )
    return (*done, f"ConfigMap {DRIVER_NAMESPACE}/{CONFIG_MAP} remembers what CoHDI's Deployments were told")


async def expose(api: Api) -> tuple[str, ...]:
    """Undo `protect`."""
    done = await _keep(api, keep=False)
    await api.raw("PATCH", CONFIG, {"data": {ENVIRONMENT: None}}, content_type=MERGE)
    return (*done, f"ConfigMap {DRIVER_NAMESPACE}/{CONFIG_MAP} is as CoHDI wrote it")


async def _keep(api: Api, *, keep: bool) -> tuple[str, ...]:
    definitions = [one for _, name in cohdi.NEEDED[:2] if (one := await _one(api, f"{DEFINITIONS}/{name}"))]
    secret = await _release(api, definitions)
    if secret is None:
        return ("no release of Helm manages the definitions: there is nothing to protect them from",)
    changed = cohdi.keeping(cohdi.opened(secret), keep=keep)
    metadata = secret["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/secrets/{metadata['name']}"
    version = {"metadata": {"resourceVersion": metadata["resourceVersion"]}}
    await api.raw("PATCH", path, {**version, "data": {"release": cohdi.packed(changed)}}, content_type=MERGE)
    release = cohdi.release(changed)
    verb = "leaves" if keep else "takes"
    names = release.kept if keep else release.lost
    return tuple(f"helm uninstall {release.name} {verb} {one}" for one in names)


async def stop(api: Api) -> tuple[str, ...]:
    """Have CoHDI's Deployments no replicas, and its webhook not asked; return what was done."""
    done = []
    for one in await _programs(api):
        replicas = dig(one, "spec", "replicas")
        if replicas != 0:
            note = {"metadata": {"annotations": {REPLICAS: str(replicas)}}, "spec": {"replicas": 0}}
            done.append(await _scaled(api, one, note, "stopped"))
    return (*done, *await _listen(api, asked=False))


async def resume(api: Api) -> tuple[str, ...]:
    """Undo `stop`: the webhook first, since CoHDI's requests are to be judged again."""
    done = [*await _listen(api, asked=True)]
    for one in await _programs(api):
        before = str(dig(one, "metadata", "annotations", REPLICAS) or "")
        if before.isdecimal():
            note = {"metadata": {"annotations": {REPLICAS: None}}, "spec": {"replicas": int(before)}}
            done.append(await _scaled(api, one, note, f"runs again with {before}"))
    return tuple(done)


async def _scaled(api: Api, deployment: Raw, patch: Raw, words: str) -> str:
    space, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    await api.raw("PATCH", f"{_deployments(space)}/{name}", patch, content_type=MERGE)
    return f"Deployment {space}/{name} {words}"


async def _listen(api: Api, *, asked: bool) -> tuple[str, ...]:
    """Have CoHDI's webhook asked, or not: while its operator is stopped it would refuse every request."""
    done = []
    for hook in await _webhooks(api):
        changed = [
            _asked(one, asked=asked) if one in _ours(hook) else one for one in objects(hook["webhooks"])
        ]
        if changed != hook["webhooks"]:
            name = hook["metadata"]["name"]
            version = {"metadata": {"resourceVersion": hook["metadata"]["resourceVersion"]}}
            await api.raw("PATCH", f"{WEBHOOKS}/{name}", {**version, "webhooks": changed}, content_type=MERGE)
            done.append(f"webhook {name} is {'asked again' if asked else 'not asked'}")
    return tuple(done)


def _asked(webhook: Raw, *, asked: bool) -> Raw:
    others = [one for one in objects(webhook.get("matchConditions")) if one.get("name") != STOPPED]
    never = [] if asked else [{"name": STOPPED, "expression": "false"}]
    return {**webhook, "matchConditions": [*others, *never]}


def _stopped(webhook: Raw) -> bool:
    return any(one.get("name") == STOPPED for one in objects(webhook.get("matchConditions")))


def _ours(hook: Raw) -> list[Raw]:
    """Return the webhooks of a configuration that are asked about CoHDI's kinds."""
    return [
        one
        for one in objects(hook.get("webhooks"))
        if any(GROUP in (rule.get("apiGroups") or ()) for rule in objects(one.get("rules")))
    ]


# --- reading


def _deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


async def _programs(api: Api) -> list[Raw]:
    """Return CoHDI's Deployments; a namespace that is gone has none, and with it went our right to ask."""
    there = [space for space in NAMESPACES if await _one(api, f"/api/v1/namespaces/{space}") is not None]
    return [one for space in there for one in await _all(api, _deployments(space))]


async def _webhooks(api: Api) -> list[Raw]:
    return [one for one in await _all(api, WEBHOOKS) if _ours(one)]


async def _release(api: Api, definitions: Iterable[Raw]) -> Raw | None:
    """Return the Secret of the release that manages the definitions, as it was last deployed."""
    for one in definitions:
        notes = dig(one, "metadata", "annotations")
        name, space = (dig(notes, f"meta.helm.sh/release-{what}") for what in ("name", "namespace"))
        if name and space:
            chosen = {"labelSelector": f"owner=helm,name={name},status=deployed"}
            found = await _all(api, f"/api/v1/namespaces/{space}/secrets", chosen)
            return max(found, key=_revision, default=None)
    return None


def _revision(secret: Raw) -> int:
    number = str(dig(secret, "metadata", "labels", "version") or "")
    return int(number) if number.isdecimal() else 0


async def _one(api: Api, path: str) -> Raw | None:
    try:
        return await api.raw("GET", path)
    except (Gone, Unserved):
        return None


async def _all(api: Api, path: str, params: Mapping[str, str] | None = None) -> list[Raw]:
    """Return all objects at a path; none where the kind is not served."""
    try:
        answer = await api.raw("GET", path, params=params or {})
    except Unserved:
        return []
    return objects(answer.get("items"))

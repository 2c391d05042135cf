"""`jackfield gather`: all that a bug report needs, in one file, without secrets.

Knows what is worth having and where it is read. Must not know what counts as a secret: `core.redact` does.
"""

import asyncio
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import msgspec
import yaml

import jackfield
from jackfield.cli import live, status
from jackfield.cli.output import FAILED, OK, UNUSABLE
from jackfield.codec import Raw
from jackfield.core import redact
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.model.names import rfc3339
from jackfield.ports import PortError

KINDS: Final[Mapping[str, str]] = {
    "composabilityrequests": "/apis/cro.hpsys.ibm.ie.com/v1alpha1/composabilityrequests",
    "composableresources": "/apis/cro.hpsys.ibm.ie.com/v1alpha1/composableresources",
    "definitions": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "deviceclasses": "/apis/resource.k8s.io/v1/deviceclasses",
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
    "resourceclaimtemplates": "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "events": "/api/v1/events",
    "heartbeats": "/apis/coordination.k8s.io/v1/namespaces/jackfield-node/leases",
    "replicas": "/apis/coordination.k8s.io/v1/namespaces/jackfield-controllers/leases",
}
"""What is read, by the name of its file. Secrets and ConfigMaps are not among it."""
OURS: Final = "app.kubernetes.io/name=jackfield"
"""The label of our own pods, whose logs are taken."""
LOG_LINES: Final = "5000"
LOG_PODS_MAX: Final = 50
METRICS_PORT: Final = 8080
SECONDS_MAX: Final = 60.0
"""How long one question may take."""


def run(given: live.Given, target: Path | None) -> int:
    """Write the bundle; return the exit status."""
    try:
        bundle = asyncio.run(_gathered(given))
    except live.UNREADABLE as error:
        click.echo(f"jackfield gather: {error}", err=True)
        return UNUSABLE
    path = target or Path(f"jackfield-{bundle.at.replace(':', '').replace('-', '')}.tar.gz")
    try:
        write(path, bundle.packed())
    except OSError as error:
        click.echo(f"jackfield gather: {path} cannot be written: {error.strerror}", err=True)
        return FAILED
    click.echo(f"wrote {path}: {len(bundle.files)} files, {path.stat().st_size // 1024 + 1} KiB")
    for trouble in bundle.troubles:
        click.echo(f"missing: {trouble}")
    click.echo(
        "Secrets were not read, and what looks like one is left out. Names of your pods, namespaces and nodes"
    )
    click.echo("are in it: look through it before you send it.")
    return OK


def write(path: Path, content: bytes) -> None:
    """Write a file for its owner alone; what stands there already may be somebody's only report."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


class Bundle:
    """Files under way, and what could not be had."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.files: dict[str, str] = {}
        self.troubles: list[str] = []

    def put(self, name: str, content: object) -> None:
        """Take a file: a text as it is, anything else as JSON; without secrets."""
        if isinstance(content, str):
            self.files[name] = redact.text(content)
        else:
            plain = redact.value(msgspec.to_builtins(content))
            self.files[name] = msgspec.json.format(msgspec.json.encode(plain), indent=1).decode() + "\n"

    def packed(self) -> bytes:
        """Return the archive; the same files give the same bytes."""
        self.files["README.txt"] = _readme(self)
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w:gz") as archive:
            for name, content in sorted(self.files.items()):
                data = content.encode()
                member = tarfile.TarInfo(f"jackfield-gather/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return target.getvalue()


def _readme(bundle: Bundle) -> str:
    missing = "\n".join(f"- {one}" for one in bundle.troubles) or "- nothing"
    return (
        f"Gathered by jackfield {jackfield.__version__} at {bundle.at}.\n\n"
        "status.txt       how things stood, as jackfield status --all prints it\n"
        "overview.json    the same for machines\n"
        "inventories.json what the fabric managers showed\n"
        "policy.yaml      the policy; fabrics.yaml: where the managers are\n"
        "objects/         what the API server has, by kind\n"
        "logs/, metrics/  of our own pods\n\n"
        f"Missing:\n{missing}\n"
    )


async def _gathered(given: live.Given) -> Bundle:
    seen = await live.look(given)
    bundle = Bundle(rfc3339(seen.at))
    for fabric, words in seen.silent.items():
        bundle.troubles.append(f"the inventory of fabric {fabric}: {words}")
    found = status.seen_as_a_whole(seen)
    troubles = tuple(status.troubles(seen, found))
    bundle.put("status.txt", "\n".join([*status.lines(found, troubles, limit=None), ""]))
    bundle.put("overview.json", {**msgspec.to_builtins(found), "troubles": troubles})
    bundle.put("inventories.json", [seen.store.inventory(one) for one in seen.store.fabrics()])
    for name, path in (("policy.yaml", given.policy), ("fabrics.yaml", given.fabrics)):
        bundle.files[name] = yaml.safe_dump(redact.value(yaml.safe_load(path.read_text())), sort_keys=False)
    reached = connection.load(given.kubeconfig, given.context, os.environ)
    async with KubeCluster(reached, "jackfield-gather") as cluster:
        await _read_objects(cluster, bundle)
        await _read_pods(cluster, bundle)
    return bundle


def _words(error: Exception) -> str:
    return str(error) or f"no answer within {SECONDS_MAX:.0f} s"


async def _read_objects(cluster: KubeCluster, bundle: Bundle) -> None:
    wanted = {"version.json": "/version", **{f"objects/{name}.json": path for name, path in KINDS.items()}}
    for name, path in wanted.items():
        try:
            async with asyncio.timeout(SECONDS_MAX):
                bundle.put(name, _relevant(await cluster.raw("GET", path)))
        except (PortError, TimeoutError) as error:
            bundle.troubles.append(f"{name}: {_words(error)}")


def _relevant(listed: Raw) -> Raw:
    """Leave out pods that have to do with nothing of ours: neither with claims, nor one of our own."""
    if listed.get("kind") != "PodList":
        return listed
    key, _, value = OURS.partition("=")
    kept = [
        one
        for one in listed.get("items", [])
        if one["spec"].get("resourceClaims") or one["metadata"].get("labels", {}).get(key) == value
    ]
    return {**listed, "items": kept}


async def _read_pods(cluster: KubeCluster, bundle: Bundle) -> None:
    """Take logs and metrics of our own pods, by way of the API server."""
    try:
        listed = await cluster.raw("GET", "/api/v1/pods", params={"labelSelector": OURS})
    except PortError as error:
        bundle.troubles.append(f"our own pods: {error}")
        return
    pods = [one["metadata"] for one in listed.get("items", [])]
    if len(pods) > LOG_PODS_MAX:
        bundle.troubles.append(f"logs of {len(pods) - LOG_PODS_MAX} of our {len(pods)} pods: too many")
    for one in pods[:LOG_PODS_MAX]:
        name, base = (
            f"{one['namespace']}.{one['name']}",
            f"/api/v1/namespaces/{one['namespace']}/pods/{one['name']}",
        )
        for file, path, params in (
            (f"logs/{name}.log", f"{base}/log", {"tailLines": LOG_LINES, "timestamps": "true"}),
            (f"metrics/{name}.txt", f"{base}:{METRICS_PORT}/proxy/metrics", {}),
        ):
            try:
                async with asyncio.timeout(SECONDS_MAX):
                    bundle.put(file, await cluster.text(path, params))
            except (PortError, TimeoutError) as error:
                bundle.troubles.append(f"{file}: {_words(error)}")

"""What CoHDI's chart leaves in a cluster, read: its ConfigMap, its Deployments, its nodes, its release of Helm.

Knows how they are spelt. Must not know what follows from them.
"""

import base64
import binascii
import gzip
from collections.abc import Iterator, Mapping

import msgspec
import yaml

from jackfield.codec.decoding import place
from jackfield.codec.wire import Raw, dig, objects
from jackfield.model.cohdi import (
    CONFIG_MAP,
    DRIVER_NAMESPACE,
    ENVIRONMENT,
    KEEP,
    MACHINE,
    SECRET,
    Program,
    Release,
    Settings,
    Worker,
)
from jackfield.model.composition import GROUP
from jackfield.model.names import NodeName
from jackfield.model.policy import DeviceModel

MODELS = "device-info"
PREFIX = "label-prefix"
NEEDED = (
    ("CustomResourceDefinition", f"composabilityrequests.{GROUP}"),
    ("CustomResourceDefinition", f"composableresources.{GROUP}"),
    ("ConfigMap", CONFIG_MAP),
    ("Secret", SECRET),
    ("Namespace", DRIVER_NAMESPACE),
)
"""What must outlive CoHDI's release: its books and its settings, and the namespace that these lie in."""
SEPARATOR = "\n---\n"


class BadRelease(ValueError):  # noqa: N818 - a finding about what Helm wrote
    """A release that cannot be read; the message says why."""


def config(raw: Raw | None) -> Settings:
    """Return the settings in CoHDI's ConfigMap; what cannot be understood is among its faults."""
    if raw is None:
        return Settings()
    data = {str(key): str(value) for key, value in (dig(raw, "data") or {}).items()}
    models, faults = _models(data.get(MODELS, ""))
    remembered, more = _remembered(data.get(ENVIRONMENT, ""))
    return Settings(
        there=True,
        models=models,
        label_prefix=data.get(PREFIX, ""),
        remembered=remembered,
        faults=(*faults, *more),
    )


def _models(text: str) -> tuple[tuple[DeviceModel, ...], tuple[str, ...]]:
    if not text.strip():
        return (), (f"{MODELS} is missing or empty, so that no model is known",)
    try:
        return msgspec.convert(yaml.safe_load(text), tuple[DeviceModel, ...]), ()
    except yaml.YAMLError as error:
        return (), (f"{MODELS} is not YAML: {error}",)
    except msgspec.ValidationError as error:
        where, what = place(error)
        return (), (f"{MODELS}{where}: {what}",)


def _remembered(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, dict[str, str]), ()
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        return {}, (f"{ENVIRONMENT} is no map of texts: {error}",)


def remembering(environment: Mapping[str, str]) -> str:
    """Return what CoHDI's components were told, as its ConfigMap is to keep it."""
    return yaml.safe_dump(dict(environment))


def program(raw: Raw) -> Program:
    """Return what a Deployment says."""
    pod = dig(raw, "spec", "template", "spec")
    told = (one for container in objects(dig(pod, "containers")) for one in objects(container.get("env")))
    replicas = dig(raw, "spec", "replicas")
    return Program(
        str(dig(raw, "metadata", "namespace") or ""),
        str(dig(raw, "metadata", "name") or ""),
        replicas=replicas if isinstance(replicas, int) else 1,
        environment={str(one.get("name")): str(one["value"]) for one in told if one.get("value")},
        aliases={
            str(host): str(one.get("ip"))
            for one in objects(dig(pod, "hostAliases"))
            for host in one.get("hostnames") or ()
        },
    )


def worker(raw: Raw) -> Worker:
    """Return what a Node says."""
    labels = dig(raw, "metadata", "labels") or {}
    return Worker(
        NodeName(str(dig(raw, "metadata", "name"))),
        {str(key): str(value) for key, value in labels.items()},
        str(dig(raw, "spec", "providerID") or ""),
    )


def host(raw: Raw) -> tuple[str, str]:
    """Return a BareMetalHost's uid, and the machine that it is to the fabric manager; empty if it does not say."""
    machine = dig(raw, "metadata", "annotations", MACHINE) or ""
    return str(dig(raw, "metadata", "uid") or ""), str(machine)


def secret(raw: Raw | None, name: str) -> str:
    """Return what a Secret holds under a name; empty if there is nothing, or nothing that is text."""
    try:
        return base64.b64decode(str(dig(raw, "data", name) or "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


# --- Helm's record of what it installed


def opened(secret: Raw) -> Raw:
    """Return the release in a Secret of Helm's. Raises BadRelease."""
    try:
        packed = base64.b64decode(base64.b64decode(str(dig(secret, "data", "release") or "")))
        return msgspec.json.decode(gzip.decompress(packed), type=Raw)
    except (binascii.Error, OSError, EOFError, msgspec.DecodeError) as error:
        name = dig(secret, "metadata", "name")
        raise BadRelease(f"Secret {name} is no release of Helm that we understand: {error}") from error


def packed(release: Raw) -> str:
    """Return a release as its Secret holds it."""
    text = gzip.compress(msgspec.json.encode(release), mtime=0)
    return base64.b64encode(base64.b64encode(text)).decode()


def release(record: Raw) -> Release:
    """Return what of a release we need, and whether it stays when it is uninstalled."""
    needed = [(name, annotations) for name, annotations in _documents(str(record.get("manifest") or ""))]
    return Release(
        str(record.get("namespace") or ""),
        str(record.get("name") or ""),
        tuple(name for name, notes in needed if notes.get(KEEP) != "keep"),
        tuple(name for name, notes in needed if notes.get(KEEP) == "keep"),
    )


def _documents(manifest: str) -> Iterator[tuple[str, Raw]]:
    for text in _parts(manifest):
        found = _needed(text)
        if found is not None:
            yield (
                f"{found['kind']}/{found['metadata']['name']}",
                dict(dig(found, "metadata", "annotations") or {}),
            )


def keeping(record: Raw, *, keep: bool) -> Raw:
    """Return a release whose uninstall leaves what we need; or takes it, as it was before."""
    parts = [_marked(text, keep=keep) for text in _parts(str(record.get("manifest") or ""))]
    return {**record, "manifest": SEPARATOR.join(parts)}


def _parts(manifest: str) -> list[str]:
    return f"\n{manifest}".replace("\n---\r\n", SEPARATOR).split(SEPARATOR)


def _needed(text: str) -> Raw | None:
    """Return a document of a manifest, if it is one that we need."""
    if not any(name in text for _, name in NEEDED):
        return None  # most are long, and none of our business
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    named = (dig(found, "kind"), dig(found, "metadata", "name"))
    return found if named in NEEDED else None


def _marked(text: str, *, keep: bool) -> str:
    found = _needed(text)
    if found is None:
        return text
    notes = {
        key: value for key, value in (dig(found, "metadata", "annotations") or {}).items() if key != KEEP
    }
    metadata = {**found["metadata"], "annotations": {**notes, **({KEEP: "keep"} if keep else {})}}
    if not metadata["annotations"]:
        del metadata["annotations"]
    comments = [line for line in text.splitlines() if line.startswith("#")]
    return "\n".join((*comments, yaml.safe_dump({**found, "metadata": metadata}, sort_keys=False)))

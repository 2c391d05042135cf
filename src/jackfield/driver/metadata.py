"""What a container can read of its devices: one file per request (KEP-5304), mounted by CDI.

Knows the shape of the file and its place in the container. Must not know where it lies on the node.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from jackfield.driver.entry import Entry, Held, Network, base
from jackfield.model.device import DeviceAttribute
from jackfield.model.meta import Wire

CONTAINER_FOLDER: Final = "/var/run/kubernetes.io/dra-device-attributes"
VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
"""Newest first: a reader takes the first that it knows. Both spell the fields below alike."""


def files(driver: str, entry: Entry, generation: int) -> Mapping[str, bytes]:
    """Return the content of the file of each request; the generation tells a reader that something changed."""
    served: dict[str, dict[str, list[Held]]] = {}
    for held in entry.held:
        for request in held.requests:
            served.setdefault(base(request), {}).setdefault(request, []).append(held)
    return {request: _stream(driver, entry, generation, names) for request, names in served.items()}


def container_path(driver: str, entry: Entry, request: str) -> str:
    """Return where the container finds the file of a request."""
    if entry.pod_claim_name:
        claim = f"resourceclaimtemplates/{entry.pod_claim_name}"
    else:
        claim = f"resourceclaims/{entry.claim.name}"
    return f"{CONTAINER_FOLDER}/{claim}/{base(request)}/{driver}-metadata.json"


def _stream(driver: str, entry: Entry, generation: int, served: Mapping[str, list[Held]]) -> bytes:
    requests = tuple(
        _Request(
            name, tuple(_Device(driver, one.pool, one.device, one.attributes, one.network) for one in held)
        )
        for name, held in served.items()
    )
    meta = _Meta(entry.claim.name, entry.claim.namespace, entry.uid, generation)
    encoder = msgspec.json.Encoder(order="deterministic")
    documents = (
        _DeviceMetadata("DeviceMetadata", version, meta, entry.pod_claim_name, requests)
        for version in VERSIONS
    )
    return b"".join(msgspec.json.format(encoder.encode(one), indent=2) + b"\n" for one in documents)


class _Device(Wire, frozen=True):
    driver: str
    pool: str
    name: str
    attributes: Mapping[str, DeviceAttribute] = {}
    network_data: Network | None = None


class _Request(Wire, frozen=True):
    name: str
    devices: tuple[_Device, ...]


class _Meta(Wire, frozen=True):
    name: str
    namespace: str
    uid: str
    generation: int


class _DeviceMetadata(Wire, frozen=True):
    kind: str
    api_version: str
    metadata: _Meta
    pod_claim_name: str = ""
    requests: tuple[_Request, ...] = ()

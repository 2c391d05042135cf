"""CoHDI as it is found in a cluster: the names that its chart gives, and what is read of them.

Knows where its settings lie and how they are spelt. Must not know what follows from them, nor how they are read.
"""

from collections.abc import Mapping

import msgspec

from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.names import NodeName
from jackfield.model.policy import DeviceModel

DRIVER_NAMESPACE = "composable-dra"
"""Where its DRA driver and its scaler run, and where its settings lie."""
OPERATOR_NAMESPACE = "composable-resource-operator-system"
"""Where its operator runs."""
CONFIG_MAP = "composable-dra-dds"
"""The ConfigMap with its models and its label prefix."""
SECRET = "composable-dra-secret"  # noqa: S105 - the name of a Secret
"""The Secret with the credentials for the fabric manager, and the certificate of who vouches for it."""
READY_TO_DETACH = "cohdi.io/ready-to-detach-device-id"
"""Label of a resource that its operator made to detach a device that it did not attach."""
MACHINE = "cluster-manager.cdi.io/machine"
"""Annotation of a BareMetalHost: the machine, as the fabric manager knows it."""
KEEP = "helm.sh/resource-policy"
"""Annotation of an object in a release of Helm: `keep` leaves it when the release is uninstalled."""


REPLICAS = "jackfield.dev/replicas"
"""Annotation of a Deployment of CoHDI's that was stopped: how many replicas it had."""
STOPPED = "jackfield.dev/stopped"
"""The match condition under which CoHDI's webhook is asked no more."""
ENVIRONMENT = "jackfield-environment"
"""A key of its ConfigMap: what its Deployments were told, so that it outlives them."""


class Program(msgspec.Struct, frozen=True):
    """A Deployment of CoHDI's: what it was told, and whether it runs."""

    namespace: str
    name: str
    replicas: int = 1
    environment: Mapping[str, str] = {}
    aliases: Mapping[str, str] = {}
    """Addresses by host name, as its pods know them."""


class Worker(msgspec.Struct, frozen=True):
    """A node, as far as CoHDI goes by it."""

    name: NodeName
    labels: Mapping[str, str] = {}
    provider_id: str = ""


class Settings(msgspec.Struct, frozen=True):
    """All that CoHDI goes by, as it stands in a cluster."""

    there: bool = False
    """Whether its ConfigMap is there."""
    models: tuple[DeviceModel, ...] = ()
    label_prefix: str = ""
    faults: tuple[str, ...] = ()
    """What of the ConfigMap cannot be understood."""
    remembered: Mapping[str, str] = {}
    """What its Deployments were told, as it was written down before they went."""
    told: Mapping[str, str] = {}
    """What our own process was told under CoHDI's names; it stands above all else."""
    credentials: tuple[str, ...] = ()
    """The keys of its Secret. What they hold is nobody's business here."""
    programs: tuple[Program, ...] = ()
    workers: tuple[Worker, ...] = ()
    hosts: Mapping[str, str] = {}
    """Machines by the uid of their BareMetalHost, where Metal3 is there."""


class Release(msgspec.Struct, frozen=True):
    """A release of Helm: what an uninstall of it takes away, of all that we need."""

    namespace: str
    name: str
    lost: tuple[str, ...] = ()
    """Objects that go with it, `Kind/name`."""
    kept: tuple[str, ...] = ()
    """Objects that stay."""


class Installation(msgspec.Struct, frozen=True):
    """CoHDI in a cluster: its settings, its books, and who manages it."""

    settings: Settings
    gates: tuple[str, ...] = ()
    """What the cluster lacks without which nothing can be handed over."""
    definitions: tuple[str, ...] = ()
    """The definitions of its kinds that are there."""
    release: Release | None = None
    asks_webhook: bool = False
    """Whether its webhook is asked about requests."""
    resources: tuple[ComposableResource, ...] = ()
    requests: tuple[ComposabilityRequest, ...] = ()
    replicas: tuple[str, ...] = ()
    """Our own replicas that have a Lease."""

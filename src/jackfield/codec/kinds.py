"""The registry of kinds: which type stands for which group, version, kind and plural.

Knows every Object of the model by its names on the wire. Must not know what the objects say.
"""

from functools import cache

import msgspec

from jackfield.model.account import ServiceAccount
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.config import ConfigMap, Secret
from jackfield.model.definition import CustomResourceDefinition
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice
from jackfield.model.taint import DeviceTaintRule


class Kind(msgspec.Struct, frozen=True):
    """A kind of object, by all its names."""

    type: type[Object]
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    has_status: bool
    """Whether it has a status subresource."""

    @property
    def api_version(self) -> str:
        """Group and version as objects spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as error messages spell it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


TYPES: tuple[type[Object], ...] = (
    Namespace,
    Node,
    Pod,
    Event,
    ConfigMap,
    Secret,
    ServiceAccount,
    Lease,
    DeviceClass,
    ResourceSlice,
    ResourceClaim,
    ResourceClaimTemplate,
    DeviceTaintRule,
    CustomResourceDefinition,
    ComposabilityRequest,
    ComposableResource,
)


@cache
def of(kind: type[Object]) -> Kind:
    """Return the names of a type."""
    return Kind(
        type=kind,
        group=kind.group,
        version=kind.version,
        kind=kind.__name__,
        plural=kind.plural,
        namespaced=kind.namespaced,
        has_status="status" in kind.__struct_fields__,
    )


KINDS: tuple[Kind, ...] = tuple(of(one) for one in TYPES)
_BY_KIND = {(one.api_version, one.kind): one for one in KINDS}
_BY_PLURAL = {(one.group, one.version, one.plural): one for one in KINDS}


def by_kind(api_version: str, kind: str) -> Kind | None:
    """Return the kind an object says it is of, or None where we have no type for it."""
    return _BY_KIND.get((api_version, kind))


def by_plural(group: str, version: str, plural: str) -> Kind | None:
    """Return the kind behind a path of the API, or None where we have no type for it."""
    return _BY_PLURAL.get((group, version, plural))

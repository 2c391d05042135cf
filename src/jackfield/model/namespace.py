"""Namespace: where other objects live.

Knows that it has a name, and whether it is being emptied. Must not know what lives in it.
"""

from typing import ClassVar

from jackfield.model.meta import Condition, Object, Wire

ACTIVE = "Active"
TERMINATING = "Terminating"


class NamespaceSpec(Wire, frozen=True, gc=False):
    """Who has to agree before a namespace goes."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Wire, frozen=True, gc=False):
    """Whether it is being emptied, and what stands in the way of that."""

    phase: str = ACTIVE
    conditions: tuple[Condition, ...] = ()


class Namespace(Object, frozen=True, gc=False, kw_only=True):
    """A place for objects that have one."""

    plural: ClassVar[str] = "namespaces"

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()

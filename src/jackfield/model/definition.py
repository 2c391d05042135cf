"""CustomResourceDefinition: a kind that the API server does not know by itself.

Knows the apiextensions/v1 fields by which a definition is found and known to be in force. Must not know schemas.
"""

from typing import ClassVar

from jackfield.model.meta import Condition, Object, Wire


class DefinitionNames(Wire, frozen=True, gc=False):
    """How the kind is called."""

    plural: str = ""
    kind: str = ""


class DefinitionSpec(Wire, frozen=True, gc=False):
    """What is defined."""

    group: str = ""
    names: DefinitionNames = DefinitionNames()
    scope: str = ""


class DefinitionStatus(Wire, frozen=True, gc=False):
    """Whether it is in force."""

    conditions: tuple[Condition, ...] = ()


class CustomResourceDefinition(Object, frozen=True, gc=False, kw_only=True):
    """A kind, defined."""

    group: ClassVar[str] = "apiextensions.k8s.io"
    plural: ClassVar[str] = "customresourcedefinitions"

    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

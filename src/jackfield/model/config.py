"""ConfigMap and Secret: what others keep for their pods.

Knows the core/v1 fields. Must not know what anybody keeps in them.
"""

from collections.abc import Mapping
from typing import ClassVar

from jackfield.model.meta import Object


class ConfigMap(Object, frozen=True, gc=False, kw_only=True):
    """Settings, by key."""

    plural: ClassVar[str] = "configmaps"
    namespaced: ClassVar[bool] = True

    data: Mapping[str, str] = {}
    binary_data: Mapping[str, str] = {}
    """Bytes, in base64."""
    immutable: bool = False


class Secret(Object, frozen=True, gc=False, kw_only=True):
    """What not everybody may read, by key."""

    plural: ClassVar[str] = "secrets"
    namespaced: ClassVar[bool] = True

    type: str = ""
    data: Mapping[str, str] = {}
    """Bytes, in base64."""
    immutable: bool = False

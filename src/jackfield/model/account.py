"""ServiceAccount: in whose name a pod speaks to the API.

Knows the core/v1 fields that a pod's admission reads. Must not know what an account may do.
"""

from typing import ClassVar

from jackfield.model.meta import Object, Wire


class LocalObjectReference(Wire, frozen=True, gc=False):
    """An object of the same namespace."""

    name: str = ""


class ServiceAccount(Object, frozen=True, gc=False, kw_only=True):
    """A name for programs."""

    plural: ClassVar[str] = "serviceaccounts"
    namespaced: ClassVar[bool] = True

    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    automount_service_account_token: bool = True

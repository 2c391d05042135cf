"""Lease: who leads, and until when.

Knows the coordination/v1 fields. Must not know what is led.
"""

from typing import ClassVar

from jackfield.model.meta import Object, Wire
from jackfield.model.names import NO_TIME, Time


class LeaseSpec(Wire, frozen=True, gc=False):
    """The holder and its last sign of life."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: Time = NO_TIME
    renew_time: Time = NO_TIME
    lease_transitions: int = 0


class Lease(Object, frozen=True, gc=False, kw_only=True):
    """A sign of life that runs out."""

    group: ClassVar[str] = "coordination.k8s.io"
    plural: ClassVar[str] = "leases"
    namespaced: ClassVar[bool] = True

    spec: LeaseSpec = LeaseSpec()

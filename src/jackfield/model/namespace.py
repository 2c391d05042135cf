"""Namespace: where other objects live.

Knows that it has a name. Must not know what lives in it.
"""

from typing import ClassVar

from jackfield.model.meta import Object


class Namespace(Object, frozen=True, gc=False, kw_only=True):
    """A place for objects that have one."""

    plural: ClassVar[str] = "namespaces"

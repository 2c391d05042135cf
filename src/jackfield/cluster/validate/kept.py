"""What is wrong with a ConfigMap, a Secret, a ServiceAccount or a CustomResourceDefinition.

Knows the rules for what is kept for others. Must not know what anybody keeps.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.schema import readers
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import Change, named
from jackfield.codec import Raw
from jackfield.model.config import ConfigMap, Secret

BYTES_MAX: Final = 1024 * 1024
_WHOLE: Final = "[]"
"""How the API server spells the field of what is wrong with an object as a whole."""
_FIXED: Final = "field is immutable when `immutable` is set"
_DATA: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""What a secret of a type must have."""
_LOGIN: Final = ("username", "password")
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def config_map(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a ConfigMap."""
    new, old = change.new, change.old
    assert isinstance(new, ConfigMap)
    if isinstance(old, ConfigMap) and old.immutable:
        yield from _unchanged(change, ("data", "binaryData"))
    for key in sorted(new.data):
        yield from named(f"data[{key}]", key, formats.config_key)
        if key in new.binary_data:
            yield errors.invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(new.binary_data):
        yield from named(f"binaryData[{key}]", key, formats.config_key)
    size = sum(len(one.encode()) for one in new.data.values())
    if size + sum(_size(one) for one in new.binary_data.values()) > BYTES_MAX:
        yield errors.too_long(_WHOLE, BYTES_MAX)


def secret(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a Secret."""
    new, old = change.new, change.old
    assert isinstance(new, Secret)
    if isinstance(old, Secret):
        if old.type != new.type:
            yield errors.invalid_value("type", new.type, "field is immutable")
        if old.immutable:
            yield from _unchanged(change, ("data",))
    for key in sorted(new.data):
        yield from named(f"data[{key}]", key, formats.config_key)
    if sum(_size(one) for one in new.data.values()) > BYTES_MAX:
        yield errors.too_long("data", BYTES_MAX)
    yield from _of_its_type(new)


def _of_its_type(new: Secret) -> Iterator[Cause]:
    needed = [key for key in _DATA.get(new.type, ()) if key not in new.data]
    if new.type == "kubernetes.io/basic-auth" and not any(key in new.data for key in _LOGIN):
        needed = [*_LOGIN]
    for key in needed:
        yield errors.required(f"data[{key}]")
    if new.type == "kubernetes.io/service-account-token" and not new.metadata.annotations.get(_ACCOUNT):
        yield errors.required(f"metadata.annotations[{_ACCOUNT}]")


def service_account(_: Change) -> Iterator[Cause]:
    """Yield what is wrong with an account beyond its name: nothing can be."""
    yield from ()


def definition(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a definition: those of the embedded cluster are what it is built from."""
    if change.old is not None and change.wants:
        yield errors.forbidden("spec", "the kinds of the embedded cluster are built in, and never change")


def bytes_problem(raw: Raw, names: tuple[str, ...]) -> str:
    """Return what Go's decoder says of members that should be bytes in base64; nothing if they are."""
    for name in names:
        found = raw.get(name)
        for text in found.values() if isinstance(found, dict) else ():
            wrong = readers.base64_error(text) if isinstance(text, str) else ""
            if wrong:
                return wrong
    return ""


def _size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _unchanged(change: Change, names: tuple[str, ...]) -> Iterator[Cause]:
    assert change.before is not None
    if not change.raw.get("immutable"):
        yield errors.forbidden("immutable", _FIXED)
    for name in names:
        if change.raw.get(name) != change.before.get(name):
            yield errors.forbidden(name, _FIXED)

"""What is wrong with the volumes of a pod.

Knows core/v1's rules for where a volume comes from, as far as people break them. Must not know who mounts it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import items, named, text
from jackfield.codec import Raw

SOURCES: Final[Mapping[str, str]] = {
    "emptyDir": "",
    "hostPath": "path",
    "secret": "secretName",
    "nfs": "server",
    "iscsi": "iqn",
    "persistentVolumeClaim": "claimName",
    "downwardAPI": "",
    "configMap": "name",
    "projected": "",
    "csi": "driver",
    "ephemeral": "",
    "image": "",
}
"""Where volumes come from, in the order in which the API server looks, and what each must say."""


def volumes(spec: Raw) -> Iterator[Cause]:
    """Yield what is wrong with the volumes."""
    seen: dict[str, None] = {}
    for at, one in items("spec.volumes", spec):
        wrong = (*_source(at, one), *_name(f"{at}.name", text(one.get("name")), seen))
        yield from wrong
        if not wrong:
            seen[text(one.get("name"))] = None


def names(spec: Raw) -> frozenset[str]:
    """Return the names that mounts can name."""
    return frozenset(text(one.get("name")) for _, one in items("spec.volumes", spec))


def _name(field: str, name: str, seen: Mapping[str, None]) -> Iterator[Cause]:
    if name:
        yield from named(field, name, formats.label)
    else:
        yield errors.required(field)
    if name in seen:
        yield errors.duplicate(field, name)


def _source(field: str, volume: Raw) -> Iterator[Cause]:
    there = [name for name in SOURCES if isinstance(volume.get(name), dict)]
    for name in there[:1]:
        if SOURCES[name] and not volume[name].get(SOURCES[name]):
            yield errors.required(f"{field}.{name}.{SOURCES[name]}")
    for name in there[1:]:
        yield errors.forbidden(f"{field}.{name}", "may not specify more than 1 volume type")

"""Identifiers, each a type of its own, so that a node is never taken for a fabric.

Knows how names are spelt and joined. Must not know what they stand for.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

import msgspec

NodeName = NewType("NodeName", str)
FabricName = NewType("FabricName", str)
ModelName = NewType("ModelName", str)
"""The manager's own name for a model of device, CoHDI's ``cdi-model-name``."""
PhysicalID = NewType("PhysicalID", str)
"""What the fabric manager calls a device; never a DRA name."""
OrderID = NewType("OrderID", str)
"""What makes two calls one order: the uid of its ComposableResource."""
Uid = NewType("Uid", str)
Version = NewType("Version", str)
"""A resourceVersion."""
Time = NewType("Time", str)
"""A point in time as Kubernetes writes it, RFC 3339 in UTC; empty means never."""
Seconds = NewType("Seconds", float)
"""A point in time (since 1970) or a duration."""

NEVER = Seconds(float("inf"))
LONG_AGO = Seconds(float("-inf"))
NO_TIME = Time("")


class Key(msgspec.Struct, frozen=True, gc=False, order=True):
    """Names one object of a kind; the namespace is empty for kinds that have none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Spell it as kubectl does."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class DeviceID(msgspec.Struct, frozen=True, gc=False, order=True):
    """A device as DRA names it, for its whole life."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """Spell it as Kubernetes does in its own messages."""
        return f"{self.driver}/{self.pool}/{self.device}"


def named(name: str) -> Key:
    """Return the key of an object without a namespace."""
    return Key("", name)


def rfc3339(at: Seconds) -> Time:
    """Return the point in time as Kubernetes writes it, to the second."""
    whole, _ = _split(at)
    return Time(f"{_spelt(whole)}Z")


def rfc3339_micro(at: Seconds) -> Time:
    """Return the point in time as Kubernetes' MicroTime writes it."""
    whole, micros = _split(at)
    return Time(f"{_spelt(whole)}.{micros:06}Z")


def _split(at: Seconds) -> tuple[int, int]:
    """Return the whole seconds of a point in time, and the microseconds beyond them, rounded as `datetime` does."""
    whole, rest = divmod(at, 1.0)
    micros = round(rest * 1e6)
    return (int(whole) + 1, 0) if micros == 1_000_000 else (int(whole), micros)  # noqa: PLR2004 - in a second


@lru_cache(maxsize=1024)  # what happens in one second is spelt many times
def _spelt(whole: int) -> str:
    """Spell whole seconds since 1970."""
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


@lru_cache(maxsize=4096)  # the same few are asked for in every decision
def seconds(time: Time) -> Seconds:
    """Return the point in time as a number; an empty one lies before all others."""
    if not time:
        return Seconds(float("-inf"))
    return Seconds(datetime.fromisoformat(time).timestamp())

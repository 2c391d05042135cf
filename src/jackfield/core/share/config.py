"""What a claim, or its class, says about how a device is to be shared.

An allocation carries configuration of the class and of the claim; one of them counts for a request, whole, never a
mixture. It is read strictly: what we do not understand is refused with the field's name, since whoever wrote it meant
something. Knows the kind `GpuConfig` of `node.jackfield.dev/v1alpha1`. Must not know what follows from it.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from jackfield.core.share.gpu import Interval
from jackfield.model import quantity
from jackfield.model.claim import DeviceAllocationConfiguration, OpaqueDeviceConfiguration

API_VERSION: Final = "node.jackfield.dev/v1alpha1"
KIND: Final = "GpuConfig"
PARAMETERS_BYTES_MAX: Final = 10 * 1024
"""The API's own limit; who gets more did not get it from there."""
_MEBIBYTE: Final = 1 << 20
_MEMORY_MAX: Final = 1 << 50
_WORDS_MAX: Final = 200
_PATH: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


class Strategy(StrEnum):
    """How those who share a device get along."""

    EXCLUSIVE = "Exclusive"
    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"


class TimeSlicingConfig(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """For `TimeSlicing`."""

    interval: Interval = Interval.DEFAULT


class MpsConfig(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """For `MPS`."""

    default_active_thread_percentage: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    default_pinned_device_memory_limit: str = ""

    @property
    def percentage(self) -> int:
        """The limit; 0 means that there is none."""
        return self.default_active_thread_percentage or 0

    @property
    def memory_mebibytes(self) -> int:
        """The limit; 0 means that there is none."""
        limit = self.default_pinned_device_memory_limit
        return quantity.as_int(limit) // _MEBIBYTE if limit else 0


class SharingConfig(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A strategy, and what belongs to it."""

    strategy: Strategy
    time_slicing_config: TimeSlicingConfig | None = None
    mps_config: MpsConfig | None = None

    @property
    def interval(self) -> Interval:
        """How long a turn is."""
        return (self.time_slicing_config or TimeSlicingConfig()).interval

    @property
    def mps(self) -> MpsConfig:
        """The limits for MPS."""
        return self.mps_config or MpsConfig()


class GpuConfig(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What stands in a claim's `config[].opaque.parameters`."""

    api_version: str
    kind: str
    sharing: SharingConfig


class Unreadable(msgspec.Struct, frozen=True):
    """Configuration that nobody can follow, in words that name the field."""

    what: str


_MAY_BE: Final = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "sharing.strategy": ", ".join(Strategy),
    "sharing.timeSlicingConfig.interval": ", ".join(Interval),
    "sharing.mpsConfig.defaultActiveThreadPercentage": "a whole number from 1 to 100",
    "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit": "a quantity from 1Mi to 1Pi, such as 10Gi",
}


def winner(
    configs: Iterable[DeviceAllocationConfiguration], driver: str, request: str
) -> OpaqueDeviceConfiguration | None:
    """Return what counts for a result's request (`name` or `name/sub`): the claim's before the class's, the last first.

    An entry that names no request is for all; one that names a request is for all its subrequests too.
    """
    name = request.partition("/")[0]
    found = [
        (one.source == "FromClaim", one.opaque)
        for one in configs
        if one.opaque is not None
        and one.opaque.driver == driver
        and (not one.requests or request in one.requests or name in one.requests)
    ]
    # Sorting keeps the order within a source, so the last one is the last of the stronger source.
    found.sort(key=lambda one: one[0])
    return found[-1][1] if found else None


def read(parameters: bytes) -> SharingConfig | Unreadable:
    """Return what the parameters ask for, or what is wrong with them."""
    if len(parameters) > PARAMETERS_BYTES_MAX:
        return Unreadable(
            f"the parameters have {len(parameters)} bytes, and at most {PARAMETERS_BYTES_MAX} are allowed"
        )
    try:
        config = msgspec.json.decode(parameters, type=GpuConfig)
    except msgspec.ValidationError as error:
        return Unreadable(_words(str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Unreadable("the parameters are no JSON object")
    wrong = _wrong(config)
    return Unreadable(wrong) if wrong else config.sharing


def _wrong(config: GpuConfig) -> str:
    """Return what is wrong with a configuration whose fields are; empty where nothing is."""
    if config.api_version != API_VERSION:
        return _not("apiVersion", config.api_version)
    if config.kind != KIND:
        return _not("kind", config.kind)
    sharing = config.sharing
    if sharing.time_slicing_config is not None and sharing.strategy is not Strategy.TIME_SLICING:
        return f"sharing.timeSlicingConfig: the strategy is {sharing.strategy}, so it would mean nothing; remove it"
    if sharing.mps_config is not None and sharing.strategy is not Strategy.MPS:
        return f"sharing.mpsConfig: the strategy is {sharing.strategy}, so it would mean nothing; remove it"
    return _wrong_limit(sharing.mps.default_pinned_device_memory_limit)


def _wrong_limit(limit: str) -> str:
    if not limit:
        return ""
    try:
        amount = quantity.as_int(limit)
    except quantity.QuantityError:
        amount = 0
    if _MEBIBYTE <= amount <= _MEMORY_MAX:
        return ""
    return _not("sharing.mpsConfig.defaultPinnedDeviceMemoryLimit", limit)


def _not(field: str, value: str) -> str:
    return f"{field}: {_printable(value)!r} is none of what it may be: {_MAY_BE[field]}"


def _words(message: str) -> str:
    """Return a decoder's message with the field first, and what it may be last."""
    found = _PATH.search(message)
    path = found["path"] if found else ""
    plain = _printable(message[: found.start()] if found else message)
    said = f"{path}: {plain[:1].lower()}{plain[1:]}" if path else plain
    return f"{said}; it may be: {_MAY_BE[path]}" if path in _MAY_BE else said


def _printable(text: str) -> str:
    """Return a text that strangers wrote so that it fits a line, and does nothing to the terminal it is shown on."""
    plain = "".join(one if one.isprintable() else "?" for one in text)
    return plain if len(plain) <= _WORDS_MAX else f"{plain[:_WORDS_MAX]}…"

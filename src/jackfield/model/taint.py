"""DeviceTaintRule: a taint on devices that somebody else publishes.

Knows the resource.k8s.io/v1beta2 fields. Must not know why a device is tainted.
"""

from typing import ClassVar

from jackfield.model.device import DeviceTaint
from jackfield.model.meta import Object, Wire
from jackfield.model.names import DeviceID

KEY = "k8s.io/device-uuid"
"""The taint's key; its value is the device's own UUID. CoHDI's operator writes the same."""


TAINTED = "jackfield.dev/tainted"
"""Annotation of a rule: when it was written, by the clock of who wrote it."""
GUARDED = "jackfield.dev/resource-uid"
"""Annotation of a rule: the uid of the resource whose device it guards; another of the same name needs its own."""


class DeviceTaintSelector(Wire, frozen=True, gc=False):
    """Which devices are tainted: all that agree with what is set."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def matches(self, device: DeviceID) -> bool:
        """Return whether the device is meant."""
        named = ((self.driver, device.driver), (self.pool, device.pool), (self.device, device.device))
        return all(wanted is None or wanted == found for wanted, found in named)


class DeviceTaintRuleSpec(Wire, frozen=True, gc=False):
    """The devices and their taint."""

    taint: DeviceTaint
    device_selector: DeviceTaintSelector | None = None


class DeviceTaintRule(Object, frozen=True, gc=False, kw_only=True):
    """A taint on devices that somebody else publishes."""

    group: ClassVar[str] = "resource.k8s.io"
    version: ClassVar[str] = "v1beta2"
    plural: ClassVar[str] = "devicetaintrules"

    spec: DeviceTaintRuleSpec

"""A device as expressions see it.

Knows how attributes and capacities are filed by domain. Must not know expressions.
"""

from collections.abc import Callable
from typing import Final

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.operators import Domains
from jackfield.core.cel.quantities import version
from jackfield.model.device import Device, DeviceAttribute
from jackfield.model.quantity import QuantityError, parse

_UNSUPPORTED: Final = "unsupported attribute value"


class Subject:
    """A device, prepared once, then looked at by any number of expressions."""

    __slots__ = ("attributes", "capacity", "driver", "fault", "list_fault", "multiple")

    def __init__(self, driver: str, *, multiple: bool) -> None:
        self.driver = driver
        self.multiple = multiple
        self.attributes = Domains()
        self.capacity = Domains()
        self.fault = ""
        """Why no expression can look at this device, if so."""
        self.list_fault = ""
        """Likewise, for expressions that do not know attributes with lists."""

    def field(self, name: str) -> object:
        """Return what `device.name` is."""
        reader: Callable[[Subject], object] | None = _FIELDS.get(name)
        if reader is None:
            raise CelError(f"no such key: {name}")
        return reader(self)


_FIELDS: Final[dict[str, Callable[[Subject], object]]] = {
    "driver": lambda subject: subject.driver,
    "attributes": lambda subject: subject.attributes,
    "capacity": lambda subject: subject.capacity,
    "allowMultipleAllocations": lambda subject: subject.multiple,
}


def subject(driver: str, device: Device) -> Subject:
    """Return a driver's device as expressions see it; names without a domain are filed under the driver's."""
    made = Subject(driver, multiple=device.allow_multiple_allocations)
    attributes, capacity = made.attributes, made.capacity
    for name, attribute in device.attributes.items():
        domain, slash, rest = name.partition("/")
        if not slash:
            domain, rest = driver, name
        value = attribute.string
        known = attributes.get(domain)
        if known is None:
            known = attributes[domain] = {}
        known[rest] = value if value is not None else _value(made, name, attribute)
    for name, amount in device.capacity.items():
        domain, slash, rest = name.partition("/")
        if not slash:
            domain, rest = driver, name
        try:
            capacity.setdefault(domain, {})[rest] = parse(amount.value)
        except QuantityError as error:
            made.fault = made.fault or f"capacity {name}: {error.reason}"
    return made


def _value(made: Subject, name: str, attribute: DeviceAttribute) -> object:
    for value in (attribute.int_, attribute.bool_, attribute.version):
        if value is not None:
            break
    else:
        return _list(made, name, attribute)
    if not isinstance(value, str):
        return value
    return _version(made, name, value)


def _version(made: Subject, name: str, text: str) -> object:
    try:
        return version(text)
    except CelError as error:
        made.fault = made.fault or f"attribute {name}: parse semantic version: {error}"
        return None


def _list(made: Subject, name: str, attribute: DeviceAttribute) -> object:
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values is not None:
            made.list_fault = made.list_fault or f"attribute {name}: {_UNSUPPORTED}"
            return list(values)
    if attribute.versions is not None:
        made.list_fault = made.list_fault or f"attribute {name}: {_UNSUPPORTED}"
        return [_version(made, name, one) for one in attribute.versions]
    made.fault = made.fault or f"attribute {name}: {_UNSUPPORTED}"
    return None

"""Devices that a node has of its own → the entries that offer them.

Knows what of a device is worth saying in a slice, and when a device is nobody's but the node's: a fabric's is offered
by the publisher, under the name it has for life. Must not know how a device is found, nor who writes slices.
"""

import re
from collections.abc import Iterable, Mapping

from jackfield.core import sight
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity
from jackfield.model.host import Facts, HostDevice, Seen
from jackfield.model.policy import LocalDevices, Policy

STANDARD = "resource.kubernetes.io"
STRING_MAX = 64
CLASSES = ("0108", "02", "03", "0502", "0b40", "12")
"""PCI classes of what a fabric lends: disks, network, graphics, CXL memory, co-processors, accelerators."""

_NO_NAME = re.compile("[^a-z0-9]+")


def matters(device: HostDevice, policy: Policy) -> bool:
    """Whether anybody could want the device: a machine is full of others, such as its clock."""
    return device.pci_class.startswith(CLASSES) or _rule(device, policy) is not None


def offered(
    devices: Iterable[tuple[Seen, HostDevice]], resources: tuple[ComposableResource, ...], policy: Policy
) -> Mapping[str, tuple[Device, HostDevice]]:
    """Return the entries of a node's own devices, by name; `resources` are all that are for the node."""
    there = tuple(devices)
    facts = Facts(tuple(seen for seen, _ in there))
    taken = [sight.of(one, facts, policy.identities) for one in resources]
    entries: dict[str, tuple[Device, HostDevice]] = {}
    for seen, device in there:
        rule = _rule(device, policy)
        if rule is not None and not any(_is_taken(seen, one) for one in taken):
            entry = _entry(rule, device)
            entries[entry.name] = (entry, device)
    return entries


def expecting(resources: tuple[ComposableResource, ...]) -> bool:
    """Whether a fabric's device may come that nobody can recognise yet: its manager has not said which it is."""
    return any(
        one.state is ResourceState.ATTACHING and not one.status.cdi_device_id and not one.status.device_id
        for one in resources
    )


def attributes(device: HostDevice) -> Mapping[str, DeviceAttribute]:
    """Return what is worth knowing of a device, under the names that Kubernetes and drivers agree on."""
    on_bus = device.vendor != ""
    texts = {
        f"{STANDARD}/pciBusID": device.address if on_bus else "",
        f"{STANDARD}/pcieRoot": device.pcie_root,
        "vendor": device.vendor,
        "device": device.device,
        "pciClass": device.pci_class,
        "uuid": device.uuid,
        "serial": device.serial,
        "productName": device.model,
        "driver": device.driver,
        "interface": device.interfaces[0].name if device.interfaces else "",
        "mac": device.interfaces[0].mac if device.interfaces else "",
        "rdmaDevice": device.rdma[0] if device.rdma else "",
    }
    said = {name: DeviceAttribute(string=text[:STRING_MAX]) for name, text in texts.items() if text}
    if device.numa_node >= 0:
        said["numaNode"] = said[f"{STANDARD}/numaNode"] = DeviceAttribute(int_=device.numa_node)
    if device.link_width > 0:
        said["linkWidth"] = DeviceAttribute(int_=device.link_width)
    if device.parent:
        said["virtual"] = DeviceAttribute(bool_=True)
    return said


def _entry(rule: LocalDevices, device: HostDevice) -> Device:
    end = _NO_NAME.sub("-", device.address.casefold()).strip("-")
    capacity = {"memory": DeviceCapacity(str(device.memory_bytes))} if device.memory_bytes else {}
    return Device(f"{rule.name}-{end}", attributes=attributes(device), capacity=capacity)


def _rule(device: HostDevice, policy: Policy) -> LocalDevices | None:
    return next((one for one in policy.local_devices if _agrees(one, device)), None)


def _agrees(rule: LocalDevices, device: HostDevice) -> bool:
    return (
        rule.vendor in ("", device.vendor)
        and rule.device in ("", device.device)
        and device.pci_class.startswith(rule.pci_class)
    )


def _is_taken(seen: Seen, found: Seen | sight.Blurred | None) -> bool:
    """Whether a fabric lent it. While two go by one name neither is offered: one of them is the fabric's."""
    if isinstance(found, sight.Blurred):
        return seen in found.seen
    return found == seen

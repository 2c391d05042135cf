"""What an inventory file says, and what is said about one that says nothing."""

from pathlib import Path

import pytest

from jackfield.fabric_manager import hardware, wiring
from jackfield.model.names import FabricName, NodeName, PhysicalID

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "fabric" / "inventory.yaml"
GOOD = """
fabric: rack
switches: [{name: s1, powerWatts: 500}, {name: s2}]
machines:
  - {name: n, count: 2, slots: 2, ports: [{switch: s1}]}
  - {name: big}
devices:
  - {name: g, count: 2, model: A100, switch: s1, powerWatts: 300}
  - {name: f, model: VU9P, type: fpga, switch: s2}
attached: [{device: g-2, machine: big}]
"""


def test_a_file_names_every_machine_and_device() -> None:
    found = hardware.parse(GOOD, "lab.yaml")
    assert list(found.machines) == ["n-1", "n-2", "big"]
    assert list(found.devices) == ["g-1", "g-2", "f-1"]
    assert len({one.serial for one in found.devices.values()}) == 3
    assert hardware.parse(GOOD, "again").devices == found.devices


@pytest.mark.parametrize(
    ("node", "device", "reaches"),
    [("n-1", "g-1", True), ("n-1", "f-1", False), ("big", "f-1", True)],
)
def test_a_device_goes_only_where_a_cable_leads(node: str, device: str, *, reaches: bool) -> None:
    assert hardware.parse(GOOD, "lab.yaml").reaches(NodeName(node), PhysicalID(device)) is reaches


BAD = (
    ("count: 2, slots: 2", "count: -1, slots: 2", "machines[0].count: must not be negative"),
    ("slots: 2", "slots: -2", "machines[0].slots: must not be negative"),
    ("{name: f, model", "{name: f, count: 0, model", "devices[1].count: must be at least 1"),
    ("count: 2, model", "count: 200000, model", "devices: there are more than 100000"),
    (
        "ports: [{switch: s1}]",
        "ports: [{switch: s9}]",
        "machines[0].ports[0].switch: there is no switch 's9'",
    ),
    ("{switch: s1}]", "{switch: s1, linkWidth: 3}]", "machines[0].ports[0].linkWidth: a link has 1, 2, 4"),
    ("type: fpga, switch: s2", "type: fpga, switch: s3", "devices[1].switch: there is no switch 's3'"),
    ("model: VU9P", 'model: ""', "devices[1].model: must be 1 to 253 printable characters"),
    ("powerWatts: 300", "powerWatts: -1", "devices[0].powerWatts: must not be negative"),
    ("powerWatts: 500", "powerWatts: -1", "switches[0].powerWatts: must not be negative"),
    ("{name: s2}", "{name: s1}", "switches: two are called 's1'"),
    ("{name: big}", "{name: n-2}", "machines: two are called 'n-2'"),
    ("{name: f, model", "{name: g, model", "devices: two are called 'g-1'"),
    ("device: g-2", "device: g-3", "attached[0].device: there is no device 'g-3'"),
    ("machine: big}", "machine: big}, {device: g-2, machine: n-1}", "attached: two are called 'g-2'"),
    ("machine: big", "machine: small", "attached[0].machine: there is no machine 'small'"),
    ("fabric: rack", "fabric: ' '", "fabric: must be 1 to 253 printable characters"),
    ("{name: big}", "{name: big, slot: 3}", "machines[1]: Object contains unknown field `slot`"),
    ("count: 2, slots: 2", "count: two, slots: 2", "machines[0].count: Expected `int`, got `str`"),
    ("fabric: rack", "limits: {jobs: 0}\nfabric: rack", "limits.jobs: must be at least 1"),
    (
        "fabric: rack",
        "limits: {rememberSeconds: 60}\nfabric: rack",
        "limits.rememberSeconds: must be at least 3600",
    ),
    (
        "fabric: rack",
        "limits: {rememberOrders: 10}\nfabric: rack",
        "limits.rememberOrders: must be at least 1000",
    ),
    (
        "fabric: rack",
        "backend: {kind: script, command: []}\nfabric: rack",
        "backend.command: names no program",
    ),
    (
        "fabric: rack",
        "times: {attach: {kind: fixed, seconds: -1}}\nfabric: rack",
        "times.attach: fixed: seconds must be finite and not negative",
    ),
    ("fabric: rack", "fabric: [", "not YAML"),
)


PCI = """
fabric: rack
machines: [{name: n1}]
devices: [{name: g, model: A100}]
backend:
  kind: pci
  places:
    - {device: g-1, machine: n1, address: "0000:3b:00.0", bridge: "0000:3a:00.0", id: "10de:20b5"}
"""
QEMU = """
fabric: rack
machines: [{name: n1}]
devices: [{name: g, model: A100}]
backend:
  kind: qemu
  machines:
    n1: {socket: /run/n1.sock, buses: [rp1, rp2]}
  models:
    A100: {driver: edu, properties: {dma_mask: 4096, serial: "{serial}", rombar: true}}
"""


@pytest.mark.parametrize(("text", "kind"), [(PCI, wiring.Pci), (QEMU, wiring.Qemu)])
def test_a_back_end_is_read(text: str, kind: type[wiring.Backend]) -> None:
    assert isinstance(hardware.parse(text, "lab.yaml").lab.backend, kind)


BAD_BACKENDS = (
    (PCI, "device: g-1", "device: g-2", "backend.places[0].device: there is no device 'g-2'"),
    (PCI, "machine: n1", "machine: n2", "backend.places[0].machine: there is no machine 'n2'"),
    (PCI, '"0000:3b:00.0"', '"3b:00.0"', "backend.places[0].address: is no PCI address such as"),
    (PCI, '"0000:3b:00.0"', '"0000:3b:20.0"', "backend.places[0].address: is no PCI address such as"),
    (PCI, '"0000:3b:00.0"', "0000:00:05.0", "backend.places[0].address: Expected `str`, got `float`"),
    (PCI, '"0000:3a:00.0"', '"../../x"', "backend.places[0].bridge: is no PCI address such as"),
    (PCI, '"10de:20b5"', '"0x10de"', "backend.places[0].id: is no vendor and device such as"),
    (PCI, "kind: pci", "kind: pci\n  sysfs: sys", "backend.sysfs: must begin with /"),
    (PCI, "kind: pci", "kind: pci\n  bound: maybe", "backend.bound: Invalid enum value 'maybe'"),
    (PCI, "kind: pci", "kind: pci\n  timeoutSeconds: 0", "backend.timeoutSeconds: must be more than 0"),
    (
        PCI,
        "    - {",
        '    - {device: g-1, machine: n1, address: "0000:3c:00.0"}\n    - {',
        "backend.places[1]: g-1 has a place on n1 already",
    ),
    (
        PCI.replace("name: g,", "name: g, count: 2,"),
        "    - {",
        '    - {device: g-2, machine: n1, address: "0000:3b:00.1"}\n    - {',
        "backend.places[1].address: is g-2's on n1 already",
    ),
    (PCI, "kind: pci", "kind: magic", "backend.kind: Invalid value 'magic'"),
    (QEMU, "    n1: {socket", "    n2: {socket", "backend.machines: nothing is said of 'n1'"),
    (QEMU, "    A100: ", "    H100: ", "backend.models: nothing is said of 'A100'"),
    (QEMU, "/run/n1.sock", '""', "backend.machines.n1.socket: the path of a socket has 1 to 107 bytes"),
    (QEMU, "/run/n1.sock", "/" + "x" * 107, "backend.machines.n1.socket: the path of a socket has"),
    (QEMU, "[rp1, rp2]", "[rp1, rp1]", "backend.machines.n1.buses: one is named twice"),
    (QEMU, "driver: edu", 'driver: ""', "backend.models.A100.driver: is empty"),
    (QEMU, "dma_mask: 4096", "id: x", "backend.models.A100.properties: id cannot be set here"),
)


@pytest.mark.parametrize(("text", "old", "new", "words"), BAD_BACKENDS)
def test_a_bad_back_end_is_refused_with_the_place(text: str, old: str, new: str, words: str) -> None:
    assert old in text
    with pytest.raises(hardware.BadHardware) as refused:
        hardware.parse(text.replace(old, new, 1), "lab.yaml")
    assert str(refused.value).startswith(f"lab.yaml: {words}")


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_a_bad_file_is_refused_with_its_name_and_the_place(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(hardware.BadHardware) as refused:
        hardware.parse(GOOD.replace(old, new, 1), "lab.yaml")
    assert str(refused.value).startswith(f"lab.yaml: {words}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(hardware.BadHardware, match=r"lab\.yaml: cannot be read"):
        hardware.read(tmp_path / "lab.yaml")


def test_a_generated_file_has_as_many_as_were_asked_for() -> None:
    found = hardware.parse(hardware.generated(FabricName("lab"), 4, 32), "generated")
    assert (len(found.machines), len(found.devices)) == (4, 32)
    types = {one.batch.type for one in found.devices.values()}
    assert types == {"gpu", "cxlmemory", "nic", "fpga"}


@pytest.mark.parametrize(("name", "kind"), [("pci", wiring.Pci), ("qemu", wiring.Qemu)])
def test_the_examples_of_back_ends_can_be_read(name: str, kind: type[wiring.Backend]) -> None:
    assert isinstance(hardware.read(EXAMPLE.parent / f"{name}.yaml").lab.backend, kind)


def test_the_example_can_be_read() -> None:
    found = hardware.read(EXAMPLE)
    assert {one.batch.type for one in found.devices.values()} == {"gpu", "cxlmemory", "nic", "fpga"}

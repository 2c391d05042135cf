"""What an inventory file says, and what is said about one that says nothing."""

from pathlib import Path

import pytest

from jackfield.fabric_manager import hardware
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


def test_the_example_can_be_read() -> None:
    found = hardware.read(EXAMPLE)
    assert {one.batch.type for one in found.devices.values()} == {"gpu", "cxlmemory", "nic", "fpga"}

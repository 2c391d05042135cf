"""The page about the manager has every setting, kind of fault, face and call."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric_manager import durations, hardware, scenario, wiring
from jackfield.fabric_manager.faces import control, openapi, registry
from jackfield.fabric_manager.faults import VERBS, Fault, Kind

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "fabric-manager.md").read_text()


def settings(*kinds: type[msgspec.Struct]) -> list[str]:
    return sorted({field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)})


@pytest.mark.parametrize(
    "name",
    [
        *settings(hardware.Lab, hardware.Machine, hardware.Batch, hardware.Switch, hardware.HostPort),
        *settings(hardware.Attached, hardware.Limits, wiring.Script, wiring.Pci, wiring.Place),
        *settings(wiring.Qemu, wiring.Guest, wiring.Virtual),
        *settings(durations.Fixed, durations.Uniform, durations.Lognormal, durations.Exponential),
        *settings(durations.Empirical, scenario.Scenario, scenario.Step),
        *("fixed", "uniform", "lognormal", "exponential", "empirical", "none", "script", "pci", "qemu"),
    ],
)
def test_every_setting_is_explained(name: str) -> None:
    assert re.search(rf"`{name}`|^  {name}: ", PAGE, re.MULTILINE)


@pytest.mark.parametrize("word", [*Kind, *registry.FACES])
def test_every_fault_and_face_has_a_row(word: str) -> None:
    assert re.search(rf"^\| `{word}` \| \S", PAGE, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_a_fault_can_be_for_is_in_its_table(verb: str) -> None:
    table = PAGE.partition("| verb | which calls |")[2].partition("\n\n")[0]
    assert f"`{verb}`" in table


def test_every_member_of_a_fault_that_can_be_set_is_named() -> None:
    row = next(line for line in PAGE.splitlines() if "`POST /manager/v1/faults`" in line)
    assert set(re.findall(r'"(\w+)"', row)) == {*settings(Fault)} - {"seen", "since", "holds"}


def test_every_call_of_the_extras_has_a_row() -> None:
    shown = re.findall(rf"^\| `(\w+) {control.PREFIX}/([\w/.]+)", PAGE, re.MULTILINE)
    assert shown == [(of.method, of.path.replace("{name}", "NAME")) for of in control.OPERATIONS]


def test_every_call_of_the_extras_is_described_with_its_types() -> None:
    made = openapi.document(control.PREFIX, control.OPERATIONS)
    calls = [(verb.upper(), path) for path, verbs in made["paths"].items() for verb in verbs]
    assert sorted(calls) == sorted((of.method, f"{control.PREFIX}/{of.path}") for of in control.OPERATIONS)
    referred = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(made)))
    assert referred == {*made["components"]["schemas"]}
    assert {"Attach", "Detach", "Done", "Event", "Failed", "Fault", "Problem", "Shown", "Working"} <= referred
    assert made["paths"][f"{control.PREFIX}/faults/{{name}}"]["delete"]["parameters"][0]["name"] == "name"

"""Scenarios: faults that come and go in their time."""

from contextlib import closing
from pathlib import Path

import pytest

from jackfield.fabric_manager import hardware, scenario
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.model.names import Seconds
from jackfield.sim.clock import VirtualClock
from jackfield.sim.loop import StalledError, VirtualLoop

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "fabric"
GOOD = """
faults:
  - {kind: fail, verb: attach, times: 2}
  - {at: 5, for: 10, kind: ill, device: a-1, id: sick}
  - {at: 7, for: 1, every: 4, kind: status, status: 500}
"""


class Played:
    """What was set and cleared, and when."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.lines: list[str] = []
        self.known: set[str] = {"sick"}

    async def set(self, fault: Fault) -> None:
        self.known.add(fault.id)
        self.lines.append(f"{self._clock.now():g} {fault.id} {fault.kind}")

    async def clear(self, name: str) -> None:
        if name in self.known:
            self.known.discard(name)
            self.lines.append(f"{self._clock.now():g} {name} cleared")


def played(text: str, seconds: float) -> list[str]:
    """Return what happens in the first seconds."""
    with closing(VirtualLoop(Seconds(0.0))) as loop:
        clock = VirtualClock(loop)
        told = Played(clock)
        task = loop.create_task(
            scenario.play(scenario.parse(text, "x"), scenario.Stage(clock, told.set, told.clear))
        )
        loop.run_until_complete(clock.sleep(Seconds(seconds)))
        task.cancel()
        return told.lines


def test_faults_come_and_go_in_their_time() -> None:
    assert played(GOOD, 16.5) == [
        "0 sick cleared",  # an earlier run left it
        "0 scenario-1 fail",
        "5 sick ill",
        "7 scenario-3 status",
        "8 scenario-3 cleared",
        "11 scenario-3 status",
        "12 scenario-3 cleared",
        "15 sick cleared",
        "15 scenario-3 status",
        "16 scenario-3 cleared",
    ]


def test_a_scenario_ends_when_nothing_is_to_come_any_more() -> None:
    with closing(VirtualLoop(Seconds(0.0))) as loop:
        clock = VirtualClock(loop)
        told = Played(clock)
        found = scenario.parse("faults: [{at: 3, for: 4, kind: fail}, {at: 1, kind: lost}]", "x")
        loop.run_until_complete(scenario.play(found, scenario.Stage(clock, told.set, told.clear)))
        assert loop.time() == 7.0
        with pytest.raises(StalledError):
            loop.run_forever()


BAD = (
    (
        "verb: attach",
        "verb: atach",
        "faults[0]: there is no verb 'atach'; there are attach, detach, inventory",
    ),
    ("kind: fail", "kind: fial", "faults[0].kind: Invalid enum value 'fial'; there are fail, hang, suspend"),
    ("times: 2", "time: 2", "faults[0]: Object contains unknown field `time`"),
    ("times: 2", "times: -2", "faults[0]: after, times and limit must not be negative"),
    ("device: a-1, ", "", "faults[1]: ill needs a device"),
    ("at: 5", "at: -5", "faults[1]: at, for and every are seconds, 0 to"),
    ("for: 1,", "", "faults[2]: what comes every so often needs for, shorter than every"),
    ("for: 1,", "for: 4,", "faults[2]: what comes every so often needs for, shorter than every"),
    ("id: sick", "id: scenario-1", "faults[1]: two are called 'scenario-1'"),
    ("faults:", "fault:", "the whole file: Object contains unknown field `fault`"),
    ("faults:", "faults: [", "not YAML"),
)


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_a_bad_scenario_is_refused_with_its_name_and_the_place(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(scenario.BadScenario) as refused:
        scenario.parse(GOOD.replace(old, new, 1), "day.yaml")
    assert str(refused.value).startswith(f"day.yaml: {words}")


def test_a_scenario_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(scenario.BadScenario, match=r"day\.yaml: cannot be read"):
        scenario.read(tmp_path / "day.yaml")


def test_the_example_has_every_kind_of_fault_and_fits_its_lab() -> None:
    lab = hardware.read(EXAMPLES / "inventory.yaml")
    faults = [fault for fault, _ in scenario.named(scenario.read(EXAMPLES / "bad-day.yaml"))]
    assert {one.kind for one in faults} == {*Kind}
    assert all(one.device in {"", *lab.devices} and one.node in {"", *lab.machines} for one in faults)

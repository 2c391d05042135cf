"""Pods that do not take any device of a class. What they are given is told by tests/golden/choosy.txt."""

import pytest

from jackfield.sim import scenario

STAGE = "setting: {nodes: [{name: n}], fabrics: []}\n"


@pytest.mark.parametrize("part", ["before", "play"])
def test_admin_access_to_what_is_merely_preferred_is_refused(part: str) -> None:
    step = "{do: pod, name: a, devices: 1, admin: true, prefer: device.allowMultipleAllocations}"
    with pytest.raises(scenario.BadScenarioError) as caught:
        scenario.parse(f"{STAGE}{part}: [{step}]\n", "play.yaml")
    assert f"play.yaml: {part}[0]: `admin` and `prefer` exclude each other" in str(caught.value)

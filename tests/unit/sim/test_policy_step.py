"""A scenario may put another policy in force; one that is wrong is refused, with its place in the play."""

import pytest

from jackfield.model.names import Seconds
from jackfield.sim import scenario

STAGE = "setting: {nodes: [{name: n}], fabrics: []}\n"


def test_a_change_of_the_policy_is_a_step() -> None:
    text = f"{STAGE}play: [{{do: policy, at: 5, policy: {{holdSeconds: 7, paused: true}}}}]\n"
    (step,) = scenario.parse(text, "play.yaml").play
    assert isinstance(step, scenario.ChangePolicy)
    assert (step.at, step.policy.hold_seconds, step.policy.paused) == (5.0, Seconds(7.0), True)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{do: policy, policy: {holdSeconds: -1}}", "play.yaml: play[0].policy.holdSeconds: -1 is negative"),
        ("{do: policy}", "missing required field `policy`"),
    ],
)
def test_a_step_with_a_policy_that_is_wrong_is_refused(step: str, said: str) -> None:
    with pytest.raises(scenario.BadScenarioError) as caught:
        scenario.parse(f"{STAGE}play: [{step}]\n", "play.yaml")
    assert said in str(caught.value)

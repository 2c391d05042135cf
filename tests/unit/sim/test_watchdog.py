"""The watchdog barks at quarrels and at endless decisions, by the time that really passes."""

import pytest

from jackfield.model.names import NodeName, Seconds
from jackfield.model.plan import LabelNode, Phase
from jackfield.sim.loop import SpinningError
from jackfield.sim.torture.watchdog import ACTIONS_MAX, DECISIONS_MAX, WINDOW, Watchdog

LABEL = LabelNode(phase=Phase.OFFERED, node=NodeName("n"), labels={}, because="room changed")


class Time:
    """What passes."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> Seconds:
        return Seconds(self.at)


def written(pause: float, clocks: tuple[float, ...], error: str = "") -> None:
    """Write the same to one object, once more than is allowed in a while, by clocks that are so much ahead."""
    time = Time()
    dog = Watchdog(time.now)
    for number in range(ACTIONS_MAX + 1):
        time.at += pause
        dog.did(Seconds(time.at + clocks[number % len(clocks)]), "room.decide", LABEL, error)


@pytest.mark.parametrize("clocks", [(0.0,), (0.0, 600.0), (-60.0,)], ids=["right", "two of them", "behind"])
def test_who_writes_the_same_again_and_again_is_barked_at_whatever_his_clock_says(
    clocks: tuple[float, ...],
) -> None:
    with pytest.raises(SpinningError, match="does LabelNode on node/n 40 times within 5 s: room changed"):
        written(0.1, clocks)


def test_who_writes_now_and_then_is_not_barked_at_when_his_clock_was_ahead_for_a_while() -> None:
    written(WINDOW / 10, (600.0, *[0.0] * ACTIONS_MAX))


def test_what_fails_is_no_quarrel() -> None:
    written(0.1, (0.0,), "Conflict: somebody was faster")


def test_who_decides_for_ever_while_no_time_passes_is_barked_at() -> None:
    dog = Watchdog(Time().now)
    for number in range(DECISIONS_MAX):
        dog.waits(Seconds(number), "room.decide", ())
    with pytest.raises(SpinningError, match=r"room\.decide decides for ever"):
        dog.waits(Seconds(0), "room.decide", ())

"""Controllers take turns: nobody decides for long while what was decided waits to be sent."""

from jackfield.controllers.runner import (
    TURN_MAX,
)
from jackfield.model.names import Seconds
from jackfield.model.plan import Plan
from jackfield.model.policy import Policy
from jackfield.model.view import View
from jackfield.sim.clock import running
from unit.controllers.scene import Decision, Host, Scene, play, running_for


class Laborious(Decision):
    """Takes its time, as decisions do in the real world; remembers how much had been sent by then."""

    def __init__(self, host: Host, clock: "Ticking") -> None:
        super().__init__()
        self.sent: list[int] = []
        self._host = host
        self._clock = clock

    def decide(self, view: View, key: str, policy: Policy, now: Seconds) -> Plan:
        self.sent.append(len(self._host.begun))
        self._clock.late += TURN_MAX
        return super().decide(view, key, policy, now)


class Ticking:
    """Time that passes while something is decided."""

    def __init__(self) -> None:
        self.late = 0.0

    def now(self) -> Seconds:
        return Seconds(running().now() + self.late)

    async def sleep(self, duration: Seconds) -> None:
        await running().sleep(duration)


def test_what_was_decided_is_sent_before_all_else_is_decided() -> None:
    async def scene() -> None:
        host, clock = Host(), Ticking()
        decision = Laborious(host, clock)
        stage = Scene(decision, host, clock=clock)
        await running_for(stage, 5, *"abcdefgh")
        assert len(decision.sent) == len("abcdefgh")
        assert all(number < sent + 3 for number, sent in enumerate(decision.sent))

    play(scene)

"""Whoever comes to lead looks at everything: what each object costs must not grow with how many others there are."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jackfield.controllers import app
from jackfield.controllers.runner import Runner
from jackfield.model.meta import Object
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard, play

FEW = 40
MANY = 4 * FEW
GROWTH_MAX = 1.05


def busy(nodes: int) -> Iterator[Object]:
    """Nodes that give signs of life, each with a claim that is served by a device of a request of the scaler's."""
    for number in range(nodes):
        on, device = f"n{number}", f"a100-{number}"
        yield b.node(on)
        yield b.heartbeat(on, at=b.NOW)
        claim = b.claim(f"c{number}", devices=[device], on=on)
        yield claim
        yield b.request({device: str(claim.key)}, on=on)
        yield b.resource(device, on=on, record=claim)


@contextmanager
def counted(calls: list[int]) -> Iterator[None]:
    """Count the calls of Python functions, generators' turns among them."""

    def called(frame: FrameType, event: str, argument: object) -> None:
        del frame, argument
        calls[0] += event == "call"

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def calls_for_each(nodes: int) -> float:
    objects, calls = list(busy(nodes)), [0]

    async def scene(bench: Bench) -> None:
        for one in objects:
            bench.store.put(one)
        runner = Runner(bench.world, bench.store, app.ALL, Heard())
        with counted(calls):
            runner.look_again()

    play(scene)
    return calls[0] / len(objects)


def test_to_look_at_everything_costs_as_much_for_each_object_however_many_there_are() -> None:
    assert calls_for_each(MANY) <= GROWTH_MAX * calls_for_each(FEW)

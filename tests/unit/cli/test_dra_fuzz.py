"""Spoilt lines: each gets one answer, and none is a mistake of ours. `make fuzz` sends a hundred thousand."""

import pytest

from oracle import fuzz
from oracle.mangling import Mangled

LINES = 2000
BATCH = 250


@pytest.mark.parametrize("start", range(0, LINES, BATCH))
def test_every_spoilt_line_gets_one_answer(start: int) -> None:
    draw = Mangled(seed=7).line
    for number in range(start, start + BATCH):
        command, line = draw(number)
        wrong, answer = fuzz.fault(command, line, number)
        assert not wrong, (number, line[:500], answer)


def test_spoilt_lines_are_refused_and_answered_both_and_the_same_each_time() -> None:
    first, again = ([Mangled(seed=7).line(number) for number in range(200)] for _ in range(2))
    assert first == again
    answers = [fuzz.fault(command, line, number)[1] for number, (command, line) in enumerate(first)]
    refused = sum("line" in answer for answer in answers)
    assert 40 < refused < 180
